"""The chi-squared distribution, with the functions of `scipy.stats.chi2`.

>>> import tapegrad.compat.autograd.scipy.stats.chi2 as chi2
>>> from tapegrad.compat.autograd import grad
>>> grad(chi2.logpdf)(2.0, 4.0)
0.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy import special
from tapegrad.compat.autograd.scipy.stats._continuous import Continuous


def _density(z: Any, df: Any) -> Any:
    half = df / 2
    return (half - 1) * np.log(z) - z / 2 - half * math.log(2.0) - special.gammaln(half)


_chi2 = Continuous("chi2", _density, 1)
cdf, logcdf, logpdf, pdf = _chi2.cdf, _chi2.logcdf, _chi2.logpdf, _chi2.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
