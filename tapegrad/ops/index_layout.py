"""Operations at chosen places whose adjoints are compiled.

The places are named by one index array, by a mask, or by how a view lies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import (
    EACH_BITS,
    FIELD,
    FIELD_MASK,
    INDEX_LAST,
    KEEPS_WRITTEN,
    KIND_PICK,
    KIND_PUT,
    KIND_SELECT,
    KIND_TRIANGLE,
    LOWER,
    SHARED,
    SMALL,
)
from tapegrad.ops.core import Op
from tapegrad.ops.index import HOLE, only_dimension
from tapegrad.ops.shape import tril
from tapegrad.tape.shape_table import Shape

INT64, TRUTH = np.dtype(np.int64), np.dtype(np.bool_)


def packed(op: Op, arrays: list[Any], y: np.ndarray, params: dict[str, Any]) -> int:
    """AUX of a record whose adjoint compiled code knows; 0: only the rule does."""
    x: np.ndarray = arrays[0]
    if not 0 < x.size <= SMALL or not 0 < y.size <= SMALL or not y.flags.c_contiguous:
        return 0
    if op.sweep == KIND_TRIANGLE:
        rows, columns = x.shape[-2:]
        diagonal = min(max(params["diagonal"], -rows), columns) + rows
        lower = LOWER if op is tril else 0
        return int(columns | rows << FIELD | diagonal << 2 * FIELD | lower)
    if op.sweep == KIND_PICK:
        places = _places(op, x.shape, arrays[1:], params)
        return int(x.size | places) if places else 0
    if op.sweep == KIND_PUT:
        return _put(op, x, arrays, params)
    if not _plain(arrays[1], TRUTH) or arrays[1].shape != x.shape:
        return 0
    return int(x.size) if op.sweep == KIND_SELECT or writes(x, arrays[2], 1) else 0


def _plain(array: Any, dtype: np.dtype[Any]) -> bool:
    return type(array) is np.ndarray and array.dtype is dtype and array.flags.c_contiguous


def _places(op: Op, shape: Shape, indices: list[Any], params: dict[str, Any]) -> int:
    """How an index array names places, or 0 if it does in a way that compiled code knows not.

    The second field of AUX holds how many elements a row has that is named as a whole, the third
    how many an index can name; SHARED says that the fourth holds the number of blocks in each of
    which the same rows are named.  Where elements are named, of rows along a dimension, the fourth
    says how many in each row, and the second how far their elements are apart.
    """
    if len(indices) != 1 or not shape or not _plain(indices[0], INT64):
        return 0
    index = indices[0]
    if "along" in op.moves:
        d = params["dim"]
        if (*shape[:d], *shape[d + 1 :]) != (*index.shape[:d], *index.shape[d + 1 :]):
            return 0
        each, inner = index.shape[d], math.prod(shape[d + 1 :])
        if not 0 < index.size <= SMALL:
            return 0
        return int(inner << FIELD | shape[d] << 2 * FIELD | each << 3 * FIELD)
    if "dim" in params and index.ndim != 1:
        return 0
    plan = params.get("plan", (HOLE,))
    d = params["dim"] if "dim" in params else only_dimension(plan, len(shape))
    if d is None:
        return 0
    blocks = math.prod(shape[:d])
    shared = SHARED | blocks << 3 * FIELD if blocks != 1 else 0
    return shared | math.prod(shape[d + 1 :]) << FIELD | shape[d] << 2 * FIELD


def _put(op: Op, x: np.ndarray, arrays: list[Any], params: dict[str, Any]) -> int:
    """AUX of what writes: in the first field, how many elements the value has."""
    value, *indices = arrays[1:] if op.variadic else arrays[:0:-1]
    places = _places(op, x.shape, indices, params)
    if not places:
        return 0
    index: np.ndarray = indices[0]
    nameable = places >> 2 * FIELD & FIELD_MASK
    count = index.size if "along" in op.moves else index.size * x.size // nameable
    if not writes(x, value, count):
        return 0
    size = np.size(value)
    if "along" in op.moves and size != 1 and value.shape != index.shape:
        return 0
    adds = "add" in op.moves or params.get("accumulate", False)
    last = INDEX_LAST if op.variadic else 0
    return size | places | (KEEPS_WRITTEN if adds else 0) | last


def writes(x: np.ndarray, value: Any, count: int) -> bool:
    """Whether a value is one number, or as many as are to be written, of the elements' type."""
    if type(value) is np.ndarray and value.dtype is not x.dtype:
        return False
    return 0 < count <= SMALL and np.size(value) in (1, count)


assert SMALL < 1 << EACH_BITS
