"""Calls of derivatives from Python that go by a builtin function."""

import gc
import math
import weakref
from concurrent.futures import ThreadPoolExecutor
from sys import getrefcount
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import tapegrad as tg
from bench.njit.programs import scaled
from tapegrad.base.reference_counts import expected_count
from tapegrad.njit import fast_calls
from tapegrad.njit.gradients import PATIENCE, NumbaDerivative

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@njit
def mixed(a, x, n, flip, m):
    s = 0.0
    for i in range(n):
        s += a * x[i] * m[i, 0] * m[i, 1]
    return -s if flip else s


@njit
def root(x):
    if x[0] < 0:
        raise ValueError("negative")
    return np.sum(np.sqrt(x))


@pytest.fixture
def general_calls(monkeypatch):
    """The derivatives that were called the general way."""
    calls = []
    general = NumbaDerivative._general

    def counted(self, *args, **kwargs):
        calls.append(self)
        return general(self, *args, **kwargs)

    monkeypatch.setattr(NumbaDerivative, "_general", counted)
    return calls


def arguments(rng, n=3, dtype=np.float64):
    return rng.normal(), rng.normal(size=n), n, True, rng.normal(size=(n, 2)).astype(dtype)


@pytest.mark.parametrize("argnums", [0, 1, 4, (1, 0), (4, 1, 0)])
@pytest.mark.parametrize("transform", [tg.grad, tg.value_and_grad])
def test_results_are_those_of_the_general_way(transform, argnums, general_calls):
    rng = np.random.default_rng(0)
    fast = transform(mixed, argnums)
    for n, dtype in ((3, np.float64), (5, np.float64), (4, np.float32), (0, np.float64)):
        args = arguments(rng, n, dtype)
        fast(*args)
        before = len(general_calls)
        found, expected = fast(*args), transform(mixed, argnums)(*args)
        assert general_calls[before:].count(fast) == 0
        pairs = zip(leaves(found), leaves(expected), strict=True)
        for a, b in pairs:
            assert type(a) is type(b)
            np.testing.assert_array_equal(a, b)
            assert np.asarray(a).dtype == np.asarray(b).dtype


def leaves(x):
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple) else [x]


def test_hessian_vector_products(general_calls):
    @njit
    def f(x):
        return np.sum(x * x * x)

    product = tg.hvp(f)
    x, v = np.arange(3.0), np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(product(x, v), 6 * x * v)
    np.testing.assert_allclose(product(x[:2], v[:2]), 6 * x[:2] * v[:2])
    assert len(general_calls) == 1
    with pytest.raises(ValueError, match=r"shape \(2,\) was given"):
        product(x, v[:2])
    cube = tg.hvp(njit(lambda x: x * x * x))
    assert cube(2.0, 0.5) == cube(2.0, 0.5) == 6.0
    assert type(cube(2.0, 0.5)) is float


def test_hessian_vector_products_of_functions_with_defaults():
    @njit
    def f(x, a=3.0):
        return a * x * x

    product = tg.hvp(f)
    assert [product(2.0, 1.0) for _ in range(3)] == [6.0] * 3


SLOPES = np.array([0.5, -2.0])


@njit
def of_tuples(p, n, q=(2.0, SLOPES), extra=None):
    s = 0.0 if extra is None else extra
    for i in range(n):
        s += p[0] * p[1][i] * q[0] * q[1][i] ** 2
    return s


@pytest.mark.parametrize("argnums", [0, (0,), (2, 0)])
def test_tuples_and_defaults(argnums, general_calls):
    p, q = (3.0, np.array([1.0, 4.0])), (1.5, np.array([2.0, 3.0]))
    gradient = tg.value_and_grad(of_tuples, argnums)
    calls = [(p, 2, q)] if argnums == (2, 0) else [(p, 2), (p, 2, q), (p, 1)]
    for args in calls:
        gradient(*args)
    del general_calls[:]
    for args in calls:
        np.testing.assert_equal(gradient(*args), tg.value_and_grad(of_tuples, argnums)(*args))
    assert gradient not in general_calls
    for others in (((3.0, (p[1],)), 2, q), ((np.float64(3.0), p[1]), 2, q), (p[:1], 2, q)):
        if len(others[0]) == 2 and isinstance(others[0][1], np.ndarray):
            np.testing.assert_equal(gradient(*others)[0], gradient(p, 2, q)[0])
        else:
            with pytest.raises(Exception, match=r"(?i)tuple"):
                gradient(*others)


def test_defaults_that_change():
    plain, strided = np.ones(2), np.ones(4)[::2]
    for array in (plain, strided):

        @njit
        def f(x, scale=array):
            return x * scale[0]

        gradient = tg.grad(f)
        assert [gradient(2.0), gradient(2.0)] == [1.0, 1.0]
        array[0] = 5.0
        assert gradient(2.0) == 5.0


def test_products_along_tuples(general_calls):
    @njit
    def f(p, scale=2.0):
        return scale * p[0] * np.sum(p[1] * p[1])

    product = tg.hvp(f)
    x, v = (3.0, np.array([1.0, 4.0])), (0.5, np.array([2.0, 1.0]))
    for _ in range(2):
        number, array = product(x, v)
        assert number == 4.0 * np.dot(x[1], v[1])
        np.testing.assert_allclose(array, 4 * (v[0] * x[1] + x[0] * v[1]))
    assert len(general_calls) == 1
    with pytest.raises(ValueError, match="structure"):
        product(x, v[0])
    with pytest.raises(ValueError, match=r"shape \(1,\) was given"):
        product(x, (0.5, np.ones(1)))


def test_tangents_are_not_written_into():
    x, v = np.arange(3.0), np.ones(3)
    tg.jvp(scaled, (x, 2.0), (v, 0.0))
    np.testing.assert_array_equal(v, np.ones(3))


def test_an_argument_without_influence():
    gradient = tg.grad(njit(lambda x, y: x * 2.0), (1, 0))
    y = np.ones((2, 3))
    for _ in range(3):
        nothing, two = gradient(1.0, y)
        np.testing.assert_array_equal(nothing, np.zeros((2, 3)))
        assert two == 2.0


def test_other_arguments_go_the_general_way(general_calls):
    gradient = tg.grad(mixed, 1)
    a, x, n, flip, m = arguments(np.random.default_rng(1))
    expected = gradient(a, x, n, flip, m)
    spread = np.repeat(x, 2)[::2]
    for others in (
        (a, spread, n, flip, m), (a, x, np.int64(n), flip, m), (np.float64(a), x, n, flip, m),
        (a, x, n, flip, np.asfortranarray(m)), (a, x.astype(">f8"), n, flip, m),
    ):  # fmt: skip
        before = len(general_calls)
        np.testing.assert_allclose(gradient(*others), expected, rtol=1e-14)
        assert len(general_calls) > before
    np.testing.assert_allclose(gradient(a, x, n, flip=flip, m=m), expected, rtol=1e-14)
    assert isinstance(gradient(a, tg.tensor(x), n, flip, m), tg.Tensor)


def test_errors_are_those_of_the_general_way():
    gradient, x = tg.grad(root), np.array([1.0, 4.0])
    gradient(x)
    with pytest.raises(ValueError, match="negative"):
        gradient(-x)
    with pytest.raises(TypeError, match="needs floating-point arguments, got int64"):
        gradient(np.array([1, 4]))
    with pytest.raises(ValueError, match="called with 0 positional arguments"):
        gradient()
    with pytest.raises(TypeError, match="too many positional arguments"):
        gradient(x, x)
    with pytest.raises(TypingError, match="complex128"):  # as the function itself does
        tg.grad(root, 0)(x + 1j)
    np.testing.assert_array_equal(gradient(x), [0.5, 0.25])


def test_integers_that_are_too_large_are_refused():
    gradient = tg.grad(njit(lambda x, n: x * n))
    assert gradient(1.0, 3) == 3.0
    assert gradient(1.0, -(1 << 63)) == -float(1 << 63)
    with pytest.raises(Exception, match=r"(?i)int"):
        gradient(1.0, 1 << 64)


def test_masked_infinities_have_no_effect(general_calls):
    @njit
    def f(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    gradient = tg.grad(f)
    for _ in range(3 * PATIENCE):
        np.testing.assert_array_equal(gradient(np.array([4.0, 1.0])), [0.25, 0.5])
        np.testing.assert_array_equal(gradient(np.array([4.0, 0.0])), [0.25, 0.0])
    assert len(general_calls) == 2  # the second one made a fast call that multiplies strongly


def test_values_and_products_where_plain_ones_give_nan(general_calls):
    @njit
    def f(x, scale):
        return scale[0] * np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    x, v, scale = np.array([4.0, 0.0]), np.ones(2), (2.0,)
    both, product = tg.value_and_grad(f, (0, 1)), tg.hvp(njit(lambda x: f(x, (2.0,))))
    for _ in range(3):
        value, (gradient, (slope,)) = both(x, scale)
        assert (value, slope) == (4.0, 2.0)
        np.testing.assert_array_equal(gradient, [0.5, 0.0])
        np.testing.assert_array_equal(product(x, v), [-0.0625, 0.0])
    assert len(general_calls) == 2


def test_fast_calls_are_given_up_where_a_gradient_is_nan(general_calls):
    gradient = tg.grad(njit(lambda x: x * math.nan))
    for _ in range(3 * PATIENCE):
        assert math.isnan(gradient(1.0))
    assert gradient._call == gradient._general


def test_defaults_after_one_that_is_none(general_calls):
    @njit
    def f(x, function=root, offset=None, scale=2.0, array=SLOPES):
        return x * x * scale * array[1] + (0.0 if offset is None else offset)

    slope, product = tg.value_and_grad(f), tg.hvp(f)
    for _ in range(3):
        assert slope(3.0) == (-36.0, -24.0)
        assert product(3.0, 0.5) == -4.0
    assert len(general_calls) == 2
    assert tg.jit(tg.grad(lambda x: f(x)))(tg.tensor(3.0)).item() == -24.0
    assert njit(lambda x: slope.njit(x))(3.0) == (-36.0, -24.0)


def test_none_among_the_arguments(general_calls):
    @njit
    def f(x, scale, offset=None):
        return x * x * (1.0 if scale is None else scale) + (0.0 if offset is None else offset)

    both = tg.value_and_grad(f)
    calls = [(3.0, None), (3.0, None, None), (3.0, 2.0, None), (3.0, None, 1.0), (3.0, 0.0, 0.0)]
    expected = [(9.0, 6.0), (9.0, 6.0), (18.0, 12.0), (10.0, 6.0), (0.0, 0.0)]
    for _ in range(2):
        assert [both(*args) for args in calls] == expected
    assert len(general_calls) == len(calls)


def test_too_little_memory_is_an_error():
    @njit
    def f(x):
        while x > 0.1:
            x = x - 1e-4 * math.sin(x)
        return x

    gradient = tg.grad(f, max_memory=20_000)
    for _ in range(2):
        gradient(0.101)
        with pytest.raises(MemoryError, match="max_memory"):
            gradient(3.0)


def test_what_writes_into_its_arguments_works_on_copies(general_calls):
    gradient, x = tg.grad(scaled), np.arange(3.0)
    for _ in range(2):
        np.testing.assert_allclose(gradient(x, 2.0), 2 * np.cos(x))
    np.testing.assert_array_equal(x, np.arange(3.0))
    assert len(general_calls) == 2


def test_results_are_new_arrays_that_the_caller_owns():
    gradient, x = tg.grad(root), np.array([1.0, 4.0])
    first, second = gradient(x), gradient(x)
    assert first.flags.owndata
    assert not np.shares_memory(first, second)
    assert getrefcount(first) == expected_count(1)


def test_threads_call_at_once():
    gradient = tg.grad(root)
    gradient(np.ones(2))

    def work(k):
        x = np.full(1000 + k, 4.0 + k)
        return all(np.array_equal(gradient(x), 0.5 / np.sqrt(x)) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_derivatives_are_collected():
    gradient = tg.grad(njit(lambda x: x * x))
    assert gradient(3.0) == gradient(3.0) == 6.0
    seen = weakref.ref(gradient)
    del gradient
    gc.collect()
    assert seen() is None


def test_without_the_builtin(monkeypatch, general_calls):
    monkeypatch.setattr(fast_calls.sweep_abi, "as_listed", lambda: False)
    gradient = tg.grad(root)
    for _ in range(2):
        np.testing.assert_array_equal(gradient(np.array([1.0, 4.0])), [0.5, 0.25])
    assert len(general_calls) == 2


class Weights(NamedTuple):
    a: float
    w: np.ndarray


@njit
def weighted(p, x):
    return (p.w * x).sum() * p.a


def test_named_tuples(general_calls):
    p, x = Weights(2.0, np.array([1.0, 3.0])), np.array([0.5, 0.25])
    for transform in (tg.grad, tg.value_and_grad):
        for argnums in (0, (1, 0)):
            f = transform(weighted, argnums)
            first = f(p, x)
            general_calls.clear()
            assert repr(f(p, x)) == repr(first)
            assert not general_calls


@njit
def in_single(x, w):
    s = np.float32(0.0)
    for i in range(len(x)):
        s += x[i] * x[i] * w[i]
    return s


def test_results_in_single_precision(general_calls):
    x, w = np.float32([0.5, 0.25, 2.0]), np.float32([1.0, 3.0, 0.1])
    for transform in (tg.grad, tg.value_and_grad):
        f = transform(in_single, (0, 1))
        first = f(x, w)
        general_calls.clear()
        assert repr(f(x, w)) == repr(first)
        assert not general_calls
