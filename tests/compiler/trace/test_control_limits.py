"""Branches and loops under maps and forward derivatives that Python runs; what they refuse."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

X = np.array([0.5, 1.5, -2.3])


def power(x, n):
    return tg.fori_loop(0, n, lambda i, y: y * np.sum(x * x) * 0.3 + i * x[0], x[1])


def unrolled_power(x, n):
    y = x[1]
    for i in range(n):
        y = y * np.sum(x * x) * 0.3 + i * x[0]
    return y


def newton(a):
    return tg.while_loop(lambda x: abs(x * x - a) > 1e-13, lambda x: 0.5 * (x + a / x), a)


def test_maps_run_until_no_example_goes_on():
    a = np.array([1.5, 2.0, 9.0])
    np.testing.assert_allclose(tg.vmap(newton)(a), np.sqrt(a))
    np.testing.assert_allclose(tg.vmap(tg.grad(newton))(a), 0.5 / np.sqrt(a), rtol=1e-6)


def test_maps_over_the_number_of_trips():
    f = tg.vmap(lambda n, x: tg.fori_loop(0, n, lambda i, y: y * x, 1.0))
    np.testing.assert_allclose(f(np.array([0, 2, 3]), X), [1.0, X[1] ** 2, X[2] ** 3])


def test_compiled_maps_of_scans_and_branches():
    def f(x):
        step = lambda c, r: (tg.cond(c > r, lambda: c * r, lambda: c + r), c * x[1])
        last, found = tg.scan(step, x[0], x)
        return last + np.sum(found)

    xs = np.stack([X, -X, X[::-1]])
    for transform in (lambda f: f, tg.grad, tg.hessian):
        want = [transform(f)(x) for x in xs]
        np.testing.assert_allclose(tg.vmap(transform(f))(xs), want)
        np.testing.assert_allclose(tg.jit(tg.vmap(transform(f)))(xs), want)


def test_forward_derivatives():
    one = np.ones(3)
    want = np.sum(tg.grad(unrolled_power)(X, 4))
    for f in (lambda x: power(x, 4), tg.jit(lambda x: power(x, 4))):
        assert tg.jvp(f, (X,), (one,))[1] == pytest.approx(want)
    assert tg.jit(lambda x: tg.jvp(lambda x: power(x, 4), (x,), (one,))[1])(X) == pytest.approx(
        want
    )
    np.testing.assert_allclose(
        tg.jit(tg.hessian(lambda x: power(x, 4)))(X), tg.hessian(lambda x: unrolled_power(x, 4))(X)
    )


# -- errors ----------------------------------------------------------------------------------------


def jitted(f):
    return lambda: tg.jit(f)(X)


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (
            lambda: tg.cond(X > 0, abs, abs, 1.0),
            TypeError, "`cond`: the condition .* shape \\(3,\\)",
        ),
        (lambda: tg.cond(True, 1, abs, 1.0), TypeError, "`cond` takes a function, got int"),
        (
            jitted(lambda x: tg.cond(x[0] > 0, lambda: x, lambda: x[0])),
            TypeError, "`cond`: leaf 0 .* shape \\(3,\\) .* has \\(\\)",
        ),
        (
            jitted(lambda x: tg.cond(x[0] > 0, lambda: x, lambda: (x, x))),
            TypeError, "`cond`: .* both must return the same",
        ),
        (
            jitted(lambda x: tg.fori_loop(0, 3, lambda i, c: (c, c), x[0])),
            TypeError, "`fori_loop`: .* every iteration must keep it",
        ),
        (
            lambda: tg.fori_loop(0, 3, lambda i, c: c + 0.5, 0),
            TypeError, "leaf 0 of the carry .* int64 and came back with \\(\\) and float64",
        ),
        (
            jitted(lambda x: tg.fori_loop(0, 3, lambda i, c: c + x, x[0])),
            TypeError, "leaf 0 of the carry .* shape \\(\\) .* came back with \\(3,\\)",
        ),
        (
            lambda: tg.fori_loop(0, 2.5, lambda i, c: c, 0.0),
            TypeError, "`fori_loop`: `upper` must be an integer",
        ),
        (
            lambda: tg.while_loop(lambda c: True, lambda c: c, "text"),
            TypeError, "`while_loop`: the carry .* leaf of type str",
        ),
        (
            lambda: tg.while_loop(lambda c: c > 0, lambda c: c, X),
            TypeError, "`while_loop`: the condition must be a single truth value",
        ),
        (
            jitted(lambda x: tg.while_loop(lambda c: c, lambda c: c - 1.0, x[0])),
            TypeError, "`while_loop`: the condition must be a bool, got the dtype float64",
        ),
        (
            lambda: tg.while_loop(lambda c: c, lambda c: c - 1, 3),
            TypeError, "`while_loop`: the condition must be a bool, got the dtype int64",
        ),
        (
            lambda: tg.scan(lambda c, x: c, 0.0, X),
            TypeError, "`scan`: .* must return a pair \\(carry, y\\), got float",
        ),
        (
            lambda: tg.scan(lambda c, x: (c, x), 0.0, (X, X[:2])),
            ValueError, "`scan`: the arrays .* first dimension: \\[2, 3\\]",
        ),
        (
            lambda: tg.scan(lambda c, x: (c, x), 0.0, X, length=4),
            ValueError, "`scan`: `length` is 4, but the arrays of `xs` have 3 entries",
        ),
        (
            lambda: tg.scan(lambda c, x: (c, x), 0.0, None),
            ValueError, "`scan` without arrays in `xs` needs `length`",
        ),
        (
            lambda: tg.scan(lambda c, x: (c, x), 0.0, 1.0),
            TypeError, "`scan`: every array of `xs` needs a first dimension",
        ),
        (
            jitted(lambda x: tg.fori_loop(0, 3, lambda i, c: c if c > 0 else -c, x[0])),
            RuntimeError, "given to `fori_loop`, Python code asked for a value",
        ),
    ],
)  # fmt: skip
def test_errors(f, kind, message):
    with pytest.raises(kind, match=message):
        f()


def test_a_function_may_not_change_what_lies_outside():
    def f(x):
        total = x * 1.0

        def trip(i, c):
            total.add_(1.0)
            return c + total.sum()

        return tg.fori_loop(0, 3, trip, 0.0)

    with pytest.raises(RuntimeError, match="`fori_loop` changes a Tensor in place"):
        tg.jit(f)(tg.tensor(X))


def test_an_error_within_a_loop_comes_through():
    def f(x, k):
        return tg.fori_loop(0, 3, lambda i, c: c + x[k + i], 0.0)

    g = tg.jit(f)
    x = tg.tensor(X)
    assert g(x, np.int64(0)).item() == pytest.approx(np.sum(X))
    with pytest.raises(IndexError):
        g(x, np.int64(1))
