"""Quantiles: where they stand among elements in order, and what stands there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray, everything
from tapegrad.base.native_arrays import native_array
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as a
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import Dim, all_dims, as_input
from tapegrad.functions.indexing import index_select, take_along_dim
from tapegrad.functions.method_decorators import axis_method
from tapegrad.functions.scans import sort
from tapegrad.functions.shapes import narrow, permute, reshape, to, unsqueeze
from tapegrad.ops.index import gather
from tapegrad.ops.reduce import remaining
from tapegrad.tensor import Tensor, wrap


def _between(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    """The continuous methods of Hyndman and Fan."""
    return lambda n, q: q * (n + (1.0 - alpha - beta)) + (alpha - 1.0)


# The place of the quantile q among n elements in order, counted from 0, by NumPy's names; what lies
# beyond an end is that end.  Both are arrays, or Tensors where they may be followed.
METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda n, q: q * (n - 1),
    "lower": lambda n, q: np.floor(q * (n - 1)),
    "higher": lambda n, q: np.ceil(q * (n - 1)),
    "nearest": lambda n, q: np.rint(q * (n - 1)),
    "midpoint": lambda n, q: (np.floor(q * (n - 1)) + np.ceil(q * (n - 1))) * 0.5,
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0.0, 0.0),
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
    "interpolated_inverted_cdf": _between(0.0, 1.0),
    "inverted_cdf": lambda n, q: np.ceil(q * n) - 1,
    "averaged_inverted_cdf": lambda n, q: (np.ceil(q * n) + np.floor(q * n + 1)) * 0.5 - 1,
    "closest_observation": lambda n, q: np.rint(q * n) - 1,
}
# Those that give an element, and nothing between two.
ELEMENTS = frozenset(("lower", "higher", "nearest", "inverted_cdf", "closest_observation"))
TORCH = ("linear", "lower", "higher", "midpoint", "nearest")


def in_front(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Some dimensions as one, before all others."""
    shape = x._a.shape
    if dims == (0,):
        return x
    rest = tuple(d for d in range(len(shape)) if d not in dims)
    if dims != tuple(range(len(dims))):
        x = permute(x, (*dims, *rest))
    n = math.prod([shape[d] for d in dims])
    return reshape(x, (n, *(shape[d] for d in rest)))


def numbers(row: Tensor) -> Any:
    """How many elements along the first dimension are not NaN; the dimension stays."""
    if type(row) is Tensor:
        return np.count_nonzero(~np.isnan(row._a), axis=0, keepdims=True)
    return to(r.sum(ew.logical_not(ew.isnan(row)), 0, keepdim=True), dtype=np.float64)


def finite(x: Tensor) -> bool:
    """Whether it is known that there is neither a NaN nor an infinity."""
    return not isinstance(x._a, AbstractArray) and bool(np.isfinite(x._a).all())


def order_statistic(ordered: Tensor, places: Any) -> Tensor:
    """Elements at ranks along the sorted first dimension, the same ranks for all columns or not."""
    if not isinstance(places, Tensor):
        if places.size == 1:
            return narrow(ordered, 0, int(places.item()), 1)
        places = wrap(places)
    index = to(places, dtype=np.int64)
    if index._a.size == index._a.shape[0]:
        return index_select(ordered, 0, reshape(index, (index._a.size,)))
    return take_along_dim(ordered, index, 0)


def unless_nan(ordered: Tensor, found: Tensor) -> Tensor:
    """NaN where there is one: it stands last."""
    last = narrow(ordered, 0, ordered._a.shape[0] - 1, 1)
    return a.where(ew.isnan(last), last, found)


def shaped(found: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What was found in its shape; without dimensions a number of its own, and no view."""
    if found._a.shape == shape:
        return found
    return reshape(found, shape) if shape else r.sum(found)


def quantiles(
    x: Tensor, q: Tensor, dims: tuple[int, ...], keepdim: bool, method: str,
    *, skip: bool = False, weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Quantiles over some dimensions, those of `q` in front; `skip` leaves NaN out."""
    row = in_front(x, dims)
    ordered, order = sort(row, 0)
    sure = finite(ordered)
    shape = (q._a.size, *(1,) * (row._a.ndim - 1))
    if weights is not None:
        at = _weighted(in_front(weights, dims), row, order, reshape(q, shape), skip)
        found = order_statistic(ordered, at)
    else:
        count = numbers(row) if skip else float(row._a.shape[0])
        # Places that nothing follows are found without operations.
        still = type(q) is Tensor and not q.requires_grad
        place = METHODS[method](count, q._a.reshape(shape) if still else reshape(q, shape))
        found = _at(ordered, place, count, method not in ELEMENTS, sure)
    if not skip and not sure:
        found = unless_nan(ordered, found)
    shape = (*q._a.shape, *remaining(x._a.shape, dims, keepdim))
    return shaped(found, shape)


def _at(ordered: Tensor, place: Any, count: Any, between: bool, sure: bool) -> Tensor:
    """What stands at a place, brought within the ends."""
    last = np.maximum(count - 1, 0)
    if isinstance(place, Tensor):
        place = a.clamp(a.clamp(place, min=0), max=last)
        below: Any = ew.floor(place.detach())
    else:
        place = np.minimum(np.maximum(place, 0), last)
        below = np.floor(place)
    low = order_statistic(ordered, below)
    if not between:
        return low
    part = place - below
    if isinstance(part, Tensor):
        weight: Any = to(part, dtype=ordered._a.dtype)
    elif not part.any():
        return low
    else:
        weight = part.item() if part.size == 1 else wrap(part.astype(ordered._a.dtype))
    return _within(low, order_statistic(ordered, np.minimum(below + 1, last)), weight, sure)


def _within(low: Tensor, high: Tensor, part: Any, sure: bool) -> Tensor:
    """Between two elements; an infinite one counts wherever it has a part in it."""
    found = a.add(low, ew.mul(a.sub(high, low), part))
    if sure:
        return found
    whole = ew.eq(part, 0) if isinstance(part, Tensor) else wrap(np.asarray(part == 0))
    return a.where(whole, low, a.where(ew.isinf(low), a.add(low, high), found))


def _weighted(weights: Tensor, row: Tensor, order: Tensor, q: Tensor, skip: bool) -> Tensor:
    """Places where the weights that were added up first reach a share of the whole."""
    if skip:
        weights = a.where(ew.isnan(row), 0.0, weights)
    total = r.cumsum(run(gather, (weights.detach(), order), {"dim": 0}), 0, dtype=np.float64)
    share = a.div(total, narrow(total, 0, total._a.shape[0] - 1, 1))
    share = a.where(ew.eq(share, 0), -1.0, to(share, dtype=q._a.dtype))
    before = ew.lt(unsqueeze(share, 0), unsqueeze(q, 1))
    return a.clamp(r.sum(before, 1), max=row._a.shape[0] - 1)


def in_range(q: Tensor) -> bool:
    """Whether all are between 0 and 1."""
    given = everything(q._a)
    return bool(((given >= 0) & (given <= 1)).all())


def _quantile(
    input: Any, q: Any, dim: Dim, keepdim: bool, interpolation: str, name: str, skip: bool
) -> Tensor:
    x = as_input(input, name)
    if x._a.dtype.kind != "f":
        raise RuntimeError(
            f"`{name}` needs a floating-point Tensor, got {x.dtype}: convert it with "
            "`.to(tapegrad.float64)`"
        )
    if interpolation not in TORCH:
        raise RuntimeError(f"`{name}`: interpolation is one of {TORCH}, got {interpolation!r}")
    at = q if isinstance(q, Tensor) else wrap(np.asarray(native_array(q, name), x._a.dtype))
    if at._a.ndim > 1:
        raise RuntimeError(f"`{name}`: q is a number or a vector, got the shape {at._a.shape}")
    if not in_range(at):
        raise RuntimeError(f"`{name}`: q must be between 0 and 1, got a value that is not")
    dims = all_dims(dim, x._a.ndim, name)
    if not x._a.size:
        raise RuntimeError(f"`{name}`: no elements to choose from in the shape {x._a.shape}")
    return quantiles(x, at, dims, bool(keepdim), interpolation, skip=skip)


@axis_method
def quantile(
    input: Tensor,
    q: float | Tensor | Sequence[float],
    dim: Dim = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The value below which the part `q` of the elements lies; for a vector `q` several, in front.

    Between two elements it is found by `interpolation`: "linear", "lower", "higher", "midpoint" or
    "nearest".

    >>> import tapegrad as tg
    >>> tg.quantile(tg.tensor([1.0, 4.0, 2.0]), 0.25)
    tensor(1.5000)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "quantile", False)


@axis_method
def nanquantile(
    input: Tensor,
    q: float | Tensor | Sequence[float],
    dim: Dim = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """`quantile` of the elements that are not NaN.

    >>> import tapegrad as tg
    >>> tg.nanquantile(tg.tensor([1.0, float("nan"), 2.0]), 0.25)
    tensor(1.2500)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "nanquantile", True)
