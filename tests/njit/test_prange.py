"""`prange` loops, whose trips threads share in both sweeps."""

import math
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba import njit, prange

import tapegrad as tg
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import Evaluator, program_of
from tests.njit.cases import collected_in, name_of
from tests.njit.checking import check, directions, floats

pytestmark = pytest.mark.tapegrad_only("no other library has this")
rng = np.random.default_rng(5)
X, W = rng.uniform(0.2, 1.0, 41), rng.uniform(0.2, 1.0, 5)
M, K = rng.uniform(0.2, 1.0, (13, 5)), rng.uniform(0.2, 1.0, (4, 5))
PLACES = rng.integers(0, 5, 41)
THREADS = sorted({1, numba.config.NUMBA_NUM_THREADS})
SHARED, SEQUENTIAL = [], []  # loops that threads share, and those in which trips follow each other
shared, sequential = collected_in(SHARED), collected_in(SEQUENTIAL)


@njit
def bent(t, w):
    return math.sin(t * w) + t


@shared(X, 1.3)
def total(x, a):
    s = 0.5
    for i in prange(len(x)):
        s += math.exp(-a * x[i])
    return s * s


@shared(X, W)
def written(x, w):
    """Each trip has a loop, a stack and an element of its own."""
    y = np.empty_like(x)
    for i in prange(len(x)):
        t = x[i]
        for j in range(len(w)):
            t = math.sin(t * w[j]) + 0.5 * t
        y[i] = t
    return (y * y).sum()


@shared(X, PLACES, W)
def gathered(x, places, w):
    """What several threads read: each sums up its adjoint on its own."""
    s = 0.0
    for i in prange(len(x)):
        s += math.exp(-w[places[i]] * x[i]) * w[0]
    return s


@shared(M, K)
def rows(x, means):
    n, d = x.shape
    y = np.zeros((n, d))
    s = 0.0
    for i in prange(n):
        best = 0.0
        for k in range(means.shape[0]):
            near = 0.0
            for j in range(d):
                near += (x[i, j] - means[k, j]) ** 2
            best += math.exp(-near)
            y[i, k % 2] = best
        s -= math.log(best)
    return s + (y * x).sum()


@shared(M)
def in_place(x):
    """Elements that are overwritten again and again are put back by the thread that wrote them."""
    y = x.copy()
    for i in prange(1, len(y) - 1):
        for _ in range(3):
            for j in range(1, y.shape[1]):
                y[i, j] = math.sin(y[i, j]) * y[i, j - 1] + y[i, -1]
            y[i, 0] *= y[i, 1]
    return (y * y).sum()


@shared(X)
def two_buffers(x):
    """A loop within a sequential one keeps its stacks from one time to the next."""
    a, b = x.copy(), np.zeros_like(x)
    for step in range(4):
        for i in prange(1, len(x) - 1):
            b[i] = math.sin(a[i - 1]) * a[i + 1] + step * a[i]
        for i in prange(len(x)):
            a[i] = b[i] * x[i]
    return a.sum()


@shared(X, 3)
def growing(x, steps):
    """A loop whose number of trips is another one each time."""
    s = 1.0
    for k in range(1, 4 * steps):
        part = 0.0
        for i in prange(k):
            part += math.sin(s * x[i])
        s += part / k
    return s


@shared(M)
def own_arrays(x):
    s = 0.0
    for i in prange(len(x)):
        row = x[i].copy()
        made = np.zeros(len(row))
        for j in range(len(row)):
            made[j] = math.exp(row[j] * row[0])
            row[j] = made[j] * x[0, j]
        s += (made * row).sum()
    return s


@shared(X, W)
def conditional(x, w):
    s, n = 0.0, 0
    for i in prange(len(x)):
        if x[i] > 0.5:
            s += bent(x[i], w[1])
            n += 1
        else:
            for j in range(len(w)):
                s += -x[i] * w[j]
    return s / n


@shared(X)
def until(x):
    """Loops in the trips that are left early."""
    s = 0.0
    for i in prange(len(x)):
        t, k = x[i], 0
        while t < 4.0:
            t = t * 1.5 + 0.1 * x[i]
            k += 1
            if k > 5:
                break
        s += t * t
    return s


@shared(X[:0], W)
@shared(X[:1], W)
def few(x, w):
    y = w * 2.0
    s = 1.0
    for i in prange(len(x)):
        s += x[i] * y[0]
    return s * y[1]


@shared(X)
def pairs(x):
    """Two elements to a trip; the array is read from behind as well."""
    y = np.zeros(2 * len(x))
    for i in prange(len(x)):
        y[2 * i] = math.sin(x[i])
        y[2 * i + 1] = x[len(x) - 1 - i] * y[2 * i]
    return (y * y).sum()


@shared(np.float32(X), np.float32(0.5))
def single(x, a):
    s = np.float32(0.0)
    for i in prange(len(x)):
        s += x[i] * x[i] * a
    return s


@shared(M, W)
def view_before(x, w):
    tail = x[2:]
    s = 0.0
    for i in prange(len(tail) - 1):
        for j in range(tail.shape[1]):
            s += tail[i, j] * tail[i + 1, j] * w[j]
    return s


def threaded(f):
    """The function for threads."""
    return njit(parallel=True)(f.py_func)


def uses_threads(f, args):
    return program_of(f, Request(marshalling.kinds_of(args), floats(args))).uses_threads


@pytest.fixture(params=THREADS)
def threads(request):
    before = numba.get_num_threads()
    numba.set_num_threads(request.param)
    yield request.param
    numba.set_num_threads(before)


@pytest.mark.parametrize(("f", "args", "options"), SHARED, ids=name_of)
def test_threads_share_the_trips(f, args, options, threads):
    """The gradient is that of forward mode and of differences; Hessian-vector products agree."""
    f = threaded(f)
    assert uses_threads(f, args)
    assert not tg.explain(f, *args).prange[0].reason
    exact = args[0].dtype == np.float64
    check(f, args, tolerance=1e-9 if exact else 1e-5, differences=exact)


SECOND = [case for case in SHARED if case[0].__name__ in ("gathered", "in_place", "two_buffers")]


@pytest.mark.parametrize(("f", "args", "options"), SECOND, ids=name_of)
def test_threads_carry_tangents(f, args, options, threads):
    along = directions(args, rng)
    got, wanted = [
        Evaluator(g, "hvp").run(args, floats(args), directions=along).gradient_tangents
        for g in (threaded(f), f)
    ]
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@sequential(X, PLACES)
def scattered(x, places):
    y = np.zeros(5)
    for i in prange(len(x)):
        y[places[i]] = x[i]
    return (y * y).sum()


@sequential(X)
def recurrence(x):
    t = 1.0
    for i in prange(len(x)):
        t = math.sin(t * x[i])
    return t


@sequential(X)
def neighbours(x):
    y = x.copy()
    for i in prange(1, len(y)):
        y[i] = y[i] * y[i - 1]
    return y.sum()


@sequential(X)
def product(x):
    p = 1.0
    for i in prange(len(x)):
        p *= x[i]
    return p


@sequential(M)
def common_buffer(x):
    buffer = np.zeros(x.shape[1])
    s = 0.0
    for i in prange(len(x)):
        for j in range(x.shape[1]):
            buffer[j] = x[i, j] * 2.0
        s += buffer[0] * buffer[1]
    return s


@sequential(X)
def same_element(x):
    y = np.zeros(3)
    for _ in prange(len(x)):
        y[0] = x[0]
    return y[0] * y[0]


@sequential(M)
def overlapping_rows(x):
    y = np.zeros(x.size)
    for i in prange(len(x)):
        for j in range(x.shape[1]):
            y[i + j] += x[i, j]
    return (y * y).sum()


@sequential(X)
def left_early(x):
    s = 0.0
    for i in prange(len(x)):
        if x[i] < 0.0:
            break
        s += x[i] * x[i]
    return s


@pytest.mark.parametrize(("f", "args", "options"), SEQUENTIAL, ids=name_of)
def test_what_trips_share_goes_one_by_one(f, args, options):
    """The adjoint is that of the loop in order, and `explain` says why there are no threads."""
    alone, f = f, threaded(f)
    assert not uses_threads(f, args)
    value, gradient = tg.value_and_grad(f)(*args)
    wanted = tg.value_and_grad(alone)(*args)
    assert value == wanted[0]
    np.testing.assert_array_equal(gradient, wanted[1])
    found = tg.explain(f, *args)
    assert found.prange[0].reason
    assert f"`prange` in line {found.prange[0].line.line} goes in one thread: " in repr(found)


def test_without_parallel_it_is_a_range():
    total = next(f for f, _, _ in SHARED if f.__name__ == "total")
    assert not uses_threads(total, (X, 1.3))
    assert not tg.explain(total, X, 1.3).prange


def test_exceptions_of_a_trip_are_raised():
    @njit(parallel=True)
    def divided(x):
        s = 0.0
        for i in prange(len(x)):
            s += 1.0 / x[i]
        return s

    gradient = tg.grad(divided)
    np.testing.assert_allclose(gradient(X), -1 / X**2)
    with pytest.raises(ZeroDivisionError):
        gradient(np.array([1.0, 2.0, 0.0, 4.0]))


def test_threads_share_the_memory_that_a_call_may_take():
    """Where that is too little, the loop is gone back through in segments, by one thread."""
    written = next(f for f, _, _ in SHARED if f.__name__ == "written")
    x = rng.uniform(0.2, 1.0, 5000)
    wanted = tg.grad(written)(x, W)
    for limit in (10_000_000, 300_000):
        np.testing.assert_allclose(tg.grad(threaded(written), max_memory=limit)(x, W), wanted)


def test_calls_from_several_threads():
    """Each call has stacks and sums of its own."""
    gathered = threaded(next(f for f, _, _ in SHARED if f.__name__ == "gathered"))
    gradient = tg.grad(gathered, (0, 2))
    points = [rng.uniform(0.2, 1.0, 41) for _ in range(40)]
    wanted = [gradient(x, PLACES, W) for x in points]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: gradient(x, PLACES, W), points))
    np.testing.assert_allclose([a for a, _ in found], [a for a, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose([b for _, b in found], [b for _, b in wanted], rtol=1e-12)
