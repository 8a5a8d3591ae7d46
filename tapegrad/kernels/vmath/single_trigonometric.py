"""Functions of angles, of float32, computed in float32 (see `single`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import select_f4 as select
from tapegrad.kernels.simd import F32 as T
from tapegrad.kernels.simd import bits_f4 as bits
from tapegrad.kernels.simd import copysign_f4 as copysign
from tapegrad.kernels.simd import fma_f4 as fma
from tapegrad.kernels.simd import from_bits_f4 as from_bits
from tapegrad.kernels.simd import horner_f4 as horner
from tapegrad.kernels.simd import magnitude_f4 as magnitude
from tapegrad.kernels.simd import root_f4 as root
from tapegrad.kernels.simd import singles
from tapegrad.kernels.vmath.trigonometric import cos_any as far_cos
from tapegrad.kernels.vmath.trigonometric import sin_any as far_sin
from tapegrad.kernels.vmath.trigonometric import tan_any as far_tan

SIGN = -(2**31)
ANGLE_MAX = 2.0**19  # up to which the three parts of pi/2 serve
TWO_OVER_PI = 2.0 / math.pi
PIO2_1, PIO2_2, PIO2_3 = 1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15
ROUND = 3.0 * 2.0**22
# (sin(r)/r - 1) / s, (cos(r) - 1 + s/2) / s**2 and (tan(r)/r - 1) / s in s = r**2, |r| <= pi/4.
SIN = singles(-0.16666655, 0.0083321873, -0.00019517897)
COS = singles(0.041666646, -0.0013887309, 2.4432327e-05)
TAN = singles(
    0.3333335, 0.13332672, 0.054059446, 0.02128277, 0.010837704, 8.385931e-05, 0.0043803686
)
# (atan(t)/t - 1) / s up to 1, and (asin(t)/t - 1) / s up to 1/2, in s = t**2.
ATAN = singles(
    -0.333333, 0.19998521, -0.1426385, 0.10949714, -0.08395131, 0.057798035, -0.03100294,
    0.010812617, -0.0017690925,
)  # fmt: skip
ASIN = singles(0.16666752, 0.074953094, 0.045469154, 0.024184743, 0.042158388)


@scalar
def angle_is_large(x: float) -> Any:
    """Whether `sin`, `cos` and `tan` do not serve x."""
    return magnitude(x) > T(ANGLE_MAX)


@scalar
def _reduce(x: float) -> tuple[float, int]:
    """r and q: x = q * pi/2 + r with |r| <= pi/4; only the two low bits of q count."""
    t = fma(x, T(TWO_OVER_PI), T(ROUND))
    n = t - T(ROUND)
    # The first step is exact: both sides are multiples of 2**-23, their difference is below 1.
    return fma(n, T(-PIO2_3), fma(n, T(-PIO2_2), fma(n, T(-PIO2_1), x))), bits(t)


@scalar
def _sin_quadrant(r: float, q: int) -> Any:
    """sin(q*pi/2 + r): a sine where q is even, a cosine where it is odd."""
    s = r * r
    sine = fma(r * s, horner(s, SIN), r)
    cosine = fma(s * s, horner(s, COS), fma(T(-0.5), s, T(1.0)))
    y = select((q & 1) == 1, cosine, sine)
    return from_bits(bits(y) ^ ((q << 30) & SIGN))


@scalar
def sin(x: float) -> Any:
    """The sine for |x| <= ANGLE_MAX."""
    r, q = _reduce(x)
    return select(x == T(0.0), x, _sin_quadrant(r, q))


@scalar
def cos(x: float) -> Any:
    """The cosine for |x| <= ANGLE_MAX."""
    r, q = _reduce(x)
    return _sin_quadrant(r, q + 1)


@scalar
def tan(x: float) -> Any:
    """The tangent for |x| <= ANGLE_MAX: minus the cotangent in odd quadrants."""
    r, q = _reduce(x)
    s = r * r
    y = fma(r * s, horner(s, TAN), r)
    y = select((q & 1) == 1, T(-1.0) / y, y)
    return select(x == T(0.0), x, y)


@scalar
def sin_any(x: float) -> Any:
    """The sine of any number; the branch keeps a loop over it scalar."""
    return far_sin(x) if angle_is_large(x) else sin(x)


@scalar
def cos_any(x: float) -> Any:
    """The cosine of any number; the branch keeps a loop over it scalar."""
    return far_cos(x) if angle_is_large(x) else cos(x)


@scalar
def tan_any(x: float) -> Any:
    """The tangent of any number; the branch keeps a loop over it scalar."""
    return far_tan(x) if angle_is_large(x) else tan(x)


@scalar
def _atan_of(t: float) -> Any:
    """atan(t) - t for |t| <= 1."""
    s = t * t
    return t * s * horner(s, ATAN)


@scalar
def atan(x: float) -> Any:
    """The arc tangent: pi/2 - atan(1/x) beyond 1."""
    a = magnitude(x)
    beyond = a > T(1.0)
    t = select(beyond, T(-1.0), a) / select(beyond, a, T(1.0))
    low = _atan_of(t) + select(beyond, T(PIO2_2), T(0.0))
    return copysign(select(beyond, T(PIO2_1), T(0.0)) + (t + low), x)


@scalar
def atan2(y: float, x: float) -> Any:
    """The angle of the point (x, y), with the special cases of IEEE 754."""
    abs_y, abs_x = magnitude(y), magnitude(x)
    steep = abs_y > abs_x
    p, q = select(steep, abs_x, abs_y), select(steep, abs_y, abs_x)
    scale = select(q > T(2.0**64), T(2.0**-64), T(2.0**32))
    t = select(q == T(0.0), T(0.0), (p * scale) / (q * scale))
    t = select(q == T(math.inf), select(p < q, T(0.0), T(1.0)), t)
    # In the left half plane the angle is taken from pi, and where it is steep from pi/2.
    left = bits(x) < 0
    base = select(steep, T(PIO2_1), select(left, T(2.0 * PIO2_1), T(0.0)))
    low = select(steep, T(PIO2_2), select(left, T(2.0 * PIO2_2), T(0.0)))
    back = steep != left
    rest = _atan_of(t)
    angle = base + (select(back, -t, t) + (select(back, -rest, rest) + low))
    return select((x != x) | (y != y), x + y, copysign(angle, y))


@scalar
def _half_angle(x: float) -> tuple[bool, float, float]:
    """Whether |x| is above 1/2, and t and asin(t) - t, with t = sqrt((1 - |x|) / 2) or |x|."""
    a = magnitude(x)
    beyond = a > T(0.5)
    s = select(beyond, fma(T(-0.5), a, T(0.5)), a * a)
    t = select(beyond, root(s), a)
    return beyond, t, t * s * horner(s, ASIN)


@scalar
def asin(x: float) -> Any:
    """The arc sine: pi/2 - 2*asin(sqrt((1 - x) / 2)) beyond 1/2."""
    beyond, t, rest = _half_angle(x)
    far = T(PIO2_1) - (T(2.0) * t + (T(2.0) * rest - T(PIO2_2)))
    return copysign(select(beyond, far, t + rest), x)


@scalar
def acos(x: float) -> Any:
    """The arc cosine: twice the half angle to the right, taken from pi to the left."""
    beyond, t, rest = _half_angle(x)
    right = T(2.0) * (t + rest)
    left = T(2.0) * (T(PIO2_1) - (t + (rest - T(PIO2_2))))
    y = copysign(t, x) + (copysign(rest, x) - T(PIO2_2))
    return select(beyond, select(x > T(0.0), right, left), T(PIO2_1) - y)
