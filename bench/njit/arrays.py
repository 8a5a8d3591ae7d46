"""The same functions over whole arrays, for libraries that trace: `xp` has NumPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.gradbench import find
from bench.gradbench.evaluation import Instance

Function = Callable[..., Any]


def rosen(xp: Any, x: Any) -> Any:
    """Rosenbrock's function."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def lstm(xp: Any, w: Any, u: Any, b: Any, xs: Any) -> Any:
    """The network; `xp.scan` does a step for each row."""
    size = u.shape[1]

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        z = b + w @ x + u @ h
        gate = lambda k: xp.sigmoid(z[k * size : (k + 1) * size])
        c = gate(1) * c + gate(0) * xp.tanh(z[3 * size :])
        h = gate(2) * xp.tanh(c)
        return (h, c), xp.sum(h * h)

    start = xp.zeros_like(u[0])
    return xp.mean(xp.scan(step, (start, start), xs)[1])


def gmm(xp: Any, alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    """The likelihood."""
    off = (x[:, None, :] - means) * xp.exp(icf)
    inner = alphas + xp.sum(icf, axis=1) - 0.5 * xp.sum(off * off, axis=2)
    return xp.sum(xp.logsumexp(inner, 1))


def stencil(xp: Any, u: Any, kappa: Any, steps: int) -> Any:
    """The diffusion; `xp.loop` does a step so many times."""

    def step(u: Any) -> Any:
        c = u[1:-1, 1:-1]
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * c
        inner = c + kappa * lap * (1.0 + 0.1 * c * c)
        rows = xp.concatenate([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        return xp.concatenate([u[:1], rows, u[-1:]], axis=0)

    return xp.sum(xp.loop(steps, step, u) ** 2)


def arrexpr(xp: Any, a: Any, b: Any) -> Any:
    """Elementwise functions and a product."""
    return xp.sum(xp.exp(-a * b) * xp.sin(a + 1.0)) + a @ b


def lse(xp: Any, x: Any) -> Any:
    """The logarithm of a sum of exponentials."""
    return xp.logsumexp(x, 0)


def number_of(name: str, instance: Instance) -> Function:
    """GradBench's objective, made one number where it is not: called with `xp` and arrays."""
    problem = find(name)

    def objective(xp: Any, *arrays: Any) -> Any:
        found = problem.objective(xp, *arrays, **instance.static)
        if name == "ode":
            return found[-1]
        if name == "ba":
            return 0.5 * (xp.sum(found[0] ** 2) + xp.sum(found[1] ** 2))
        return found

    return objective
