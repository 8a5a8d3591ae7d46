"""Gradients within a limit of memory: the loops that are run again in segments, and those not."""

import ctypes
import functools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from bench.njit import programs
from tapegrad.kernels import build
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import DerivativeProgram, Request
from tapegrad.njit.evaluation import Call, Evaluator, program_of
from tests.njit.random_programs import SHORT_ONES, program

pytestmark = pytest.mark.tapegrad_only("no other library has this")
SMALL = np.random.default_rng(0).normal(size=50) * 0.1


@njit
def decay(x, k, steps):
    s = 0.0
    for _ in range(steps):
        x = x - 1e-5 * k * math.sin(x)
        s += 1e-3 * x * x
    return s + x


@njit
def stencil(u, k, steps):
    u, v = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * k * (u[i - 1] + u[i + 1] - 2.0 * u[i]) * (1.0 + u[i] * u[i])
        u, v = v, u
    return np.sum(u * u)


@njit
def temporaries(x, k, steps):
    s, y = 0.0, x.copy()
    for _ in range(steps):
        z = np.sin(k * y)
        y[:] = y - 1e-4 * z
        s += 1e-3 * np.sum(z)
    return s


@njit
def inner_while(x, k, steps):
    s = 0.0
    for t in range(steps):
        y = x
        for _ in range(20):
            y -= (y * y * y - k) / (3.0 * y * y)
            if abs(y * y * y - k) < 1e-9:
                break
        if t % 3 == 0:
            continue
        x += 1e-5 * (y - x) * math.sin(x)
        s += 1e-3 * y
    return s + x


@njit
def branch_around(x, k, steps):
    y = math.exp(x)
    if x > 0.0:
        scale = k * y
        for t in range(steps):
            x = x - 1e-5 * math.sin(x * scale) * t / steps
    return x * y


@njit
def writes_after(x, k, steps):
    """The loop reads what is overwritten after it, and a path that it has only written."""
    weights, path = np.cos(k * np.arange(5)), np.zeros(steps)
    for t in range(steps):
        x = x - 1e-4 * weights[t % 5] * math.sin(x)
        path[t] = x
    weights[:] = x
    total = 0.0
    for t in range(0, steps, 7):
        total += path[t] * weights[t % 5]
    return total


CASES = [
    (decay, (0.5, 2.0, 100_000), 100_000),
    (decay, (0.5, 2.0, 1_000_000), 200_000),
    (stencil, (SMALL, 0.7, 4_000), 200_000),
    (temporaries, (SMALL, 0.7, 20_000), 1_500_000),
    (inner_while, (1.5, 2.0, 20_000), 200_000),
    (branch_around, (0.5, 2.0, 100_000), 100_000),
    (writes_after, (0.5, 2.0, 100_000), 2_100_000),
]


@pytest.mark.parametrize(("f", "args", "limit"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_are_bitwise_those_without_a_limit(f, args, limit):
    assert tg.explain(f, *args, argnums=(0, 1)).total_bytes > 1.3 * limit
    value, gradients = tg.value_and_grad(f, (0, 1))(*args)
    sparing, found = tg.value_and_grad(f, (0, 1), max_memory=limit)(*args)
    assert sparing == value
    for a, b in zip(gradients, found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arguments_that_are_never_written_are_no_state(tmp_path):
    """Not even with what they have: here the operating system lets nobody write."""

    @njit
    def driven(x, k, own, steps):
        state = np.zeros(len(x))
        places = state if own else x
        s = 0.0
        for _ in range(steps):
            for i in range(len(x)):
                state[i] = math.sin(state[i] + k * places[i])
                s += state[i] * places[i]
        return s

    SMALL[:6].tofile(tmp_path / "x")
    x = np.memmap(tmp_path / "x", mode="r")
    x = np.asarray(x).view(np.float64)
    found = tg.grad(driven, max_memory=20_000)(x, 0.5, False, 2000)
    np.testing.assert_array_equal(found, tg.grad(driven)(x, 0.5, False, 2000))


@pytest.fixture
def unvectorized(monkeypatch):
    """Sums of adjoints, which a vectorized loop adds up in another order, are in order."""
    monkeypatch.setattr(build, "assembled", functools.partial(build.assembled, level=0))
    monkeypatch.setattr(DerivativeProgram, "vectorizes", False)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 15, 16, 17, 100])
@pytest.mark.parametrize("f", [decay, branch_around, writes_after])
def test_any_number_of_trips(f, steps, unvectorized):
    assert_equal_with_checkpoints(f, (0.5, 2.0, steps), (0, 1))


def outcome_of(f, args, chosen, checkpoints):
    request = Request(marshalling.kinds_of(args), chosen, checkpoints=checkpoints)
    program = program_of(f, request)
    if checkpoints and not program.has_checkpoints:
        return None
    call, evaluator = Call(program, args, None, None), Evaluator(f, "grad")
    return call.outcome(call.run(evaluator, args))


def assert_equal_with_checkpoints(f, args, chosen):
    """Whether there are any checkpoints."""
    a, b = (outcome_of(f, args, chosen, checkpoints) for checkpoints in (False, True))
    if b is None:
        return False
    np.testing.assert_equal(b.value, a.value)
    for x, y in zip(a.gradients, b.gradients, strict=True):
        np.testing.assert_array_equal(x, y)
    return True


def test_programs(unvectorized):
    found = [
        assert_equal_with_checkpoints(f, args, (0,)) for f, args in programs.arguments().items()
    ]
    assert sum(found) == 10


def test_random_programs(unvectorized):
    found = []
    for seed in range(SHORT_ONES, SHORT_ONES + 10):
        f, args = program(seed)
        found.append(assert_equal_with_checkpoints(f, args, (0, 1, 2)))
    assert sum(found) >= 6


def test_states_of_small_elements_and_tuples(unvectorized):
    @njit
    def counts(pair, seen, steps):
        x = pair[0].copy()
        for t in range(steps):
            seen[t % 3] += 1
            for i in range(len(x)):
                x[i] = x[i] * np.float32(0.99) + pair[1][i] * seen[t % 3]
        return float(np.sum(x))

    pair = np.arange(3, dtype=np.float32), np.ones((3,))
    seen = np.zeros(3, np.int8)
    gradients = tg.grad(counts)(pair, seen, 300)
    assert assert_equal_with_checkpoints(counts, (pair, seen, 300), (0,))
    assert gradients[0].dtype == np.float32
    assert (seen == 0).all()


@njit
def until(x):
    while x > 0.1:
        x *= 1.0 - 1e-5 * math.sin(x)
    return x


@njit
def leaves(x):
    for _ in range(1_000_000):
        x *= 1.0 - 1e-5 * math.sin(x)
        if x < 0.1:
            break
    return x


@njit
def returns(x):
    for _ in range(1_000_000):
        x *= 1.0 - 1e-5 * math.sin(x)
        if x < 0.1:
            return x * x
    return x


@njit
def makes_its_state(x):
    y = np.full(3, x)
    for _ in range(100_000):
        y = y - 1e-5 * np.sin(y)
    return np.sum(y)


@pytest.mark.parametrize("f", [until, leaves, returns, makes_its_state])
def test_other_loops_are_refused_beyond_the_limit(f):
    with pytest.raises(MemoryError, match=r"more than 100 kB: raise `max_memory`.*segments"):
        tg.grad(f, max_memory=100_000)(0.5)
    assert np.isfinite(tg.grad(f)(0.5))


def test_a_segment_that_does_not_fit_is_refused():
    with pytest.raises(MemoryError, match="takes more than 10 kB"):
        tg.grad(decay, max_memory=10_000)(0.5, 2.0, 100_000)
    assert np.isfinite(tg.grad(decay, max_memory=100_000)(0.5, 2.0, 100_000))


def test_exceptions_of_the_function_are_raised():
    @njit
    def divides(x, n, at):
        for k in range(n):
            x = x * (1.0 + 1e-6 * math.sin(x)) / (at - k)
        return x

    gradient = tg.grad(divides, max_memory=50_000)
    with pytest.raises(ZeroDivisionError):
        gradient(0.5, 20_000, 15_000)


def test_strong_products_within_the_limit():
    @njit
    def roots(x, n):
        s = 0.0
        for k in range(n):
            root = math.sqrt(x * k)
            s += root if k > 0 else x
            x -= 1e-6 * math.sin(x)
        return s

    expected = tg.grad(roots)(0.5, 10_000)
    assert tg.grad(roots, max_memory=60_000)(0.5, 10_000) == pytest.approx(expected, rel=1e-13)


def test_memory_is_given_back():
    """What a call may take is enough, and twice the same call finds the same."""
    program = program_of(
        temporaries,
        Request(marshalling.kinds_of((SMALL, 0.7, 20_000)), (0, 1), False, checkpoints=True),
    )
    first = Call(program, [SMALL, 0.7, 20_000], None, None)
    out = ctypes.create_string_buffer(program.out_bytes)
    assert [program.call(first.words, out, 1_500_000) for _ in range(2)] == [0, 0]


def test_forward_mode_frees_what_a_trip_has_made():
    args, along = (np.ones(1000), 0.7, 3_000), (np.ones(1000), 1.0, 0)
    program = program_of(temporaries, Request(marshalling.kinds_of(args), (), moved=(0, 1)))
    call = Call(program, args, None, [along[0], 1.0, None])
    out = ctypes.create_string_buffer(program.out_bytes)
    assert program.call(call.words, out, 100_000) == 0
    step = 1e-6
    near = [temporaries(args[0] + h, 0.7 + h, 3_000) for h in (-step, step)]
    slope = (near[1] - near[0]) / (2 * step)
    assert tg.jvp(temporaries, args, along)[1] == pytest.approx(slope, rel=1e-6)


def test_forward_mode_keeps_what_another_trip_or_the_result_reads():
    @njit
    def newest(x, steps):
        y, z = x, x
        for _ in range(steps):
            w = np.sin(y)
            y, z = w * 0.5 + y, y
        return y + z

    x = np.array([0.1, 0.2])
    y, tangent = tg.jvp(newest, (x, 5), (np.ones(2), 0))
    np.testing.assert_array_equal(y, newest(x, 5))
    step = 1e-6
    slope = (newest(x + step, 5) - newest(x - step, 5)) / (2 * step)
    np.testing.assert_allclose(tangent, slope, rtol=1e-6)


def test_threads():
    gradient = tg.grad(decay, (0, 1), max_memory=100_000)
    points = np.linspace(0.1, 0.9, 8)
    expected = [tg.grad(decay, (0, 1))(x, 2.0, 50_000) for x in points]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda x: gradient(x, 2.0, 50_000), points)) == expected


def test_limit_in_nopython_code():
    gradient = tg.grad(decay, max_memory=100_000)

    @njit
    def called(x, n):
        return gradient.njit(x, 2.0, n)

    for n in (1000, 100_000):  # the second one in segments
        assert called(0.5, n) == tg.grad(decay)(0.5, 2.0, n)
    with pytest.raises(MemoryError, match="more memory than it may"):
        called(0.5, 100_000_000)


def test_segments_in_nopython_code_begin_anew():
    """What the first attempt has written is forgotten; the strong products come last."""

    @njit
    def logged(x, log, n):
        for k in range(n):
            log[k % 2] += math.sin(x[0])
            x[0] += 1e-4 * log[0] * x[1]
        return x[0] * log[1] + math.sqrt(x[2] * 0.0) * 0.0

    gradient = tg.grad(logged, max_memory=100_000)
    args = np.array([0.5, 0.2, 1.0]), np.zeros(2)

    @njit
    def called(x, log, n):
        return gradient.njit(x, log, n)

    for n in (100, 20_000):
        np.testing.assert_array_equal(called(*args, n), tg.grad(logged)(*args, n))


def test_limit_is_kept_by_pickling():
    gradient = pickle.loads(pickle.dumps(tg.grad(until, max_memory=100_000)))
    with pytest.raises(MemoryError, match="100 kB"):
        gradient(0.5)


def test_limits_that_are_none():
    for wrong in (1.5, True, "1 GB"):
        with pytest.raises(TypeError, match="`max_memory` is a number of bytes"):
            tg.grad(decay, max_memory=wrong)
    with pytest.raises(ValueError, match="a positive number of bytes"):
        tg.value_and_grad(decay, max_memory=0)
    with pytest.raises(TypeError, match=r"`grad`: `max_memory` is for functions under"):
        tg.grad(np.sum, max_memory=1000)


def test_an_earlier_call_leaves_as_much_to_later_ones():
    @njit
    def f(x, first, second):
        while first > 0:
            x, first = x - 1e-5 * math.sin(x), first - 1
        while second > 0:
            x, second = x - 1e-5 * math.sin(x), second - 1
        return x

    most = 20_000
    limited, free = tg.grad(f, max_memory=500_000), tg.grad(f)
    with pytest.raises(MemoryError):
        limited(1.0, most, most)
    for trips in ((most, 10), (10, most), (most, 10)):
        assert limited(1.0, *trips) == free(1.0, *trips)
