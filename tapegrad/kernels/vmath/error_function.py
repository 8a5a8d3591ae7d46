"""The error function, its complement and inverse, the normal distribution (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import (
    copysign,
    fma,
    horner,
    horner_select,
    magnitude,
    narrow,
    select,
    widen,
)
from tapegrad.kernels.vmath.exponential import exp_parts, half_expm1, times_power
from tapegrad.kernels.vmath.fast_logarithm import log_plain
from tapegrad.kernels.vmath.logarithm import log, log_sum

# -log(1 - erf(x)) / x for 0 <= x <= 6: smooth there, and 1 - erf(x) falls so fast that the fit may
# loosen with x (each point weighted by the error it makes in erf).
ERF_FIRST = 2.0 / math.sqrt(math.pi)
ERF = (
    0.6366197723675836,
    0.10277260330178872,
    -0.019128447005069656,
    -0.0002091946948495102,
    0.0016962063857888666,
    -0.0005901255530747036,
    2.587860479776279e-05,
    6.449185979562984e-05,
    -2.9724044632174813e-05,
    3.4072639391802877e-06,
    2.8351413864125764e-06,
    -1.7415482661742405e-06,
    3.363653645977879e-07,
    1.3718138456725972e-07,
    -1.4176136403647646e-07,
    6.573314970402453e-08,
    -2.096251070948489e-08,
    4.997661291161299e-09,
    -9.082131707249821e-10,
    1.248394613104966e-10,
    -1.2610828862879573e-11,
    8.845448433132104e-13,
    -3.850470954967841e-14,
    7.834076596958715e-16,
)
# exp(x*x) * erfc(x) * (x + ERFC_AT) in t = (x - ERFC_AT) / (x + ERFC_AT) for 0 <= x <= 27.3.
ERFC_AT = 3.0
ERFC_MAX = 27.5  # from here on zero
# From there on it is 1 / (x * sqrt(pi)) times the asymptotic series in 1 / x**2.
FAR = (1.0, -0.5, 0.75, -1.875, 6.5625, -29.53125, 162.421875)
ROOT_HALF, ROOT_HALF_LOW = math.sqrt(0.5), -4.833646656726457e-17
SQUARE_MAX = 709.3  # of which twice the exponential is infinite, and the power of two in it not
NDTR_MAX = 38.7
ERFC_0, ERFC_0_LOW = 1.0740069070883398, -8.735612691096289e-17
ERFC_1, ERFC_1_LOW = -0.8833944531698836, 4.615507867341892e-17
ERFC = (
    0.5902283571041013,
    -0.3104672619005718,
    0.11952776128733165,
    -0.026827234624353016,
    -0.0012124166283266175,
    0.0030340619994757116,
    -0.0005483096770115897,
    -0.0002767778326925666,
    0.00010756137825386772,
    3.0398092181089092e-05,
    -1.747009064312541e-05,
    -4.748962075193854e-06,
    2.7641078495873906e-06,
    9.981880227096721e-07,
    -4.058531391710826e-07,
    -2.3218178553805107e-07,
    4.407231818918634e-08,
    4.88917140454375e-08,
    -1.6382215571484198e-10,
    -7.053981292489257e-09,
    -8.548689606124203e-10,
    3.24332062407505e-10,
)

# erfinv(x) / x where w = -log(1 - x*x), in w - ERFINV_MID for w <= ERFINV_NEAR, and in
# sqrt(w) - ERFINV_ROOT up to the last double below 1, where w is 36.1.  Both lie where the value is
# a double but for 1e-3 of its last place.
ERFINV_NEAR, ERFINV_MID, ERFINV_ROOT = 7.5, 2.552490234375, 3.5849609375
ERFINV_HIGH = 0.9997  # for which w is below ERFINV_NEAR
INVERSE_NEAR = (
    1.5143438680795356,
    0.24619151155378602,
    -0.004370982158799759,
    -0.0012070312858379025,
    0.00021680026387142803,
    -6.04431730919317e-06,
    -3.2398162277805175e-06,
    4.832979670966345e-07,
    8.401089448950678e-09,
    -1.0367784952198337e-08,
    9.70747668014775e-10,
    1.0024105076010219e-10,
    -3.035083952455702e-11,
    1.2821110334505646e-12,
    4.747948241445755e-13,
    -7.760589441884017e-14,
    -1.2376099846084743e-15,
    1.7100706323379679e-15,
    -1.6038368656017282e-16,
    -1.6338487353731548e-17,
    4.83866207547282e-18,
    -2.486692590737341e-19,
    -4.914506398984146e-20,
    9.270929151832238e-21,
    -6.2907571840423225e-22,
    1.4657614133524978e-23,
    1.323105523548701e-25,
)
INVERSE_FAR = (
    3.421095158243848,
    1.0078834618935875,
    0.002794503286802919,
    -0.001735752829055936,
    0.0008467428938437366,
    -0.00049173978606908,
    0.00031234458185166336,
    -0.0001740435404219342,
    7.076199097890773e-05,
    -1.3506581682405755e-05,
    -5.9568922902457855e-06,
    6.5133030063038935e-06,
    -2.7235726342613885e-06,
    3.4999751282254645e-07,
    2.77796210686306e-07,
    -1.9881631897192823e-07,
    5.6210466034675075e-08,
    1.3969147929246159e-09,
    -8.141638070158212e-09,
    3.5267666642661135e-09,
    -6.519873353238871e-10,
    -6.373316601325821e-11,
    7.677449401555147e-11,
    -2.3646131285916675e-11,
    4.055902337622521e-12,
    -3.917176852009397e-13,
    1.6745230073157766e-14,
)


@scalar
def erf(x: float) -> Any:
    """The error function, as 1 - exp(-|x|*polynomial) over its whole range."""
    w = widen(x)
    a = magnitude(w)
    a = select(a > 6.0, 6.0, a)
    lead = a * ERF_FIRST
    low = fma(a * a, horner(a, ERF), fma(a, ERF_FIRST, -lead))
    q = lead + low
    y = 2.0 * half_expm1(-q, (q - lead) - low)
    return narrow(copysign(select(a < 2.0**-60, lead, y), w), x)


@scalar
def erfcx_parts(a: float) -> tuple[float, float]:
    """exp(a*a) * erfc(a) for 0 <= a <= ERFC_MAX, and what that has lost."""
    below = a + ERFC_AT
    high, low = select(a > ERFC_AT, a, ERFC_AT), select(a > ERFC_AT, ERFC_AT, a)
    inverse = 1.0 / below
    lost = (fma(-inverse, below, 1.0) - inverse * ((high - below) + low)) * inverse
    v = 2.0 * ERFC_AT * inverse
    t = 1.0 - v
    t_low = ((1.0 - t) - v) - (fma(2.0 * ERFC_AT, inverse, -v) + 2.0 * ERFC_AT * lost)
    # The two lowest terms, with what their sums lose.
    r = horner(t, ERFC)
    q = fma(t, r, ERFC_1)
    p = fma(t, q, ERFC_0)
    q_low = fma(t, r, ERFC_1 - q) + ERFC_1_LOW
    p_low = fma(t, q, ERFC_0 - p) + fma(t, q_low, ERFC_0_LOW)
    g = p * inverse
    # The polynomial's own derivative is about its value times a line.
    return g, fma(p, inverse, -g) + fma(
        g * t_low, fma(0.4, t, -0.85), fma(p, lost, p_low * inverse)
    )


@scalar
def erfc(x: float) -> Any:
    """1 - erf(x), accurate where it is small: exp(-x*x) times a polynomial over x + ERFC_AT."""
    w = widen(x)
    a = magnitude(w)
    a = select(a > ERFC_MAX, ERFC_MAX, a)
    g, g_low = erfcx_parts(a)
    s = a * a
    lead, rest, b = exp_parts(-s, -fma(a, a, -s))
    y = times_power(g + fma(g, lead, fma(g, rest, g_low)), b)
    return narrow(select(w < 0.0, 2.0 - y, y), x)


@scalar
def erfcx_far(a: float) -> float:
    """exp(a*a) * erfc(a) for a > ERFC_MAX."""
    inverse = 1.0 / a
    return 0.5 * ERF_FIRST * inverse * horner(inverse * inverse, FAR)


@scalar
def erfcx(x: float) -> Any:
    """exp(x*x) * erfc(x), which on the left is 2 * exp(x*x) less that of -x."""
    w = widen(x)
    size = magnitude(w)
    a = select(size > ERFC_MAX, ERFC_MAX, size)
    g, g_low = erfcx_parts(a)
    s = a * a
    lead, rest, b = exp_parts(select(s > SQUARE_MAX, SQUARE_MAX, s), fma(a, a, -s))
    q = times_power(1.0, b)
    left = 2.0 * (q + fma(q, lead, fma(q, rest, -0.5 * (g + g_low))))
    right = select(size > ERFC_MAX, erfcx_far(size), g + g_low)
    return narrow(select(w < 0.0, left, right), x)


@scalar
def ndtr_parts(a: float) -> tuple[float, float, float]:
    """ndtr(-a) for 0 <= a <= NDTR_MAX, and exp(a*a / 2) times twice that, with what it has lost."""
    u = a * ROOT_HALF
    g, g_low = erfcx_parts(u)
    # The derivative of exp(u*u) * erfc(u), times what u has lost.
    u_low = fma(a, ROOT_HALF_LOW, fma(a, ROOT_HALF, -u))
    g_low = fma(u_low, fma(2.0 * u, g, -ERF_FIRST), g_low)
    s = a * a
    lead, rest, b = exp_parts(-0.5 * s, -0.5 * fma(a, a, -s))
    return 0.5 * times_power(g + fma(g, lead, fma(g, rest, g_low)), b), g, g_low


@scalar
def ndtr(x: float) -> Any:
    """erfc(-x * ROOT_HALF) / 2, whose exponential takes x*x / 2 without the root's rounding."""
    w = widen(x)
    a = magnitude(w)
    y, _, _ = ndtr_parts(select(a > NDTR_MAX, NDTR_MAX, a))
    return narrow(select(w > 0.0, 1.0 - y, y), x)


@scalar
def log_ndtr(x: float) -> Any:
    """log(ndtr(x)); on the left log(erfcx(-x * ROOT_HALF) / 2) - x*x / 2."""
    w = widen(x)
    a = magnitude(w)
    far = a > NDTR_MAX
    p, g, g_low = ndtr_parts(select(far, NDTR_MAX, a))
    distant = erfcx_far(select(a > 1e100, 1e100, a) * ROOT_HALF)  # beyond, x*x is all there is
    left, right = 0.5 * select(far, distant, g), 1.0 - p
    low = select(w < 0.0, select(far, 0.0, 0.5 * g_low), (1.0 - right) - p)
    y = log_sum(select(w < 0.0, left, right), low)
    return narrow(-magnitude(y - select(w < 0.0, 0.5 * w * w, 0.0)), x)


@scalar
def erfinv(x: float) -> Any:
    """The inverse of `erf`: x times a polynomial in the logarithm of 1 - x*x, or in its root."""
    w = widen(x)
    a = magnitude(w)
    v = -log((1.0 - a) * (1.0 + a))
    near = v < ERFINV_NEAR
    t = select(near, v - ERFINV_MID, math.sqrt(v) - ERFINV_ROOT)
    r = horner_select(near, t, INVERSE_NEAR[1:], INVERSE_FAR[1:])
    first = select(near, INVERSE_NEAR[0], INVERSE_FAR[0])
    p = fma(t, r, first)
    y = fma(w, p, w * fma(t, r, first - p))  # with what p has lost
    return narrow(select(a == 1.0, w * math.inf, y), x)


@scalar
def erfinv_is_rare(x: float) -> Any:
    """Whether `erfinv_plain` does not serve x."""
    return (magnitude(widen(x)) < ERFINV_HIGH) ^ True


@scalar
def erfinv_plain(x: float) -> Any:
    """The inverse of `erf` up to ERFINV_HIGH."""
    w = widen(x)
    a = magnitude(w)
    t = -ERFINV_MID - log_plain((1.0 - a) * (1.0 + a))
    r = horner(t, INVERSE_NEAR[1:])
    p = fma(t, r, INVERSE_NEAR[0])
    return narrow(fma(w, p, w * fma(t, r, INVERSE_NEAR[0] - p)), x)
