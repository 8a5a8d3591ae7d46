"""Logarithms of float32, computed in float32 (see `single`)."""

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
from tapegrad.kernels.simd import singles
from tapegrad.kernels.vmath.single_exponential import LN2_HI, LN2_LO, exp

SMALLEST = 2.0**-126  # below it numbers are subnormal
LARGE = 2.0**64
ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1/2)
# As the bits of a float32 it is 3 * 2**22, and its sum with a small integer that much more.
WHOLE = 0x4B400000
# (log(1 + f) - f + f**2/2) / f**3 for 1 + f from sqrt(1/2) to sqrt(2).
LOG = singles(
    0.3333333, -0.2500082, 0.20001242, -0.1662341, 0.14201586, -0.13159598, 0.12762143, -0.07636362
)
LOG2_E_REST = 0.4426950408889634  # 1/ln(2) - 1
LOG10_E, LOG10_E_LO = 0.4342944920063019, -1.0103050052231683e-08
LOG10_2_HI, LOG10_2_LO = 0.301025390625, 4.605038981195214e-06  # the first has 12 bits


@scalar
def _exponent(x: float) -> Any:
    """The n of x = 2**n * m, with m from sqrt(1/2) to sqrt(2), as an integer."""
    return (bits(x) - ROOT_HALF) >> 23


@scalar
def _number(n: int) -> Any:
    """A small integer as a float32."""
    return from_bits(n + WHOLE) - T(3.0 * 2.0**22)


@scalar
def _rest(f: float) -> Any:
    """log(1 + f) - f."""
    s = f * f
    return fma(f * s, horner(f, LOG), T(-0.5) * s)


@scalar
def _parts(x: float) -> tuple[float, float]:
    """f and n: x = 2**n * (1 + f)."""
    tiny = x < T(SMALLEST)
    w = select(tiny, x * T(2.0**23), x)
    n = _exponent(w)
    f = from_bits(bits(w) - (n << 23)) - T(1.0)
    return f, _number(n) - select(tiny, T(23.0), T(0.0))


@scalar
def _with_ends(y: float, x: float) -> Any:
    """A logarithm y, or what that of x is where it is no finite number."""
    y = select(x > T(0.0), y, select(x == T(0.0), T(-math.inf), T(math.nan)))
    return select(x < T(math.inf), y, x)


@scalar
def log(x: float) -> Any:
    """The natural logarithm."""
    f, n = _parts(x)
    y = fma(n, T(LN2_HI), f + fma(n, T(LN2_LO), _rest(f)))
    return _with_ends(y, x)


@scalar
def log2(x: float) -> Any:
    """The logarithm to base 2."""
    f, n = _parts(x)
    rest = _rest(f)
    y = n + (f + fma(f, T(LOG2_E_REST), fma(rest, T(LOG2_E_REST), rest)))
    return _with_ends(y, x)


@scalar
def log10(x: float) -> Any:
    """The logarithm to base 10."""
    f, n = _parts(x)
    low = fma(n, T(LOG10_2_LO), fma(f, T(LOG10_E_LO), _rest(f) * T(LOG10_E)))
    return _with_ends(fma(n, T(LOG10_2_HI), fma(f, T(LOG10_E), low)), x)


@scalar
def log1p(x: float) -> Any:
    """log(1 + x): 1 + x = 2**n * (1 + f), where f is what the sum would round away, too."""
    large = x > T(LARGE)
    w, one = select(large, x * T(2.0**-32), x), select(large, T(0.0), T(1.0))
    n = _exponent(w + one)
    scale = from_bits((127 - n) << 23)
    f = fma(scale, w, fma(scale, one, T(-1.0)))
    k = _number(n) + select(large, T(32.0), T(0.0))
    y = fma(k, T(LN2_HI), f + fma(k, T(LN2_LO), _rest(f)))
    y = select(x > T(-1.0), y, select(x == T(-1.0), T(-math.inf), T(math.nan)))
    return copysign(select(x < T(math.inf), y, x), x)


@scalar
def softplus(x: float) -> Any:
    """log(1 + e**x)."""
    return select(x > T(0.0), x, T(0.0)) + log1p(exp(-magnitude(x)))
