"""Which values a loop hands on to its adjoint, and which that computes once more."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.control_ops import LOOP
from tapegrad.compiler.passes import loop_rematerialization
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.loop_rematerialization import with_kept_values
from tests.compiler.graphs import passed, traced
from tests.compiler.passes.randoms import on_random_loops

pytestmark = pytest.mark.tapegrad_only("compiled loops are not PyTorch's")

RNG = np.random.default_rng(5)
X = RNG.normal(size=5)
W = RNG.normal(size=(5, 5)) * 0.3
ROWS = RNG.normal(size=(7, 5))


def bodies(f, *args):
    """The names of the operations in the bodies of a program's loops."""
    graph = tg.jit(f).lower(*args).graph
    found = [n.params["form"].body for n in graph.nodes if n.op is LOOP]
    return [[n.name for n in body.nodes if n.op is not None] for body in found]


def scanned(step, reverse=False):
    """A function of a vector: the last state of a loop over rows, and what it gave."""

    def f(x):
        last, given = tg.scan(step, x, ROWS, reverse=reverse)
        return np.sum(last * X) + np.sum(given**2)

    return f


def network(h, row):
    h = np.tanh(W @ h + row)
    return h, np.exp(h) * row


def agrees(f, x, make=tg.grad):
    before = without_dead(traced(make(f), x))
    for point in (x, -x):
        passed(with_kept_values, before, point)
    np.testing.assert_allclose(tg.jit(make(f))(x), make(f)(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_takes_long_is_computed_once(reverse):
    f = scanned(network, reverse)
    forward, backward = bodies(tg.grad(f), X)
    assert forward.count("tanh") == forward.count("exp") == forward.count("matmul") == 1
    assert not {"tanh", "exp", "matmul"}.intersection(backward)
    agrees(f, X)


def test_what_is_quick_is_computed_again():
    f = scanned(lambda h, row: (h * row * h + 0.1, h * row))
    forward, backward = bodies(tg.grad(f), X)
    assert forward.count("mul") == 2
    assert backward.count("mul") >= 1
    [row] = [
        n.params["form"].rows
        for n in tg.jit(tg.grad(f)).lower(X).graph.nodes
        if n.op is LOOP and n.params["form"].backwards
    ]
    assert row <= 3  # the states, the rows and the adjoints of what was given
    agrees(f, X)


def test_what_would_take_too_much_memory_is_computed_again(monkeypatch):
    monkeypatch.setattr(loop_rematerialization, "ROOM", 0)
    monkeypatch.setattr(loop_rematerialization, "TIMES", 0)
    f = scanned(network)
    _, backward = bodies(tg.grad(f), X)
    assert {"tanh", "matmul"} <= set(backward)
    agrees(f, X)


def test_an_adjoint_that_reads_half_of_it_computes_the_rest(monkeypatch):
    monkeypatch.setattr(loop_rematerialization, "ROOM", 7 * 5 * 8)
    monkeypatch.setattr(loop_rematerialization, "TIMES", 0)
    f = scanned(lambda h, row: (np.sin(np.exp(h * 0.1)) + np.tanh(h * row), np.tanh(h)))
    _, backward = bodies(tg.grad(f), X)
    assert sum(name in ("exp", "sin", "tanh") for name in backward) == 2
    agrees(f, X)


def test_rows_and_results_that_are_wanted_too():
    def f(x):
        last, given = tg.scan(lambda h, row: (np.tanh(h * row), np.tanh(h)), x, np.outer(X, x))
        return np.sum(last) + np.sum(given * given)

    value, slope = tg.jit(tg.value_and_grad(f))(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(slope, tg.grad(f)(X), rtol=1e-10)


def test_what_is_given_already_is_read_there():
    def step(h, row):
        y = np.tanh(h)
        return y * row, y

    f = scanned(step)
    graph = tg.jit(tg.grad(f)).lower(X).graph
    forward = next(n.params["form"] for n in graph.nodes if n.op is LOOP)
    assert forward.outputs == 1
    agrees(f, X)


@pytest.mark.parametrize("make", [tg.hessian, tg.jacfwd])
def test_derivatives_of_derivatives(make):
    agrees(scanned(network), X, make)
    agrees(scanned(network), X, lambda f: tg.jit(make(f)))


def test_a_large_constant_of_the_body_is_the_same_in_both():
    matrix = RNG.normal(size=(9, 9)) * 0.2
    rows = RNG.normal(size=(4, 9))

    def f(x):
        last, _ = tg.scan(lambda h, row: (np.tanh(matrix @ h) * row, None), x, rows)
        return np.sum(last)

    x = RNG.normal(size=9)
    forward, backward = bodies(tg.grad(f), x)
    assert forward.count("matmul") == forward.count("tanh") == 1
    assert not {"tanh", "matmul"}.intersection(backward)
    agrees(f, x)


def test_a_carry_is_not_what_it_began_with():
    """The second loop begins with what is the same in every trip of the first."""

    def f(w):
        _, given = tg.scan(lambda h, row: (np.tanh(h) * row, np.exp(w) * h), X, ROWS)
        last, seen = tg.scan(lambda c, row: (c * 0.5 + row, np.exp(c)), w, given)
        return np.sum(last) + np.sum(seen)

    before = without_dead(traced(f, W[0]))
    for w in (W[0], -W[0]):
        passed(with_kept_values, before, w)
    np.testing.assert_allclose(tg.jit(f)(W[0]), f(W[0]), rtol=1e-12)


def test_a_carry_that_began_with_all_rows_is_none_of_them():
    def f(x):
        _, a = tg.scan(lambda h, row: (np.tanh(np.exp(h * row)), h * row), x, ROWS)
        last, seen = tg.scan(lambda c, row: (c * row, np.exp(c)), a, a)
        return np.sum(last) + np.sum(seen)

    passed(with_kept_values, without_dead(traced(f, X)), X)
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12)


def two_loops(third):
    """A function that runs a loop over the rows that two others gave."""

    def f(x):
        _, a = tg.scan(lambda h, row: (np.tanh(np.exp(h * row)), h * row), x, ROWS)
        _, b = tg.scan(lambda h, row: (np.sin(h) - row, h + row), x * 0.5, ROWS)
        last, seen = tg.scan(third, x, (a, b))
        return np.sum(last) + np.sum(seen)

    return f


@pytest.mark.parametrize(
    ("third", "again"),
    [
        (lambda c, rows: (c + rows[1], np.exp(rows[0])), False),  # what the first has computed
        (lambda c, rows: (c + rows[0], np.exp(rows[1])), True),  # rows of another loop
        (lambda c, rows: (c * rows[0], np.exp(c)), True),  # a carry of its own
    ],
    ids=["rows", "other rows", "carry"],
)
def test_what_other_loops_have_computed(third, again):
    f = two_loops(third)
    before = without_dead(traced(f, X))
    for x in (X, -X):
        passed(with_kept_values, before, x)
    assert ("exp" in bodies(f, X)[-1]) is again
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12)
    agrees(f, X)


def test_a_loop_of_unknown_length_hands_on_nothing():
    f = lambda x, n: np.sum(tg.fori_loop(0, n, lambda i, h: np.tanh(W @ h + x), x))
    slope = tg.jit(tg.grad(f))
    for n in (3, 5):
        np.testing.assert_allclose(slope(X, n), tg.grad(f)(X, n), rtol=1e-10)


def test_loops_within_loops():
    def step(h, row):
        h = tg.fori_loop(0, 3, lambda i, y: np.tanh(W @ y) + row, h)
        return h, np.sin(h)

    f = scanned(step)
    agrees(f, X)
    agrees(f, X, tg.hessian)


def test_a_join_lies_in_memory_anyway():
    f = scanned(lambda h, row: (np.concatenate([row[:1], h[:-1]]) * h, h))
    forward, backward = bodies(tg.grad(f), X)
    assert "cat" in forward
    assert "cat" not in backward
    agrees(f, X)


test_random_loops = on_random_loops(lambda graph: with_kept_values(without_dead(graph)))
