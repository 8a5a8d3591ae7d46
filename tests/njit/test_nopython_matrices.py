"""Jacobians, Hessians and their products with vectors, called from Numba's nopython code."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no other library has this")
X, Y = np.array([1.0, 2.0, 0.5]), np.arange(4.0).reshape(2, 2)


@njit
def energy(x, a):
    s = 0.0
    for i in range(len(x)):
        s += a * x[i] ** 2 * x[i - 1]
    return s


@njit
def running(x, a):
    y = np.empty((len(x), 2))
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i])
        y[i, 0], y[i, 1] = s, a * s * s
    return y


@njit
def whole(x):
    return np.sum(x**3) * x[0]


def test_a_product_with_the_hessian():
    product = tg.hvp(whole)

    @njit
    def newton(x, v):
        return product.njit(x, v), product(x[::-1], 2 * v)

    v = np.array([1.0, -2.0, 3.0])
    found, back = newton(X, v)
    np.testing.assert_array_equal(found, product(X, v))
    np.testing.assert_array_equal(back, product(X[::-1], 2 * v))
    with pytest.raises(ValueError, match="a tangent has another shape"):
        newton(X, np.ones(2))


def test_products_of_numbers():
    product = tg.hvp(njit(lambda x: x**4))

    @njit
    def call(x):
        return product.njit(x, 0.5)

    assert call(2.0) == product(2.0, 0.5) == 24.0


@pytest.mark.parametrize("argnums", [0, 1, -1])
def test_hessians(argnums):
    matrix = tg.hessian(energy, argnums)

    @njit
    def call(x, a):
        return matrix.njit(x, a)

    np.testing.assert_array_equal(call(X, 2.0), matrix(X, 2.0))


@pytest.mark.parametrize("transform", [tg.jacobian, tg.jacfwd, tg.jacrev])
def test_jacobians(transform):
    matrix = transform(running)

    @njit
    def call(x, a):
        return matrix.njit(x, a)

    for x in (X, X.astype(np.float32)):
        found = call(x, 2.0)
        assert found.shape == (3, 2, 3)
        np.testing.assert_allclose(found, matrix(x, 2.0), rtol=1e-6 if x.dtype == "f" else 1e-14)


def test_jacobians_of_numbers():
    by_a, of_scalar = tg.jacobian(running, 1), tg.jacrev(energy)

    @njit
    def call(x, a):
        return by_a.njit(x, a), of_scalar.njit(x, a)

    by_number, row = call(X, 2.0)
    np.testing.assert_array_equal(by_number, by_a(X, 2.0))
    np.testing.assert_array_equal(row, of_scalar(X, 2.0))


@pytest.mark.parametrize("argnums", [(0, 1), (1, 0), (1,), (0, 1, 2)])
def test_several_arguments(argnums):
    @njit
    def outer(x, a, b):
        return np.outer(np.sin(x) * a, x) * b[0, 1] + b[1, 0] * a * a

    @njit
    def total(x, a, b):
        return np.sum(x**3) * a * a * b[0, 1] * b[1, 1] + b[0, 0] ** 2 * x[0]

    cases = [(tg.jacfwd, outer), (tg.hessian, total)]
    if len(argnums) == 3:  # the order and the number of the blocks are matters of all alike
        cases += [(tg.jacobian, outer), (tg.jacrev, outer), (tg.jacobian, total)]
    for transform, f in cases:
        matrix = transform(f, argnums)

        @njit
        def call(x, a, b, matrix=matrix):
            return matrix.njit(x, a, b)

        found, expected = call(X, 2.0, Y), matrix(X, 2.0, Y)
        assert len(found) == len(expected) == len(argnums)
        for x, y in zip(found, expected, strict=True):
            parts = zip(x, y, strict=True) if f is total and transform is tg.hessian else [(x, y)]
            for block, other in parts:
                assert np.shape(block) == np.shape(other)
                np.testing.assert_allclose(block, other, rtol=1e-13)


def test_infinities_are_met_again_with_strong_zeros():
    matrix = tg.hessian(njit(lambda x: np.sum(np.where(x > 0, x, 1.0) * np.sqrt(np.abs(x)))))

    @njit
    def call(x):
        return matrix.njit(x)

    x = np.array([0.25, 1.0])
    np.testing.assert_array_equal(call(x), matrix(x))


def test_arrays_that_are_passed_on():
    @njit
    def with_residuals(x):
        r = x * x - 1.0
        return np.sum(r * r), (r, len(x))

    gradient = tg.value_and_grad(with_residuals, has_aux=True)

    @njit
    def call(x):
        return gradient.njit(x)

    (value, (r, n)), g = call(X)
    (expected, (residuals, _)), slope = gradient(X)
    assert (value, n) == (expected, 3)
    np.testing.assert_array_equal(r, residuals)
    np.testing.assert_array_equal(g, slope)


def test_what_is_left_to_python_is_refused():
    with_aux = tg.jacobian(njit(lambda x: (x, x)), has_aux=True)

    @njit
    def call(x):
        return with_aux.njit(x)

    with pytest.raises(TypingError, match="takes no `has_aux`"):
        call(X)
    pairs = tg.jacobian(njit(lambda x: (x, x)))

    @njit
    def of_pairs(x):
        return pairs.njit(x)

    with pytest.raises(TypingError, match="one array, or number, of floats"):
        of_pairs(X)
