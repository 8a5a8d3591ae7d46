"""Long nests are divided among threads, with the results of one."""

import signal

import numba
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.parallel import thread_pool

pytestmark = pytest.mark.tapegrad_only("about compiled programs")

X = np.random.default_rng(0).standard_normal((400, 500))


@pytest.fixture
def threads():
    before = tg.get_num_threads()
    yield tg.set_num_threads
    tg.set_num_threads(before)


@pytest.fixture
def divided(monkeypatch):
    """How many parts each division had."""
    parts = []
    call = thread_pool.call

    def counted(frames):
        parts.extend([len(frames)] if len(frames) > 1 else [])
        call(frames)

    monkeypatch.setattr(thread_pool, "call", counted)
    return parts


def several(x):
    return (
        np.sum(np.sin(x) * x), np.sum(x * x, axis=0), np.tanh(x), np.max(x, axis=1), np.min(x),
        np.sum(np.exp(x).T, axis=(0, 1), keepdims=True),
    )  # fmt: skip


@pytest.mark.parametrize("sizes", [(200_000, 300_000), (300_000, 200_000)])
def test_the_same_operation_on_arrays_of_two_lengths(sizes, threads, divided):
    """The parts have one code, but each array has its own end."""
    threads(2)
    x, y = (np.linspace(-1.0, 1.0, n) for n in sizes)
    for found, given in zip(tg.jit(lambda x, y: (np.exp(x), np.exp(y)))(x, y), (x, y)):
        np.testing.assert_allclose(found, np.exp(given), rtol=1e-14)
    assert divided == [2, 2]


@pytest.mark.parametrize("count", [2, 3])
def test_parts_make_the_whole(count, threads, divided):
    f = tg.jit(several)
    threads(1)
    alone = f(X)
    assert divided == []
    threads(count)
    together = f(X)
    assert divided
    assert set(divided) <= set(range(2, count + 1))
    for a, b, eager in zip(alone, together, several(X), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-13)
        np.testing.assert_allclose(b, eager, rtol=1e-12)
    again = f(X)
    assert all(np.array_equal(a, b) for a, b in zip(together, again, strict=True))


def test_gradients_are_divided(threads, divided):
    f = tg.jit(tg.value_and_grad(lambda x: np.sum(np.log1p(np.exp(x)))))
    threads(1)
    value, gradient = f(X)
    threads(2)
    shared_value, shared_gradient = f(X)
    assert divided
    assert shared_value == pytest.approx(value, rel=1e-13)
    assert np.array_equal(shared_gradient, gradient)


def test_arguments_that_need_the_long_form(threads):
    """A part that meets an argument out of the short form's reach repeats itself alone."""
    x = X.copy()
    x[0, 0], x[-1, -1] = 1e300, np.inf
    f = tg.jit(lambda x: np.sin(x) * 2.0)
    with np.errstate(invalid="ignore"):
        expected = np.sin(x) * 2.0
    threads(2)
    np.testing.assert_allclose(f(x), expected, rtol=1e-13)


@pytest.mark.parametrize("problem", [MemoryError, RuntimeError, NotCompiled])
def test_whoever_gets_no_threads_works_alone(problem, threads, monkeypatch):
    def refused(frames):
        raise problem

    f = tg.jit(several)
    threads(1)
    expected = f(X)  # what is traced uses threads, too
    threads(2)
    monkeypatch.setattr(thread_pool, "call", refused)
    for a, b in zip(f(X), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_an_interrupt_is_raised_after_the_work(threads, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in case it is ignored

    def interrupted(frames):
        raise KeyboardInterrupt

    f = tg.jit(lambda x: np.sum(np.sin(x)))
    threads(1)
    f(X)
    threads(2)
    monkeypatch.setattr(thread_pool, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(X)
    signal.signal(signal.SIGINT, before)


def test_strange_threads_work_alone(threads):
    """What they would wait for might wait for them."""
    f = tg.jit(lambda x: np.sum(np.sin(x)))

    @numba.njit(parallel=True)
    def sums(x):
        out = np.empty(4)
        for i in numba.prange(4):
            out[i] = f.njit(x)
        return out

    threads(2)
    np.testing.assert_allclose(sums(X), np.sum(np.sin(X)), rtol=1e-12)


def test_short_nests_are_not_divided(threads, divided):
    f = tg.jit(lambda x: np.sum(np.sin(x)))
    threads(2)
    f(X[:10])
    assert divided == []
