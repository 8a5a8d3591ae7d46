"""Long loops of plain Python: how long until they are compiled, and how fast they run then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from bench.check import GRADIENT_TOLERANCE, Disagreement
from bench.gradbench.evaluation import as_numpy, largest_difference
from bench.patience import Clock, environment, machine_code, note
from bench.problem import SEED, TooLong, Unsupported
from bench.programs import woken
from bench.report import Row, ratios_to, unsteady
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

NAMES = ("tapegrad", "jax")
SCANNED = "tapegrad scan"
STEPS = (10, 100, 1000, 10_000)
# The seconds that the table may take, those that one program may take, and those that JAX, which
# compiles trip by trip, is waited for.
END, PATIENCE, JAX = 400.0, 60.0, 20.0
MOST_GROWTH, MOST_TIME = 1.5, 1.1  # of 1,000 steps to 10, and of the loop to `scan`


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: a step, what it begins with, the width of the rows it reads (0: none).

    `step` is called with the library and the parameters, and gives a function of a carry and a row.
    """

    name: str
    step: Callable[[Side, Any], Callable[[Any, Any], Any]]
    parameters: np.ndarray
    start: np.ndarray
    width: int = 0

    def rows(self, steps: int) -> np.ndarray:
        """The rows of so many steps."""
        return np.random.default_rng(SEED).standard_normal((steps, max(self.width, 1))) / 3

    def written(self, side: Side, steps: int) -> Callable[..., Any]:
        """The sum of the squares of the last carry, by a loop of Python."""

        def f(parameters: Any, carry: Any, rows: Any) -> Any:
            step = self.step(side, parameters)
            for t in range(steps):
                carry = step(carry, rows[t] if self.width else None)
            return side.xp.sum(carry**2)

        return f

    def scanned(self, side: Side) -> Callable[..., Any]:
        """The same by `scan`."""

        def f(parameters: Any, carry: Any, rows: Any) -> Any:
            step = self.step(side, parameters)
            body = lambda carry, row: (step(carry, row if self.width else None), None)
            return side.xp.sum(side.xp.scan(body, carry, rows)[0] ** 2)

        return f


def loops(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time each loop until its value or gradient is there, and its calls then."""
    sides = {side.name: side for side in libraries if side.name in NAMES}
    for side in sides.values():
        woken(side)
    clock = Clock(END, PATIENCE)
    with machine_code() as cache, environment(TAPEGRAD_CACHE_DIR=cache, TAPEGRAD_TIERED="1"):
        for loop in islice(problems(), 1 if quick else None):
            for derived in (False, True):
                first: dict[str, float] = {}
                for steps in STEPS[:1] if quick else STEPS:
                    yield from measured(loop, steps, derived, sides, clock, first, threads, quick)


def measured(
    loop: Loop, steps: int, derived: bool, sides: dict[str, Side], clock: Clock,
    first: dict[str, float], threads: int, quick: bool,
) -> Iterator[Row]:  # fmt: skip
    """Measure one loop of so many steps; `first` are the seconds of the fewest."""
    name = f"{loop.name}, {steps:,} steps{', gradient' * derived}"
    arrays = loop.parameters, loop.start, loop.rows(steps)
    programs = {which: (side, loop.written(side, steps)) for which, side in sides.items()}
    if "tapegrad" in sides:
        programs[SCANNED] = sides["tapegrad"], loop.scanned(sides["tapegrad"])
    seconds: dict[str, Figure] = {}
    left_out: dict[str, str] = {}
    calls: dict[str, Callable[[], Any]] = {}
    results: dict[str, np.ndarray] = {}
    for which, (side, f) in programs.items():
        longer = first.get(which, 0.0) * steps / STEPS[0]
        try:
            if which == "jax" and longer > JAX:
                raise TooLong(f"would take some {longer:,.0f} s to compile")
            compiled, found, taken = timed(side, f, arrays, derived, clock)
        except TooLong as error:
            left_out[which] = str(error)
            continue
        except Unsupported:
            continue
        first.setdefault(which, taken)
        seconds[which] = Figure.of([taken], 1e3)
        calls[which], results[which] = compiled, np.ravel(as_numpy(found))
    for which, found in results.items():
        if (error := largest_difference(found, *list(results.values())[:1])) > GRADIENT_TOLERANCE:
            raise Disagreement(f"{name}: {which} is off by {error}")
    if seconds or left_out:
        yield compile_row(name, steps, seconds, left_out, first, threads)
    own = [which for which in calls if "tapegrad" in which]
    if own:
        with environment(TAPEGRAD_TIERED="0"):  # what a program comes to when it is called often
            for which in own:
                calls[which], _, _ = timed(*programs[which], arrays, derived, Clock())
        chosen = {which: calls[which] for which in own}
        samples = interleave(chosen, QUICK if quick else Effort(budget=1.0))
        yield run_row(name, {which: Figure.of(x, 1e6) for which, x in samples.items()}, threads)


def timed(
    side: Side, f: Callable[..., Any], arrays: tuple[np.ndarray, ...], derived: bool, clock: Clock
) -> tuple[Callable[[], Any], Any, float]:
    """Return the call of a compiled loop, its first result, and the seconds until then."""
    given = [side.array(x) for x in arrays]
    compiled = side.compile(side.ad.grad(f) if derived else f)
    call = lambda: compiled(*given)
    found, seconds = clock.timed(side.name, call)
    return call, found, seconds


def compile_row(
    name: str, steps: int, figures: dict[str, Figure], left_out: dict[str, str],
    first: dict[str, float], threads: int,
) -> Row:  # fmt: skip
    """Return the row of the time until a result is there."""
    reach, met = "", None
    if steps == 1000:
        reach = f"≤ {MOST_GROWTH:g} × that of {STEPS[0]} steps"
        if "tapegrad" in figures:
            met = figures["tapegrad"].median <= MOST_GROWTH * first["tapegrad"] * 1e3
    group = "until a loop of Python is there"
    return Row(
        group, name, threads, "ms", figures, ratios_to(figures, "jax"), reach, met, note(left_out)
    )  # fmt: skip


def run_row(name: str, figures: dict[str, Figure], threads: int) -> Row:
    """Return the row of the time of a call."""
    met = None
    if {"tapegrad", SCANNED} <= figures.keys():
        met = figures["tapegrad"].median <= MOST_TIME * figures[SCANNED].median
    reach = f"≤ {MOST_TIME:g} × scan"
    remark = unsteady(figures, SCANNED)
    return Row("call of a loop of Python", name, threads, "µs", figures, {}, reach, met, remark)


def problems() -> Iterator[Loop]:
    """Yield the loops: differential equations, a network, a descent, a filter."""
    rng = np.random.default_rng(SEED)
    for size in (4, 64):
        matrix = rng.standard_normal((size, size)) / size
        yield Loop(f"Runge and Kutta, {size}", runge_kutta, matrix, np.linspace(-1, 1, size))
    yield Loop("recurrent network, 32", network, rng.standard_normal((32, 40)) / 6, np.zeros(32), 8)
    yield Loop("gradient descent, 10", descent, rng.standard_normal((20, 10)), np.zeros(10))
    yield Loop("Kalman filter, 4", kalman, np.eye(4) + np.eye(4, k=1) / 10, np.zeros((4, 5)), 2)


def runge_kutta(side: Side, a: Any) -> Callable[[Any, Any], Any]:
    """A step of the classical method."""
    h = 0.01

    def slope(x: Any) -> Any:
        return side.xp.tanh(a @ x) - 0.1 * x

    def step(x: Any, _: Any) -> Any:
        k1 = slope(x)
        k2 = slope(x + h / 2 * k1)
        k3 = slope(x + h / 2 * k2)
        k4 = slope(x + h * k3)
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return step


def network(side: Side, w: Any) -> Callable[[Any, Any], Any]:
    """A step of a recurrent network."""
    return lambda h, row: side.xp.tanh(w[:, :32] @ h + w[:, 32:] @ row)


def descent(side: Side, a: Any) -> Callable[[Any, Any], Any]:
    """A step down the gradient of a loss."""

    def loss(x: Any) -> Any:
        return side.xp.sum((a @ x - 1.0) ** 2) + side.xp.sum(side.xp.sqrt(1.0 + x * x))

    return lambda x, _: x - 0.001 * side.ad.grad(loss)(x)


def kalman(side: Side, f: Any) -> Callable[[Any, Any], Any]:
    """A step of a Kalman filter, on the mean and the covariance less one side by side."""
    xp = side.xp

    def step(state: Any, measured: Any) -> Any:
        m = f @ state[:, 0]
        p = f @ (state[:, 1:] + np.eye(4)) @ f.T + 0.1 * np.eye(4)
        gain = xp.linalg.solve(p[:2, :2] + 0.5 * np.eye(2), p[:2]).T
        m = m + gain @ (measured - m[:2])
        return xp.concatenate([m[:, None], p - gain @ p[:2] - np.eye(4)], 1)

    return step
