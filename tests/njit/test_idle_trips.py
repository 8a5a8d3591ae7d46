"""Trips of loops that the reverse sweep leaves out."""

import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.idle_trips import record_side
from tests.njit.checking import check, floats

pytestmark = pytest.mark.tapegrad_only("no other library has this")
rng = np.random.default_rng(5)
X, Y = rng.normal(size=41), rng.normal(size=41)


@njit
def largest(x, y):
    most = x[0]
    for i in range(1, len(x)):
        most = max(most, x[i])
    return most * y[0]


@njit
def extent(x, y):
    """Both numbers are chosen in one trip."""
    low, high = x[0], x[0]
    for i in range(len(x)):
        low = min(low, x[i] * y[0])
        high = max(high, x[i])
    return high * high - low * y[1]


@njit
def place_of_largest(x, y):
    most, place = -1e300, -1
    for i in range(len(x)):
        if x[i] > most:
            most, place = x[i], i
    return most * y[place]


@njit
def picked(x, y):
    """The trip in whose midst the loop is left may itself be idle up to there."""
    s, i = 1.0, 0
    while i < len(x):
        i += 1
        if x[i - 1] > 0.0:
            s *= math.cos(x[i - 1]) + y[i - 1]
        if abs(s) > 50.0 or y[i - 1] > 2.0:
            break
    return s


@njit
def three_ways(x, y):
    s, out = 1.0, np.zeros(len(x))
    for i in range(len(x)):
        t = 1.0
        for j in range(i % 3):
            t *= 1.0 + 0.01 * j * x[i]
        if x[i] > 0.5:
            s = math.sin(s) * x[i]
        elif x[i] > 0.0:
            out[i] = s * y[i] * t
        elif x[i] < -1.5:
            s = s + y[i] * out[i - 1]
    return s + np.sum(out)


@njit
def nearest(x, y):
    """The loops inside keep numbers in idle trips, too."""
    best, at = 1e300, 0.0
    for i in range(len(x)):
        off, k = x[i], 0
        while k < i % 4:
            off = math.sin(off) + y[k]
            k += 1
        if off * off < best:
            best, at = off * off, x[i] * y[i]
    return best * at


@njit
def nested(x, y):
    s = 0.0
    for i in range(len(x)):
        most = y[i]
        if x[i] > 1.0:
            continue
        for j in range(i):
            most = max(most, x[j] * x[i])
        if most > 0.3:
            s += most * most
    return s


@njit
def counted_in_memory(x, y):
    """Idle trips write where indices are read: what these were is kept, not restored."""
    count, s = np.zeros(3, np.int64), 0.0
    for i in range(len(x)):
        k, t = i % 3, 0.0
        count[k] += 1
        for j in range(k):
            t += x[j]
        if x[i] > 0.0:
            s = y[count[k]] * x[i] * math.sin(s) + t * x[count[k]]
    return s + y[0]


@njit
def chosen_late(x, y):
    """A number that is found in one place is chosen in another, with loops before and behind."""
    s, t = y[0], 0.0
    for i in range(len(x)):
        found, k = s, 0
        if x[i] > 0.0:
            while k < i % 3:
                found = math.sin(found) * x[i]
                k += 1
        if y[i] > 0.0:
            s = found + y[i]
        off = x[i]
        while k < i % 4:
            off = math.cos(off) * y[k]
            k += 1
        if off > 0.5:
            t = off * y[i]
    return s * t


@njit
def returned(x, y):
    s = y[0]
    for i in range(len(x)):
        for j in range(i):
            if x[i] < 0.0:
                continue
            s = math.sin(s + x[j])
            if s * x[i] > 0.9:
                return s * s
    return s


ALL = [
    largest, extent, place_of_largest, picked, three_ways, nearest, nested, counted_in_memory,
    chosen_late, returned,
]  # fmt: skip
UP, DOWN = np.sort(X), np.sort(X)[::-1].copy()


def numbered(f, *args):
    """The loops that number the trips that are not idle."""
    kinds = marshalling.kinds_of(list(args))
    plan = program_of(f, Request(kinds, floats(args))).plan
    return [loop for loop in plan.function.loops if loop.idle_paths is not None]


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_gradient(f):
    assert numbered(f, X, Y)
    for x in (X, -X, UP, DOWN, np.zeros(41), X[:1]):
        check(f, (x, Y), differences=x is X)


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_hessian_products(f):
    along = np.random.default_rng(6).normal(size=(2, 41))
    hessian = tg.hessian(f, (0, 1))(X, Y)
    step, g = 1e-6, tg.grad(f, (0, 1))
    up, down = (g(X + s * along[0], Y + s * along[1]) for s in (step, -step))
    for k in range(2):
        product = hessian[k][0] @ along[0] + hessian[k][1] @ along[1]
        difference = (up[k] - down[k]) / (2 * step)
        size = 1.0 + np.max(np.abs(product))
        np.testing.assert_allclose(product, difference, atol=1e-7 * size)


def test_slots_are_those_of_the_other_trips():
    x = np.linspace(0.0, 1.0, 1000)
    records = {"up": 999, "down": 0, "late": 1}
    late = np.zeros(1000)
    late[700] = 1.0
    for data, count in zip((x, x[::-1].copy(), late), records.values()):
        rows = tg.explain(largest, data, Y).rows
        assert [row.trips for row in rows if row.nbytes] == [count + 1]  # the last one is left


def records(f):
    """The sides of branches that replace the largest number so far, or the smallest."""
    program = program_of(f, Request(marshalling.kinds_of([X, Y]), (0, 1)))
    blocks = program.plan.function.blocks
    sides = [record_side(b, b.loop) for b in blocks if b.loop is not None]
    return [side for side in sides if side is not None]


def test_branches_that_few_trips_take():
    assert [len(records(f)) for f in (largest, extent, place_of_largest, picked)] == [1, 2, 1, 0]


def test_not_a_number_is_handed_on_as_the_function_does():
    x = X.copy()
    x[7] = np.nan
    g = tg.grad(largest)(x, Y)
    most = largest.py_func(x, Y)
    assert largest(x, Y) == most
    assert g[np.flatnonzero(x * Y[0] == most)[-1]] == Y[0]
    assert np.count_nonzero(g) == 1


@njit
def sum_of_positive(x, y):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.0:
            s += x[i] * y[i]
    return s


@njit
def largest_of_four(x, y):
    most = x[0]
    for i in range(1, 4):
        most = max(most, x[i] * y[i])
    return most


@njit
def largest_row(x, y):
    """A choice without a branch, between trips that take long."""
    most = 0.0
    for i in range(len(x)):
        s = 0.0
        for j in range(i % 7):
            s += x[i] * y[j]
        if s > most:
            most = s
    return most


UNNUMBERED = [sum_of_positive, largest_of_four, largest_row]


@pytest.mark.parametrize("f", UNNUMBERED, ids=lambda f: f.__name__)
def test_vectors_and_straight_code_are_left_as_they_are(f):
    check(f, (X, Y))
    assert not numbered(f, X, Y)


def test_checkpoints():
    x, y = (np.tile(part, 100) for part in (X, Y))
    sparing = tg.grad(nearest, max_memory=15_000)
    np.testing.assert_allclose(sparing(x, y), tg.grad(nearest)(x, y), rtol=1e-9)
