"""The small problems: chains, a scalar expression, a recurrent network, a training step."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bench.problem import SEED, Problem

CHAIN_OPS = 200
SCALAR_OPS = 30


def _chain(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """Twenty times ten ordinary operations, each on the result of the one before."""
    x, a, b, d = inputs
    (c,) = data
    y = x
    for _ in range(CHAIN_OPS // 10):
        y = y * a
        y = y + b
        y = xp.tanh(y)
        y = y - c
        y = xp.sin(y)
        y = y * 0.5
        y = xp.exp(y)
        y = y / d
        y = y + x
        y = xp.sigmoid(y)
    return y


def chain(size: int) -> Problem:
    """Return the chain of 200 operations at this many elements."""
    rng = np.random.default_rng(SEED)
    x, a, b, c = rng.standard_normal((4, size))
    d = rng.uniform(1.5, 2.5, size)
    return Problem(f"chain of {CHAIN_OPS}, {size} elements", _chain, (x, a, b, d), (c,))


def _scalar(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """Thirty operations on numbers; the count so far stands behind each line."""
    a, b, c, d = inputs
    r = xp.exp(-a * b)  # 3
    s = xp.sin(c * b + d)  # 6
    q = r * s  # 7
    u = xp.sqrt(q * q + 1.0)  # 10
    v = xp.log(u + a * a)  # 13
    w = xp.tanh(v - q)  # 15
    p = w / u + xp.cos(d * v)  # 19
    z = p * p - q * w  # 22
    t = xp.sigmoid(z * c)  # 24
    return xp.tanh((t * u + z) * r - v / b)  # 30


def scalar() -> Problem:
    """Return an expression of 30 operations on 0-d tensors."""
    values = (0.3, 1.7, 2.1, 0.4)
    return Problem(f"scalar expression of {SCALAR_OPS}", _scalar, tuple(map(np.array, values)))


def _rnn(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    w, u, b = inputs
    h, *xs = data
    for x in xs:
        h = xp.tanh(x @ w + h @ u + b)
    return xp.mean(h * h)


def rnn(steps: int = 50, width: int = 16, batch: int = 8) -> Problem:
    """Return a recurrent network, differentiated through all its steps."""
    rng = np.random.default_rng(SEED)
    w, u = rng.standard_normal((2, width, width)) / np.sqrt(width)
    b = rng.standard_normal(width)
    data = (np.zeros((batch, width)), *rng.standard_normal((steps, batch, width)))
    return Problem(f"RNN, {steps} steps, width {width}", _rnn, (w, u, b), data)


def _mlp(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    y, target = data
    weights = inputs[0::2]
    for i, (w, b) in enumerate(zip(weights, inputs[1::2])):
        y = y @ w + b
        if i + 1 < len(weights):
            y = xp.tanh(y)
    return xp.nn.functional.mse_loss(y, target)


def mlp(widths: tuple[int, ...] = (64, 64, 64, 1), batch: int = 32) -> Problem:
    """Return a training step of a multilayer perceptron: gradient and update."""
    rng = np.random.default_rng(SEED)
    inputs: list[np.ndarray] = []
    for n, m in itertools.pairwise(widths):
        inputs += [rng.standard_normal((n, m)) / np.sqrt(n), 0.1 * rng.standard_normal(m)]
    data = (rng.standard_normal((batch, widths[0])), rng.standard_normal((batch, widths[-1])))
    shape = "-".join(map(str, widths)) if len(widths) < 6 else f"{len(widths) - 1} layers"
    name = f"MLP step, batch {batch}, widths {shape}"
    return Problem(name, _mlp, tuple(inputs), data, rate=1e-3)
