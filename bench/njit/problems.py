"""The functions that are measured, with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.gradbench import find
from bench.gradbench.gmm import constant
from bench.njit import arrays, by_hand, evals, programs
from bench.problem import SEED

Function = Callable[..., Any]
BY_HAND = ("gmm", "llsq", "lstm", "ode", "det")  # the evals whose derivative is a gradient


@dataclass(frozen=True, slots=True)
class Problem:
    """A function of numbers and arrays.

    Parameters
    ----------
    count
        In how many arguments, the first, it is differentiated.
    by_hand
        What returns the gradients, maybe after the value, as a person writes it; it takes the same
        arguments but those at the end that are `extra`.
    arrays
        The same function over whole arrays, called with `xp` and those arguments that are arrays
        or are differentiated in.
    """

    name: str
    function: Any
    arguments: tuple[Any, ...]
    count: int
    by_hand: Function | None = None
    arrays: Function | None = None
    extra: int = 0

    @property
    def given(self) -> tuple[Any, ...]:
        """The arguments of the adjoint by hand."""
        return self.arguments[: len(self.arguments) - self.extra]


def problems(quick: bool) -> Iterator[Problem]:
    """Yield all of them, with small arguments where it is to be quick."""
    yield from ten(quick)
    yield from of_gradbench(quick)


def ten(quick: bool) -> Iterator[Problem]:
    """Yield the ten programs."""
    rng = np.random.default_rng(SEED)
    n, f = rng.normal, programs
    size = lambda standard, small: small if quick else standard
    starts = n(size=size(2000, 5)) / 10 + 4.0
    yield Problem("Newton, while and break", f.newtons, (1.0, -2.0, 0.5, 0.3, starts), 4)
    x = n(size=size(100_000, 20))
    yield Problem("Rosenbrock", f.rosen, (x,), 1, by_hand.rosen, arrays.rosen)
    bodies, steps = size(8, 3), size(200, 4)
    given = (n(size=(bodies, 3)), n(size=(bodies, 3)), np.abs(n(size=bodies)), steps, 1e-3)
    yield Problem("n bodies, Runge and Kutta", f.nbody, given, 3)
    h, times = size(32, 3), size(100, 4)
    given = (n(size=(4 * h, 14)), n(size=(4 * h, h)), n(size=4 * h), n(size=(times, 14)))
    yield Problem("LSTM", f.lstm, given, 4, None, arrays.lstm)
    k, d, count = size(10, 3), size(8, 2), size(1000, 6)
    given = (n(size=k), n(size=(k, d)), n(size=(k, d)) / 10, n(size=(count, d)))
    yield Problem("Gaussian mixture", f.gmm, given, 4, by_hand.gmm, arrays.gmm)
    a = n(size=(size(150, 6),) * 2)
    given = (a @ a.T + len(a) * np.eye(len(a)), n(size=len(a)))
    yield Problem("Cholesky in place", f.chol, given, 2, by_hand.chol)
    steps = size(100, 4)
    given = (n(size=(size(100, 7),) * 2), 0.1, steps)
    field = lambda xp, u, kappa: arrays.stencil(xp, u, kappa, steps)
    yield Problem("stencil, two buffers", f.stencil, given, 2, by_hand.stencil, field)
    given = (1.0, 0.5, 0.3, rng.uniform(1.0, 2.0, size(100, 3)), size(100, 7))
    yield Problem("spiral, calls", f.spirals, given, 4)
    k, d, count = size(10, 3), size(16, 4), size(2000, 6)
    given = (n(size=(k, d)), n(size=(count, d)), np.arange(count) % k)
    yield Problem("hinge loss", f.hinge, given, 2, by_hand.hinge)
    given = (n(size=size(10_000, 6)), n(size=size(10_000, 6)))
    yield Problem("array expressions", f.arrexpr, given, 2, None, arrays.arrexpr)


def of_gradbench(quick: bool) -> Iterator[Problem]:
    """Yield GradBench's evals."""
    rng = np.random.default_rng(SEED)
    for name in ("gmm", "ba", "kmeans", "llsq", "lstm", "ode", "det"):
        problem = find(name)
        instance = problem.instance(problem.small if quick else problem.standard, SEED)
        static = tuple(instance.static.values())
        given = (*instance.inputs, *instance.data, *static)
        extra: tuple[float, ...] = ()
        if name == "gmm":
            (n, d), k = instance.data[0].shape, len(instance.inputs[0])
            extra = (constant(n, d, k, *static),)
        yield Problem(
            name, getattr(evals, name), (*given, *extra), len(instance.inputs),
            problem.gradient_by_hand if name in BY_HAND else None,
            arrays.number_of(name, instance) if name != "det" else None, len(extra),
        )  # fmt: skip
    size = lambda standard, small: small if quick else standard
    x = rng.normal(size=size(100_000, 20))
    yield Problem("lse", evals.lse, (x,), 1, None, arrays.lse)
    given = evals.hand(rng, size(2000, 8), size(1000, 5))
    yield Problem("ht", evals.ht, given, 2)
    given = (rng.normal(size=size(50, 3)) / 10 + 0.5,)
    yield Problem("particle", evals.particle, given, 1)
    yield Problem("saddle", evals.saddle, (rng.normal(size=(size(500, 3), 2)),), 1)
