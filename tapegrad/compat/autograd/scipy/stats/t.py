"""Student's t distribution, with the functions of `scipy.stats.t`.

>>> import tapegrad.compat.autograd.scipy.stats.t as t
>>> from tapegrad.compat.autograd import grad
>>> grad(t.logpdf)(1.0, 3.0)
-1.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy import special
from tapegrad.compat.autograd.scipy.stats._continuous import Continuous


def _density(z: Any, df: Any) -> Any:
    half = (df + 1) / 2
    scale = special.gammaln(half) - special.gammaln(df / 2) - np.log(df * math.pi) / 2
    return scale - half * np.log1p(z * z / df)


_t = Continuous("t", _density, 1, upper=-np.inf)
cdf, logcdf, logpdf, pdf = _t.cdf, _t.logcdf, _t.logpdf, _t.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
