"""Numbers scaled by powers of two, whose exponents are integers and have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import NotDifferentiable, Op, linear
from tapegrad.ops.elementwise import exp2
from tapegrad.ops.logic import bitwise_right_shift
from tapegrad.ops.shape import sum_to, to

FAR = 10_000  # beyond the exponents of any type


def _ldexp(x: Any, power: Any) -> Any:
    if power.dtype != np.int32:  # for which NumPy has the quick loop
        power = np.clip(power, -FAR, FAR).astype(np.int32)
    if x.dtype.kind == "c":
        return _ldexp(x.real, power) + 1j * _ldexp(x.imag, power)
    return np.asarray(np.ldexp(x, power))


def _ldexp_form(x: Any, power: Any) -> Any:
    # Two powers, so that neither is too large where the product is not.
    half = bitwise_right_shift(power, 1)
    first, second = (exp2(to(k, dtype=x.dtype)) for k in (half, power - half))
    return x * first * second


ldexp: Op = linear(
    "ldexp", _ldexp, x=lambda g, x_spec, power: sum_to(ldexp(g, power), shape=x_spec.shape),
    power=NotDifferentiable("an exponent is a whole number"), decomposition=_ldexp_form, kinds="f",
    paired=True,
)  # fmt: skip
