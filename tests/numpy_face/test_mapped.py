"""Functions with a constant result, of values that differ from example to example."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.numpy_face.mapped import MAPPED

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

ROWS = np.array([
    [0.5, -1.0, 0.0, 2.0, 1.0], [1.0, 0.5, -np.inf, -0.0, 3.0], [4.0, 0.25, np.inf, 1e-310, 7.0],
])  # fmt: skip
NANS = np.where(ROWS == 2.0, np.nan, ROWS)
NANS[2, 0] = np.nan
INTEGERS = np.array([[3, 1, 2, 1], [0, 5, 2, 2]])
RISING, FALLING = [-1.0, 0.0, 0.5, 2.0], [2.0, 0.5, 0.5, -1.0]

# (function of one example, examples)
CASES = {
    "copysign": (lambda s: np.copysign(1.5, s), ROWS),
    "copysign of both": (lambda s: np.copysign(s[::-1], s), ROWS),
    "frexp": (lambda s: np.frexp(s)[0], ROWS),
    "frexp power": (lambda s: np.frexp(s)[1], ROWS),
    "digitize": (lambda s: np.digitize(s, RISING), ROWS),
    "digitize right": (lambda s: np.digitize(s, RISING, True), ROWS),
    "digitize falling": (lambda s: np.digitize(s, FALLING), ROWS),
    "digitize falling right": (lambda s: np.digitize(s, FALLING, right=True), ROWS),
    "isin": (lambda s: np.isin(s, [[1.0, 0.5], [7.0, 9.0]]), ROWS),
    "isin integers": (lambda s: np.isin(s, [1, 5], invert=True), INTEGERS),
    "isin of a list": (lambda s: np.isin([1, 2], s), INTEGERS),
    "lexsort": (lambda s: np.lexsort((s,)), INTEGERS),
    "lexsort of two": (lambda s: np.lexsort((s[::-1], s % 2)), INTEGERS),
    "lexsort beside an array": (lambda s: np.lexsort((np.arange(4.0)[::-1], s)), INTEGERS),
    "argpartition": (lambda s: np.sort(s[np.argpartition(s, 2)][:2]), INTEGERS),
    "nanargmax": (lambda s: np.nanargmax(s), NANS),
    "nanargmin": (lambda s: np.nanargmin(s, axis=0, keepdims=True), NANS),
    "nanargmax of integers": (np.nanargmax, INTEGERS),
    "einsum_path": (
        lambda s: np.einsum("i,i", s, s, optimize=np.einsum_path("i,i", s, s)[0]),
        INTEGERS,
    ),
    "nonzero": (lambda s: s[np.nonzero(s)].sum() + np.nonzero(s)[0].max(), INTEGERS),
    "flatnonzero": (lambda s: s[np.flatnonzero(s > 1)].max() + np.flatnonzero(s).min(), INTEGERS),
    "isneginf": (np.isneginf, ROWS),
    "isposinf": (np.isposinf, ROWS),
    "iscomplex": (np.iscomplex, ROWS),
    "isreal": (np.isreal, ROWS),
    "result_type": (lambda s: s.astype(np.result_type(s, np.float32)), ROWS),
}


@pytest.mark.parametrize("name", CASES)
def test_mapped_is_one_after_the_other(name):
    function, rows = CASES[name]
    expected = np.stack([function(row) for row in rows])
    for found in (
        tg.vmap(function)(rows),
        np.moveaxis(tg.vmap(function, 1, -1)(rows.T), -1, 0),
        tg.jit(tg.vmap(function))(rows),
    ):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype.kind == expected.dtype.kind


def test_every_function_is_tried():
    assert {f.__name__ for f in MAPPED} <= {name.split()[0] for name in CASES}


@pytest.mark.parametrize("power", range(-1074, 1024, 3))
def test_frexp_is_exact(power):
    x = np.ldexp([1.0, 1.0 + 2.0**-52, 2.0 - 2.0**-52, 1.5], power)
    for found, expected in zip(tg.vmap(np.frexp)(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_derivatives_under_a_map():
    x = np.array([0.75, -3.0, 5.0])
    np.testing.assert_array_equal(
        tg.vmap(tg.grad(lambda s: np.frexp(s)[0]))(x), np.ldexp(1.0, -np.frexp(x)[1])
    )
    np.testing.assert_array_equal(tg.vmap(tg.grad(lambda s: np.copysign(s, -1.0)))(x), [-1, 1, -1])
    np.testing.assert_array_equal(tg.vmap(tg.grad(lambda s: np.copysign(2.0, s)))(x), [0, 0, 0])


def test_an_array_and_a_mapped_index():
    with pytest.raises(RuntimeError, match=r"`np.take` makes an array .*tapegrad.tensor\(array\)"):
        tg.vmap(lambda i: np.take(ROWS[0], i))(np.array([0, 2]))
    with pytest.raises(ValueError, match=r"`np.digitize`: the bins must rise or fall"):
        tg.vmap(lambda s: np.digitize(s, [0, 2, 1]))(ROWS)


def test_the_place_of_a_number_among_nothing_but_nan():
    rows = np.array([[np.nan, 2.0, 1.0], [np.nan, np.nan, np.nan]])
    assert tg.vmap(np.nanargmax)(rows).tolist() == [1, -1]
    assert tg.jit(lambda t: np.nanargmin(t, axis=1))(rows).tolist() == [2, -1]
    with pytest.raises(ValueError, match="All-NaN"):
        np.nanargmax(tg.tensor(rows[1]))
