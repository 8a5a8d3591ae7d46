"""Shapes and views: functions that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.base.devices import check_device
from tapegrad.base.devices import device as Device
from tapegrad.base.dtypes import dtype as DType
from tapegrad.base.dtypes import to_numpy
from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions.arguments import (
    Sizes,
    TypeLike,
    as_input,
    dims_of,
    has_dims,
    one_dim,
    whole_number,
    whole_shape,
)
from tapegrad.functions.method_decorators import axis_view_method, method
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor


@method
@view_of
def reshape(input: Any, *sizes: Any, shape: Any = None) -> Tensor | ViewRequest:
    """The same elements in another shape; a view where that is possible.

    >>> import tapegrad as tg
    >>> tg.reshape(tg.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    x = as_input(input, "reshape")
    given = sizes if shape is None else (shape,)
    found = _reshaped(x, given)
    if found is not None:
        return found
    return run(s.reshape, (x,), {"shape": whole_shape(given, x._a.shape, "reshape")})


def _reshaped(x: Tensor, size: tuple[Any, ...]) -> ViewRequest | None:
    """The view of an array in C order in another shape, if NumPy knows it by that name."""
    a = x._a
    if not a.flags.c_contiguous:
        return None
    new: Any = size
    if len(size) == 1 and not isinstance(size[0], int):
        new = tuple(size[0]) if isinstance(size[0], list) else size[0]
    try:
        r = a.reshape(new)
        if r.shape != new and -1 not in new:
            return None
    except (TypeError, ValueError):
        return None
    return ViewRequest(s.reshape, x, {"shape": r.shape}, r, r.shape)


def shaped(x: Tensor, new: tuple[int, ...]) -> Tensor | ViewRequest:
    """`reshape` to a shape that is known to be right."""
    if x._a.flags.c_contiguous:
        return ViewRequest(s.reshape, x, {"shape": new}, x._a.reshape(new), new)
    return run(s.reshape, (x,), {"shape": new})


@method
@view_of
def view(
    input: Tensor, *shape: Sizes, size: Sequence[SupportsIndex] | None = None
) -> Tensor | ViewRequest:
    """The same memory in another shape.

    >>> import tapegrad as tg
    >>> tg.arange(4).view(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    x = as_input(input, "view")
    shape = shape if size is None else (size,)
    found = _reshaped(x, shape)
    if found is not None:
        return found
    if len(shape) == 1 and isinstance(shape[0], DType):
        raise NotImplementedError("`view` to another dtype is not supported: use `.to(dtype)`")
    new = whole_shape(shape, x._a.shape, "view")
    out = run(s.reshape, (x,), {"shape": new})
    memory = everything(x._a)
    if memory.size and not np.may_share_memory(everything(out._a), memory):
        raise RuntimeError(
            f"`view`: a Tensor of shape {x._a.shape} with these strides cannot be seen as {new} "
            "without a copy; use `reshape`"
        )
    return out


@method
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.arange(4).view_as(tg.zeros(2, 2)).shape
    tapegrad.Size([2, 2])
    """
    return view(input, other._a.shape)


@method
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.arange(4).reshape_as(tg.zeros(2, 2)).shape
    tapegrad.Size([2, 2])
    """
    return reshape(input, other._a.shape)


@method
@view_of
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor | ViewRequest:
    """Several dimensions in one.

    >>> import tapegrad as tg
    >>> tg.flatten(tg.zeros(2, 3)).shape
    tapegrad.Size([6])
    """
    x = as_input(input, "flatten")
    shape = x._a.shape
    n = len(shape)
    if not n:
        return shaped(x, (1,))
    if n > 1 and start_dim == 0 and end_dim == -1:
        return shaped(x, (x._a.size,))
    first, last = one_dim(start_dim, n, "flatten"), one_dim(end_dim, n, "flatten")
    if first > last:
        raise RuntimeError(f"`flatten`: start_dim {start_dim} comes after end_dim {end_dim}")
    if first == last:
        return x
    middle = math.prod(shape[first : last + 1])
    return shaped(x, (*shape[:first], middle, *shape[last + 1 :]))


@method
def ravel(input: Any) -> Tensor:
    """All elements in one dimension, side by side: a view if they lie so.

    >>> import tapegrad as tg
    >>> tg.ravel(tg.zeros(2, 3)).shape
    tapegrad.Size([6])
    """
    return contiguous(reshape(input, (as_input(input, "ravel")._a.size,)))


@axis_view_method
@view_of
def unflatten(input: Tensor, dim: int, sizes: Sequence[SupportsIndex]) -> Tensor | ViewRequest:
    """One dimension as several.

    >>> import tapegrad as tg
    >>> tg.unflatten(tg.zeros(6), 0, (2, 3)).shape
    tapegrad.Size([2, 3])
    """
    x = as_input(input, "unflatten")
    shape = x._a.shape
    d = one_dim(dim, len(shape), "unflatten")
    before, after = shape[:d], shape[d + 1 :]
    given = tuple(sizes)
    found = _reshaped(x, ((*before, *given, *after),)) if x._a.size else None
    if found is not None:
        return found
    part = whole_shape((given,), shape[d : d + 1], "unflatten")
    return shaped(x, (*before, *part, *after))


@method
def contiguous(input: Tensor) -> Tensor:
    """The Tensor itself when it lies in C order, else a copy that does.

    >>> import tapegrad as tg
    >>> tg.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    x = as_input(input, "contiguous")
    if x.is_contiguous():
        return x
    found = run_planned(s.contiguous, x, None, None)
    return run_and_plan(s.contiguous, (x,), {}) if found is None else found


@method
def clone(input: Tensor) -> Tensor:
    """A copy; gradients flow through it.

    >>> import tapegrad as tg
    >>> tg.clone(tg.tensor(1.0))
    tensor(1.)
    """
    return run_axis(s.clone, _whole, input, None)


def without_front(x: Tensor, ndim: int) -> Tensor:
    """A Tensor without the dimensions of one element that it has in front of its last `ndim`."""
    shape = x._a.shape
    extra = len(shape) - ndim
    if extra <= 0 or any(n != 1 for n in shape[:extra]):
        return x
    return run(s.reshape, (x,), {"shape": shape[extra:]})


def _whole(op: Op, input: Any, *_: Any) -> tuple[Tensor, dict[str, Any]]:
    return as_input(input, op.name), {}


@method
@view_of
def permute(
    input: Tensor, *order: Sizes, dims: Sequence[SupportsIndex] | None = None
) -> ViewRequest:
    """The dimensions in another order; a view.

    >>> import tapegrad as tg
    >>> tg.permute(tg.zeros(2, 3, 4), (2, 0, 1)).shape
    tapegrad.Size([4, 2, 3])
    """
    x = as_input(input, "permute")
    n = x._a.ndim
    given = dims_of(order if dims is None else (dims,))
    turned = tuple([one_dim(d, n, "permute") for d in given])
    if len(turned) != n or len(set(turned)) != n:
        raise RuntimeError(f"`permute` needs each of the {n} dimensions once, got {given}")
    return _permuted(x, turned)


def _permuted(x: Tensor, order: tuple[int, ...]) -> ViewRequest:
    return ViewRequest(s.permute, x, {"dims": order}, x._a.transpose(order), order)


@method
@view_of
def transpose(input: Tensor, dim0: int, dim1: int) -> ViewRequest:
    """Two dimensions swapped; a view.

    >>> import tapegrad as tg
    >>> tg.transpose(tg.zeros(2, 3), 0, 1).shape
    tapegrad.Size([3, 2])
    """
    return swapped(input, dim0, dim1, "transpose")


def swapped(input: Any, dim0: int, dim1: int, name: str) -> ViewRequest:
    """The view with two dimensions swapped."""
    x = as_input(input, name)
    n = x._a.ndim
    a, b = one_dim(dim0, n, name), one_dim(dim1, n, name)
    order = list(range(n))
    if order:
        order[a], order[b] = order[b], order[a]
    return _permuted(x, tuple(order))


swapdims = method(transpose, "swapdims")


@method
@view_of
def swapaxes(input: Tensor, axis0: int, axis1: int) -> ViewRequest:
    """`transpose`, by the names of its arguments that go with this one.

    >>> import tapegrad as tg
    >>> tg.swapaxes(tg.zeros(2, 3), axis0=0, axis1=1).shape
    tapegrad.Size([3, 2])
    """
    return swapped(input, axis0, axis1, "swapaxes")


@method
@view_of
def t(input: Tensor) -> ViewRequest:
    """A matrix transposed; a vector as it is.

    >>> import tapegrad as tg
    >>> tg.t(tg.zeros(2, 3)).shape
    tapegrad.Size([3, 2])
    """
    return turned(as_input(input, "t"), "t")


def turned(x: Tensor, name: str) -> ViewRequest:
    """The view of a matrix, or of less, that is its transpose."""
    n = x._a.ndim
    if n > 2:
        raise RuntimeError(
            f"`{name}` takes at most 2 dimensions, got the shape {x._a.shape}: use `transpose`"
        )
    return _permuted(x, tuple(range(n))[::-1])


@view_of
def _reversed(input: Tensor) -> ViewRequest:
    """All dimensions in reverse order; a view."""
    return _permuted(input, tuple(range(input._a.ndim))[::-1])


@view_of
def matrix_transpose(input: Any) -> ViewRequest:
    """The last two dimensions swapped; a view.

    >>> import tapegrad as tg
    >>> tg.zeros(5, 2, 3).mT.shape
    tapegrad.Size([5, 3, 2])
    """
    x = as_input(input, "mT")
    n = x._a.ndim
    if n < 2:
        raise RuntimeError(f"`mT` needs at least 2 dimensions, got the shape {x._a.shape}")
    return _permuted(x, (*range(n - 2), n - 1, n - 2))


@method
@view_of
def movedim(
    input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]
) -> ViewRequest:
    """Dimensions moved to other places; a view.

    >>> import tapegrad as tg
    >>> tg.movedim(tg.zeros(2, 3, 4), 0, -1).shape
    tapegrad.Size([3, 4, 2])
    """
    x = as_input(input, "movedim")
    n = x._a.ndim
    if n and isinstance(source, int) and isinstance(destination, int):
        order = list(range(n))
        order.insert(one_dim(destination, n, "movedim"), order.pop(one_dim(source, n, "movedim")))
        return _permuted(x, tuple(order))
    given: Any = source, destination
    if isinstance(source, int) and isinstance(destination, int):
        given = (source,), (destination,)
    if not all(isinstance(dims, (tuple, list)) for dims in given):
        raise TypeError(f"`movedim` takes two ints or two tuples, got {source} and {destination}")
    here, there = ([one_dim(d, n, "movedim") for d in dims] for dims in given)
    if not n:  # a 0-d Tensor counts as having one dimension
        return _permuted(x, ())
    if len(here) != len(there) or len(set(here)) != len(here) or len(set(there)) != len(there):
        raise RuntimeError(f"`movedim` cannot move {source} to {destination}")
    order = [d for d in range(n) if d not in here]
    for d, at in sorted(zip(there, here, strict=True)):
        order.insert(d, at)
    return _permuted(x, tuple(order))


moveaxis = method(movedim, "moveaxis")


@axis_view_method
@view_of
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> ViewRequest:
    """Without dimensions of size 1; a view.

    >>> import tapegrad as tg
    >>> tg.squeeze(tg.zeros(1, 2, 1)).shape
    tapegrad.Size([2])
    """
    return squeezed(as_input(input, "squeeze"), dim, "squeeze")


def squeezed(x: Tensor, dim: Any, name: str) -> ViewRequest:
    """The view without dimensions of size 1."""
    shape = x._a.shape
    n = len(shape)
    dims: tuple[int, ...]
    if dim is None:
        dims = tuple([d for d in range(n) if shape[d] == 1])
    elif isinstance(dim, int):
        d = one_dim(dim, n, name)
        dims = (d,) if n and shape[d] == 1 else ()
    else:
        chosen = [one_dim(d, n, name) for d in dim]
        if len(set(chosen)) < len(chosen):
            raise RuntimeError(f"`{name}`: a dimension appears twice in {tuple(dim)}")
        dims = tuple(sorted([d for d in chosen if n and shape[d] == 1]))
    return ViewRequest(s.squeeze, x, {"dims": dims}, x._a.squeeze(dims), dims)


@axis_view_method
@view_of
def unsqueeze(input: Tensor, dim: int) -> ViewRequest:
    """With one more dimension, of size 1; a view.

    >>> import tapegrad as tg
    >>> tg.unsqueeze(tg.zeros(2), 0).shape
    tapegrad.Size([1, 2])
    """
    return unsqueezed(as_input(input, "unsqueeze"), dim, "unsqueeze")


def unsqueezed(x: Tensor, dim: int, name: str) -> ViewRequest:
    """The view with one more dimension of size 1."""
    a = x._a
    d = one_dim(dim, a.ndim + 1, name)
    r = a.reshape((*a.shape[:d], 1, *a.shape[d:]))
    return ViewRequest(s.unsqueeze, x, {"dims": (d,)}, r, d)


@method
@view_of
def expand(
    input: Tensor, *sizes: Sizes, size: Sequence[SupportsIndex] | None = None
) -> ViewRequest:
    """Dimensions of size 1 repeated without a copy; a view.

    >>> import tapegrad as tg
    >>> tg.tensor([[1.0], [2.0]]).expand(2, 2)
    tensor([[1., 1.],
            [2., 2.]])
    """
    x = as_input(input, "expand")
    a = x._a
    given = dims_of(sizes if size is None else (size,))
    key = a.shape, a.strides, given
    found = _expansions.get(key)
    if found is None:
        found = _expansion(*key)
        if all(isinstance(n, int) for n in given):
            if len(_expansions) > 4096:
                _expansions.clear()
            _expansions[key] = found
    params, steps = found
    shape = params["shape"]
    return ViewRequest(s.expand, x, params, s.strided(a, shape, steps), shape)


# By shape and strides of the operand and the wanted sizes: parameters, and the view's strides.
_expansions: dict[Any, tuple[dict[str, Any], tuple[int, ...]]] = {}


def _expansion(
    shape: tuple[int, ...], strides: tuple[int, ...], size: tuple[Any, ...]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    given = [int(n) for n in size]
    extra = len(given) - len(shape)
    if extra < 0:
        raise RuntimeError(f"`expand`: {tuple(given)} has fewer dimensions than {shape}")
    full = [n if n != -1 or i < extra else shape[i - extra] for i, n in enumerate(given)]
    for i, n in enumerate(full):
        if n < 0 or (i >= extra and shape[i - extra] not in (1, n)):
            raise RuntimeError(
                f"`expand`: a Tensor of shape {shape} cannot be expanded to {tuple(given)}: "
                f"dimension {i} does not match"
            )
    return {"shape": tuple(full)}, s.expanded_strides(shape, strides, tuple(full))


@method
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of another Tensor.

    >>> import tapegrad as tg
    >>> tg.tensor([1.0]).expand_as(tg.zeros(2))
    tensor([1., 1.])
    """
    return expand(input, other._a.shape)


broadcast_to = method(expand, "broadcast_to")


@axis_view_method
@view_of
def narrow(input: Tensor, dim: int, start: SupportsIndex, length: int) -> ViewRequest:
    """`length` neighbours along one dimension; a view.

    >>> import tapegrad as tg
    >>> tg.narrow(tg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    x = has_dims(as_input(input, "narrow"), "narrow")
    d = one_dim(dim, x._a.ndim, "narrow")
    n, first = x._a.shape[d], whole_number(start, "narrow", "start")
    if not -n <= first <= n:
        raise IndexError(f"`narrow`: start {first} is out of range for size {n}")
    first = first + n if first < 0 else first
    if length < 0 or first + length > n:
        raise RuntimeError(f"`narrow`: start {first} and length {length} exceed the size {n}")
    index = (slice(None),) * d + (slice(first, first + length),)
    return ViewRequest(s.getitem, x, {"index": index}, x._a[index], ("narrow", d, first, length))


@axis_view_method
@view_of
def select(input: Tensor, dim: int, index: SupportsIndex) -> ViewRequest:
    """What stands at one place of a dimension; a view.

    >>> import tapegrad as tg
    >>> tg.select(tg.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    x = as_input(input, "select")
    if not x._a.ndim:
        raise IndexError("`select` cannot be applied to a 0-d Tensor")
    d, i = one_dim(dim, x._a.ndim, "select"), whole_number(index, "select", "index")
    n = x._a.shape[d]
    if not -n <= i < n:
        raise IndexError(f"`select`: index {i} is out of range for dimension {dim} of size {n}")
    i %= n
    place = (slice(None),) * d + (i, ...)
    return ViewRequest(s.getitem, x, {"index": place}, x._a[place], ("select", d, i))


@method
def flip(input: Tensor, *given: Sizes, dims: int | Sequence[SupportsIndex] | None = None) -> Tensor:
    """The elements in reverse order along dimensions; a copy.

    >>> import tapegrad as tg
    >>> tg.flip(tg.arange(3), (0,))
    tensor([2, 1, 0])
    """
    x = as_input(input, "flip")
    if not given and dims is None:
        raise TypeError("`flip` needs the argument `dims`")
    chosen = tuple(
        one_dim(d, x._a.ndim, "flip") for d in dims_of(given if dims is None else (dims,))
    )
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"`flip`: a dimension appears twice in {chosen}")
    chosen = chosen if x._a.ndim else ()
    found = run_planned(s.flip, x, None, None, chosen)
    if found is not None:
        return found
    return run_and_plan(s.flip, (x,), {"dims": chosen}, how=chosen)


@method
def to(
    input: Tensor, *args: Tensor | TypeLike | Device | bool, dtype: TypeLike | None = None,
    copy: bool = False, device: object = None, non_blocking: bool = False,
) -> Tensor:  # fmt: skip
    """The Tensor in another dtype (or that of another Tensor); itself when nothing changes.

    >>> import tapegrad as tg
    >>> tg.tensor([1, 2]).to(tg.float32)
    tensor([1., 2.], dtype=tapegrad.float32)
    """
    x = as_input(input, "to")
    flags = []
    for arg in args:
        if isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, (str, Device)):
            device = arg
        elif isinstance(arg, bool):
            flags.append(arg)
        else:
            dtype = arg
    copy = copy or flags[1:] == [True]  # PyTorch's order is `non_blocking, copy`
    check_device(device)
    kind = x._a.dtype if dtype is None else to_numpy(dtype)
    if kind == x._a.dtype:
        return clone(x) if copy else x
    return run(s.to, (x,), {"dtype": kind})
