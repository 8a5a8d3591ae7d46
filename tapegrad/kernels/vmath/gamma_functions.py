"""The logarithm of gamma and its second derivative (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import fma, horner, magnitude, narrow, nearest, select, widen
from tapegrad.kernels.vmath.logarithm import log_parts
from tapegrad.kernels.vmath.trigonometric import sin

PI = math.pi
STEPS = 10
# The Bernoulli numbers B2, B4, ...; from x = 10 on the series of nine of them is exact to rounding.
BERNOULLI = (
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
)

# lgamma(y) / ((y - 1) * (y - 2)) in y - LGAMMA_MID for LGAMMA_LOW <= y <= LGAMMA_HIGH: it is 0 at 1
# and at 2.  Below and above are the recurrence, and from STIRLING on Stirling's series, whose
# coefficients are B(2k) / (2k * (2k - 1)).
LGAMMA_LOW, LGAMMA_MID, LGAMMA_HIGH = 0.75, 1.625, 2.5
STIRLING = 8.0
LGAMMA = (
    0.46580963736232694,
    -0.13157899128683395,
    0.052579426220434065,
    -0.024194436430694913,
    0.011991915956977427,
    -0.006215450413876229,
    0.0033172708604131806,
    -0.0018070640153064071,
    0.0009992727350537879,
    -0.00055894976739774,
    0.00031549464960339905,
    -0.00017938931468980428,
    0.00010262414799436433,
    -5.9025563417862507e-05,
    3.4098645865299954e-05,
    -1.9709804241393043e-05,
    1.1445473471827023e-05,
    -6.897044881169909e-06,
    4.095708236650806e-06,
    -1.8433559906518582e-06,
    9.649243651870753e-07,
    -1.6114108263007094e-06,
    1.1188271232788822e-06,
    7.384729382274582e-07,
    -6.025100956386618e-07,
    -9.590634494894984e-07,
    6.770400684950588e-07,
    4.20352259751762e-07,
    -2.918315540004624e-07,
    -1.3316418829828774e-07,
    8.667467470137935e-08,
)
SERIES = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
HALF_LOG_2_PI = 0.5 * math.log(2.0 * PI)


@scalar
def _lgamma(a: float) -> float:
    """log(gamma(a)) for a >= 0."""
    low, far = a < LGAMMA_LOW, a >= STIRLING
    # y of the middle, and the product that gamma(a) is gamma(y) times, or divided by.
    y = select(low, a + 1.0, a)
    product = 1.0
    for _ in range(int(STIRLING - LGAMMA_HIGH) + 1):
        above = y > LGAMMA_HIGH
        y = select(above, y - 1.0, y)
        product = select(above, product * y, product)
    high, rest = log_parts(select(far | low, a, product))
    middle = (y - 1.0) * (y - 2.0) * horner(y - LGAMMA_MID, LGAMMA)
    sign = select(low, -1.0, 1.0)
    near = sign * high + fma(sign, rest, middle)
    b = select(far, a, STIRLING)
    inverse = 1.0 / b
    tail = fma(inverse, horner(inverse * inverse, SERIES), HALF_LOG_2_PI - 0.5)
    lead, half = high - 1.0, b - 0.5
    return select(far, fma(half, lead, fma(half, rest, tail)), near)


@scalar
def lgamma(x: float) -> Any:
    """log(gamma(x)) for x >= 0."""
    return narrow(_lgamma(widen(x)), x)


@scalar
def lgamma_any(x: float) -> Any:
    """log(abs(gamma(x))), by reflection below 0; infinite at 0 and below at whole numbers."""
    w = widen(x)
    a = magnitude(w)
    # gamma(x) * gamma(-x) = -pi / (x * sin(pi*x))
    f = select(a < 2.0**52, a - nearest(a), 0.0)
    high, rest = log_parts(a * magnitude(sin(PI * f)) / PI)
    positive = _lgamma(a)
    below = select(f == 0.0, math.inf, -(high + rest) - positive)
    return narrow(select(w < -1e-100, below, positive), x)  # next to 0 the sign makes no difference


@scalar
def trigamma(x: float) -> Any:
    """The sum of 1 / (x + k)**2 over k = 0, 1, 2, ...; infinite at 0 and below at whole numbers."""
    w = widen(x)
    reflected = w <= 0.0
    a = select(reflected, 1.0 - w, w)
    near = a < STEPS
    inverse = 1.0 / select(near, a + STEPS, a)
    u = inverse * inverse
    total = fma(u, fma(inverse, horner(u, BERNOULLI), 0.5), inverse)
    for k in range(STEPS - 1, -1, -1):
        d = a + k
        total += select(near, 1.0 / (d * d), 0.0)
    # trigamma(x) + trigamma(1 - x) = (pi / sin(pi*x))**2
    f = select(reflected, w - nearest(w), 0.5)
    s = PI / sin(PI * f)
    return narrow(select(reflected, s * s - total, total), x)
