"""Compiled functions called from Numba's: types, results, shapes, branches, threads, failures."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import tapegrad as tg
from tapegrad.compiler.front.dispatch_cache import CallError

pytestmark = pytest.mark.tapegrad_only("no other library has this")


def counted(f):
    """A function that counts how often Python runs it."""

    def g(*args):
        g.count += 1
        return f(*args)

    g.count = 0
    return g


@numba.njit
def call(f, *args):
    return f(*args)


@numba.njit(nogil=True)
def each(f, xs):
    total = 0.0
    for k in range(len(xs)):
        total += f(xs[k])
    return total


# -- arguments and results ---------------------------------------------------------------------


square_sum = tg.jit(tg.value_and_grad(lambda x, a: (a * x * x).sum()))


@numba.njit
def by_name(x):
    value, gradient = square_sum.njit(x, 2)  # as `f.njit`
    same, _ = square_sum(x, 2.0)  # and as `f`
    return value + same, gradient


def test_it_is_called_by_name_in_nopython_code():
    value, gradient = by_name(np.arange(3.0))
    assert value == 20.0
    np.testing.assert_array_equal(gradient, [0.0, 4.0, 8.0])
    assert gradient.dtype == np.float64


def test_in_python_it_is_the_function():
    assert square_sum.njit(np.ones(2), 3.0)[0] == 6.0
    assert "square_sum" not in repr(square_sum.njit)
    assert repr(tg.jit(np.sin).njit) == "<sin for Numba>"


def test_shapes_are_compiled_once_each():
    python = counted(lambda x: (x * x).sum())
    f = tg.jit(python)
    for n in (5, 0, 1, 7, 5, 1, 0):
        assert call(f.njit, np.full(n, 2.0)) == 4.0 * n
    assert python.count == 5, "four shapes and the probe"
    for n in range(100, 160):
        assert call(f, np.ones(n)) == n
    before = python.count
    for n in range(100, 160):
        assert call(f, np.ones(n)) == n
    assert python.count == before


def test_many_kinds_of_results():
    def f(x, a):
        return x + a, (x.sum() * a, None, 3), (x > a), x, (a > 1.0, 2.5), x

    x = np.arange(6.0).reshape(2, 3)
    wanted, found = f(x, 2.0), call(tg.jit(f).njit, x, 2.0)
    assert [type(part) for part in found] == [type(part) for part in wanted]
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[1] == wanted[1]
    np.testing.assert_array_equal(found[2], wanted[2])
    assert found[2].dtype == bool
    np.testing.assert_array_equal(found[3], x)
    assert not np.shares_memory(found[3], x), "results are fresh"
    assert found[4] == (True, 2.5)


ELEMENTS = [np.float32, np.int64, np.int32, np.int8, np.uint8, np.uint64, np.bool_]


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_element_types(dtype):
    x = np.array([[0, 1], [1, 1]], dtype)
    for found, wanted in zip(call(moved_and_added, x, x), moved_and_added.function(x, x)):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype == dtype


moved_and_added = tg.jit(lambda x, y: (x + y, x, y.T, x[:, ::-1], x[:, None]))


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_sums_of_element_types(dtype):
    x = np.array([[1, 0, 1], [1, 1, 0]], dtype)
    whole, rows = call(sums, x)
    assert whole == 4
    np.testing.assert_array_equal(rows, [2, 2])
    assert rows.dtype == np.sum(x, axis=1).dtype


sums = tg.jit(lambda x: (x.sum(), np.sum(x, axis=1)))


def test_sums_of_integers_are_exact():
    x = np.array([2**62, 1, -3])
    assert call(sums.njit, x[:, None])[0] == 2**62 - 2
    assert each(sums_alone, np.ones((3, 4), np.int64)) == 12.0


sums_alone = tg.jit(lambda x: x.sum())


def test_single_precision():
    x = np.array([0.5, -1.5, 2.0], np.float32)
    value, gradient = call(tg.jit(tg.value_and_grad(lambda x: (x * x).sum())).njit, x)
    assert value == 6.5
    np.testing.assert_array_equal(gradient, 2 * x)
    assert gradient.dtype == np.float32
    found = call(scaled, np.float32(0.1), x)  # a number does not widen an array, as in NumPy
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.float32(0.1) * x)
    assert call(scaled, np.float32(0.1), 1.0) == float(np.float32(0.1))
    np.testing.assert_array_equal(call(multiplied, x[None], x[:, None]), [[6.5]])


scaled = tg.jit(lambda a, x: a * x)
multiplied = tg.jit(lambda a, b: a @ b)


@pytest.mark.parametrize("dtype", [np.float64, *ELEMENTS])
def test_numbers_of_element_types_are_returned(dtype):
    first = call(tg.jit(lambda x: x[0]), np.ones(3, dtype))
    assert first == 1
    assert type(first) is {"f": float, "b": bool}.get(np.dtype(dtype).kind, int)


@pytest.mark.parametrize("x", [2, 2.0, True, np.float32(2.0), np.int8(2)], ids=repr)
def test_numbers_arrive_as_floats(x):
    assert call(halved, x) == float(x) / 2


halved = tg.jit(lambda x: x / 2)


def test_read_only_arrays_and_arrays_of_one_element():
    f = tg.jit(lambda x, y: (x * y).sum())
    x = np.arange(3.0)
    x.flags.writeable = False
    assert call(f, x, np.array(2.0)) == 6.0


def test_results_are_freed():
    _nrt_python.memsys_enable_stats()
    f = tg.jit(lambda x: (x, x * 2.0, x.sum()))

    @numba.njit
    def use(x, n):
        for _ in range(n):
            whole, twice, _ = f(x)
            x = 0.5 * (whole + twice) - 0.5 * whole
        return x

    x = np.ones(50)
    use(x, 1)
    before = rtsys.get_allocation_stats()
    kept = use(x, 100)
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free + 1
    assert kept.shape == (50,)


# -- what is refused ---------------------------------------------------------------------------


def test_arrays_that_are_not_in_c_order():
    with pytest.raises(TypingError, match=r"argument 0.*pass `np.ascontiguousarray"):
        call(square_sum, np.ones(6)[::2], 1.0)
    with pytest.raises(TypingError, match=r"pass `np.ascontiguousarray"):
        call(square_sum, np.ones((2, 3)).T, 1.0)


@pytest.mark.parametrize("x", [1j, np.ones(2, complex), "x", (1.0, 2.0)], ids=repr)
def test_what_is_no_real_number(x):
    with pytest.raises(TypingError, match="takes real numbers and arrays of them"):
        call(halved, x)


def test_arguments_by_name():
    @numba.njit
    def named(x):
        return halved(x=x)

    with pytest.raises(TypingError, match="its arguments are positional"):
        named(1.0)


def test_results_that_need_python_objects():
    with pytest.raises(TypingError, match="returns a dict"):
        call(tg.jit(lambda x: {"a": x}), 1.0)
    with pytest.raises(TypingError, match="a constant of the type str"):
        call(tg.jit(lambda x: (x, "a")), 1.0)


def test_a_function_that_no_made_up_shape_fits():
    f = tg.jit(lambda x: x.reshape(3, 5) @ np.ones(5))
    with pytest.raises(TypingError, match="call it once from Python"):
        call(f, np.ones(15))
    f(np.ones(15))
    again = numba.njit(call.py_func)  # Numba remembers what it could not compile
    np.testing.assert_array_equal(again(f, np.ones(15)), np.full(3, 5.0))


def test_an_earlier_call_of_another_dtype_tells_the_shapes():
    weights = np.ones((2, 7))
    f = tg.jit(lambda x: weights @ x)
    f(np.ones(7))
    found = call(f, np.ones(7, np.float32))
    assert (found.tolist(), found.dtype) == ([7.0, 7.0], np.float64)


def test_static_arguments():
    f = tg.jit(lambda x, n: x**n, static_argnums=1)
    with pytest.raises(TypingError, match="has static arguments, which compiled code cannot pass"):
        call(f, 2.0, 3)


# -- branches and failures ---------------------------------------------------------------------


def test_branches_are_compiled_once_each():
    def python(x):
        if x > 1.0:
            return x * 2.0
        return -x if x < 0.0 else x * x

    f = counted(python)
    jitted = tg.jit(f)
    xs = np.random.default_rng(0).normal(size=1000)
    wanted = sum(python(x) for x in xs)
    assert each(jitted, xs) == pytest.approx(wanted)
    assert f.count == 3
    assert each(jitted, xs) == pytest.approx(wanted)
    assert f.count == 3


@pytest.mark.filterwarnings("ignore:.*branched in more than")
def test_too_many_branches_run_in_python():
    def python(x):
        for k in range(12):
            if x < k:
                return x + k
        return x

    xs = np.arange(12.0) - 0.5
    assert each(tg.jit(python), xs) == sum(map(python, xs))


def seven(x):
    if x.shape[0] == 7:
        raise ValueError("seven is not served")
    return x.sum() if x.shape[0] != 8 else x


failing = tg.jit(seven)


def test_what_python_raised_is_the_cause():
    assert call(failing, np.ones(3)) == 3.0
    for _ in range(2):
        with pytest.raises(CallError, match=r"`seven` could not be run.*seven is not") as caught:
            call(failing, np.ones(7))
        assert isinstance(caught.value.__cause__, ValueError)
    assert call(failing, np.ones(4)) == 4.0


def test_a_result_of_another_kind_is_an_error():
    with pytest.raises(CallError, match="must be of one kind for all arguments"):
        call(failing, np.ones(8))


def test_a_failure_can_be_caught_in_nopython_code():
    @numba.njit
    def careful(x):
        try:
            return failing.njit(x)
        except Exception:
            return -1.0

    assert (careful(np.ones(7)), careful(np.ones(2))) == (-1.0, 2.0)


# -- threads -----------------------------------------------------------------------------------


@numba.njit(parallel=True)
def rows(f, xs):
    found = np.zeros(len(xs))
    for k in numba.prange(len(xs)):
        found[k] = f(xs[k])
    return found


def test_prange():
    f = tg.jit(lambda x: (x * x).sum())
    for n in (4, 5):
        xs = np.random.default_rng(n).normal(size=(100, n))
        np.testing.assert_allclose(rows(f.njit, xs), (xs * xs).sum(1), rtol=1e-14)


def test_prange_tells_of_failures(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(str(args.exc_value)))
    np.testing.assert_array_equal(rows(failing, np.ones((10, 7))), np.zeros(10))
    assert told
    assert all("seven is not served" in text for text in told)
    assert rows(failing, np.ones((10, 3))).sum() == 30.0


def test_threads_meet_new_shapes_and_branches_at_once():
    @numba.njit(nogil=True)
    def work(f, seed):
        np.random.seed(seed)
        wrong = 0
        for _ in range(3000):
            n = np.random.randint(1, 12)
            x = np.full(n, np.random.normal())
            wrong += abs(f(x) - n * abs(x[0])) > 1e-9
        return wrong

    python = counted(lambda x: x.sum() if x[0] > 0 else -x.sum())
    f = tg.jit(python).njit
    barrier = threading.Barrier(4)

    def run(seed):
        barrier.wait()
        return work(f, seed)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [0] * 4
    assert python.count < 200


def test_nothing_of_numba_is_imported_before_it_is_wanted():
    code = (
        "import sys, tapegrad as tg; f = tg.jit(lambda x: x * 2); f(1.0);"
        "print('numba' in sys.modules); f.njit; print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_code_is_not_stored_on_disk():
    @numba.njit(cache=True)
    def stored(x):
        return halved.njit(x)

    with pytest.warns(numba.core.errors.NumbaWarning, match="Cannot cache compiled function"):
        assert stored(4.0) == 2.0


def test_constant_results():
    kept = np.array([5.0, 6.0])
    f = tg.jit(lambda x: (x * 2, kept, (np.float32(2.5), 3, True, -0.5, None)))

    @numba.njit
    def call(x):
        return f.njit(x)

    for _ in range(2):
        found = call(np.ones(2))
        np.testing.assert_array_equal(found[1], [5.0, 6.0])
        assert found[2] == (2.5, 3, True, -0.5, None)
        found[1][0] = 7.0
    unfit = tg.jit(lambda x: kept.astype(complex))
    with pytest.raises(TypingError, match=r"type ndarray of complex128\. .* dtypes float64"):
        numba.njit(lambda x: unfit.njit(x))(1.0)
