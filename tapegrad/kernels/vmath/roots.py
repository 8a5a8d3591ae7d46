"""Roots: the length of a vector in the plane, the cube root (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import (
    bits,
    copysign,
    fma,
    from_bits,
    horner,
    magnitude,
    narrow,
    nearest,
    select,
    widen,
)
from tapegrad.kernels.vmath.exponential import ONE_BITS, ROUND
from tapegrad.kernels.vmath.logarithm import split

LARGE, SMALL = 2.0**510, 2.0**-400
DOWN, UP = 2.0**-600, 2.0**600
THIRD, CBRT_2 = 1.0 / 3.0, 2.0 ** (1.0 / 3.0)
EVEN, ODD = 0.5 * (1.0 / CBRT_2 + CBRT_2) - 1.0, 0.5 * (1.0 / CBRT_2 - CBRT_2)
# m**(-1/3) for sqrt(1/2) <= m <= sqrt(2), to a relative 9e-7.
INVERSE_CBRT = (
    2.109982944347705,
    -3.151588558350752,
    4.438173869253948,
    -4.0426478868603395,
    2.253845066762008,
    -0.70104910512131,
    0.0932844242852974,
)


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


@scalar
def cbrt(x: float) -> Any:
    """The cube root, by Newton's method for its inverse and one step for itself."""
    w = widen(x)
    a = magnitude(w)
    m, e = split(a)
    t = fma(e, THIRD, ROUND)
    left = fma(t - ROUND, -3.0, e)  # -1, 0 or 1: what is not a multiple of 3 goes to m
    # Parabolas through 2**(-left/3) and 2**left.
    r = horner(m, INVERSE_CBRT) * fma(fma(left, EVEN, ODD), left, 1.0)
    m = m * fma(fma(left, 0.25, 0.75), left, 1.0)
    r = fma(r * THIRD, fma(-m * r, r * r, 1.0), r)
    square = r * r
    y = m * square
    # y**3 - m from exact products; 1 / (3*y*y) is r*r/3.
    yy = y * y
    excess = fma(yy, y, -m) + fma(y, y, -yy) * y
    y = fma(-THIRD * square, excess, y) * from_bits((bits(t) << 52) + ONE_BITS)
    return narrow(select((a > 0.0) & (a < math.inf), copysign(y, w), w), x)


@scalar
def rint(x: float) -> Any:
    """The nearest whole number, the even one of two."""
    return narrow(nearest(widen(x)), x)
