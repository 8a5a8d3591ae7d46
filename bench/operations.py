"""Single operations at a million doubles: one row each, a callable over PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.problem import SEED, Problem

SIDE = 1000
Draw = Callable[[np.random.Generator, int], np.ndarray]


# What an operation takes; n is the side of the square of elements.
def vec(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of n*n normal numbers."""
    return rng.standard_normal(n * n)


def mat(rng: np.random.Generator, n: int) -> np.ndarray:
    """A square of n*n normal numbers."""
    return rng.standard_normal((n, n))


def batch(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four squares of n*n/4 numbers each, or a few more."""
    side = -(-n // 2)
    return rng.standard_normal((4, side, side))


def row(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of n normal numbers."""
    return rng.standard_normal(n)


def positive(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of numbers between 0.5 and 1.5."""
    return rng.uniform(0.5, 1.5, n * n)


def unit(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of numbers inside (-1, 1)."""
    return rng.uniform(-0.9, 0.9, n * n)


def near_one(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector whose product neither over- nor underflows."""
    return rng.uniform(1 - 1e-4, 1 + 1e-4, n * n)


def mask(rng: np.random.Generator, n: int) -> np.ndarray:
    """A vector of truth values."""
    return rng.random(n * n) < 0.5


def places(rng: np.random.Generator, n: int) -> np.ndarray:
    """A permutation of n*n positions."""
    return rng.permutation(n * n)


def rows(rng: np.random.Generator, n: int) -> np.ndarray:
    """A permutation of n positions."""
    return rng.permutation(n)


def columns(rng: np.random.Generator, n: int) -> np.ndarray:
    """For each row of a square, a permutation of its columns."""
    return rng.permuted(np.tile(np.arange(n), (n, 1)), axis=1)


# (name, function, inputs, data); "~" before a name: no gradient; ".": calls methods.
Row = tuple[str, Callable[..., Any], tuple[Draw, ...], tuple[Draw, ...]]

FAMILIES: dict[str, list[Row]] = {
    "arithmetic": [
        ("add", lambda xp, x, y: x + y, (vec, vec), ()),
        ("add, rows broadcast", lambda xp, x, y: x + y, (mat, row), ()),
        ("sub", lambda xp, x, y: x - y, (vec, vec), ()),
        ("mul", lambda xp, x, y: x * y, (vec, vec), ()),
        ("mul, rows broadcast", lambda xp, x, y: x * y, (mat, row), ()),
        ("mul, by a number", lambda xp, x: x * 2.5, (vec,), ()),
        ("div", lambda xp, x, y: x / y, (vec, positive), ()),
        ("pow, squared", lambda xp, x: x**2, (vec,), ()),
        ("pow, by a number", lambda xp, x: x**2.5, (positive,), ()),
        ("pow", lambda xp, x, y: x**y, (positive, unit), ()),
        (".remainder", lambda xp, x, y: x % y, (vec,), (positive,)),
        ("~floor_divide", lambda xp, x, y: x // y, (vec, positive), ()),
        ("neg", lambda xp, x: -x, (vec,), ()),
        ("abs", lambda xp, x: xp.abs(x), (vec,), ()),
        ("addcmul", lambda xp, x, a, b: xp.addcmul(x, a, b, value=0.5), (vec, vec, vec), ()),
        ("addcdiv", lambda xp, x, a, b: xp.addcdiv(x, a, b, value=0.5), (vec, vec, positive), ()),
        ("lerp", lambda xp, a, b: xp.lerp(a, b, 0.3), (vec, vec), ()),
        ("~lt", lambda xp, x, y: x < y, (vec, vec), ()),
        ("~eq", lambda xp, x, y: x == y, (vec, vec), ()),
    ],
    "elementwise": [
        ("exp", lambda xp, x: xp.exp(x), (vec,), ()),
        ("log", lambda xp, x: xp.log(x), (positive,), ()),
        ("log1p", lambda xp, x: xp.log1p(x), (unit,), ()),
        ("expm1", lambda xp, x: xp.expm1(x), (vec,), ()),
        ("sqrt", lambda xp, x: xp.sqrt(x), (positive,), ()),
        ("sin", lambda xp, x: xp.sin(x), (vec,), ()),
        ("cos", lambda xp, x: xp.cos(x), (vec,), ()),
        ("tan", lambda xp, x: xp.tan(x), (unit,), ()),
        ("asin", lambda xp, x: xp.asin(x), (unit,), ()),
        ("acos", lambda xp, x: xp.acos(x), (unit,), ()),
        ("atan", lambda xp, x: xp.atan(x), (vec,), ()),
        ("atan2", lambda xp, x, y: xp.atan2(x, y), (vec, positive), ()),
        ("sinh", lambda xp, x: xp.sinh(x), (vec,), ()),
        ("cosh", lambda xp, x: xp.cosh(x), (vec,), ()),
        ("tanh", lambda xp, x: xp.tanh(x), (vec,), ()),
        ("sigmoid", lambda xp, x: xp.sigmoid(x), (vec,), ()),
        ("relu", lambda xp, x: xp.relu(x), (vec,), ()),
        ("softplus", lambda xp, x: xp.nn.functional.softplus(x), (vec,), ()),
        ("erf", lambda xp, x: xp.erf(x), (vec,), ()),
        ("minimum", lambda xp, x, y: xp.minimum(x, y), (vec, vec), ()),
        ("maximum", lambda xp, x, y: xp.maximum(x, y), (vec, vec), ()),
        ("clamp", lambda xp, x: xp.clamp(x, -1.0, 1.0), (vec,), ()),
        ("where", lambda xp, x, y, m: xp.where(m, x, y), (vec, vec), (mask,)),
        (".masked_fill", lambda xp, x, m: x.masked_fill(m, 0.0), (vec,), (mask,)),
        (".clone", lambda xp, x: x.clone(), (vec,), ()),
    ],
    "reductions": [
        ("sum", lambda xp, x: xp.sum(x), (vec,), ()),
        ("sum, dim 0", lambda xp, x: xp.sum(x, dim=0), (mat,), ()),
        ("sum, dim 1", lambda xp, x: xp.sum(x, dim=1), (mat,), ()),
        ("mean", lambda xp, x: xp.mean(x), (vec,), ()),
        ("mean, dim 1", lambda xp, x: xp.mean(x, dim=1), (mat,), ()),
        ("prod", lambda xp, x: xp.prod(x), (near_one,), ()),
        ("var", lambda xp, x: xp.var(x), (vec,), ()),
        ("std, dim 1", lambda xp, x: xp.std(x, dim=1), (mat,), ()),
        ("max", lambda xp, x: xp.max(x), (vec,), ()),
        (".max, dim 1", lambda xp, x: xp.max(x, dim=1).values, (mat,), ()),
        ("min", lambda xp, x: xp.min(x), (vec,), ()),
        ("amax, dim 1", lambda xp, x: xp.amax(x, dim=1), (mat,), ()),
        ("amin, dim 0", lambda xp, x: xp.amin(x, dim=0), (mat,), ()),
        ("~argmax", lambda xp, x: xp.argmax(x), (vec,), ()),
        ("norm", lambda xp, x: xp.norm(x), (vec,), ()),
        ("logsumexp", lambda xp, x: xp.logsumexp(x, dim=1), (mat,), ()),
        ("softmax", lambda xp, x: xp.softmax(x, dim=1), (mat,), ()),
        ("log_softmax", lambda xp, x: xp.log_softmax(x, dim=1), (mat,), ()),
        ("cumsum", lambda xp, x: xp.cumsum(x, 0), (vec,), ()),
        ("mse_loss", lambda xp, x, y: xp.nn.functional.mse_loss(x, y), (vec, vec), ()),
    ],
    "products": [
        ("mm", lambda xp, a, b: xp.mm(a, b), (mat, mat), ()),
        ("matmul, transposed", lambda xp, a, b: a @ b.T, (mat, mat), ()),
        ("matmul, a batch", lambda xp, a, b: a @ b, (batch, batch), ()),
        ("matmul, a batch by a matrix", lambda xp, a, b: a @ b[0].T, (batch, batch), ()),
        ("mv", lambda xp, a, x: xp.mv(a, x), (mat, row), ()),
        ("dot", lambda xp, x, y: xp.dot(x, y), (vec, vec), ()),
        ("outer", lambda xp, x, y: xp.outer(x, y), (row, row), ()),
    ],
}


def problems(table: list[Row], side: int) -> Iterator[Problem]:
    """Yield the problem of each row, with side*side elements."""
    for name, function, inputs, data in table:
        rng = np.random.default_rng(SEED)
        yield Problem(
            name.lstrip("~."),
            lambda xp, inputs, data, f=function: f(xp, *inputs, *data),
            tuple(draw(rng, side) for draw in inputs),
            tuple(draw(rng, side) for draw in data),
            gradient=not name.startswith("~"),
            methods="." in name[:2],
        )
