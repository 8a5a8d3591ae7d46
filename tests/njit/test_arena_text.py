"""Arrays that a function makes: their memory, within a call and from call to call."""

import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit.arena_text import FIRST, LARGEST, SMALL

pytestmark = pytest.mark.tapegrad_only("no other library has this")
EDGE = SMALL // 8  # elements of the largest array in a chunk


@njit
def polynomial(x, n, size):
    """Two arrays in each trip, of which one begins as zeros; 3 n x^2 in all, if size > 0."""
    total = 0.0
    for _ in range(n):
        a, b = np.zeros(size), np.empty(size)
        a[: size // 2] = x
        b[:] = x * (1.0 + a)
        total += (b * a).sum() / max(size // 2, 1) + (a + b)[size:].sum()
    return total


def slope(x, n, size):
    return n * (2 * x + 3 * x * x) if size > 1 else 0.0


@njit
def largest(x, n):
    """Nothing is kept: the arrays of a trip are freed in the next."""
    best = 0.0
    for k in range(n):
        a = np.full(5, x * k)
        if a[k % 5] > best:
            best = a[k % 5]
    return best


@njit
def rows(x, n):
    """An array of results, beside those that go."""
    made = np.zeros(3)
    for k in range(n):
        a = np.zeros(3)
        a[k % 3] = x
        made += a * a
    return made


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, EDGE - 1, EDGE, EDGE + 1, 2 * EDGE])
def test_arrays_of_all_sizes(size):
    gradient = tg.grad(polynomial)
    for n in (1, 3, 200, 0, 5):
        assert gradient(0.5, n, size) == pytest.approx(slope(0.5, n, size), rel=1e-12)


def test_more_arrays_than_the_largest_chunk_holds():
    gradient = tg.grad(polynomial)
    trips = LARGEST // 64
    for n in (trips, 10, trips // 4, trips):
        assert gradient(0.5, n, 4) == pytest.approx(slope(0.5, n, 4), rel=1e-9)


def test_no_page_comes_from_the_system_once_the_chunk_is_there():
    gradient = tg.grad(polynomial)
    trips = LARGEST // 64 // 16
    for _ in range(8):
        gradient(0.5, trips, 4)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for _ in range(10):
        gradient(0.5, trips, 4)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 50


def test_arrays_that_are_freed_within_the_call():
    for n in (3, FIRST, 10):
        derivative = tg.jvp(largest, (0.5, n), (1.0, 0))[1]
        assert derivative == pytest.approx(n - 1, rel=1e-12)


def test_arrays_beside_those_that_are_handed_over():
    for n in (3, 3000):
        value, back = tg.vjp(rows, 0.5, n)
        np.testing.assert_allclose(value, n / 3 * 0.25)
        np.testing.assert_allclose(back(np.ones(3))[0], n, rtol=1e-12)


def test_threads_have_arenas_of_their_own():
    gradient = tg.grad(polynomial)
    sizes = [100 + 7 * k for k in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for found, n in zip(pool.map(lambda n: gradient(0.5, n, 6), 5 * sizes), 5 * sizes):
            assert found == pytest.approx(slope(0.5, n, 6), rel=1e-12)
