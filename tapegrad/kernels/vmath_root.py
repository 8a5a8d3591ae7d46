"""The length of a vector in the plane (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.lanes import fma, magnitude, narrow, select, widen

LARGE, SMALL = 2.0**510, 2.0**-400
DOWN, UP = 2.0**-600, 2.0**600


@scalar
def hypot(x: float, y: float) -> Any:
    """sqrt(x*x + y*y) without overflow; infinite if one of them is, even beside NaN."""
    a, b = magnitude(widen(x)), magnitude(widen(y))
    high, low = select(a > b, a, b), select(a > b, b, a)
    # Powers of two bring the squares into range.
    scale = select(high > LARGE, DOWN, select(high < SMALL, UP, 1.0))
    p, q = high * scale, low * scale
    h = math.sqrt(fma(p, p, q * q))
    # One step of Newton's: h*h - p*p - q*q from exact products.
    hh, pp = h * h, p * p
    excess = fma(-q, q, hh - pp) + fma(h, h, -hh) - fma(p, p, -pp)
    h = select(h > 0.0, h - excess / (2.0 * h), h) / scale
    h = select((a != a) | (b != b), a + b, h)
    return narrow(select((a == math.inf) | (b == math.inf), math.inf, h), x)
