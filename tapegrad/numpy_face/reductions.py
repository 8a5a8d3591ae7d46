"""Sums, means, products, extrema and what is made of them, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.dtypes import to_numpy
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import all_dims, one_dim
from tapegrad.functions.axis import logsumexp
from tapegrad.functions.creation import ones, zeros
from tapegrad.functions.indexing import getitem, index_add
from tapegrad.functions.joining import cat
from tapegrad.functions.scans import cumprod
from tapegrad.functions.scattering import index_reduce
from tapegrad.functions.shapes import broadcast_to, clone, permute, reshape, to
from tapegrad.numpy_face.common import SHORT, floating, handles, line, nothing, plain, tensor
from tapegrad.ops.reduce import remaining
from tapegrad.tensor import Tensor, wrap

SHORT[np.sum] = r.sum
SHORT[np.mean] = r.mean


def _typed(x: Any, dtype: Any) -> Tensor:
    return tensor(x) if dtype is None else to(tensor(x), dtype=dtype)


def _summable(a: Any, dtype: Any) -> tuple[Tensor, Any]:
    """What is added up or multiplied, and in which type: NumPy widens small integers."""
    x = tensor(a)
    if dtype is None and x._a.dtype.kind in "biu":
        dtype = np.uint64 if x._a.dtype.kind == "u" else np.int64
    return (x if dtype is None else to(x, dtype=dtype)), dtype


def averaged(a: Any, dtype: Any, name: str) -> Tensor:
    """What a mean or a variance is taken of; integers are no type for it."""
    x = floating(_typed(a, dtype))
    if dtype is not None and x._a.dtype != to_numpy(dtype):
        raise TypeError(
            f"`{name}`: dtype is a floating-point type, got {np.dtype(to_numpy(dtype))}: convert "
            "the result"
        )
    return x


def _given(option: Any) -> bool:
    """Whether an option says more than NumPy's own default."""
    return option is not None and option is not True


def _chosen(x: Tensor, where: Any, other: Any) -> Tensor:
    """The elements that count, and in place of the others one that changes nothing."""
    mask = broadcast_to(tensor(where), x._a.shape)
    return ar.where(mask, x, wrap(np.asarray(other, x._a.dtype)))


@handles(np.sum)
def sum_(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Tensor:  # fmt: skip
    """`np.sum`."""
    x, dtype = _summable(a, dtype)
    x = _chosen(x, where, 0) if _given(where) else x
    if nothing(axis):
        found = clone(x)
    else:
        found = r.sum(x, axis, bool(keepdims), dtype=dtype)
    return ar.add(found, initial) if _given(initial) else found


@handles(np.mean)
def mean_(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = None
) -> Tensor:
    """`np.mean`."""
    x = averaged(a, dtype, "np.mean")
    if _given(where):
        count = sum_(broadcast_to(tensor(where), x._a.shape), axis, None, keepdims)
        return sum_(x, axis, None, keepdims, where=where) / to(count, dtype=x._a.dtype)
    return clone(x) if nothing(axis) else r.mean(x, axis, bool(keepdims))


@handles(np.prod)
def prod_(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Tensor:  # fmt: skip
    """`np.prod`: several axes become one."""
    if _given(initial) or _given(where):
        x = _typed(a, dtype)
        found = prod_(_chosen(x, where, 1) if _given(where) else x, axis, dtype, keepdims)
        return ew.mul(found, initial) if _given(initial) else found
    x, dtype = _summable(a, dtype)
    if nothing(axis):
        return clone(x)
    shape = x._a.shape
    dims = all_dims(axis, len(shape), "np.prod")
    rest = tuple(d for d in range(len(shape)) if d not in dims)
    others = tuple(shape[d] for d in rest)
    count = int(np.prod([shape[d] for d in dims]))
    found = r.prod(reshape(permute(x, (*rest, *dims)), (*others, count)), -1, dtype=dtype)
    return reshape(found, remaining(shape, dims, keepdim=True)) if keepdims else found


def spread_of(off: Tensor, free: Tensor, axis: Any, keepdims: bool, root: bool) -> Tensor:
    """The variance of deviations or its root, of which the derivative at 0 is 0, as of `np.std`."""
    if root:
        return tensor(r.norm(off, 2, axis, bool(keepdims)) / ew.sqrt(free))
    off = ew.abs(off) if off._a.dtype.kind == "c" else off
    return sum_(ew.square(off), axis, None, keepdims) / free


def _spread(
    x: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, function: Any
) -> Tensor:
    t = averaged(x, dtype, f"np.{function.__name__}")
    if nothing(axis):  # groups of one element each
        t, axis, keepdims = reshape(t, (*t._a.shape, 1)), -1, False
        where = reshape(tensor(where), (*np.shape(where), 1)) if _given(where) else where
        mean = None if mean is None else reshape(tensor(mean), (*np.shape(mean), 1))
    if not _given(where) and mean is None:
        return tensor(function(t, axis, keepdim=bool(keepdims), correction=ddof))
    off = t - (mean_(t, axis, keepdims=True, where=where) if mean is None else mean)
    counted = broadcast_to(tensor(where if _given(where) else True), t._a.shape)
    free = to(sum_(counted, axis, None, keepdims), dtype=t._a.real.dtype) - ddof
    off = _chosen(off, counted, 0)
    return spread_of(off, ar.clamp(free, 0), axis, keepdims, function is r.std)


@handles(np.var)
def _var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Tensor:  # fmt: skip
    ddof = ddof if correction is None else correction
    return _spread(a, axis, dtype, ddof, keepdims, where, mean, r.var)


@handles(np.std)
def _std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: Any = None,
) -> Tensor:  # fmt: skip
    ddof = ddof if correction is None else correction
    return _spread(a, axis, dtype, ddof, keepdims, where, mean, r.std)


def some(x: Tensor, axis: Any, name: str) -> None:
    """Refuse to choose from nothing."""
    if any(x._a.shape[d] == 0 for d in all_dims(axis, x._a.ndim, name)):
        raise ValueError(f"`{name}`: no elements to choose from in the shape {x._a.shape}")


def _bounded(
    whole: Any, bound: Any, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    """An extreme beside `initial`, of the elements that count; `initial` counts in any case."""
    x = tensor(a)
    if not _given(initial):
        raise ValueError("`np.max` and `np.min` with `where=` need `initial=`, as in NumPy")
    start, kind = to(tensor(initial), dtype=x._a.dtype), x._a.dtype
    if _given(where):
        low, high = (-np.inf, np.inf) if kind.kind == "f" else _ends(kind)
        x = _chosen(x, where, low if whole is max_ else high)
    dims = () if nothing(axis) else all_dims(axis, x._a.ndim, "np.max")
    if not all(x._a.shape[d] for d in dims):
        return clone(broadcast_to(start, remaining(x._a.shape, dims, bool(keepdims))))
    found: Tensor = bound(whole(x, axis, keepdims), start)
    return found


def _ends(kind: np.dtype[Any]) -> tuple[int, int]:
    """The least and the largest number of an integer type, or truth value."""
    if kind.kind == "b":
        return 0, 1
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


@handles(np.max, np.amax)
def max_(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """`np.max`; ties share the gradient."""
    if _given(initial) or _given(where):
        return _bounded(max_, ew.maximum, a, axis, keepdims, initial, where)
    x = tensor(a)
    if nothing(axis):
        return clone(x)
    some(x, axis, "np.max")
    return r.amax(x, () if axis is None else axis, bool(keepdims))


@handles(np.min, np.amin)
def min_(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """`np.min`; ties share the gradient."""
    if _given(initial) or _given(where):
        return _bounded(min_, ew.minimum, a, axis, keepdims, initial, where)
    x = tensor(a)
    if nothing(axis):
        return clone(x)
    some(x, axis, "np.min")
    return r.amin(x, () if axis is None else axis, bool(keepdims))


handles(np.ptp)(
    lambda a, axis=None, keepdims=False: max_(a, axis, keepdims) - min_(a, axis, keepdims)
)


def logsumexp_(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`np.logaddexp.reduce`."""
    return clone(floating(a)) if nothing(axis) else logsumexp(a, axis, bool(keepdims))


@handles(np.cumsum)
def cumsum_(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """`np.cumsum`."""
    whole, dtype = _summable(a, dtype)
    x, d = line(whole, axis)
    return r.cumsum(x, d, dtype=dtype)


@handles(np.cumprod)
def cumprod_(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """`np.cumprod`."""
    whole, dtype = _summable(a, dtype)
    x, d = line(whole, axis)
    return cumprod(x, d, dtype=dtype)


def running_(function: Callable[[Tensor, int], Any]) -> Callable[..., Tensor]:
    """The `accumulate` of a ufunc, by tapegrad's function that goes along one dimension."""

    def handler(a: Any, axis: Any = None) -> Tensor:
        x, d = line(tensor(a), axis)
        found = function(x, d)
        return found if isinstance(found, Tensor) else tensor(found.values)

    return handler


def reduceat_(a: Any, indices: Any, axis: int, reduce: str, name: str) -> Tensor:
    """The `reduceat` of a ufunc: each part goes up to where the next one begins.

    What begins behind the next one is a part of one element.  Every part has an element, so the
    scatter reduces nothing but elements.
    """
    x = _summable(a, None)[0] if reduce in ("sum", "prod") else tensor(a)
    starts = np.asarray(plain(indices, "reduceat"))
    starts = starts if starts.size else starts.astype(np.int64)
    if not x._a.ndim or starts.ndim != 1 or starts.dtype.kind not in "iu":
        raise TypeError(
            f"`{name}` takes at least one dimension, and a vector of integers that says where "
            f"parts begin, got the shapes {x._a.shape} and {starts.shape} of {starts.dtype}"
        )
    d = one_dim(axis, x._a.ndim, name)
    n = x._a.shape[d]
    if starts.size and (starts.min() < 0 or starts.max() >= n):
        raise IndexError(f"`{name}`: an index is out of range for {n} elements")
    lengths = np.maximum(np.append(starts[1:], n) - starts, 1)
    part = np.repeat(np.arange(starts.size), lengths)
    first = np.cumsum(lengths) - lengths
    places = np.arange(part.size) + np.repeat(starts - first, lengths)
    parts = getitem(x, (*[slice(None)] * d, places))
    start = zeros(*x._a.shape[:d], starts.size, *x._a.shape[d + 1 :], dtype=x.dtype)
    if reduce == "sum":
        return index_add(start, d, wrap(part), parts)
    return index_reduce(start, d, wrap(part), parts, reduce, include_self=False)


@handles(np.cumulative_sum)
def _cumulative_sum(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    d = _one_axis(x, axis, "np.cumulative_sum")
    found = cumsum_(x, d, dtype)
    return _after(zeros, found, d) if include_initial else found


@handles(np.cumulative_prod)
def _cumulative_prod(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    d = _one_axis(x, axis, "np.cumulative_prod")
    found = cumprod_(x, d, dtype)
    return _after(ones, found, d) if include_initial else found


def _after(neutral: Any, x: Tensor, axis: int | None) -> Tensor:
    """The result of a scan after the element that changes nothing."""
    shape = list(x._a.shape)
    shape[axis or 0] = 1
    return cat([neutral(shape, dtype=x.dtype), x], axis or 0)


def _one_axis(x: Any, axis: Any, name: str) -> Any:
    if axis is None and x._a.ndim != 1:
        raise ValueError(f"`{name}` needs an `axis` for the shape {x._a.shape}")
    return axis


def aligned(weights: Tensor, x: Tensor, axis: Any, name: str) -> Tensor:
    """Weights of all elements, or along some axes, so that they broadcast with the elements."""
    w = weights._a.shape
    if w == x._a.shape:
        return weights
    dims = all_dims(axis, x._a.ndim, name)
    if axis is None or w != tuple(x._a.shape[d] for d in dims):
        raise TypeError(
            f"`{name}`: weights of shape {w} do not fit the shape {x._a.shape} along the axis "
            f"{axis}"
        )
    return reshape(weights, tuple(n if d in dims else 1 for d, n in enumerate(x._a.shape)))


@handles(np.average)
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    x = floating(tensor(a))
    if weights is None:
        found, total = mean_(x, axis, keepdims=keepdims), None
    else:
        w = aligned(floating(tensor(weights)), x, axis, "np.average")
        total = sum_(broadcast_to(w, x._a.shape), axis, keepdims=keepdims)
        found = sum_(x * w, axis, keepdims=keepdims) / total
    if not returned:
        return found
    if total is None:
        total = wrap(np.full(found._a.shape, x._a.size / max(found._a.size, 1)))
    return found, total


@handles(np.nansum)
def _nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return sum_(nan_replaced(tensor(a), 0.0), axis, dtype, keepdims)


@handles(np.nanprod)
def _nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    return prod_(nan_replaced(tensor(a), 1.0), axis, dtype, keepdims)


@handles(np.nanmean)
def nanmean_(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """`np.nanmean`."""
    x = averaged(a, dtype, "np.nanmean")
    count = sum_(ew.logical_not(ew.isnan(x)), axis, None, keepdims)
    return sum_(nan_replaced(x, 0.0), axis, None, keepdims) / to(count, dtype=x._a.dtype)


def nan_replaced(x: Tensor, value: float) -> Tensor:
    """Another number in the place of NaN."""
    return ar.where(ew.isnan(x), value, x) if x._a.dtype.kind in "fc" else x
