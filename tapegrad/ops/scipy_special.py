"""Special functions of SciPy's that PyTorch has not, with their partial derivatives.

They answer to SciPy's own ufuncs (`numpy_face/ufuncs.py`), and have no other public name.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tapegrad.ops.core import NotImplementedYet, Op, elementwise
from tapegrad.ops.elementwise import (
    POSITIVE,
    REAL,
    TWO_OVER_ROOT_PI,
    UNIT,
    Lazy,
    cos,
    eq,
    erf,
    exp,
    expm1,
    gt,
    log,
    log1p,
    lt,
    mul,
    pow,
    sign,
    sin,
    sqrt,
    where,
)
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.incomplete import (
    beta_logit_slope_a,
    beta_logit_slope_b,
    gamma_density,
    gamma_log_slope,
)
from tapegrad.ops.special import digamma, lgamma, series, sinc

# Power series, each of a quotient that is 0 / 0 at 0: log(1 - u) / u, and the derivatives of Box
# and Cox's transformation and of its inverse in lambda.
NEAR = 0.1
DEGREE = math.pi / 180
LOG_QUOTIENT = tuple(-1 / (k + 1) for k in range(17))
BOX_COX = tuple((k + 1) / math.factorial(k + 2) for k in range(13))
INVERSE_BOX_COX = tuple((-1) ** (k + 1) * (k + 1) / (k + 2) for k in range(17))


def none_in(name: str, argument: str) -> NotImplementedYet:
    """Says that a function of SciPy's has no derivative in one of its arguments."""
    return NotImplementedYet(
        f"`scipy.special.{name}` has no derivative in its {argument}: give it a number, or "
        "`t.detach()`"
    )


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """That of the beta distribution."""
    return exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))


def betaincc_slope(row: Op, a: Any, b: Any, x: Any) -> Any:
    """That of `betaincc` in a parameter; at 0 and 1 it is 0."""
    slope = row(a, b, x) * exp(a * log(x) + b * log1p(-x) - betaln(a, b))
    return where(mul(gt(x, 0), lt(x, 1)), slope, 0.0)


def _beta_quantile_slope(row: Op, a: Any, b: Any, x: Any) -> Any:
    """How the quantile x moves with a parameter; one that is rounded to 0 or 1 does not."""
    left = x * (1 - x)
    return where(gt(left, 0), left * row(a, b, x), 0.0)


def _t_slope(df: Any, t: Any) -> Any:
    """How the quantile t moves with df, df / (df + t * t) being one of the beta distribution."""
    u = t * t
    near = -beta_logit_slope_b(0.5, 0.5 * df, u / (df + u))
    far = beta_logit_slope_a(0.5 * df, 0.5, df / (df + u))
    slope = 0.5 * t * (1 / df - 0.5 * where(lt(u, df), near, far))
    return where(eq(t, 0), 0.0, slope)


def _t_density(df: Any, t: Any) -> Any:
    """That of Student's distribution."""
    half = (df + 1) / 2
    scale = lgamma(half) - lgamma(df / 2) - 0.5 * log(math.pi * df)
    return exp(scale - half * log1p(t * t / df))


def _expn_slope(n: Any, x: Any) -> Any:
    return where(eq(n, 0), -exp(-x) * (1 + x) / (x * x), -expn(n - 1, x))


def _spence_slope(x: Any) -> Any:
    u = 1 - x
    return where(lt(abs_(u), NEAR), series(u, LOG_QUOTIENT), log(x) / u)


def _exprel_slope(t: Any) -> Any:
    """That of (exp(t) - 1) / t."""
    far = (t * exp(t) - expm1(t)) / (t * t)
    return where(lt(abs_(t), NEAR), series(t, BOX_COX), far)


def _box_cox_slope(power: Any, log_x: Any) -> Any:
    """That of (exp(t) - 1) / power, t being power * log_x, in the power."""
    return log_x * log_x * _exprel_slope(power * log_x)


def _inverse_box_cox_slope(x: Any, power: Any, log_y: Any) -> Any:
    """That of log_y = log1p(t) / power, t being power * x, in the power."""
    t = power * x
    far = (t / (1 + t) - power * log_y) / (t * t)
    return x * x * where(lt(abs_(t), NEAR), series(t, INVERSE_BOX_COX), far)


# Voigt's profile is the real part of a function of x + i gamma, of which the imaginary one is the
# dispersion; both are homogeneous of degree -1 in all three arguments.
_wofz, _lambertw = Lazy("wofz"), Lazy("lambertw")


def _voigt_dispersion(x: Any, sigma: Any, gamma: Any) -> Any:
    with np.errstate(all="ignore"):
        found = _wofz((x + 1j * gamma) / (math.sqrt(2) * sigma)).imag
        return np.asarray(found / (math.sqrt(2 * math.pi) * sigma), np.result_type(x, sigma, gamma))


def _voigt_slopes(x: Any, sigma: Any, gamma: Any, value: Any, other: Any) -> tuple[Any, Any]:
    """Those of the real part in x and in gamma, given both parts."""
    square = sigma * sigma
    of_x = (gamma * other - x * value) / square
    return of_x, (x * other + gamma * value - 1 / math.pi) / square


def _voigt_x(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    return _voigt_slopes(x, sigma, gamma, y, voigt_dispersion(x, sigma, gamma))[0]


def _voigt_gamma(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    return _voigt_slopes(x, sigma, gamma, y, voigt_dispersion(x, sigma, gamma))[1]


def _voigt_sigma(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    of_x, of_gamma = _voigt_slopes(x, sigma, gamma, y, voigt_dispersion(x, sigma, gamma))
    return -(y + x * of_x + gamma * of_gamma) / sigma


def _dispersion_x(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    return -_voigt_slopes(x, sigma, gamma, voigt_profile(x, sigma, gamma), y)[1]


def _dispersion_gamma(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    return _voigt_slopes(x, sigma, gamma, voigt_profile(x, sigma, gamma), y)[0]


def _dispersion_sigma(x: Any, sigma: Any, gamma: Any, y: Any) -> Any:
    of_x, of_gamma = _voigt_slopes(x, sigma, gamma, voigt_profile(x, sigma, gamma), y)
    return -(y - x * of_gamma + gamma * of_x) / sigma


def _real_lambertw(x: Any, k: Any) -> Any:
    """NaN where a branch is not real."""
    found = _lambertw(x, np.asarray(k).astype(int))
    real = (found.imag == 0) & ((k == 0) | (k == -1))
    return np.asarray(np.where(real, found.real, np.nan), np.result_type(x, k))


def part(name: str, k: int) -> Any:
    """One of the results of a ufunc that has several."""
    ufunc = Lazy(name)
    return lambda x: np.asarray(ufunc(x)[k])


scipy_row = partial(elementwise, to_float=True, in_c=True)

# fmt: off
gamma = scipy_row("gamma", Lazy("gamma"), x=lambda x, y: y * digamma(x), domain=POSITIVE,
                  ordered=True,
                  singular="The derivative is NaN at 0 and at negative whole numbers.")
rgamma = scipy_row("rgamma", Lazy("rgamma"), x=lambda x, y: -y * digamma(x), domain=POSITIVE,
                   ordered=True,
                   singular="The derivative is NaN at 0 and at negative whole numbers.")
loggamma = scipy_row("loggamma", Lazy("loggamma"), x=lambda x: digamma(x), domain=POSITIVE,
                     ordered=True, singular="It is NaN below 0.")
gammasgn = scipy_row("gammasgn", Lazy("gammasgn"), x=lambda: 0, domain=POSITIVE)
beta = scipy_row("beta", Lazy("beta"), domain=POSITIVE,
                 a=lambda a, b, y: y * (digamma(a) - digamma(a + b)),
                 b=lambda a, b, y: y * (digamma(b) - digamma(a + b)))
betaln: Op = scipy_row("betaln", Lazy("betaln"), domain=POSITIVE,
                       a=lambda a, b: digamma(a) - digamma(a + b),
                       b=lambda a, b: digamma(b) - digamma(a + b))
betainc = scipy_row("betainc", Lazy("betainc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                    a=lambda a, b, x: -betaincc_slope(beta_logit_slope_a, a, b, x),
                    b=lambda a, b, x: -betaincc_slope(beta_logit_slope_b, a, b, x),
                    x=beta_density)
betaincc = scipy_row("betaincc", Lazy("betaincc"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                     a=lambda a, b, x: betaincc_slope(beta_logit_slope_a, a, b, x),
                     b=lambda a, b, x: betaincc_slope(beta_logit_slope_b, a, b, x),
                     x=lambda a, b, x: -beta_density(a, b, x))
betaincinv = scipy_row("betaincinv", Lazy("betaincinv"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                       a=lambda a, b, y: _beta_quantile_slope(beta_logit_slope_a, a, b, y),
                       b=lambda a, b, y: _beta_quantile_slope(beta_logit_slope_b, a, b, y),
                       q=lambda a, b, y: 1 / beta_density(a, b, y))
betainccinv = scipy_row("betainccinv", Lazy("betainccinv"), domain=(POSITIVE, POSITIVE, (0.1, 0.9)),
                        a=lambda a, b, y: _beta_quantile_slope(beta_logit_slope_a, a, b, y),
                        b=lambda a, b, y: _beta_quantile_slope(beta_logit_slope_b, a, b, y),
                        q=lambda a, b, y: -1 / beta_density(a, b, y))
gammaincinv = scipy_row("gammaincinv", Lazy("gammaincinv"), domain=(POSITIVE, (0.1, 0.9)),
                        a=lambda a, y: where(gt(y, 0), y * gamma_log_slope(a, y), 0.0),
                        q=lambda a, y: 1 / gamma_density(a, y))
gammainccinv = scipy_row("gammainccinv", Lazy("gammainccinv"), domain=(POSITIVE, (0.1, 0.9)),
                         a=lambda a, y: where(gt(y, 0), y * gamma_log_slope(a, y), 0.0),
                         q=lambda a, y: -1 / gamma_density(a, y))
stdtr = scipy_row("stdtr", Lazy("stdtr"), domain=(POSITIVE, (-2.0, 2.0)),
                  df=lambda df, t: -_t_slope(df, t) * _t_density(df, t), t=_t_density)
stdtrit = scipy_row("stdtrit", Lazy("stdtrit"), domain=((2.0, 4.0), (0.1, 0.9)),
                    df=lambda df, y: _t_slope(df, y), q=lambda df, y: 1 / _t_density(df, y))
binom = scipy_row("binom", Lazy("binom"), domain=((3.0, 5.0), POSITIVE),
                  n=lambda n, k, y: y * (digamma(n + 1) - digamma(n - k + 1)),
                  k=lambda n, k, y: y * (digamma(n - k + 1) - digamma(k + 1)))
poch = scipy_row("poch", Lazy("poch"), domain=POSITIVE,
                 z=lambda z, m, y: y * (digamma(z + m) - digamma(z)),
                 m=lambda z, m, y: y * digamma(z + m))
rel_entr = scipy_row("rel_entr", Lazy("rel_entr"), domain=POSITIVE,
                     a=lambda a, b: log(a / b) + 1, b=lambda a, b: -a / b,
                     singular="d/da is -infinite where a is 0.")
kl_div = scipy_row("kl_div", Lazy("kl_div"), domain=POSITIVE,
                   a=lambda a, b: log(a / b), b=lambda a, b: 1 - a / b,
                   singular="d/da is -infinite where a is 0.")
erfcinv = scipy_row("erfcinv", Lazy("erfcinv"), x=lambda y: -exp(y * y) / TWO_OVER_ROOT_PI,
                    domain=(0.1, 1.9),
                    singular="The derivative is infinite at 0 and 2, and NaN outside.")
erfi = scipy_row("erfi", Lazy("erfi"), x=lambda x: TWO_OVER_ROOT_PI * exp(x * x),
                 ordered=True)
dawsn = scipy_row("dawsn", Lazy("dawsn"), x=lambda x, y: 1 - 2 * x * y, ordered=True)
exp10 = scipy_row("exp10", Lazy("exp10"), x=lambda y: math.log(10.0) * y)
exprel = scipy_row("exprel", Lazy("exprel"), x=lambda x: _exprel_slope(x), ordered=True)
exp1 = scipy_row("exp1", Lazy("exp1"), x=lambda x: -exp(-x) / x, domain=POSITIVE,
                 ordered=True, singular="It is infinite at 0.")
expi = scipy_row("expi", Lazy("expi"), x=lambda x: exp(x) / x, domain=POSITIVE,
                 ordered=True, singular="It is -infinite at 0.")
expn: Op = scipy_row("expn", Lazy("expn"), n=none_in("expn", "order"), x=_expn_slope,
                     domain=(range(1, 4), POSITIVE), singular="It is infinite at 0 for n < 2.")
hyp1f1: Op = scipy_row("hyp1f1", Lazy("hyp1f1"), domain=POSITIVE,
                       a=none_in("hyp1f1", "parameters"), b=none_in("hyp1f1", "parameters"),
                       x=lambda a, b, x: a / b * hyp1f1(a + 1, b + 1, x))
hyp0f1: Op = scipy_row("hyp0f1", Lazy("hyp0f1"), b=none_in("hyp0f1", "parameter"),
                       domain=POSITIVE, x=lambda b, x: hyp0f1(b + 1, x) / b)
hyp2f1: Op = scipy_row("hyp2f1", Lazy("hyp2f1"), domain=(POSITIVE, POSITIVE, POSITIVE, UNIT),
                       a=none_in("hyp2f1", "parameters"), b=none_in("hyp2f1", "parameters"),
                       c=none_in("hyp2f1", "parameters"),
                       x=lambda a, b, c, x: a * b / c * hyp2f1(a + 1, b + 1, c + 1, x))
hyperu: Op = scipy_row("hyperu", Lazy("hyperu"), domain=POSITIVE,
                       a=none_in("hyperu", "parameters"), b=none_in("hyperu", "parameters"),
                       x=lambda a, b, x: -a * hyperu(a + 1, b + 1, x))
spence = scipy_row("spence", Lazy("spence"), x=_spence_slope, domain=POSITIVE,
                   singular="The derivative is -infinite at 0.")
boxcox = scipy_row("boxcox", Lazy("boxcox"), domain=POSITIVE, x=lambda x, power: pow(x, power - 1),
                   power=lambda x, power: _box_cox_slope(power, log(x)))
boxcox1p = scipy_row("boxcox1p", Lazy("boxcox1p"), domain=POSITIVE,
                     x=lambda x, power: pow(1 + x, power - 1),
                     power=lambda x, power: _box_cox_slope(power, log1p(x)))
inv_boxcox = scipy_row("inv_boxcox", Lazy("inv_boxcox"), domain=POSITIVE,
                       x=lambda x, power, y: y / (1 + power * x),
                       power=lambda x, power, y: y * _inverse_box_cox_slope(x, power, log(y)))
inv_boxcox1p = scipy_row("inv_boxcox1p", Lazy("inv_boxcox1p"), domain=POSITIVE,
                         x=lambda x, power, y: (1 + y) / (1 + power * x),
                         power=lambda x, power, y:
                             (1 + y) * _inverse_box_cox_slope(x, power, log1p(y)))
voigt_profile: Op = scipy_row(
    "voigt_profile", Lazy("voigt_profile"), domain=(UNIT, POSITIVE, POSITIVE),
    x=_voigt_x, sigma=_voigt_sigma, gamma=_voigt_gamma,
    singular="The derivative is NaN where sigma is 0.")
voigt_dispersion: Op = elementwise(
    "voigt_dispersion", _voigt_dispersion, domain=(UNIT, POSITIVE, POSITIVE), to_float=True,
    x=_dispersion_x, sigma=_dispersion_sigma, gamma=_dispersion_gamma)
lambertw = elementwise(
    "lambertw", _real_lambertw, domain=(POSITIVE, (0.0, 0.0)), to_float=True, ordered=True,
    x=lambda y: exp(-y) / (1 + y), k=none_in("lambertw", "branch"),
    singular="The derivative is infinite at -1 / e.")
sine_integral = elementwise("sine_integral", part("sici", 0), x=lambda x: sinc(x / math.pi),
                            ordered=True, to_float=True)
cosine_integral = elementwise("cosine_integral", part("sici", 1), x=lambda x: cos(x) / x,
                              domain=POSITIVE, ordered=True, to_float=True,
                              singular="It is -infinite at 0, and NaN below.")
fresnel_sine = elementwise("fresnel_sine", part("fresnel", 0), to_float=True,
                           x=lambda x: sin(math.pi / 2 * x * x))
fresnel_cosine = elementwise("fresnel_cosine", part("fresnel", 1), to_float=True,
                             x=lambda x: cos(math.pi / 2 * x * x))
owens_t = scipy_row("owens_t", Lazy("owens_t"),
                    h=lambda h, a: -exp(-h * h / 2) * erf(a * h / math.sqrt(2.0))
                                   / math.sqrt(8 * math.pi),
                    a=lambda h, a: exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)))
huber = scipy_row("huber", Lazy("huber"), domain=(POSITIVE, REAL),
                  delta=lambda delta, r: where(gt(abs_(r), delta), abs_(r) - delta, 0.0),
                  r=lambda delta, r: where(gt(abs_(r), delta), delta * sign(r), r))
pseudo_huber = scipy_row(
    "pseudo_huber", Lazy("pseudo_huber"), domain=(POSITIVE, REAL),
    delta=lambda delta, r, y: 2 * y / delta - r * r / (delta * sqrt(1 + (r / delta) * (r / delta))),
    r=lambda delta, r: r / sqrt(1 + (r / delta) * (r / delta)),
    singular="The derivative is NaN where delta is 0.")
cosm1 = scipy_row("cosm1", Lazy("cosm1"), x=lambda x: -sin(x), ordered=True)
powm1 = scipy_row("powm1", Lazy("powm1"), domain=POSITIVE,
                  x=lambda x, power: power * pow(x, power - 1),
                  power=lambda x, power: pow(x, power) * log(x),
                  singular="d/dpower is NaN where x is negative.")
# Of degrees: 0, 1 and so on are reached exactly where it is due.
sindg: Op = scipy_row("sindg", Lazy("sindg"), x=lambda x: DEGREE * cosdg(x))
cosdg: Op = scipy_row("cosdg", Lazy("cosdg"), x=lambda x: -DEGREE * sindg(x))
tandg = scipy_row("tandg", Lazy("tandg"), x=lambda y: DEGREE * (1 + y * y))
cotdg = scipy_row("cotdg", Lazy("cotdg"), x=lambda y: -DEGREE * (1 + y * y), domain=POSITIVE,
                  singular="It is infinite at 0.")
wrightomega = scipy_row("wrightomega", Lazy("wrightomega"), x=lambda y: y / (1 + y), ordered=True)
ndtri_exp = scipy_row("ndtri_exp", Lazy("ndtri_exp"), domain=(-2.0, -0.1),
                      x=lambda x, y: math.sqrt(2 * math.pi) * exp(x + y * y / 2),
                      singular="It is infinite at 0, and NaN above.")
lpmv: Op = scipy_row(
    "lpmv", Lazy("lpmv"), domain=(range(3), range(2, 4), (0.1, 0.9)),
    m=none_in("lpmv", "order"), v=none_in("lpmv", "degree"),
    x=lambda m, v, x, y: ((v + m) * lpmv(m, v - 1, x) - v * x * y) / ((1 - x) * (1 + x)),
    singular="The derivative is NaN or infinite at -1 and 1.")
ROWS = (
    gamma, rgamma, loggamma, gammasgn, beta, betaln, betainc, betaincc, betaincinv, betainccinv,
    gammaincinv, gammainccinv, stdtr, stdtrit, binom, poch, rel_entr, kl_div, erfcinv, erfi, dawsn,
    exp10, exprel, exp1, expi, expn, hyp1f1, hyp0f1, hyp2f1, hyperu, spence, boxcox, boxcox1p,
    inv_boxcox, inv_boxcox1p, voigt_profile, owens_t, huber, pseudo_huber, cosm1, powm1, sindg,
    cosdg, tandg, cotdg, wrightomega, ndtri_exp, lpmv,
)
# fmt: on
