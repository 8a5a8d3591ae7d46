"""The Poisson distribution, with the functions of `scipy.stats.poisson`; `mu` is differentiable.

>>> import tapegrad.compat.autograd.scipy.stats.poisson as poisson
>>> from tapegrad.compat.autograd import grad
>>> grad(poisson.logpmf, argnum=1)(3.0, 2.0)
0.5
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy._rules import elementwise


def _slope(y: Any, k: Any, mu: Any) -> Any:
    return np.where(np.asarray(k) % 1 == 0, k / mu - 1, 0.0)


logpmf = elementwise("stats.poisson.logpmf", None, _slope)
pmf = elementwise("stats.poisson.pmf", None, lambda y, k, mu: y * _slope(y, k, mu))
cdf = elementwise("stats.poisson.cdf", None, lambda y, k, mu: -pmf(np.floor(k), mu))

__all__ = ["cdf", "logpmf", "pmf"]
