"""What a call of a compiled function costs when the function does almost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np

from bench.check import VALUE_TOLERANCE, Disagreement
from bench.gradbench.evaluation import Call, as_numpy, largest_difference
from bench.problem import Unsupported
from bench.report import Row, at_least, ratios_to, unsteady
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

NAMES = ("tapegrad", "numba", "jax", "casadi")
POINT = np.array([0.3, -0.7, 1.1, 2.0])
GROUP = "call of a compiled function of 4 doubles"
LEAST, MOST, MOST_IN_NUMBA = {"jax": 8.0}, 1.0, 0.1
INNER_CALLS = 1000


def call(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time calls from Python, of NumPy's arrays and of a library's own, and calls from Numba."""
    effort = QUICK if quick else Effort()
    ready = checked([library for library in libraries if library.name in NAMES])
    if not ready:
        return
    outside: dict[str, Call] = {}
    inside: dict[str, Call] = {}
    for side, f in ready:
        own = side.array(POINT)
        outside[side.name] = lambda f=f: np.asarray(f(POINT))
        inside[side.name] = lambda f=f, own=own: f(own)
    for name, calls in (("NumPy in and out", outside), ("own arrays in and out", inside)):
        figures = measured(calls, effort, 1)
        ratios = ratios_to(figures, *NAMES[1:])
        reach, met = at_least(ratios, **LEAST)
        met = limited(figures, MOST, met)
        note = unsteady(figures, "jax")
        yield Row(GROUP, name, threads, "µs", figures, ratios, f"≤ {MOST:g} µs, {reach}", met, note)
    if calls := {side.name: inner for side, f in ready if (inner := from_numba(side, f))}:
        figures = measured(calls, effort, INNER_CALLS)
        met = limited(figures, MOST_IN_NUMBA, True if "tapegrad" in figures else None)
        ratios, reach = ratios_to(figures, "numba"), f"≤ {MOST_IN_NUMBA:g} µs"
        yield Row(GROUP, "from Numba", threads, "µs", figures, ratios, reach, met)


def program(xp: Any) -> Callable[[Any], Any]:
    """Return a function that does almost nothing, of an array."""

    def f(x: Any) -> Any:
        return xp.sin(x) * x

    return f


def checked(libraries: list[Side]) -> list[tuple[Side, Any]]:
    """Return the libraries with the function compiled, whose value is NumPy's."""
    ready: list[tuple[Side, Any]] = []
    for side in libraries:
        try:
            f = side.compile(program(side.xp))
        except Unsupported:
            continue
        value = np.ravel(as_numpy(f(side.array(POINT))))
        error = largest_difference(value, program(np)(POINT))
        if error > VALUE_TOLERANCE:
            raise Disagreement(f"{side.name}'s value of a small function is off by {error}")
        ready.append((side, f))
    return ready


def measured(calls: dict[str, Call], effort: Effort, per: int) -> dict[str, Figure]:
    """Return the microseconds of each call, divided."""
    return {name: Figure.of(s, 1e6 / per) for name, s in interleave(calls, effort).items()}


def limited(figures: dict[str, Figure], most: float, met: bool | None) -> bool | None:
    """Return whether what is to be reached is, once tapegrad's own time has a limit too."""
    if "tapegrad" in figures and figures["tapegrad"].median > most:
        return False
    return met


def from_numba(side: Side, f: Any) -> Call | None:
    """Return a compiled loop of many calls, if the library's functions can stand in one."""
    inner = f if side.name == "numba" else getattr(f, "njit", None)
    if inner is None:
        return None

    @numba.njit
    def loop(x, count):
        total = 0.0
        for _ in range(count):
            total += inner(x)[0]
            x[0] += 1e-9  # so that no call can be left out
        return total

    x = POINT.copy()
    return lambda: loop(x, INNER_CALLS)
