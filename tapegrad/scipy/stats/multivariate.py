"""Distributions of vectors, which lie along the last dimension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_face.common import operand
from tapegrad.scipy import special
from tapegrad.scipy.either import theirs
from tapegrad.scipy.stats.continuous import gamma
from tapegrad.scipy.stats.distribution import Family
from tapegrad.tensor import Tensor

Function = Callable[..., Any]


class Multivariate(Family):
    """A distribution of vectors.

    >>> import numpy as np, tapegrad as tg
    >>> alpha = tg.tensor([2.0, 4.0], requires_grad=True)
    >>> tg.scipy.stats.dirichlet.logpdf(np.array([0.25, 0.75]), alpha).backward(); alpha.grad
    tensor([-0.1030,  0.1623])
    """

    def __init__(self, name: str, **functions: Function) -> None:
        for log in {"logpdf", "logpmf"} & functions.keys():
            functions[log[3:]] = _exponential(functions[log])
        super().__init__(name, list(functions))
        self.functions = functions

    def _of_tensors(self, name: str, *args: Any, **kwargs: Any) -> Any:
        named = {key: operand(value) for key, value in kwargs.items()}
        return self.functions[name](*map(operand, args), **named)


def _exponential(log: Function) -> Function:
    return lambda *args, **kwargs: np.exp(log(*args, **kwargs))


def _normal_logpdf(x: Any, mean: Any = 0.0, cov: Any = 1.0, allow_singular: bool = False) -> Any:
    size = _size(mean, cov)
    away = x - mean
    if np.ndim(away) == 0 or np.shape(away)[-1] != size:
        away = np.expand_dims(away, -1)
    if allow_singular:
        if isinstance(cov, Tensor):
            raise NotImplementedError(
                "`multivariate_normal` with `allow_singular=True` has no derivative in the "
                "covariance: pass it as a constant, or leave `allow_singular` out"
            )
        highest = theirs("scipy.stats", "multivariate_normal").logpdf(
            np.zeros(size), np.zeros(size), cov, allow_singular=True
        )
        solved = np.matmul(away, np.linalg.pinv(_matrix(cov, size), hermitian=True))
    else:
        matrix = _matrix(cov, size)
        highest = -0.5 * (size * math.log(2.0 * math.pi) + np.linalg.slogdet(matrix)[1])
        solved = np.linalg.solve(matrix, np.reshape(away, (-1, size)).T).T
        solved = np.reshape(solved, np.shape(away))
    return highest - 0.5 * np.sum(away * solved, axis=-1)


def _normal_entropy(mean: Any = 0.0, cov: Any = 1.0) -> Any:
    size = _size(mean, cov)
    half = np.linalg.slogdet(_matrix(cov, size))[1] / 2
    return size * (1.0 + math.log(2.0 * math.pi)) / 2 + half


def _size(mean: Any, cov: Any) -> int:
    """How many numbers a vector has."""
    if np.ndim(cov):
        return int(np.shape(cov)[-1])
    return int(np.shape(mean)[-1]) if np.ndim(mean) else 1


def _matrix(cov: Any, size: int) -> Any:
    if np.ndim(cov) == 1:
        return np.diag(cov)
    return cov if np.ndim(cov) == 2 else cov * np.eye(size)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    # The parts, which sum up to 1, lie along the first dimension.
    weights = special.xlogy(alpha - 1, np.transpose(x))
    total = special.gammaln(np.sum(alpha)) - np.sum(special.gammaln(alpha))
    return np.sum(weights, axis=-1) + total


def _dirichlet_rvs(alpha: Any, size: Any = 1, random_state: Any = None) -> Any:
    # Gamma variables as shares of their sum, one vector in each row.
    size = tuple(size) if np.iterable(size) else (size,)
    parts = gamma.rvs(alpha, size=(*size, *np.shape(alpha)), random_state=random_state)
    return parts / np.sum(parts, axis=-1, keepdims=True)


def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    terms = special.xlogy(x, p) - special.gammaln(x + 1.0)
    found = special.gammaln(n + 1.0) + np.sum(terms, axis=-1)
    return np.where(np.sum(x, axis=-1) == n, found, -np.inf)


multivariate_normal = Multivariate(
    "multivariate_normal", logpdf=_normal_logpdf, entropy=_normal_entropy
)
dirichlet = Multivariate("dirichlet", logpdf=_dirichlet_logpdf, rvs=_dirichlet_rvs)
multinomial = Multivariate("multinomial", logpmf=_multinomial_logpmf)
