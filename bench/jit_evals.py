"""GradBench's evals: each library compiles them, beside the loops by hand and eager libraries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.check import Disagreement
from bench.gradbench import NAMES, find
from bench.gradbench.evaluation import Call, Eval, Instance, as_numpy, largest_difference
from bench.patience import Clock, environment, expected, note
from bench.problem import SEED, TooLong, Unsupported
from bench.report import Row, at_least, ratios_to, unsteady
from bench.sides import Tapegrad, Torch
from bench.sides.side import Side
from bench.timing import QUICK, Effort, Figure, interleave

PEERS = ("numba", "jax", "torch", "torch.compile")
# At most 1.5 times as long as by hand, a dense Jacobian no longer, and ahead of other libraries.
LEAST = {"numba": 1 / 1.5, "jax": 1.0, "torch": 1.0, "torch.compile": 1.0}
LEAST_DENSE = LEAST | {"numba": 1.0}
PHASES = ("primal", "derivative")
# The seconds that the table may take, so that a whole run takes some eight minutes; those that a
# library may take for one program, and for one that only tells how long a larger one would take.
END = 300.0
PATIENCE, PILOT = 45.0, 15.0
COMPILERS = ("tapegrad", "jax", "torch.compile")  # what they take grows with the program
MAY_FAIL = ("torch.compile",)  # which does not take every program; a row says so
TOLERANCE = 1e-9
# A gradient as a multiple of its primal: the most for one eval, and for the median of all.
MOST, MOST_OFTEN = 4.0, 2.5
# Evals that are timed at other sizes, too: a short sequence; points that lie within triangles.
MORE = (("lstm", {"l": 2, "c": 64}), ("ht", {"v": 544, "p": 10000, "u": 2}))


def gradbench(libraries: list[Side], threads: int, quick: bool) -> Iterator[Row]:
    """Time the primal and the derivative of each eval; Numba is the code by hand."""
    effort = QUICK if quick else Effort(rounds=(5, 31), budget=3.0)
    clock = Clock(END, PATIENCE)
    multiples: list[Row] = []
    for problem, sizes in evals(quick):
        calls, left_out = checked(problem, problem.instance(sizes, SEED), libraries, clock)
        samples = interleave(calls, effort) if calls else {}
        name = f"{problem.name}, {shown(sizes)}"
        for phase in PHASES:
            figures = {
                side: Figure.of(taken, 1e3)
                for (side, which), taken in samples.items()
                if which == phase
            }
            absent = {side: why for (side, which), why in left_out.items() if which == phase}
            ratios = ratios_to(figures, *PEERS)
            least = LEAST_DENSE if problem.dense and phase == "derivative" else LEAST
            reach, met = at_least(ratios, **{x: least[x] for x in PEERS if x in figures})
            remarks = filter(None, (unsteady(figures, *PEERS), note(absent)))
            yield Row(
                "GradBench, Numba by hand", name, threads, "ms", figures, ratios, reach,
                False if "tapegrad" in absent else met, "; ".join(remarks), phase=phase,
            )  # fmt: skip
        if not problem.dense:
            multiples.append(multiple(name, samples, threads))
    yield from multiples
    yield summary(multiples, threads)


def shown(sizes: dict[str, int]) -> str:
    """Return sizes as text."""
    return ", ".join(f"{size} = {value}" for size, value in sizes.items())


def evals(quick: bool) -> Iterator[tuple[Eval, dict[str, int]]]:
    """Yield the evals with their sizes."""
    for name in NAMES:
        problem = find(name)
        yield problem, problem.small if quick else problem.standard
    if not quick:
        for name, sizes in MORE:
            yield find(name), sizes


Calls = dict[tuple[str, str], Call]
LeftOut = dict[tuple[str, str], str]


def checked(
    problem: Eval, instance: Instance, libraries: list[Side], clock: Clock
) -> tuple[Calls, LeftOut]:
    """Return the calls of each library that has the eval, held to what was written by hand.

    And, for a library and a phase, why there is none though the library has it.
    """
    by_hand = [as_numpy(f()) for f in problem.by_hand(instance)]
    found: Calls = {}
    left_out: LeftOut = {}
    for side in (side for library in libraries for side in forms(library)):
        try:
            ready = problem.ready(side, instance)
            tried(problem, side, instance, clock)
        except TooLong as error:
            left_out |= {(side.name, phase): str(error) for phase in PHASES}
            continue
        except Unsupported:
            continue
        for phase, f, known in zip(PHASES, ready, by_hand):
            try:
                value, _ = clock.timed(side.name, f)
            except TooLong as error:
                left_out[side.name, phase] = str(error)
                continue
            except Exception as error:
                if side.name not in MAY_FAIL:
                    raise
                left_out[side.name, phase] = f"fails with {type(error).__name__}"
                continue
            if (off := largest_difference(as_numpy(value), known)) > TOLERANCE:
                raise Disagreement(f"{problem.name}: {side.name}'s {phase} is off by {off}")
            found[side.name, phase] = f
    return found, left_out


def tried(problem: Eval, side: Side, instance: Instance, clock: Clock) -> None:
    """Raise `TooLong` if two smaller programs say that this one takes too long to compile."""
    sizes = [problem.length(problem.instance(pilot, SEED)) for pilot in problem.pilots]
    size = problem.length(instance)
    if side.name not in COMPILERS or size <= min(sizes, default=size):
        return
    key = problem.name, side.name
    if key not in clock.known:
        try:
            pilot(problem, side, problem.pilots[0])  # loads what is loaded once
            clock.known[key] = [pilot(problem, side, sizes) for sizes in problem.pilots]
        except TooLong as error:
            clock.known[key] = error
    known = clock.known[key]
    if isinstance(known, TooLong):
        raise known
    clock.allow(expected(sizes, known, size))


def pilot(problem: Eval, side: Side, sizes: dict[str, int]) -> float:
    """Return the seconds until the primal and the derivative of a smaller eval are there."""
    clock = Clock(program=PILOT)
    try:
        with environment(TAPEGRAD_CACHE="0", TAPEGRAD_TIERED="0"):
            calls = problem.ready(side, problem.instance(sizes, SEED))
            return sum(clock.timed(side.name, f)[1] for f in calls)
    except TooLong as error:
        raise TooLong(f"{error} at {shown(sizes)}") from None
    except Exception as error:
        if side.name not in MAY_FAIL:
            raise
        raise TooLong(f"fails with {type(error).__name__} at {shown(sizes)}") from None


def forms(library: Side) -> Iterator[Side]:
    """Yield a library; tapegrad without its compiler too, and PyTorch with its own."""
    yield library
    if isinstance(library, Tapegrad):
        yield library.eager()
    elif isinstance(library, Torch):
        yield library.compiled()


def multiple(name: str, samples: dict[Any, list[float]], threads: int) -> Row:
    """Return the time of the derivative over that of the primal, round by round."""
    figures = {
        side: Figure.of([x / y for x, y in zip(taken, samples[side, "primal"])])
        for (side, which), taken in samples.items()
        if which == "derivative" and (side, "primal") in samples
    }
    own = figures.get("tapegrad")
    met = None if own is None else own.median <= MOST
    return Row("derivative by primal", name, threads, "×", figures, {}, f"≤ {MOST:g}", met)


def summary(rows: list[Row], threads: int) -> Row:
    """Return the medians of the multiples, over the evals that tapegrad did."""
    told = [row for row in rows if "tapegrad" in row.figures] or rows
    common = [name for name in told[0].figures if all(name in row.figures for row in told)]
    figures = {name: Figure.of([row.figures[name].median for row in told]) for name in common}
    own = figures.get("tapegrad")
    met = None if own is None else own.median <= MOST_OFTEN
    name = "median of all" if told == rows else f"median of the {len(told)} that tapegrad did"
    return Row(rows[0].group, name, threads, "×", figures, {}, f"≤ {MOST_OFTEN:g}", met)
