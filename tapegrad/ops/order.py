"""Where elements stand and what is true of them: places, orders, counts.

These are constant almost everywhere and have no derivative; they are rows of the table because a
map has to shift their dimensions like any other's.  A single `dim` is an int, several are a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom
from tapegrad.ops.elementwise import eq, le, lt, minimum, ne, where
from tapegrad.ops.index import HOLE, gather, index
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


def _argkth(x: Any, *, dim: int, k: int) -> Any:
    """The place of the element that is number k in order; NaN counts as the largest."""
    found = np.argpartition(x, k, axis=dim)
    return np.ascontiguousarray(found[(slice(None),) * dim + (slice(k, k + 1),)])


def _argtopk(x: Any, *, dim: int, k: int, largest: bool) -> Any:
    """The places of the k largest elements, from the largest on, or of the k smallest."""
    n = x.shape[dim]
    if k == 0:
        return np.empty((*x.shape[:dim], 0, *x.shape[dim + 1 :]), np.int64)
    if k < n and n > 64:  # or else to sort all takes less
        ends = np.argpartition(x, n - k if largest else k - 1, axis=dim)
        some = np.take(ends, range(n - k, n) if largest else range(k), axis=dim)
        inner = np.argsort(np.take_along_axis(x, some, dim), axis=dim)
        found = np.take_along_axis(some, inner, dim)
    else:
        found = np.argsort(x, axis=dim)
    m = found.shape[dim]
    chosen = slice(m - 1, m - k - 1 if m > k else None, -1) if largest else slice(0, k)
    return np.ascontiguousarray(found[(slice(None),) * dim + (chosen,)])


def _argmedian(x: Any, *, dim: int, ignore_nan: bool) -> Any:
    """The place of the lower of the two elements in the middle; of a NaN, if that counts."""
    n = x.shape[dim]
    found = _argkth(x, dim=dim, k=(n - 1) // 2)
    holes = np.isnan(x) if x.dtype.kind == "f" else np.zeros(1, bool)
    if not holes.any():
        return found
    if ignore_nan:
        known = n - np.count_nonzero(holes, axis=dim, keepdims=True)
        middle = np.maximum(known - 1, 0) // 2
        return np.take_along_axis(np.argsort(x, axis=dim), middle, dim)
    some = holes.any(axis=dim, keepdims=True)
    return np.where(some, np.argmax(holes, axis=dim, keepdims=True), found)


def _argmode(x: Any, *, dim: int) -> Any:
    """The last place of the most frequent element, of the smallest of several."""
    order = np.moveaxis(np.argsort(x, axis=dim, kind="stable"), dim, -1)
    line = np.take_along_axis(np.moveaxis(x, dim, -1), order, -1)
    n = line.shape[-1]
    new = np.ones(line.shape, bool)
    new[..., 1:] = line[..., 1:] != line[..., :-1]
    begins = np.maximum.accumulate(np.where(new, np.arange(n), 0), axis=-1)
    so_far = np.arange(n) - begins
    last = np.argmax(so_far, axis=-1, keepdims=True)  # the first run that is longest
    return np.ascontiguousarray(np.moveaxis(np.take_along_axis(order, last, -1), -1, dim))


def _argcummax(x: Any, *, dim: int, largest: bool) -> Any:
    """Where the largest element so far stands, the last of several, or the smallest; NaN is it."""
    best = (np.maximum if largest else np.minimum).accumulate(x, axis=dim)
    hit = (x == best) | (x != x)
    shape = [1] * x.ndim
    shape[dim] = -1
    places = np.arange(x.shape[dim]).reshape(shape)
    return np.maximum.accumulate(np.where(hit, places, 0), axis=dim)


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


def _searchsorted(a: Any, v: Any, *, side: Any) -> Any:
    """Places in a vector, or in each row of several those of the values in the same row."""
    if a.ndim == 1:
        return np.searchsorted(a, v, side)
    out = np.empty(v.shape, np.int64)
    for row in np.ndindex(a.shape[:-1]):
        out[row] = np.searchsorted(a[row], v[row], side)
    return out


def _searchsorted_form(a: Any, v: Any, *, side: str) -> Any:
    # Halving, for all at once: how many elements are known to stand before.  NaN is the largest.
    last = len(a.shape) - 1
    n = a.shape[last]
    place: Any = to(ne(v, v), dtype=np.dtype(np.int64)) * 0
    step = 1 << n.bit_length() >> 1
    while step:
        further = place + step
        at = minimum(further, n) - 1
        there = gather(a, at, dim=last) if last else index(a, at, plan=(HOLE,))
        if side == "left":
            before = lt(there, v) + ne(v, v) * eq(there, there)
        else:
            before = le(there, v) + ne(v, v)
        place = where(before * le(further, n), further, place)
        step //= 2
    return place


argmax: Op = custom(
    "argmax",
    lambda x, *, dim, keepdim: x.argmax(dim, keepdims=keepdim),
    x=PLACES,
    decomposition=_place_form(amax),
    kinds="i",
)
argmin: Op = custom(
    "argmin",
    lambda x, *, dim, keepdim: x.argmin(dim, keepdims=keepdim),
    x=PLACES,
    decomposition=_place_form(amin),
    kinds="i",
)
argsort: Op = custom("argsort", _argsort, x=PLACES)
argkth: Op = custom("argkth", _argkth, x=PLACES)
argtopk: Op = custom("argtopk", _argtopk, x=PLACES)
argmedian: Op = custom("argmedian", _argmedian, x=PLACES)
argmode: Op = custom("argmode", _argmode, x=PLACES)
argcummax: Op = custom("argcummax", _argcummax, x=PLACES)
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
    "searchsorted", _searchsorted, a=PLACES, v=PLACES, decomposition=_searchsorted_form, kinds="i"
)
