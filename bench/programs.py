"""How long it takes until a gradient is there: of programs of scalars, and of arrays.

``python -m bench.programs LIBRARY PROGRAM SEED`` prints the seconds from a function to the first
value of its gradient, and how far that is from what tapegrad finds when it compiles nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from bench import gradbench
from bench.check import GRADIENT_TOLERANCE, Disagreement
from bench.gradbench.evaluation import as_numpy, largest_difference
from bench.gradbench.gmm import constant
from bench.libraries import load
from bench.models import Model, gradient, kalman, mlp, stencil, transformer
from bench.patience import machine_code, note
from bench.problem import SEED, TooLong, Unsupported
from bench.processes import run
from bench.report import Row, at_least, ratios_to, unsteady
from bench.sides import ADAPTERS
from bench.sides.side import Side
from bench.timing import Figure

NAMES = ("tapegrad", "jax", "casadi")
SIZES = (50, 200, 800, 3200, 20000)
# Operations, and the elements of the vector that they are on.
VECTORS = ((50, 37), (200, 37), (800, 37), (1600, 37), (200, 8), (200, 1000), (200, 100_000))
LEAST = {"jax": 2.0}
MOST_PER_OPERATION = 0.4
# An operation of a scalar program looks this far back for its other operand. No farther: where a
# value is used again much later, XLA's time to compile grows beyond all measure.
REACH = 3
ROUNDS = 3
# The seconds that one library is waited for, for one program.
PATIENCE = 30.0
START = 10.0  # seconds until a library is there


@dataclass(frozen=True, slots=True)
class Program:
    """A program to compile the gradient of.

    Parameters
    ----------
    make
        Called with a library and a seed; returns the gradient, not compiled yet. Another seed
        makes another program of the same size, so that no cache has it.
    arrays
        What it is called with.
    operations
        How many operations it has that are counted; 0: it is not made of single ones.
    scalar
        Whether these are operations on numbers.
    """

    name: str
    make: Callable[[Side, int], Callable[..., Any]]
    arrays: tuple[np.ndarray, ...]
    operations: int = 0
    scalar: bool = True


def programs(libraries: list[str], quick: bool) -> Iterator[Row]:
    """Time from a function to the first value of its compiled gradient.

    Each library begins in a process of its own, in which it has compiled something small.  What
    tapegrad compiles once for a machine is there, and no program is.
    """
    names = [name for name in NAMES if name in libraries]
    # Seconds for an operation, by library and kind, of the last program.
    pace: dict[tuple[str, bool], float] = {}
    with machine_code() as cache:
        for program in listed(quick):
            kind, count = program.scalar, program.operations
            expected = {name: pace.get((name, kind), 0.0) * count for name in names}
            samples, left_out = sampled(program, expected, quick, cache)
            for name, taken in samples.items() if count else ():
                pace[name, kind] = median(taken) / count
            if samples or left_out:
                figures = {name: Figure.of(samples[name], 1e3) for name in NAMES if name in samples}
                yield row(program, figures, left_out)


def sampled(
    program: Program, expected: dict[str, float], quick: bool, cache: str
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return the seconds that each library takes, and why others have none.

    `expected` is what is known of a library's time: one that would take too long is not begun.
    """
    names = list(expected)
    samples: dict[str, list[float]] = {}
    left_out: dict[str, str] = {}
    for seed in range(1 if quick or program.operations > 1000 else ROUNDS):
        for name in names[seed % len(names) :] + names[: seed % len(names)]:
            if name in left_out or (seed and name not in samples):
                continue
            try:
                seconds = in_process(name, program, seed, expected[name], cache)
            except TooLong as error:
                left_out[name] = str(error)
            except Unsupported:
                continue
            else:
                samples.setdefault(name, []).append(seconds)
    return samples, left_out


def in_process(name: str, program: Program, seed: int, expected: float, cache: str) -> float:
    """Return the seconds that a library takes in a process of its own."""
    if expected > PATIENCE:
        raise TooLong(f"would take some {expected:,.0f} s to compile")
    if program.scalar and program.operations > ADAPTERS[name].most_scalars:
        raise TooLong("takes minutes to compile")
    more = {"TAPEGRAD_CACHE_DIR": cache, "TAPEGRAD_TIERED": "1", "TAPEGRAD_BACKGROUND": "1"}
    command = "-m", "bench.programs", name, program.name, str(seed)
    try:
        printed = run(*command, timeout=PATIENCE + START, **more)
    except subprocess.TimeoutExpired:
        raise TooLong(f"not there after {PATIENCE:.0f} s") from None
    if not printed:
        raise Unsupported(program.name)
    seconds, error = map(float, printed.split())
    if error > GRADIENT_TOLERANCE:
        raise Disagreement(f"{program.name}: {name}'s gradient is off by {error}")
    return seconds


def row(program: Program, figures: dict[str, Figure], left_out: dict[str, str]) -> Row:
    """Return what was measured, with what is to be reached."""
    ratios = ratios_to(figures, "jax", "casadi")
    reach, met = at_least(ratios, **LEAST) if "jax" in figures else ("", None)
    if program.operations:
        limit = MOST_PER_OPERATION * program.operations
        reach = ", ".join(filter(None, (f"≤ {limit:g} ms", reach)))
        if "tapegrad" in figures:
            met = figures["tapegrad"].median <= limit and met is not False
    met = False if "tapegrad" in left_out else met
    # Who did some rounds and then ran out of time is told by those.
    absent = {name: why for name, why in left_out.items() if name not in figures}
    remarks = "; ".join(filter(None, (unsteady(figures, "jax"), note(absent))))
    group = "until the first gradient is there"
    return Row(group, program.name, 1, "ms", figures, ratios, reach, met, remarks)


def measured(name: str, program: Program, seed: int) -> tuple[float, float]:
    """Return the seconds until the gradient is there, and how far it is from tapegrad's, eager."""
    side = load(name, ADAPTERS)
    assert side is not None
    woken(side)
    arrays = [side.array(x) for x in program.arrays]
    # Another seed does not make another program where it is an argument.
    f = program.make(side, seed)
    start = perf_counter()
    result = side.compile(f)(*arrays)
    seconds = perf_counter() - start
    plain = load("tapegrad", ADAPTERS)
    expected = as_numpy(program.make(plain.eager(), seed)(*program.arrays))
    found = as_numpy(result)
    if program.scalar and program.operations:
        found = np.ravel(found)  # CasADi's vectors are columns
    return seconds, largest_difference(found, expected)


def woken(side: Side) -> None:
    """Compile something small, so that nothing is loaded later; `Unsupported` if it cannot."""
    small = scalars(8)
    side.compile(small.make(side, -1))(*[side.array(x) for x in small.arrays])


def listed(quick: bool) -> Iterator[Program]:
    """Yield the programs of scalars, by size, and those of arrays."""
    for size in (8,) if quick else SIZES:
        yield scalars(size)
    for size, elements in ((8, 37),) if quick else VECTORS:
        yield vectors(size, elements)
    yield model("MLP, 3 layers", mlp(3))
    yield gmm(quick)
    if not quick:
        yield model("MLP, 20 layers", mlp(20))
        yield model("block of a transformer", transformer())
        yield model("heat on a grid, 50 steps", stencil())
        yield model("Kalman filter, 50 steps", kalman())


def scalars(operations: int) -> Program:
    """Return a program of scalar operations, each on the last result and an earlier one."""
    x = np.random.default_rng(SEED).uniform(0.5, 1.5, 8)

    def make(side: Side, seed: int) -> Callable[..., Any]:
        rng, xp = random.Random(seed), side.xp
        plan = [(rng.randrange(4), rng.randrange(REACH)) for _ in range(operations // 2)]

        def f(x: Any) -> Any:
            values = [x[i] for i in range(8)]
            for kind, back in plan:
                a, b = values[-1], values[-1 - back]
                if kind == 0:
                    y = xp.sin(a) * b
                elif kind == 1:
                    y = xp.tanh(a + b)
                elif kind == 2:
                    y = xp.cos(a - b)
                else:
                    y = xp.exp(-a) * b
                values.append(y)
            return values[-1]

        return side.ad.grad(f)

    return Program(f"{operations} operations on scalars", make, (x,), operations)


def vectors(operations: int, elements: int) -> Program:
    """Return a program of operations on vectors: products, sums, and `sin` or `exp`, in thirds."""
    x = np.linspace(0.1, 0.9, elements)

    def make(side: Side, seed: int) -> Callable[..., Any]:
        rng, xp = random.Random(seed), side.xp
        plan = [[rng.randrange(3), *rng.choices(range(20), k=2)] for _ in range(operations)]

        def f(x: Any) -> Any:
            values = [x]
            for kind, first, second in plan:
                a, b = values[-1 - first % len(values)], values[-1 - second % len(values)]
                if kind == 0:
                    values.append(a * b)
                elif kind == 1:
                    values.append(0.5 * (a + b))
                else:
                    values.append(xp.exp(-a * a) if first % 2 else xp.sin(a))
            return xp.sum(sum(values[-20:]))

        return on_arrays(side).grad(f)

    title = f"{operations} operations on a vector of {elements}"
    return Program(title, make, (x,), operations, scalar=False)


def model(name: str, model: Model) -> Program:
    """Return the program of a model."""

    def make(side: Side, seed: int) -> Callable[..., Any]:
        return gradient(model, side, on_arrays(side), 1.0 + seed / 100)

    return Program(name, make, model[1])


def gmm(quick: bool) -> Program:
    """Return GradBench's mixture of Gaussians."""
    problem = gradbench.find("gmm")
    instance = problem.instance(problem.small if quick else problem.standard, SEED)
    constant(2, 2, 2, 0, 1.0)  # Numba's, whose first call loads all of Numba, for any library

    def make(side: Side, seed: int) -> Callable[..., Any]:
        static = instance.static | {"gamma": 1.0 + seed / 100}
        return problem.bound(on_arrays(side), side.xp, replace(instance, static=static))[1]

    return Program("GMM", make, (*instance.inputs, *instance.data))


def on_arrays(side: Side) -> Any:
    """Return a library's transforms, if they take functions of several arrays."""
    if not hasattr(side.ad, "jvp"):
        raise Unsupported(f"{side.name} has gradients of scalar programs only, here")
    return side.ad


if __name__ == "__main__":
    wanted = next(p for quick in (False, True) for p in listed(quick) if p.name == sys.argv[2])
    with suppress(Unsupported):
        print(*measured(sys.argv[1], wanted, int(sys.argv[3])))
