"""An ordinary differential equation by Runge and Kutta's fourth order.

Element i of the state grows by x[i] times element i - 1, the first by x[0]. The gradient is that
of the last element. GradBench's own reference for it is the closed form of the exact solution; by
hand stands here the adjoint of the steps, which is what every tool computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles, first

END = 2.0


def objective(xp: Any, x: Any, start: Any, *, steps: int) -> Any:
    """The state at the end; `xp.loop` does a step so many times."""
    h, one = END / steps, start[:1] + 1.0

    def slope(y: Any) -> Any:
        return x * xp.concatenate([one, y[:-1]])

    def step(y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return xp.loop(steps, step, start)


def last(ad: Any, xp: Any, f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return the gradient of the last element."""
    return ad.grad(lambda x, start: f(x, start)[-1], argnums=(0,))


def read(given: Input) -> Instance:
    """The rates; the state at the start, which is zero."""
    x = doubles(given["x"])
    return Instance((x,), (np.zeros_like(x),), {"steps": given["s"]})


def generate(rng: np.random.Generator, n: int, s: int) -> dict[str, Any]:
    """Rates between 0 and 1."""
    return {"x": rng.random(n).tolist(), "s": s}


@compiled
def _steps(x, start, steps, states):
    """Do all steps; keep what the slopes are taken at, if there is room for it."""
    n, h = len(x), END / steps
    y, at, k, total = start.copy(), np.empty(n), np.zeros(n), np.empty(n)
    for step in range(steps):
        for stage in range(4):
            reach = (0.0, h / 2, h / 2, h)[stage]
            weight = (h / 6, h / 3, h / 3, h / 6)[stage]
            if len(states):
                at = states[4 * step + stage]
            for i in range(n):
                at[i] = y[i] + reach * k[i]
                if stage == 0:
                    total[i] = y[i]
            k[0] = x[0]
            for i in range(1, n):
                k[i] = x[i] * at[i - 1]
            for i in range(n):
                total[i] += weight * k[i]
        y, total = total, y
    return y


@compiled
def primal_by_hand(x, start, steps):
    """`objective`, as one writes it for speed."""
    return _steps(x, start, steps, np.empty((0, len(x))))


@compiled
def gradient_by_hand(x, start, steps):
    """The gradient of its last element, as one writes it for speed."""
    n, h = len(x), END / steps
    states = np.empty((4 * steps, n))
    _steps(x, start, steps, states)
    # The adjoints of the state after the step and before it, of a slope, of where it was taken.
    after, before, g_k, g_at = np.zeros(n), np.zeros(n), np.empty(n), np.zeros(n)
    after[n - 1] = before[n - 1] = 1.0
    found = np.zeros(n)
    for step in range(steps - 1, -1, -1):
        for stage in range(3, -1, -1):
            weight = (h / 6, h / 3, h / 3, h / 6)[stage]
            # How far along this slope the next stage was taken; none comes after the last.
            ahead = (h / 2, h / 2, h, 0.0)[stage]
            at = states[4 * step + stage]
            for i in range(n):
                g_k[i] = weight * after[i] + ahead * g_at[i]
            found[0] += g_k[0]
            for i in range(1, n):
                found[i] += g_k[i] * at[i - 1]
            for i in range(n - 1):
                g_at[i] = g_k[i + 1] * x[i + 1]
                before[i] += g_at[i]
            g_at[n - 1] = 0.0
        for i in range(n):
            after[i] = before[i]
    return (found,)


EVAL = Eval(
    "ode", ("primal", "gradient"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(lambda value, _: value.tolist(), first),
    standard={"n": 10000, "s": 10}, small={"n": 6, "s": 3},
    derivative=last,
)  # fmt: skip
