"""Gradients of functions that write into their arguments, and derivatives as C functions."""

import numpy as np
import pytest
from numba import njit
from scipy import integrate

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no other library has this")
X = np.array([1.0, 2.0, 3.0])


@njit
def running(x, out, k):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
        out[i] = s * k
        x[i] *= 2.0
    return s * out[0]


def test_what_a_function_writes_is_there_if_that_is_asked_for():
    x, out = X.copy(), np.zeros(6)[::2]
    value, gradient = tg.value_and_grad(running, inplace=True)(x, out, 3.0)
    np.testing.assert_array_equal(x, 2 * X)
    np.testing.assert_array_equal(out, [3.0, 15.0, 42.0])
    assert value == 42.0
    np.testing.assert_allclose(gradient, [2 * 14 * 3 + 2 * 3, 4 * 3, 6 * 3])


def test_without_it_nothing_is_changed():
    x, out = X.copy(), np.zeros(3)
    gradient = tg.grad(running)(x, out, 3.0)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(out, np.zeros(3))
    np.testing.assert_array_equal(gradient, tg.grad(running, inplace=True)(x, out, 3.0))


def test_in_nopython_code():
    gradient = tg.grad(running, inplace=True)

    @njit
    def call(x, out):
        return gradient.njit(x, out, 3.0)

    x, out = X.copy(), np.zeros(3)
    np.testing.assert_array_equal(call(x, out), tg.grad(running)(X, out, 3.0))
    np.testing.assert_array_equal(x, 2 * X)
    np.testing.assert_array_equal(out, [3.0, 15.0, 42.0])


def test_functions_on_the_tape_have_no_such_option():
    with pytest.raises(TypeError, match=r"`grad`: `inplace` is for functions under `numba.njit`"):
        tg.grad(np.sum, inplace=True)
    with pytest.raises(TypeError, match="`value_and_grad`: `inplace`"):
        tg.value_and_grad(np.sum, inplace=True)


def test_derivatives_as_c_functions():
    @njit
    def decays(x, y):
        return y * np.exp(-x * y)

    slope = tg.grad(decays).cfunc("scipy", 0.0, 0.0)
    found, _ = integrate.quad(slope.low_level_callable(), 0.0, 1.0, args=(2.0,))
    assert found == pytest.approx(2.0 * (np.exp(-2.0) - 1.0))

    @njit
    def density(x):
        return -0.5 * np.sum(x * x)

    curvature = tg.hessian(density).cfunc("plain", X)
    assert curvature.address
    with pytest.raises(ValueError, match="`cfunc` got the kind 'other'"):
        tg.grad(density).cfunc("other", X)
