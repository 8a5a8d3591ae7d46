"""What a loop would compute again in each trip, looked up in a table."""

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
rng = np.random.default_rng(5)


@njit
def scaled(q, x, k):
    """A function of one index in a loop over others."""
    s = 0.0
    for i in range(len(x)):
        for j in range(k):
            for a in range(2):
                s += math.exp(q[j]) * x[i] * (a + 1.0)
    return s


@njit
def of_two(q, x, k):
    """A function of two indices; one that no trip changes."""
    s = 0.0
    for i in range(len(x)):
        for j in range(k):
            for _ in range(j, q.shape[1]):
                s += x[i]
            for a in range(q.shape[1]):
                s += math.sin(q[j, a] * x[0]) * x[i] * math.tanh(s + math.log(x[0]))
    return s


@njit
def of_slices(q, x, k):
    """What is read is a slice that is taken in the loop."""
    s = 0.0
    for i in range(len(x)):
        part = q[1:k]
        for j in range(len(part)):
            s += math.exp(part[j]) * x[i]
    return s


@njit
def again(q, x, k):
    """In a loop around, what is read is another thing each time."""
    p, s = q.copy(), 0.0
    for _ in range(3):
        for i in range(len(x)):
            for j in range(k):
                s += math.exp(p[j]) * x[i]
        for j in range(k):
            p[j] = 0.5 * p[j] + 0.1 * s / (1.0 + s * s)
    return s


@njit
def written(q, x, k):
    """The loop itself changes what is read."""
    p, s = q.copy(), 0.0
    for i in range(len(x)):
        for j in range(k):
            s += math.exp(p[j]) * x[i]
            p[j] *= 0.9
    return s


@njit
def asked_for(q, x, k):
    """Not every trip computes it."""
    s = 0.0
    for i in range(len(x)):
        for j in range(k):
            if x[i] > 0.5:
                s += math.exp(q[j]) * x[i]
    return s


@njit
def growing(q, x, k):
    """The number of inner trips is another one in each trip."""
    s = 0.0
    for i in range(len(x)):
        for j in range(min(i, k)):
            s += math.exp(q[j]) * x[i]
    return s


@njit
def nearest(q, x, k):
    """Rows that a loop within reads again, in trips side by side."""
    s = 0.0
    for i in range(len(x)):
        best = np.inf
        for j in range(k):
            square = 0.0
            for a in range(x.shape[1]):
                off = x[i, a] - q[j, a]
                square += off * off
            if square < best:
                best = square
        s += best
    return s


def tables(f, args):
    """How many tables a program has."""
    kinds = marshalling.kinds_of(list(args))
    function = program_of(f, Request(kinds, floats(args))).plan.function
    return sum(
        v.op == "alloc" and not v.attribute[1] and v.attribute[2] >= 1 << 30
        for v in function.instructions()
    )


X = rng.uniform(0.3, 1.0, 5)


@pytest.mark.parametrize(
    ("f", "q", "count"),
    [
        (scaled, rng.normal(size=4), 1), (of_two, rng.normal(size=(4, 3)), 1),
        (of_slices, rng.normal(size=4), 1), (again, rng.normal(size=4), 1),
        (written, rng.normal(size=4), 0), (asked_for, rng.normal(size=4), 0),
        (growing, rng.normal(size=4), 0),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_functions(f, q, count):
    args = (q, X, 4)
    check(f, args)
    assert tables(f, args) == (0 if BOUNDS_CHECKED else count)


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_loops_without_trips(trips, k):
    check(scaled, (rng.normal(size=3), X[:trips], k))
    if trips:
        check(of_two, (rng.normal(size=(3, 0)), X[:trips], k), differences=False)


def test_nothing_is_read_that_the_function_does_not_read():
    found = tg.explain(scaled, np.ones(2), np.ones(0), 10**9)
    assert found.total_bytes < 1000
    np.testing.assert_array_equal(tg.grad(scaled)(np.ones(2), np.ones(0), 10**9), [0.0, 0.0])


@pytest.mark.parametrize("n", [0, 1, LANES - 1, LANES, 2 * LANES + 3])
def test_rows_that_are_read_again(n):
    args = (rng.normal(size=(6, 3)), rng.normal(size=(n, 3)), 6)
    check(nearest, args)
    assert tables(nearest, args) == (0 if BOUNDS_CHECKED else 1)
    assert tg.value_and_grad(nearest)(*args)[0] == nearest(*args)


def test_rows_of_which_nothing_is_read():
    q, x = np.ones((1, 3)), np.ones((LANES + 2, 3))
    assert tg.grad(nearest, 1)(q, x, 0).shape == x.shape
    check(nearest, (q, x[:, :0], 1), differences=False)


@pytest.mark.parametrize("f", [scaled, again, nearest], ids=lambda f: f.__name__)
def test_products_with_the_hessian(f):
    q, x = rng.normal(size=(6, 3)), rng.normal(size=(LANES + 3, 3))
    if f is not nearest:
        q, x = q[:, 0].copy(), x[:, 0].copy()
    fixed = njit(lambda q: f(q, x, 6))
    along, step = rng.normal(size=q.shape), 1e-6
    gradient = tg.grad(fixed)
    slope = (gradient(q + step * along) - gradient(q - step * along)) / (2 * step)
    product = tg.hvp(fixed)(q, along)
    np.testing.assert_allclose(product, slope, rtol=1e-6, atol=1e-7 * np.max(np.abs(slope)))
