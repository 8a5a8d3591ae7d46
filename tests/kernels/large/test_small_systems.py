"""Elimination of matrices side by side computes what LAPACK does."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.large import small_systems as systems
from tapegrad.parallel import large_elementwise

CLOSE = {"d": 1e-12, "f": 1e-4}


def given(count, n, dtype):
    """Matrices whose pivots are all over the rows, and three right sides of each."""
    rng = np.random.default_rng(n)
    a = np.eye(n) * (4 + n) + rng.standard_normal((*count, n, n))
    a = rng.permutation(a, axis=-2)
    return a.astype(dtype), rng.standard_normal((*count, n, 3)).astype(dtype)


def check(found, expected, dtype):
    """Compare relative to the greatest element."""
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= CLOSE[dtype] * np.abs(expected).max()


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 32])
@pytest.mark.parametrize("count", [(1,), (7,), (8,), (3, 11)], ids=str)
def test_systems(count, n, dtype):
    a, b = given(count, n, dtype)
    double_a, double_b = a.astype(float), b.astype(float)
    check(systems.inverses(a), np.linalg.inv(double_a), dtype)
    check(systems.solutions(a, b), np.linalg.solve(double_a, double_b), dtype)
    if n < 32:  # else they are beyond float32
        check(systems.determinants(a), np.linalg.det(double_a), dtype)
    turned = a.swapaxes(-1, -2)
    check(systems.inverses(turned), np.linalg.inv(turned.astype(float)), dtype)


def test_what_is_left_to_others():
    a, b = given((9,), 4, "d")
    assert systems.inverses(a[0]) is None
    assert systems.inverses(a.astype(">f8")) is None
    assert systems.inverses(a + 0j) is None
    assert systems.inverses(given((9,), 33, "d")[0]) is None
    assert systems.solutions(a, b[:1]) is None
    assert systems.solutions(a, b.astype("f")) is None
    assert systems.solutions(a, b[..., 0]) is None
    a[5, 2] = a[5, 1]
    a[7, 0, 0] = np.nan
    for bad in (5, 7):
        assert systems.inverses(a[bad : bad + 1]) is None
        assert systems.solutions(a[bad : bad + 1], b[:1]) is None
        assert systems.determinants(a[bad : bad + 1]) is None
    large = np.diag([1e200, 1e200, 1e-200, 1e-200])[None]
    assert systems.determinants(large) is None  # the product may leave the range on its way
    check(systems.inverses(large), np.linalg.inv(large), "d")


def test_rows_name_them():
    a, b = given((40,), 3, "d")
    check(tg.linalg.inv(tg.tensor(a))._a, np.linalg.inv(a), "d")
    check(tg.linalg.solve(tg.tensor(a), tg.tensor(b))._a, np.linalg.solve(a, b), "d")
    check(tg.linalg.det(tg.tensor(a))._a, np.linalg.det(a), "d")
    a[11] = 0.0
    assert tg.linalg.det(tg.tensor(a))[11] == 0.0
    with pytest.raises(tg.linalg.LinAlgError, match=r"the matrix at \(11,\)"):
        tg.linalg.inv(tg.tensor(a))


def test_threads(monkeypatch):
    a, _ = given((101,), 5, "d")
    one, threads = systems.inverses(a), tg.get_num_threads()
    monkeypatch.setattr(large_elementwise, "SPLIT", 64)
    tg.set_num_threads(3)
    try:
        np.testing.assert_array_equal(systems.inverses(a), one)
    finally:
        tg.set_num_threads(threads)


@pytest.mark.parametrize("dtype", "df")
@pytest.mark.parametrize("offset", range(0, 64, 16))
def test_room_that_is_not_aligned(offset, dtype, monkeypatch):
    """Arrays that begin anywhere in a line of the cache are not written beyond their ends."""
    a, b = given((9,), 4, dtype)
    behind, empty = [], np.empty

    def placed(shape, kind):
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        memory = empty(size + 256, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        memory[start + size :] = 0xA5
        behind.append(memory[start + size :])
        return memory[start : start + size].view(kind).reshape(shape)

    systems.solutions(a, b)  # compiled before NumPy's function is another one
    monkeypatch.setattr(systems.np, "empty", placed)
    systems.inverses(a)
    systems.solutions(a, b)
    monkeypatch.undo()
    assert len(behind) == 4
    for memory in behind:
        assert (memory == 0xA5).all()
