"""`dtype` conversions, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.dtypes import of_numpy
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import matrix_transpose, to
from tapegrad.tensor import Tensor, wrap


def real(input: Tensor) -> Tensor:
    """The real part: of a complex Tensor a view that cannot be written into, else itself."""
    return _part(input, input._a.real) if input._a.dtype.kind == "c" else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part, a view that cannot be written into; a real Tensor has none."""
    if input._a.dtype.kind != "c":
        raise RuntimeError("`imag` is not defined for a Tensor with real elements")
    return _part(input, input._a.imag)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate, a new Tensor; a real Tensor is its own."""
    if input._a.dtype.kind != "c":
        return input
    _check_outside(input)
    return wrap(np.conjugate(input._a))


def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the transposed matrix, or of a batch of them."""
    return conj(matrix_transpose(input))


def hermitian(input: Tensor) -> Tensor:
    """The conjugate of one transposed matrix; `mH` takes batches."""
    if input._a.ndim > 2:
        raise RuntimeError(
            f"`H` takes one matrix, got the shape {input._a.shape}: use `mH` for a batch of them"
        )
    return adjoint(input)


def _check_outside(t: Tensor) -> None:
    if t.__class__ is not Tensor:
        raise NotImplementedError(
            f"the parts, and the conjugate, of a Tensor of {t.dtype} cannot be taken inside of a "
            "transform: take them outside"
        )


def _part(t: Tensor, part: np.ndarray) -> Tensor:
    _check_outside(t)
    # Were a part changed by what requires grad, no record could say what became of the whole.
    part.flags.writeable = False
    return wrap(part)


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
