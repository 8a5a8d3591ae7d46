"""`tapegrad.grad` and `value_and_grad` of functions that Numba compiles."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from bench.njit.programs import chol, rosen, scaled
from tapegrad.njit import evaluation, loop_fission
from tests.njit.checking import check

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def root(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x) / x


class Point(NamedTuple):
    a: float
    b: np.ndarray


def test_arguments_are_not_written_into():
    x = np.arange(4.0)
    value, gradient = tg.value_and_grad(scaled)(x, 2.0)
    np.testing.assert_array_equal(x, np.arange(4.0))
    np.testing.assert_allclose(gradient, 2 * np.cos(x))
    assert value == pytest.approx(2 * np.sin(x).sum())


def test_argnums_choose_and_order():
    x = np.arange(4.0)
    one = tg.grad(scaled, 1)(x, 2.0)
    assert type(one) is float
    assert one == pytest.approx(np.sin(x).sum())
    both = tg.grad(scaled, (1, 0))(x, 2.0)
    assert both[0] == one
    np.testing.assert_allclose(both[1], 2 * np.cos(x))
    with pytest.raises(ValueError, match="argnums=2"):
        tg.grad(scaled, 2)(x, 2.0)


def test_keywords_and_defaults():
    @njit
    def f(x, a=3.0):
        return x * a * a

    assert tg.grad(f)(2.0) == 9.0
    assert tg.grad(f)(2.0, a=4.0) == 16.0


def test_auxiliary_results():
    @njit
    def f(x):
        return np.sum(x * x), (x * 2.0, 3, True)

    x = np.arange(3.0)
    (value, (array, n, flag)), gradient = tg.value_and_grad(f, has_aux=True)(x)
    assert (value, n, flag) == (5.0, 3, True)
    np.testing.assert_array_equal(array, 2 * x)
    np.testing.assert_array_equal(gradient, 2 * x)
    gradient, aux = tg.grad(f, has_aux=True)(x)
    np.testing.assert_array_equal(aux[0], 2 * x)


def test_tuples_have_gradients_in_their_form():
    @njit
    def f(p, q):
        return p.a * p.b[0] + q[0] * q[1][1]

    x = np.array([2.0, 3.0])
    p, q = tg.grad(f, (0, 1))(Point(4.0, x), (5.0, x))
    assert type(p) is Point
    assert p.a == 2.0
    np.testing.assert_array_equal(p.b, [4.0, 0.0])
    assert q[0] == 3.0
    np.testing.assert_array_equal(q[1], [0.0, 5.0])


def test_single_precision_stays():
    @njit
    def f(x, y):
        return np.float32(2) * x[0] * x[1] ** 2 + y * x[1]

    x = np.array([1, 2], np.float32)
    g, h = tg.grad(f, (0, 1))(x, np.float32(3))
    assert g.dtype == np.float32
    assert type(h) is np.float32
    np.testing.assert_array_equal(g, [8, 11])
    assert h == 2


@pytest.mark.parametrize("order", ["C", "F", "step", "reversed", "big-endian", "read-only"])
def test_arrays_of_any_layout(order):
    @njit
    def f(a):
        s = 0.0
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                s += (i + 2 * j + 1) * a[i, j] ** 2
        return s

    a = np.arange(12.0).reshape(3, 4)
    given = {
        "C": a, "F": np.asfortranarray(a), "step": np.repeat(a, 2, 1)[:, ::2],
        "reversed": a[::-1, ::-1].copy()[::-1, ::-1], "big-endian": a.astype(">f8"),
        "read-only": np.broadcast_to(a, (3, 4)),
    }[order]  # fmt: skip
    i, j = np.indices((3, 4))
    np.testing.assert_array_equal(tg.grad(f)(given), 2 * (i + 2 * j + 1) * a)


def test_strict_refuses_arguments_that_do_not_matter():
    @njit
    def f(x, y):
        return x * np.floor(y)

    assert tg.grad(f, (0, 1))(2.0, 3.5) == (3.0, 0.0)
    with pytest.raises(RuntimeError, match="does not depend on argument 1"):
        tg.grad(f, (0, 1), strict=True)(2.0, 3.5)


def test_exceptions_are_those_of_the_function():
    gradient = tg.grad(root)
    assert gradient(4.0) == -0.0625
    with pytest.raises(ValueError, match="negative"):
        gradient(-1.0)
    with pytest.raises(ZeroDivisionError):
        gradient(0.0)


def test_a_gradient_alone_raises_what_only_the_value_needs():
    @njit
    def f(x, n):
        s = 0.0
        for v in x:
            s += v * v
        return s + 1 // n

    x = np.arange(3.0)
    assert np.array_equal(tg.grad(f)(x, 1), 2 * x)
    value, gradient = tg.value_and_grad(f)(x, 1)
    assert value == f(x, 1)
    assert np.array_equal(gradient, 2 * x)
    with pytest.raises(ZeroDivisionError):
        tg.grad(f)(x, 0)


def test_division_by_zero_as_the_function_has_it():
    def f(x, n):
        return x / (x - x) + x // n

    with pytest.raises(ZeroDivisionError):
        tg.grad(njit(f))(2.0, 0)
    value, _ = tg.value_and_grad(njit(error_model="numpy")(f))(2.0, 0)
    assert value == math.inf


def test_whole_divisions_never_trap():
    @njit(error_model="numpy")
    def f(x, a, b):
        return x * (a // b) + x * (a % b)

    lowest = -(2**63)
    for a, b in ((7, 0), (7, -1), (-7, 2), (7, -2), (lowest, 3)):
        assert tg.grad(f)(1.0, a, b) == f(1.0, a, b)
    tg.grad(f)(1.0, lowest, -1)


@pytest.mark.parametrize("everywhere", [False, True])
def test_bounds_are_checked_where_the_function_checks_them(everywhere, monkeypatch):
    def f(x, i):
        return x[i] * x[i]

    if everywhere:
        monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
        checked = njit(f)
    else:
        checked = njit(boundscheck=True)(f)
    gradient, x = tg.grad(checked), np.arange(3.0)
    np.testing.assert_array_equal(gradient(x, -1), [0, 0, 4])
    for i in (3, -4, 2**62):
        with pytest.raises(IndexError):
            gradient(x, i)


def test_shapes_that_do_not_fit_raise_as_in_the_function():
    @njit
    def f(x, y):
        return np.sum(x * y)

    with pytest.raises(ValueError, match="broadcast"):
        tg.grad(f)(np.ones(3), np.ones(4))


def test_arrays_that_overlap_are_refused_where_one_is_written():
    @njit
    def writes(x, y):
        x[0] += y[0]
        return x[0] * y[0]

    @njit
    def reads(x, y):
        return x[0] * y[0]

    x = np.arange(1.0, 5.0)
    for a, b in ((x, x), (x[:3], x[1:]), (x[::2], x[1:]), (x[::-1], x[:2])):
        with pytest.raises(ValueError, match="argument 0, whose memory overlaps that of argument"):
            tg.grad(writes)(a, b)
    np.testing.assert_array_equal(tg.grad(writes)(x[:2], x[2:]), [3, 0])
    np.testing.assert_array_equal(tg.grad(reads)(x, x), [1, 0, 0, 0])


def test_an_array_that_overlaps_itself_is_refused_where_it_is_written():
    x = np.lib.stride_tricks.as_strided(np.ones(4), (3, 2), (8, 8))
    with pytest.raises(ValueError, match="writes into argument 0"):
        tg.grad(njit(lambda a: a_written(a)))(x)


@njit
def a_written(a):
    a[0, 1] *= 2.0
    return np.sum(a)


def test_arrays_that_are_too_big_raise():
    @njit
    def f(x, n):
        return np.zeros((n, n))[0, 0] * x + np.zeros(0).reshape(n, n)[0, 0]

    with pytest.raises((ValueError, MemoryError)):
        tg.grad(f)(1.0, 2**40)
    with pytest.raises(ValueError, match="negative"):
        tg.grad(f)(1.0, -1)


def test_an_adjoint_of_zero_stays_zero():
    @njit
    def f(y):
        return np.maximum(math.sqrt(y), 1.0)

    assert tg.grad(f)(0.0) == 0.0
    assert tg.jvp(f, (0.0,), (0.0,)) == (1.0, 0.0)
    derivative = tg.grad(f)
    assert njit(lambda y: derivative.njit(y))(0.0) == 0.0


def test_nan_goes_through():
    assert math.isnan(tg.grad(njit(lambda x: math.sin(x)))(math.nan))


def test_no_trips_and_ten_million_trips():
    @njit
    def f(x, n):
        s = x
        for i in range(n):
            s = s * 0.9999999 + 1e-9 * i * x
        return s

    assert tg.grad(f)(2.0, 0) == 1.0
    assert tg.grad(f)(2.0, -3) == 1.0
    assert tg.grad(f)(2.0, 10**7) == pytest.approx(f(1.0, 10**7))


def test_too_little_memory_is_an_error(monkeypatch):
    @njit
    def f(x, n):
        s = x
        for _ in range(n):
            s = math.sin(s) * x
            if s > 2.0:  # a loop that is left early has no checkpoints
                break
        return s

    monkeypatch.setattr(evaluation, "default_limit", lambda: 1 << 20)
    assert math.isfinite(tg.grad(f)(0.5, 1000))
    with pytest.raises(MemoryError, match=r"takes more than 1\.05 MB"):
        tg.grad(f)(0.5, 10**6)
    zeros = njit(lambda x, n: np.zeros((n, n))[0, 0] * x)
    with pytest.raises(MemoryError):
        tg.grad(zeros)(0.5, 2**20)


def test_threads_have_stacks_of_their_own():
    gradient = tg.value_and_grad(rosen)
    n = np.random.default_rng(0).normal
    xs = [n(size=k) for k in (10, 1000, 37, 5000)] * 20
    expected = [gradient(x) for x in xs[:4]]
    with ThreadPoolExecutor(4) as pool:
        for k, (value, g) in enumerate(pool.map(gradient, xs)):
            assert value == expected[k % 4][0]
            np.testing.assert_array_equal(g, expected[k % 4][1])


def test_copies_and_pickles():
    gradient = tg.grad(chol, (0, 1))
    a, y = np.eye(3) * 2, np.ones(3)
    for other in (pickle.loads(pickle.dumps(gradient)), copy.copy(gradient)):
        np.testing.assert_array_equal(other(a, y)[0], gradient(a, y)[0])
    assert repr(gradient) == "<grad of chol>"
    assert gradient.__wrapped__ is chol.py_func


def test_functions_loaded_from_numbas_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first = njit(cache=True)(rosen.py_func)
    x = np.arange(3.0)
    first(x)
    again = njit(cache=True)(rosen.py_func)
    again(x)
    np.testing.assert_array_equal(tg.grad(again)(x), tg.grad(rosen)(x))


@pytest.mark.parametrize("trips", [63, 64, 65, 1000, 40_000])
def test_stacks_grow_with_all_that_they_hold(trips):
    @njit
    def mixed(x, n):
        a, b, k = x, 1.0, 0
        while k < n:
            a, b = math.sin(a * b) + x, math.cos(a) * b + 0.1 * a
            k += 1
        return a * b

    check(mixed, (0.3, trips))


@njit
def smoothed(x, steps, gap):
    """Places that are made of others, `gap` before them."""
    u = np.zeros(4 * len(x))
    for i in range(len(x)):
        u[i] = x[i]
    later = u[gap:]
    for _ in range(steps):
        for i in range(1, len(x) - 1):
            lap = u[i - 1] + u[i + 1] - 2.0 * u[i]
            later[i] = 0.3 * lap * math.sin(u[i])
        for i in range(len(x)):
            u[i] = 0.5 * u[i] + later[i]
    s = 0.0
    for v in u:
        s += v * v
    return s


@njit
def of_strides(x, stride, n):
    """Every place is written from two others; with a stride of zero one place by all trips."""
    u, step = x.copy(), len(stride)
    for i in range(n):
        u[i * step] = math.sin(u[700 + i] * u[650 + i])
    return u[0] * u[0] + np.sum(u)


@njit
def carried(x, n):
    """A number goes from trip to trip beside what is written."""
    u, s = x.copy(), 1.0
    for i in range(n):
        s = 0.9 * s + u[200 + i]
        u[i] = s * u[201 + i]
    return np.sum(u) * s


X1000 = np.sin(np.arange(1000.0))


@pytest.mark.parametrize("size", [17, 19, 40, 257, 258, 259, 300])
def test_trips_in_chunks_are_trips_one_by_one(size):
    """Around the length of a chunk, and where places overlap."""
    for gap in (size, size + 1, 2 * size, 1, 2, size - 2, size // 2):
        check(smoothed, (X1000[:size] / 3, 3, gap))
    for stride in (0, 1, 2):
        check(of_strides, (X1000, np.zeros(stride, int), size))
    for start in (0, 100, 200):
        check(carried, (X1000[start:], min(size, 500)))


def test_second_derivatives_go_in_chunks_too():
    x, v = X1000[:300] / 3, np.cos(np.arange(300.0))

    @njit
    def f(x):
        return smoothed(x, 3, 300)

    near, far = (tg.grad(f)(x + step * v) for step in (1e-6, -1e-6))
    expected = (near - far) / 2e-6
    np.testing.assert_allclose(tg.hvp(f)(x, v), expected, rtol=1e-6, atol=1e-7)


def test_a_loop_that_writes_what_it_reads_is_reversed_in_chunks(monkeypatch):
    """Else the tests above would be of nothing."""
    seen = []
    write = loop_fission.Fission.write

    def noted(self, trips, otherwise):
        seen.append(self.places.upwards)
        write(self, trips, otherwise)

    monkeypatch.setattr(loop_fission.Fission, "write", noted)
    for f, args in (
        (smoothed, (X1000, 2, 1000)),
        (of_strides, (X1000, np.zeros(1, int), 9)),
        (carried, (X1000, 9)),
    ):
        tg.grad(njit(f.py_func))(*args)
    assert set(seen) == {True, False}
    assert len(seen) == 4
