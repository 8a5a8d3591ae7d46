"""The normal distribution of vectors, `tapegrad.scipy.stats.multivariate_normal`.

>>> import numpy as np
>>> import tapegrad.compat.autograd.scipy.stats.multivariate_normal as mvn
>>> from tapegrad.compat.autograd import grad
>>> grad(mvn.logpdf)(np.array([1.0, 2.0]), np.zeros(2), np.eye(2))
array([-1., -2.])
"""

from tapegrad.scipy.stats import multivariate_normal as _multivariate_normal

entropy = _multivariate_normal.entropy
logpdf = _multivariate_normal.logpdf
pdf = _multivariate_normal.pdf

__all__ = ["entropy", "logpdf", "pdf"]
