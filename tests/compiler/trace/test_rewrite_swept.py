"""Gradients of long loops of Python: the loop is re-rolled first, and its adjoint is a loop."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir import reroll
from tapegrad.compiler.ir.control_ops import LOOP
from tests.compiler.ir import test_reroll as programs
from tests.compiler.ir.test_reroll import ROWS, X

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

V = np.array([1.0, -0.4, 0.7])
STRAIGHT = 10**9


@pytest.fixture
def short(monkeypatch):
    """Let short loops be worth it."""
    monkeypatch.setattr(reroll, "SAVED", 5)


def loops(f, *arrays):
    return [n.params["form"] for n in tg.jit(f).lower(*arrays).graph.nodes if n.op is LOOP]


def total(f):
    """The sum of all that a function returns."""

    def summed(*arrays):
        found = f(*arrays)
        return sum(np.sum(y) for y in (found if isinstance(found, tuple) else (found,)))

    return summed


def arguments(f):
    return (X,) if f in programs.ONE else (X, ROWS)


FLOATING = [f for f in (*programs.ONE, *programs.TWO) if f is not programs.integers]


def unrolled(f, arrays, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(reroll, "SAVED", STRAIGHT)
        return tg.jit(lambda *a: f(*a))(*arrays)


def near(found, wanted, tolerance=1e-10):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("f", FLOATING, ids=lambda f: f.__name__)
def test_gradients(f, short, monkeypatch):
    arrays = arguments(f)
    derivative = tg.value_and_grad(total(f), argnums=tuple(range(len(arrays))))
    (value, gradients), (other, others) = (
        tg.jit(lambda *a: derivative(*a))(*arrays), unrolled(derivative, arrays, monkeypatch)
    )  # fmt: skip
    near([value], [other], 1e-14)
    near(gradients, others)
    near(gradients, derivative(*arrays)[1])
    forms = loops(derivative, *arrays)
    assert 2 <= len(forms) <= 6
    assert any(form.backwards for form in forms)


@pytest.mark.parametrize("seed", range(12))
def test_gradients_of_random_loops(seed, short, monkeypatch):
    derivative = tg.grad(total(programs.random_loop(seed)), argnums=(0, 1))
    found = tg.jit(lambda *a: derivative(*a))(X, ROWS)
    near(found, unrolled(derivative, (X, ROWS), monkeypatch))
    near(found, derivative(X, ROWS))


TRANSFORMS = {
    "jvp": lambda f: lambda x, *r: tg.jvp(lambda x: f(x, *r), (x,), (V,))[1],
    "hvp": lambda f: lambda x, *r: tg.hvp(lambda x: f(x, *r))(x, V),
    "vmap": lambda f: lambda x, *r: tg.vmap(lambda x: f(x, *r))(np.stack([x, x * 0.5])),
    "vmap_of_grad": lambda f: (
        lambda x, *r: tg.vmap(tg.grad(lambda x: f(x, *r)))(np.stack([x, x * 0.5]))
    ),
    "grad_of_vmap": lambda f: tg.grad(
        lambda x, *r: np.sum(tg.vmap(lambda x: f(x, *r))(np.stack([x, x * 0.5])) ** 2)
    ),
    "grad_of_grad": lambda f: tg.grad(lambda x, *r: np.sum(tg.grad(f)(x, *r) * V)),
    "jacfwd": lambda f: lambda x, *r: tg.jacfwd(lambda x: f(x, *r))(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", [programs.with_ends, programs.two_back, programs.appended])
def test_transforms(f, name, short, monkeypatch):
    arrays = arguments(f)
    transformed = TRANSFORMS[name](total(f))
    found = tg.jit(lambda *a: transformed(*a))(*arrays)
    near([found], [unrolled(transformed, arrays, monkeypatch)], 1e-9)
    near([found], [transformed(*arrays)], 1e-9)
    assert loops(transformed, *arrays)


def test_float32(short):
    derivative = tg.grad(total(programs.appended))
    arrays = X.astype("f"), ROWS.astype("f")
    found = tg.jit(derivative)(*arrays)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, derivative(*arrays), rtol=1e-4, atol=1e-5)


def test_the_sweep_is_traced_once(short):
    """And the records that became a loop leave nothing behind."""

    def size(n):
        derivative = tg.value_and_grad(lambda x: np.sum(walk(x, n)))
        return len(tg.jit(derivative).lower(X).graph.nodes)

    assert size(20) == size(200) < 40


def walk(x, n):
    for _ in range(n):
        x = x - 0.1 * np.sin(x) * x
    return x


def test_values_of_trips_that_are_kept(short, monkeypatch):
    """They stand for outputs of the loop."""

    def f(x):
        def inner(y):
            seen = []
            for _ in range(20):
                y = y - 0.1 * np.sin(y) * x
                seen.append(y)
            return np.sum(y * seen[3]), seen

        gradient, seen = tg.grad(inner, has_aux=True)(x)
        return gradient, seen[5] * seen[18], np.stack(seen)

    found = tg.jit(lambda x: f(x))(X)
    near(found, unrolled(f, (X,), monkeypatch))
    near(found, f(X))


def test_guards_within(short):
    """Values that Python asked for in each trip are looked at in each call."""

    def f(x, rows):
        for row in rows:
            x = np.tanh(x * 0.5 + row) + x
            x = x * 0.5 if np.sum(x) > 2.0 else x
        return np.sum(x)

    whole = tg.jit(tg.grad(f))
    for scale in (0.01, 3.0, 0.02):
        near([whole(X, ROWS * scale)], [tg.grad(f)(X, ROWS * scale)])
    assert whole.cache_info().traces == 2


def test_stopped_gradients(short, monkeypatch):
    def f(x):
        for _ in range(20):
            x = np.sin(x) * 0.5 + tg.stop_gradient(x) * x
        return np.sum(x)

    near([tg.jit(tg.grad(f))(X)], [tg.grad(f)(X)])
    assert len(loops(tg.grad(f), X)) == 2


def test_entries_that_stop_gradients(short):
    def within(x, rows):
        for i in range(20):
            with tg.no_grad():
                row = rows[i]
            x = np.sin(x) * row + rows[i] * x
        return np.sum(x)

    def before(x, rows):
        with tg.no_grad():
            read = [rows[i] for i in range(20)]
        for row in read:
            x = np.sin(x) * row + x
        return np.sum(x) + np.sum(np.stack(read) * 2.0)

    for f in (within, before):
        slope = tg.grad(f, argnums=(0, 1))
        near(tg.jit(lambda x, rows, slope=slope: slope(x, rows))(X, ROWS), slope(X, ROWS))
        assert len(loops(slope, X, ROWS)) == 2


def test_functions_with_rules_of_their_own(short):
    """They leave the loop straight, for its adjoint to call them."""

    @tg.custom_vjp
    def bent(x):
        return np.sin(x)

    bent.defvjp(lambda x: (np.sin(x), x), lambda x, g: (g * np.cos(x) * 1.2,))

    def f(x):
        for _ in range(20):
            x = bent(x) * 0.5 + x * 0.9
        return np.sum(x)

    near([tg.jit(tg.grad(f))(X)], [tg.grad(f)(X)])


def test_gradients_in_the_steps_of_a_gradient(short):
    def f(x):
        for _ in range(20):
            x = x - 0.05 * tg.grad(lambda y, x: np.sum(np.sin(y) * y * x))(x, x)
        return np.sum(x)

    near([tg.jit(tg.grad(f))(X)], [tg.grad(f)(X)], 1e-8)


def test_within_a_loop_of_the_program(short):
    def f(x):
        return np.sum(tg.fori_loop(0, 3, lambda i, y: walk(y, 20) + x, x))

    near([tg.jit(tg.grad(f))(X)], [tg.grad(f)(X)])
    near([tg.jit(f)(X)], [f(X)])


def test_values_that_python_asks_for_afterwards(short):
    """Also behind a loop of the program that was left early while it was traced."""

    def f(x):
        def inner(x):
            x = tg.fori_loop(0, 10, lambda i, y: np.sin(y) * 0.9 + y * 0.2, x)
            return np.sum(walk(x, 20) ** 3)

        value, gradient = tg.value_and_grad(inner)(x)
        if gradient[0] > value:
            return gradient
        return -gradient

    whole = tg.jit(f)
    for x in (X, -X, X * 3.0):
        near([whole(x)], [f(x)])


def test_captured_weights_and_two_arguments(short, monkeypatch):
    def f(w, b, x):
        def loss(w, b):
            h = x
            for _ in range(20):
                h = np.tanh(w @ h + b)
            return np.sum(h * x)

        return tg.grad(loss, argnums=(0, 1))(w, b)

    w, b = np.outer(V, X), X * 0.1
    near(tg.jit(lambda *a: f(*a))(w, b, V), unrolled(f, (w, b, V), monkeypatch))
    near(tg.jit(f)(w, b, V), f(w, b, V))
