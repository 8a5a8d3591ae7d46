"""Methods of arrays on Tensors: names that PyTorch's do not have, arguments that theirs refuse.

Where PyTorch has a meaning for a call, that one holds (`x.std()` divides by n - 1), but inside of a
transform of a function of arrays the call means what it means for an array (`x.max(0)`, too).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from tapegrad.base.devices import check_device
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.functions import (
    complex_parts,
    contractions,
    indexing,
    products,
    rounding,
    scans,
    scattering,
    shapes,
)
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import Indices, Operand, Sizes, TypeLike, numpy_names
from tapegrad.functions.inplace_methods import copy_, fill_
from tapegrad.numpy_face.instead_of_arrays import instead_of_array
from tapegrad.tape.copy_on_use import own
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

# What arrays have and Tensors do not, and what to write instead.
INSTEAD = {
    "argpartition": "`np.argpartition(x, k)`",
    "choose": "`np.choose(x, choices)`",
    "flags": "`x.is_contiguous()` and `x.stride()`",
    "flat": "`x.reshape(-1)`",
    "partition": "`np.partition(x, k)`",
    "ptp": "`np.ptp(x)`",
    "resize": "`np.resize`, or `x.reshape`",
    "strides": "`x.stride()`, which counts elements",
    **dict.fromkeys(
        "byteswap ctypes data dump dumps getfield newbyteorder setfield setflags "
        "tobytes tofile".split(),
        "`x.detach().numpy()`, which is an array without a gradient",
    ),
}


def missing(self: Tensor, name: str) -> NoReturn:
    """The error for an attribute that a Tensor does not have."""
    if name in INSTEAD:
        raise AttributeError(f"a Tensor has no `{name}`, which arrays have: use {INSTEAD[name]}")
    if name.startswith("_"):  # slots that are empty, among others: many ask
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    from tapegrad.base import missing_names

    raise missing_names.missing(f"{type(self).__name__!r} object", name, obj=self)


def _np(function: Any, *args: Any, **kwargs: Any) -> Tensor:
    """A function of NumPy, which gives a Tensor for a Tensor."""
    found: Tensor = function(*args, **kwargs)
    return found


def astype(
    self: Tensor, dtype: TypeLike, order: str = "K", casting: Any = "unsafe", subok: bool = True,
    copy: bool = True,
) -> Tensor:  # fmt: skip
    """The elements in another type; a copy, unless that is not wanted and not needed."""
    found = shapes.to(self, dtype=dtype)
    if casting != "unsafe" and not np.can_cast(self._a.dtype, found._a.dtype, casting):
        raise TypeError(
            f"`astype` from {self._a.dtype} to {found._a.dtype} is not allowed with "
            f"casting={casting!r}"
        )
    return shapes.clone(found) if copy and found is self else found


def copy(self: Tensor, order: str = "C") -> Tensor:
    """A Tensor with memory of its own; gradients flow to this one."""
    return shapes.clone(self)


def array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """`__array__`: what `np.asarray` and functions that know no Tensors make of one."""
    instead = instead_of_array(self, sys._getframe(1))
    if instead is not None:
        return instead
    try:
        found = self.numpy()
    except RuntimeError as why:
        from tapegrad.base.nearest import no_array

        raise no_array(why, self._a.dtype.kind) from None
    return np.array(found, dtype=dtype, copy=copy)


def array_namespace(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The functions of the array API standard, as it has arrays say (`__array_namespace__`)."""
    from tapegrad import array_api

    if api_version not in {None, "2021.12", "2022.12", "2023.12", array_api.__array_api_version__}:
        raise ValueError(
            f"Tensors follow the array API standard up to {array_api.__array_api_version__}, not "
            f"{api_version!r}"
        )
    return array_api


def numba_type(self: Tensor) -> Any:
    """What Numba takes a Tensor for: a call of a function that it compiles is one record."""
    from tapegrad.njit.tensor_calls import type_of_tensor

    return type_of_tensor()


def dlpack(
    self: Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None,
    dl_device: Any = None, copy: bool | None = None,
) -> Any:  # fmt: skip
    """The memory, for another library (`__dlpack__`); history cannot go along."""
    if self.requires_grad:
        raise BufferError(
            "DLPack hands over elements without their history, and this Tensor requires grad: "
            "export `t.detach()`"
        )
    own(self)
    return self._a.__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Where the memory is, by DLPack's numbers (`__dlpack_device__`): the CPU."""
    return self._a.__dlpack_device__()


def to_device(self: Tensor, device: Any, *, stream: Any = None) -> Tensor:
    """The Tensor itself: the CPU is the only device."""
    check_device(device)
    if stream is not None:
        raise ValueError(f"`to_device`: the CPU has no streams, got {stream!r}")
    return self


def fill(self: Tensor, value: Operand) -> None:
    """Write one number everywhere."""
    fill_(self, value)


def conj(self: Tensor) -> Tensor:
    """The complex conjugate."""
    return complex_parts.conj(self)


def compress(self: Tensor, condition: npt.ArrayLike, axis: int | None = None) -> Tensor:
    """The places along an axis where a condition holds."""
    return _np(np.compress, condition, self, axis)


def searchsorted(
    self: Tensor, v: Operand, side: str = "left", sorter: Indices | None = None
) -> Tensor:
    """Where values would have to be put in to keep the order of the elements."""
    return _np(np.searchsorted, self, v, side, sorter)


def dot(self: Tensor, tensor: Any) -> Tensor:
    """The inner product of two vectors; of other operands what `np.dot` gives."""
    if self._a.ndim == 1 and np.ndim(tensor) == 1:
        return products.dot(self, tensor)
    return _np(np.dot, self, tensor)


def transpose(
    self: Tensor,
    *dims: int | Sequence[int] | None,
    dim0: int | None = None,
    dim1: int | None = None,
) -> Tensor:
    """Two dimensions swapped; otherwise all in an order, or without one in reverse."""
    given: Any = (
        dims if dim0 is dim1 is None else (*dims, *[d for d in (dim0, dim1) if d is not None])
    )
    if len(given) == 2:
        tape = current.tape
        if given is dims and (tape.depth or tape.levels) and numpys():
            if self._a.ndim != 2:
                raise ValueError(
                    f"`transpose{given}` of {self._a.ndim} dimensions: in a transform of a "
                    "function of arrays it is NumPy's, which takes all of them. To swap two write "
                    f"`swapaxes{given}`; in the transforms of `tapegrad.func` it is PyTorch's"
                )
            return _np(np.transpose, self, given)
        return shapes.transpose(self, *given)
    if len(given) == 1 and not isinstance(given[0], (int, np.integer)):
        given = tuple(given[0] or ())
    return shapes.permute(self, given or tuple(range(self._a.ndim))[::-1])


def reshape(
    self: Tensor, *sizes: Sizes, shape: Sequence[SupportsIndex] | None = None, order: str = "C"
) -> Tensor:
    """The same elements in another shape; a view where that is possible."""
    if order == "C":
        return shapes.reshape(self, *sizes, shape=shape)
    whole = shape or (sizes if len(sizes) > 1 else sizes[0])
    return _np(np.reshape, self, whole, order)


def ravel(self: Tensor, order: str = "C") -> Tensor:
    """All elements in one dimension."""
    return shapes.ravel(self) if order == "C" else _np(np.ravel, self, order)


def flatten(
    self: Tensor, start_dim: int | str = 0, end_dim: int = -1, *, order: str = "C"
) -> Tensor:
    """Several dimensions in one; or all of them in an order of NumPy's, "C" or "F"."""
    if start_dim == 0:
        tape = current.tape
        if (tape.depth or tape.levels) and end_dim == -1 and numpys():
            return shapes.clone(ravel(self, order))  # that of an array is never a view
    elif isinstance(start_dim, str):
        return ravel(self, start_dim)
    return shapes.flatten(self, start_dim, end_dim) if order == "C" else ravel(self, order)


def round(self: Tensor, decimals: int = 0) -> Tensor:
    """The nearest whole number, the even one of two; or the nearest with so many decimals."""
    return rounding.round(self, decimals=decimals)


def rounded(self: Tensor, ndigits: int | None = None) -> Tensor:
    """Python's `round(t)` and `round(t, 2)`: a Tensor, as it is recorded."""
    return rounding.round(self, decimals=ndigits or 0)


def truncated(self: Tensor) -> int:
    """`math.trunc(t)`, as `math.floor(t)` and `int(t)` a number of Python's."""
    return int(self.item())


def _scan_method(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, dim: int | None = None, *, dtype: TypeLike | None = None) -> Tensor:
        if dim is None:
            self, dim = shapes.reshape(self, (self._a.size,)), 0
        return function(self, dim, dtype=dtype)

    method.__name__, method.__doc__ = function.__name__, function.__doc__
    return numpy_names(method)


def _repeat(self: Tensor, *repeats: Sizes, axis: int | None = None) -> Tensor:
    """The Tensor laid side by side; with an `axis` every element so often, as `np.repeat`."""
    if axis is None:
        from tapegrad.functions import tiling

        return tiling.repeat(self, *repeats)
    return _np(np.repeat, self, *repeats, axis)


# Arguments that PyTorch has and NumPy has not: who names one means PyTorch's method.
_TORCHS = frozenset("accumulate dim dims keepdim unbiased other descending as_tuple".split())


def _two_faced(torchs: Callable[..., Any], arrays: Callable[..., Any]) -> Callable[..., Any]:
    """A method of PyTorch's which is that of arrays inside of a transform of a function of arrays.

    An argument that only one of them takes says which is meant: True and False are PyTorch's.
    """
    named = numpy_names(torchs)

    @functools.wraps(torchs)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        tape = current.tape
        if (
            (tape.depth or tape.levels)
            and numpys()
            and _TORCHS.isdisjoint(kwargs)
            and not any(type(arg) is bool for arg in args)
        ):
            return arrays(self, *args, **kwargs)
        return named(self, *args, **kwargs) if kwargs else torchs(self, *args)

    return method


def _sort(self: Tensor, axis: int = -1, kind: Any = None, order: Any = None, **more: Any) -> None:
    copy_(self, np.sort(self, axis, kind, order, **more))


def take(self: Tensor, index: Indices, axis: int | None = None, **how: Any) -> Tensor:
    """Elements by their place in the flattened Tensor, or along an axis."""
    if axis is None and not how:
        return indexing.take(self, index)
    return _np(np.take, self, index, axis, **how)


cumsum, cumprod = _scan_method(r.cumsum), _scan_method(scans.cumprod)
METHODS: dict[str, Any] = {
    f.__name__: f
    for f in (
        astype, copy, fill, conj, compress, searchsorted, dot, transpose, reshape, ravel, flatten,
        round, cumsum, cumprod, take,
    )
} | {
    torchs.__name__.strip("_"): _two_faced(torchs, arrays)
    for torchs, arrays in (
        (r.std, np.std), (r.var, np.var), (r.max, np.max), (r.min, np.min), (scans.sort, _sort),
        (_repeat, np.repeat), (indexing.nonzero, np.nonzero), (scattering.put, np.put),
        (contractions.trace, np.trace), (scans.argsort, np.argsort),
    )
} | {"conjugate": conj, "__getattr__": missing, "__array__": array,
    "__array_namespace__": array_namespace, "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device, "to_device": to_device,
    "_numba_type_": property(numba_type),
    "__round__": rounded, "__trunc__": truncated}  # fmt: skip
