"""The exponential and what is made of it: exp2, expm1, sigmoid, tanh, sinh, cosh."""

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

# Adding 3 * 2**51 to a double below 2**51 rounds it to an integer, left in the low bits of the sum.
ROUND = 3.0 * 2.0**51
EXPONENT = 0x7FF << 52
ONE_BITS = 1023 << 52

LOG2_E = 1.0 / math.log(2.0)
LN2_HI, LN2_LO = math.log(2.0), 2.3190468138462996e-17
# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2.
EXP = (
    0.5000000000000006,
    0.16666666666666588,
    0.04166666666657665,
    0.008333333333389604,
    0.001388888893160125,
    0.00019841269718929162,
    2.4801505227149246e-05,
    2.7557407568541033e-06,
    2.7626057448886907e-07,
    2.5053783267166418e-08,
)
# (2**r - 1 - r*ln(2)) / r**2 for |r| <= 1/2.
EXP2 = (
    0.24022650695910122,
    0.05550410866482073,
    0.009618129107597,
    0.0013333558146686813,
    0.00015403530454055655,
    1.5252733546460505e-05,
    1.3215436611796638e-06,
    1.0178184727467966e-07,
    7.073579168290509e-09,
    4.436304282475023e-10,
)
# (sinh(r)/r - 1) / s and (cosh(r) - 1) / s in s = r**2 for |r| <= ln(2)/2.
SINH = (
    0.16666666666666677,
    0.008333333333321601,
    0.0001984126988619946,
    2.7557244136568394e-06,
    2.5109062017333616e-08,
)
COSH = (
    0.5000000000000013,
    0.04166666666651411,
    0.0013888888947312234,
    2.480148966609853e-05,
    2.763137128537167e-07,
)
# Where exp leaves the doubles: infinity above, zero below (with room for the last subnormal).
EXP_MAX, EXP_MIN = 710.0, -746.0
# A rounding constant that leaves n + 2046 in the low bits: the sum of two biased exponents.
ROUND_SPLIT = ROUND + 2046.0
SIGMOID_CAP = ROUND + 1000.0


@scalar
def times_power(p: float, b: int) -> float:
    """p * 2**n, where n + 2046 stands in the low bits of b.

    In two factors, since n runs past the exponents of doubles on both sides; the first product is
    exact, so subnormals are rounded once.
    """
    half = (b << 51) & EXPONENT
    return p * from_bits(half) * from_bits((b << 52) - half)


@scalar
def exp_parts(x: float, low: float) -> tuple[float, float, int]:
    """u, v, b with exp(x + low) = (1 + u + v) * 2**n, n + 2046 being in the low bits of b.

    For a low that is tiny beside x, or zero; |u| is less than 0.35 and v is less than u*u.
    """
    x = select(x > EXP_MAX, EXP_MAX, x)
    x = select(x < EXP_MIN, EXP_MIN, x)
    t = fma(x, LOG2_E, ROUND_SPLIT)
    n = t - ROUND_SPLIT
    lead = fma(n, -LN2_HI, x)  # exact; what is lost in r comes back with the quadratic term
    low = fma(n, -LN2_LO, low)
    r = lead + low
    return lead, fma(r * r, horner(r, EXP), low), bits(t)


@scalar
def exp_sum(x: float, low: float) -> float:
    """exp(x + low) for a low that is tiny beside x, or zero."""
    lead, rest, b = exp_parts(x, low)
    return times_power(1.0 + (lead + rest), b)


@scalar
def exp2(x: float) -> Any:
    """2**x."""
    w = widen(x)
    w = select(w > 1030.0, 1030.0, w)
    w = select(w < -1080.0, -1080.0, w)
    t = w + ROUND_SPLIT
    r = w - (t - ROUND_SPLIT)
    lead = r * LN2_HI
    p = 1.0 + (lead + fma(r * r, horner(r, EXP2), fma(r, LN2_LO, fma(r, LN2_HI, -lead))))
    return narrow(times_power(p, bits(t)), x)


@scalar
def exp(x: float) -> Any:
    """e**x."""
    return narrow(exp_sum(widen(x), 0.0), x)


@scalar
def half_expm1(x: float, low: float) -> float:
    """(exp(x + low) - 1) / 2 for -40 <= x <= 710: n reaches 1024, but 2**(n-1) stays finite."""
    t = fma(x, LOG2_E, ROUND)
    n = t - ROUND
    lead = fma(n, -LN2_HI, x)
    low = fma(n, -LN2_LO, low)
    r = lead + low
    h = from_bits((bits(t) << 52) + (1022 << 52))
    return fma(h, fma(r * r, horner(r, EXP), low), fma(h, lead, h - 0.5))


@scalar
def expm1(x: float) -> Any:
    """e**x - 1."""
    w = widen(x)
    c = select(w > EXP_MAX, EXP_MAX, w)
    c = select(c < -40.0, -40.0, c)
    # Halving a subnormal would lose its last bit, and -0 its sign.
    return narrow(select(magnitude(w) < 2.0**-60, w, 2.0 * half_expm1(c, 0.0)), x)


@scalar
def sigmoid(x: float) -> Any:
    """1 / (1 + e**-x), accurate in both tails."""
    a = -widen(x)
    a = select(a > -EXP_MIN, -EXP_MIN, a)
    a = select(a < -40.0, -40.0, a)
    t = fma(a, LOG2_E, ROUND)
    n = t - ROUND
    lead, low = fma(n, -LN2_HI, a), n * -LN2_LO
    r = lead + low
    p = lead + fma(r * r, horner(r, EXP), low)
    # (1 + exp(a)) / 2 = 1/2 + h + h*p, rounded once; where 2**n would overflow, a part of it is
    # divided out at the end.
    capped = select(t > SIGMOID_CAP, SIGMOID_CAP, t)
    h = from_bits((bits(capped) << 52) + (1022 << 52))
    rest = from_bits(ONE_BITS - ((bits(t) - bits(capped)) << 52))
    return narrow(0.5 / fma(h, p, 0.5 + h) * rest, x)


@scalar
def tanh(x: float) -> Any:
    """The hyperbolic tangent: m / (m + 1) with m = (exp(2|x|) - 1) / 2."""
    w = widen(x)
    a = 2.0 * magnitude(w)
    m = half_expm1(select(a > 44.0, 44.0, a), 0.0)
    d = m + 1.0
    d_low = m - (d - 1.0)
    y = m / d
    # What the sum and the quotient lost, divided by d in turn: 1/d is 1 - y. As y nears 1 that
    # difference has no digits left, but then little is lost.
    lost = fma(-y, d_low, fma(-y, d, m))
    y = fma(select(m < 4.0, lost, 0.0), 1.0 - y, y)
    return narrow(copysign(y, w), x)


@scalar
def _hyperbolic(a: float) -> tuple[float, float, float, float]:
    """Sinh and cosh - 1 of r, half the sinh and cosh of n*ln(2), where a = n*ln(2) + r >= 0."""
    a = select(a > 710.6, 710.6, a)
    t = fma(a, LOG2_E, ROUND)
    n = t - ROUND
    r = fma(n, -LN2_LO, fma(n, -LN2_HI, a))
    s = r * r
    up = (bits(t) << 52) + (1021 << 52)
    grown = from_bits(up)  # 2**(n-2)
    shrunk = select(a < 50.0, from_bits((2042 << 52) - up), 0.0)  # 2**(-n-2)
    return fma(r * s, horner(s, SINH), r), s * horner(s, COSH), grown - shrunk, grown + shrunk


@scalar
def sinh(x: float) -> Any:
    """The hyperbolic sine, by the addition theorem: no division and no second exponential."""
    w = widen(x)
    sinh_r, cosh_r_less_1, sinh_n, cosh_n = _hyperbolic(magnitude(w))
    y = 2.0 * (sinh_n + fma(cosh_n, sinh_r, sinh_n * cosh_r_less_1))
    return narrow(select(magnitude(w) < 2.0**-60, w, copysign(y, w)), x)


@scalar
def cosh(x: float) -> Any:
    """The hyperbolic cosine."""
    sinh_r, cosh_r_less_1, sinh_n, cosh_n = _hyperbolic(magnitude(widen(x)))
    return narrow(2.0 * (cosh_n + fma(sinh_n, sinh_r, cosh_n * cosh_r_less_1)), x)
