"""Functions of ordinary arguments, in fewer instructions than those that serve all (see `vmath`).

A loop over such functions computes a block of elements, notes whether one of them was not ordinary,
and then does that block again by the functions that serve them all.  What is looked up in tables of
sixteen brings arguments so near to a point that short polynomials do.
"""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import (
    bits,
    fma,
    from_bits,
    horner,
    inverse_root,
    narrow,
    select,
    table,
    widen,
)
from tapegrad.kernels.simd_tables import from_number
from tapegrad.kernels.vmath.exponential import EXPONENT, LN2_LO, ROUND

EXP_HIGH, EXP_LOW = 671.0, -746.0  # the sixteenth powers below stand 2**54 higher than they are
STEPS_PER_UNIT = 16.0 / math.log(2.0)
STEP_HI, STEP_LO = math.log(2.0) / 16.0, LN2_LO / 16.0
# 2**(i/16), without i in the bits to which a count of sixteenths brings it, and what that lacks.
POWER = table([from_number(2.0 ** (i / 16.0), (54 << 52) - (i << 48)) for i in range(16)])
POWER_REST = table([
    0.0, 8.189317638195514e-17, -2.7939114859515733e-17, 7.826573258636075e-17,
    3.3484623336251524e-17, 3.7508542013031266e-17, 1.9572585293112036e-17, 5.68648095791174e-17,
    -6.835808657661923e-17, -2.3591094770850053e-17, 5.1548301170786783e-17,
    1.5341410053603723e-17, 4.875160526227061e-17, 1.685487290628973e-17, 1.790126907604513e-17,
    -5.5450656186394274e-17,
])  # fmt: skip
# (exp(r) - 1 - r) / r**2 for |r| <= ln(2)/32.
EXP_NEAR = (
    0.5,
    0.16666666665301144,
    0.041666666664959766,
    0.008333449724528355,
    0.0013889034377693012,
)
# Positive numbers stand in the order of their bits. From 2**-900 on the square of a root loses
# nothing to underflow.
SQUARE_BITS = (1023 - 900) << 52
# from_bits(INVERSE_ROOT - (bits(x) >> 1)) is u**(1/2) * x**(-1/2), for a u between 0.750 and 0.844.
INVERSE_ROOT = 0x5FE40090C7B537A9
# u**(-1/2) there, to a relative 1.6e-5.
ROOT = (2.102161271478957, -1.7604419963420983, 0.6628477353725639)


@scalar
def exp_is_rare(x: float) -> Any:
    """Whether `exp_plain` does not serve x."""
    return widen(x) > EXP_HIGH


@scalar
def plain_exp_sum(x: float, low: float) -> float:
    """exp(x + low) for EXP_LOW <= x <= EXP_HIGH and a low that is tiny beside x, or zero."""
    t = fma(x, STEPS_PER_UNIT, ROUND)
    n = t - ROUND
    r = fma(n, -STEP_LO, fma(n, -STEP_HI, x) + low)
    p = from_bits(bits(POWER(bits(t))) + (bits(t) << 48))
    p = fma(p, fma(r, fma(r, horner(r, EXP_NEAR), 1.0), POWER_REST(bits(t))), p)
    return p * 2.0**-54


@scalar
def exp_plain(x: float) -> Any:
    """e**x up to EXP_HIGH, with zero and subnormal numbers below."""
    w = widen(x)
    return narrow(plain_exp_sum(select(w < EXP_LOW, EXP_LOW, w), -0.0), x)


@scalar
def sqrt_is_rare(x: float) -> Any:
    """Whether `sqrt_plain` does not serve x."""
    b = bits(widen(x))
    return (((b >= SQUARE_BITS) & (b < EXPONENT)) | (b == 0)) ^ True


@scalar
def sqrt_plain(x: float) -> Any:
    """The square root, by Newton's method for its inverse.

    The processor's own instruction takes twice the time. The last step adds what is left of x to a
    root with an error of 2**-40: that sum is rounded once, after an error of 2**-80.
    """
    w = widen(x)
    y = from_bits(INVERSE_ROOT - (bits(w) >> 1))
    y = inverse_root(w, y * horner(w * y * y, ROOT))
    y = select(bits(w) != 0, y, 0.0)  # where the processor's is infinite
    g, h = w * y, 0.5 * y
    e = fma(-g, h, 0.5)
    e = fma(1.5 * e, e, e)
    g, h = fma(g, e, g), fma(h, e, h)
    return narrow(fma(fma(-g, g, w), h, g), x)
