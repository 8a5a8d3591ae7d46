"""The logarithm and what is made of it: log2, log10, log1p, softplus, logaddexp, power."""

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
from tapegrad.kernels.vmath.exponential import ONE_BITS, exp_sum

INF, NAN = math.inf, math.nan
MANTISSA = 2**52 - 1
SQRT_2_LESS_1 = math.sqrt(2.0) - 1.0
# ln 2 in two parts, the first of 42 bits so that its product with any exponent is exact.
LN2_SHORT, LN2_REST = 0.6931471805598903, 5.497923018708371e-14
# The same of log10(2), and 1/ln(2) and 1/ln(10) to 106 bits.
LG2_SHORT, LG2_REST = 0.30102999566395283, 2.8363394551044964e-14
LOG2_E, LOG2_E_LOW = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E, LOG10_E_LOW = 0.4342944819032518, 1.098319650216765e-17
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
OFFSET_BIAS = 1024 << 52
TWO_52_BITS = (1023 + 52) << 52
# What to take from 2**52 + (e + 1024); a subnormal has been multiplied by 2**54 before.
BASE, BASE_TINY = 2.0**52 + 1024.0, 2.0**52 + 1024.0 + 54.0
# (2*atanh(s)/s - 2) / z in z = s**2 for |s| <= 3 - sqrt(8), which is f/(2+f) at 1+f = sqrt(2).
LOG = (
    0.6666666666666734,
    0.39999999999414665,
    0.28571428742391763,
    0.2222219857271862,
    0.18183564350777,
    0.15314049926114753,
    0.14795955855658266,
)
# ((atanh(s)/s - 1) / z - 1/3) / z on the same interval.
ATANH = (
    0.1999999999999999,
    0.1428571428572255,
    0.11111111108769729,
    0.09090909434974227,
    0.07692278447953226,
    0.06668158231671364,
    0.05837418930072342,
    0.05994426160114136,
)
THIRD_HI, THIRD_LO = 1.0 / 3.0, 1.850371707708594e-17


@scalar
def log_offset(x: float) -> int:
    """Bits of x less those of sqrt(1/2), plus 1024 in the exponent field, for normal x > 0.

    Its exponent field is e + 1024 and its mantissa field is m's, in x = m * 2**e with
    sqrt(1/2) <= m < sqrt(2).
    """
    return bits(x) - (SQRT_HALF_BITS - OFFSET_BIAS)


@scalar
def mantissa(offset: int) -> float:
    """m of such bits."""
    return from_bits((offset & MANTISSA) + SQRT_HALF_BITS)


@scalar
def exponent(offset: int, base: float) -> float:
    """e of such bits, for the right base."""
    # Few machines convert vectors of int64 to double: put e + 1024 below the leading bit of 2**52.
    return from_bits(((offset >> 52) & 0xFFF) | TWO_52_BITS) - base


@scalar
def split(a: float) -> tuple[float, float]:
    """m, e with a = m * 2**e and sqrt(1/2) <= m < sqrt(2), for finite a > 0."""
    tiny = a < 2.0**-1022
    offset = log_offset(select(tiny, a * 2.0**54, a))
    return mantissa(offset), exponent(offset, select(tiny, BASE_TINY, BASE))


@scalar
def log1p_parts(f: float, e: float) -> tuple[float, float]:
    """e*ln(2) + log(1 + f) in two parts for sqrt(1/2) <= 1 + f < sqrt(2).

    With s = f/(2+f): log(1+f) = 2*atanh(s) = f - h + s*(h + R), h = f*f/2, R = 2*atanh(s)/s - 2.
    """
    s = f / (2.0 + f)
    z = s * s
    h = 0.5 * f * f
    tail = fma(s, fma(z, horner(z, LOG), h), -h)
    # hi + lo = e*ln(2) + f exactly: e*LN2_SHORT is exact and, unless zero, larger than f.
    hi = fma(e, LN2_SHORT, f)
    lo = fma(e, LN2_SHORT, -hi) + f
    return hi, lo + fma(e, LN2_REST, tail)


@scalar
def log1p_scaled(f: float, e: float) -> float:
    """The sum of `log1p_parts`."""
    hi, lo = log1p_parts(f, e)
    return hi + lo


@scalar
def _log_at_ends(y: float, w: float) -> float:
    """The logarithm y of w, set right where w is no positive number."""
    return select(w > 0.0, select(w < INF, y, w), select(w == 0.0, -INF, NAN))


@scalar
def log_parts(a: float) -> tuple[float, float]:
    """The natural logarithm of a >= 0 in two parts."""
    m, e = split(a)
    hi, lo = log1p_parts(m - 1.0, e)
    return _log_at_ends(hi, a), lo


@scalar
def log(x: float) -> Any:
    """The natural logarithm."""
    w = widen(x)
    m, e = split(w)
    return narrow(_log_at_ends(log1p_scaled(m - 1.0, e), w), x)


@scalar
def _mantissa_log(m: float, of_e: float, of_e_low: float) -> tuple[float, float]:
    """The logarithm of m in two parts, to a base for which that of e is given in two parts."""
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f
    tail = fma(-half, f, s * fma(z, horner(z, LOG), half * f))  # log(m) - f: see `log1p_scaled`
    p = f * of_e
    return p, fma(tail, of_e, fma(f, of_e_low, fma(f, of_e, -p)))


@scalar
def log2(x: float) -> Any:
    """The logarithm to base 2."""
    w = widen(x)
    m, e = split(w)
    p, rest = _mantissa_log(m, LOG2_E, LOG2_E_LOW)
    hi = e + p
    return narrow(_log_at_ends(hi + ((e - hi) + p + rest), w), x)


@scalar
def log10(x: float) -> Any:
    """The logarithm to base 10."""
    w = widen(x)
    m, e = split(w)
    p, rest = _mantissa_log(m, LOG10_E, LOG10_E_LOW)
    hi = fma(e, LG2_SHORT, p)
    lo = fma(e, LG2_SHORT, -hi) + p  # exact, as in `log1p_scaled`
    return narrow(_log_at_ends(hi + (lo + fma(e, LG2_REST, rest)), w), x)


@scalar
def log_sum(u: float, low: float) -> float:
    """log(u + low) for normal u > 0 and low tiny beside it."""
    offset = log_offset(u)
    # low * 2**-e, which matters only where 2**-e is a normal number.
    scale = from_bits(ONE_BITS + OFFSET_BIAS - (offset & ~MANTISSA))
    g = low * select(u < 2.0**60, scale, 0.0)
    m = mantissa(offset) - 1.0
    f = m + g
    lost = (m - f) + g
    return log1p_scaled(f, exponent(offset, BASE)) + lost * (1.0 - f)


@scalar
def log1p(x: float) -> Any:
    """log(1 + x)."""
    w = widen(x)
    u = 1.0 + w
    rounded = u - 1.0
    lost = (1.0 - (u - rounded)) + (w - rounded)  # 1 + x = u + lost exactly
    return narrow(_log_at_ends(copysign(log_sum(u, lost), w), u), x)


@scalar
def softplus(x: float) -> Any:
    """log(1 + e**x), accurate in both tails."""
    w = widen(x)
    z = exp_sum(-magnitude(w), 0.0)
    large = z > SQRT_2_LESS_1
    f = select(large, 0.5 * (z - 1.0), z)
    y = log1p_scaled(f, select(large, 1.0, 0.0))
    return narrow(select(w > 0.0, w, 0.0) + y, x)


@scalar
def logaddexp(x: float, y: float) -> Any:
    """log(e**x + e**y), which is the larger plus log(1 + e**-|x - y|)."""
    a, b = widen(x), widen(y)
    rest = softplus(-magnitude(a - b))
    return narrow(select(a == b, a + LN2_SHORT + LN2_REST, select(a > b, a, b) + rest), x)


@scalar
def power_of(r: float, x: float, w: float) -> float:
    """x**w, where r is |x|**w of ordinary numbers."""
    a = magnitude(x)
    r = select(a == 1.0, 1.0, r)
    # A negative base: the sign of an odd power, and no real value at a fraction (or at NaN).
    half = 0.5 * w
    odd = (nearest(half) != half) & (nearest(w) == w)
    r = select(odd, copysign(r, x), r)
    r = select((x < 0.0) & (a < INF) & (nearest(w) != w), NAN, r)
    return select((w == 0.0) | (x == 1.0), 1.0, r)


@scalar
def power(x: float, y: float) -> Any:
    """x**y, with the special cases of IEEE 754."""
    a, w = magnitude(widen(x)), widen(y)
    m, e = split(a)

    # s + s_low = (m - 1)/(m + 1), the divisor d + d_low being m + 1 exactly.
    f, d = m - 1.0, m + 1.0
    d_low = m - (d - 1.0)
    inverse = 1.0 / d
    s = f * inverse
    s_low = fma(-s, d_low, fma(-s, d, f)) * inverse
    z = s * s
    z_low = fma(2.0 * s, s_low, fma(s, s, -z))
    # atanh(s) = s + s*u with u = z*(1/3 + z*ATANH(z)), in pairs; 1/3 is by far the larger part.
    p = z * horner(z, ATANH)
    t = THIRD_HI + p
    t_low = (THIRD_HI - t) + p + THIRD_LO
    u = z * t
    u_low = fma(z, t_low, fma(z_low, t, fma(z, t, -u)))
    v = s * u
    v_low = fma(s, u_low, fma(s_low, u, fma(s, u, -v)))
    # log(a) = e*ln(2) + 2*s + 2*v + ...: two exact sums of a larger and a smaller number.
    big = e * LN2_SHORT
    s, v = 2.0 * s, 2.0 * v
    sv = s + v
    first = big + sv
    low = (big - first) + sv + ((s - sv) + v) + fma(e, LN2_REST, 2.0 * (s_low + v_low))
    log_a = first + low
    log_low = (first - log_a) + low
    log_a = select(a < INF, select(a > 0.0, log_a, -INF), a)

    product = w * log_a
    rest = fma(w, log_low, fma(w, log_a, -product))
    r = exp_sum(product, select(magnitude(product) < 1000.0, rest, 0.0))
    return narrow(power_of(r, widen(x), w), x)
