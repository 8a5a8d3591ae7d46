"""Where elements stand and what is true of them: places, orders, counts; the median.

All but the median are constant almost everywhere and have no derivative; they are rows of the table
because a map has to shift their dimensions like any other's.  A single `dim` is an int, several are
a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, custom
from tapegrad.ops.elementwise import eq, exact, le, lt, minimum, ne, where
from tapegrad.ops.index import HOLE, at, gather, index
from tapegrad.ops.reduce import (
    all_form,
    amax,
    amin,
    any_form,
    count,
    count_form,
    remaining,
    spread,
    sum,
)
from tapegrad.ops.shape import embed, getitem, permute, reshape, to

Dims = tuple[int, ...]
PLACES = NotDifferentiable("where an element stands is constant almost everywhere")
COUNTS = NotDifferentiable("what is true of elements is constant almost everywhere")


def _argsort(x: Any, *, dim: int, descending: bool) -> Any:
    """Equal elements keep their order; NaN counts as the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    back = at(dim, slice(None, None, -1))
    return x.shape[dim] - 1 - np.argsort(x[back], axis=dim, kind="stable")[back]


def _on_lines(find: Any) -> Any:
    """A forward along one dimension, of a function of lines that lie one under the other."""

    def forward(x: Any, *, dim: int, **params: Any) -> Any:
        if dim == x.ndim - 1:
            return np.ascontiguousarray(find(x, **params))
        found = find(np.moveaxis(x, dim, -1), **params)
        return np.ascontiguousarray(np.moveaxis(found, -1, dim))

    return forward


SHORT = 64  # elements up to which to sort all takes less than to look for some


def _less(line: Any, value: Any) -> Any:
    """Which elements come before a value; NaN counts as the largest."""
    found = line < value
    return np.where(value == value, found, line == line) if (value != value).any() else found


def _equal(line: Any, value: Any) -> Any:
    """Which elements equal a value, as NaN does NaN."""
    found = line == value
    return np.where(value == value, found, line != line) if (value != value).any() else found


def _counted(mask: Any) -> Any:
    return np.count_nonzero(mask, axis=-1, keepdims=True)


def _kth(line: Any, *, k: int) -> Any:
    """The place of number k in stable order; NaN counts as the largest."""
    if line.shape[-1] <= SHORT:
        return np.argsort(line, axis=-1, kind="stable")[..., k : k + 1]
    value = np.partition(line, k, axis=-1)[..., k : k + 1]
    hits = _equal(line, value)
    if np.count_nonzero(hits) * line.shape[-1] > line.size:  # more than one of a line
        hits = np.cumsum(hits, axis=-1) > k - _counted(_less(line, value))
    return np.argmax(hits, axis=-1, keepdims=True)


def _topk(line: Any, *, k: int, largest: bool) -> Any:
    """The places of the k largest elements in stable order from there, or of the k smallest."""
    n = line.shape[-1]
    if not 0 < k < n or n <= SHORT:
        return _argsort(line, dim=line.ndim - 1, descending=largest)[..., :k]
    if line.size == n and (some := _candidates(line.ravel(), k, largest)) is not None:
        inner = _topk(line.ravel()[some], k=k, largest=largest)
        return some[inner].reshape(*line.shape[:-1], k)
    if k <= ONE_BY_ONE and (found := _one_by_one(line, k, largest)) is not None:
        return found
    last = n - k if largest else k - 1
    value = np.partition(line, last, axis=-1)[..., last : last + 1]
    less = _less(line, value)
    chosen = ~less if largest else less | _equal(line, value)
    if np.count_nonzero(chosen) * n > line.size * k:  # the first that equal the last one
        equal = _equal(line, value)
        chosen &= ~equal | (np.cumsum(equal, axis=-1) <= _counted(equal) - _counted(chosen) + k)
    places = np.nonzero(chosen)[-1].reshape(*line.shape[:-1], k)
    inner = _argsort(np.take_along_axis(line, places, -1), dim=line.ndim - 1, descending=largest)
    return np.take_along_axis(places, inner, -1)


BLOCK = 512  # elements, of whose best ones the k best are a bound


def _candidates(line: Any, k: int, largest: bool) -> Any:
    """The places of what may be among the k best: no worse than the k-th best of those of blocks.

    None: there are too few blocks, NaN, or too many candidates for this to pay.
    """
    count = len(line) // BLOCK
    if count < 4 * k or line.dtype.kind not in "fiu":
        return None
    better = np.maximum if largest else np.minimum
    best = better.reduce(line[: count * BLOCK].reshape(count, BLOCK), axis=1)
    if (best != best).any() or (line[count * BLOCK :] != line[count * BLOCK :]).any():
        return None
    last = count - k if largest else k - 1
    bound = np.partition(best, last)[last]
    found = np.flatnonzero(line >= bound if largest else line <= bound)
    return found if len(found) <= len(line) // 4 else None


ONE_BY_ONE = 16  # elements that are looked for one after the other


def _one_by_one(line: Any, k: int, largest: bool) -> Any:
    """The places of the k best: a pass for each; None where infinity or NaN is among them."""
    if line.dtype.kind != "f":
        return None
    left, worst = line.copy(), -np.inf if largest else np.inf
    found = np.empty((*line.shape[:-1], k), np.int64)
    for i in range(k):
        best = (left.argmax if largest else left.argmin)(-1, keepdims=True)
        value = np.take_along_axis(left, best, -1)
        if not np.isfinite(value).all():
            return None
        found[..., i : i + 1] = best
        np.put_along_axis(left, best, worst, -1)
    return found


def _middle(line: Any, *, ignore_nan: bool) -> Any:
    """The place of the lower of the two elements in the middle; of a NaN, if that counts."""
    n = line.shape[-1]
    found = _kth(line, k=(n - 1) // 2)
    holes = np.isnan(line) if line.dtype.kind == "f" else np.zeros(1, bool)
    if not holes.any():
        return found
    if ignore_nan:
        middle = np.maximum(n - _counted(holes) - 1, 0) // 2
        return np.take_along_axis(np.argsort(line, axis=-1, kind="stable"), middle, -1)
    some = holes.any(axis=-1, keepdims=True)
    return np.where(some, np.argmax(holes, axis=-1, keepdims=True), found)


def _topk_form(x: Any, *, dim: int, k: int, largest: bool) -> Any:
    return getitem(argsort(x, dim=dim, descending=largest), index=at(dim, slice(0, k)))


def _mode(line: Any) -> Any:
    """The last place of the most frequent element, of the smallest of several."""
    order = np.argsort(line, axis=-1, kind="stable")
    line = np.take_along_axis(line, order, -1)
    n = line.shape[-1]
    new = np.ones(line.shape, bool)
    new[..., 1:] = line[..., 1:] != line[..., :-1]
    begins = np.maximum.accumulate(np.where(new, np.arange(n), 0), axis=-1)
    so_far = np.arange(n) - begins
    last = np.argmax(so_far, axis=-1, keepdims=True)  # the first run that is longest
    return np.take_along_axis(order, last, -1)


def _mode_form(x: Any, *, dim: int) -> Any:
    order = argsort(x, dim=dim, descending=False)
    line = gather(x, order, dim=dim)
    n = x.shape[dim]
    column = (n, *(1,) * (len(x.shape) - dim - 1))
    numbers = np.arange(n).reshape(column)
    first, more = at(dim, slice(0, n - 1)), at(dim, slice(1, n))
    new = ne(getitem(line, index=more), getitem(line, index=first))
    starts = where(new, numbers[1:] + 1, 0)  # rising numbers where there is a new element
    starts = embed(starts, shape=line.shape, index=more) + np.where(numbers == 0, 1, 0)
    so_far = numbers - argcummax(starts, dim=dim, largest=True)
    last = argmax(so_far, dim=dim, keepdim=True)
    return gather(order, last, dim=dim)


def _argcummax(x: Any, *, dim: int, largest: bool) -> Any:
    """Where the largest element so far stands, the last of several, or the smallest; NaN is it."""
    best = (np.maximum if largest else np.minimum).accumulate(x, axis=dim)
    hit = (x == best) | (x != x)
    n = x.shape[dim]
    if dim == x.ndim - 1 and n:  # each row begins with one, which is repeated until the next
        places = np.flatnonzero(hit)
        return np.repeat(places % n, np.diff(places, append=x.size)).reshape(x.shape)
    shape = [1] * x.ndim
    shape[dim] = -1
    places = np.arange(x.shape[dim]).reshape(shape)
    return np.maximum.accumulate(np.where(hit, places, 0), axis=dim)


def _median(x: Any, *, dim: Dims, keepdim: bool, ignore_nan: bool) -> Any:
    """The lower of the two elements in the middle; NaN of none, and if one is, unless ignored."""
    line = np.moveaxis(x, dim, range(-len(dim), 0)).reshape(*remaining(x.shape, dim, False), -1)
    if line.shape[-1]:
        found = np.take_along_axis(line, _middle(line, ignore_nan=ignore_nan), -1)
    else:
        found = np.full(line.shape[:-1], np.nan, x.dtype)
    return found.reshape(remaining(x.shape, dim, keepdim))


def _middle_ties(g: Any, x: Any, y: Any, x_spec: Any, dim: Dims, keepdim: bool) -> Any:
    middle = spread(y, x_spec, dim, keepdim)
    hit = where(ne(middle, middle), ne(x, x), eq(x, middle)) * 1.0
    return exact(spread(g, x_spec, dim, keepdim), hit / sum(hit, dim=dim, keepdim=True))


def _median_form(x: Any, *, dim: Dims, keepdim: bool, ignore_nan: bool) -> Any:
    rest = [d for d in range(len(x.shape)) if d not in dim]
    shape = remaining(x.shape, dim, False)
    line = reshape(permute(x, dims=(*rest, *dim)), shape=(*shape, count(x, dim)))
    place = argmedian(line, dim=len(shape), ignore_nan=ignore_nan)
    return reshape(gather(line, place, dim=len(shape)), shape=remaining(x.shape, dim, keepdim))


def _truth(ufunc: Any) -> Any:
    def forward(x: Any, *, dim: Dims, keepdim: bool) -> Any:
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
argkth: Op = custom("argkth", _on_lines(_kth), x=PLACES)
argtopk: Op = custom("argtopk", _on_lines(_topk), x=PLACES, decomposition=_topk_form, kinds="i")
argmedian: Op = custom("argmedian", _on_lines(_middle), x=PLACES)
argmode: Op = custom("argmode", _on_lines(_mode), x=PLACES, decomposition=_mode_form, kinds="i")
argcummax: Op = custom("argcummax", _argcummax, x=PLACES)
median = custom(
    "median",
    _median,
    x=_middle_ties,
    decomposition=_median_form,
    kinds="fib",
    singular="Ties share the gradient.",
)
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
