"""Every family of operations beside PyTorch, at three sizes, forward and with the gradient.

Arrays have 9, 1,024 and 10⁶ elements; matrices are squares of 4, 64 and 512, images those of a
small and of a large step; groups of their own do the same in float32.  The last tables say the
medians, and the ten worst rows.  `training` is a step of LeNet on scikit-learn's digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from bench import image_operations, lenet, movements, operations, scientific
from bench.check import Disagreement, checked
from bench.libraries import ADAPTERS as ALL
from bench.libraries import Library
from bench.operations import Row as Case
from bench.problem import Problem
from bench.report import Row, at_least, ratios_to, unsteady
from bench.timing import QUICK, Effort, Figure, interleave

ADAPTERS = {name: ALL[name] for name in ("tapegrad", "torch")}
PROCESS_GROUPS: dict[str, Any] = {}
GROUPS = (
    "tiny", "middle", "large", "tiny_float32", "middle_float32", "large_float32", "training",
)  # fmt: skip
LEAST = 0.5  # of PyTorch's speed, in any row


class Scale(NamedTuple):
    """How large the operands are: sides of arrays, of matrices, a batch of images; and a unit."""

    name: str
    side: int
    matrix: int
    images: int
    unit: str
    factor: float
    effort: Effort
    dtype: type[np.floating] = np.float64

    def in_float32(self) -> Scale:
        """Return the same in float32."""
        return self._replace(name=f"{self.name}, float32", dtype=np.float32)


TINY = Scale("9 elements", 3, 4, 0, "µs", 1e6, Effort(batch=0.002, rounds=(7, 15), budget=0.1))
MIDDLE = Scale("1,024 elements", 32, 64, 0, "µs", 1e6, Effort(0.002, (7, 15), 0.1))
STEPS = Effort(batch=0.02, rounds=(9, 21), budget=1.0)
LARGE = Scale("10⁶ elements", 1000, 512, 1, "ms", 1e3, Effort(0.01, (5, 11), 0.3))


def tiny(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time operations on a few elements, where the work beside the work counts."""
    yield from timed(libraries, threads, TINY, quick)


def middle(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time operations on a thousand elements."""
    yield from timed(libraries, threads, MIDDLE, quick)


def large(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time operations on a million elements."""
    yield from timed(libraries, threads, TINY if quick else LARGE, quick)


def tiny_float32(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time the same in float32."""
    yield from timed(libraries, threads, TINY.in_float32(), quick)


def middle_float32(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time the same in float32."""
    yield from timed(libraries, threads, MIDDLE.in_float32(), quick)


def large_float32(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time the same in float32."""
    yield from timed(libraries, threads, (TINY if quick else LARGE).in_float32(), quick)


def training(libraries: list[Library], threads: int, quick: bool) -> Iterator[Row]:
    """Time steps of training."""
    for dtype in (np.float32, np.float64):
        for batch in (1, 64):
            yield training_row(lenet.problem(batch, dtype), libraries, threads, quick)


def training_row(problem: Problem, libraries: list[Library], threads: int, quick: bool) -> Row:
    """Time forward, backward and the change of the weights."""
    runs = checked(problem, libraries)
    samples = interleave({name: run.step for name, run in runs.items()}, QUICK if quick else STEPS)
    figures = {name: Figure.of(s, 1e6) for name, s in samples.items()}
    ratios = ratios_to(figures, "torch")
    reach, met = at_least(ratios, torch=1.0)
    return Row(
        "training", problem.name, threads, "µs", figures, ratios, reach, met, unsteady(figures)
    )


def families(scale: Scale) -> Iterator[tuple[str, list[Case], int]]:
    """Yield each family with the rows that have this scale, and the side of their operands."""
    arrays = operations.FAMILIES | movements.FAMILIES | scientific.ARRAYS
    for name, table in arrays.items():
        # A window of ten elements is no row of nine.
        least = 12 if name in movements.FAMILIES else scale.side
        yield name, table, max(scale.side, least)
    for name, table in scientific.MATRICES.items():
        yield name, table, scale.matrix
    if scale.side != MIDDLE.side:
        for name, table in image_operations.FAMILIES.items():
            yield name, table, scale.images


def timed(libraries: list[Library], threads: int, scale: Scale, quick: bool) -> Iterator[Row]:
    """Time every row at one scale."""
    effort = QUICK if quick else scale.effort
    for family, table, side in families(scale):
        for problem in operations.problems(table, side):
            if scale.dtype is np.float32:
                if problem.dtype != np.float64:
                    continue  # it is complex, or in float32 already
                problem = problem.astype(np.dtype(np.float32))
            try:
                runs = checked(problem, libraries)
            except Disagreement as error:
                reach, _ = at_least({}, torch=LEAST)
                yield Row(
                    scale.name, problem.name, threads, scale.unit, {}, {}, reach, False,
                    f"not timed: {error}", family, "forward",
                )  # fmt: skip
                continue
            phases = {"forward": {name: run.forward for name, run in runs.items()}}
            if problem.gradient:
                phases["forward and backward"] = {name: run.step for name, run in runs.items()}
            for phase, calls in phases.items():
                samples = interleave(calls, effort)
                figures = {name: Figure.of(s, scale.factor) for name, s in samples.items()}
                ratios = ratios_to(figures, "torch")
                reach, met = at_least(ratios, torch=LEAST)
                yield Row(
                    scale.name, problem.name, threads, scale.unit, figures, ratios, reach, met,
                    unsteady(figures), family, phase,
                )  # fmt: skip


def summary(rows: list[Row]) -> str:
    """Return the median ratio of each scale, and the ten worst rows."""
    lines = ["| scale | rows | median ratio to PyTorch | below 0.5 |", "|---|---:|---:|---:|"]
    for name in dict.fromkeys(row.group for row in rows):
        found = [row.ratios["torch"] for row in rows if row.group == name and row.ratios]
        if found:
            low = sum(ratio < LEAST for ratio in found)
            lines.append(f"| {name} | {len(found)} | {median(found):.2f}× | {low} |")
    lines += ["", "| the worst rows | ratio |", "|---|---:|"]
    known = [row for row in rows if row.ratios]
    for row in sorted(known, key=lambda row: row.ratios["torch"])[:10]:
        lines.append(f"| {row.name}, {row.phase}, {row.group} | {row.ratios['torch']:.2f}× |")
    return "\n".join(lines)
