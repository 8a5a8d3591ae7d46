"""Tensors made from numbers: types, fractions in integer types, edges."""

import numpy as np
import pytest

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
WIDE = ["int64"]


@pytest.fixture
def float32_by_default(tg):
    before = tg.get_default_dtype()
    tg.set_default_dtype(tg.float32)
    yield
    tg.set_default_dtype(before)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(
    ("args", "narrow", "wide"),
    [
        ((3.1,), [0, 1, 2, 3], [0, 1, 2]),
        ((0.5, 4.2), [0, 1, 2, 3], [0, 1, 2, 3]),
        ((1, 10, 2.5), [1, 3, 5, 7], [1, 3, 5, 7, 9]),
        ((5, 0.5, -1.5), [5, 4, 3], [5, 4, 3, 2, 1]),
        ((2, 2), [], []),
        ((4, 0, -2), [4, 2], [4, 2]),
    ],
    ids=str,
)
def test_arange_in_integers(tg, kind, args, narrow, wide):
    expected = wide if kind in WIDE else narrow
    assert tg.arange(*args, dtype=getattr(tg, kind)).tolist() == expected


def test_arange_needs_a_step(tg):
    with pytest.raises(ValueError, match="step"):
        tg.arange(0, 3, 0.5, dtype=tg.int64)
    with pytest.raises(RuntimeError):
        tg.arange(3, 0)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((0, 3, 6), [0, 0, 1, 1, 2, 3]),
        ((0.0, 7.9, 4), [0, 2, 4, 7]),
        ((5, 1, 7), [5, 4, 3, 3, 2, 1, 1]),
        ((9, 9, 3), [9, 9, 9]),
        ((2.7, 5, 1), [2]),
        ((2, 5, 0), []),
    ],
    ids=str,
)
def test_linspace_in_integers(tg, kind, args, expected):
    assert tg.linspace(*args, dtype=getattr(tg, kind)).tolist() == expected


def test_linspace_downwards_below_zero(tg):
    assert tg.linspace(0, -3, 6, dtype=tg.int64).tolist() == [0, 0, -1, -1, -2, -3]
    assert tg.linspace(-2.5, 2.5, 3, dtype=tg.int32).tolist() == [-2, 0, 2]


def test_pythons_float_is_float64_whatever_the_default(tg, float32_by_default):
    for t in (
        tg.zeros(2, dtype=float), tg.ones(2, dtype=float), tg.full((2,), 1, dtype=float),
        tg.arange(2, dtype=float), tg.linspace(0, 1, 2, dtype=float), tg.eye(2, dtype=float),
        tg.tensor([1], dtype=float), tg.as_tensor([1], dtype=float), tg.rand(2, dtype=float),
        tg.zeros_like(tg.ones(2), dtype=float), tg.ones(2).to(float), tg.ones(2).sum(dtype=float),
    ):  # fmt: skip
        assert t.dtype == tg.float64
    assert tg.zeros(2).dtype == tg.float32
    assert tg.zeros(2, dtype=int).dtype == tg.int64
    assert tg.zeros(2, dtype=bool).dtype == tg.bool


@pytest.mark.tapegrad_only("types of NumPy")
def test_types_of_numpy(tg, float32_by_default):
    assert tg.zeros(2, dtype=np.float64).dtype == tg.float64
    assert tg.zeros(2, dtype="f4").dtype == tg.float32
