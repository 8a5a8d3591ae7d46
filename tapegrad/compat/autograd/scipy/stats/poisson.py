"""The Poisson distribution, as autograd has it: `tapegrad.scipy.stats.poisson`.

>>> import tapegrad.compat.autograd.scipy.stats.poisson as poisson
>>> from tapegrad.compat.autograd import grad
>>> grad(poisson.logpmf, argnum=1)(3.0, 2.0)
0.5
"""

from tapegrad.scipy.stats import poisson as _poisson

cdf = _poisson.cdf
logpmf = _poisson.logpmf
pmf = _poisson.pmf

__all__ = ["cdf", "logpmf", "pmf"]
