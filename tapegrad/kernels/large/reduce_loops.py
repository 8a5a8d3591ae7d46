"""Sums, products, moments and norms of large arrays."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from tapegrad.kernels.large.launching import (  # fmt: skip
    SHORT,
    Array,
    blocks,
    column_sums,
    known,
    pair_total,
    row_sums,
    row_totals,
)
from tapegrad.ops.reduce import remaining

SUMMED = "dfDF"  # complex numbers are added up as their parts are
LONG = 256  # rows that are added up one by one before their sums are


def total(x: Array, dim: tuple[int, ...]) -> Array | None:
    """The sum over neighbouring dimensions, or the first ones and the last ones, flat."""
    if not known(x, types=SUMMED):
        return None
    found = blocks(x.shape, dim)
    if found is None:
        return _around(x, dim)
    outer, n, inner = found
    if inner == 1 and n >= SHORT:
        return row_sums(x, outer, n)
    if inner >= SHORT and n >= 4 and outer <= 64:
        return column_sums(x, outer, n, inner)
    return None


def _around(x: Array, dim: tuple[int, ...]) -> Array | None:
    """The sum over all dimensions but some neighbours, as of what was broadcast along channels."""
    kept = [d for d in range(x.ndim) if d not in dim]
    if not kept or len(dim) + len(kept) != x.ndim or blocks(x.shape, tuple(kept)) is None:
        return None
    outer, channels, inner = (
        math.prod(x.shape[a:b]) for a, b in pairwise((0, kept[0], kept[-1] + 1, x.ndim))
    )
    if inner >= LONG:
        return np.asarray(np.add.reduce(row_sums(x, outer * channels, inner).reshape(outer, -1)))
    columns = np.add.reduce(x.reshape(outer, -1)).reshape(channels, inner)
    return np.asarray(np.add.reduce(columns, axis=1))


def sum(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The sum."""
    found = total(x, dim)
    return None if found is None else found.reshape(remaining(x.shape, dim, keepdim))


def mean(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The mean."""
    found = total(x, dim)
    if found is None:
        return None
    count = x.size // found.size
    return np.divide(found, x.dtype.type(count), out=found).reshape(
        remaining(x.shape, dim, keepdim)
    )


def prod(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The product, unless another order of its factors might overflow where this one does not."""
    found = blocks(x.shape, dim) if known(x) else None
    if found is None or found[2] != 1 or found[1] < SHORT:
        return None
    out = row_totals("multiply_up", x, found[0], found[1], np.multiply)
    if out.size == 1:  # three passes of NumPy's take a while when the memory was all x's
        whole = out.item()
        sure = whole != 0.0 and math.isfinite(whole)
    else:
        sure = out.all() and np.isfinite(out).all()
    return out.reshape(remaining(x.shape, dim, keepdim)) if sure else None


def mse_loss(a: Array, b: Array, *, mean: bool) -> Any:
    """The sum or the mean of the squared differences, in one pass."""
    if not (known(a) and known(b)) or a.dtype is not b.dtype or a.shape != b.shape:
        return None
    found = pair_total("distance_up", a, b)
    return found / a.dtype.type(a.size) if mean else found


def others_prod(x: Array, *, dim: int) -> Any:
    """The product of all others, by division where there is no zero and nothing overflows."""
    if not known(x) or dim != x.ndim - 1:
        return None
    whole = prod(x, dim=(dim,), keepdim=True)
    if whole is None or (np.abs(whole) < np.finfo(x.dtype).tiny).any():
        return None
    return whole / x


def sum_to(x: Array, *, shape: tuple[int, ...]) -> Any:
    """Add up the dimensions along which an array of `shape` would be broadcast."""
    if not known(x, types=SUMMED) or x.shape == shape:
        return None
    extra = x.ndim - len(shape)
    axes = tuple(
        d for d in range(x.ndim) if d < extra or (shape[d - extra] == 1 and x.shape[d] != 1)
    )
    found = total(x, axes)
    return None if found is None else found.reshape(shape)
