"""The groups of compiled functions; here the elementary functions, each alone in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.check import Disagreement
from bench.gradbench.evaluation import Call, as_numpy
from bench.jit_calls import call
from bench.jit_evals import gradbench
from bench.jit_images import images
from bench.jit_matrices import matrices
from bench.jit_solvers import solvers
from bench.jit_spectral import spectral
from bench.patience import Clock
from bench.problem import SEED, TooLong, Unsupported
from bench.report import Row, at_least, ratios_to, unsteady
from bench.sides import ADAPTERS
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

GROUPS = ("gradbench", "call", "matrices", "images", "spectral", "solvers", "vmath")
PROCESS_GROUPS: dict[str, Any] = {}
NAMES = ("tapegrad", "scipy", "torch", "jax")
LEAST = dict.fromkeys(NAMES[1:], 1.0)
END = 120.0  # seconds for these tables

ELEMENTS = 100_000
# The ends of the arguments; two pairs where there are two of them.
FUNCTIONS: dict[str, list[tuple[float, float]]] = {
    "exp": [(-10, 10)], "expm1": [(-2, 2)], "log": [(0.01, 100)], "log1p": [(-0.9, 10)],
    "sin": [(-10, 10)], "cos": [(-10, 10)], "tan": [(-1.5, 1.5)], "tanh": [(-4, 4)],
    "sinh": [(-5, 5)], "cosh": [(-5, 5)], "sigmoid": [(-10, 10)], "softplus": [(-10, 10)],
    "erf": [(-3, 3)], "power": [(0.1, 5), (-3, 3)], "arctan": [(-10, 10)],
    "arctan2": [(-5, 5), (-5, 5)],
}  # fmt: skip
FEW = ("exp", "power")  # that a quick run times
# Of each type the largest relative difference of two libraries.
TYPES: dict[str, tuple[type[np.floating[Any]], float]] = {
    "doubles": (np.float64, 1e-13), "floats": (np.float32, 1e-5),
}  # fmt: skip


def vmath(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time the elementary functions, each alone in a compiled function."""
    clock = Clock(END)
    for kind in TYPES:
        yield from elementary(kind, libraries, threads, quick, clock)


def elementary(
    kind: str, libraries: list[Side], threads: int, quick: bool, clock: Clock
) -> Iterator[Row]:
    """Time them on elements of one type."""
    effort = QUICK if quick else Effort(budget=1.0)
    dtype, tolerance = TYPES[kind]
    group = f"functions of {ELEMENTS:,} {kind}, per element"
    rng = np.random.default_rng(SEED)
    for name in FEW if quick else FUNCTIONS:
        ranges = FUNCTIONS[name]
        arrays = [rng.uniform(low, high, ELEMENTS).astype(dtype) for low, high in ranges]
        try:
            clock.left()
        except TooLong as error:
            yield Row(group, name, threads, "ns", {}, note=f"not run: {error}")
            continue
        calls: dict[str, Call] = {}
        first = None
        for side in (side for side in libraries if side.name in NAMES):
            try:
                f = on_arrays(side, name, arrays)
            except Unsupported:
                continue
            value = as_numpy(f())
            first = value if first is None else first
            off = np.max(np.abs(value - first) / np.maximum(np.abs(first), 1e-3))
            if not off <= tolerance:
                raise Disagreement(f"{name}: {side.name} is off by {off}")
            calls[side.name] = f
        if not calls:
            continue
        samples = interleave(calls, effort)
        figures = {side: Figure.of(taken, 1e9 / ELEMENTS) for side, taken in samples.items()}
        ratios, remark = ratios_to(figures, *NAMES[1:]), unsteady(figures, *NAMES[1:])
        reach, met = at_least(ratios, **LEAST)
        yield Row(group, name, threads, "ns", figures, ratios, reach, met, remark)


def on_arrays(side: Side, name: str, arrays: list[np.ndarray]) -> Call:
    """Return a call of one elementary function, compiled."""
    function: Callable[..., Any] = getattr(side.xp, name)
    f = side.compile(lambda *xs: function(*xs))
    own = [side.array(x) for x in arrays]
    return lambda: f(*own)


__all__ = [
    "ADAPTERS", "GROUPS", "PROCESS_GROUPS", "call", "gradbench", "images", "matrices", "solvers",
    "spectral", "vmath",
]  # fmt: skip
