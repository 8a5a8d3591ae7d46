"""Distributions of extremes, lifetimes and sizes: one row each, at location 0 and scale 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.scipy import special
from tapegrad.scipy.stats.continuous import (
    LOG_TWO_PI,
    POSITIVE,
    ROOT_TWO,
    above,
    log_normal_density,
    odds,
    symmetric,
)
from tapegrad.scipy.stats.distribution import Continuous

UNIT: Any = {"support": (0.0, 1.0), "inside": 0.5}


# Of log(1 + u) / u and (exp(u) - 1) / u, for |u| below NEAR, where their slopes would cancel.
NEAR = 0.01
LOG_SERIES = [(-1) ** k / (k + 1) for k in range(9)]
EXP_SERIES = [1 / math.factorial(k + 1) for k in range(9)]


def _over(function: Any, series: list[float], c: Any, z: Any) -> Any:
    """function(c z) / c, by its series where c z is small: z where c is 0."""
    near = np.abs(c * z) < NEAR
    u = np.where(near, c * z, 0.0)
    sum_: Any = series[-1]
    for term in reversed(series[:-1]):
        sum_ = sum_ * u + term
    other = np.where(near, 1.0, c)
    return np.where(near, z * sum_, function(np.where(near, 1.0, c * z)) / other)


def _log_over(c: Any, z: Any) -> Any:
    return _over(np.log1p, LOG_SERIES, c, z)


def _exp_over(c: Any, y: Any) -> Any:
    """The inverse of `_log_over` in z."""
    return _over(np.expm1, EXP_SERIES, c, y)


def _inverse(c: Any, where: Any, other: Any) -> Any:
    """1 / c where a condition holds, which it does not at 0."""
    return np.where(where, 1 / np.where(where, c, 1.0), other)


def _two_tails(a: Any, b: Any, sign: float) -> Any:
    """exp(a) + sign exp(b), for logarithms of probabilities of which a is the larger."""
    return np.exp(a) * (1 + sign * np.exp(b - a))


# -- extremes and excesses -----------------------------------------------------------------


def _log_genextreme(z: Any, c: Any) -> Any:
    y = _log_over(-c, z)
    return (c - 1) * y - np.exp(-y)


genextreme = Continuous(
    "genextreme",
    "c",
    support=lambda c: (_inverse(c, c < 0, -np.inf), _inverse(c, c > 0, np.inf)),
    valid=lambda c: [],
    logpdf=_log_genextreme,
    cdf=lambda z, c: np.exp(-np.exp(-_log_over(-c, z))),
    sf=lambda z, c: -np.expm1(-np.exp(-_log_over(-c, z))),
    logcdf=lambda z, c: -np.exp(-_log_over(-c, z)),
    ppf=lambda q, c: _exp_over(-c, -np.log(-np.log(q))),
    isf=lambda q, c: _exp_over(-c, -np.log(-np.log1p(-q))),
)
genpareto = Continuous(
    "genpareto",
    "c",
    support=lambda c: (0.0, _inverse(-c, c < 0, np.inf)),
    inside=lambda c: 0.5 * _inverse(-c, c < 0, 2.0),
    valid=lambda c: [],
    logpdf=lambda z, c: -(1 + c) * _log_over(c, z),
    cdf=lambda z, c: -np.expm1(-_log_over(c, z)),
    sf=lambda z, c: np.exp(-_log_over(c, z)),
    logsf=lambda z, c: -_log_over(c, z),
    ppf=lambda q, c: _exp_over(c, -np.log1p(-q)),
    isf=lambda q, c: _exp_over(c, -np.log(q)),
    entropy=lambda c: 1 + c,
)
weibull_max = Continuous(
    "weibull_max",
    "c",
    support=(-np.inf, 0.0),
    inside=-1.0,
    logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1, -z) - (-z) ** c,
    cdf=lambda z, c: np.exp(-((-z) ** c)),
    sf=lambda z, c: -np.expm1(-((-z) ** c)),
    logcdf=lambda z, c: -((-z) ** c),
    ppf=lambda q, c: -((-np.log(q)) ** (1 / c)),
    isf=lambda q, c: -((-np.log1p(-q)) ** (1 / c)),
    mean=lambda c: -special.gamma(1 + 1 / c),
    variance=lambda c: special.gamma(1 + 2 / c) - special.gamma(1 + 1 / c) ** 2,
    entropy=lambda c: 1 + np.euler_gamma * (1 - 1 / c) - np.log(c),
)
invweibull = Continuous(
    "invweibull",
    "c",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z, c: np.log(c) - (c + 1) * np.log(z) - z**-c,
    cdf=lambda z, c: np.exp(-(z**-c)),
    sf=lambda z, c: -np.expm1(-(z**-c)),
    logcdf=lambda z, c: -(z**-c),
    ppf=lambda q, c: (-np.log(q)) ** (-1 / c),
    isf=lambda q, c: (-np.log1p(-q)) ** (-1 / c),
    entropy=lambda c: 1 + np.euler_gamma + np.euler_gamma / c - np.log(c),
)
lomax = Continuous(
    "lomax",
    "c",
    **POSITIVE,
    logpdf=lambda z, c: np.log(c) - (c + 1) * np.log1p(z),
    cdf=lambda z, c: -np.expm1(-c * np.log1p(z)),
    sf=lambda z, c: np.exp(-c * np.log1p(z)),
    logsf=lambda z, c: -c * np.log1p(z),
    ppf=lambda q, c: np.expm1(-np.log1p(-q) / c),
    isf=lambda q, c: np.expm1(-np.log(q) / c),
    mean=lambda c: above(c, 1, 1 / (c - 1)),
    variance=lambda c: above(c, 2, c / ((c - 1) ** 2 * (c - 2))),
    entropy=lambda c: 1 + 1 / c - np.log(c),
)
moyal = Continuous(
    "moyal",
    logpdf=lambda z: -0.5 * (z + np.exp(-z) + LOG_TWO_PI),
    cdf=lambda z: special.erfc(np.exp(-0.5 * z) / ROOT_TWO),
    sf=lambda z: special.erf(np.exp(-0.5 * z) / ROOT_TWO),
    ppf=lambda q: -2 * np.log(-special.ndtri(q / 2)),
    isf=lambda q: -2 * np.log(ROOT_TWO * special.erfinv(q)),
    mean=lambda: np.euler_gamma + math.log(2.0),
    variance=lambda: math.pi**2 / 2,
    entropy=lambda: 0.5 * (1 + np.euler_gamma + math.log(math.pi)) + math.log(2.0),
)

# -- lifetimes -----------------------------------------------------------------------------
fisk = Continuous(
    "fisk",
    "c",
    **POSITIVE,
    logpdf=lambda z, c: np.log(c) + special.xlogy(c - 1, z) - 2 * np.log1p(z**c),
    cdf=lambda z, c: special.expit(c * np.log(z)),
    sf=lambda z, c: special.expit(-c * np.log(z)),
    logcdf=lambda z, c: special.log_expit(c * np.log(z)),
    logsf=lambda z, c: special.log_expit(-c * np.log(z)),
    ppf=lambda q, c: np.exp(special.logit(q) / c),
    isf=lambda q, c: np.exp(-special.logit(q) / c),
    entropy=lambda c: 2 - np.log(c),
)
burr12 = Continuous(
    "burr12",
    "c d",
    **POSITIVE,
    logpdf=lambda z, c, d: (
        np.log(c) + np.log(d) + special.xlogy(c - 1, z) - (d + 1) * np.log1p(z**c)
    ),
    cdf=lambda z, c, d: -np.expm1(-d * np.log1p(z**c)),
    sf=lambda z, c, d: np.exp(-d * np.log1p(z**c)),
    logsf=lambda z, c, d: -d * np.log1p(z**c),
    ppf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1 / c),
    isf=lambda q, c, d: np.expm1(-np.log(q) / d) ** (1 / c),
)
gompertz = Continuous(
    "gompertz",
    "c",
    **POSITIVE,
    logpdf=lambda z, c: np.log(c) + z - c * np.expm1(z),
    cdf=lambda z, c: -np.expm1(-c * np.expm1(z)),
    sf=lambda z, c: np.exp(-c * np.expm1(z)),
    logsf=lambda z, c: -c * np.expm1(z),
    ppf=lambda q, c: np.log1p(-np.log1p(-q) / c),
    isf=lambda q, c: np.log1p(-np.log(q) / c),
)


def _log_weibull(z: Any, c: Any) -> Any:
    """The logarithm of 1 - exp(-z**c)."""
    y = z**c
    near = y < 0.7
    return np.where(
        near, np.log(-np.expm1(-np.where(near, y, 1.0))), np.log1p(-np.exp(-np.where(near, 1.0, y)))
    )


exponweib = Continuous(
    "exponweib",
    "a c",
    **POSITIVE,
    logpdf=lambda z, a, c: (
        np.log(a)
        + np.log(c)
        + special.xlogy(a - 1, -np.expm1(-(z**c)))
        - z**c
        + special.xlogy(c - 1, z)
    ),
    cdf=lambda z, a, c: np.exp(a * _log_weibull(z, c)),
    sf=lambda z, a, c: -np.expm1(a * _log_weibull(z, c)),
    logcdf=lambda z, a, c: a * _log_weibull(z, c),
    ppf=lambda q, a, c: (-np.log1p(-(q ** (1 / a)))) ** (1 / c),
    isf=lambda q, a, c: (-np.log(-np.expm1(np.log1p(-q) / a))) ** (1 / c),
)
invgauss = Continuous(
    "invgauss",
    "mu",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z, mu: -0.5 * (LOG_TWO_PI + 3 * np.log(z) + ((z - mu) / mu) ** 2 / z),
    cdf=lambda z, mu: _two_tails(
        special.log_ndtr((z / mu - 1) / np.sqrt(z)),
        2 / mu + special.log_ndtr(-(z / mu + 1) / np.sqrt(z)),
        1.0,
    ),
    sf=lambda z, mu: _two_tails(
        special.log_ndtr(-(z / mu - 1) / np.sqrt(z)),
        2 / mu + special.log_ndtr(-(z / mu + 1) / np.sqrt(z)),
        -1.0,
    ),
    mean=lambda mu: mu,
    variance=lambda mu: mu**3,
)
truncexpon = Continuous(
    "truncexpon",
    "b",
    support=lambda b: (0.0, b),
    inside=lambda b: 0.5 * b,
    logpdf=lambda z, b: -z - np.log(-np.expm1(-b)),
    cdf=lambda z, b: np.expm1(-z) / np.expm1(-b),
    sf=lambda z, b: np.exp(-z) * np.expm1(z - b) / np.expm1(-b),
    ppf=lambda q, b: -np.log1p(q * np.expm1(-b)),
)
levy = Continuous(
    "levy",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z: -0.5 * (LOG_TWO_PI + 3 * np.log(z) + 1 / z),
    cdf=lambda z: special.erfc(np.sqrt(0.5 / z)),
    sf=lambda z: special.erf(np.sqrt(0.5 / z)),
    ppf=lambda q: special.ndtri(q / 2) ** -2,
    isf=lambda q: 0.5 * special.erfinv(q) ** -2,
    entropy=lambda: 0.5 * (1 + 3 * np.euler_gamma + math.log(16 * math.pi)),
)

# -- lengths, and other functions of gamma and beta distributions --------------------------


def _chi_mean(df: Any) -> Any:
    return ROOT_TWO * np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2))


chi = Continuous(
    "chi",
    "df",
    **POSITIVE,
    logpdf=lambda z, df: (
        math.log(2.0) * (1 - df / 2)
        - special.gammaln(df / 2)
        + special.xlogy(df - 1, z)
        - 0.5 * z * z
    ),
    cdf=lambda z, df: special.gammainc(df / 2, 0.5 * z * z),
    sf=lambda z, df: special.gammaincc(df / 2, 0.5 * z * z),
    ppf=lambda q, df: np.sqrt(2 * special.gammaincinv(df / 2, q)),
    isf=lambda q, df: np.sqrt(2 * special.gammainccinv(df / 2, q)),
    mean=_chi_mean,
    variance=lambda df: df - _chi_mean(df) ** 2,
)
maxwell = Continuous(
    "maxwell",
    **POSITIVE,
    logpdf=lambda z: 0.5 * math.log(2 / math.pi) + 2 * np.log(z) - 0.5 * z * z,
    cdf=lambda z: special.gammainc(1.5, 0.5 * z * z),
    sf=lambda z: special.gammaincc(1.5, 0.5 * z * z),
    ppf=lambda q: np.sqrt(2 * special.gammaincinv(1.5, q)),
    isf=lambda q: np.sqrt(2 * special.gammainccinv(1.5, q)),
    mean=lambda: 2 * math.sqrt(2 / math.pi),
    variance=lambda: 3 - 8 / math.pi,
    entropy=lambda: np.euler_gamma + 0.5 * LOG_TWO_PI - 0.5,
)
nakagami = Continuous(
    "nakagami",
    "nu",
    **POSITIVE,
    logpdf=lambda z, nu: (
        math.log(2.0)
        + special.xlogy(nu, nu)
        - special.gammaln(nu)
        + special.xlogy(2 * nu - 1, z)
        - nu * z * z
    ),
    cdf=lambda z, nu: special.gammainc(nu, nu * z * z),
    sf=lambda z, nu: special.gammaincc(nu, nu * z * z),
    ppf=lambda q, nu: np.sqrt(special.gammaincinv(nu, q) / nu),
    isf=lambda q, nu: np.sqrt(special.gammainccinv(nu, q) / nu),
)
rice = Continuous(
    "rice",
    "b",
    **POSITIVE,
    valid=lambda b: [b >= 0],
    logpdf=lambda z, b: np.log(z) - 0.5 * (z - b) ** 2 + np.log(special.i0e(z * b)),
)
foldnorm = Continuous(
    "foldnorm",
    "c",
    **POSITIVE,
    valid=lambda c: [c >= 0],
    logpdf=lambda z, c: log_normal_density(z - c) + np.log1p(np.exp(-2 * c * z)),
    cdf=lambda z, c: 0.5 * (special.erf((z - c) / ROOT_TWO) + special.erf((z + c) / ROOT_TWO)),
    sf=lambda z, c: special.ndtr(c - z) + special.ndtr(-c - z),
)
loggamma = Continuous(
    "loggamma",
    "c",
    logpdf=lambda z, c: c * z - np.exp(z) - special.gammaln(c),
    cdf=lambda z, c: special.gammainc(c, np.exp(z)),
    sf=lambda z, c: special.gammaincc(c, np.exp(z)),
    ppf=lambda q, c: np.log(special.gammaincinv(c, q)),
    isf=lambda q, c: np.log(special.gammainccinv(c, q)),
    mean=lambda c: special.digamma(c),
    variance=lambda c: special.polygamma(1, c),
    entropy=lambda c: special.gammaln(c) - c * special.digamma(c) + c,
)
betaprime = Continuous(
    "betaprime",
    "a b",
    **POSITIVE,
    logpdf=lambda z, a, b: special.xlogy(a - 1, z) - (a + b) * np.log1p(z) - special.betaln(a, b),
    cdf=lambda z, a, b: special.betainc(a, b, z / (1 + z)),
    sf=lambda z, a, b: special.betainc(b, a, 1 / (1 + z)),
    ppf=lambda q, a, b: odds(special.betaincinv(a, b, q)),
    isf=lambda q, a, b: 1 / odds(special.betaincinv(b, a, q)),
    mean=lambda a, b: above(b, 1, a / (b - 1)),
    variance=lambda a, b: above(b, 2, a * (a + b - 1) / ((b - 2) * (b - 1) ** 2)),
)

# -- functions of normal, logistic and Laplace distributions -------------------------------
johnsonsu = Continuous(
    "johnsonsu",
    "a b",
    valid=lambda a, b: [b > 0],
    logpdf=lambda z, a, b: (
        np.log(b) - 0.5 * np.log1p(z * z) + log_normal_density(a + b * np.arcsinh(z))
    ),
    cdf=lambda z, a, b: special.ndtr(a + b * np.arcsinh(z)),
    sf=lambda z, a, b: special.ndtr(-a - b * np.arcsinh(z)),
    logcdf=lambda z, a, b: special.log_ndtr(a + b * np.arcsinh(z)),
    logsf=lambda z, a, b: special.log_ndtr(-a - b * np.arcsinh(z)),
    ppf=lambda q, a, b: np.sinh((special.ndtri(q) - a) / b),
    isf=lambda q, a, b: np.sinh((-special.ndtri(q) - a) / b),
)
johnsonsb = Continuous(
    "johnsonsb",
    "a b",
    **UNIT,
    ends_within=False,
    valid=lambda a, b: [b > 0],
    logpdf=lambda z, a, b: (
        np.log(b) - np.log(z) - np.log1p(-z) + log_normal_density(a + b * special.logit(z))
    ),
    cdf=lambda z, a, b: special.ndtr(a + b * special.logit(z)),
    sf=lambda z, a, b: special.ndtr(-a - b * special.logit(z)),
    ppf=lambda q, a, b: special.expit((special.ndtri(q) - a) / b),
    isf=lambda q, a, b: special.expit((-special.ndtri(q) - a) / b),
)
exponnorm = Continuous(
    "exponnorm",
    "K",
    logpdf=lambda z, k: (0.5 / k - z) / k - np.log(k) + special.log_ndtr(z - 1 / k),
    cdf=lambda z, k: _two_tails(
        special.log_ndtr(z), (0.5 / k - z) / k + special.log_ndtr(z - 1 / k), -1.0
    ),
    sf=lambda z, k: special.ndtr(-z) + np.exp((0.5 / k - z) / k + special.log_ndtr(z - 1 / k)),
    mean=lambda k: k,
    variance=lambda k: 1 + k * k,
)
loglaplace = Continuous(
    "loglaplace",
    "c",
    **POSITIVE,
    ends_within=False,
    logpdf=lambda z, c: np.log(c / 2) - np.log(z) - c * np.abs(np.log(z)),
    cdf=lambda z, c: np.where(z < 1, 0.5 * z**c, 1 - 0.5 * z**-c),
    sf=lambda z, c: np.where(z < 1, 1 - 0.5 * z**c, 0.5 * z**-c),
    ppf=lambda q, c: np.where(q < 0.5, (2 * q) ** (1 / c), (2 * (1 - q)) ** (-1 / c)),
    isf=lambda q, c: np.where(q > 0.5, (2 * (1 - q)) ** (1 / c), (2 * q) ** (-1 / c)),
    entropy=lambda c: np.log(2 / c) + 1,
)
hypsecant = Continuous(
    "hypsecant",
    logpdf=lambda z: math.log(2 / math.pi) - np.abs(z) - np.log1p(np.exp(-2 * np.abs(z))),
    **symmetric(
        cdf=lambda z: np.arctan(np.exp(z)) * (2 / math.pi),
        ppf=lambda q: np.log(np.tan(math.pi / 2 * q)),
    ),
    mean=lambda: 0.0,
    variance=lambda: math.pi**2 / 4,
    entropy=lambda: math.log(2 * math.pi),
)

# -- between two ends ----------------------------------------------------------------------
powerlaw = Continuous(
    "powerlaw",
    "a",
    **UNIT,
    logpdf=lambda z, a: np.log(a) + special.xlogy(a - 1, z),
    cdf=lambda z, a: z**a,
    sf=lambda z, a: -np.expm1(special.xlogy(a, z)),
    logcdf=lambda z, a: special.xlogy(a, z),
    ppf=lambda q, a: q ** (1 / a),
    isf=lambda q, a: np.exp(np.log1p(-q) / a),
    mean=lambda a: a / (a + 1),
    variance=lambda a: a / ((a + 2) * (a + 1) ** 2),
    entropy=lambda a: 1 - 1 / a - np.log(a),
)
loguniform = Continuous(
    "loguniform",
    "a b",
    support=lambda a, b: (a, b),
    inside=lambda a, b: 0.5 * (a + b),
    valid=lambda a, b: [a > 0, b > a],
    logpdf=lambda z, a, b: -np.log(z) - np.log(np.log(b / a)),
    cdf=lambda z, a, b: np.log(z / a) / np.log(b / a),
    sf=lambda z, a, b: np.log(b / z) / np.log(b / a),
    ppf=lambda q, a, b: a * np.exp(q * np.log(b / a)),
    isf=lambda q, a, b: b * np.exp(q * np.log(a / b)),
    mean=lambda a, b: (b - a) / np.log(b / a),
    entropy=lambda a, b: 0.5 * np.log(a * b) + np.log(np.log(b / a)),
)


def _sides(z: Any, c: Any) -> tuple[Any, Any, Any]:
    """Whether a place is left of the top, and the heights of both sides, of 1 at the top."""
    left = np.logical_or(z < c, c == 1)
    return left, z / np.where(left, c, 1.0), (1 - z) / np.where(c < 1, 1 - c, 1.0)


def _triangle(z: Any, c: Any) -> Any:
    left, up, down = _sides(z, c)
    return np.log(2 * np.where(left, up, down))


def _under_triangle(z: Any, c: Any) -> Any:
    left, up, down = _sides(z, c)
    return np.where(left, z * up, 1 - (1 - z) * down)


triang = Continuous(
    "triang",
    "c",
    **UNIT,
    valid=lambda c: [c >= 0, c <= 1],
    logpdf=_triangle,
    cdf=_under_triangle,
    sf=lambda z, c: _under_triangle(1 - z, 1 - c),
    ppf=lambda q, c: np.where(q < c, np.sqrt(c * q), 1 - np.sqrt((1 - c) * (1 - q))),
    isf=lambda q, c: np.where(1 - q < c, np.sqrt(c * (1 - q)), 1 - np.sqrt((1 - c) * q)),
    mean=lambda c: (c + 1) / 3,
    variance=lambda c: (1 - c + c * c) / 18,
    entropy=lambda c: 0.5 - math.log(2.0) + 0 * c,
)
arcsine = Continuous(
    "arcsine",
    **UNIT,
    logpdf=lambda z: -math.log(math.pi) - 0.5 * (np.log(z) + np.log1p(-z)),
    cdf=lambda z: np.arcsin(np.sqrt(z)) * (2 / math.pi),
    sf=lambda z: np.arccos(np.sqrt(z)) * (2 / math.pi),
    ppf=lambda q: np.sin(math.pi / 2 * q) ** 2,
    isf=lambda q: np.cos(math.pi / 2 * q) ** 2,
    mean=lambda: 0.5,
    variance=lambda: 0.125,
    entropy=lambda: math.log(math.pi / 4),
)
