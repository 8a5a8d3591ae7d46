"""The inverses of the hyperbolic functions: asinh, acosh, atanh (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import copysign, fma, from_bits, horner, magnitude, narrow, select, widen
from tapegrad.kernels.vmath.exponential import ONE_BITS
from tapegrad.kernels.vmath.inverse_trigonometric import about_inverse
from tapegrad.kernels.vmath.logarithm import (
    BASE,
    LN2_REST,
    LN2_SHORT,
    LOG,
    MANTISSA,
    OFFSET_BIAS,
    exponent,
    log_offset,
    log_sum,
)

# From here on x*x + 1 and x*x - 1 are x*x, and both functions log(2x).
FAR = 2.0**28
LN2 = math.log(2.0)


@scalar
def _root_low(r: float, q: float, q_low: float) -> float:
    """What r, the rounded root of q, lacks of the root of q + q_low."""
    inverse = about_inverse(r)
    half = 0.5 * inverse * fma(-r, inverse, 2.0)  # 1/(2r), and large but finite at 0
    return half * (fma(-r, r, q) + q_low)


@scalar
def _log_of_sum(a: float, u: float, low: float) -> float:
    """log(u + low), and log(2a) where a is far."""
    far = a > FAR
    return log_sum(select(far, a, u), select(far, 0.0, low)) + select(far, LN2, 0.0)


@scalar
def asinh(x: float) -> Any:
    """log(x + sqrt(x*x + 1)), odd."""
    w = widen(x)
    a = magnitude(w)
    s = a * a
    q = s + 1.0
    high, low = select(s > 1.0, s, 1.0), select(s > 1.0, 1.0, s)
    r = math.sqrt(q)
    u = r + a
    y = _log_of_sum(a, u, (r - u) + a + _root_low(r, q, (high - q) + low + fma(a, a, -s)))
    # Near 0 the sum has no digits of x; its Taylor series needs few terms.
    near = fma(a * s, fma(s, 0.075, -1.0 / 6.0), a)
    y = select(a < 2.0**-9, near, select(a < math.inf, y, a))
    return narrow(copysign(y, w), x)


@scalar
def acosh(x: float) -> Any:
    """log(x + sqrt(x*x - 1)), NaN below 1."""
    w = widen(x)
    s = w * w
    p = s - 1.0
    p_low = (s - p) - 1.0 + fma(w, w, -s)
    q = p + p_low
    r = math.sqrt(q)
    u = w + r
    y = _log_of_sum(w, u, (w - u) + r + _root_low(r, q, (p - q) + p_low))
    return narrow(select(w >= 1.0, select(w < math.inf, y, w), math.nan), x)


@scalar
def atanh(x: float) -> Any:
    """Half of log((1 + x) / (1 - x)), odd.

    With that quotient m * 2**e, it is e*ln(2)/2 + atanh((m - 1)/(m + 1)), and the last quotient is
    (1 + x - 2**e * (1 - x)) / (1 + x + 2**e * (1 - x)).
    """
    w = widen(x)
    a = magnitude(w)
    p, q = 1.0 + a, 1.0 - a
    p_low, q_low = a - (p - 1.0), (1.0 - q) - a
    inverse = about_inverse(q)
    offset = log_offset(p * inverse * fma(-q, inverse, 2.0))  # enough to find e
    power = from_bits((offset & ~MANTISSA) + (ONE_BITS - OFFSET_BIAS))
    above = fma(-power, q, p) + fma(-power, q_low, p_low)
    s = above / fma(power, q, p)
    z = s * s
    half_e = 0.5 * exponent(offset, BASE)
    lead = half_e * LN2_SHORT
    y = lead + s
    low = fma(half_e, LN2_REST, 0.5 * s * (z * horner(z, LOG)))
    y = y + ((lead - y) + s + low)
    y = select(a < 1.0, y, select(a == 1.0, math.inf, math.nan))
    return narrow(copysign(y, w), x)
