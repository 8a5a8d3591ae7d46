"""Sine, cosine and tangent of ordinary arguments (see `fast_exponential`)."""

from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import bits, fma, from_bits, horner, horner_select, narrow, select, widen
from tapegrad.kernels.vmath.exponential import ROUND
from tapegrad.kernels.vmath.trigonometric import COS, PIO2_1, PIO2_2, SIGN, SIN, TWO_OVER_PI

LESS_SIN, LESS_COS = tuple([-c for c in SIN]), tuple([-c for c in COS])
SMALLEST = 2.0**-1022
ANGLE_LEFT = 2.0**-84  # the square of what h is at least for each pi/2


@scalar
def _angle(x: float) -> tuple[float, float, float, int]:
    """n, h, l, q with x = n*pi/2 + h - l and |h| <= pi/4, where h is not too small beside n."""
    t = fma(x, TWO_OVER_PI, ROUND)
    n = t - ROUND
    r = fma(n, -PIO2_1, x)  # exact: both sides are multiples of 2**-52, their difference below 1
    h = fma(n, -PIO2_2, r)
    return n, h, fma(n, PIO2_2, h - r), bits(t)


@scalar
def angle_is_rare(x: float) -> Any:
    """Whether `sin_plain`, `cos_plain` and `tan_plain` do not serve x: few bits of h are left."""
    n, h, _, _ = _angle(widen(x))
    # Less a little, so that 0 is served; what overflows on both sides is not, but NaN is.
    return h * h <= fma(n, n * ANGLE_LEFT, -SMALLEST)


@scalar
def _sin_near(h: float, low: float, q: int) -> float:
    """sin(q*pi/2 + h - low): a sine where q is even, a cosine where it is odd."""
    odd = (q & 1) == 1
    s = h * h
    w = fma(-0.5, s, 1.0)
    # What is taken away, so that -0 stays itself.
    p = horner_select(odd, s, LESS_COS, LESS_SIN)
    rest = select(odd, fma(-h, low, fma(0.5, s, w - 1.0)), low * w)
    y = select(odd, w, h) - fma(select(odd, s, h) * s, p, rest)
    return from_bits(bits(y) ^ ((q << 62) & SIGN))


@scalar
def sin_plain(x: float) -> Any:
    """The sine."""
    _, h, low, q = _angle(widen(x))
    return narrow(_sin_near(h, low, q), x)


@scalar
def cos_plain(x: float) -> Any:
    """The cosine."""
    _, h, low, q = _angle(widen(x))
    return narrow(_sin_near(h, low, q + 1), x)


@scalar
def tan_plain(x: float) -> Any:
    """The tangent: minus the cotangent in odd quadrants."""
    _, h, low, q = _angle(widen(x))
    s = h * h
    c = fma(-0.5, s, 1.0)
    sine = h - fma(h * s, horner(s, LESS_SIN), low * c)
    cosine = c - fma(s * s, horner(s, LESS_COS), fma(-h, low, fma(0.5, s, c - 1.0)))
    odd = (q & 1) == 1
    return narrow(select(odd, -cosine, sine) / select(odd, sine, cosine), x)
