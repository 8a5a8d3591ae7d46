"""Outer loops whose trips are computed side by side, in the lanes of vectors."""

import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.values import LANES
from tests.njit.checking import BOUNDS_CHECKED, check, floats

pytestmark = pytest.mark.tapegrad_only("no other library has this")
rng = np.random.default_rng(3)
COUNTS = (0, 1, LANES - 1, LANES, LANES + 1, 2 * LANES, 2 * LANES + 1, 5 * LANES - 2)


@njit
def horner(x, t, s):
    total = 0.25
    for i in range(len(t)):
        value = 0.0
        for j in range(len(x) - 1, -1, -1):
            value = value * t[i] + x[j]
        total += value * value
        total -= s[i] * value
    return 0.5 * total


@njit
def mixture(bias, means, x):
    """An array that each trip fills and reads, a largest element, a sum of exponentials."""
    n, d = x.shape
    k = means.shape[0]
    inner = np.empty(k)
    total = 0.0
    for i in range(n):
        best = -np.inf
        for j in range(k):
            square = bias[j]
            for a in range(d):
                off = x[i, a] - means[j, a]
                square -= off * off * math.cos(off)
            inner[j] = square
            if inner[j] > best:
                best = inner[j]
        s = 0.0
        for j in range(k):
            s += math.exp(inner[j] - best)
        total += best + math.log(s)
    return total


@njit
def nearness(means, x):
    """Loops two deep that call nothing: sixteen trips side by side."""
    n, d = x.shape
    total = 0.0
    for i in range(n):
        share = 1.0
        for j in range(len(means)):
            square = 0.0
            for a in range(d):
                off = x[i, a] - means[j, a]
                square += off * off
            share += math.exp(-square)
        total += math.log(share)
    return total


@njit
def looked_up(values, weights, place):
    """Places that several lanes share, counted from the end too; a side that divides."""
    total = 0.0
    for i in range(len(place)):
        v, w = values[place[i]], weights[i]
        square = v[0] * v[0] + w
        if square > 0.0:
            size = math.sqrt(square)
            turn = math.sin(size) / size
        else:
            size, turn = 0.0, 1.0
        total += turn * v[1] + size * w
    return total


@njit
def filled_anew(x, rows):
    """An array that is made in each trip, and written at places that differ by lane."""
    n, d = rows.shape
    total = 0.0
    for i in range(n):
        found = np.zeros(3)
        for a in range(d):
            found[(i + a) % 3] += math.exp(rows[i, a]) * x[a] * x[a]
        total += found[0] * found[1] + found[2]
    return total


@njit
def carried(x, rows):
    """No trips side by side: each reads what the one before has left."""
    n, d = rows.shape
    kept = np.zeros(d)
    total = 0.0
    for i in range(n):
        for a in range(d):
            kept[a] = 0.5 * kept[a] + rows[i, a] * x[a]
            total += kept[a] * kept[a]
    return total


@njit
def layered(x, rows):
    """State that lasts from row to row, of which each trip has elements of its own."""
    n, d = rows.shape
    state, last = np.ones((4, d)), np.empty(d)
    total = 0.0
    for t in range(n):
        norm = 1.0
        for i in range(d):
            y = rows[t, i]
            for layer in range(2):
                gate = math.exp(-(y * x[layer] + state[2 * layer, i]))
                state[2 * layer, i] = math.tanh(state[2 * layer + 1, i] * gate)
                state[2 * layer + 1, i] += y / (1.0 + gate)
                y = state[2 * layer, i]
            last[i] = y
            norm += math.exp(y)
        for i in range(d):
            total += math.log(norm) - last[i]
    return total


@njit
def beyond_rows(x, length):
    """Rows that are shorter than the loop, so that trips share elements of the next row."""
    flat = np.ones(44)
    rows = flat.reshape((44 // length, length))
    for i in range(len(x)):
        y = x[i]
        for layer in range(2):
            rows[layer, i] = math.exp(0.5 * rows[layer, i] * y) * x[i]
            y += math.sin(rows[layer, i])
    return np.sum(flat)


def is_vectorized(f, args):
    kinds = marshalling.kinds_of(list(args))
    program = program_of(f, Request(kinds, floats(args)))
    lanes = program.plan.function.lanes
    assert lanes == (2 * LANES if f in (horner, nearness) else LANES)
    return f"<{lanes} x double>" in program.text


CASES = {
    horner: lambda n: (rng.normal(size=5), rng.uniform(-1, 1, n), rng.normal(size=n)),
    mixture: lambda n: (rng.normal(size=3), rng.normal(size=(3, 2)), rng.normal(size=(n, 2))),
    nearness: lambda n: (rng.normal(size=(3, 2)), rng.normal(size=(n, 2))),
    looked_up: lambda n: (
        rng.normal(size=(4, 2)), rng.normal(size=n), rng.integers(-4, 4, n)
    ),
    filled_anew: lambda n: (rng.normal(size=4), rng.normal(size=(n, 4))),
    layered: lambda n: (np.array([0.7, -0.4]), np.sin(np.arange(3.0 * n)).reshape((3, n))),
}  # fmt: skip


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_gradients_for_any_number_of_trips(f, n):
    args = CASES[f](n)
    check(f, args)
    assert is_vectorized(f, args)


@pytest.mark.parametrize("length", [1, 4, LANES + 3])
def test_rows_that_are_shorter_than_the_loop(length):
    args = (np.cos(np.arange(LANES + 3.0)), length)
    if BOUNDS_CHECKED and length < LANES + 3:
        with pytest.raises(IndexError):
            tg.grad(beyond_rows)(*args)
        return
    check(beyond_rows, args, compiled=True)
    assert is_vectorized(beyond_rows, args)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_products_with_the_hessian(f):
    x, *rest = CASES[f](2 * LANES + 3)
    fixed = njit(lambda x: f(x, *constant))
    constant = tuple(rest)
    along, step = rng.normal(size=x.shape), 1e-5
    gradient = tg.grad(fixed)
    slope = (gradient(x + step * along) - gradient(x - step * along)) / (2 * step)
    product = tg.hvp(fixed)(x, along)
    np.testing.assert_allclose(product, slope, rtol=1e-5, atol=1e-6 * np.max(np.abs(slope)))


def test_the_value_has_the_bits_of_the_function():
    args = CASES[horner](5 * LANES + 1)
    assert tg.value_and_grad(horner)(*args)[0] == horner(*args)


def test_single_precision():
    args = [x.astype(np.float32) for x in CASES[horner](LANES + 3)]
    found = tg.grad(horner)(*args)
    expected = tg.grad(horner)(*[x.astype(float) for x in args])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_what_one_lane_raises_is_raised():
    @njit
    def shares(x, t):
        total = 0.0
        for i in range(len(t)):
            s = 0.0
            for j in range(len(x)):
                s += x[j] * t[i]
            total += 1.0 / s
        return total

    x, t = np.ones(3), np.arange(1.0, 12.0)
    np.testing.assert_allclose(tg.grad(shares)(x, t), np.full(3, -np.sum(1 / t) / 9))
    t[9] = 0.0
    with pytest.raises(ZeroDivisionError):
        tg.grad(shares)(x, t)


def test_a_zero_adjoint_stays_zero_beside_an_infinite_derivative():
    @njit
    def roots(x, t):
        total = 0.0
        for i in range(len(t)):
            s = 0.0
            for j in range(len(x)):
                s += math.sqrt(x[j]) * t[i]
            total += s
        return total

    found = tg.grad(roots)(np.array([0.0, 4.0]), np.zeros(LANES + 1))
    np.testing.assert_array_equal(found, [0.0, 0.0])


def test_trips_that_depend_on_each_other_are_not_side_by_side():
    args = (rng.normal(size=4), rng.normal(size=(2 * LANES, 4)))
    check(carried, args)
    kinds = marshalling.kinds_of(list(args))
    loops = program_of(carried, Request(kinds, floats(args))).plan.function.loops
    assert all(loop.width == 1 for loop in loops)


def test_the_row_of_each_trip():
    @njit
    def stretched(points, stretch):
        total = 0.0
        for i in range(len(points)):
            moved = stretch @ points[i]
            total += moved[0] * moved[1] + moved[2]
        return total

    check(stretched, (rng.normal(size=(LANES + 3, 3)), rng.normal(size=(3, 3))))
