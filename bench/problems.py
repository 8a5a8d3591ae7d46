"""The small problems: chains, a scalar expression, a recurrent network, a training step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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


def _network(xp: Any, inputs: list[Any], y: Any) -> Any:
    weights = inputs[0::2]
    for i, (w, b) in enumerate(zip(weights, inputs[1::2])):
        y = y @ w + b
        if i + 1 < len(weights):
            y = xp.tanh(y)
    return y


def _mlp(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    x, target = data
    return xp.nn.functional.mse_loss(_network(xp, inputs, x), target)


def _layers(rng: np.random.Generator, *widths: int) -> tuple[np.ndarray, ...]:
    found: list[np.ndarray] = []
    for n, m in itertools.pairwise(widths):
        found += [rng.standard_normal((n, m)) / np.sqrt(n), 0.1 * rng.standard_normal(m)]
    return tuple(found)


def mlp(widths: tuple[int, ...] = (64, 64, 64, 1), batch: int = 32) -> Problem:
    """Return a training step of a multilayer perceptron: gradient and update."""
    rng = np.random.default_rng(SEED)
    inputs = _layers(rng, *widths)
    data = (rng.standard_normal((batch, widths[0])), rng.standard_normal((batch, widths[-1])))
    shape = "-".join(map(str, widths)) if len(widths) < 6 else f"{len(widths) - 1} layers"
    name = f"MLP step, batch {batch}, widths {shape}"
    return Problem(name, _mlp, inputs, data, rate=1e-3)


def _penalty(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """The loss of a critic whose gradient in its input shall have norm 1 (WGAN-GP)."""
    x = data[0].detach().requires_grad_()
    y = _network(xp, inputs, x)
    (g,) = xp.autograd.grad(y.sum(), x, create_graph=True)
    return y.mean() + 10 * ((g.norm(dim=1) - 1) ** 2).mean()


def _curvature(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """The gradient times a vector; its gradient is the Hessian times the vector."""
    x, target, *vectors = data
    loss = ((_network(xp, inputs, x) - target) ** 2).mean()
    gradients = xp.autograd.grad(loss, inputs, create_graph=True)
    return sum((g * v).sum() for g, v in zip(gradients, vectors, strict=True))


def _residual(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    """The residual of u'' + u = f for a network u, at points of an interval."""
    x, f = data[0].detach().requires_grad_(), data[1]
    u = _network(xp, inputs, x)
    (slope,) = xp.autograd.grad(u.sum(), x, create_graph=True)
    (curve,) = xp.autograd.grad(slope.sum(), x, create_graph=True)
    return ((curve + u - f) ** 2).mean()


def recorded() -> Iterator[Problem]:
    """Yield losses that contain gradients, which are recorded and differentiated again."""
    rng = np.random.default_rng(SEED)
    inputs = _layers(rng, 16, 32, 32, 1)
    data = (rng.standard_normal((64, 16)),)
    yield Problem("gradient penalty, widths 16-32-32-1", _penalty, inputs, data, methods=True)
    vectors = [rng.standard_normal(x.shape) for x in inputs]
    data = (*data, rng.standard_normal((64, 1)), *vectors)
    name = "Hessian-vector product by two sweeps, widths 16-32-32-1"
    yield Problem(name, _curvature, inputs, data, methods=True)
    points = np.linspace(-1, 1, 64)[:, None]
    name = "residual of u'' + u = f, widths 1-20-20-1"
    yield Problem(
        name, _residual, _layers(rng, 1, 20, 20, 1), (points, np.sin(points)), methods=True
    )
