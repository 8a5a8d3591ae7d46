"""The groups of compiled functions: GradBench's evals, and the elementary functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.check import Disagreement
from bench.gradbench import NAMES, find
from bench.gradbench.evaluation import Call, Eval, Instance, as_numpy, largest_difference
from bench.jit_calls import call
from bench.jit_programs import compile
from bench.problem import SEED, Unsupported
from bench.report import Row, at_least, ratios_to, unsteady
from bench.sides import ADAPTERS, Tapegrad
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

GROUPS = ("gradbench", "call", "compile", "vmath")
PROCESS_GROUPS: dict[str, object] = {}
PEERS = ("numba", "jax", "torch")
# At most 1.5 times as long as by hand, and ahead of the other libraries.
LEAST = {"numba": 1 / 1.5, "jax": 1.0, "torch": 1.0}
TOLERANCE = 1e-9
# A gradient as a multiple of its primal: the most for one eval, and for the median of all.
MOST, MOST_OFTEN = 4.0, 2.5
SHORT_SEQUENCE = {"l": 2, "c": 64}

ELEMENTS = 100_000
# The ends of the arguments; two pairs where there are two of them.
FUNCTIONS: dict[str, list[tuple[float, float]]] = {
    "exp": [(-10, 10)], "expm1": [(-2, 2)], "log": [(0.01, 100)], "log1p": [(-0.9, 10)],
    "sin": [(-10, 10)], "cos": [(-10, 10)], "tan": [(-1.5, 1.5)], "tanh": [(-4, 4)],
    "sinh": [(-5, 5)], "cosh": [(-5, 5)], "sigmoid": [(-10, 10)], "softplus": [(-10, 10)],
    "erf": [(-3, 3)], "power": [(0.1, 5), (-3, 3)], "arctan": [(-10, 10)],
    "arctan2": [(-5, 5), (-5, 5)],
}  # fmt: skip
ELEMENTARY_TOLERANCE = 1e-13


def gradbench(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time the primal and the derivative of each eval; Numba is the code by hand."""
    effort = QUICK if quick else Effort(rounds=(5, 31), budget=3.0)
    multiples: list[Row] = []
    for problem, sizes in evals(quick):
        calls = checked(problem, problem.instance(sizes, SEED), libraries)
        samples = interleave(calls, effort)
        shown = ", ".join(f"{size} = {value}" for size, value in sizes.items())
        for phase in ("primal", "derivative"):
            figures = {
                name: Figure.of(taken, 1e3)
                for (name, which), taken in samples.items()
                if which == phase
            }
            ratios = ratios_to(figures, *PEERS)
            reach, met = at_least(ratios, **{x: LEAST[x] for x in PEERS if x in figures})
            yield Row(
                "GradBench, Numba by hand", f"{problem.name}, {shown}", threads, "ms",
                figures, ratios, reach, met, unsteady(figures, *PEERS), phase=phase,
            )  # fmt: skip
        multiples.append(multiple(f"{problem.name}, {shown}", samples, threads))
    yield from multiples
    yield summary(multiples, threads)


def evals(quick: bool) -> Iterator[tuple[Eval, dict[str, int]]]:
    """Yield the evals with their sizes."""
    for name in NAMES:
        problem = find(name)
        yield problem, problem.small if quick else problem.standard
    if not quick:
        yield find("lstm"), SHORT_SEQUENCE


def checked(
    problem: Eval, instance: Instance, libraries: list[Side]
) -> dict[tuple[str, str], Call]:
    """Return the calls of each library that has the eval, held to what was written by hand."""
    expected = [as_numpy(f()) for f in problem.by_hand(instance)]
    found: dict[tuple[str, str], Call] = {}
    for side in (side for library in libraries for side in both(library)):
        try:
            ready = problem.ready(side, instance)
        except Unsupported:
            continue
        for phase, f, known in zip(("primal", "derivative"), ready, expected):
            if (error := largest_difference(as_numpy(f()), known)) > TOLERANCE:
                raise Disagreement(f"{problem.name}: {side.name}'s {phase} is off by {error}")
            found[side.name, phase] = f
    return found


def both(library: Side) -> Iterator[Side]:
    """Yield a library; tapegrad without its compiler too."""
    yield library
    if isinstance(library, Tapegrad):
        yield library.eager()


def multiple(name: str, samples: dict[Any, list[float]], threads: int) -> Row:
    """Return the time of the derivative over that of the primal, round by round."""
    figures = {
        side: Figure.of([x / y for x, y in zip(taken, samples[side, "primal"])])
        for (side, which), taken in samples.items()
        if which == "derivative"
    }
    own = figures.get("tapegrad")
    met = None if own is None else own.median <= MOST
    return Row("derivative by primal", name, threads, "×", figures, {}, f"≤ {MOST:g}", met)


def summary(rows: list[Row], threads: int) -> Row:
    """Return the medians of the multiples that every eval has."""
    common = [name for name in rows[0].figures if all(name in row.figures for row in rows)]
    figures = {name: Figure.of([row.figures[name].median for row in rows]) for name in common}
    own = figures.get("tapegrad")
    met = None if own is None else own.median <= MOST_OFTEN
    return Row(rows[0].group, "median of all", threads, "×", figures, {}, f"≤ {MOST_OFTEN:g}", met)


def vmath(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time the elementary functions, each alone in a compiled function."""
    effort = QUICK if quick else Effort(budget=1.0)
    rng = np.random.default_rng(SEED)
    names = ("tapegrad", "scipy", "torch", "jax")
    for name, ranges in FUNCTIONS.items():
        arrays = [rng.uniform(low, high, ELEMENTS) for low, high in ranges]
        calls: dict[str, Call] = {}
        expected = None
        for side in (side for side in libraries if side.name in names):
            try:
                f = on_arrays(side, name, arrays)
            except Unsupported:
                continue
            value = as_numpy(f())
            expected = value if expected is None else expected
            error = np.max(np.abs(value - expected) / np.maximum(np.abs(expected), 1e-3))
            if not error <= ELEMENTARY_TOLERANCE:
                raise Disagreement(f"{name}: {side.name} is off by {error}")
            calls[side.name] = f
        if not calls:
            continue
        samples = interleave(calls, effort)
        figures = {side: Figure.of(taken, 1e9 / ELEMENTS) for side, taken in samples.items()}
        peers = ("scipy", "torch", "jax")
        yield Row(
            f"functions of {ELEMENTS:,} doubles, per element", name, threads, "ns", figures,
            ratios_to(figures, *peers), note=unsteady(figures, *peers),
        )  # fmt: skip


def on_arrays(side: Side, name: str, arrays: list[np.ndarray]) -> Call:
    """Return a call of one elementary function, compiled."""
    function: Callable[..., Any] = getattr(side.xp, name)
    f = side.compile(lambda *xs: function(*xs))
    own = [side.array(x) for x in arrays]
    return lambda: f(*own)


__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "call", "compile", "gradbench", "vmath"]
