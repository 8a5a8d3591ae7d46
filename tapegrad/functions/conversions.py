"""Conversions to the dtype that an argument names."""

from __future__ import annotations

from typing import Any, overload

from tapegrad.base.dtypes import complex64, complex128, int8, of_numpy, uint8
from tapegrad.base.dtypes import dtype as DType
from tapegrad.functions.arguments import TypeLike
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import to
from tapegrad.tensor import Tensor


@overload
def type(input: Tensor, dtype: None = None) -> DType: ...
@overload
def type(input: Tensor, dtype: TypeLike) -> Tensor: ...
@method
def type(input: Tensor, dtype: Any = None) -> Any:
    """The dtype, or the Tensor in another one.

    >>> import tapegrad as tg
    >>> tg.ones(1).type(tg.int64)
    tensor([1])
    """
    return of_numpy(input._a.dtype) if dtype is None else to(input, dtype)


@method
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The Tensor in the dtype of another.

    >>> import tapegrad as tg
    >>> tg.ones(1).type_as(tg.tensor(1))
    tensor([1])
    """
    return to(input, other.dtype)


@method
def byte(self: Tensor) -> Tensor:
    """The Tensor in the dtype `uint8`."""
    return to(self, uint8)


@method
def char(self: Tensor) -> Tensor:
    """The Tensor in the dtype `int8`."""
    return to(self, int8)


@method
def cfloat(self: Tensor) -> Tensor:
    """The Tensor in the dtype `complex64`."""
    return to(self, complex64)


@method
def cdouble(self: Tensor) -> Tensor:
    """The Tensor in the dtype `complex128`."""
    return to(self, complex128)
