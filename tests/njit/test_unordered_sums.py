"""Sums of the forward sweep that are added up in any order, and those that are not."""

import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request
from tapegrad.njit.unordered_sums import unordered_sums

pytestmark = pytest.mark.tapegrad_only("no other library has this")
rng = np.random.default_rng(3)
X = rng.normal(size=203)


@njit
def log_sum(x):
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i])
    return math.log(s)


@njit
def difference(x):
    """One sum is subtracted from; both are read by the same number."""
    s, t = 1.0, 0.0
    for i in range(len(x)):
        s -= math.sin(x[i])
        t += x[i] * x[i]
    return s * s * t


@njit
def stored(x):
    out = np.zeros(3)
    for k in range(3):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[i] * (k + 1)
        out[k] = s
    return out[0] * out[1] * math.exp(-out[2])


@njit
def branched(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s * s if s > 0.0 else -s


@njit
def indexed(x):
    s = 0.0
    for i in range(len(x)):
        s += abs(x[i])
    return x[int(s) % len(x)] * s * s


@njit
def stored_and_compared(x):
    out = np.zeros(2)
    for i in range(len(x)):
        out[1] += x[i] * x[i]
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    out[0] = s
    return out[1] ** 2 if out[0] < 1.0 else s * s


@njit
def kinked(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return abs(s) * s


@njit
def cumulated(x):
    """Each trip reads the sum so far."""
    s, t = 0.0, 0.0
    for i in range(len(x)):
        s += x[i]
        t += math.sin(s)
    return t * t


FREE = [(log_sum, 1), (difference, 2), (stored, 1)]
BOUND = [(branched, 0), (indexed, 0), (stored_and_compared, 0), (kinked, 0), (cumulated, 1)]


@pytest.mark.parametrize(("f", "count"), FREE + BOUND)
def test_sums_whose_order_decides_nothing(f, count):
    program = DerivativeProgram(f, Request(marshalling.kinds_of([X]), (0,)))
    assert program.plan is not None
    assert len(unordered_sums(program.plan.function)) == count


@pytest.mark.parametrize("f", [f for f, _ in FREE + BOUND])
def test_the_value_has_the_bits_of_the_function(f):
    x = X / 20
    value, slopes = tg.value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_allclose(tg.grad(f)(x), slopes, rtol=1e-12)
