"""Innermost loops whose trips are reversed in any order, and those that are not."""

import math

import numpy as np
import pytest
from numba import njit

from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.trip_order import goes_upwards, is_free
from tests.njit.checking import check, floats

pytestmark = pytest.mark.tapegrad_only("no other library has this")
rng = np.random.default_rng(11)
X, Y = rng.normal(size=21), rng.normal(size=21)


@njit
def sums(x, y):
    s, t = 1.0, 0.0
    for i in range(len(x)):
        s -= math.sin(x[i]) * y[i]
        t += x[i] * x[i]
    return s * t


@njit
def written(x, y):
    out = np.empty(2 * len(x))
    for i in range(len(x)):
        out[2 * i + 1] = x[i] * y[i]
        out[0] = 0.0 if i == 0 else out[0]
    s = 0.0
    for i in range(len(x)):
        s += math.exp(out[2 * i + 1])
    return s


@njit
def spread(x, y):
    out = np.empty(3 * len(x))
    for i in range(len(x)):
        out[3 * i + 1] = x[i] * y[i]
    s = 0.0
    for i in range(len(x)):
        s += math.exp(out[3 * i + 1])
    return s


@njit
def broadcast(x, y):
    return np.sum(np.exp(x * y[:1]) * y + x)


@njit
def cumulated(x, y):
    out = np.empty(len(x))
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        out[i] = s
    return np.dot(out, y)


@njit
def overwritten(x, y):
    """All trips write one element, of which the last one counts."""
    out = np.zeros(2)
    for i in range(len(x)):
        out[0] = x[i] * y[i]
    return out[0] * x[1]


@njit
def overwritten_at_places(x, y):
    out, places = np.zeros(4), np.arange(len(x)) % 3
    for i in range(len(x)):
        out[places[i]] = x[i] * y[i]
    return out[0] * out[1] * out[2]


@njit
def powers(x, y):
    s = 1.0
    for i in range(len(x)):
        s = s * (1.0 + 0.1 * x[i])
    return s * y[0]


@njit
def squared_sum(x, y):
    s = 0.5
    for i in range(len(x)):
        s += 0.01 * s * x[i]
    return s * y[0]


@njit
def reread(x, y):
    out = np.ones(len(x) + 1)
    for i in range(len(x)):
        out[i + 1] = math.sin(out[i]) * x[i]
    return out[len(x)] * y[0] + out[3]


@njit
def put_back(x, y):
    """What is overwritten is read again, so it is restored on the way back."""
    u = x.copy()
    s = 0.0
    for i in range(len(x)):
        s += u[i] * u[i]
    for i in range(len(x)):
        u[i] = y[i] * s
    return np.dot(u, u) + s


def free(f, args):
    """Whether loops are free, in order."""
    kinds = marshalling.kinds_of(list(args))
    plan = program_of(f, Request(kinds, floats(args))).plan
    return [is_free(loop, plan) for loop in plan.function.loops if loop not in plan.idle]


@pytest.mark.parametrize("f", [sums, spread, broadcast], ids=lambda f: f.__name__)
def test_loops_that_are_free(f):
    check(f, (X, Y))
    assert all(free(f, (X, Y)))


@pytest.mark.parametrize(
    "f",
    [written, cumulated, overwritten, overwritten_at_places, powers, squared_sum, reread, put_back],
    ids=lambda f: f.__name__,
)
def test_loops_that_are_not(f):
    check(f, (X, Y))
    assert not all(free(f, (X, Y)))


def test_what_is_taken_upwards():
    kinds = marshalling.kinds_of([X, Y])
    plan = program_of(broadcast, Request(kinds, (0, 1))).plan
    assert any(goes_upwards(loop, plan) for loop in plan.function.loops)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("f", [sums, spread], ids=lambda f: f.__name__)
def test_few_trips(f, n):
    check(f, (X[:n], Y[:n]))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_broadcasting_of_few(n):
    check(broadcast, (X[:n], Y[:1]))
    check(broadcast, (X[:1], Y[: max(n, 1)]))
