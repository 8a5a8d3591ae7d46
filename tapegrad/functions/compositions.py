"""Functions of PyTorch's that are made of others: each is a line or two over operations."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeGuard

import numpy as np

from tapegrad.base.size import Size
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as a
from tapegrad.functions import (
    diagonals,
    indexing,
    inplace_methods,
    joining,
    masking,
    reductions,
    shapes,
)
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import Operand, Sizes, as_input, numpy_names, one_dim
from tapegrad.functions.creation import shape_of
from tapegrad.functions.method_decorators import method
from tapegrad.ops.shape import sum_to as _sum_to
from tapegrad.tape import versions
from tapegrad.tensor import Tensor, wrap


def is_tensor(obj: Any) -> TypeGuard[Tensor]:
    """Whether something is a Tensor.

    >>> import tapegrad as tg
    >>> tg.is_tensor(tg.zeros(1)), tg.is_tensor(1.0)
    (True, False)
    """
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import tapegrad as tg
    >>> tg.numel(tg.zeros(2, 3))
    6
    """
    return as_input(input, "numel").numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are floating-point numbers.

    >>> import tapegrad as tg
    >>> tg.is_floating_point(tg.zeros(1))
    True
    """
    return as_input(input, "is_floating_point").is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex numbers.

    >>> import tapegrad as tg
    >>> tg.is_complex(tg.zeros(1))
    False
    """
    return as_input(input, "is_complex").is_complex()


def is_inference(input: Tensor) -> bool:
    """Whether a Tensor was made in inference mode.

    >>> import tapegrad as tg
    >>> tg.is_inference(tg.zeros(1))
    False
    """
    return as_input(input, "is_inference").is_inference()


def detach(input: Tensor) -> Tensor:
    """The same memory without history.

    >>> import tapegrad as tg
    >>> tg.detach(tg.ones(1, requires_grad=True)).requires_grad
    False
    """
    return as_input(input, "detach").detach()


def detach_(input: Tensor) -> Tensor:
    """`detach` in place."""
    return as_input(input, "detach_").detach_()


@method
def positive(input: Tensor) -> Tensor:
    """The Tensor itself.

    >>> import tapegrad as tg
    >>> tg.positive(tg.tensor(-1.0))
    tensor(-1.)
    """
    x = as_input(input, "positive")
    if x._a.dtype.kind == "b":
        raise RuntimeError("`positive` is not defined for a boolean Tensor")
    return x


@method
def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Elements below `min` become `min`.

    >>> import tapegrad as tg
    >>> tg.clamp_min(tg.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    return a.clamp(input, min=min)


@method
def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Elements above `max` become `max`.

    >>> import tapegrad as tg
    >>> tg.clamp_max(tg.tensor([-1.0, 2.0]), 0.0)
    tensor([-1., 0.])
    """
    return a.clamp(input, max=max)


@method
def clamp_min_(self: Tensor, min: Operand) -> Tensor:
    """`clamp_min` in place."""
    return inplace_methods.clamp_(self, min=min)


@method
def clamp_max_(self: Tensor, max: Operand) -> Tensor:
    """`clamp_max` in place."""
    return inplace_methods.clamp_(self, max=max)


def threshold(input: Any, threshold: float, value: float) -> Tensor:
    """Elements that are not above a threshold become a value.

    >>> import tapegrad as tg
    >>> tg.threshold(tg.tensor([0.5, 2.0]), 1.0, 9.0)
    tensor([9., 2.])
    """
    x = as_input(input, "threshold")
    return masking.masked_fill(x, ew.le(x, threshold), value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place."""
    return inplace_methods.masked_fill_(input, ew.le(input, threshold), value)


# -- shapes ------------------------------------------------------------------------------------


def broadcast_shapes(*given: Any) -> Any:
    """The shape that several broadcast to.

    >>> import tapegrad as tg
    >>> tg.broadcast_shapes((2, 1), (3,))
    tapegrad.Size([2, 3])
    """
    try:
        if any(n < 0 for shape in given for n in np.atleast_1d(shape)):
            raise ValueError(f"a shape cannot have negative entries, got {given}")
        return Size(np.broadcast_shapes(*given))
    except (TypeError, ValueError) as problem:
        raise RuntimeError(f"`broadcast_shapes`: {problem}") from None


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors as views of the one shape that theirs broadcast to.

    >>> import tapegrad as tg
    >>> [t.shape for t in tg.broadcast_tensors(tg.zeros(2, 1), tg.zeros(3))]
    [tapegrad.Size([2, 3]), tapegrad.Size([2, 3])]
    """
    found = [as_input(t, "broadcast_tensors") for t in tensors]
    try:
        shape = np.broadcast_shapes(*(t._a.shape for t in found))
    except ValueError as problem:
        raise RuntimeError(f"`broadcast_tensors`: {problem}") from None
    return tuple(shapes.expand(t, shape) for t in found)


def _at_least(dims: int, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(_at_least(dims, (t,)) for t in tensors[0])
    if len(tensors) > 1:
        return tuple(_at_least(dims, (t,)) for t in tensors)
    x: Any = as_input(tensors[0], f"atleast_{dims}d")
    if x._a.ndim < min(dims, 2):
        x = shapes.unsqueeze(x, 0)
        x = x if x._a.ndim >= min(dims, 2) else shapes.unsqueeze(x, 0)
    return shapes.unsqueeze(x, -1) if x._a.ndim < dims else x


def atleast_1d(*tensors: Any) -> Any:
    """Tensors of at least one dimension.

    >>> import tapegrad as tg
    >>> tg.atleast_1d(tg.tensor(1.0))
    tensor([1.])
    """
    return _at_least(1, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Tensors of at least two dimensions.

    >>> import tapegrad as tg
    >>> tg.atleast_2d(tg.ones(2))
    tensor([[1., 1.]])
    """
    return _at_least(2, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Tensors of at least three dimensions.

    >>> import tapegrad as tg
    >>> tg.atleast_3d(tg.ones(2)).shape
    tapegrad.Size([1, 2, 1])
    """
    return _at_least(3, tensors)


def _split_dim(input: Any, where: Any, dim: int, least: int, name: str) -> tuple[Tensor, ...]:
    x = as_input(input, name)
    if x._a.ndim < least:
        raise RuntimeError(f"`{name}` takes at least {least} dimensions, got {x._a.ndim}")
    if isinstance(where, (int, np.integer)) and (where <= 0 or x._a.shape[dim] % where):
        raise RuntimeError(
            f"`{name}` into {where} equal pieces: dimension {dim} has the length "
            f"{x._a.shape[dim]}, which that does not divide"
        )
    return joining.tensor_split(x, where, dim)


@method
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces along the second dimension, or the only one.

    >>> import tapegrad as tg
    >>> tg.hsplit(tg.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    dim = 0 if as_input(input, "hsplit")._a.ndim == 1 else 1
    return _split_dim(input, indices_or_sections, dim, 1, "hsplit")


@method
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces along the first of two dimensions or more.

    >>> import tapegrad as tg
    >>> tg.vsplit(tg.eye(2), 2)
    (tensor([[1., 0.]]), tensor([[0., 1.]]))
    """
    return _split_dim(input, indices_or_sections, 0, 2, "vsplit")


@method
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Pieces along the third dimension.

    >>> import tapegrad as tg
    >>> [t.shape for t in tg.dsplit(tg.zeros(1, 2, 4), 2)]
    [tapegrad.Size([1, 2, 2]), tapegrad.Size([1, 2, 2])]
    """
    return _split_dim(input, indices_or_sections, 2, 3, "dsplit")


@method
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements along a diagonal.

    >>> import tapegrad as tg
    >>> tg.diagflat(tg.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return diagonals.diag(shapes.ravel(input), offset)


def _of_least(input: Tensor, ndim: int, name: str) -> Tensor:
    x = as_input(input, name)
    if x._a.ndim < ndim:
        raise RuntimeError(f"`{name}` takes at least {ndim} dimensions, got {x._a.ndim}")
    return x


@method
def fliplr(input: Tensor) -> Tensor:
    """The elements in reverse order along the second dimension; a copy.

    >>> import tapegrad as tg
    >>> tg.fliplr(tg.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    return shapes.flip(_of_least(input, 2, "fliplr"), 1)


@method
def flipud(input: Tensor) -> Tensor:
    """The elements in reverse order along the first dimension; a copy.

    >>> import tapegrad as tg
    >>> tg.flipud(tg.tensor([1, 2]))
    tensor([2, 1])
    """
    return shapes.flip(_of_least(input, 1, "flipud"), 0)


@method
def sum_to_size(self: Tensor, *size: Sizes) -> Tensor:
    """The sum over the dimensions along which the size would be broadcast to that of the Tensor.

    >>> import tapegrad as tg
    >>> tg.ones(2, 3).sum_to_size(3)
    tensor([2., 2., 2.])
    """
    if not size:
        raise TypeError("`sum_to_size` needs a size")
    shape = shape_of(size)
    try:
        fits = np.broadcast_shapes(shape, self._a.shape) == self._a.shape
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"`sum_to_size`: the size {shape} does not broadcast to the shape {self._a.shape}"
        )
    if shape == self._a.shape:
        return self
    x = shapes.to(self, np.int64) if self._a.dtype.kind in "biu" else self
    return run(_sum_to, (x,), {"shape": shape})


# -- reductions --------------------------------------------------------------------------------


@numpy_names
def var_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The variance and the mean.

    >>> import tapegrad as tg
    >>> tg.var_mean(tg.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    spread = reductions.var(input, dim, unbiased, keepdim, correction=correction)
    return spread, _mean(input, dim, keepdim)


@numpy_names
def std_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The standard deviation and the mean.

    >>> import tapegrad as tg
    >>> tg.std_mean(tg.tensor([1.0, 3.0]), correction=0)
    (tensor(1.), tensor(2.))
    """
    spread = reductions.std(input, dim, unbiased, keepdim, correction=correction)
    return spread, _mean(input, dim, keepdim)


def _mean(input: Any, dim: Any, keepdim: bool) -> Tensor:
    if isinstance(dim, bool):  # PyTorch's `var(input, unbiased)`
        dim = None
    return reductions.mean(input, dim, keepdim)


# -- places ------------------------------------------------------------------------------------


def _places_in(self: Tensor, dim: int, index: Any, name: str) -> tuple[Tensor, Any]:
    """A Tensor of one dimension at least, and the index of places along one of its dimensions."""
    places = as_input(index, name)
    if places._a.dtype.kind not in "iu":
        raise IndexError(f"`{name}`: an index must be of an integer type, got {places.dtype}")
    if places._a.ndim > 1:
        raise IndexError(f"`{name}`: an index has one dimension, got {places._a.ndim}")
    d = one_dim(dim, self._a.ndim, name)
    x = self if self._a.ndim else indexing._vector(self)
    return x, (*[slice(None)] * d, shapes.ravel(places))


@method
def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`index_copy` in place."""
    x, key = _places_in(self, dim, index, "index_copy")
    given = as_input(source, "index_copy")
    if given._a.dtype != self._a.dtype:
        raise RuntimeError(
            f"`index_copy`: a Tensor of {self.dtype} cannot take elements of {given.dtype}"
        )
    if given._a.ndim != self._a.ndim and given._a.ndim:
        raise IndexError(
            f"`index_copy`: the source must have {self._a.ndim} dimensions, got {given._a.ndim}"
        )
    inplace_methods.setitem(x, key, given)
    return self


@method
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The Tensor with other elements at places along a dimension.

    >>> import tapegrad as tg
    >>> tg.index_copy(tg.zeros(3), 0, tg.tensor([2]), tg.ones(1))
    tensor([0., 0., 1.])
    """
    return index_copy_(shapes.clone(input), dim, index, source)


@method
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Tensor | complex) -> Tensor:
    """`index_fill` in place."""
    x, key = _places_in(self, dim, index, "index_fill")
    if isinstance(value, Tensor) and value._a.ndim:
        raise RuntimeError(f"`index_fill` fills with one number, got the shape {value._a.shape}")
    if not isinstance(value, Tensor):
        inplace_methods.setitem(x, key, value)
        return self
    # A place that is chosen twice counts once in the number's adjoint.
    d = len(key) - 1
    chosen = wrap(np.zeros(x._a.shape[d], np.bool_))
    inplace_methods.setitem(chosen, key[-1:], True)
    chosen = shapes.reshape(chosen, (-1, *[1] * (x._a.ndim - d - 1)))
    inplace_methods.masked_fill_(x, chosen, value)
    return self


@method
def index_fill(input: Tensor, dim: int, index: Tensor, value: Tensor | complex) -> Tensor:
    """The Tensor with one number at places along a dimension.

    >>> import tapegrad as tg
    >>> tg.index_fill(tg.zeros(3), 0, tg.tensor([2]), 7.0)
    tensor([0., 0., 7.])
    """
    return index_fill_(shapes.clone(input), dim, index, value)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The index along each dimension of places that count all elements.

    >>> import tapegrad as tg
    >>> tg.unravel_index(tg.tensor([0, 5]), (2, 3))
    (tensor([0, 1]), tensor([0, 2]))
    """
    places = as_input(indices, "unravel_index")
    if places._a.dtype.kind not in "iu":
        raise TypeError(f"`unravel_index` takes integers, got {places.dtype}")
    whole = (shape,) if isinstance(shape, (int, np.integer)) else shape
    if not isinstance(whole, (tuple, list)) or not all(
        isinstance(n, (int, np.integer)) for n in whole
    ):
        raise TypeError(f"`unravel_index`: a shape is made of ints, got {shape!r}")
    if any(n < 0 for n in whole):
        raise ValueError(f"`unravel_index`: a shape cannot have negative entries, got {whole}")
    try:
        found = np.unravel_index(places._a, tuple(whole))
    except ValueError as problem:
        raise ValueError(f"`unravel_index`: {problem}") from None
    return tuple(wrap(np.asarray(part)) for part in found)


# -- where the elements are --------------------------------------------------------------------


class Storage(NamedTuple):
    """The memory in which a Tensor's elements stand, as PyTorch names what is asked of it."""

    array: np.ndarray

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return int(self.array.__array_interface__["data"][0])

    def nbytes(self) -> int:
        """The bytes of all of it."""
        return self.array.nbytes

    def size(self) -> int:
        """The bytes of all of it."""
        return self.array.nbytes


@method
def untyped_storage(self: Tensor) -> Storage:
    """The memory that this Tensor shares with its views and its base."""
    return Storage(versions.memory(self._a))


@method
def cpu(self: Tensor) -> Tensor:
    """The Tensor itself: it is on the CPU."""
    return self


index_put_ = inplace_methods.index_put_
