"""Exponentials of float32, computed in float32 (see `single`)."""

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
from tapegrad.kernels.simd import singles
from tapegrad.kernels.simd import times_power_f4 as times_power

LOG2_E = 1.4426950408889634
LN2_HI, LN2_LO = 0.693145751953125, 1.428606765330187e-06  # the first has 15 bits
# Beyond these exp and cosh have left the float32: infinity above, zero below.
EXP_MAX, EXP_MIN = 90.0, -104.0
# Adding it to a float32 below 2**22 leaves n + 254 in the low bits: two biased exponents.
ROUND = 3.0 * 2.0**22 + 254.0
# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/2; (2**r - 1) / r for |r| <= 1/2.
EXP = singles(0.49999994, 0.16666521, 0.041668389, 0.0083687454, 0.0013814544)
EXPM1 = singles(0.5, 0.16666666, 0.041666493, 0.0083335435, 0.0013932365, 0.00019764325)
EXP2 = singles(0.6931472, 0.24022648, 0.055503596, 0.009618506, 0.0013391024, 0.00015326796)
# (tanh(x) / x - 1) / s and (sinh(x) / x - 1) / s in s = x**2, up to TANH_NEAR and to 1.
TANH_NEAR, TANH_ONE = 0.625, 9.02
TANH = singles(-0.3333328, 0.13331406, -0.053736515, 0.020628167, -0.0056922967)
SINH = singles(0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-06)


@scalar
def _split(x: float) -> tuple[float, float]:
    """r and t: x = n * ln(2) + r with |r| <= ln(2)/2, and n + 254 in the low bits of t."""
    t = fma(x, T(LOG2_E), T(ROUND))
    n = t - T(ROUND)
    return fma(n, T(-LN2_LO), fma(n, T(-LN2_HI), x)), t


@scalar
def _near_one(r: float) -> Any:
    """e**r for |r| <= ln(2)/2."""
    return fma(r * r, horner(r, EXP), r) + T(1.0)


@scalar
def _split_exp(x: float) -> tuple[float, float]:
    """e**r and t, of what `_split` gives for an x that is cut off beyond EXP_MIN and EXP_MAX."""
    x = select(x > T(EXP_MAX), T(EXP_MAX), x)
    r, t = _split(select(x < T(EXP_MIN), T(EXP_MIN), x))
    return _near_one(r), t


@scalar
def exp(x: float) -> Any:
    """e**x."""
    p, t = _split_exp(x)
    return times_power(p, t)


@scalar
def exp2(x: float) -> Any:
    """2**x."""
    x = select(x > T(129.0), T(129.0), x)
    x = select(x < T(-151.0), T(-151.0), x)
    t = x + T(ROUND)
    r = x - (t - T(ROUND))
    return times_power(fma(r, horner(r, EXP2), T(1.0)), t)


@scalar
def expm1(x: float) -> Any:
    """e**x - 1: half of it first, since twice as much may be infinite."""
    w = select(x > T(89.0), T(89.0), x)
    r, t = _split(select(w < T(-18.0), T(-18.0), w))
    h = from_bits((bits(t) - 128) << 23)  # 2**(n - 1)
    y = fma(fma(r * r, horner(r, EXPM1), r), h, h - T(0.5))
    return copysign(y + y, x)


@scalar
def sinh(x: float) -> Any:
    """The hyperbolic sine."""
    a = magnitude(x)
    p, t = _split_exp(a)
    e = times_power(p, t - T(1.0))  # exp(a) / 2
    s = a * a
    y = select(a < T(1.0), fma(a * s, horner(s, SINH), a), e - T(0.25) / e)
    return copysign(y, x)


@scalar
def cosh(x: float) -> Any:
    """The hyperbolic cosine."""
    p, t = _split_exp(magnitude(x))
    e = times_power(p, t - T(1.0))
    return e + T(0.25) / e


@scalar
def tanh(x: float) -> Any:
    """The hyperbolic tangent."""
    a = magnitude(x)
    a = select(a > T(TANH_ONE), T(TANH_ONE), a)
    s = a * a
    near = fma(a * s, horner(s, TANH), a)
    r, t = _split(a + a)
    power = from_bits((bits(t) - 127) << 23)  # 2**n, which is not far from 1
    e = _near_one(r) * power
    y = select(a < T(TANH_NEAR), near, T(1.0) - T(2.0) / (e + T(1.0)))
    return copysign(y, x)


@scalar
def sigmoid(x: float) -> Any:
    """1 / (1 + e**-x): below 0 e**x / (1 + e**x)."""
    below = x < T(0.0)
    e = exp(select(below, x, -x))
    return select(below, e, T(1.0)) / (T(1.0) + e)
