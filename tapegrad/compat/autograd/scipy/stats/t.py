"""Student's t distribution, as autograd has it: `tapegrad.scipy.stats.t`.

>>> import tapegrad.compat.autograd.scipy.stats.t as t
>>> from tapegrad.compat.autograd import grad
>>> grad(t.logpdf)(1.0, 3.0)
-1.0
"""

from tapegrad.scipy.stats import t as _t

cdf = _t.cdf
logcdf = _t.logcdf
logpdf = _t.logpdf
pdf = _t.pdf

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
