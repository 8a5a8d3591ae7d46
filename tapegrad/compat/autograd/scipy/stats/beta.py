"""The beta distribution, with the functions of `scipy.stats.beta`.

>>> import tapegrad.compat.autograd.scipy.stats.beta as beta
>>> from tapegrad.compat.autograd import grad
>>> round(grad(beta.logpdf)(0.25, 2.0, 3.0), 6)
1.333333
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy import special
from tapegrad.compat.autograd.scipy.stats._continuous import Continuous


def _density(z: Any, a: Any, b: Any) -> Any:
    return (a - 1) * np.log(z) + (b - 1) * np.log1p(-z) - special.betaln(a, b)


_beta = Continuous("beta", _density, 2, upper=1.0)
cdf, logcdf, logpdf, pdf = _beta.cdf, _beta.logcdf, _beta.logpdf, _beta.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
