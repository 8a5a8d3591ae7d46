"""The eager groups that are timed inside one process, all libraries in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench import movements, operations, problems
from bench.check import checked
from bench.libraries import ADAPTERS, Library
from bench.problem import Problem
from bench.processes import GROUPS as PROCESS_GROUPS
from bench.report import Row, at_least, ratios_to, unsteady
from bench.timing import QUICK, Effort, Figure, interleave

CHAIN_SIZES = (1, 4, 64, 1024)
QUICK_SIDE = 32
FEW_SIDE = 12
GROUPS = ("small", "few", "large")


@dataclass(frozen=True, slots=True)
class Small:
    """A small problem with its unit and its least ratio to PyTorch."""

    problem: Problem
    per: int = 1
    least: float | None = None


def small_problems() -> Iterator[Small]:
    """Yield the small problems; a chain and the expression are stated per operation."""
    for size in CHAIN_SIZES:
        yield Small(problems.chain(size), problems.CHAIN_OPS, 3.5 if size <= 64 else None)
    yield Small(problems.scalar(), problems.SCALAR_OPS, 3.0)
    yield Small(problems.rnn(), 1, 3.0)
    yield Small(problems.mlp(), 1, 1.5)
    single = np.dtype(np.float32)
    yield Small(problems.chain(64).astype(single), problems.CHAIN_OPS)
    yield Small(problems.rnn().astype(single))
    yield Small(problems.mlp().astype(single))
    for problem in problems.recorded():
        yield Small(problem, 1, 1.0)


def small(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time forward and backward (and the update) of the small problems."""
    effort = QUICK if quick else Effort()
    for case in small_problems():
        runs = checked(case.problem, libraries)
        calls = {name: run.step for name, run in runs.items()}
        samples = interleave(calls, effort)
        figures = {name: Figure.of(s, 1e6 / case.per) for name, s in samples.items()}
        ratios = ratios_to(figures, "torch")
        reach, met = ("", None) if case.least is None else at_least(ratios, torch=case.least)
        group = f"forward and backward, per {'operation' if case.per > 1 else 'step'}"
        name, note = case.problem.name, unsteady(figures)
        yield Row(group, name, threads, "µs", figures, ratios, reach, met, note)


def large(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time every operation on a million doubles, forward alone and with its gradient."""
    rest = 0.02 if threads > 1 else 0.0
    effort = QUICK if quick else Effort(rounds=(7, 31), budget=0.5, rest=rest)
    yield from single(libraries, threads, QUICK_SIDE if quick else operations.SIDE, effort, 1.0)


def few(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time the same operations on a handful of doubles, where the work beside the work counts."""
    effort = QUICK if quick else Effort(batch=0.002, rounds=(7, 25), budget=0.25)
    yield from single(libraries, threads, FEW_SIDE, effort)


def single(
    libraries: list[Library], threads: int, side: int, effort: Effort, least: float | None = None
) -> Iterator[Row]:
    """Time every operation on a square of elements, forward alone and with its gradient."""
    group = f"operations on {side * side:,} doubles"
    unit, scale = ("ms", 1e3) if side > 100 else ("µs", 1e6)
    for family, table in (operations.FAMILIES | movements.FAMILIES).items():
        for problem in operations.problems(table, side):
            runs = checked(problem, libraries)
            phases = {"forward": {name: run.forward for name, run in runs.items()}}
            if problem.gradient:
                phases["forward and backward"] = {name: run.step for name, run in runs.items()}
            for phase, calls in phases.items():
                samples = interleave(calls, effort)
                figures = {name: Figure.of(s, scale) for name, s in samples.items()}
                ratios = ratios_to(figures, "torch")
                reach, met = ("", None) if least is None else at_least(ratios, torch=least)
                yield Row(
                    group, problem.name, threads, unit, figures, ratios, reach, met,
                    unsteady(figures), family, phase,
                )  # fmt: skip


__all__ = ["ADAPTERS", "GROUPS", "PROCESS_GROUPS", "few", "large", "small"]
