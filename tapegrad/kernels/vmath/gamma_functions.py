"""The second derivative of log(gamma) (see `vmath`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.simd import fma, horner, narrow, nearest, select, widen
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
