"""Functions of complex numbers as plain source, which is inlined and differentiated like any other.

A complex number is followed as its two parts, so that what stands here is arithmetic of real
numbers.  The derivative of a function is that of both parts, in both: where it is analytic, these
are the derivative that it has there.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np


def divide(a: complex, b: complex) -> complex:
    """The quotient, divided by the larger part of the divisor first."""
    if b.real == 0 and b.imag == 0:
        return complex(a.real / abs(b.real), a.imag / abs(b.real))
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        size = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / size, (a.imag - a.real * ratio) / size)
    ratio = b.real / b.imag
    size = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / size, (a.imag * ratio - a.real) / size)


def absolute(z: complex) -> float:
    """The size, whose derivative is zero where it is zero."""
    if z.real == 0 and z.imag == 0:
        return 0 * z.real
    return math.hypot(z.real, z.imag)


def angle(z: complex) -> float:
    """The angle, whose derivative is zero where the number is zero."""
    if z.real == 0 and z.imag == 0:
        return math.copysign(math.pi if math.copysign(1.0, z.real) < 0 else 0.0, z.imag)
    return math.atan2(z.imag, z.real)


def rect(size: float, angle: float) -> complex:
    """The number of a size and an angle."""
    return complex(size * math.cos(angle), size * math.sin(angle))


def sign(z: complex) -> complex:
    """The number of size 1 in the same direction."""
    if z.real == 0 and z.imag == 0:
        return complex(0 * z.real, 0 * z.imag)
    size = math.hypot(z.real, z.imag)
    return complex(z.real / size, z.imag / size)


def exp(z: complex) -> complex:
    """e ** z."""
    size = math.exp(z.real)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


def log(z: complex) -> complex:
    """The logarithm, on the plane without the negative numbers."""
    return complex(math.log(math.hypot(z.real, z.imag)), math.atan2(z.imag, z.real))


def log10(z: complex) -> complex:
    """The logarithm to the base 10."""
    size = math.log10(math.hypot(z.real, z.imag))
    return complex(size, math.atan2(z.imag, z.real) / math.log(10.0))


def log2(z: complex) -> complex:
    """The logarithm to the base 2."""
    size = np.log2(math.hypot(z.real, z.imag))
    return complex(size, math.atan2(z.imag, z.real) / math.log(2.0))


def sqrt(z: complex) -> complex:
    """The root that does not lie to the left of zero."""
    if z.real == 0 and z.imag == 0:
        return complex(math.sqrt(z.real), z.imag)
    large = math.sqrt((math.hypot(z.real, z.imag) + abs(z.real)) / 2)
    if z.real >= 0:
        return complex(large, z.imag / (2 * large))
    side = math.copysign(1.0, z.imag)
    return complex(side * z.imag / (2 * large), side * large)


def sin(z: complex) -> complex:
    """The sine."""
    return complex(math.sin(z.real) * math.cosh(z.imag), math.cos(z.real) * math.sinh(z.imag))


def cos(z: complex) -> complex:
    """The cosine."""
    return complex(math.cos(z.real) * math.cosh(z.imag), -math.sin(z.real) * math.sinh(z.imag))


def tanh(z: complex) -> complex:
    """The hyperbolic tangent; far from zero nothing in it overflows."""
    t, f = math.tanh(z.real), math.tan(z.imag)
    size = 1 + t * t * f * f
    return complex(t * (1 + f * f) / size, f * (1 - t) * (1 + t) / size)


def tan(z: complex) -> complex:
    """The tangent, by the hyperbolic one of i z."""
    t, f = math.tanh(z.imag), math.tan(z.real)
    size = 1 + t * t * f * f
    return complex(f * (1 - t) * (1 + t) / size, t * (1 + f * f) / size)


def sinh(z: complex) -> complex:
    """The hyperbolic sine."""
    return complex(math.sinh(z.real) * math.cos(z.imag), math.cosh(z.real) * math.sin(z.imag))


def cosh(z: complex) -> complex:
    """The hyperbolic cosine."""
    return complex(math.cosh(z.real) * math.cos(z.imag), math.sinh(z.real) * math.sin(z.imag))


def power(a: complex, b: complex) -> complex:
    """a ** b."""
    if a.real == 0 and a.imag == 0:
        if b.real == 0 and b.imag == 0:
            return complex(1.0, 0.0)
        zero = 0.0 if b.real > 0 else math.nan
        return complex(zero, zero)
    size, phase = math.log(math.hypot(a.real, a.imag)), math.atan2(a.imag, a.real)
    size, phase = math.exp(b.real * size - b.imag * phase), b.imag * size + b.real * phase
    return complex(size * math.cos(phase), size * math.sin(phase))


def isnan(z: complex) -> bool:
    """Whether a part is NaN."""
    return math.isnan(z.real) or math.isnan(z.imag)


def isinf(z: complex) -> bool:
    """Whether a part is infinite."""
    return math.isinf(z.real) or math.isinf(z.imag)


def isfinite(z: complex) -> bool:
    """Whether both parts are finite."""
    return math.isfinite(z.real) and math.isfinite(z.imag)


def truth(z: complex) -> bool:
    """Whether a number is not zero."""
    return z.real != 0 or z.imag != 0


# By the ufuncs, and the functions of `cmath` and Python, that they are.
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    abs: absolute, np.absolute: absolute, cmath.phase: angle, np.sign: sign,
    **{getattr(np, f.__name__): f for f in (
        exp, log, log10, log2, sqrt, sin, cos, tan, sinh, cosh, tanh, isnan, isinf, isfinite,
    )},
    **{getattr(cmath, f.__name__): f for f in (
        exp, log, log10, sqrt, sin, cos, tan, sinh, cosh, tanh, isnan, isinf, isfinite, rect,
    )},
}  # fmt: skip
