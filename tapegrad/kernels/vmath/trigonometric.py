"""Sine, cosine and tangent (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import (
    bits,
    fma,
    from_bits,
    horner,
    horner_select,
    magnitude,
    narrow,
    select,
    widen,
)
from tapegrad.kernels.vmath.exponential import ROUND

SIGN = -(2**63)
# pi/2 to 160 bits.
PI = math.pi
TWO_OVER_PI = 2.0 / math.pi
PIO2_1, PIO2_2, PIO2_3 = math.pi / 2, 6.123233995736766e-17, -1.4973849048591698e-33
# The pi/2 of 160 bits serves this far; beyond, libm's many-word reduction is needed.
TRIG_MAX = 2.0**40
# (sin(r)/r - 1) / s and (cos(r) - 1 + s/2) / s**2 in s = r**2 for |r| <= pi/4.
SIN = (
    -0.1666666666666663,
    0.008333333333322063,
    -0.000198412698295437,
    2.755731360493023e-06,
    -2.505074510435547e-08,
    1.5896071530333328e-10,
)
COS = (
    0.041666666666666595,
    -0.0013888888888872978,
    2.480158728880144e-05,
    -2.755731416439405e-07,
    2.0875698766361016e-09,
    -1.1358426563479913e-11,
)


@scalar
def angle_is_large(x: float) -> Any:
    """Whether `sin`, `cos` and `tan` do not serve x."""
    return magnitude(widen(x)) > TRIG_MAX


@scalar
def _reduce(x: float) -> tuple[float, float, int]:
    """h, l, q with x = q*pi/2 + h + l, |h| <= pi/4; only the two low bits of q count."""
    x = select(magnitude(x) <= TRIG_MAX, x, math.nan)
    t = fma(x, TWO_OVER_PI, ROUND)
    n = t - ROUND
    r = fma(n, -PIO2_1, x)  # exact: both sides are multiples of 2**-52, their difference below 1
    # r - n*PIO2_2 = h + low: r may be the smaller of the two, so the sum takes Knuth's six steps.
    p = n * PIO2_2
    h = r - p
    back = h - r
    low = (r - (h - back)) - (p + back)
    return h, low - fma(n, PIO2_3, fma(n, PIO2_2, -p)), bits(t)


@scalar
def _sin_quadrant(h: float, low: float, q: int) -> float:
    """sin(q*pi/2 + h + low): a sine where q is even, a cosine where it is odd."""
    odd = (q & 1) == 1
    s = h * h
    w = fma(-0.5, s, 1.0)
    p = horner_select(odd, s, COS, SIN)
    lead = select(odd, w, h)
    rest = select(odd, fma(-h, low, fma(-0.5, s, 1.0 - w)), low * w)
    y = lead + fma(select(odd, s, h) * s, p, rest)
    return from_bits(bits(y) ^ ((q << 62) & SIGN))


@scalar
def sin(x: float) -> Any:
    """The sine for |x| <= TRIG_MAX, NaN beyond."""
    w = widen(x)
    h, low, q = _reduce(w)
    return narrow(select(w == 0.0, w, _sin_quadrant(h, low, q)), x)


@scalar
def cos(x: float) -> Any:
    """The cosine for |x| <= TRIG_MAX, NaN beyond."""
    h, low, q = _reduce(widen(x))
    return narrow(_sin_quadrant(h, low, q + 1), x)


@scalar
def tan(x: float) -> Any:
    """The tangent for |x| <= TRIG_MAX, NaN beyond: minus the cotangent in odd quadrants."""
    w = widen(x)
    h, low, q = _reduce(w)
    s = h * h
    c = fma(-0.5, s, 1.0)
    sine = h + fma(h * s, horner(s, SIN), low * c)
    cosine = c + fma(s * s, horner(s, COS), fma(-h, low, fma(-0.5, s, 1.0 - c)))
    odd = (q & 1) == 1
    y = select(odd, -cosine, sine) / select(odd, sine, cosine)
    return narrow(select(w == 0.0, w, y), x)


@scalar
def sin_any(x: float) -> Any:
    """The sine of any number; the branch keeps a loop over it scalar."""
    w = widen(x)
    return sin(x) if magnitude(w) <= TRIG_MAX else narrow(math.sin(w), x)


@scalar
def cos_any(x: float) -> Any:
    """The cosine of any number; the branch keeps a loop over it scalar."""
    w = widen(x)
    return cos(x) if magnitude(w) <= TRIG_MAX else narrow(math.cos(w), x)


@scalar
def tan_any(x: float) -> Any:
    """The tangent of any number; the branch keeps a loop over it scalar."""
    w = widen(x)
    return tan(x) if magnitude(w) <= TRIG_MAX else narrow(math.tan(w), x)


@scalar
def sinc(x: float) -> Any:
    """sin(pi*x) / (pi*x), and 1 at 0; as in NumPy pi*x is rounded first."""
    t = PI * widen(x)
    return narrow(select(t == 0.0, 1.0, sin(t) / t), x)


@scalar
def sinc_any(x: float) -> Any:
    """`sinc` of any number; libm's branches keep a loop over it scalar."""
    t = PI * widen(x)
    return narrow(select(t == 0.0, 1.0, sin_any(t) / t), x)
