"""The beta distribution, as autograd has it: `tapegrad.scipy.stats.beta`.

>>> import tapegrad.compat.autograd.scipy.stats.beta as beta
>>> from tapegrad.compat.autograd import grad
>>> round(grad(beta.logpdf)(0.25, 2.0, 3.0), 6)
1.333333
"""

from tapegrad.scipy.stats import beta as _beta

cdf = _beta.cdf
logcdf = _beta.logcdf
logpdf = _beta.logpdf
pdf = _beta.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
