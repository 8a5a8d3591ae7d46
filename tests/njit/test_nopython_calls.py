"""Derivatives called from Numba's nopython code."""

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import tapegrad as tg
from bench.njit.programs import scaled

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def g(p, x):
    if x[0] < 0:
        raise ValueError("negative")
    a, b = p
    return a * x[0] / b


class Pair(NamedTuple):
    a: float
    b: float


both, gradient = tg.value_and_grad(scaled, (0, 1)), tg.grad(scaled)
of_pair = tg.grad(g, (1, 0))


def test_by_attribute_and_by_name():
    @njit
    def call(x):
        return both.njit(x, 2.0), gradient(x[::2], 3)

    x = np.arange(4.0)
    (value, (dx, da)), other = call(x)
    expected = both(x, 2.0)
    assert value == expected[0]
    np.testing.assert_array_equal(dx, expected[1][0])
    assert da == expected[1][1]
    np.testing.assert_allclose(other, 3 * np.cos(x[::2]))
    np.testing.assert_array_equal(x, np.arange(4.0))


def test_tuples_and_exceptions():
    @njit
    def call(p, x):
        return of_pair.njit(p, x)

    dx, dp = call((2.0, 4.0), np.array([3.0, 1.0]))
    np.testing.assert_array_equal(dx, [0.5, 0.0])
    assert dp == (0.75, -0.375)
    assert call(Pair(2.0, 4.0), np.array([3.0, 1.0]))[1] == Pair(0.75, -0.375)
    with pytest.raises(ValueError, match="negative"):
        call((2.0, 4.0), np.array([-3.0]))
    with pytest.raises(ZeroDivisionError):
        call((2.0, 0.0), np.array([3.0]))


def test_arrays_that_overlap():
    @njit
    def writes(x, y):
        x[0] += y[0]
        return x[0] * y[0]

    derivative = tg.grad(writes)

    @njit
    def call(x, y):
        return derivative(x, y)

    x = np.arange(1.0, 5.0)
    with pytest.raises(ValueError, match="arrays that overlap"):
        call(x[:3], x[1:])
    np.testing.assert_array_equal(call(x[:2], x[2:]), [3, 0])


def test_in_parallel_loops():
    @njit(parallel=True)
    def call(xs):
        out = np.empty_like(xs)
        for k in numba.prange(len(xs)):
            out[k] = gradient.njit(xs[k], 2.0)
        return out

    xs = np.random.default_rng(0).normal(size=(50, 6))
    np.testing.assert_allclose(call(xs), 2 * np.cos(xs))


def test_auxiliary_numbers():
    @njit
    def pair(x):
        return x * x, (x, 3)

    derivative = tg.value_and_grad(pair, has_aux=True)

    @njit
    def call(x):
        return derivative.njit(x)

    assert call(2.0) == ((4.0, (2.0, 3)), 4.0)


def test_defaults_may_be_left_out():
    @njit
    def powers(x, weights=None, how="sum", factors=(2.0, 3.0), n=3):
        total = 0.0
        for k in range(n):
            terms = x**k if weights is None else weights * x**k
            total += factors[k % 2] * np.sum(terms)
        return total * total if how == "square" else total

    slope, matrix, product = tg.grad(powers), tg.hessian(powers), tg.hvp(powers)

    @njit
    def call(x):
        return slope.njit(x), slope(x, 2.0 * x, "square"), matrix.njit(x), product.njit(x, 3.0 * x)

    @njit
    def by_name(x):
        return slope.njit(x, n=4), slope(x, how="square", weights=2.0 * x), matrix.njit(x, n=4)

    x = np.array([0.5, -1.0])
    fifth, sixth, seventh = by_name(x)
    np.testing.assert_array_equal(fifth, slope(x, n=4))
    np.testing.assert_array_equal(sixth, slope(x, 2.0 * x, "square"))
    np.testing.assert_array_equal(seventh, matrix(x, n=4))
    assert np.array_equal(slope.njit(x, n=4), fifth)
    first, second, third, fourth = call(x)
    np.testing.assert_array_equal(first, slope(x))
    np.testing.assert_array_equal(second, slope(x, 2.0 * x, "square"))
    np.testing.assert_array_equal(third, matrix(x))
    np.testing.assert_array_equal(fourth, product(x, 3.0 * x))


SPREAD, TURNED = np.arange(6.0)[::2], np.asfortranarray(np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    "f",
    [
        njit(lambda x, weights=SPREAD: x * x * (weights[1] + 10.0 * weights[2])),
        njit(lambda x, weights=TURNED: x * x * (weights[0, 1] + 10.0 * weights[1, 2])),
        njit(lambda x, weights=(2.0, SPREAD): x * x * weights[0] * weights[1][2]),
    ],
    ids=["step", "order", "tuple"],
)
def test_defaults_that_are_in_another_order(f):
    both, product = tg.value_and_grad(f), tg.hvp(f)
    assert njit(lambda x: both.njit(x))(3.0) == both(3.0) == (f(3.0), 2.0 * f(3.0) / 3.0)
    assert njit(lambda x, v: product.njit(x, v))(3.0, 0.5) == product(3.0, 0.5) == f(3.0) / 9.0


def test_refusals_are_typing_errors():
    @njit
    def lists(x):
        values = [x]
        values.insert(0, x)
        return values[0]

    derivative = tg.grad(lists)

    @njit
    def call(x):
        return derivative.njit(x)

    with pytest.raises(TypingError, match="`lists`, line"):
        call(2.0)

    product = tg.hvp(scaled)

    @njit
    def by_name(x):
        return product.njit(x, x, a=2.0)

    with pytest.raises(TypingError, match="called with a by name"):
        by_name(np.ones(3))

    @njit
    def by_other_name(x):
        return gradient.njit(x, 2.0, b=2.0)

    with pytest.raises(TypingError, match="unexpected keyword argument 'b'"):
        by_other_name(np.ones(3))
