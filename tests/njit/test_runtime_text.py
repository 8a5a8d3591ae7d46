"""Stacks that stay from call to call."""

import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request
from tapegrad.njit.evaluation import program_of
from tapegrad.njit.runtime_text import KEPT

pytestmark = pytest.mark.tapegrad_only("no other library has this")
LARGE = KEPT // 8 + 1000  # trips whose stack does not stay


@njit
def decayed(x, n):
    """A number kept in each trip, in a loop whose trips are counted, and in one of whose not."""
    for _ in range(n):
        x = x - 1e-7 * x * x
    while n > 0:
        x, n = x - 1e-7 * x * x, n - 1
    return x


def slope(x, n):
    d = 1.0
    for _ in range(2 * n):
        x, d = x - 1e-7 * x * x, d * (1.0 - 2e-7 * x)
    return d


fast_slope = njit(slope)


@njit
def turned(x, y, n):
    """Two numbers kept in each trip of a loop whose trips are not counted."""
    k = 0
    while True:
        if k >= n:
            return x + y
        x, y, k = x - 1e-4 * x * y, y + 1e-4 * x * x, k + 1


def test_stacks_of_several_numbers_that_grow():
    gradient = tg.grad(turned, (0, 1))
    for n in (1, 60, 70, 200, 1000, 30, 5000, 100_000):
        dx, dy, h = *gradient(0.7, 0.2, n), 1e-6
        for d, (a, b) in ((dx, (h, 0.0)), (dy, (0.0, h))):
            slope = (turned(0.7 + a, 0.2 + b, n) - turned(0.7 - a, 0.2 - b, n)) / (2 * h)
            assert d == pytest.approx(slope, rel=1e-6)


def test_calls_that_need_less_and_more_than_the_one_before():
    gradient = tg.grad(decayed)
    for n in (10, 50_000, 5, 0, LARGE, 7, 60_000, LARGE, LARGE + 5000, 3):
        assert gradient(0.7, n) == pytest.approx(fast_slope(0.7, n), rel=1e-9)


def test_threads_do_not_share_what_stays():
    gradient = tg.value_and_grad(decayed)
    sizes = [3000 + 17 * k for k in range(40)]
    expected = [gradient(0.5, n) for n in sizes]
    with ThreadPoolExecutor(4) as pool:
        for found, known in zip(pool.map(lambda n: gradient(0.5, n), 5 * sizes), 5 * expected):
            np.testing.assert_array_equal(found, known)


def test_what_stays_is_given_back():
    tg.grad(decayed)(0.5, 1000)
    program = program_of(decayed, Request(marshalling.kinds_of([0.5, 1000]), (0,)))
    assert isinstance(program, DerivativeProgram)
    forget = ctypes.CFUNCTYPE(None)(program.engine[0].get_function_address("forget"))
    for _ in range(2):
        forget()
        assert tg.grad(decayed)(0.5, 1000) == pytest.approx(fast_slope(0.5, 1000), rel=1e-9)
