"""The determinant by expansion along the first row, again and again: all scalars, all recursion."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.gradbench.evaluation import Eval, Input, Instance, compiled_anew, doubles, first, number


def objective(xp: Any, a: Any) -> Any:
    """The determinant of a matrix."""
    return _minor([list(row) for row in a], tuple(range(len(a))))


def _minor(rows: list[list[Any]], columns: tuple[int, ...]) -> Any:
    """Return the determinant of the last rows in as many columns."""
    row, *below = rows[-len(columns) :]
    if not below:
        return row[columns[0]]
    total = None
    for place, column in enumerate(columns):
        term = row[column] * _minor(rows, columns[:place] + columns[place + 1 :])
        total = term if total is None else total - term if place % 2 else total + term
    return total


def operations(instance: Instance) -> int:
    """Return how many multiplications and additions the expansion takes: some 2 e l!."""
    (a,) = instance.inputs
    return round(2 * math.e * math.factorial(len(a)))


def read(given: Input) -> Instance:
    """The matrix, which comes row after row."""
    return Instance((doubles(given["A"]).reshape(given["ell"], given["ell"]),))


def generate(rng: np.random.Generator, ell: int) -> dict[str, Any]:
    """A matrix of numbers between 0 and 1."""
    return {"A": rng.random(ell * ell).tolist(), "ell": ell}


@compiled_anew
def primal_by_hand(a):
    """`objective`, as one writes it for speed."""
    return _expand(a, 0, (1 << len(a)) - 1)


@compiled_anew
def _expand(a, row, columns):
    """Return the determinant below a row, in those columns whose bits are set."""
    if row == len(a):
        return 1.0
    total, sign = 0.0, 1.0
    for j in range(len(a)):
        if columns >> j & 1:
            total += sign * a[row, j] * _expand(a, row + 1, columns & ~(1 << j))
            sign = -sign
    return total


@compiled_anew
def gradient_by_hand(a):
    """Its derivative, as one writes it for speed."""
    found = np.zeros_like(a)
    _sweep(a, 0, (1 << len(a)) - 1, 1.0, found)
    return (found,)


@compiled_anew
def _sweep(a, row, columns, g, found):
    """The same, and what it adds to the gradient if `g` is the adjoint of its result.

    The factors that make the adjoint are known on the way down, the minors on the way up.
    """
    if row == len(a):
        return 1.0
    total, sign = 0.0, 1.0
    for j in range(len(a)):
        if columns >> j & 1:
            factor = sign * a[row, j]
            minor = _sweep(a, row + 1, columns & ~(1 << j), g * factor, found)
            found[row, j] += sign * g * minor
            total += factor * minor
            sign = -sign
    return total


EVAL = Eval(
    "det", ("primal", "gradient"), objective, read, generate, primal_by_hand, gradient_by_hand,
    shown=(number, first),
    standard={"ell": 7}, small={"ell": 4},
    scalars=operations, pilots=({"ell": 4}, {"ell": 5}), length=operations,
)  # fmt: skip
