"""Whole quotients and what they leave, and a number kept within bounds (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import floor_f8
from tapegrad.kernels.simd import (
    copysign,
    fma,
    magnitude,
    narrow,
    select,
    truncated_remainder,
    widen,
)

# Quotients up to here are found by one division; beyond (and for infinities) by libm's fmod.
QUOTIENT_MAX = 2.0**51


@scalar
def clamp(x: float, low: float, high: float) -> Any:
    """The minimum of `high` and the maximum of x and `low`; NaN where one of them is."""
    a, b, c = widen(x), widen(low), widen(high)
    a = select((a > b) | (a != a), a, b)
    return narrow(select((a < c) | (a != a), a, c), x)


@scalar
def _rounded_down(a: float, b: float) -> tuple[float, float]:
    """q, r with a = q*b + r, where q may be one too large: then r has not the sign of b.

    The rounded quotient exceeds the true one only where it reaches a whole number; r is exact
    because a - q*b has no more digits than a and b have.
    """
    q = floor_f8(a / b)
    return q, fma(-q, b, a)


@scalar
def remainder(x: float, y: float) -> Any:
    """What a floored division leaves, with the sign of y, where `divides_late` does not hold."""
    a, b = widen(x), widen(y)
    r = _rounded_down(a, b)[1]
    r = select((r != 0.0) & ((r < 0.0) != (b < 0.0)), r + b, r)
    return narrow(select(r == 0.0, copysign(0.0, b), r), x)


@scalar
def fmod(x: float, y: float) -> Any:
    """What a truncated division leaves, with the sign of x, where `divides_late` does not hold."""
    a, b = widen(x), magnitude(widen(y))
    r = _rounded_down(magnitude(a), b)[1]
    return narrow(copysign(select(r < 0.0, r + b, r), a), x)


@scalar
def floor_divide(x: float, y: float) -> Any:
    """The quotient rounded down, where `divides_late` does not hold."""
    a, b = widen(x), widen(y)
    q, r = _rounded_down(a, b)
    return narrow(select((r != 0.0) & ((r < 0.0) != (b < 0.0)), q - 1.0, q), x)


@scalar
def divides_late(x: float, y: float) -> bool:
    """Whether one division does not find the quotient."""
    a, b = widen(x), widen(y)
    q = magnitude(a / b)
    return (q > QUOTIENT_MAX) | (q != q) | (magnitude(b) == math.inf)


@scalar
def remainder_any(x: float, y: float) -> Any:
    """`remainder` of any two numbers; the branch keeps a loop over it scalar."""
    if not divides_late(x, y):
        return remainder(x, y)
    a, b = widen(x), widen(y)
    r = truncated_remainder(a, b)
    if r == 0.0:
        r = copysign(0.0, b)
    elif (r < 0.0) != (b < 0.0):
        r += b
    return narrow(r, x)


@scalar
def fmod_any(x: float, y: float) -> Any:
    """`fmod` of any two numbers; the branch keeps a loop over it scalar."""
    if not divides_late(x, y):
        return fmod(x, y)
    return narrow(truncated_remainder(widen(x), widen(y)), x)


@scalar
def floor_divide_any(x: float, y: float) -> Any:
    """`floor_divide` of any two numbers; the branch keeps a loop over it scalar."""
    if not divides_late(x, y):
        return floor_divide(x, y)
    a, b = widen(x), widen(y)
    if b == 0.0:
        return narrow(a / b, x)
    r = truncated_remainder(a, b)
    q = (a - r) / b
    if r != 0.0 and (r < 0.0) != (b < 0.0):
        q -= 1.0
    whole = floor_f8(q)
    if q - whole > 0.5:
        whole += 1.0
    return narrow(copysign(whole, a / b) if whole == 0.0 else whole, x)
