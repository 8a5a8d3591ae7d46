"""The gamma distribution, with the functions of `scipy.stats.gamma`.

>>> import tapegrad.compat.autograd.scipy.stats.gamma as gamma
>>> from tapegrad.compat.autograd import grad
>>> grad(gamma.logpdf)(2.0, 3.0)
0.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy import special
from tapegrad.compat.autograd.scipy.stats._continuous import Continuous


def _density(z: Any, a: Any) -> Any:
    return (a - 1) * np.log(z) - z - special.gammaln(a)


_gamma = Continuous("gamma", _density, 1)
cdf, logcdf, logpdf, pdf = _gamma.cdf, _gamma.logcdf, _gamma.logpdf, _gamma.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
