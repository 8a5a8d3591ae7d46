"""Linear least squares: how far a polynomial is from the sign of its argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled, doubles, first, number

# So many points at a time stay in the registers and the nearest cache.
BLOCK = 64


def objective(xp: Any, x: Any, t: Any, s: Any) -> Any:
    """Half the sum of squares of ``s - x[0] - x[1] t - x[2] t² - ...``, by Horner's rule."""
    value = 0.0
    for coefficient in reversed(list(x)):
        value = value * t + coefficient
    return 0.5 * xp.sum((s - value) ** 2)


def read(given: Input) -> Instance:
    """The coefficients; where the polynomial is taken, and the signs there."""
    t = np.linspace(-1.0, 1.0, given["n"])
    return Instance((doubles(given["x"]),), (t, np.sign(t)))


def generate(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    """Coefficients between 0 and 1."""
    return {"x": rng.random(m).tolist(), "n": n}


@compiled
def primal_by_hand(x, t, s):
    """`objective`, as one writes it for speed."""
    value = np.empty(BLOCK)
    total = 0.0
    for start in range(0, len(t), BLOCK):
        size = min(BLOCK, len(t) - start)
        _off(x, t[start : start + size], s[start : start + size], value)
        for i in range(size):
            total += value[i] * value[i]
    return 0.5 * total


@compiled
def gradient_by_hand(x, t, s):
    """Its derivative, as one writes it for speed."""
    off, power = np.empty(BLOCK), np.empty(BLOCK)
    found = np.zeros(len(x))
    for start in range(0, len(t), BLOCK):
        size = min(BLOCK, len(t) - start)
        ts = t[start : start + size]
        _off(x, ts, s[start : start + size], off)
        power[:] = 1.0
        for j in range(len(x)):
            total = 0.0
            for i in range(size):
                total += off[i] * power[i]
                power[i] *= ts[i]
            found[j] -= total
    return (found,)


@compiled
def _off(x, t, s, value):
    value[:] = 0.0
    for j in range(len(x) - 1, -1, -1):
        for i in range(len(t)):
            value[i] = value[i] * t[i] + x[j]
    for i in range(len(t)):
        value[i] = s[i] - value[i]


EVAL = Eval(
    "llsq", ("primal", "gradient"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(number, first),
    standard={"n": 8196, "m": 128}, small={"n": 70, "m": 5},
)  # fmt: skip
