"""Gradients through differential equations, solved with steps of adapted size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.jit_gradients import Problem, gradients
from bench.report import Row
from bench.sides.side import Side

GROUP = "differential equations, gradient"
TOLERANCE = 1e-8  # of a step
AGREEMENT = 1e-4  # of gradients: the libraries take other steps


def solvers(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time gradients in parameters and in the first state."""
    yield from gradients(GROUP, problems(quick), libraries, threads, quick, AGREEMENT)


def problems(quick: bool) -> Iterator[Problem]:
    """Yield names, what makes a function of a library, and the arguments."""
    end = 1.0 if quick else 10.0
    rates, two = np.array([1.5, 1.0, 3.0, 1.0]), np.ones(2)
    yield "predators and prey", lambda side: _solved(side.xp, _animals, end), (two, rates)
    places = np.linspace(0.0, 2 * np.pi, 64, endpoint=False)
    front, wave = np.array([0.1, 1.0]), 0.5 + 0.3 * np.sin(places)
    yield "reaction and diffusion, 64", lambda side: _solved(side.xp, _front, end), (wave, front)


def _solved(xp: Any, slope: Callable[..., Any], end: float) -> Callable[..., Any]:
    """The sum of the squares of a solution at eleven times."""
    times = np.linspace(0.0, end, 11)

    def f(y0: Any, p: Any) -> Any:
        solution = xp.odeint(lambda y, t, p: slope(xp, y, p), y0, times, p, TOLERANCE)
        return xp.sum(solution**2)

    return f


def _animals(xp: Any, y: Any, p: Any) -> Any:
    """Lotka and Volterra's equations."""
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


def _front(xp: Any, y: Any, p: Any) -> Any:
    """Fisher's equation on a ring of points."""
    spread = xp.roll(y, 1) - 2 * y + xp.roll(y, -1)
    return 10 * p[0] * spread + p[1] * y * (1 - y)
