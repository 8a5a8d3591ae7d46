"""Gradients in a loop of Python: the sweep is traced twice, and then copied."""

import random

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.trace import backward

pytestmark = pytest.mark.tapegrad_only("about tracing")
X, A = np.linspace(0.2, 0.8, 4), np.linspace(-1.0, 1.0, 12).reshape(3, 4)
ROWS = np.random.default_rng(0).standard_normal((12, 4))


@pytest.fixture
def by_rules(monkeypatch):
    """The sweeps that were traced by the rules: the number of their records."""
    found = []
    real = backward._by_rules

    def noted(trace, adjoints, targets, leads):
        found.append(len(leads))
        real(trace, adjoints, targets, leads)

    monkeypatch.setattr(backward, "_by_rules", noted)
    return found


@pytest.fixture
def without_copies(monkeypatch):
    """Call a function with each sweep traced by the rules."""

    def call(f, *args):
        with monkeypatch.context() as context:
            context.setattr(backward, "swept_like", lambda *args: args[-1]())
            return f(*args)

    return call


def check(f, *args, without_copies):
    """Check that a function computes the same, to the last bit, as where no sweep is copied."""
    found = tg.jit(f)(*args)
    assert np.array_equal(found, without_copies(tg.jit(f), *args))
    np.testing.assert_allclose(found, f(*args), rtol=1e-12, atol=1e-13)


def loss(x, row, weight=0.5):
    y = np.tanh(A @ x) * weight
    return np.sum(y * y) + np.sum(np.exp(x * row) / (1.0 + x * x))


def descended(x, steps=6):
    for _ in range(steps):
        x = x - 0.1 * tg.grad(loss)(x, ROWS[0])
    return x


def test_a_sweep_is_traced_twice(by_rules, without_copies):
    check(descended, X, without_copies=without_copies)
    by_rules.clear()
    tg.jit(descended).lower(X)
    assert len(by_rules) == 2


def test_what_a_loss_reads_may_change(by_rules, without_copies):
    def f(x, rows):
        for t in range(8):
            x = x - 0.1 * tg.grad(loss)(x, rows[t] if t % 3 else rows[t] * rows[0])
        return x

    check(f, X, ROWS, without_copies=without_copies)
    by_rules.clear()
    tg.jit(f).lower(X, ROWS)
    assert len(by_rules) == 2


def test_constants_may_not(by_rules, without_copies):
    def f(x):
        for t in range(6):
            x = x - 0.1 * tg.grad(loss)(x, ROWS[0], 0.5 + t)
        return x

    check(f, X, without_copies=without_copies)
    by_rules.clear()
    tg.jit(f).lower(X)
    assert len(by_rules) == 6


@pytest.mark.parametrize("beside", [True, False])
def test_an_equal_record_beside_those_swept(beside, by_rules, without_copies):
    """The sweep needs the logarithm of a row, and may find it: which need not be so next time."""

    def f(x, rows):
        for t in range(6):
            row = rows[t] * rows[t]
            if beside:
                x = x + 0.01 * np.log(row)
            x = x - 0.01 * tg.grad(lambda y, row=row: np.sum(row**y))(x)
        return x

    check(f, X, ROWS, without_copies=without_copies)
    by_rules.clear()
    tg.jit(f).lower(X, ROWS)
    assert len(by_rules) == (6 if beside else 2)


def test_several_targets_and_losses(without_copies):
    def f(x, y):
        for t in range(9):
            one = lambda a, b: np.sum(np.sin(a) * b) + np.sum(b)
            other = lambda a, b: np.sum(np.cos(a) * b) + np.sum(a)
            g, h = tg.grad(other if t % 2 else one, argnums=(0, 1))(x, y)
            x, y = x - 0.1 * g, y - 0.2 * h
        return x + y

    check(f, X, X[::-1].copy(), without_copies=without_copies)


def test_a_target_that_the_root_does_not_reach(by_rules, without_copies):
    def f(x, y):
        for _ in range(6):
            g, h = tg.grad(lambda a, b: loss(a, ROWS[0]), argnums=(0, 1))(x, y)
            x, y = x - 0.1 * g, y - h
        return x + y

    check(f, X, X[::-1].copy(), without_copies=without_copies)
    by_rules.clear()
    tg.jit(f).lower(X, X)
    assert len(by_rules) == 2


def test_a_loss_whose_parts_depend_on_the_variable_now_and_then(by_rules, without_copies):
    def f(x, rows):
        for t in range(9):
            part = lambda y, t=t: np.exp(y if t % 3 == 2 else rows[0])
            x = x - 0.1 * tg.grad(lambda y, part=part: np.sum(np.sin(y) * part(y)))(x)
        return x

    check(f, X, ROWS, without_copies=without_copies)
    by_rules.clear()
    tg.jit(f).lower(X, ROWS)
    assert len(by_rules) < 9


def test_views_and_changes_in_place(without_copies):
    def f(x):
        for _ in range(5):
            g = tg.grad(lambda y: np.sum(y[1:] * y[:-1]) + np.sum(A.T @ (A @ y)))(x)
            g = tg.as_tensor(g).clone()
            g[0] = g[1] * 0.5
            x = x - 0.1 * g.reshape(2, 2).T.reshape(4)
        return x

    found = tg.jit(f)(tg.tensor(X))
    assert np.array_equal(found, without_copies(tg.jit(f), tg.tensor(X)))
    np.testing.assert_allclose(found, f(tg.tensor(X)).numpy(), rtol=1e-12)


@pytest.mark.parametrize("transform", [tg.grad, tg.jit, tg.jacfwd])
def test_under_other_transforms(transform, without_copies):
    f = lambda x: np.sum(descended(x, 5) ** 2)
    check(transform(f), X, without_copies=without_copies)


def test_a_long_loop_is_re_rolled_as_before(without_copies):
    lowered = tg.jit(lambda x: descended(x, 40)).lower(X)
    plain = without_copies(tg.jit(lambda x: descended(x, 40)).lower, X)
    assert lowered.notes == plain.notes
    assert "re-rolled" in lowered.notes[0]
    assert str(lowered.graph) == str(plain.graph)


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed, without_copies):
    rng = random.Random(seed)
    unary = [np.sin, np.cos, np.tanh, np.exp, np.square]
    losses = [[rng.choice(unary) for _ in range(2)] for _ in range(2)]
    plan = [(rng.randrange(4) // 3, rng.choice([0, 0, 0, 1]), rng.randrange(3)) for _ in range(9)]

    def f(x, rows):
        kept = [np.cos(x)]
        for t, (which, row, beside) in enumerate(plan):
            first, second = losses[which]
            other = kept[-1] if beside else rows[t]

            def loss(y, first=first, second=second, other=other, row=row):
                z = second(first(y) * other) / (other * other + 1.0) + 0.3 * y
                return np.sum(z * (rows[0] if row else z))

            x = x - 0.05 * tg.grad(loss)(x)
            kept.append((np.cos(x), first(x), 1.0 / (other * other + 1.0))[beside])
        return x

    check(f, X, ROWS, without_copies=without_copies)
