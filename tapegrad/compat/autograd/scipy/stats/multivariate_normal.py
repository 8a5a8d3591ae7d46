"""The normal distribution of vectors, with the functions of `scipy.stats.multivariate_normal`.

>>> import numpy as np
>>> import tapegrad.compat.autograd.scipy.stats.multivariate_normal as mvn
>>> from tapegrad.compat.autograd import grad
>>> grad(mvn.logpdf)(np.array([1.0, 2.0]), np.zeros(2), np.eye(2))
array([-1., -2.])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.compat.autograd.scipy._rules import composed, scipy
from tapegrad.tensor import Tensor


@composed("stats.multivariate_normal.logpdf")
def logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The logarithm of the density, for every vector along the last dimension.

    >>> import numpy as np
    >>> import tapegrad.compat.autograd.scipy.stats.multivariate_normal as mvn
    >>> float(mvn.logpdf(np.zeros(1), np.zeros(1), np.eye(1)))
    -0.9189385332046727
    """
    size = _size(x, mean, cov)
    away = x - mean
    if np.ndim(away) == 0 or np.shape(away)[-1] != size:
        away = np.expand_dims(away, -1)
    if allow_singular:
        if isinstance(cov, Tensor):
            raise NotImplementedError(
                "`multivariate_normal` with `allow_singular=True` has no derivative in the "
                "covariance: pass it as a constant, or leave `allow_singular` out"
            )
        highest = scipy("stats.multivariate_normal.logpdf")(
            np.zeros(size), np.zeros(size), cov, allow_singular=True
        )
        solved = np.matmul(away, np.linalg.pinv(_matrix(cov, size), hermitian=True))
    else:
        matrix = _matrix(cov, size)
        highest = -0.5 * (size * math.log(2.0 * math.pi) + np.linalg.slogdet(matrix)[1])
        solved = np.linalg.solve(matrix, np.reshape(away, (-1, size)).T).T
        solved = np.reshape(solved, np.shape(away))
    return highest - 0.5 * np.sum(away * solved, axis=-1)


@composed("stats.multivariate_normal.pdf")
def pdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    """The density.

    >>> import numpy as np
    >>> import tapegrad.compat.autograd.scipy.stats.multivariate_normal as mvn
    >>> float(mvn.pdf(np.zeros(1), np.zeros(1), np.eye(1)))
    0.3989422804014327
    """
    return np.exp(logpdf(x, mean, cov, allow_singular))


@composed("stats.multivariate_normal.entropy")
def entropy(mean: Any = 0.0, cov: Any = 1.0) -> Any:
    """The differential entropy.

    >>> import numpy as np
    >>> import tapegrad.compat.autograd.scipy.stats.multivariate_normal as mvn
    >>> float(mvn.entropy(np.zeros(1), np.eye(1)))
    1.4189385332046727
    """
    size = _size(mean, mean, cov)
    half = np.linalg.slogdet(_matrix(cov, size))[1] / 2
    return size * (1.0 + math.log(2.0 * math.pi)) / 2 + half


def _size(x: Any, mean: Any, cov: Any) -> int:
    """How many numbers a vector has."""
    if np.ndim(cov):
        return int(np.shape(cov)[-1])
    if np.ndim(mean):
        return int(np.shape(mean)[-1])
    return 1


def _matrix(cov: Any, size: int) -> Any:
    return cov if np.ndim(cov) == 2 else cov * np.eye(size)


__all__ = ["entropy", "logpdf", "pdf"]
