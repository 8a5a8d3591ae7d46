"""Distributions of whole numbers: one row each, at location 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.scipy import special
from tapegrad.scipy.stats.distribution import Discrete


def _log_choose(n: Any, k: Any) -> Any:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)


def _share(p: Any) -> list[Any]:
    return [p >= 0, p <= 1]


def _below_last(f: Any) -> Any:
    """A distribution function that is 1 from the last number on, where its formula ends."""

    def cdf(k: Any, n: Any, *rest: Any) -> Any:
        last = k >= n
        return np.where(last, 1.0, f(np.where(last, 0.0, k), n, *rest))

    return cdf


bernoulli = Discrete(
    "bernoulli",
    "p",
    support=(0.0, 1.0),
    valid=_share,
    logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1 - k, -p),
    cdf=lambda k, p: 1 - p * (1 - k),
    mean=lambda p: p,
    variance=lambda p: p * (1 - p),
    entropy=lambda p: special.entr(p) + special.entr(1 - p),
)
binom = Discrete(
    "binom",
    "n p",
    support=lambda n, p: (0.0, n),
    valid=lambda n, p: [n >= 0, *_share(p)],
    logpmf=lambda k, n, p: _log_choose(n, k) + special.xlogy(k, p) + special.xlog1py(n - k, -p),
    cdf=_below_last(lambda k, n, p: special.betainc(n - k, k + 1, 1 - p)),
    mean=lambda n, p: n * p,
    variance=lambda n, p: n * p * (1 - p),
)
betabinom = Discrete(
    "betabinom",
    "n a b",
    support=lambda n, a, b: (0.0, n),
    valid=lambda n, a, b: [n >= 0, a > 0, b > 0],
    logpmf=lambda k, n, a, b: (
        _log_choose(n, k) + special.betaln(k + a, n - k + b) - special.betaln(a, b)
    ),
    mean=lambda n, a, b: n * a / (a + b),
    variance=lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1)),
)
geom = Discrete(
    "geom",
    "p",
    support=(1.0, np.inf),
    inside=1.0,
    valid=_share,
    logpmf=lambda k, p: np.log(p) + special.xlog1py(k - 1, -p),
    cdf=lambda k, p: -np.expm1(special.xlog1py(k, -p)),
    sf=lambda k, p: np.exp(special.xlog1py(k, -p)),
    logsf=lambda k, p: special.xlog1py(k, -p),
    mean=lambda p: 1 / p,
    variance=lambda p: (1 - p) / p**2,
)
nbinom = Discrete(
    "nbinom",
    "n p",
    support=(0.0, np.inf),
    valid=lambda n, p: [n > 0, *_share(p)],
    logpmf=lambda k, n, p: (
        special.gammaln(n + k)
        - special.gammaln(k + 1)
        - special.gammaln(n)
        + n * np.log(p)
        + special.xlog1py(k, -p)
    ),
    cdf=lambda k, n, p: special.betainc(n, k + 1, p),
    sf=lambda k, n, p: special.betaincc(n, k + 1, p),
    mean=lambda n, p: n * (1 - p) / p,
    variance=lambda n, p: n * (1 - p) / p**2,
)
poisson = Discrete(
    "poisson",
    "mu",
    support=(0.0, np.inf),
    valid=lambda mu: [mu >= 0],
    logpmf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
    cdf=lambda k, mu: special.gammaincc(k + 1, mu),
    sf=lambda k, mu: special.gammainc(k + 1, mu),
    mean=lambda mu: mu,
    variance=lambda mu: mu,
)
