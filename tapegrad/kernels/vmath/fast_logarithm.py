"""The logarithm, and what is made of it, of ordinary arguments (see `fast_exponential`)."""

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
    table,
    widen,
)
from tapegrad.kernels.vmath.exponential import EXPONENT, ONE_BITS
from tapegrad.kernels.vmath.fast_exponential import EXP_HIGH, plain_exp_sum
from tapegrad.kernels.vmath.logarithm import (
    BASE,
    LN2_REST,
    LN2_SHORT,
    MANTISSA,
    OFFSET_BIAS,
    exponent,
)

NORMAL_BITS = 1 << 52
# The bits from which sixteenths of the numbers between 0.703 and 1.406 are counted; the ninth
# reaches from 1 - 2**-6 to 1 + 2**-5.
LOG_FROM = 0x3FE68 << 44
# About 1/m in each, of so few bits that beside 1 the product with m is exact, and less its
# logarithm in two parts, the first of a multiple of 2**-43.
INVERSE = table([
    1.390625, 1.333984375, 1.279296875, 1.23046875, 1.185546875, 1.142578125, 1.103515625,
    1.06640625, 1.03125, 1.0, 0.9375, 0.888671875, 0.841796875, 0.80078125, 0.76171875, 0.7265625,
])  # fmt: skip
LOG_OF = table([
    -0.3297532863724655, -0.2881702345313215, -0.24631061059574222, -0.207395194346077,
    -0.17020416601997113, -0.13328722219239353, -0.09850110610693719, -0.06429435070538148,
    -0.03077165866670839, 0.0, 0.0645385211375924, 0.11802720608852724, 0.1722165349357283,
    0.22216746534115828, 0.27217788591576664, 0.31943077076641657,
])  # fmt: skip
LOG_REST = table([
    -2.500123826022799e-15, 3.92332671740984e-14, -1.9152748332437246e-15, 6.418161948718703e-15,
    -1.935146107579848e-14, 4.4819840726013836e-14, 4.027840822184576e-15,
    -1.5781652601713863e-14, -4.529814257790929e-14, 0.0, -2.1225608044809997e-14,
    3.013227959910772e-14, 3.1692162607002785e-14, -3.979844515951702e-15, 4.903580708156347e-14,
    -5.534326352070679e-14,
])  # fmt: skip
# (log(1 + r) - r) / r**2 for -0.0333 <= r <= 1/32.
LOG_NEAR = (
    -0.5,
    0.3333333333333297,
    -0.24999999999985698,
    0.20000000004649807,
    -0.16666666751839906,
    0.1428569807896839,
    -0.12499839179367095,
    0.11132105822554521,
    -0.10099952705639813,
)
# (log(1 + r) - r + r**2/2) / r**3 there.
CUBIC = (
    0.3333333333333333,
    -0.2499999999999967,
    0.19999999999986887,
    -0.16666666670929253,
    0.14285714363823376,
    -0.12499985143118214,
    0.11110963585422703,
    -0.10019245712823541,
    0.0918266229377001,
)
LOG_BESIDE = 0.034  # so far from a logarithm in LOG_OF are those of its sixteenth
LOG1P_HIGH = 2.0**60  # up to here what 1 + x loses is looked at


@scalar
def log_is_rare(x: float) -> Any:
    """Whether `log_plain` does not serve x."""
    b = bits(widen(x))
    return ((b >= NORMAL_BITS) & (b < EXPONENT)) ^ True


@scalar
def _log_parts(u: float) -> tuple[int, float]:
    """Bits that begin with the sixteenth of u's mantissa m, those of 2**(e + 1) above it; m."""
    offset = bits(u) - (LOG_FROM - OFFSET_BIAS)
    return offset, from_bits((offset & MANTISSA) + LOG_FROM)


@scalar
def _log_sum(offset: int, r: float, low: float) -> float:
    """The logarithm of 2**e * (1 + r) / INVERSE, and low; only r is larger than the result."""
    e = exponent(offset, BASE)
    lead = fma(e, LN2_SHORT, LOG_OF(offset >> 48))  # exact and, unless zero, larger than r
    y = lead + r
    tail = fma(r * r, horner(r, LOG_NEAR), fma(e, LN2_REST, LOG_REST(offset >> 48) + low))
    return y + ((lead - y) + r + tail)


@scalar
def log_plain(x: float) -> Any:
    """The natural logarithm of a normal positive number."""
    offset, m = _log_parts(widen(x))
    return narrow(_log_sum(offset, fma(m, INVERSE(offset >> 48), -1.0), -0.0), x)


@scalar
def log1p_is_rare(x: float) -> Any:
    """Whether `log1p_plain` does not serve x."""
    w = widen(x)
    return ((w > -1.0) & (w < LOG1P_HIGH)) ^ True


@scalar
def log1p_plain(x: float) -> Any:
    """log(1 + x) for x above -1 and below LOG1P_HIGH."""
    w = widen(x)
    u = 1.0 + w
    rounded = u - 1.0
    lost = (1.0 - (u - rounded)) + (w - rounded)  # 1 + x = u + lost exactly
    offset, m = _log_parts(u)
    inverse = INVERSE(offset >> 48)
    q = lost * inverse * from_bits((ONE_BITS + OFFSET_BIAS) - (offset & ~MANTISSA))
    near = fma(m, inverse, -1.0)
    r = near + q
    return narrow(copysign(_log_sum(offset, r, (near - r) + q), w), x)


@scalar
def power_is_rare(x: float, y: float) -> Any:
    """Whether `power_plain` does not serve x and y."""
    a = widen(x)
    offset, _ = _log_parts(a)
    most = magnitude(fma(exponent(offset, BASE), LN2_SHORT, LOG_OF(offset >> 48))) + LOG_BESIDE
    far = (magnitude(widen(y)) * most <= EXP_HIGH) ^ True
    return far | log_is_rare(a)


@scalar
def power_plain(x: float, y: float) -> Any:
    """x**y of a normal positive number, where the result is far from both ends of the doubles."""
    w = widen(y)
    offset, m = _log_parts(widen(x))
    e, inverse = exponent(offset, BASE), INVERSE(offset >> 48)
    # f + f_low = m*inverse - 1 and square + square_low = f*f exactly.
    p = m * inverse
    f, f_low = p - 1.0, fma(m, inverse, -p)
    square = f * f
    square_low = fma(f, f, -square)
    # log(x) = lead + f - f*f/2 + ...: two exact sums of a larger and a smaller number.
    lead = fma(e, LN2_SHORT, LOG_OF(offset >> 48))
    first = lead + f
    second = fma(-0.5, square, first)
    low = ((lead - first) + f) + fma(-0.5, square, first - second)
    low = low + fma(-f, f_low, f_low) + fma(e, LN2_REST, LOG_REST(offset >> 48))
    low = fma(f * square, horner(f, CUBIC), fma(-0.5, square_low, low))
    log_x = second + low
    log_low = (second - log_x) + low
    product = w * log_x
    return narrow(plain_exp_sum(product, fma(w, log_low, fma(w, log_x, -product))), x)
