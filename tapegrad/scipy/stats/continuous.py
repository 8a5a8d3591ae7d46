"""Distributions with a density: one row each, at location 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.scipy import special
from tapegrad.scipy.stats.distribution import Continuous

LOG_TWO_PI = math.log(2 * math.pi)
ROOT_TWO = math.sqrt(2.0)
POSITIVE: Any = {"support": (0.0, np.inf), "inside": 1.0}


def log_normal_density(z: Any) -> Any:
    """The logarithm of the density of the normal distribution."""
    return -0.5 * (z * z + LOG_TWO_PI)


def _log_t(z: Any, df: Any) -> Any:
    half = (df + 1) / 2
    scale = special.gammaln(half) - special.gammaln(df / 2) - np.log(df * math.pi) / 2
    return scale - half * np.log1p(z * z / df)


def _log_between(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between two numbers, exact in both tails."""
    right = a > 0  # there the mirror image is between smaller numbers
    low, high = np.where(right, -b, a), np.where(right, -a, b)
    log_high = special.log_ndtr(high)
    return log_high + np.log1p(-np.exp(special.log_ndtr(low) - log_high))


def _normal_between(q: Any, a: Any, b: Any) -> Any:
    """The number between two others below which there is a share of the normal probability."""
    right = a > 0  # there the mirror image is between smaller numbers
    low, high = (special.ndtr(np.where(right, -x, x)) for x in (a, b))
    found = special.ndtri(low + q * (high - low))
    return np.clip(np.where(right, -found, found), a, b)


def odds(p: Any) -> Any:
    """What is for a probability, over what is against it."""
    return p / (1 - p)


def above(shape: Any, least: float, moment: Any) -> Any:
    """A moment that is infinite up to some shape."""
    return np.where(shape > least, moment, np.inf)


def _t_variance(df: Any) -> Any:
    return np.where(df > 1, above(df, 2, df / (df - 2)), np.nan)


def _t_entropy(df: Any) -> Any:
    half = (df + 1) / 2
    slopes = special.digamma(half) - special.digamma(df / 2)
    return half * slopes + 0.5 * np.log(df) + special.betaln(df / 2, 0.5)


def _gamma_entropy(a: Any) -> Any:
    return a + special.gammaln(a) + (1 - a) * special.digamma(a)


def _beta_entropy(a: Any, b: Any) -> Any:
    slopes = (a - 1) * special.digamma(a) + (b - 1) * special.digamma(b)
    return special.betaln(a, b) - slopes + (a + b - 2) * special.digamma(a + b)


def symmetric(*, cdf: Any, ppf: Any, logcdf: Any = None) -> Any:
    """The functions of both tails, of a distribution that is symmetric about its location."""
    functions = {
        "cdf": cdf,
        "sf": lambda z, *shapes: cdf(-z, *shapes),
        "ppf": ppf,
        "isf": lambda q, *shapes: -ppf(q, *shapes),
    }
    if logcdf is not None:
        functions |= {"logcdf": logcdf, "logsf": lambda z, *shapes: logcdf(-z, *shapes)}
    return functions


norm = Continuous(
    "norm",
    logpdf=log_normal_density,
    **symmetric(
        cdf=lambda z: special.ndtr(z),
        logcdf=lambda z: special.log_ndtr(z),
        ppf=lambda q: special.ndtri(q),
    ),
    mean=lambda: 0.0,
    variance=lambda: 1.0,
    entropy=lambda: 0.5 * (1 + LOG_TWO_PI),
)
halfnorm = Continuous(
    "halfnorm",
    **POSITIVE,
    logpdf=lambda z: math.log(2.0) + log_normal_density(z),
    cdf=lambda z: special.erf(z / ROOT_TWO),
    sf=lambda z: special.erfc(z / ROOT_TWO),
    logsf=lambda z: math.log(2.0) + special.log_ndtr(-z),
    ppf=lambda q: ROOT_TWO * special.erfinv(q),
    isf=lambda q: -special.ndtri(q / 2),
    mean=lambda: math.sqrt(2 / math.pi),
    variance=lambda: 1 - 2 / math.pi,
    entropy=lambda: 0.5 * (1 + math.log(math.pi / 2)),
)
truncnorm = Continuous(
    "truncnorm",
    "a b",
    support=lambda a, b: (a, b),
    inside=lambda a, b: np.clip(0.0, a, b),
    valid=lambda a, b: [a < b],
    logpdf=lambda z, a, b: log_normal_density(z) - _log_between(a, b),
    cdf=lambda z, a, b: np.exp(_log_between(a, z) - _log_between(a, b)),
    sf=lambda z, a, b: np.exp(_log_between(z, b) - _log_between(a, b)),
    logcdf=lambda z, a, b: _log_between(a, z) - _log_between(a, b),
    logsf=lambda z, a, b: _log_between(z, b) - _log_between(a, b),
    ppf=_normal_between,
    isf=lambda q, a, b: -_normal_between(q, -b, -a),
)
lognorm = Continuous(
    "lognorm",
    "s",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z, s: log_normal_density(np.log(z) / s) - np.log(s * z),
    cdf=lambda z, s: special.ndtr(np.log(z) / s),
    sf=lambda z, s: special.ndtr(-np.log(z) / s),
    logcdf=lambda z, s: special.log_ndtr(np.log(z) / s),
    logsf=lambda z, s: special.log_ndtr(-np.log(z) / s),
    ppf=lambda q, s: np.exp(s * special.ndtri(q)),
    isf=lambda q, s: np.exp(-s * special.ndtri(q)),
    mean=lambda s: np.exp(s * s / 2),
    variance=lambda s: np.expm1(s * s) * np.exp(s * s),
    entropy=lambda s: 0.5 * (1 + LOG_TWO_PI) + np.log(s),
)
skewnorm = Continuous(
    "skewnorm",
    "a",
    valid=lambda a: [],
    logpdf=lambda z, a: math.log(2.0) + log_normal_density(z) + special.log_ndtr(a * z),
)
t = Continuous(
    "t",
    "df",
    logpdf=_log_t,
    **symmetric(cdf=lambda z, df: special.stdtr(df, z), ppf=lambda q, df: special.stdtrit(df, q)),
    mean=lambda df: np.where(df > 1, 0.0, np.inf),
    variance=_t_variance,
    entropy=_t_entropy,
)
cauchy = Continuous(
    "cauchy",
    logpdf=lambda z: -math.log(math.pi) - np.log1p(z * z),
    **symmetric(
        cdf=lambda z: np.arctan2(1.0, -z) / math.pi, ppf=lambda q: -1 / np.tan(math.pi * q)
    ),
    entropy=lambda: math.log(4 * math.pi),
)
halfcauchy = Continuous(
    "halfcauchy",
    **POSITIVE,
    logpdf=lambda z: math.log(2 / math.pi) - np.log1p(z * z),
    cdf=lambda z: np.arctan(z) * (2 / math.pi),
    sf=lambda z: np.arctan2(1.0, z) * (2 / math.pi),
    ppf=lambda q: np.tan(math.pi / 2 * q),
    isf=lambda q: 1 / np.tan(math.pi / 2 * q),
)
laplace = Continuous(
    "laplace",
    logpdf=lambda z: -np.abs(z) - math.log(2.0),
    **symmetric(
        cdf=lambda z: np.where(z > 0, 1 - 0.5 * np.exp(-np.abs(z)), 0.5 * np.exp(-np.abs(z))),
        logcdf=lambda z: np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), z - math.log(2.0)),
        ppf=lambda q: np.where(q > 0.5, -np.log(2 * (1 - q)), np.log(2 * q)),
    ),
    mean=lambda: 0.0,
    variance=lambda: 2.0,
    entropy=lambda: 1 + math.log(2.0),
)
logistic = Continuous(
    "logistic",
    logpdf=lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))),
    **symmetric(
        cdf=lambda z: special.expit(z),
        logcdf=lambda z: special.log_expit(z),
        ppf=lambda q: special.logit(q),
    ),
    mean=lambda: 0.0,
    variance=lambda: math.pi**2 / 3,
    entropy=lambda: 2.0,
)
gumbel_r = Continuous(
    "gumbel_r",
    logpdf=lambda z: -z - np.exp(-z),
    cdf=lambda z: np.exp(-np.exp(-z)),
    sf=lambda z: -np.expm1(-np.exp(-z)),
    logcdf=lambda z: -np.exp(-z),
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
    mean=lambda: np.euler_gamma,
    variance=lambda: math.pi**2 / 6,
    entropy=lambda: 1 + np.euler_gamma,
)
gumbel_l = Continuous(
    "gumbel_l",
    logpdf=lambda z: z - np.exp(z),
    cdf=lambda z: -np.expm1(-np.exp(z)),
    sf=lambda z: np.exp(-np.exp(z)),
    logsf=lambda z: -np.exp(z),
    ppf=lambda q: np.log(-np.log1p(-q)),
    isf=lambda q: np.log(-np.log(q)),
    mean=lambda: -np.euler_gamma,
    variance=lambda: math.pi**2 / 6,
    entropy=lambda: 1 + np.euler_gamma,
)
gennorm = Continuous(
    "gennorm", "beta", logpdf=lambda z, b: np.log(b / 2) - special.gammaln(1 / b) - np.abs(z) ** b
)
vonmises = Continuous(
    "vonmises",
    "kappa",
    logpdf=lambda z, k: k * (np.cos(z) - 1) - LOG_TWO_PI - np.log(special.i0e(k)),
)
uniform = Continuous(
    "uniform",
    support=(0.0, 1.0),
    inside=0.5,
    logpdf=lambda z: 0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    ppf=lambda q: q,
    isf=lambda q: 1 - q,
    mean=lambda: 0.5,
    variance=lambda: 1 / 12,
    entropy=lambda: 0.0,
)
beta = Continuous(
    "beta",
    "a b",
    support=(0.0, 1.0),
    inside=0.5,
    logpdf=lambda z, a, b: (
        special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
    ),
    cdf=lambda z, a, b: special.betainc(a, b, z),
    sf=lambda z, a, b: special.betaincc(a, b, z),
    ppf=lambda q, a, b: special.betaincinv(a, b, q),
    isf=lambda q, a, b: special.betainccinv(a, b, q),
    mean=lambda a, b: a / (a + b),
    variance=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
    entropy=_beta_entropy,
)
expon = Continuous(
    "expon",
    **POSITIVE,
    logpdf=lambda z: -z,
    cdf=lambda z: -np.expm1(-z),
    sf=lambda z: np.exp(-z),
    logsf=lambda z: -z,
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
    mean=lambda: 1.0,
    variance=lambda: 1.0,
    entropy=lambda: 1.0,
)
weibull_min = Continuous(
    "weibull_min",
    "c",
    **POSITIVE,
    logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1, z) - z**c,
    cdf=lambda z, c: -np.expm1(-(z**c)),
    sf=lambda z, c: np.exp(-(z**c)),
    logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-np.log1p(-q)) ** (1 / c),
    isf=lambda q, c: (-np.log(q)) ** (1 / c),
    mean=lambda c: special.gamma(1 + 1 / c),
    variance=lambda c: special.gamma(1 + 2 / c) - special.gamma(1 + 1 / c) ** 2,
    entropy=lambda c: 1 + np.euler_gamma * (1 - 1 / c) - np.log(c),
)
rayleigh = Continuous(
    "rayleigh",
    **POSITIVE,
    logpdf=lambda z: np.log(z) - 0.5 * z * z,
    cdf=lambda z: -np.expm1(-0.5 * z * z),
    sf=lambda z: np.exp(-0.5 * z * z),
    logsf=lambda z: -0.5 * z * z,
    ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2 * np.log(q)),
    mean=lambda: math.sqrt(math.pi / 2),
    variance=lambda: 2 - math.pi / 2,
    entropy=lambda: 1 + np.euler_gamma / 2 - math.log(2.0) / 2,
)
gamma = Continuous(
    "gamma",
    "a",
    **POSITIVE,
    logpdf=lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
    cdf=lambda z, a: special.gammainc(a, z),
    sf=lambda z, a: special.gammaincc(a, z),
    ppf=lambda q, a: special.gammaincinv(a, q),
    isf=lambda q, a: special.gammainccinv(a, q),
    mean=lambda a: a,
    variance=lambda a: a,
    entropy=_gamma_entropy,
)
invgamma = Continuous(
    "invgamma",
    "a",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z, a: -(a + 1) * np.log(z) - special.gammaln(a) - 1 / z,
    cdf=lambda z, a: special.gammaincc(a, 1 / z),
    sf=lambda z, a: special.gammainc(a, 1 / z),
    ppf=lambda q, a: 1 / special.gammainccinv(a, q),
    isf=lambda q, a: 1 / special.gammaincinv(a, q),
    mean=lambda a: above(a, 1, 1 / (a - 1)),
    variance=lambda a: above(a, 2, 1 / ((a - 1) ** 2 * (a - 2))),
    entropy=lambda a: a + special.gammaln(a) - (1 + a) * special.digamma(a),
)
chi2 = Continuous(
    "chi2",
    "df",
    **POSITIVE,
    logpdf=lambda z, df: (
        special.xlogy(df / 2 - 1, z / 2) - z / 2 - special.gammaln(df / 2) - math.log(2.0)
    ),
    cdf=lambda z, df: special.gammainc(df / 2, z / 2),
    sf=lambda z, df: special.gammaincc(df / 2, z / 2),
    ppf=lambda q, df: 2 * special.gammaincinv(df / 2, q),
    isf=lambda q, df: 2 * special.gammainccinv(df / 2, q),
    mean=lambda df: df,
    variance=lambda df: 2 * df,
    entropy=lambda df: math.log(2.0) + _gamma_entropy(df / 2),
)
f = Continuous(
    "f",
    "dfn dfd",
    **POSITIVE,
    logpdf=lambda z, n, d: (
        n / 2 * np.log(n / d)
        + special.xlogy(n / 2 - 1, z)
        - (n + d) / 2 * np.log1p(n * z / d)
        - special.betaln(n / 2, d / 2)
    ),
    cdf=lambda z, n, d: special.betainc(n / 2, d / 2, n * z / (n * z + d)),
    sf=lambda z, n, d: special.betainc(d / 2, n / 2, d / (n * z + d)),
    ppf=lambda q, n, d: d / n * odds(special.betaincinv(n / 2, d / 2, q)),
    isf=lambda q, n, d: d / n / odds(special.betaincinv(d / 2, n / 2, q)),
    mean=lambda n, d: above(d, 2, d / (d - 2)),
    variance=lambda n, d: above(d, 4, 2 * d * d * (n + d - 2) / (n * (d - 2) ** 2 * (d - 4))),
)
pareto = Continuous(
    "pareto",
    "b",
    support=(1.0, np.inf),
    inside=2.0,
    logpdf=lambda z, b: np.log(b) - (b + 1) * np.log(z),
    cdf=lambda z, b: -np.expm1(-b * np.log(z)),
    sf=lambda z, b: np.exp(-b * np.log(z)),
    logsf=lambda z, b: -b * np.log(z),
    ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
    isf=lambda q, b: np.exp(-np.log(q) / b),
    mean=lambda b: above(b, 1, b / (b - 1)),
    variance=lambda b: above(b, 2, b / ((b - 1) ** 2 * (b - 2))),
    entropy=lambda b: 1 + 1 / b - np.log(b),
)
