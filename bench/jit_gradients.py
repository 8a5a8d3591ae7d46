"""Gradients of array functions, compiled, beside JAX's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from bench.check import VALUE_TOLERANCE, Disagreement
from bench.gradbench.evaluation import Call, as_numpy, largest_difference
from bench.jit_matrices import compared, parts
from bench.report import Row
from bench.sides.side import Side
from bench.timing import QUICK, Effort

NAMES = ("tapegrad", "jax")
# A name, what makes the function of a library, and the arguments, in all of which it is derived.
Problem = tuple[str, Callable[[Side], Callable[..., Any]], tuple[np.ndarray, ...]]


def gradients(
    group: str, problems: Iterable[Problem], libraries: list[Side], threads: int, quick: bool,
    tolerance: float = VALUE_TOLERANCE,
) -> Iterator[Row]:  # fmt: skip
    """Time the gradients of some functions, which must agree."""
    effort = QUICK if quick else Effort(budget=1.0)
    sides = [side for side in libraries if side.name in NAMES]
    for name, make, arrays in problems:
        calls: dict[str, Call] = {}
        first: Any = None
        for side in sides:
            argnums = tuple(range(len(arrays)))
            f, own = side.compile(side.ad.grad(make(side), argnums)), list(map(side.array, arrays))
            calls[side.name] = lambda f=f, own=own: f(*own)
            value = [as_numpy(x) for x in parts(f(*own))]
            first = value if first is None else first
            error = max(map(largest_difference, value, first))
            if error > tolerance:
                raise Disagreement(f"{name}: {side.name} is off by {error}")
        if calls:
            yield compared(group, name, threads, calls, effort, NAMES[1:])
