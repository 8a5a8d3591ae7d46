"""Compressed Jacobians: how many directions are left, and that the results are those of all."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.jacobian_compression import with_compressed_jacobians
from tests.compiler.graphs import names, passed, traced
from tests.compiler.passes.randoms import close

pytestmark = pytest.mark.tapegrad_only("about this project")

N = 24
X = np.linspace(0.1, 2.0, N)
MATRIX = np.random.default_rng(0).standard_normal((4, 4))
FULL = np.random.default_rng(1).standard_normal((N, N))
BANDED = 2 * np.eye(N) - np.eye(N, k=1) - np.eye(N, k=-1)
TRANSFORMS = {"jacfwd": tg.jacfwd, "jacrev": tg.jacrev}


def stencil(u):
    return u[1:-1] * np.sin(u[2:] - 2 * u[1:-1] + u[:-2])


def blocks(x):
    y = x.reshape(-1, 4)
    return np.tanh(y @ MATRIX) * y


def gathered(x):
    return np.exp(x)[np.arange(N)[::-1]] * np.concatenate([x[3:], x[:3]])


def pairs(x):
    both = x.reshape(-1, 2)
    return np.sin(np.tanh(both).sum(1))[:, None] * both


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


FUNCTIONS = {
    "elementwise": (lambda x: np.tanh(x) * np.exp(x), 1),
    "stencil": (stencil, 3),
    "block diagonal": (blocks, 4),
    "gathered": (gathered, 2),
    "by a condition": (lambda x: np.where(x > 1, np.sin(x), x**3), 1),
    "sums of neighbours": (pairs, 2),
    "banded matrix": (lambda x: np.sin(BANDED @ np.tanh(x)), 3),
}


def rows(made):
    """Of how many directions the products with adjoints or tangents are."""
    return {node.shape[0] for node in made.nodes if node.name == "strong" and len(node.shape) > 1}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_directions_are_left(name, transform):
    f, left = FUNCTIONS[name]
    before = traced(TRANSFORMS[transform](f), X)
    after = passed(with_compressed_jacobians, before, X, alike=close)
    assert rows(after) == {left}
    passed(with_compressed_jacobians, before, -X, alike=close)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_compiled_jacobians_are_those_of_each_direction(name, transform, kind):
    f, _ = FUNCTIONS[name]
    x, derivative = X.astype(kind), TRANSFORMS[transform](f)
    found, wanted = tg.jit(derivative)(x), derivative(x)
    tolerance = 1e-5 if kind == "float32" else 1e-12
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def test_a_hessian():
    before = traced(tg.hessian(rosenbrock), X)
    assert rows(passed(with_compressed_jacobians, before, X, alike=close)) == {3}
    np.testing.assert_allclose(tg.jit(tg.hessian(rosenbrock))(X), tg.hessian(rosenbrock)(X))


def test_two_arguments_of_a_function():
    both = tg.jacfwd(lambda a, b: np.sin(a) * b, argnums=(0, 1))
    after = passed(with_compressed_jacobians, traced(both, X, X + 1), X, X + 1, alike=close)
    assert rows(after) == {2}
    for found, wanted in zip(tg.jit(both)(X, X + 1), both(X, X + 1), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_rows_are_scattered_where_many_directions_meet():
    f = lambda x: FULL @ (np.sin(x) * np.exp(x) * np.cos(x) * x)
    before = traced(tg.jacfwd(f), X)
    after = passed(with_compressed_jacobians, before, X, alike=close)
    assert rows(after) == {1}
    (product,) = [node for node in after.nodes if node.name == "product"]
    assert after.nodes[product.args[0]].shape == (N, N) or product.shape[0] == N


def test_few_elements_of_what_is_dense_follow_all_directions():
    def f(x):
        rows, columns = np.sin(x)[:, None], np.cos(x)
        for _ in range(8):
            rows, columns = rows * FULL * x[:, None], columns * FULL.T * x
        return np.exp((rows + columns)[:, 3])

    for transform in TRANSFORMS.values():
        before = traced(transform(f), X)
        assert passed(with_compressed_jacobians, before, X, alike=close) is not before
        np.testing.assert_allclose(tg.jit(transform(f))(X), transform(f)(X), rtol=1e-11)


def test_what_follows_sees_all_rows():
    """Whatever is done with the matrix outside of the transform."""
    J = TRANSFORMS["jacrev"](stencil)
    for f in (
        lambda x: np.triu(J(x), -2), lambda x: np.cumsum(J(x), 0), lambda x: J(x)[::-1],
        lambda x: J(x) @ x, lambda x: J(x)[3:9, 2:5], lambda x: J(x) * x, lambda x: J(x).T @ J(x),
        lambda x: (J(x), tg.jacfwd(stencil)(x) + 1),
    ):  # fmt: skip
        for found, wanted in zip(np.atleast_3d(tg.jit(f)(X)), np.atleast_3d(f(X)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_a_zero_of_the_pattern_stays_zero_beside_infinity():
    found = tg.jit(tg.jacfwd(lambda x: np.sqrt(x) * np.log(x + 1)))(X * (X > 1))
    assert not found[~np.eye(N, dtype=bool)].any()
    user = tg.jit(lambda x: np.eye(N) * x)(np.where(X > 1, np.inf, 1.0))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(user, np.eye(N) * np.where(X > 1, np.inf, 1.0))


def test_an_adjoint_that_depends_on_no_direction():
    f = tg.grad(lambda x: np.sum(np.round(x / 6.0) + np.sin(x)))
    np.testing.assert_allclose(tg.jit(f)(MATRIX.repeat(2, 0)), np.cos(MATRIX.repeat(2, 0)))


def test_dense_programs_stay_as_they_are():
    for f in (lambda x: np.tanh(FULL @ np.sin(FULL @ x)), lambda x: np.outer(x, x) @ x):
        before = traced(tg.jacfwd(f), X)
        assert rows(with_compressed_jacobians(before)) in ({N}, set())
    few = traced(tg.jacfwd(np.sin), X[:5])
    assert with_compressed_jacobians(few) is few


def test_rows_that_stay_together_are_embedded():
    """No element is scattered where the rows of some directions follow each other."""
    few = lambda x: FULL[:, :3] @ np.sin(x[:3] * np.exp(x[:3])) + np.cos(FULL @ x)
    after = passed(with_compressed_jacobians, traced(tg.jacfwd(few), X), X, alike=close)
    assert 3 in rows(after)
    assert "embed" in names(after)
    assert "unindex" not in names(after)
