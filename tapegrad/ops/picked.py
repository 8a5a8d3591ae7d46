"""Index arrays whose adjoints compiled code knows: those that name rows, or elements of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.kernels.layout import FIELD, SMALL
from tapegrad.ops.index import HOLE

PICKS = frozenset(("index", "index_select", "gather"))
INT64 = np.dtype(np.int64)


def packed(name: str, arrays: list[Any], y: np.ndarray, params: dict[str, Any]) -> int:
    """AUX of a record whose adjoint compiled code knows; 0: only the rule does.

    It holds how many elements the operand has, those of a row that is picked as a whole, how many
    places an index can name, and how many are picked in each row (0: rows are picked).
    """
    x: np.ndarray = arrays[0]
    index = arrays[1]
    if len(arrays) != 2 or type(index) is not np.ndarray or index.dtype is not INT64:
        return 0
    if not 0 < x.size <= SMALL or not 0 < y.size <= SMALL:
        return 0
    if not (index.flags.c_contiguous and y.flags.c_contiguous):
        return 0
    if name == "gather":
        d = params["dim"]
        if d != x.ndim - 1 or x.shape[:-1] != index.shape[:-1]:
            return 0
        each: int = index.shape[-1]
        return int(x.size | 1 << FIELD | x.shape[-1] << 2 * FIELD | each << 3 * FIELD)
    if params["plan"] != (HOLE,) if name == "index" else params["dim"] != 0 or index.ndim != 1:
        return 0
    return int(x.size | math.prod(x.shape[1:]) << FIELD | x.shape[0] << 2 * FIELD)
