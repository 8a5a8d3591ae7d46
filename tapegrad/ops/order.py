"""Where elements stand and what is true of them: places, orders, counts.

These are constant almost everywhere and have no derivative; they are rows of the table because a
map has to shift their dimensions like any other's.  A single `dim` is an int, several are a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom
from tapegrad.ops.elementwise import eq, le, lt, minimum, ne, where
from tapegrad.ops.index import HOLE, index
from tapegrad.ops.reduce import all_form, amax, amin, any_form, count_form
from tapegrad.ops.shape import to

PLACES = NotDifferentiable("where an element stands is constant almost everywhere")
COUNTS = NotDifferentiable("what is true of elements is constant almost everywhere")


def _argsort(x: Any, *, dim: int, descending: bool) -> Any:
    """Equal elements keep their order; NaN counts as the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    back = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.ascontiguousarray(np.flip(x.shape[dim] - 1 - back, dim))


def _truth(ufunc: Any) -> Any:
    def forward(x: Any, *, dim: tuple[int, ...], keepdim: bool) -> Any:
        kind = np.uint8 if x.dtype == np.uint8 else np.bool_  # PyTorch's one exception
        return np.asarray(ufunc.reduce(x.astype(bool), axis=dim, keepdims=keepdim), kind)

    return forward


def _place_form(extreme: Op) -> Any:
    """The place of the first element that is the largest, or the smallest, over operations."""

    def form(x: Any, *, dim: int, keepdim: bool) -> Any:
        if x.dtype.numpy.kind == "b":
            x = to(x, dtype=np.dtype(np.int64))
        n = x.shape[dim]
        # Where one is NaN that is the extreme, and no other element is equal to it.
        hit = eq(x, extreme(x, dim=(dim,), keepdim=True)) + ne(x, x)
        places = np.arange(n).reshape(n, *(1,) * (len(x.shape) - dim - 1))
        return amin(where(hit, places, n), dim=(dim,), keepdim=keepdim)

    return form


def _searchsorted_form(a: Any, v: Any, *, side: str) -> Any:
    # Halving, for all at once: how many elements are known to stand before.  NaN is the largest.
    n = a.shape[0]
    place: Any = to(ne(v, v), dtype=np.dtype(np.int64)) * 0
    step = 1 << n.bit_length() - 1
    while step:
        further = place + step
        there = index(a, minimum(further, n) - 1, plan=(HOLE,))
        if side == "left":
            before = lt(there, v) + ne(v, v) * eq(there, there)
        else:
            before = le(there, v) + ne(v, v)
        place = where(before * le(further, n), further, place)
        step //= 2
    return place


argmax: Op = custom(
    "argmax",
    lambda x, *, dim, keepdim: np.argmax(x, axis=dim, keepdims=keepdim),
    x=PLACES,
    decomposition=_place_form(amax),
    kinds="i",
)
argmin: Op = custom(
    "argmin",
    lambda x, *, dim, keepdim: np.argmin(x, axis=dim, keepdims=keepdim),
    x=PLACES,
    decomposition=_place_form(amin),
    kinds="i",
)
argsort: Op = custom("argsort", _argsort, x=PLACES)
all: Op = custom("all", _truth(np.logical_and), x=COUNTS, decomposition=all_form, kinds="b")
any: Op = custom("any", _truth(np.logical_or), x=COUNTS, decomposition=any_form, kinds="b")
count_nonzero: Op = custom(
    "count_nonzero",
    lambda x, *, dim, keepdim: np.count_nonzero(x, axis=dim, keepdims=keepdim),
    x=COUNTS,
    decomposition=count_form,
    kinds="i",
)
searchsorted: Op = custom(
    "searchsorted",
    lambda a, v, *, side: np.searchsorted(a, v, side),
    a=PLACES,
    v=PLACES,
    decomposition=_searchsorted_form,
    kinds="i",
)
