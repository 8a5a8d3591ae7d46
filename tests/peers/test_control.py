"""Branches and loops against JAX's: values, gradients and second derivatives, run and compiled."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

import tapegrad as tg  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs all libraries itself"),
]

X = np.array([0.5, 1.5, -0.7])
ROWS = np.cos(np.arange(12.0)).reshape(4, 3)


def branch(flow, np, x):
    return flow.cond(np.sum(x) > 1, lambda a, b: np.sum(np.sin(a) * b), lambda a, b: b**2, x, x[1])


def branch_on_a_number(flow, np, x):
    return flow.cond(x[0] - 0.5, lambda: np.sum(x), lambda: np.sum(x**2))


def counted(flow, np, x):
    return flow.fori_loop(2, 7, lambda i, y: y * np.sum(x * x) * 0.3 + i * x[0], x[1], unroll=1)


def no_trip(flow, np, x):
    return flow.fori_loop(3, 3, lambda i, y: y * x[2], np.sum(x**2))


def nested(flow, np, x):
    def outer(i, c):
        return flow.fori_loop(0, 3, lambda j, d: np.sin(d) * x[0] + c * 0.1 + i * j * x[1], c)

    return np.sum(flow.fori_loop(0, 4, outer, x))


def products(flow, np, x):
    w = np.outer(x, x) * 0.4 + np.eye(3)
    return np.sum(flow.fori_loop(0, 5, lambda i, h: np.tanh(w @ h + x), np.ones(3)) ** 2)


def integers(flow, np, x):
    def trip(i, c):
        k, found, total = c
        return (k + 2) % 3, np.where(x[k] > 1.0, True, found), total * 0.9 + x[k] * i

    k, found, total = flow.fori_loop(0, 5, trip, (1, False, x[0]))
    return np.where(found, total, -total) + k * x[1]


def pytrees(flow, np, x):
    def step(c, row):
        c = {"a": c["a"] * row + x, "n": (c["n"][0] + 1, None)}
        return c, {"y": np.sum(c["a"] * row), "z": [row * x[0], None]}

    last, found = flow.scan(step, {"a": x, "n": (0, None)}, ROWS)
    return np.sum(last["a"]) * last["n"][0] + np.sum(found["y"] ** 2) + np.sum(found["z"][0])


def backwards(flow, np, x):
    last, found = flow.scan(lambda c, r: (c * r[0] + x[1], c * x), x[0], ROWS, reverse=True)
    return last + np.sum(found * ROWS)


def without_rows(flow, np, x):
    last, found = flow.scan(lambda c, _: (np.cos(c) * x, c[0]), x, length=4)
    return np.sum(last) + np.sum(found**2)


def of_no_rows(flow, np, x):
    last, found = flow.scan(lambda c, r: (c * r, np.sum(c)), x, ROWS[:0])
    return np.sum(last**2) + np.sum(found)


def branch_in_scan(flow, np, x):
    def step(c, r):
        c = flow.cond(r[0] * c > 0, lambda: c * x[0] + r[1], lambda: np.exp(-c) * x[1])
        return c, flow.fori_loop(0, 2, lambda i, y: y * c, x[2])

    last, found = flow.scan(step, x[0], ROWS)
    return last + np.sum(found)


def until(flow, np, x):
    return flow.while_loop(lambda c: np.sum(c**2) < 50, lambda c: c * (1.1 + x[0] ** 2) + x, x)[1]


def until_at_once(flow, np, x):
    return flow.while_loop(lambda c: c[1] < 0, lambda c: (c[0] * 2, c[1] + 1), (x[0], x[1]))[0]


def counted_by_a_value(flow, np, x):
    n = np.where(x[1] > 1, 4, 2)
    return flow.fori_loop(0, n, lambda i, c: c * x[0] + i, x[2])


def until_in_scan(flow, np, x):
    def step(c, r):
        n, c = flow.while_loop(
            lambda s: s[1] ** 2 < 3 + r[0], lambda s: (s[0] + 1, s[1] * 1.7 + x[1]), (0, c)
        )
        return c * 0.1 + r[1] * x[0], n * c

    last, found = flow.scan(step, x[2], ROWS)
    return last + np.sum(found)


CASES = [
    branch, branch_on_a_number, counted, no_trip, nested, products, integers, pytrees, backwards,
    without_rows, of_no_rows, branch_in_scan,
]  # fmt: skip
# JAX does not differentiate these in reverse: its forward mode tells their derivatives.
FORWARD = [until, until_at_once, counted_by_a_value, until_in_scan]


def product(lib, np, f):
    """A product with the Hessian."""
    weights = np.array([1.0, 2.0, 3.0])
    return lib.grad(lambda x: np.sum(lib.grad(f)(x) * weights))


def jax_product(f):
    return lambda x: jax.jacfwd(jax.jacfwd(f))(x) @ jnp.array([1.0, 2.0, 3.0])


def orders(case):
    """The value, the gradient and a product with the Hessian, by JAX."""
    f = lambda x: case(jax.lax, jnp, x)
    found = [f, jax.grad(f), product(jax, jnp, f)]
    if case in FORWARD:
        found = [f, jax.jacfwd(f), jax_product(f)]
    return jax.jit(lambda x: [g(x) for g in found])


@pytest.mark.parametrize("case", [*CASES, *FORWARD], ids=lambda case: case.__name__)
def test_values_and_derivatives(case):
    ours = lambda x: case(tg, np, x)
    expected = orders(case)
    for x in (X, -X):
        functions = [ours, tg.grad(ours), product(tg, np, ours)]
        for f, want in zip(functions, expected(x), strict=True):
            for found in (f(x), tg.jit(f)(x)):
                assert np.shape(found) == want.shape
                np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", [*CASES, *FORWARD], ids=lambda case: case.__name__)
def test_maps_and_forward_derivatives(case):
    ours, theirs = lambda x: case(tg, np, x), lambda x: case(jax.lax, jnp, x)
    xs = np.stack([X, -X, X[::-1]])
    want = jax.jit(jax.vmap(theirs))(xs)
    for found in (tg.vmap(ours)(xs), tg.jit(tg.vmap(ours))(xs), tg.vmap(tg.jit(ours))(xs)):
        np.testing.assert_allclose(found, want, rtol=1e-10)
    want = jax.jit(lambda x, v: jax.jvp(theirs, (x,), (v,)))(X, ROWS[1])
    along = lambda f: lambda x, v: tg.jvp(f, (x,), (v,))
    for f in (along(ours), tg.jit(along(ours)), along(tg.jit(ours))):
        np.testing.assert_allclose(f(X, ROWS[1]), want, rtol=1e-10)


@pytest.mark.parametrize("case", [*CASES, *FORWARD], ids=lambda case: case.__name__)
def test_compiled_matrices_and_maps_of_derivatives(case):
    ours, theirs = lambda x: case(tg, np, x), lambda x: case(jax.lax, jnp, x)
    xs = np.stack([X, -X, X[::-1]])
    matrix = jax.jacfwd(jax.jacfwd(theirs))
    wanted = jax.jit(lambda x, xs: [
        matrix(x), jax.vmap(jax.jacfwd(theirs))(xs), jax.vmap(matrix)(xs)
    ])(X, xs)  # fmt: skip
    for f in (tg.hessian(ours), tg.jacfwd(tg.grad(ours)), tg.jacrev(tg.jacfwd(ours))):
        np.testing.assert_allclose(tg.jit(f)(X), wanted[0], rtol=1e-9, atol=1e-11)
    for make, want in ((tg.grad, wanted[1]), (tg.jacfwd, wanted[1]), (tg.hessian, wanted[2])):
        np.testing.assert_allclose(tg.jit(tg.vmap(make(ours)))(xs), want, rtol=1e-9, atol=1e-11)


def with_rules(lib, np):
    """Functions whose rules give other derivatives than their values have."""

    @lib.custom_vjp
    def doubled(x):
        return np.sin(x)

    doubled.defvjp(lambda x: (np.sin(x), (x, np.cos(x))), lambda kept, g: (2.0 * g * kept[1],))

    @lib.custom_jvp
    def steep(x):
        return np.sin(x)

    @steep.defjvp
    def _(primals, tangents):
        return steep(*primals), 3.0 * tangents[0] * np.cos(primals[0])

    return doubled, steep


def ruled(flow, np, own, x):
    def step(c, r):
        c = flow.fori_loop(0, 2, lambda i, d: own(d * r) + x[0], c)
        return flow.cond(r[0] > 0, lambda: own(c) * x, lambda: c * own(x)), np.sum(own(c))

    last, found = flow.scan(step, x, ROWS)
    return np.sum(last) + np.sum(found**2)


@pytest.mark.parametrize("k", [0, 1], ids=["custom_vjp", "custom_jvp"])
def test_rules_of_ones_own_in_loops(k):
    ours = lambda x: ruled(tg, np, with_rules(tg, np)[k], x)
    theirs = lambda x: ruled(jax.lax, jnp, with_rules(jax, jnp)[k], x)
    xs = np.stack([X, -X, X[::-1]])
    # JAX's second sweep in reverse goes by the derivative of `fwd`, or of the value, in place of
    # the rule; its forward mode and ours go by the rule.
    transforms = [lambda lib, f: lib.grad(f)]
    if k:
        transforms += [lambda lib, f: lib.jacfwd(f), lambda lib, f: lib.jacfwd(lib.jacfwd(f))]
    for transform in transforms:
        want = jax.jit(jax.vmap(transform(jax, theirs)))(xs)
        f = tg.jit(tg.vmap(transform(tg, ours)))
        np.testing.assert_allclose(f(xs), want, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(tg.jit(transform(tg, ours))(X), want[0], rtol=1e-9, atol=1e-11)
    if k:
        for f in (tg.hessian(ours), tg.jacfwd(tg.grad(ours))):
            np.testing.assert_allclose(tg.jit(f)(X), want[0], rtol=1e-9, atol=1e-11)
