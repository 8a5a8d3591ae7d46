"""The error function and its kin of float32, computed in float32 (see `single`)."""

import math
from typing import Any

from tapegrad.kernels.flags import scalar
from tapegrad.kernels.memory import select_f4 as select
from tapegrad.kernels.simd import F32 as T
from tapegrad.kernels.simd import copysign_f4 as copysign
from tapegrad.kernels.simd import fma_f4 as fma
from tapegrad.kernels.simd import horner_f4 as horner
from tapegrad.kernels.simd import magnitude_f4 as magnitude
from tapegrad.kernels.simd import root_f4 as root
from tapegrad.kernels.simd import singles
from tapegrad.kernels.vmath.single_exponential import exp
from tapegrad.kernels.vmath.single_logarithm import log

ERF_NEAR, ERF_ONE = 0.92, 4.0
# erf(x)/x - 1 in x**2 up to ERF_NEAR, and log(1 - erf(x)) beyond.
ERF = singles(
    0.12837917, -0.3761263, 0.1128363, -0.026856242, 0.0051942723, -0.0008076834, 8.1315e-05
)
ERF_FAR = singles(
    -0.00016642579, -1.1277974, -0.6369758, -0.104113944, 0.022315353, -0.0030655263, 0.00019822307
)

ROOT_HALF = 0.7071067811865476
# exp(a**2) * erfc(a) / t in t - CENTRE, where t = 1 / (2 + a), up to TAIL_END.
CENTRE, TAIL_END = 0.29132232, 14.0
TAIL = singles(
    1.1429461, 3.1284988, 4.7001337, 1.3277733, -6.523611, -3.1822422, 14.302559, 0.56868064,
    -30.016111, 17.875137,
)  # fmt: skip
# erfinv(x)/x for w = -log(1 - x**2): in w - 2.5 up to 5, and in sqrt(w) - 3 beyond.
INVERSE_NEAR = singles(
    1.5014094, 0.24664071, -0.0041776937, -0.0012536939, 0.0002185967, -4.400517e-06,
    -3.5280587e-06, 3.44038e-07, 2.8497e-08,
)  # fmt: skip
INVERSE_FAR = singles(
    2.832977, 1.0016751, 0.009436078, -0.0076321457, 0.0057595838, -0.0036445062, 0.0012995721,
    7.42783e-05, -0.00016093263,
)  # fmt: skip


@scalar
def erf(x: float) -> Any:
    """The error function."""
    a = magnitude(x)
    a = select(a > T(ERF_ONE), T(ERF_ONE), a)
    near = fma(a, horner(a * a, ERF), a)
    y = select(a < T(ERF_NEAR), near, T(1.0) - exp(horner(a, ERF_FAR)))
    return copysign(y, x)


@scalar
def _upper(a: float, s: float, rest: float) -> Any:
    """erfc(a) for a >= 0, with s + rest for the square of a: the exponential needs both."""
    d = a + T(2.0)
    t = T(1.0) / d
    lost = fma(-t, a - (d - T(2.0)), fma(-t, d, T(1.0)))  # of t, relative to it
    y = t * horner(fma(t, lost, t - T(CENTRE)), TAIL)
    e = exp(-s)
    return fma(-rest, e, e) * fma(y, lost, y)


@scalar
def erfc(x: float) -> Any:
    """The complementary error function."""
    a = magnitude(x)
    a = select(a > T(TAIL_END), T(TAIL_END), a)
    s = a * a
    y = _upper(a, s, fma(a, a, -s))
    return select(x > T(0.0), y, T(2.0) - y)


@scalar
def ndtr(x: float) -> Any:
    """The distribution function of the normal distribution."""
    a = magnitude(x)
    a = select(a > T(TAIL_END * 2.0), T(TAIL_END * 2.0), a)
    h = T(0.5) * a
    s = h * a
    y = T(0.5) * _upper(T(ROOT_HALF) * a, s, fma(h, a, -s))
    return select(x > T(0.0), T(1.0) - y, y)


@scalar
def erfinv(x: float) -> Any:
    """The inverse of the error function."""
    one: Any = T(1.0)
    w = -log((one - x) * (one + x))
    far = root(w)
    y = x * select(w < T(5.0), horner(w - T(2.5), INVERSE_NEAR), horner(far - T(3.0), INVERSE_FAR))
    return select(w < T(math.inf), y, select(magnitude(x) == T(1.0), x * T(math.inf), T(math.nan)))
