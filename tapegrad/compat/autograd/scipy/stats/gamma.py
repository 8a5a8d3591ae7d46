"""The gamma distribution, as autograd has it: `tapegrad.scipy.stats.gamma`.

>>> import tapegrad.compat.autograd.scipy.stats.gamma as gamma
>>> from tapegrad.compat.autograd import grad
>>> grad(gamma.logpdf)(2.0, 3.0)
0.0
"""

from tapegrad.scipy.stats import gamma as _gamma

cdf = _gamma.cdf
logcdf = _gamma.logcdf
logpdf = _gamma.logpdf
pdf = _gamma.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
