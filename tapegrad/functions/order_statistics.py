"""What stands at a place in order: medians, modes, the largest few; running extremes.

Values are gathered from where they stand, and so are their gradients.  Of equal elements those come
first in order that stand first.
"""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple, overload

import numpy as np

from tapegrad.dispatch.dispatch import run, run_constant
from tapegrad.dispatch.index_plans import gathered
from tapegrad.functions import shapes
from tapegrad.functions.arguments import all_dims, as_input, one_dim, ordered
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.functions.reductions import ValuesAndIndices, amax, amin
from tapegrad.functions.scans import sort
from tapegrad.ops import order
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor, wrap


class Extremes(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


def _at(x: Tensor, op: Op, params: dict[str, Any], keepdim: bool) -> ValuesAndIndices:
    """The elements at the places that an operation finds along a dimension."""
    if not x._a.ndim:
        return ValuesAndIndices(shapes.clone(x), wrap(np.zeros((), np.int64)))
    d = params["dim"]
    indices = run_constant(op, x, params)
    values = gathered(x, d, indices)
    if not keepdim:
        values, indices = shapes.squeeze(values, d), shapes.squeeze(indices, d)
    return ValuesAndIndices(values, indices)


def _along(input: Tensor, dim: Any, name: str) -> tuple[Tensor, int]:
    """A Tensor that has elements along a dimension."""
    x = ordered(as_input(input, name), name)
    d = one_dim(dim, x._a.ndim, name)
    if x._a.ndim and not x._a.shape[d]:
        raise IndexError(f"`{name}`: no elements to choose from in the shape {x._a.shape}")
    return x, d


@axis_method
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The element that is the k-th in order along a dimension, counted from 1, and its place.

    >>> import tapegrad as tg
    >>> tg.kthvalue(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor(2.)
    """
    x, d = _along(input, dim, "kthvalue")
    k, n = index(k), x._a.shape[d] if x._a.ndim else 1
    if not 1 <= k <= n:
        raise RuntimeError(f"`kthvalue`: k must be between 1 and {n}, got {k}")
    return _at(x, order.argkth, {"dim": d, "k": k - 1}, keepdim)


@axis_method
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesAndIndices:
    """The k largest elements along a dimension in order, or the k smallest, and their places.

    >>> import tapegrad as tg
    >>> tg.topk(tg.tensor([3.0, 1.0, 2.0]), 2).values
    tensor([3., 2.])
    """
    x = ordered(as_input(input, "topk"), "topk")
    d = one_dim(dim, x._a.ndim, "topk")
    k, n = index(k), x._a.shape[d] if x._a.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(
            f"`topk`: k must be between 0 and the {n} elements along dimension {dim}, got {k}"
        )
    return _at(x, order.argtopk, {"dim": d, "k": k, "largest": bool(largest)}, True)


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
@axis_method
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The element in the middle, the lower one of two; along a dimension its place, too.

    Without a dimension, elements that are equal to the median share the gradient.

    >>> import tapegrad as tg
    >>> tg.median(tg.tensor([3.0, 1.0, 2.0, 9.0]))
    tensor(2.)
    """
    return _median(input, dim, keepdim, "median", ignore_nan=False)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
@axis_method
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The `median` of the elements that are not NaN.

    >>> import tapegrad as tg
    >>> tg.nanmedian(tg.tensor([3.0, tg.nan, 2.0]))
    tensor(2.)
    """
    return _median(input, dim, keepdim, "nanmedian", ignore_nan=True)


def _median(input: Tensor, dim: Any, keepdim: bool, name: str, *, ignore_nan: bool) -> Any:
    if dim is not None:
        x, d = _along(input, dim, name)
        return _at(x, order.argmedian, {"dim": d, "ignore_nan": ignore_nan}, keepdim)
    if keepdim:
        raise TypeError(f"`{name}` keeps a dimension only where `dim` says which: pass `dim`")
    x = ordered(as_input(input, name), name)
    params = {"dim": tuple(range(x._a.ndim)), "keepdim": False, "ignore_nan": ignore_nan}
    return run(order.median, (x,), params)


@axis_method
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesAndIndices:
    """The most frequent element along a dimension, the smallest of several, and its last place.

    >>> import tapegrad as tg
    >>> tg.mode(tg.tensor([3.0, 1.0, 3.0]))
    ValuesAndIndices(values=tensor(3.), indices=tensor(2))
    """
    x, d = _along(input, dim, "mode")
    return _at(x, order.argmode, {"dim": d}, keepdim)


@method
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension.

    >>> import tapegrad as tg
    >>> tg.msort(tg.tensor([3.0, 1.0, 2.0]))
    tensor([1., 2., 3.])
    """
    return sort(input, 0).values


def _running(input: Tensor, dim: int, name: str, largest: bool) -> ValuesAndIndices:
    x = ordered(as_input(input, name), name)
    d = one_dim(dim, x._a.ndim, name)
    return _at(x, order.argcummax, {"dim": d, "largest": largest}, True)


@axis_method
def cummax(input: Tensor, dim: int) -> ValuesAndIndices:
    """The largest elements so far along a dimension, and their places.

    >>> import tapegrad as tg
    >>> tg.cummax(tg.tensor([1.0, 3.0, 2.0]), 0).values
    tensor([1., 3., 3.])
    """
    return _running(input, dim, "cummax", True)


@axis_method
def cummin(input: Tensor, dim: int) -> ValuesAndIndices:
    """The smallest elements so far along a dimension, and their places.

    >>> import tapegrad as tg
    >>> tg.cummin(tg.tensor([2.0, 3.0, 1.0]), 0).values
    tensor([2., 2., 1.])
    """
    return _running(input, dim, "cummin", False)


@axis_method
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest elements, of all or along a dimension; ties share the gradient.

    >>> import tapegrad as tg
    >>> tg.aminmax(tg.tensor([2.0, 3.0, 1.0])).max
    tensor(3.)
    """
    x = ordered(as_input(input, "aminmax"), "aminmax")
    dims = all_dims(dim, x._a.ndim, "aminmax")
    if 0 in [x._a.shape[d] for d in dims]:
        raise RuntimeError(f"`aminmax`: no elements to choose from in the shape {x._a.shape}")
    return Extremes(amin(x, dims, keepdim), amax(x, dims, keepdim))
