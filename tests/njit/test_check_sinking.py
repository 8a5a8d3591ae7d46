"""Divisors that are checked behind the loop in which they divide."""

import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tests.njit.checking import BOUNDS_CHECKED, check, floats

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def shares(x, y):
    total = 0.0
    for i in range(len(x)):
        total += math.exp(x[i]) / y[i]
    return total


@njit
def places(x, y):
    """What is looked up where a quotient says."""
    total = 0.0
    for i in range(len(x)):
        total += x[int(1.0 / y[i])] * y[i]
    return total


@njit
def sides(x, y):
    """A division that not every trip makes."""
    total = 0.0
    for i in range(len(x)):
        if y[i] != 0.0:
            total += x[i] / y[i]
    return total


def required(f, args):
    """The loops in which something is required."""
    kinds = marshalling.kinds_of(list(args))
    function = program_of(f, Request(kinds, floats(args))).plan.function
    return [v.home.loop for v in function.instructions() if v.op == "require"]


@pytest.mark.parametrize("zero", range(4))
def test_a_divisor_of_zero_is_found_in_any_trip(zero):
    x, y = np.ones(4), np.ones(4)
    check(shares, (x, y))
    assert (set(required(shares, (x, y))) == {None}) is not BOUNDS_CHECKED
    y[zero] = 0.0
    for derivative in (tg.grad, tg.hessian):
        with pytest.raises(ZeroDivisionError):
            derivative(shares)(x, y)


def test_no_trip_divides_by_zero():
    assert tg.grad(shares)(np.ones(0), np.ones(0)).shape == (0,)


def test_where_a_quotient_is_an_index_it_is_checked_before():
    x, y = np.arange(5.0), np.array([1.0, 0.5, 0.3, 0.25, 1.0])
    check(places, (x, y), differences=False)
    assert all(required(places, (x, y)))
    with pytest.raises(ZeroDivisionError):
        tg.grad(places)(x, np.array([1.0, 0.0, 1.0, 1.0, 1.0]))


def test_a_division_that_is_not_made_is_not_checked():
    x, y = np.ones(3), np.array([2.0, 0.0, 4.0])
    np.testing.assert_array_equal(tg.grad(sides)(x, y), [0.5, 0.0, 0.25])
