"""Gradient descent in HIPS autograd's forms, over nested containers of arrays.

The function that is followed downhill gets the parameters and the number of the step.  `callback`
gets the parameters before the step, its number and the gradient.  In new programs see
`tapegrad.optimize`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compat.autograd.misc.flatten import flatten

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any]


def _descend(
    grad: Gradient, x0: Any, callback: Callback | None, num_iters: int,
    move: Callable[[np.ndarray, int], Any],
) -> Any:  # fmt: skip
    """Steps from `x0`; `move` makes one of a gradient and the number of the step."""
    x, unflatten = flatten(x0)
    for i in range(num_iters):
        g = flatten(grad(unflatten(x), i))[0]
        if callback is not None:
            callback(unflatten(x), i, unflatten(g))
        x = x + move(g, i)
    return unflatten(x)


def sgd(
    grad: Gradient, x0: Any, callback: Callback | None = None, num_iters: int = 200,
    step_size: float = 0.1, mass: float = 0.9,
) -> Any:  # fmt: skip
    """Gradient descent with momentum: the velocity is a running mean of the gradients.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.misc.optimizers import sgd
    >>> round(sgd(grad(lambda x, i: (x - 3.0) ** 2), 0.0), 3)
    3.0
    """
    velocity = np.zeros_like(flatten(x0)[0])

    def move(g: np.ndarray, i: int) -> Any:
        velocity[...] = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _descend(grad, x0, callback, num_iters, move)


def rmsprop(
    grad: Gradient, x0: Any, callback: Callback | None = None, num_iters: int = 100,
    step_size: float = 0.1, gamma: float = 0.9, eps: float = 1e-8,
) -> Any:  # fmt: skip
    """Each coordinate's gradient over the root of a running mean of its squares.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.misc.optimizers import rmsprop
    >>> abs(rmsprop(grad(lambda x, i: (x - 3.0) ** 2), 0.0) - 3.0) < 0.1
    True
    """
    squares = np.ones_like(flatten(x0)[0])

    def move(g: np.ndarray, i: int) -> Any:
        squares[...] = gamma * squares + (1.0 - gamma) * g**2
        return -step_size * g / (np.sqrt(squares) + eps)

    return _descend(grad, x0, callback, num_iters, move)


def adam(
    grad: Gradient, x0: Any, callback: Callback | None = None, num_iters: int = 100,
    step_size: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
) -> Any:  # fmt: skip
    """Running means of gradients and of their squares, freed of the zeros that they began with.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.misc.optimizers import adam
    >>> abs(adam(grad(lambda x, i: (x - 3.0) ** 2), 0.0, step_size=0.1) - 3.0) < 0.1
    True
    """
    mean = np.zeros_like(flatten(x0)[0])
    squares = mean.copy()

    def move(g: np.ndarray, i: int) -> Any:
        mean[...] = b1 * mean + (1.0 - b1) * g
        squares[...] = b2 * squares + (1.0 - b2) * g**2
        free, free_squares = mean / (1.0 - b1 ** (i + 1)), squares / (1.0 - b2 ** (i + 1))
        return -step_size * free / (np.sqrt(free_squares) + eps)

    return _descend(grad, x0, callback, num_iters, move)


__all__ = ["adam", "rmsprop", "sgd"]
