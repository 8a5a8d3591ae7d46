"""Complex numbers and their parts: linear over the real numbers, and not over the complex ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import OWN, custom, linear
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.elementwise import is_complex, mul, sign, strong
from tapegrad.ops.shape import getitem, view_as_real


def conjugate(x: Any) -> Any:
    """The complex conjugate; what is real is its own."""
    if type(x) is np.ndarray:
        return np.conjugate(x) if x.dtype.kind == "c" else x
    return conj(x) if is_complex(x) else x


def real(x: Any) -> Any:
    """The real part; what is real is its own."""
    return _part(x, 0) if is_complex(x) else x


def imag(x: Any) -> Any:
    """The imaginary part of what is complex."""
    return _part(x, 1)


def _part(x: Any, which: int) -> Any:
    return getitem(view_as_real(x), index=(Ellipsis, which))


_TYPES: dict[str, np.dtype[Any]] = {"f": np.dtype("F"), "d": np.dtype("D")}


def _complex(a: Any, b: Any) -> Any:
    shape = a.shape if a.shape == b.shape else np.broadcast_shapes(a.shape, b.shape)
    y = np.empty(shape, _TYPES[a.dtype.char])
    y.real, y.imag = a, b
    return y


def _sgn_vjp(g: Any, x: Any, y: Any) -> Any:
    """What of an adjoint is at right angles to the direction, divided by the length."""
    if not is_complex(x):
        return g * 0
    size = abs_(x)
    zero = size == 0
    along = mul(y, real(mul(conj(y), g)))
    return strong(g - along, (1 - zero) / (size + zero))


# fmt: off
conj = linear("conj", np.conjugate, x=lambda g: conjugate(g), complex=OWN,
              decomposition=lambda x: x, kinds="fib")
complex_ = linear("complex", _complex, a=lambda g: real(g), b=lambda g: imag(g), complex=OWN,
                  sweep=2)  # operands, as of an elementwise operation
sgn = custom("sgn", np.sign, x=_sgn_vjp, complex=OWN, decomposition=sign)
# fmt: on
