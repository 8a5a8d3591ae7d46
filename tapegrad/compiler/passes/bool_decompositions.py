"""Decompose logic, counts and indices, which have no derivative, into comparisons and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.ops import elementwise as e
from tapegrad.ops import logic, order
from tapegrad.ops import reduce as r
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.ops.index import HOLE, index


def _truth(x: Any) -> Any:
    return x if x.dtype.numpy.kind == "b" else e.ne(x, 0)


def _falsehood(x: Any) -> Any:
    return e.eq(x, np.zeros((), x.dtype.numpy))


def _isinf(x: Any) -> Any:
    return e.eq(e.abs(x), math.inf) if x.dtype.is_floating_point else e.ne(x, x)


def _isfinite(x: Any) -> Any:
    return e.lt(e.abs(x), math.inf) if x.dtype.is_floating_point else e.eq(x, x)


def _count(x: Any, dim: Any, keepdim: bool) -> Any:
    return r.sum(s.to(_truth(x), dtype=np.dtype(np.int64)), dim=dim, keepdim=keepdim)


def _any(x: Any, *, dim: Any, keepdim: bool) -> Any:
    return None if x.dtype.numpy == np.uint8 else e.gt(_count(x, dim, keepdim), 0)


def _all(x: Any, *, dim: Any, keepdim: bool) -> Any:
    return None if x.dtype.numpy == np.uint8 else e.eq(_count(_falsehood(x), dim, keepdim), 0)


def _place(extreme: Any) -> Callable[..., Any]:
    """The form of the place of the first element that is the largest, or the smallest."""

    def form(x: Any, *, dim: int, keepdim: bool) -> Any:
        if x.dtype.numpy.kind == "b":
            x = s.to(x, dtype=np.dtype(np.int64))
        n = x.shape[dim]
        # Where one is NaN that is the extreme, and no other element is equal to it.
        hit = e.eq(x, extreme(x, dim=(dim,), keepdim=True)) + e.ne(x, x)
        places = np.arange(n).reshape(n, *(1,) * (len(x.shape) - dim - 1))
        return r.amin(e.where(hit, places, n), dim=(dim,), keepdim=keepdim)

    return form


def _searchsorted(a: Any, v: Any, *, side: str) -> Any:
    # Halving, for all at once: how many elements are known to stand before.  NaN is the largest.
    n = a.shape[0]
    place: Any = s.to(e.ne(v, v), dtype=np.dtype(np.int64)) * 0
    step = 1 << n.bit_length() - 1
    while step:
        further = place + step
        there = index(a, e.minimum(further, n) - 1, plan=(HOLE,))
        if side == "left":
            before = e.lt(there, v) + e.ne(v, v) * e.eq(there, there)
        else:
            before = e.le(there, v) + e.ne(v, v)
        place = e.where(before * e.le(further, n), further, place)
        step //= 2
    return place


FORMS: dict[Op, Callable[..., Any]] = {
    logic.logical_and: lambda a, b: _truth(a) * _truth(b),
    logic.logical_or: lambda a, b: _truth(a) + _truth(b),
    logic.logical_xor: lambda a, b: e.ne(_truth(a), _truth(b)),
    logic.logical_not: _falsehood, logic.isnan: lambda x: e.ne(x, x), logic.isinf: _isinf,
    logic.isfinite: _isfinite, order.any: _any, order.all: _all,
    order.count_nonzero: lambda x, *, dim, keepdim: _count(x, dim, keepdim),
    order.argmax: _place(r.amax), order.argmin: _place(r.amin), order.searchsorted: _searchsorted,
}  # fmt: skip
# The largest of some truth values is whether any is true.
OF_BOOLS: dict[Op, Callable[..., Any]] = {r.amax: _any, r.amin: _all}
