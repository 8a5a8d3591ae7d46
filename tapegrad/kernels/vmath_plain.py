"""Functions of ordinary arguments, in fewer instructions than those that serve all (see `vmath`).

A loop over one such function computes a block of elements, notes whether one of them was not
ordinary, and then does that block again by the function that serves them all.
"""

from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.lanes import bits, fma, from_bits, horner, magnitude, narrow, widen
from tapegrad.kernels.vmath_exp import EXP, LN2_HI, LN2_LO, LOG2_E, ROUND
from tapegrad.kernels.vmath_log import BASE, exponent, log1p_scaled, log_offset, mantissa

EXP_PLAIN = 708.0  # up to here exp and its inverse are normal numbers
# Positive numbers stand in the order of their bits. From 2**-900 on the square of a root loses
# nothing to underflow.
NORMAL_BITS, SQUARE_BITS, INF_BITS = 1 << 52, (1023 - 900) << 52, 0x7FF << 52
# from_bits(INVERSE_ROOT - (bits(x) >> 1)) is u**(1/2) * x**(-1/2), for a u between 0.750 and 0.844.
INVERSE_ROOT = 0x5FE40090C7B537A9
# u**(-1/2) there, to a relative 1.6e-5.
ROOT = (2.102161271478957, -1.7604419963420983, 0.6628477353725639)


@scalar
def exp_is_rare(x: float) -> Any:
    """Whether `exp_plain` does not serve x."""
    return not magnitude(widen(x)) <= EXP_PLAIN


@scalar
def exp_plain(x: float) -> Any:
    """e**x where that is a normal number."""
    w = widen(x)
    t = fma(w, LOG2_E, ROUND)
    n = t - ROUND
    lead = fma(n, -LN2_HI, w)
    low = n * -LN2_LO
    r = lead + low
    p = 1.0 + (lead + fma(r * r, horner(r, EXP), low))
    return narrow(from_bits(bits(p) + (bits(t) << 52)), x)


@scalar
def log_is_rare(x: float) -> Any:
    """Whether `log_plain` does not serve x."""
    b = bits(widen(x))
    return not ((b >= NORMAL_BITS) & (b < INF_BITS))


@scalar
def log_plain(x: float) -> Any:
    """The natural logarithm of a normal positive number."""
    offset = log_offset(widen(x))
    return narrow(log1p_scaled(mantissa(offset) - 1.0, exponent(offset, BASE)), x)


@scalar
def sqrt_is_rare(x: float) -> Any:
    """Whether `sqrt_plain` does not serve x."""
    b = bits(widen(x))
    return not (((b >= SQUARE_BITS) & (b < INF_BITS)) | (b == 0))


@scalar
def sqrt_plain(x: float) -> Any:
    """The square root, by Newton's method for its inverse.

    The processor's own instruction takes twice the time. The last step adds what is left of x to a
    root with an error of 1e-14: that sum is rounded once, after an error of 2**-80.
    """
    w = widen(x)
    y = from_bits(INVERSE_ROOT - (bits(w) >> 1))
    y = y * horner(w * y * y, ROOT)
    g, h = w * y, 0.5 * y
    e = fma(-g, h, 0.5)
    e = fma(1.5 * e, e, e)
    g, h = fma(g, e, g), fma(h, e, h)
    return narrow(fma(fma(-g, g, w), h, g), x)
