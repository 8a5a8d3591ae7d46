"""`jvp`, `vjp`, `linearize`, Jacobians, Hessians and their products of Numba's functions."""

import copy
import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from bench.njit.programs import chol
from tapegrad.njit.evaluation import Evaluator

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def outputs(x, a, n):
    """Two results of two arguments and a number of trips."""
    y = np.empty((len(x), 2))
    s = 0.0
    for i in range(len(x)):
        y[i, 0] = math.sin(x[i]) * a
        y[i, 1] = x[i] * x[(i + 1) % len(x)]
        for _ in range(n):
            s += y[i, 1] * a
    return y, s


@njit
def cubes(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 3 * x[i - 1]
    return s


@njit
def scaled(x, a):
    return x * np.sum(a)


@njit
def weighted(x, a):
    return np.sum(x) * a[0] + a[0] * a[1]


def by_hand(x, a, n):
    return np.stack([np.sin(x) * a, x * np.roll(x, -1)], 1), n * a * np.sum(x * np.roll(x, -1))


X, V = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -0.5])


def slopes(x, a, n, v, w):
    """The derivative of `outputs` along tangents, by hand."""
    products = v * np.roll(x, -1) + x * np.roll(v, -1)
    first = np.stack([np.cos(x) * v * a + np.sin(x) * w, products], 1)
    return first, n * (w * np.sum(x * np.roll(x, -1)) + a * np.sum(products))


def test_jvp():
    value, slope = tg.jvp(outputs, (X, 2.0, 3), (V, 0.5, None))
    for found, expected in zip(value, by_hand(X, 2.0, 3), strict=True):
        np.testing.assert_allclose(found, expected)
    for found, expected in zip(slope, slopes(X, 2.0, 3, V, 0.5), strict=True):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match=r"a tangent of shape \(2,\)"):
        tg.jvp(cubes, (X,), (V[:2],))
    with pytest.raises(TypeError, match="`jvp`: the tangent of argument 1 is None: pass zeros"):
        tg.jvp(outputs, (X, 2.0, 3), (V, None, None))
    with pytest.raises(TypeError, match="`tangents` is a tuple with one entry for each"):
        tg.jvp(outputs, (X, 2.0, 3), (V,))


def test_linearize():
    x = X.copy()
    value, slope = tg.linearize(outputs, x, 2.0, 3)
    x[0] = 100.0  # it was linearised before
    np.testing.assert_allclose(value[1], by_hand(X, 2.0, 3)[1])
    for v, w in ((V, 0.5), (X, 0.0)):
        for found, expected in zip(slope(v, w, None), slopes(X, 2.0, 3, v, w), strict=True):
            np.testing.assert_allclose(found, expected)


def test_vjp():
    value, pullback = tg.vjp(outputs, X, 2.0, 3)
    np.testing.assert_allclose(value[0], by_hand(X, 2.0, 3)[0])
    weights = np.arange(6.0).reshape(3, 2).T.copy().T, 0.7
    gx, ga, none = pullback(weights)
    assert none is None
    first, second = slopes(X, 2.0, 3, V, 0.5)
    assert np.sum(gx * V) + ga * 0.5 == pytest.approx(np.sum(weights[0] * first) + 0.7 * second)
    with pytest.raises(ValueError, match=r"weights of shape \(3,\)"):
        pullback((np.zeros(3), 1.0))


@pytest.mark.parametrize("transform", [tg.jacfwd, tg.jacrev, tg.jacobian])
def test_jacobians(transform):
    (y_x, y_a), (s_x, s_a) = transform(outputs, (0, 1))(X, 2.0, 3)
    assert (y_x.shape, y_a.shape, s_x.shape) == ((3, 2, 3), (3, 2), (3,))
    assert type(s_a) is float
    first, second = slopes(X, 2.0, 3, V, 0.5)
    np.testing.assert_allclose(y_x @ V + y_a * 0.5, first)
    assert s_x @ V + s_a * 0.5 == pytest.approx(second)
    single = transform(outputs)(X, 2.0, 3)
    np.testing.assert_array_equal(single[0], y_x)


def test_auxiliary_results():
    @njit
    def pair(x):
        return x * x, (np.sum(x), 3)

    matrix, aux = tg.jacobian(pair, has_aux=True)(X)
    np.testing.assert_allclose(matrix, np.diag(2 * X))
    assert aux == (np.sum(X), 3)
    _, slope, aux = tg.jvp(pair, (X,), (V,), has_aux=True)
    np.testing.assert_allclose(slope, 2 * X * V)
    assert aux[1] == 3
    _, pullback, aux = tg.vjp(pair, X, has_aux=True)
    np.testing.assert_allclose(pullback(V)[0], 2 * X * V)
    assert aux[1] == 3


def test_hessian_and_its_products():
    matrix = tg.hessian(cubes)(X)
    expected = np.diag(6 * X * np.roll(X, 1))
    for i in range(3):
        expected[i, i - 1] += 3 * X[i] ** 2
        expected[i - 1, i] += 3 * X[i] ** 2
    np.testing.assert_allclose(matrix, expected, atol=1e-15)
    np.testing.assert_allclose(tg.hvp(cubes)(X, V), expected @ V)
    assert tg.hessian(njit(lambda x: x**3))(2.0) == 12.0
    assert tg.hvp(njit(lambda x: x**3))(2.0, 0.5) == 6.0


def test_hessian_of_several_arguments_is_symmetric():
    n = np.random.default_rng(0).normal
    a = n(size=(3, 3))
    a = a @ a.T + 3 * np.eye(3)
    y = n(size=3)
    (aa, ay), (ya, yy) = tg.hessian(chol, (0, 1))(a, y)
    assert (aa.shape, ay.shape, ya.shape, yy.shape) == ((3,) * 4, (3,) * 3, (3,) * 3, (3,) * 2)
    np.testing.assert_allclose(aa, aa.transpose(2, 3, 0, 1), atol=1e-13)
    np.testing.assert_allclose(ay, np.moveaxis(ya, 0, 2), atol=1e-13)
    gradient = tg.grad(chol, (0, 1))
    h, (da, dy) = 1e-6, (n(size=(3, 3)), n(size=3))
    ahead, behind = gradient(a + h * da, y + h * dy), gradient(a - h * da, y - h * dy)
    np.testing.assert_allclose(
        np.tensordot(aa, da, 2) + ay @ dy, (ahead[0] - behind[0]) / (2 * h), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(
        np.tensordot(ya, da, 2) + yy @ dy, (ahead[1] - behind[1]) / (2 * h), rtol=1e-5, atol=1e-7
    )


def test_strict():
    @njit
    def f(x, y):
        return x * np.floor(y)

    for transform in (tg.jacobian, tg.hessian):
        with pytest.raises(RuntimeError, match="does not depend on argument 1"):
            transform(f, (0, 1), strict=True)(2.0, 3.5)
    with pytest.raises(NotImplementedError, match="strict=True"):
        tg.jvp(f, (1.0, 1.0), (1.0, 1.0), strict=True)


def test_copies():
    for made in (tg.jacobian(cubes), tg.hessian(cubes), tg.hvp(cubes)):
        assert copy.copy(made).__name__ == "cubes"


def test_an_adjoint_of_zero_may_have_a_tangent():
    """Of a square at zero: the reverse of the loop in front is not left out."""

    @njit
    def f(x, w):
        s = 0.0
        for i in range(len(x)):
            s += w[i] * x[i]
        return s * s

    x, w = np.zeros(40), np.arange(40.0)
    assert np.array_equal(tg.grad(f)(x, w), x)
    assert np.array_equal(tg.hessian(f)(x, w), 2.0 * np.outer(w, w))


@njit
def through_memory(x, weights, scale, out):
    """What has no tangent at first is overwritten with what has, and the reverse."""
    rows, held = np.ones((len(x), 2)), weights.copy()
    level = scale
    for t in range(len(x)):
        rows[t, 0] = weights[t] * scale
        rows[t, 1] = level
        if t % 2:
            level = level * x[t] + held[t]
        else:
            held[t + 1] = level * math.sin(x[t])
        out[t] = rows[t, 0] * rows[t, 1] * x[t]
        x[t] = scale
    return (out * out).sum() + held.sum() * level


MIXED = np.array([0.3, -0.7, 1.1, 0.4]), np.array([0.2, 1.3, -0.4, 0.9]), 1.7, np.zeros(4)


@pytest.mark.parametrize("moved", [(0,), (1,), (2,), (3,), (0, 2), (1, 2), (0, 1, 2, 3)])
def test_tangents_along_some_of_the_arguments(moved):
    rng = np.random.default_rng(5)
    along = [rng.normal(size=np.shape(x))[()] for x in MIXED]
    given = [
        d if k in moved else np.zeros_like(x)[()] for k, (x, d) in enumerate(zip(MIXED, along))
    ]
    every = tuple(range(4))
    evaluator = Evaluator(through_memory, "grad")
    pruned = evaluator.run(
        MIXED, every, directions=[d if k in moved else None for k, d in enumerate(along)]
    )
    whole = evaluator.run(MIXED, every, directions=given, moved=every)
    assert pruned.tangent == pytest.approx(whole.tangent, rel=1e-12, abs=1e-13)
    pairs = zip(pruned.gradient_tangents, whole.gradient_tangents, strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    gradients = lambda step: (
        evaluator.run([x + step * d for x, d in zip(MIXED, given)], every).gradients
    )
    for found, up, down in zip(pruned.gradient_tangents, gradients(1e-6), gradients(-1e-6)):
        np.testing.assert_allclose(found, (up - down) / 2e-6, rtol=1e-6, atol=1e-7)


def test_arrays_without_elements():
    none, a = np.zeros((0, 2)), np.array([2.0, 3.0])
    for matrix in (tg.jacrev, tg.jacfwd):
        dx, da = matrix(scaled, (0, 1))(none, a)
        assert dx.shape == (0, 2, 0, 2)
        assert da.shape == (0, 2, 2)
        assert matrix(scaled, 1)(np.ones((1, 2)), none[:, 0]).shape == (1, 2, 0)
    blocks = tg.hessian(weighted, (0, 1))(none, a)
    assert [[block.shape for block in row] for row in blocks] == [
        [(0, 2, 0, 2), (0, 2, 2)], [(2, 0, 2), (2, 2)],
    ]  # fmt: skip
    np.testing.assert_array_equal(blocks[1][1], [[0.0, 1.0], [1.0, 0.0]])


@njit
def soft_minimum(x, bound):
    total = math.exp(-bound / x[0])
    for i in range(1, len(x)):
        total += math.exp(-x[i] / x[0])
    return -x[0] * math.log(total)


def test_a_partial_of_zero_ends_an_infinite_tangent():
    """A bound of infinity does not count, as in reverse mode."""
    x, v = np.array([0.5, 0.3, 0.9]), np.array([1.0, -2.0, 0.5])
    far = 1e3  # exp(-2000) is zero, too
    for transform in (tg.jacfwd, tg.jacrev, tg.hessian):
        expected = transform(soft_minimum)(x, far)
        np.testing.assert_allclose(transform(soft_minimum)(x, math.inf), expected, rtol=1e-14)
    slope = tg.jvp(soft_minimum, (x, math.inf), (v, 0.0))[1]
    assert slope == pytest.approx(tg.jvp(soft_minimum, (x, far), (v, 0.0))[1], rel=1e-14)


@njit
def of_eigenpairs(a):
    w, v = np.linalg.eigh(a + a.T)
    return np.sum(np.sin(w) * v[0] ** 2) + w[0] * w[2] * v[1, 1] ** 2


@njit
def of_eigenvalues(a):
    return np.sum(np.linalg.eigvalsh(a) ** 3)


@njit
def of_orthogonal_factors(a):
    q, r = np.linalg.qr(a)
    return np.sum(q[0] ** 3) + np.sum(r * r[0])


@njit
def of_singular_vectors(a):
    u, s, v = np.linalg.svd(a[:, :2].copy(), full_matrices=False)
    return np.sum(np.sin(s) * v[0] ** 2) + np.sum(u[0] ** 3 * v[1] ** 3) + s[0] * s[1] ** 2


@njit
def of_pseudoinverse(a):
    x = np.linalg.pinv(a[:2])
    return np.sum(x**3) + x[0, 1] * x[1, 0]


@njit
def of_general_eigenpairs(a):
    w, v = np.linalg.eig(a)
    return np.sum(w**3 * v[1] ** 2 * v[2] ** 4)


SECOND = [
    of_eigenpairs, of_orthogonal_factors, of_singular_vectors, of_pseudoinverse,
]  # fmt: skip


@pytest.mark.parametrize("f", SECOND)
def test_second_derivatives_of_factors(f):
    a = np.array([[2.0, 0.1, -0.6], [0.3, -1.0, 0.2], [0.7, -0.4, 0.5]])
    np.testing.assert_allclose(tg.hessian(f)(a), tg.hessian(f.py_func)(a), rtol=1e-9, atol=1e-12)


def test_second_derivatives_of_general_eigenpairs():
    """Of real matrices; Python's are complex.  The function is even in each of the vectors."""
    a = np.array([[2.0, 0.1, -0.6], [0.3, -1.0, 0.2], [0.7, -0.4, 0.5]])
    found, along = tg.hvp(of_general_eigenpairs)(a, a[::-1]), 1e-5 * a[::-1]
    slope = tg.grad(of_general_eigenpairs)
    difference = (slope(a + along) - slope(a - along)) / 2e-5
    np.testing.assert_allclose(found, difference, rtol=1e-5, atol=1e-6)


def test_singular_values_where_their_vectors_are_not_determined():
    """The nuclear norm and the pseudoinverse have gradients at a multiple of the identity."""
    a = 2.0 * np.eye(3)
    np.testing.assert_allclose(tg.grad(njit(nuclear_norm))(a), np.eye(3), atol=1e-15)
    slope = tg.grad(njit(lambda a: np.sum(np.linalg.pinv(a) * a)))(a)
    np.testing.assert_allclose(slope, np.zeros((3, 3)), atol=1e-15)
    completed = njit(lambda a: np.linalg.svd(a)[0][0, 2])
    assert not np.isfinite(tg.grad(completed)(np.eye(3)[:, :1].copy() + 1.0)).any()


def nuclear_norm(a):
    return np.linalg.svd(a)[1].sum()


def test_equal_eigenvalues():
    """Symmetric functions of the eigenvalues have a gradient there; eigenvectors have none."""
    a = 2.0 * np.eye(3)
    np.testing.assert_allclose(tg.grad(of_eigenvalues)(a), 12.0 * np.eye(3))
    np.testing.assert_allclose(tg.hvp(of_eigenvalues)(a, np.eye(3)), 12.0 * np.eye(3))
    slope = tg.grad(njit(lambda a: np.linalg.eigh(a)[1][0, 1]))(a)
    assert not np.isfinite(slope[1, 0])
