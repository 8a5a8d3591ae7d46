"""Gathers before what is computed row by row: which move, and that values and gradients stay."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.early_gathers import with_early_gathers
from tests.compiler.graphs import graph, names, passed, traced
from tests.compiler.passes.randoms import close, on_random_programs
from tests.compiler.programs import BINARY, UNARY

pytestmark = pytest.mark.tapegrad_only("about this project")

RNG = np.random.default_rng(0)
X, W, V = RNG.standard_normal((40, 3)), RNG.standard_normal((3, 5)), RNG.standard_normal(5)
INDEX = np.array([7, 2, 7, -1])
PICKS = {
    "index": lambda y: y[INDEX],
    "index of two": lambda y: y[INDEX, [0, 1, 2, 0]],
    "index and slice": lambda y: y[INDEX, 1:],
    "matrix of indices": lambda y: y[INDEX.reshape(2, 2)],
    "index_select": lambda y: tg.index_select(y, 0, tg.tensor(INDEX % 40)),
    "unordered": lambda y: y[[9, 30, 4]],
    "evenly spaced": lambda y: y[[4, 7, 10]],
    "slice": lambda y: y[3:9],
    "strided": lambda y: y[4:30:3],
    "row": lambda y: y[5],
    "last": lambda y: y[-1],
    "element": lambda y: y[-1, 2],
    "part of rows": lambda y: y[:4, 1:3],
}


def layer(x, w, v):
    """Broadcasting, a product, reductions along the last axis, views that keep rows."""
    y = tg.log_softmax(np.tanh(x @ w + v), -1)
    return y[:, 1:] * np.exp(x[:, :1]) + np.sum(x, axis=1, keepdims=True)


def computes(tape, rows):
    """Whether a graph computes, other than zeros around an adjoint, arrays of so many rows."""
    moves = ("embed", "unindex", "unselect", "index", "getitem", "permute")
    return any(
        n.op is not None and n.shape[:1] == (rows,) and n.name not in moves for n in tape.nodes
    )


@pytest.mark.parametrize("name", PICKS)
def test_few_rows_are_computed(name):
    f = tg.value_and_grad(lambda *args: np.sum(PICKS[name](layer(*args)) ** 2), argnums=(0, 1, 2))
    jitted = tg.jit(f)
    tape = jitted.lower(X, W, V).graph
    assert not computes(tape, len(X)), tape
    (value, gradients), (wanted, others) = jitted(X, W, V), f(X, W, V)
    np.testing.assert_allclose(value, wanted, rtol=1e-13)
    for found, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(found, other, rtol=1e-12, atol=1e-14)


def test_rows_of_arithmetic_are_the_same_bits():
    f = lambda x: np.sqrt(x * x + 1.0) / (x - np.max(x, axis=1, keepdims=True) - 0.3)
    x = RNG.standard_normal((4000, 8))
    whole = tg.jit(f)(x)
    for rows in (np.array([3, 999, 3, 20]), slice(5, 1900), RNG.permutation(4000)[:2000]):
        np.testing.assert_array_equal(tg.jit(lambda x, rows=rows: f(x)[rows])(x), whole[rows])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sin(x)[:30], lambda x: np.sin(x)[::-1], lambda x: np.cumsum(x, axis=0)[3:5],
        lambda x: (np.sin(x) - np.mean(np.sin(x), axis=0))[3:5], lambda x: np.sin(x.T)[:, 3:5],
        lambda x: (lambda y: y[3:5] + np.sum(y))(np.sin(x)),
        lambda x: (lambda y: y[3:5] + y[4:6])(np.sin(x)),
        lambda x: (lambda y: (y, y[3]))(np.sin(x)),
    ],
    ids=[
        "most", "all", "a scan", "less their mean", "columns", "a sum too", "two slices", "all too"
    ],
)  # fmt: skip
def test_what_else_is_read_is_computed(f):
    jitted = tg.jit(f)
    assert computes(jitted.lower(X).graph, 40) or computes(jitted.lower(X).graph, 3)
    found, wanted = jitted(X), f(X)
    for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, wanted)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_indices_that_are_arguments_stay_where_they_are():
    jitted = tg.jit(lambda x, rows: np.sin(x)[rows])
    assert computes(jitted.lower(X, INDEX).graph, 40)
    np.testing.assert_array_equal(jitted(X, INDEX), np.sin(X)[INDEX])


def test_two_gathers_of_the_same_rows_are_one():
    jitted = tg.jit(lambda x: np.sin(x)[-1, 0] * np.exp(x)[-1] + np.sin(x)[-1])
    tape = jitted.lower(X).graph
    assert not computes(tape, 40)
    assert names(tape).count("sin") == 1


def test_an_adjoint_that_is_read_as_a_whole_is_scattered():
    """Into the sum with another one, which is not zero anywhere."""
    f = tg.grad(lambda x: np.sum(np.sin(x)[3:5] ** 2) + np.sum(np.cos(x)))
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-13)


def test_rows_that_are_not_read_may_be_anything():
    x = X.copy()
    x[9], x[10] = np.nan, np.inf
    f = tg.value_and_grad(lambda x, w: np.sum(np.log(np.abs(x @ w))[2:4]), argnums=(0, 1))
    (value, gradients), (wanted, others) = tg.jit(f)(x, W), f(x, W)
    np.testing.assert_allclose(value, wanted, rtol=1e-13)
    for a, b in zip(gradients, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_graphs_without_gathers_stay():
    before = graph(X, ("sin", (0,)), ("sum", (1,), {"dim": (0,), "keepdim": False}))
    assert with_early_gathers(before) is before
    alone = graph(X, ("getitem", (0,), {"index": (slice(0, 3),)}))
    assert with_early_gathers(alone) is alone


ROWWISE = (
    lambda y, z, w, k: UNARY[k % len(UNARY)](np, y),
    lambda y, z, w, k: BINARY[k % len(BINARY)](np, y, z),
    lambda y, z, w, k: y @ w,
    lambda y, z, w, k: y - np.sum(np.tanh(y), axis=1, keepdims=True),
    lambda y, z, w, k: tg.softmax(z, -1) * y,
    lambda y, z, w, k: np.sin(y)[:, [0] * 3] + z[:, :1],
)


def random_rows(rng):
    """A function that computes row by row at random, and adds up some of its rows."""
    steps = rng.integers(1 << 30, size=(8, 4))
    first, second = [list(PICKS.values())[k] for k in rng.integers(len(PICKS), size=2)]
    if rng.random() < 0.5:
        second = first

    def f(x, w):
        values = [x]
        for what, a, b, form in steps:
            y, z = values[a % len(values)], values[b % len(values)]
            values.append(ROWWISE[what % len(ROWWISE)](y, z, w, form))
        return np.sum(np.tanh(first(values[-1]))) + np.sum(np.sin(second(values[-2])))

    return f


@pytest.mark.parametrize("seed", range(24))
def test_random_rows(seed):
    rng = np.random.default_rng(seed)
    f = tg.value_and_grad(random_rows(rng), argnums=(0, 1))
    x, w = rng.standard_normal((40, 3)), rng.standard_normal((3, 3)) * 0.3
    passed(with_early_gathers, traced(f, x, w), x, w, alike=close)
    (value, gradients), (wanted, others) = tg.jit(f)(x, w), f(x, w)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for a, b in zip(gradients, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


test_random_programs = on_random_programs(with_early_gathers, alike=close)
