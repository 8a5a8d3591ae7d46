"""Densities estimated by a kernel around each number of a sample, as SciPy estimates them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import among
from tapegrad.scipy.linalg import solve_triangular
from tapegrad.scipy.special import logsumexp


class gaussian_kde:
    """The density of which `dataset` is a sample, by normal densities around its numbers.

    It is differentiated in the sample, of one dimension or a row for each, in the weights, the
    bandwidth and the places.

    >>> import numpy as np, tapegrad as tg
    >>> density = lambda x: tg.scipy.stats.gaussian_kde(x, 0.5)(np.array([0.0]))[0]
    >>> tg.grad(density)(np.array([-1.0, 1.0])).round(4)
    array([ 0.1038, -0.1038])
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        x = floating(tensor(dataset)) if among((dataset, bw_method, weights)) else dataset
        self.dataset = np.atleast_2d(x)
        self.d, self.n = self.dataset.shape
        if weights is None:
            self.weights: Any = np.full(self.n, 1.0 / self.n)
        else:
            given = tensor(weights) if among(weights) else np.asarray(weights, float)
            self.weights = given / np.sum(given)
        self.neff = 1.0 / np.sum(self.weights**2)
        self.factor = self._factor("scott" if bw_method is None else bw_method)
        from_mean = self.dataset - np.sum(self.weights * self.dataset, 1, keepdims=True)
        spread = (from_mean * self.weights) @ from_mean.T / (1.0 - np.sum(self.weights**2))
        self.covariance = spread * self.factor**2
        self._root = np.linalg.cholesky(self.covariance)

    def _factor(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if not isinstance(method, str):
            return method
        if method not in ("scott", "silverman"):
            raise ValueError(
                "`scipy.stats.gaussian_kde`: bw_method is 'scott', 'silverman', a number or a "
                f"function, got {method!r}"
            )
        return self.scotts_factor() if method == "scott" else self.silverman_factor()

    def scotts_factor(self) -> Any:
        """The bandwidth by Scott's rule, over the standard deviation."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """The bandwidth by Silverman's rule, over the standard deviation."""
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at some places, of which each is a column.

        >>> import numpy as np, tapegrad as tg
        >>> tg.scipy.stats.gaussian_kde(tg.tensor([-1.0, 1.0])).logpdf([0.0]).round(decimals=4)
        tensor([-1.4568])
        """
        places = np.atleast_2d(tensor(x) if among(x) or among(self.dataset) else np.asarray(x))
        if places.shape[0] != self.d and places.shape[0] == 1:
            places = np.reshape(places, (self.d, -1))  # one place
        own, at = (solve_triangular(self._root, t, lower=True) for t in (self.dataset, places))
        squares = np.sum((at[:, :, None] - own[:, None, :]) ** 2, 0)
        each = logsumexp(np.log(self.weights) - 0.5 * squares, axis=1)
        return each - np.sum(np.log(np.diagonal(self._root))) - 0.5 * self.d * np.log(2 * np.pi)

    def evaluate(self, points: Any) -> Any:
        """The density at some places, of which each is a column.

        >>> import tapegrad as tg
        >>> tg.scipy.stats.gaussian_kde(tg.tensor([-1.0, 1.0])).evaluate([0.0]).round(decimals=4)
        tensor([0.2330])
        """
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate
