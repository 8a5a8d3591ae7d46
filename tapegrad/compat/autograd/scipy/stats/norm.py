"""The normal distribution, with the functions of `scipy.stats.norm`.

>>> import tapegrad.compat.autograd.scipy.stats.norm as norm
>>> from tapegrad.compat.autograd import grad
>>> grad(norm.logpdf)(2.0), grad(norm.cdf, argnum=2)(1.0, 0.0, 2.0)
(-2.0, -0.08801633169107488)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.functions.elementwise import log_ndtr, ndtr
from tapegrad.tensor import Tensor


def _values(t: Tensor) -> Any:
    """An array, unless something is differentiated."""
    from tapegrad.transforms.call_arguments import value_back

    return value_back(t, tensors=False)


def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The logarithm of the density.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> float(norm.logpdf(0.0))
    -0.9189385332046727
    """
    z = (x - loc) / scale
    return -0.5 * z**2 - np.log(scale) - 0.5 * math.log(2.0 * math.pi)


def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The density.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> float(norm.pdf(0.0))
    0.3989422804014327
    """
    return np.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The probability of values below.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> norm.cdf(0.0)
    0.5
    """
    return _values(ndtr((x - loc) / scale))


def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Its logarithm.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> norm.logcdf(0.0)
    -0.6931471805599453
    """
    return _values(log_ndtr((x - loc) / scale))


def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """The probability of values above.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> norm.sf(0.0)
    0.5
    """
    return _values(ndtr((loc - x) / scale))


def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Its logarithm.

    >>> from tapegrad.compat.autograd.scipy.stats import norm
    >>> norm.logsf(0.0)
    -0.6931471805599453
    """
    return _values(log_ndtr((loc - x) / scale))


__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
