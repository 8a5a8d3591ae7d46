"""The chi-squared distribution, as autograd has it: `tapegrad.scipy.stats.chi2`.

>>> import tapegrad.compat.autograd.scipy.stats.chi2 as chi2
>>> from tapegrad.compat.autograd import grad
>>> grad(chi2.logpdf)(2.0, 4.0)
0.0
"""

from tapegrad.scipy.stats import chi2 as _chi2

cdf = _chi2.cdf
logcdf = _chi2.logcdf
logpdf = _chi2.logpdf
pdf = _chi2.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
