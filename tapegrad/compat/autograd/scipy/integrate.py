"""Ordinary differential equations, differentiated by their adjoint equation.

>>> import numpy as np
>>> from tapegrad.compat.autograd import grad
>>> from tapegrad.compat.autograd.scipy.integrate import odeint
>>> decay = lambda y, t, rate: -rate * y
>>> f = lambda rate: odeint(decay, np.ones(1), np.array([0.0, 1.0]), (rate,))[-1, 0]
>>> float(round(grad(f)(0.5), 4))
-0.6065
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tapegrad.compat.autograd.misc.flatten import flatten
from tapegrad.compat.autograd.numpy import array
from tapegrad.compat.autograd.operators import make_vjp
from tapegrad.scipy.either import theirs
from tapegrad.transforms.primitives import defvjp, primitive


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.integrate"), name)


@primitive
def _solved(func: Any, y0: Any, t: Any, args: Any, options: Any) -> Any:
    return theirs("scipy.integrate", "odeint")(func, y0, t, args, **options)


def odeint(func: Any, y0: Any, t: Any, args: Any = (), **options: Any) -> Any:
    """The solution of ``dy/dt = func(y, t, *args)``, differentiable in `y0`, `t` and `args`.

    What `func` reads besides is a constant: pass it among `args`.

    >>> import numpy as np
    >>> from tapegrad.compat.autograd.scipy.integrate import odeint
    >>> odeint(lambda y, t: np.ones(1), np.zeros(1), np.array([0.0, 2.0])).round(6)
    array([[0.],
           [2.]])
    """
    return _solved(func, y0, t, tuple(args), options)


def _adjoint(y: Any, func: Any, y0: Any, t: Any, args: Any, options: Any) -> Any:
    """The function from weights of the solution to the gradients in y0, t and args."""
    size = np.shape(y0)[0]
    flat_args, unflatten = flatten(args)

    def backwards(state: Any, then: Any, flat: Any) -> Any:
        """The changes of the solution, of its adjoint, and of the gradients, in reversed time."""
        pull, slope = make_vjp(lambda x: func(x[:size], -then, *unflatten(x[size:])))(
            np.concatenate([state[:size], flat])
        )
        return np.concatenate([-slope, pull(state[size : 2 * size])])

    def pull(g: Any) -> Any:
        weights, more = np.zeros(size), np.zeros(np.shape(flat_args)[0])
        times = []
        for k in range(np.shape(t)[0] - 1, 0, -1):
            weights = weights + g[k]
            times.append(np.dot(func(y[k], t[k], *args), g[k]))
            start = np.concatenate([y[k], weights, more])
            end = odeint(backwards, start, array([-t[k], -t[k - 1]]), (flat_args,), **options)[1]
            weights, more = end[size : 2 * size], end[2 * size :]
        times.append(-np.dot(func(y[0], t[0], *args), weights))
        return weights + g[0], array(times[::-1]), unflatten(more)

    return pull


defvjp(
    _solved,
    *[lambda *known, k=k: lambda g: _adjoint(*known)(g)[k] for k in range(3)],
    argnums=(1, 2, 3),
)

__all__ = ["odeint"]
