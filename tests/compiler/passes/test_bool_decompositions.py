"""Logic, bits and places, compiled: NaN, infinities, signed zeros, shifts by too much."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X = np.array([[1.0, np.nan, -0.0, 0.0], [np.inf, -np.inf, -np.nan, 3.0], [2.0, 2.0, 1.0, 1.0]])
I = np.array([[5, 3, 3, -7], [0, -(2**62), 70, 1]])
J = np.array([[1, 64, -1, 2], [3, 1, 5, 63]])
SORTED = np.array([1.0, 2.0, 2.0, 3.0, np.nan])
FUNCTIONS = {
    "signbit": (lambda x: np.signbit(x), X),
    "isnan": (tg.isnan, X),
    "isinf": (tg.isinf, X),
    "isfinite": (tg.isfinite, X),
    "argmax": (lambda x: tg.argmax(x, 1), X),
    "argmin": (lambda x: tg.argmin(x, 0), X),
    "argmax of all": (tg.argmax, X),
    "argmax of integers": (lambda x: tg.argmax(x, 1), I),
    "argmax of bools": (lambda x: tg.argmax(x > 0, 1), X),
    "max of a dimension": (lambda x: tg.max(x, 1).values, X),
    "max of bools": (lambda x: tg.amax(x > 0, 0), X),
    "max of integers": (lambda x: tg.amax(x, 0), I),
    "prod of integers": (lambda x: tg.prod(x, 0), I),
    "any": (lambda x: (x > 0).any(), X),
    "all": (lambda x: (x > -9).all(0), X),
    "count": (tg.count_nonzero, X),
    "sum of bools": (lambda x: (x > 0).sum(0), X),
    "xor": (lambda x: tg.logical_xor(x, x > 0), X),
    "left shift": (lambda a, b: a << b, I, J),
    "right shift": (lambda a, b: a >> b, I, J),
    "bits": (lambda a, b: (a ^ b) | (~a & b), I, J),
    "not": (lambda x: ~(x > 0), X),
    "searchsorted": (lambda v: np.searchsorted(tg.tensor(SORTED), v), X),
    "searchsorted right": (lambda v: np.searchsorted(tg.tensor(SORTED), v, "right"), X),
}


@pytest.mark.parametrize("case", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_compiled_function_without_derivative(case: Any) -> None:
    f, *given = case
    jitted = tg.jit(f)
    found = jitted(*given)
    expected = f(*[tg.tensor(x) for x in given]).numpy()
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == expected.dtype
    assert jitted.lower(*given).callbacks == ()
    assert jitted.cache_info().eager == 0


@pytest.mark.parametrize("kind", ["i4", "i8", "u1", "i2", "?"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x & 3, lambda x: 3 & x, lambda x: x | 1, lambda x: x ^ 1, lambda x: x << 1,
        lambda x: x >> 1, lambda x: 1 << x, lambda x: x & x, lambda x: x & np.array([1, 2]),
        lambda x: x & True,
    ],
)  # fmt: skip
def test_bits_of_python_numbers_keep_the_dtype(f, kind):
    x = np.array([1, 6]).astype(kind)
    found, wanted = tg.jit(f)(x), f(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_bits_are_changed_in_place():
    def f(x):
        y = x.clone()
        y &= 3
        y |= 8
        y <<= 1
        return y

    np.testing.assert_array_equal(tg.jit(f)(np.array([5, 6], np.int32)), [18, 20])
