"""Batches of small systems of equations, inverses and determinants, see `elimination_loops`.

LAPACK takes as long to be called for a small matrix as the elimination itself.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels import build
from tapegrad.kernels.codegen import elimination_codegen, kernel_table
from tapegrad.kernels.codegen.vector_function import lanes as lanes_of
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address

LARGEST = 32  # rows of a matrix


@cache
def kernel(dtype: np.dtype[Any]) -> int:
    """The address of the elimination."""
    return build.assemble(elimination_codegen.elimination(dtype))


def loop(dtype: np.dtype[Any]) -> Any:
    """The loop over batches, `elimination_loops.systems`."""
    return kernel_table.loop("systems", f"f{dtype.itemsize}", "elimination_loops")


def compile_ahead(dtype: np.dtype[Any]) -> None:
    """Compile what batches of one precision need."""
    loop(dtype)
    kernel(dtype)


def _computed(a: Any, b: Any, cols: int, shape: tuple[int, ...]) -> Any:
    """What the loop makes of a batch; None where it is not the loop's, or a matrix is singular."""
    n, kind = a.shape[-1], a.dtype
    if a.ndim < 3 or not 0 < n <= LARGEST or kind.char not in "df" or not kind.isnative:
        return None
    if b is not None and (b.dtype is not kind or b.shape[:-2] != a.shape[:-2]):
        return None
    call, lanes = loop(kind).call, lanes_of(kind)
    a, y, count = np.ascontiguousarray(a), np.empty(shape, kind), prod(a.shape[:-2])
    b = None if b is None else np.ascontiguousarray(b)
    arrays = np.array([address(a), 0 if b is None else address(b), address(y)])
    given, found = (kernel(kind), lanes, address(arrays)), []

    def work(start: int, stop: int) -> None:
        room = np.empty((n * (n + cols) + 3) * lanes, kind)
        places = start * lanes, min(stop * lanes, count)
        found.append(call(*given, address(room), n, cols, *places))

    large_elementwise.split(-(-count // lanes), work, lanes * n * n * (n + cols))
    return None if any(found) else y


def inverses(x: Any) -> Any:
    """The inverses of small matrices, or None."""
    return _computed(x, None, x.shape[-1], x.shape)


def solutions(a: Any, b: Any, *, factors: Any = None) -> Any:
    """The solutions of small systems, or None."""
    if b.ndim < 2 or b.shape[-1] > LARGEST or not b.size:
        return None
    return _computed(a, b, b.shape[-1], b.shape)


def determinants(x: Any, *, factors: Any = None) -> Any:
    """The determinants of small matrices; None also where a product may have left the range."""
    y = _computed(x, None, 0, x.shape[:-2])
    return y if y is not None and np.isfinite(y).all() and y.all() else None
