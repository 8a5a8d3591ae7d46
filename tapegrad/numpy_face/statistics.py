"""Quantiles, medians, covariances, and statistics of what is not NaN, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import quantiles as qs
from tapegrad.functions import reductions as r
from tapegrad.functions import statistics as st
from tapegrad.functions.arguments import all_dims
from tapegrad.functions.joining import cat
from tapegrad.functions.scans import sort
from tapegrad.functions.shapes import broadcast_to, matrix_transpose, narrow, reshape, to
from tapegrad.numpy_face.common import floating, handles, nothing, tensor, title
from tapegrad.numpy_face.joining import at_least
from tapegrad.numpy_face.reductions import (
    aligned,
    averaged,
    cumprod_,
    cumsum_,
    max_,
    min_,
    nan_replaced,
    nanmean_,
    some,
    spread_of,
    sum_,
)
from tapegrad.ops.reduce import remaining
from tapegrad.tensor import Tensor, tensor_of


def _groups(a: Any, axis: Any, name: str) -> tuple[Tensor, tuple[int, ...]]:
    """A Tensor and the dimensions to go over; to NumPy's empty tuple each element is a group."""
    x = floating(tensor(a))
    if nothing(axis):
        return reshape(x, (1, *x._a.shape)), (0,)
    return x, all_dims(axis, x._a.ndim, name)


# -- quantiles -----------------------------------------------------------------------------


def _quantiles(
    a: Any, q: Any, axis: Any, method: str, keepdims: Any, weights: Any, name: str, whole: float
) -> Tensor:
    if method not in qs.METHODS:
        raise ValueError(f"`{name}`: method is one of {list(qs.METHODS)}, got {method!r}")
    x, dims = _groups(a, axis, name)
    some(x, dims, name)
    kind = x._a.dtype if type(q) in (int, float) else None
    at = tensor_of(q if kind is None else kind.type(q), name)
    at = floating(at) if whole == 1.0 else ar.div(at, whole)
    if not qs.in_range(at):
        raise ValueError(f"`{name}`: q must be between 0 and {whole:g}, got a value that is not")
    w = None if weights is None else _weights(weights, x, axis, method, name)
    keep = bool(keepdims) and not nothing(axis)
    return qs.quantiles(x, at, dims, keep, method, skip=name.startswith("np.nan"), weights=w)


def _weights(weights: Any, x: Tensor, axis: Any, method: str, name: str) -> Tensor:
    if method != "inverted_cdf":
        raise ValueError(f"`{name}`: weights need the method 'inverted_cdf', got {method!r}")
    w = floating(tensor(weights))
    given = everything(w._a)
    if not (given >= 0).all() or not given.any():
        raise ValueError(f"`{name}`: weights must not be negative, NaN or all zero")
    return broadcast_to(aligned(w, x, axis, name), x._a.shape)


def _among(func: Any, whole: float) -> None:
    """A function of NumPy's whose q goes from 0 to a number that stands for all elements."""
    name = title(func)

    def handler(
        a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False,
        *, weights: Any = None,
    ) -> Tensor:  # fmt: skip
        return _quantiles(a, q, axis, method, keepdims, weights, name, whole)

    handles(func)(handler)


_among(np.quantile, 1.0)
_among(np.nanquantile, 1.0)
_among(np.percentile, 100.0)
_among(np.nanpercentile, 100.0)


@handles(np.median)
def median_(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """`np.median`."""
    x, dims = _groups(a, axis, "np.median")
    some(x, dims, "np.median")
    ordered = sort(qs.in_front(x, dims), 0).values
    n = ordered._a.shape[0]
    middle = r.mean(narrow(ordered, 0, (n - 1) // 2, 2 - n % 2), 0, keepdim=True)
    found = middle if qs.finite(ordered) else qs.unless_nan(ordered, middle)
    return qs.shaped(found, remaining(x._a.shape, dims, bool(keepdims) and not nothing(axis)))


@handles(np.nanmedian)
def _nanmedian(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    x, dims = _groups(a, axis, "np.nanmedian")
    some(x, dims, "np.nanmedian")
    row = qs.in_front(x, dims)
    ordered, count = sort(row, 0).values, qs.numbers(row)
    low = np.maximum(np.floor((count - 1) / 2), 0)
    high = np.minimum(np.floor(count / 2), row._a.shape[0] - 1)
    found = (qs.order_statistic(ordered, low) + qs.order_statistic(ordered, high)) / 2
    return qs.shaped(found, remaining(x._a.shape, dims, bool(keepdims) and not nothing(axis)))


# -- covariances ---------------------------------------------------------------------------


def _variables(m: Any, y: Any, rowvar: bool, name: str) -> Tensor:
    """The variables of both, as rows."""
    parts = [floating(tensor(part)) for part in (m, y) if part is not None]
    for x in parts:
        if x._a.ndim > 2:
            raise ValueError(f"`{name}` takes vectors and matrices, got the shape {x._a.shape}")
    rows = [at_least(x, 2) for x in parts]
    if not rowvar:
        if parts[0]._a.ndim != 1:
            rows[0] = matrix_transpose(rows[0])
        if y is not None and rows[1]._a.shape[0] != 1:
            rows[1] = matrix_transpose(rows[1])
    return rows[0] if y is None else cat(rows, 0)


@handles(np.cov)
def _cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Tensor:  # fmt: skip
    x = _variables(m, y, rowvar, "np.cov")
    x = x if dtype is None else to(x, dtype=dtype)
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"`np.cov`: ddof is an integer, got {ddof}")
    correction = int(not bias) if ddof is None else int(ddof)
    f = None if fweights is None else _whole(fweights)
    w = None if aweights is None else floating(tensor(aweights))
    for name, given in (("fweights", f), ("aweights", w)):
        if given is not None and (everything(given._a) < 0).any():
            raise ValueError(f"`np.cov`: {name} must not be negative")
    return st.cov(x, correction=correction, fweights=f, aweights=w)


def _whole(fweights: Any) -> Tensor:
    f = tensor(fweights)
    if f._a.dtype.kind == "f":
        if (everything(f._a) % 1 != 0).any():
            raise TypeError("`np.cov`: fweights are integers, got fractions")
        f = to(f, dtype=np.int64)
    return f


@handles(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    rows = _variables(x, y, rowvar, "np.corrcoef")
    return st.correlations(st.cov(rows if dtype is None else to(rows, dtype=dtype)))


# -- what is not NaN -----------------------------------------------------------------------


def _extreme(a: Any, axis: Any, keepdims: bool, whole: Any, least: float) -> Tensor:
    """The extreme element of those that are not NaN; NaN where there is no other."""
    x = tensor(a)
    if x._a.dtype.kind != "f":
        return tensor(whole(x, axis, keepdims))
    absent = ew.isnan(x)
    found = whole(nan_replaced(x, least), axis, keepdims)
    alone = absent if nothing(axis) else r.all(absent, axis, bool(keepdims))
    return ar.where(alone, np.nan, found)


handles(np.nanmax)(lambda a, axis=None, keepdims=False: _extreme(a, axis, keepdims, max_, -np.inf))
handles(np.nanmin)(lambda a, axis=None, keepdims=False: _extreme(a, axis, keepdims, min_, np.inf))


def _spread(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, root: bool) -> Tensor:
    x = averaged(a, dtype, "np.nanstd" if root else "np.nanvar")
    if nothing(axis):
        x, axis, keepdims = reshape(x, (1, *x._a.shape)), 0, False
    off = nan_replaced(x - nanmean_(x, axis, keepdims=True), 0.0)
    count = sum_(ew.logical_not(ew.isnan(x)), axis, None, keepdims)
    free = to(count, dtype=x._a.real.dtype) - ddof
    free = ar.where(ew.gt(free, 0), free, np.nan)
    return spread_of(off, free, axis, keepdims, root)


@handles(np.nanvar)
def _nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False,
    *, correction: Any = None,
) -> Tensor:  # fmt: skip
    return _spread(a, axis, dtype, ddof if correction is None else correction, keepdims, False)


@handles(np.nanstd)
def _nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False,
    *, correction: Any = None,
) -> Tensor:  # fmt: skip
    return _spread(a, axis, dtype, ddof if correction is None else correction, keepdims, True)


handles(np.nancumsum)(
    lambda a, axis=None, dtype=None: cumsum_(nan_replaced(tensor(a), 0.0), axis, dtype)
)
handles(np.nancumprod)(
    lambda a, axis=None, dtype=None: cumprod_(nan_replaced(tensor(a), 1.0), axis, dtype)
)
