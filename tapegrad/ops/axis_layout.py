"""Operations along dimensions whose adjoints are compiled: how rows lie in an array.

The dimensions that an operation goes along must be neighbours; then an array in C order is
`outer` blocks of `n` elements each of which is `inner` elements after the last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import DECIMAL_BITS, FIELD, SMALL
from tapegrad.tape.shape_table import Shape


def rows(shape: Shape, dim: int | Iterable[int]) -> tuple[int, int] | None:
    """The length of a row along dimensions, and how far apart its elements are, if they are rows.

    >>> rows((2, 3, 4), (1,)), rows((2, 3, 4), (1, 2)), rows((2, 3, 4), (0, 2))
    ((3, 4), (12, 1), None)
    """
    dims = (dim,) if isinstance(dim, int) else sorted(dim)
    if not dims:
        return 1, 1
    first, last = dims[0], dims[-1]
    if last - first >= len(dims):
        return None
    return math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])


def extra(params: dict[str, Any]) -> int:
    """The number that a loop is given beside the arrays; -1: the loops do not serve."""
    if params.get("p", 2.0) != 2.0:
        return -1
    if "eps" in params:
        return packed_decimal(params["eps"])
    correction = params.get("correction", 0)
    fits = 0 <= correction < 1 << FIELD - 2 and correction == int(correction)
    return int(correction) if fits else -1


def packed_decimal(x: float) -> int:
    """A number with few decimal digits in 14 bits, as kernels read it; or -1.

    Powers of ten up to 10**22 are exact, and so is the quotient what Python reads of the digits.

    >>> packed_decimal(1e-5), packed_decimal(0.1 + 0.2)
    (2561, -1)
    """
    for places in range(23):
        digits = round(x * 10.0**places)
        if 0 <= digits < 1 << DECIMAL_BITS and digits / 10.0**places == x:
            return digits | places << DECIMAL_BITS
    return -1


def packed(x: np.ndarray, y: np.ndarray, params: dict[str, Any]) -> int:
    """AUX of a record whose adjoint compiled code knows; 0: only the rule does.

    It holds how many elements the operand has, those of a row, `inner`, and what `extra` gives.
    """
    # In float32 the compiled sweep makes room for the same numbers as doubles.
    most = SMALL // (8 // x.itemsize)
    if not 0 < x.size <= most or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return 0
    found, number = rows(x.shape, params.get("dim", range(x.ndim))), extra(params)
    if found is None or number < 0:
        return 0
    n, inner = found
    return x.size | n << FIELD | inner << 2 * FIELD | number << 3 * FIELD
