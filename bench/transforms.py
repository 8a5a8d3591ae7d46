"""The groups of the transforms: gradients, matrices and products, all libraries in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from bench import functions
from bench.check import checked
from bench.custom import custom
from bench.functional import ADAPTERS
from bench.libraries import Library
from bench.problem import Problem
from bench.report import Row, at_least, ratios_to, unsteady
from bench.timing import QUICK, Effort, Figure, interleave

GROUPS = ("gradient", "hessian", "hvp", "custom")
PROCESS_GROUPS: dict[str, object] = {}
PEERS = ("autograd", "torch")
SMALL = {"autograd": 6.0, "torch": 2.5}
NEVER_SLOWER = {"autograd": 1.0}
CALL_LIMIT = 8.0
HVP_LIMIT = 3.5


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, its least ratios to its peers, and the most µs that it may take."""

    problem: Problem
    least: dict[str, float]
    limit: float | None = None


def gradients(quick: bool) -> Iterator[Case]:
    """Yield the problems that gradients are taken of."""
    f = functions
    yield Case(f.product(), SMALL, CALL_LIMIT)
    yield Case(f.rosenbrock(10), SMALL)
    yield Case(f.kalman(2 if quick else 100), SMALL)
    yield Case(f.pendulum(2 if quick else 200), SMALL)
    yield Case(f.rosenbrock(20 if quick else 1000), NEVER_SLOWER)
    yield Case(f.logistic(*(30, 4) if quick else (1000, 20)), NEVER_SLOWER)
    yield Case(f.gmm(*(2, 3, 10) if quick else (10, 25, 1000)), NEVER_SLOWER)


def gradient(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time gradients."""
    for case in gradients(quick):
        yield from timed("gradient", case, libraries, threads, quick)


def hessian(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time whole matrices of second derivatives."""
    problem = functions.logistic(*(30, 4) if quick else (1000, 20), "hessian")
    yield from timed("Hessian", Case(problem, NEVER_SLOWER), libraries, threads, quick)


def hvp(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time products of the Hessian with a vector, in the same rounds as the gradients."""
    sizes = ((30, 4), 20) if quick else ((1000, 20), 1000)
    makers = [
        partial(functions.logistic, *sizes[0]),
        partial(functions.rosenbrock, 10),
        partial(functions.rosenbrock, sizes[1]),
    ]
    for make in makers:
        case = Case(make("hvp"), NEVER_SLOWER)
        yield from timed("Hessian-vector product", case, libraries, threads, quick)


def timed(
    group: str, case: Case, libraries: list[Library], threads: int, quick: bool
) -> Iterator[Row]:
    """Check and time one problem; a product is stated as a multiple of the gradient too."""
    effort = QUICK if quick else Effort()
    problem = case.problem
    calls = {(name, ""): run.step for name, run in checked(problem, libraries).items()}
    if problem.transform == "hvp":
        runs = checked(replace(problem, transform="grad"), libraries)
        calls |= {(name, "grad"): runs[name].step for name, _ in list(calls)}
    samples = interleave(calls, effort)
    figures = {name: Figure.of(s, 1e6) for (name, what), s in samples.items() if not what}
    ratios = ratios_to(figures, *PEERS)
    reach, met = at_least(ratios, **case.least)
    if case.limit is not None and "tapegrad" in figures:
        reach = f"< {case.limit:g} µs, {reach}"
        met = False if figures["tapegrad"].median >= case.limit else met
    note = unsteady(figures, *PEERS)
    yield Row(group, problem.name, threads, "µs", figures, ratios, reach, met, note)
    if problem.transform == "hvp":
        multiples = {
            name: Figure.of([x / y for x, y in zip(s, samples[name, "grad"], strict=True)])
            for (name, what), s in samples.items()
            if not what
        }
        own = multiples.get("tapegrad")
        met = None if own is None else own.median <= HVP_LIMIT
        yield Row(
            "Hessian-vector product by gradient", problem.name, threads, "×", multiples,
            {}, f"≤ {HVP_LIMIT:g}", met, note,
        )  # fmt: skip


__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "custom", "gradient", "hessian", "hvp"]
