"""The inverses of the trigonometric functions: atan, atan2, asin, acos (see `vmath`)."""

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
    select,
    widen,
)
from tapegrad.kernels.vmath.trigonometric import PI, PIO2_1, PIO2_2

PI_LOW = 2.0 * PIO2_2
PIO4_1, PIO4_2 = 0.5 * PIO2_1, 0.5 * PIO2_2
# (atan(t)/t - 1) / s in s = t**2 for 0 <= t <= ATAN_MAX.
ATAN_MAX = 0.6
ATAN = (
    -0.33333333333333226,
    0.19999999999972465,
    -0.14285714283241582,
    0.11111110998613656,
    -0.09090906046760187,
    0.07692254151084149,
    -0.06666020538081255,
    0.058768176942429966,
    -0.05228790582930433,
    0.04605548710984146,
    -0.03824786483643453,
    0.027158469937256256,
    -0.013943696899029445,
    0.003698274021042223,
)
# (asin(t)/t - 1) / z in z = t**2 for 0 <= t <= 1/2.
ASIN = (
    0.1666666666666676,
    0.07499999999970798,
    0.04464285717461386,
    0.03038194270769251,
    0.02237221498995603,
    0.01735161197755204,
    0.013980820918548327,
    0.011398909609156802,
    0.010780265645430697,
    0.0037063652250498005,
    0.0217075437736314,
    -0.02099918956938025,
    0.03262869866422524,
)
# from_bits(RECIPROCAL - bits(x)) is 1/x to an eighth, for x far from both ends of the exponents.
RECIPROCAL = 0x7FDE623822FC16E6
# Where the quotient of two numbers needs no scaling, and by how much they are scaled elsewhere.
FAR, DOWN, NEAR, UP = 2.0**900, 2.0**-200, 2.0**-900, 2.0**200


@scalar
def about_inverse(x: float) -> float:
    """1/x to a few hundredths, enough for what a rounding has lost."""
    y = from_bits(RECIPROCAL - bits(x))
    return y * fma(-x, y, 2.0)


@scalar
def _atan_sum(base: float, base_low: float, t: float, low: float) -> float:
    """base + atan(t) + low for |t| <= ATAN_MAX; base is zero or larger than t."""
    s = t * t
    low = fma(t * s, horner(s, ATAN), low)
    y = base + t
    return y + ((base - y) + t + (low + base_low))


@scalar
def atan(x: float) -> Any:
    """The arc tangent: pi/4 + atan((x - 1)/(x + 1)) in the middle, pi/2 - atan(1/x) beyond."""
    w = widen(x)
    a = magnitude(w)
    middle, beyond = a > ATAN_MAX, a > 2.0
    t = select(beyond, -1.0, select(middle, a - 1.0, a))
    t = t / select(beyond, a, select(middle, a + 1.0, 1.0))
    base = select(beyond, PIO2_1, select(middle, PIO4_1, 0.0))
    base_low = select(beyond, PIO2_2, select(middle, PIO4_2, 0.0))
    return narrow(copysign(_atan_sum(base, base_low, t, 0.0), w), x)


@scalar
def atan2(y: float, x: float) -> Any:
    """The angle of the point (x, y), with the special cases of IEEE 754."""
    b, a = widen(y), widen(x)
    abs_y, abs_x = magnitude(b), magnitude(a)
    steep = abs_y > abs_x
    p, q = select(steep, abs_x, abs_y), select(steep, abs_y, abs_x)
    scale = select(q > FAR, DOWN, select(q < NEAR, UP, 1.0))
    p, q = (
        select(q < math.inf, p * scale, select(p < q, 0.0, 1.0)),
        select(q < math.inf, q * scale, 1.0),
    )
    # The angle to the nearer axis is atan(p/q), near the diagonal pi/4 + atan((p - q)/(p + q)).
    middle = p > ATAN_MAX * q
    above, below = select(middle, p - q, p), select(middle, p + q, q)
    t = select(below == 0.0, 0.0, above / below)
    # Where the quotient is small, or tiny numbers lose digits, nothing of it is lost.
    low = select(magnitude(t) > 2.0**-30, fma(-t, below, above) * about_inverse(below), 0.0)
    near, near_low = select(middle, PIO4_1, 0.0), select(middle, PIO4_2, 0.0)
    # In the left half plane the angle is taken from pi, and where it is steep from pi/2.
    left = bits(a) < 0
    base = select(steep, PIO2_1, select(left, PI, 0.0))
    base_low = select(steep, PIO2_2, select(left, PI_LOW, 0.0))
    back = steep != left
    base, base_low = (
        select(back, base - near, base + near),
        select(back, base_low - near_low, base_low + near_low),
    )
    angle = _atan_sum(base, base_low, select(back, -t, t), select(back, -low, low))
    return narrow(select((a != a) | (b != b), a + b, copysign(angle, b)), y)


@scalar
def _asin_sum(base: float, base_low: float, t: float, low: float, z: float) -> float:
    """base + asin(t / 2) * 2 where z is t*t / 4, or base + asin(t) where it is t*t."""
    low = fma(t * z, horner(z, ASIN), low)
    y = base + t
    return y + ((base - y) + t + (low + base_low))


@scalar
def _half_angle(a: float) -> tuple[float, float, float]:
    """z, and 2*sqrt(z) in two parts, of z = (1 - a) / 2: asin(a) = pi/2 - 2*asin(sqrt(z))."""
    z = fma(-0.5, a, 0.5)
    s = math.sqrt(z)
    return z, 2.0 * s, fma(-s, s, z) * about_inverse(s)


@scalar
def asin(x: float) -> Any:
    """The arc sine."""
    w = widen(x)
    a = magnitude(w)
    beyond = a > 0.5
    z, t, low = _half_angle(a)
    z = select(beyond, z, a * a)
    base, base_low = select(beyond, PIO2_1, 0.0), select(beyond, PIO2_2, 0.0)
    y = _asin_sum(base, base_low, select(beyond, -t, a), select(beyond, -low, 0.0), z)
    return narrow(copysign(y, w), x)


@scalar
def acos(x: float) -> Any:
    """The arc cosine."""
    w = widen(x)
    a = magnitude(w)
    beyond = a > 0.5
    z, t, low = _half_angle(a)
    z = select(beyond, z, a * a)
    base = select(beyond, select(w > 0.0, 0.0, PI), PIO2_1)
    base_low = select(beyond, select(w > 0.0, 0.0, PI_LOW), PIO2_2)
    t, low = select(beyond, t, a), select(beyond, low, 0.0)
    # Twice the half angle is the angle itself to the right, and is taken from pi to the left.
    back = beyond != (w > 0.0)
    return narrow(_asin_sum(base, base_low, select(back, -t, t), select(back, -low, low), z), x)
