"""Models whose gradients are compiled: networks, a partial differential equation, a filter."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bench.problem import SEED
from bench.sides.side import Side

STEPS = 50
# Of the block of a transformer: examples, tokens of each, their width, heads.
BATCH, TOKENS, WIDTH, HEADS = 4, 32, 64, 4

Model = tuple[Callable[..., Any], tuple[np.ndarray, ...], int]  # with how many first are variables


def mlp(layers: int) -> Model:
    """Return the loss of a network, 32 examples, in its weights."""
    rng = np.random.default_rng(SEED)
    sizes = (16, *[64] * (layers - 1), 1)
    weights = [rng.standard_normal((n, m)) / n**0.5 for n, m in pairwise(sizes)]
    biases = [np.zeros(size) for size in sizes[1:]]
    x, target = rng.standard_normal((32, 16)), rng.standard_normal((32, 1))

    def loss(xp: Any, factor: float, *arrays: Any) -> Any:
        x, target = arrays[2 * layers :]
        x = factor * x
        for k in range(layers):
            x = x @ arrays[k] + arrays[layers + k]
            x = xp.tanh(x) if k + 1 < layers else x
        return xp.mean((x - target) ** 2)

    return loss, (*weights, *biases, x, target), 2 * layers


def transformer() -> Model:
    """Return what a block of a transformer makes of a batch, squared, in its weights."""
    rng = np.random.default_rng(SEED)
    shapes = [(WIDTH, WIDTH)] * 4 + [(WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    weights = [rng.standard_normal(shape) / shape[0] ** 0.5 for shape in shapes]
    gains = [np.ones(WIDTH), np.zeros(WIDTH), np.ones(WIDTH), np.zeros(WIDTH)]
    x = rng.standard_normal((BATCH, TOKENS, WIDTH))

    def loss(xp: Any, factor: float, *arrays: Any) -> Any:
        wq, wk, wv, wo, w1, w2, g1, b1, g2, b2, x = arrays

        def norm(x: Any, gain: Any, bias: Any) -> Any:
            away = x - xp.mean(x, axis=-1, keepdims=True)
            return away / xp.sqrt(xp.mean(away * away, axis=-1, keepdims=True) + 1e-5) * gain + bias

        def heads(x: Any) -> Any:
            return xp.swapaxes(xp.reshape(x, (BATCH, TOKENS, HEADS, WIDTH // HEADS)), 1, 2)

        x = factor * x
        h = norm(x, g1, b1)
        q, k, v = heads(h @ wq), heads(h @ wk), heads(h @ wv)
        scores = q @ xp.swapaxes(k, 2, 3) * (HEADS / WIDTH) ** 0.5
        share = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        share = share / xp.sum(share, axis=-1, keepdims=True)
        x = x + xp.reshape(xp.swapaxes(share @ v, 1, 2), (BATCH, TOKENS, WIDTH)) @ wo
        x = x + xp.tanh(norm(x, g2, b2) @ w1) @ w2
        return xp.mean(x * x)

    return loss, (*weights, *gains, x), 10


def stencil() -> Model:
    """Return how far heat is from a goal after some steps, in the start and the conductivity."""
    rng = np.random.default_rng(SEED)
    start, goal = rng.uniform(size=(2, 64, 64))
    conductivity = rng.uniform(0.05, 0.2, (64, 64))

    def loss(xp: Any, factor: float, u: Any, k: Any, goal: Any) -> Any:
        for _ in range(STEPS):
            around = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
            u = u + factor * k * (around - 4.0 * u)
        return xp.mean((u - goal) ** 2)

    return loss, (start, conductivity, goal), 2


def kalman() -> Model:
    """Return the log-likelihood of readings of a moving point, in how it moves and the noise."""
    rng = np.random.default_rng(SEED)
    moves = np.eye(4) + 0.1 * np.eye(4, k=2)
    seen = np.eye(2, 4)
    noise, blur = 0.01 * np.eye(4), 0.1 * np.eye(2)
    readings = np.cumsum(rng.standard_normal((STEPS, 2)), axis=0)

    def loss(xp: Any, factor: float, f: Any, q: Any, r: Any, h: Any, y: Any) -> Any:
        x, p, total = xp.zeros(4), factor * np.eye(4), 0.0
        for i in range(STEPS):
            x, p = f @ x, f @ p @ f.T + q
            s = h @ p @ h.T + r
            away = y[i] - h @ x
            gain = xp.linalg.solve(s, h @ p).T
            total = total + away @ xp.linalg.solve(s, away) + xp.linalg.slogdet(s)[1]
            x, p = x + gain @ away, p - gain @ h @ p
        return total

    return loss, (moves, noise, blur, seen, readings), 3


def gradient(model: Model, side: Side, ad: Any, factor: float) -> Callable[..., Any]:
    """Return the gradient of a model with a library; another factor makes another program."""
    loss, _, count = model
    return ad.grad(lambda *arrays: loss(side.xp, factor, *arrays), argnums=tuple(range(count)))
