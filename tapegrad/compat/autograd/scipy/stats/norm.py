"""The normal distribution, as autograd has it: `tapegrad.scipy.stats.norm`.

>>> import tapegrad.compat.autograd.scipy.stats.norm as norm
>>> from tapegrad.compat.autograd import grad
>>> grad(norm.logpdf)(2.0)
-2.0
"""

from tapegrad.scipy.stats import norm as _norm

cdf = _norm.cdf
logcdf = _norm.logcdf
logpdf = _norm.logpdf
logsf = _norm.logsf
pdf = _norm.pdf
sf = _norm.sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
