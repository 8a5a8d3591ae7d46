"""Special functions: SciPy's ufuncs, and their partial derivatives.

Every derivative is again made of operations of the table, so all orders exist.  Where the plain
formula of a derivative divides by its argument, or takes nearly equal numbers from each other, a
power series stands in its place on that side; both are exact to rounding where they meet.

Conventions at singular points are PyTorch's; each row says its own (`singular`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, NotDifferentiable, NotImplementedYet, Op, elementwise
from tapegrad.ops.elementwise import (
    POSITIVE,
    TWO_OVER_ROOT_PI,
    UNIT,
    Lazy,
    cos,
    eq,
    exp,
    gt,
    le,
    log,
    log1p,
    lt,
    mul,
    sign,
    where,
)
from tapegrad.ops.elementwise import abs as abs_

ORDER = NotDifferentiable("the order of a polygamma function is a whole number")
ROOT_HALF, ROOT_TWO_PI = math.sqrt(0.5), math.sqrt(2.0 * math.pi)

# Series in x*x.  sinc'(x) / x, for |x| < 1/4:
NEAR_SINC = 0.25
SINC = tuple(
    (-1.0) ** (k + 1) * math.pi ** (2 * k + 2) * (2 * k + 2) / math.factorial(2 * k + 3)
    for k in range(11)
)
# I1'(x), for |x| < 1/2:
NEAR_I1 = 0.5
I1 = tuple(
    (2 * k + 1) / (2.0 ** (2 * k + 1) * math.factorial(k) * math.factorial(k + 1))
    for k in range(10)
)
# The asymptotic series of -sqrt(pi) * x**2 * erfcx'(x) in 1 / x**2, for x > 12:
FAR_ERFCX = 12.0
ERFCX = tuple(
    (-0.5) ** k * (2 * k + 1) * math.prod(range(1, 2 * k, 2)) for k in range(13)
)  # fmt: skip


def _none_in_first(name: str) -> NotImplementedYet:
    return NotImplementedYet(
        f"`{name}` has no derivative in its first argument, nor has PyTorch: give it a number, or "
        "`t.detach()`"
    )


def series(u: Any, coefficients: tuple[float, ...]) -> Any:
    """A power series cut off, by Horner's rule."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * u + c
    return total


def _sinc(x: Any) -> Any:
    t = np.asarray(x * math.pi)
    return np.divide(np.sin(t), t, out=np.ones_like(t), where=t != 0)


def _sinc_slope(x: Any, y: Any) -> Any:
    return where(
        lt(abs_(x), NEAR_SINC), x * series(x * x, SINC), (cos(math.pi * x) - y) / x
    )  # fmt: skip


def _i1e_slope(x: Any, y: Any) -> Any:
    near = exp(-abs_(x)) * series(x * x, I1) - sign(x) * y
    return where(lt(abs_(x), NEAR_I1), near, i0e(x) - y * (sign(x) + 1 / x))


def _erfcx_slope(x: Any, y: Any) -> Any:
    u = 1 / (x * x)
    far = (-0.5 * TWO_OVER_ROOT_PI) * u * series(u, ERFCX)
    return where(gt(x, FAR_ERFCX), far, 2 * x * y - TWO_OVER_ROOT_PI)


def _log_ndtr_slope(x: Any, y: Any) -> Any:
    # The density over the distribution; on the left their common factor exp(-x*x/2) cancels.
    left = (2.0 / ROOT_TWO_PI) / erfcx(-ROOT_HALF * x)
    return where(lt(x, -1.0), left, exp(-0.5 * x * x - y) / ROOT_TWO_PI)


_zeta, _gamma, _gammaln, _psi = Lazy("zeta"), Lazy("gamma"), Lazy("gammaln"), Lazy("psi")


def _polygamma(n: Any, x: Any) -> Any:
    """(-1)**(n + 1) * n! * zeta(n + 1, x), or digamma where n is 0."""
    n = np.asarray(n, x.dtype)
    with np.errstate(all="ignore"):
        value = (1 - 2 * ((n + 1) % 2)) * _gamma(n + 1) * _zeta(n + 1, x)
        return np.asarray(np.where(n == 0, _psi(x), value) if np.any(n == 0) else value)


def _lgamma(x: Any) -> Any:
    below = np.equal(x, -np.inf)  # where SciPy's is -inf, and PyTorch's infinite
    y = np.asarray(_gammaln(x))
    y[below] = np.inf
    return y


def _times_log(a: Any, b: Any, log_b: Any) -> Any:
    return where(mul(eq(a, 0), eq(b, b)), 0.0, a * log_b)


def _logit_form(x: Any) -> Any:
    # Near one half log(x / (1 - x)) loses digits.
    off = x - 0.5
    near = log1p(off + off) - log1p(-(off + off))
    return where(lt(abs_(off), 0.2), near, log(x / (1.0 - x)))


# fmt: off
sinc = elementwise("sinc", _sinc, x=_sinc_slope, complex=ANALYTIC,
                   scalar="vmath.sinc({0})",
                   guard="vmath.angle_is_large(T(4.0) * {0})", to_float=True, inplace=True,
                   loop="f8 f4",
                   doc="sin(pi * x) / (pi * x); 1 at 0.",
                   example=("tg.sinc(tg.tensor(0.5))", "tensor(0.6366)"))
erfinv = elementwise("erfinv", Lazy("erfinv"), x=lambda y: exp(y * y) / TWO_OVER_ROOT_PI,
                     domain=UNIT, scalar="vmath.erfinv({0})", to_float=True, inplace=True,
                     rare="vmath.erfinv_is_rare({0})", vmath="many",
                     loop="f8 f4 scalar",
                     doc="The inverse of the error function.",
                     example=("tg.erfinv(tg.tensor(0.5))", "tensor(0.4769)"),
                     singular="The derivative is infinite at -1 and 1, and NaN outside.")
erfcx: Op = elementwise("erfcx", Lazy("erfcx"), x=_erfcx_slope, grad_name="SpecialErfcx",
                        scalar="vmath.erfcx({0})", to_float=True, loop="f8 f4 scalar",
                        doc="exp(x * x) * erfc(x).",
                        namespace="special",
                        example=("tg.special.erfcx(tg.tensor(0.0))", "tensor(1.)"))
ndtr = elementwise("ndtr", Lazy("ndtr"), x=lambda x: exp(-0.5 * x * x) / ROOT_TWO_PI,
                   scalar="vmath.ndtr({0})", rare="vmath.ndtr_is_rare({0})", vmath="many",
                   grad_name="SpecialNdtr", to_float=True, loop="f8 f4 scalar",
                   doc="The standard normal distribution up to x.",
                   namespace="special",
                   example=("tg.special.ndtr(tg.tensor(0.0))", "tensor(0.5000)"))
ndtri = elementwise("ndtri", Lazy("ndtri"), x=lambda y: ROOT_TWO_PI * exp(0.5 * y * y),
                    domain=(0.1, 0.9), grad_name="SpecialNdtri", to_float=True, in_c=True,
                    doc="The inverse of `ndtr`: the quantiles of the standard normal distribution.",
                    namespace="special",
                    example=("tg.special.ndtri(tg.tensor(0.5))", "tensor(0.)"),
                    singular="The derivative is infinite at 0 and 1, and NaN outside.")
log_ndtr = elementwise("log_ndtr", Lazy("log_ndtr"), x=_log_ndtr_slope, grad_name="SpecialLogNdtr",
                       scalar="vmath.log_ndtr({0})", to_float=True, loop="f8 f4 scalar",
                       doc="log(ndtr(x)), exact far to the left too.",
                       namespace="special",
                       example=("tg.special.log_ndtr(tg.tensor(-100.0))", "tensor(-5005.5242)"))
logit = elementwise(
    "logit", Lazy("logit"), domain=(0.1, 0.9),
    x=lambda x: where(lt(x * (1 - x), 0), math.nan, 1 / (x * (1 - x))),
    to_float=True, decomposition=_logit_form,
    singular="The derivative is infinite at 0 and 1, and NaN outside.",
)
lgamma = elementwise("lgamma", _lgamma, x=lambda x: digamma(x), domain=POSITIVE,
                     scalar="vmath.lgamma({0})", guard="{0} < zero",
                     to_float=True, inplace=True, loop="f8 f4 scalar",
                     doc="The logarithm of |gamma(x)|.",
                     example=("tg.lgamma(tg.tensor(3.0))", "tensor(0.6931)"),
                     singular="The derivative is infinite at 0, and NaN at negative whole numbers.")
digamma: Op = elementwise("digamma", _psi, x=lambda x: trigamma(x), domain=POSITIVE,
                          to_float=True, in_c=True, inplace=True,
                          doc="The derivative of `lgamma`.",
                          example=("tg.digamma(tg.tensor(1.0))", "tensor(-0.5772)"))
trigamma: Op = elementwise("trigamma",
    lambda x: np.asarray(_zeta(2, x)),
    x=lambda x: polygamma(2, x), domain=POSITIVE,
                           grad_name="Polygamma",
                           scalar="vmath.trigamma({0})", to_float=True, loop="f8 f4")
polygamma: Op = elementwise("polygamma", _polygamma, n=ORDER, x=lambda n, x: polygamma(n + 1, x),
                            domain=(range(1, 4), POSITIVE), to_float=True)
zeta: Op = elementwise(
    "zeta", lambda s, q: np.asarray(_zeta(s, q)), s=_none_in_first("zeta"),
    q=lambda s, q: -s * zeta(s + 1, q), domain=(range(2, 5), POSITIVE), grad_name="SpecialZeta",
    to_float=True,
    doc="The Hurwitz zeta function: the sum of (q + k)**-s over k = 0, 1, 2, ...",
    namespace="special",
    example=("tg.special.zeta(tg.tensor(2.0), tg.tensor(1.0))", "tensor(1.6449)"),
    singular="It is infinite at s = 1, and at whole numbers q from 0 down; NaN where s < 1.",
)
i0: Op = elementwise("i0", Lazy("i0"), x=lambda x: i1(x),
                     scalar="vmath.i0({0})", to_float=True, inplace=True, loop="f8 f4 scalar",
                     doc="The modified Bessel function of the first kind, order 0.",
                     example=("tg.i0(tg.tensor(0.0))", "tensor(1.)"))
i1: Op = elementwise("i1", Lazy("i1"),
    x=lambda x, y: where(lt(abs_(x), NEAR_I1), series(x * x, I1), i0(x) - y / x),
    grad_name="SpecialI1",
                     scalar="vmath.i1({0})", to_float=True, loop="f8 f4 scalar",
                     doc="The modified Bessel function of the first kind, order 1.",
                     namespace="special",
                     example=("tg.special.i1(tg.tensor(0.0))", "tensor(0.)"))
i0e: Op = elementwise("i0e", Lazy("i0e"), x=lambda x, y: i1e(x) - sign(x) * y,
                      grad_name="SpecialI0E", scalar="vmath.i0e({0})", to_float=True,
                      loop="f8 f4 scalar",
                      doc="`i0`, times exp(-|x|).",
                      namespace="special",
                      example=("tg.special.i0e(tg.tensor(0.0))", "tensor(1.)"))
i1e: Op = elementwise("i1e", Lazy("i1e"), x=_i1e_slope, grad_name="SpecialI1E",
                      scalar="vmath.i1e({0})", to_float=True, loop="f8 f4 scalar",
                      doc="`i1`, times exp(-|x|).",
                      namespace="special",
                      example=("tg.special.i1e(tg.tensor(0.0))", "tensor(0.)"))
xlogy = elementwise(
    "xlogy", Lazy("xlogy"), a=lambda a, b: where(mul(eq(a, 0), le(b, 0)), 0, log(b)),
    b=lambda a, b: a / b, domain=POSITIVE,
    to_float=True, inplace=True,
    decomposition=lambda a, b: _times_log(a, b, log(b)),
    doc="x * log(y); 0 where x is 0.",
    example=("tg.xlogy(tg.tensor(0.0), tg.tensor(0.0))", "tensor(0.)"),
    singular="d/da is 0 where a is 0 and b is not positive; d/db is a / b: NaN where both are 0.",
)
xlog1py = elementwise(
    "xlog1py", Lazy("xlog1py"), a=lambda a, b: where(mul(eq(a, 0), le(b, -1)), 0, log1p(b)),
    b=lambda a, b: a / (1 + b), domain=UNIT, grad_name="SpecialXlog1Py",
    to_float=True,
    decomposition=lambda a, b: _times_log(a, b, log1p(b)),
    doc="x * log1p(y); 0 where x is 0.",
    namespace="special",
    example=("tg.special.xlog1py(tg.tensor(0.0), tg.tensor(-1.0))", "tensor(0.)"),
    singular="As of `xlogy`, with 1 + b in place of b.",
)
entr = elementwise("entr", Lazy("entr"), x=lambda x: -1 - log(x), domain=POSITIVE,
                   grad_name="SpecialEntr", to_float=True,
                   scalar="select({0} > zero, -{0} * vmath.log({0}), "
                          "select({0} < zero, T(-math.inf), {0} + zero))",
                   loop="f8 f4 scalar",
                   doc="-x * log(x); 0 at 0, -inf below.",
                   namespace="special",
                   example=("tg.special.entr(tg.tensor(0.5))", "tensor(0.3466)"),
                   singular="The derivative at 0 is infinite.")
# fmt: on
