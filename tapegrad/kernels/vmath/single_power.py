"""Powers of float32 (see `single`): by float64, since their logarithm needs more digits than they.

Short polynomials do, and no number stands in two parts.
"""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import bits, fma, from_bits, horner, magnitude, narrow, select, widen
from tapegrad.kernels.vmath.logarithm import power_of

ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
# 3 * 2**51, as bits to which small integers are added; and as a number, plus which a double is
# rounded to a whole number, that stands in the low bits.
WHOLE_BITS, WHOLE = 0x4338000000000000, 3.0 * 2.0**51
# log2(1 + f) / f for 1 + f from sqrt(1/2) to sqrt(2), to a relative 2**-33.
LOG2 = (
    1.4426950409397403, -0.7213475252332058, 0.48089832058128257, -0.36067279772941463,
    0.28854065118065253, -0.24050428509530977, 0.20609616633495245, -0.1790452615718435,
    0.159001052599785, -0.15699164610486432, 0.15486555166178384, -0.08633883904168446,
)  # fmt: skip
# (2**r - 1) / r for |r| <= 1/2, to 2**-28.
EXP2 = (
    0.6931472028282499, 0.24022647888250157, 0.05550332451392424, 0.009618439796263338,
    0.0013398893079978398, 0.0001535282542887266,
)  # fmt: skip
MOST = 200.0  # beyond 2**MOST a float32 is infinite, below 2**-MOST it is zero


@scalar
def power(x: float, y: float) -> Any:
    """x**y, with the special cases of IEEE 754."""
    base, w = widen(x), widen(y)
    a = magnitude(base)
    b = bits(a)
    n = (b - ROOT_HALF) >> 52
    f = from_bits(b - (n << 52)) - 1.0
    log_a = fma(f, horner(f, LOG2), from_bits(n + WHOLE_BITS) - WHOLE)
    log_a = select(a < math.inf, select(a > 0.0, log_a, -math.inf), a)
    product = w * log_a
    product = select(product > MOST, MOST, product)
    product = select(product < -MOST, -MOST, product)
    t = product + WHOLE
    r = product - (t - WHOLE)
    p = fma(r, horner(r, EXP2), 1.0)
    return narrow(power_of(from_bits(bits(p) + (bits(t) << 52)), base, w), x)
