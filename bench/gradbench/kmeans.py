"""k-means: the sum of the squared distances to the nearest centroid, and a step of Newton's method.

A centroid's coordinate does not meet another in the cost, so the Hessian is diagonal, and its
diagonal is its product with a vector of ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles, number


def objective(xp: Any, centroids: Any, points: Any) -> Any:
    """The cost; the square of a difference is taken apart, which makes a product of matrices."""
    squares = xp.sum(points * points, axis=1)[:, None] + xp.sum(centroids * centroids, axis=1)
    return xp.sum(xp.min(squares - 2.0 * (points @ centroids.T), axis=1))


def direction(ad: Any, xp: Any, cost: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the function to the gradient over the Hessian's diagonal."""

    def newton(centroids: Any, points: Any) -> Any:
        gradient = ad.grad(lambda c: cost(c, points))
        ones = xp.ones_like(centroids)
        slope, diagonal = ad.jvp(gradient, (centroids,), (ones,))
        return slope / diagonal

    return newton


def read(given: Input) -> Instance:
    """The centroids; the points."""
    return Instance((doubles(given["centroids"]),), (doubles(given["points"]),))


def generate(rng: np.random.Generator, k: int, n: int, d: int) -> dict[str, Any]:
    """Points between 0 and 1; the last are the centroids, so that no cluster is empty."""
    points = rng.random((n, d)).tolist()
    return {"points": points, "centroids": points[-k:]}


@compiled
def _nearest(centroids, point):
    best, place = np.inf, -1
    for j in range(len(centroids)):
        distance = 0.0
        for l in range(len(point)):
            off = point[l] - centroids[j, l]
            distance += off * off
        if distance < best:
            best, place = distance, j
    return best, place


@compiled
def primal_by_hand(centroids, points):
    """`objective`, as one writes it for speed."""
    total = 0.0
    for i in range(len(points)):
        total += _nearest(centroids, points[i])[0]
    return total


@compiled
def gradient_by_hand(centroids, points):
    """Its derivative, as one writes it for speed."""
    k, d = centroids.shape
    sums, sizes = np.zeros((k, d)), np.zeros(k)
    for i in range(len(points)):
        place = _nearest(centroids, points[i])[1]
        sizes[place] += 1
        for l in range(d):
            sums[place, l] += points[i, l]
    for j in range(k):
        for l in range(d):
            sums[j, l] = centroids[j, l] - sums[j, l] / sizes[j]
    return sums


EVAL = Eval(
    "kmeans", ("cost", "dir"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(number, lambda value, _: value.tolist()),
    standard={"k": 10, "n": 10000, "d": 8}, small={"k": 3, "n": 40, "d": 2},
    derivative=direction,
)  # fmt: skip
