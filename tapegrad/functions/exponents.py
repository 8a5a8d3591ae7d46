"""Powers of two, and powers in double precision."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import complex_parts as cp
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import Operand, as_input
from tapegrad.functions.inplace_methods import copy_
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import to
from tapegrad.ops.exponents import ldexp as op
from tapegrad.tensor import Tensor, tensor_of, wrap


class Frexp(NamedTuple):
    """Numbers as mantissas from a half up to 1, times powers of 2."""

    mantissa: Tensor
    exponent: Tensor


def scaled_by_power(x: Tensor, power: Tensor) -> Tensor:
    """``x * 2**power`` of floating-point numbers and integers."""
    if power._a.dtype.kind not in "biu":
        raise TypeError(f"`ldexp`: an exponent is an integer, got {power.dtype}")
    return run(op, (x, power), {})


@method
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2**other``.

    >>> import tapegrad as tg
    >>> tg.ldexp(tg.tensor([1.0, 3.0]), tg.tensor([1, 2]))
    tensor([ 2., 12.])
    """
    x, power = as_input(input, "ldexp"), as_input(other, "ldexp")
    if x._a.dtype.kind == "f" and power._a.dtype.kind in "iu":
        return scaled_by_power(x, power)
    if x._a.dtype.kind == "c" and power._a.dtype.kind in "iu":
        return cp.complex(scaled_by_power(x.real, power), scaled_by_power(x.imag, power))
    return ew.mul(x, ar.pow(2.0, power))


@method
def ldexp_(self: Tensor, other: Tensor) -> Tensor:
    """`ldexp` in place."""
    return copy_(self, ldexp(self.clone(), other))


@method
def frexp(input: Tensor) -> Frexp:
    """The mantissas and the exponents of floating-point numbers.

    >>> import tapegrad as tg
    >>> tg.frexp(tg.tensor([3.0])).mantissa
    tensor([0.7500])
    """
    x = as_input(input, "frexp")
    if x._a.dtype.kind != "f":
        raise RuntimeError(f"`frexp` takes floating-point numbers, got {x.dtype}")
    if isinstance(x._a, AbstractArray):
        power = _exponent(x.detach())
    else:
        power = wrap(np.asarray(np.frexp(x._a)[1], np.int32))
    return Frexp(scaled_by_power(x, ew.neg(power)), power)


def _exponent(t: Tensor) -> Tensor:
    """The powers of 2 just above, for values that differ by example; a logarithm may round."""
    size = ew.abs(t)
    usual = ew.logical_and(ew.gt(size, 0), ew.isfinite(size))
    size = ar.where(usual, size, 0.5)
    power = to(ew.floor(ew.log2(size)), np.int32)
    for step in (1, -1):
        rest = scaled_by_power(size, ew.neg(power))
        off = ew.ge(rest, 1) if step == 1 else ew.lt(rest, 0.5)
        power = ar.add(power, ew.mul(to(off, np.int32), step))
    return power


@method
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """`input` to the power of `exponent` in double precision, or in complex128.

    >>> import tapegrad as tg
    >>> tg.float_power(tg.tensor([1, 2]), 0.5)
    tensor([1.0000, 1.4142])
    """
    if not any(isinstance(x, (Tensor, np.ndarray)) for x in (input, exponent)):
        raise TypeError("`float_power` takes a Tensor, as its base or as its exponent")
    kinds = [tensor_of(x, "float_power")._a.dtype.kind for x in (input, exponent)]
    kind = np.dtype(np.complex128 if "c" in kinds else np.float64)
    base, power = (
        to(as_input(x, "float_power"), kind) if isinstance(x, (Tensor, np.ndarray)) else x
        for x in (input, exponent)
    )
    return ar.pow(base, power)


@method
def float_power_(self: Tensor, exponent: Operand) -> Tensor:
    """`float_power` in place, of a Tensor in double precision."""
    found = float_power(self.clone(), exponent)
    if found._a.dtype != self._a.dtype:
        raise RuntimeError(
            f"`float_power_`: the result is of {found.dtype}, and the Tensor of {self.dtype}"
        )
    return copy_(self, found)
