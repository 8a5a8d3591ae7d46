"""Arithmetic of integers in compiled programs: NumPy's to the bit, and without calls of Python."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("compiled programs")

LOWEST, HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
NUMBERS = np.array([LOWEST, LOWEST + 1, -100, -7, -3, -1, 0, 1, 2, 7, 100, HIGHEST])
A, B = (x.ravel() for x in np.meshgrid(NUMBERS, NUMBERS))
ROWS = np.arange(-3, 9).reshape(3, 4)

OF_ONE = {
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum of all": np.cumsum,
    "cumsum backwards": lambda x: np.cumsum(x[::-1], axis=0)[::-1],
    "cumsum of a mask": lambda x: np.cumsum(x > 1, axis=0),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "square": lambda x: x**2,
    "cube": lambda x: np.power(x, 3),
    "ring": lambda x: (x + 1) % 3 - 7 // (x * x + 1) + np.fmod(x, -4),
}


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_integers(name, kind):
    f, x = OF_ONE[name], ROWS.astype(kind)
    compiled, wanted = tg.jit(f), f(x)
    found = compiled(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(tg.vmap(f)(np.stack([x, x]))[1], wanted)
    assert compiled.lower(x).callbacks == ()


@pytest.mark.parametrize("divide", [np.remainder, np.floor_divide, np.fmod])
@pytest.mark.parametrize("count", [1, 7, len(A)])
def test_divisions(divide, count):
    """Those that trap the processor too: by 0, which is known when the program runs, and -1."""
    a, b = A[-count:], B[-count:]
    compiled = tg.jit(lambda a, b: divide(a, b))
    compiled(a, np.where(b == 0, 1, b))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(compiled(a, b), divide(a, b))
    assert compiled.lower(a, np.where(b == 0, 1, b)).callbacks == ()


def test_a_loop_over_a_ring():
    def f(x):
        return tg.fori_loop(0, 20, lambda i, c: c + x[i % 3] * (i // 4), 0.0)

    x = np.array([1.0, 0.5, -2.0])
    places, weights = np.arange(20) % 3, np.arange(20) // 4
    slope = tg.jit(tg.grad(f))
    np.testing.assert_allclose(slope(x), np.bincount(places, weights), rtol=1e-14)
    assert slope.lower(x).callbacks == ()
