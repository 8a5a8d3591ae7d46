"""A Tensor with other elements at some places: reduced, chosen by a mask, along a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything, lying
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import reductions, shapes
from tapegrad.functions.arguments import as_input, has_dims, index_array, one_dim
from tapegrad.functions.diagonals import diagonal
from tapegrad.functions.indexing import _scatter_parts, getitem, scatter_add
from tapegrad.functions.inplace_methods import copy_, setitem
from tapegrad.functions.masking import mask_of
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.functions.strided_views import _window
from tapegrad.ops import index as i
from tapegrad.ops import scatter_reduce as sr
from tapegrad.ops import shape as s
from tapegrad.ops.strided import strided_map
from tapegrad.tape.versions import root
from tapegrad.tensor import Tensor, wrap


def _reduced(x: Tensor, d: int, k: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """Elements of a source, each brought to its place and reduced with what stands there."""
    if x._a.dtype.kind == "c" and reduce in ("amax", "amin"):
        raise NotImplementedError(f"{reduce!r} of complex numbers, which have no order: {x.dtype}")
    if not x._a.ndim:
        x, k, src = (shapes.reshape(t, (-1,)) for t in (x, k, src))
        return shapes.reshape(_reduced(x, 0, k, src, reduce, include_self), ())
    if src._a.shape != k._a.shape:
        src = run(s.getitem, (src,), {"index": tuple(slice(n) for n in k._a.shape)})
    along = {"dim": d}
    if not include_self:
        x = run(i.scatter, (x, k, reductions.neutral(reduce, x._a.dtype)), along)
    found: Tensor = run(sr.REDUCING[reduce], (x, k, src), along)
    if reduce != "mean":
        return found
    ones = np.ones(k._a.shape, x._a.dtype)
    start = wrap(np.ones(x._a.shape, x._a.dtype))
    if not include_self:
        start = run(i.scatter, (start, k, reductions.neutral("sum", x._a.dtype)), along)
    count = run(i.scatter_add, (start, k, wrap(ones)), along)
    return ar.div(found, count, rounding_mode=None if x._a.dtype.kind in "fc" else "floor")


@axis_method
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The elements of `src` at the places that `index` names along `dim`, those at one reduced.

    `reduce` is "sum", "prod", "mean", "amax" or "amin"; `include_self` says whether what stands
    there before counts, too. Extremes share the gradient among ties.

    >>> import tapegrad as tg
    >>> tg.scatter_reduce(tg.zeros(2), 0, tg.tensor([0, 0]), tg.tensor([1.0, 2.0]), "amax")
    tensor([2., 0.])
    """
    if reduce not in sr.REDUCING:
        raise RuntimeError(
            f"`scatter_reduce`: reduce is one of {', '.join(sr.REDUCING)}, got {reduce!r}"
        )
    source = as_input(src, "scatter_reduce")
    if include_self and reduce == "sum":
        return scatter_add(input, dim, index, source)
    x, d, k, given = _scatter_parts(input, dim, index, source, "scatter_reduce")
    return _reduced(x, d, k, given, reduce, include_self)


@method
def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter_reduce` in place."""
    before = shapes.clone(self)  # which the gradient reads
    return copy_(self, scatter_reduce(before, dim, index, src, reduce, include_self=include_self))


@axis_method
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """The slices of `source` at the places of `index` along `dim`, those at one reduced.

    `reduce` is "prod", "mean", "amax" or "amin"; `include_self` says whether what stands there
    before counts, too.

    >>> import tapegrad as tg
    >>> tg.index_reduce(tg.ones(2), 0, tg.tensor([0, 0]), tg.tensor([4.0, 3.0]), "prod")
    tensor([12.,  1.])
    """
    name = "index_reduce"
    if reduce not in sr.REDUCING or reduce == "sum":
        raise RuntimeError(f"`{name}`: reduce is 'prod', 'mean', 'amax' or 'amin', got {reduce!r}")
    x, k, given = as_input(input, name), index_array(index, name), as_input(source, name)
    if k._a.ndim > 1:
        raise IndexError(f"`{name}`: the index must be a vector, got the shape {k._a.shape}")
    d = one_dim(dim, x._a.ndim, name)
    expected = (*x._a.shape[:d], k._a.size, *x._a.shape[d + 1 :]) if x._a.ndim else ()
    if given._a.shape != expected or given._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`{name}`: the source must be a Tensor of {x.dtype} and of shape {expected}, got "
            f"{given.dtype} of shape {given._a.shape}"
        )
    size = x._a.shape[d] if x._a.ndim else 1
    places = everything(k._a)
    if places.size and (places.min() < 0 or places.max() >= size):
        raise IndexError(f"`{name}`: an index is out of range for a dimension of size {size}")
    along = [1] * max(x._a.ndim, 1)
    along[d] = k._a.size
    every = shapes.expand(shapes.reshape(k, along), given._a.shape or (1,))
    return _reduced(x, d, every, given, reduce, include_self)


@method
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Tensor:  # fmt: skip
    """`index_reduce` in place."""
    before = shapes.clone(self)  # which the gradient reads
    return copy_(self, index_reduce(before, dim, index, source, reduce, include_self=include_self))


@method
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of `source`, one after the other, where the mask holds.

    >>> import tapegrad as tg
    >>> mask = tg.tensor([True, False, True])
    >>> tg.masked_scatter(tg.zeros(3), mask, tg.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    x, m = as_input(input, "masked_scatter"), mask_of(mask, "masked_scatter")
    given = as_input(source, "masked_scatter")
    if given._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`masked_scatter`: source and Tensor must have one dtype, got {given.dtype} and "
            f"{x.dtype}"
        )
    try:
        shape = np.broadcast_shapes(x._a.shape, m._a.shape)
    except ValueError:
        raise RuntimeError(
            f"`masked_scatter`: a mask of shape {m._a.shape} and a Tensor of shape {x._a.shape} do "
            "not broadcast"
        ) from None
    holds = shapes.ravel(shapes.expand(m, shape))
    before = reductions.cumsum(holds, 0)  # how many hold so far
    most = everything(before._a)
    n = given._a.size
    if most.size and most.max() > n:
        raise RuntimeError(
            f"`masked_scatter`: the mask holds at {most.max()} places and the source has but {n} "
            "elements"
        )
    x = shapes.expand(x, shape)
    if not n:
        return shapes.clone(x)
    places = ar.clamp(ar.sub(before, 1), 0, n - 1)
    taken = getitem(shapes.reshape(given, (n,)), (places,))
    return ar.where(shapes.reshape(holds, shape), shapes.reshape(taken, shape), x)


@method
def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`masked_scatter` in place."""
    return copy_(self, masked_scatter(self, mask, source))


# -- along a view ------------------------------------------------------------------------------


def _fitting(src: Tensor, x: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """A source that replaces a part of a Tensor, in its type."""
    given = as_input(src, name)
    if given._a.shape != shape:
        raise RuntimeError(
            f"`{name}`: the source must have the shape {shape} of the part that it replaces, got "
            f"{given._a.shape}"
        )
    return shapes.to(given, dtype=x._a.dtype)


def _assigned(x: Tensor, src: Tensor, index: tuple[Any, ...], name: str) -> Tensor:
    value = _fitting(src, x, np.empty(x._a.shape, bool)[index].shape, name)
    return run(i.assign, (x, value), {"index": index})


@method
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Tensor:  # fmt: skip
    """A copy with another slice along a dimension.

    >>> import tapegrad as tg
    >>> tg.slice_scatter(tg.zeros(4), tg.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    x = as_input(input, "slice_scatter")
    if not x._a.ndim:
        raise IndexError("`slice_scatter` cannot be applied to a 0-d Tensor")
    if step < 1:
        raise RuntimeError(f"`slice_scatter`: the step must be positive, got {step}")
    d = one_dim(dim, x._a.ndim, "slice_scatter")
    return _assigned(x, src, (*[slice(None)] * d, slice(start, end, step)), "slice_scatter")


@method
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy with another slice at one place along a dimension.

    >>> import tapegrad as tg
    >>> tg.select_scatter(tg.zeros(2, 2), tg.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    x = as_input(input, "select_scatter")
    if not x._a.ndim:
        raise IndexError("`select_scatter` cannot be applied to a 0-d Tensor")
    d, place = one_dim(dim, x._a.ndim, "select_scatter"), int(index)
    n = x._a.shape[d]
    if not -n <= place < n:
        raise IndexError(f"`select_scatter`: index {place} is out of range for {x._a.shape}")
    return _assigned(x, src, (*[slice(None)] * d, place % n, ...), "select_scatter")


@method
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy with another diagonal of two dimensions.

    >>> import tapegrad as tg
    >>> tg.diagonal_scatter(tg.zeros(2, 2), tg.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    whole = shapes.clone(as_input(input, "diagonal_scatter"))
    view = diagonal(whole, offset, dim1, dim2)
    copy_(view, _fitting(src, whole, view._a.shape, "diagonal_scatter"))
    return whole


@method
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:  # fmt: skip
    """A copy with other elements where a view of any sizes and strides shows them.

    What of the storage the Tensor does not show is left out.

    >>> import tapegrad as tg
    >>> tg.as_strided_scatter(tg.zeros(4), tg.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    name = "as_strided_scatter"
    x = as_input(input, name)
    count = root(lying(x._a)).size
    params = _window(x, size, stride, storage_offset, x.storage_offset(), count, name)
    given = _fitting(src, x, params["size"], name)
    from_place = strided_map(**params).reshape(-1)
    shown = from_place >= 0
    values = getitem(shapes.ravel(given), (np.flatnonzero(shown),))
    return put(x, wrap(from_place[shown]), values)


# -- places in the flattened Tensor ------------------------------------------------------------


@method
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with other elements at places of the flattened Tensor, or with these added to it.

    >>> import tapegrad as tg
    >>> tg.put(tg.zeros(2, 2), tg.tensor([0, 3]), tg.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    x, k, given = as_input(input, "put"), index_array(index, "put"), as_input(source, "put")
    if given._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`put`: source and Tensor must have one dtype, got {given.dtype} and {x.dtype}"
        )
    if given._a.size != k._a.size:
        raise IndexError(
            f"`put`: source and index need as many elements, got {given._a.size} and {k._a.size}"
        )
    n, places = x._a.size, everything(k._a)
    if places.size and (places.min() < -n or places.max() >= n):
        raise IndexError(f"`put`: an index is out of range for {n} elements")
    parts = shapes.reshape(x, (n,)), shapes.reshape(given, (-1,)), shapes.reshape(k, (-1,))
    if not k._a.size:
        return shapes.clone(x)
    found = run(i.index_put, parts, {"plan": (i.HOLE,), "accumulate": bool(accumulate)})
    return shapes.reshape(found, x._a.shape)


@method
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`put` in place."""
    return copy_(self, put(self, index, source, accumulate))


def diagonal_places(shape: tuple[int, ...], wrap: bool) -> tuple[np.ndarray, ...]:
    """The index of the diagonal of all dimensions; in tall matrices it may begin again below."""
    step = 1 + int(np.cumprod(shape[:0:-1]).sum())
    end = None if wrap or len(shape) > 2 else shape[1] ** 2
    return np.unravel_index(np.arange(int(np.prod(shape)))[:end:step], shape)


@method
def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write one number on the diagonal, which goes on below a tall matrix if `wrap` says so.

    >>> import tapegrad as tg
    >>> tg.zeros(2, 2).fill_diagonal_(5.0)
    tensor([[5., 0.],
            [0., 5.]])
    """
    shape = has_dims(as_input(self, "fill_diagonal_"), "fill_diagonal_")._a.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise RuntimeError(
            f"`fill_diagonal_` takes a matrix, or more dimensions of one size, got {shape}"
        )
    if self._a.size:
        setitem(self, diagonal_places(shape, wrap), fill_value)
    return self
