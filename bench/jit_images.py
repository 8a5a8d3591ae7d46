"""Convolutions and sparse matrices in compiled functions: gradients and steps of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench import lenet
from bench.jit_gradients import Problem, gradients
from bench.problem import SEED
from bench.report import Row
from bench.sides.side import Side

GROUP = "convolutions and sparse matrices, gradient"


def images(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time gradients of functions of images, signals and grids."""
    yield from gradients(GROUP, problems(quick), libraries, threads, quick)


def problems(quick: bool) -> Iterator[Problem]:
    """Yield names, what makes a function of a library, and the arguments."""
    rng = np.random.default_rng(SEED)
    digits, labels = (x[:32] for x in lenet.digits())
    chosen = np.eye(10)[labels]
    yield "LeNet, 32 digits", lambda side: _training(side, digits, chosen), lenet.initial()
    x, w = rng.standard_normal((1, 3, 32, 32)), rng.standard_normal((8, 3, 3, 3))
    yield "image of 3 x 32 x 32, 8 filters of 3 x 3", _edges, (x, w)
    x, w = rng.standard_normal((1, 1, 1000)), rng.standard_normal((1, 1, 31))
    yield "signal of 1,000, filter of 31", _edges, (x, w)
    n, steps = (8, 4) if quick else (32, 40)
    name = f"heat on {n} x {n} points by a sparse matrix, {steps} steps"
    yield name, lambda side: _heated(side, n, steps), (rng.standard_normal(n * n),)


def _convolution(side: Side) -> Callable[..., Any]:
    """Return the convolution with zeros around that keep the size."""
    if side.name == "tapegrad":
        conv1d, conv2d = side.ad.nn.functional.conv1d, side.ad.nn.functional.conv2d
        return lambda x, w: (conv1d if w.ndim == 3 else conv2d)(x, w, padding="same")
    convolved = side.ad.lax.conv_general_dilated
    return lambda x, w: convolved(x, w, (1,) * (w.ndim - 2), "SAME")


def _pooling(side: Side) -> Callable[..., Any]:
    """Return the maximum over windows of 2 x 2."""
    if side.name == "tapegrad":
        return lambda x: side.ad.nn.functional.max_pool2d(x, 2)
    lax, steps = side.ad.lax, (1, 1, 2, 2)
    return lambda x: lax.reduce_window(x, -np.inf, lax.max, steps, steps, "VALID")


def _edges(side: Side) -> Callable[..., Any]:
    xp, convolved = side.xp, _convolution(side)
    return lambda x, w: xp.sum(xp.tanh(convolved(x, w)) ** 2)


def _training(side: Side, digits: np.ndarray, chosen: np.ndarray) -> Callable[..., Any]:
    """Return the loss of `bench.lenet`, of its weights."""
    xp, convolved, pooled = side.xp, _convolution(side), _pooling(side)
    digits = side.array(digits)

    def loss(*weights: Any) -> Any:
        w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = weights
        x = pooled(xp.maximum(convolved(digits, w1) + b1[:, None, None], 0.0))
        x = pooled(xp.maximum(convolved(x, w2) + b2[:, None, None], 0.0))
        x = xp.maximum(x.reshape(len(digits), -1) @ w3.T + b3, 0.0)
        x = xp.maximum(x @ w4.T + b4, 0.0) @ w5.T + b5
        return xp.mean(xp.logsumexp(x, 1) - xp.sum(x * chosen, axis=1))

    return loss


def _heated(side: Side, n: int, steps: int) -> Callable[..., Any]:
    """Return the energy after some explicit steps with zeros around the square."""
    from scipy import sparse

    line = sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    laplacian: Any = sparse.kronsum(line, line, format="csr")
    if side.name == "jax":
        from jax.experimental.sparse import BCSR

        laplacian = BCSR.from_scipy_sparse(laplacian)
    xp = side.xp
    return lambda u: xp.sum(xp.loop(steps, lambda u: u + 0.1 * (laplacian @ u), u) ** 2)
