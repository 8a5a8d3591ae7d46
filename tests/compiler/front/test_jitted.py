"""What users rely on of `tapegrad.jit`: signatures, guards, forms of values, threads, bad input."""

import gc
import sys
import threading
import warnings
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.front.jitted import MOST, CacheInfo

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([1.0, 2.0, 3.0])


def squares(x):
    return np.sum(x * x)


def info(f):
    return tuple(f.cache_info())


# -- signatures --------------------------------------------------------------------------------


def test_one_trace_serves_a_signature():
    runs = []
    f = tg.jit(lambda x: (runs.append(1), x * 2)[1])
    for scale in (1.0, 2.0, -3.0):
        np.testing.assert_array_equal(f(scale * X), 2 * scale * X)
    assert len(runs) == 1
    assert info(f) == (1, 1, 0)


@pytest.mark.parametrize(
    "other",
    [np.ones(4), np.ones((3, 1)), np.ones(3, np.float32), np.ones(3, np.int64), 2.0, tg.ones(3)],
    ids=["length", "rank", "float32", "int64", "float", "Tensor"],
)
def test_another_shape_dtype_or_kind_is_traced_anew(other):
    f = tg.jit(lambda x: x + x)
    f(X)
    found = f(other)
    assert info(f) == (2, 2, 0)
    assert type(found) is type(other)
    np.testing.assert_array_equal(np.asarray(found), 2 * np.asarray(other))
    np.testing.assert_array_equal(f(X), 2 * X)
    assert info(f) == (2, 2, 0)


def test_python_ints_bools_and_strings_are_part_of_the_signature():
    f = tg.jit(lambda x, n, flag, name: {name: x**n if flag else x})
    assert f(2.0, 3, True, "a") == {"a": 8.0}
    assert f(2.0, 2, True, "a") == {"a": 4.0}
    assert f(2.0, 2, False, "a") == {"a": 2.0}
    assert f(2.0, 2, False, "b") == {"b": 2.0}
    assert f(3.0, 2, True, "a") == {"a": 9.0}
    assert info(f) == (4, 4, 0)


def test_one_and_true_are_different_statics():
    f = tg.jit(lambda x, n: (x, n))
    assert f(1.0, 1) == (1.0, 1)
    found = f(1.0, True)
    assert found == (1.0, True)
    assert type(found[1]) is bool


def test_arguments_by_name():
    f = tg.jit(lambda x, *, scale=2.0, power=1: scale * x**power)
    assert f(3.0) == 6.0
    assert f(3.0, scale=3.0) == 9.0
    assert f(x=3.0, scale=3.0) == 9.0
    assert f(3.0, power=2, scale=0.5) == 4.5


def test_methods_and_their_instances():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @tg.jit
        def value(self, x):
            return self.scale * x

    a, b = Model(2.0), Model(5.0)
    assert (a.value(3.0), b.value(3.0), a.value(1.0)) == (6.0, 15.0, 2.0)


@pytest.mark.parametrize(
    "x",
    [X[::-1], X[:, None].T, np.asfortranarray(np.ones((3, 4))), np.arange(12.0).reshape(3, 4)[:, 1],
     X.astype(">f8"), np.broadcast_to(np.array(2.0), (3, 2)), np.ones((2, 0))],
    ids=["reversed", "transposed", "fortran", "column", "big-endian", "broadcast", "empty"],
)  # fmt: skip
def test_arrays_of_any_layout(x):
    f = tg.jit(lambda x: (x * 2, np.sum(x)))
    for _ in range(2):
        doubled, total = f(x)
        np.testing.assert_array_equal(doubled, 2 * x)
        assert total == np.sum(x)


def test_read_only_and_unaligned_arrays():
    f = tg.jit(lambda x: x + 1)
    fixed = X.copy()
    fixed.flags.writeable = False
    crooked = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64)
    for x in (X, fixed, crooked):
        np.testing.assert_array_equal(f(x), X + 1)


def test_results_are_fresh():
    """Nothing that is returned shares memory with an argument, a constant or another result."""
    constant = np.array([5.0])
    f = tg.jit(lambda x: (x, x, x[1:], constant, x * 2))
    first, again = f(X), f(X)
    for found in (*first, *again):
        assert found.flags.writeable
        assert not np.shares_memory(found, X)
        assert not np.shares_memory(found, constant)
    first[3][0] = 7.0
    assert f(X)[3][0] == 5.0


# -- static arguments --------------------------------------------------------------------------


def test_static_arguments_are_told_apart_by_value():
    f = tg.jit(lambda x, n: np.sum(x) if n == 2.0 else np.prod(x), static_argnums=1)
    assert f(X + 1, 2.0) == 9.0
    assert f(X + 1, 3.0) == 24.0
    assert info(f) == (2, 2, 0)


def test_static_arguments_by_name_and_from_the_end():
    f = tg.jit(lambda x, kind="sum": getattr(np, kind)(x), static_argnames="kind")
    assert (f(X, kind="sum"), f(X, kind="max"), f(X)) == (6.0, 3.0, 6.0)
    g = tg.jit(lambda x, ways: ways[0](x), static_argnums=-1)
    assert g(X, (np.sum,)) == 6.0


def test_functions_are_static_by_themselves():
    f = tg.jit(lambda g, x: g(x))
    np.testing.assert_array_equal(f(np.sin, X), np.sin(X))
    np.testing.assert_array_equal(f(np.cos, X), np.cos(X))


def test_a_static_argument_that_cannot_be_hashed_is_refused():
    with pytest.raises(
        TypeError, match=r"`jit`: a static argument of <lambda> has the type list.*hashed"
    ):
        tg.jit(lambda x, n: x, static_argnums=1)(X, [1, 2])


# -- pytrees and the forms of values -----------------------------------------------------------


class Point(NamedTuple):
    x: object
    y: object


def test_pytrees_in_and_out():
    f = tg.jit(lambda p, d: {"sum": p.x + d["k"][0], "point": Point(p.y, [d["k"], None])})
    found = f(Point(1.0, X), {"k": (2.0, X)})
    assert found["sum"] == 3.0
    assert type(found["point"]) is Point
    np.testing.assert_array_equal(found["point"].x, X)
    assert found["point"].y[1] is None
    assert f(Point(2.0, X), {"k": (2.0, X)})["sum"] == 4.0
    assert info(f) == (1, 1, 0)


@pytest.mark.parametrize("x", [2.0, X, tg.tensor(X), np.float64(2.0), np.int64(2), np.array(2.0)])
def test_values_come_back_in_the_form_of_the_arguments(x):
    """A number for a number (a float for 0-d floats), an array for an array, and Tensors."""
    f = tg.jit(lambda x: x + x)
    plain = isinstance(x, float) or (isinstance(x, np.ndarray) and not x.ndim)
    for _ in range(2):
        found = f(x)
        assert type(found) is (float if plain else type(x))
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x) * 2)


def test_constants_are_returned_as_they_are():
    given = (1, 2.5, "a", True, None, 3 + 1j, np.int32(4))
    f = tg.jit(lambda x: (x, given))
    for _ in range(2):
        assert f(1.0) == (1.0, given)
    assert [type(x) for x in f(1.0)[1]] == [type(x) for x in given]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "bool", "float32", "float64"])
def test_reductions_of_every_dtype(kind):
    x = np.array([[1, 0, 3], [1, 2, 0]]).astype(kind)

    def f(x):
        return x.sum(), x.any(), x.all(), x.argmax(), x.cumsum(1), (x > 0).sum(), x.max()

    found, eager = tg.jit(f)(x), f(tg.tensor(x))
    for a, b in zip(found, eager, strict=True):
        np.testing.assert_array_equal(a, b.numpy())
        assert np.asarray(a).dtype == b.numpy().dtype


NUMBERS = {
    "itself": lambda f: f,
    "grad": tg.grad,
    "value_and_grad": tg.value_and_grad,
    "jacobian": tg.jacobian,
    "value and derivative": lambda f: lambda x: tg.jvp(f, (x,), (x,)),
}


@pytest.mark.parametrize("x", [np.float32(0.1), np.float32([0.1, 0.2])], ids=["number", "array"])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_float32_stay_numbers_of_float32(name, x):
    f = NUMBERS[name](lambda x: np.sum(np.sin(x)))
    found, expected = [y if isinstance(y, tuple) else (y,) for y in (tg.jit(f)(x), f(x))]
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_integers_wrap_around_as_everywhere():
    f = tg.jit(lambda x: x + x)
    np.testing.assert_array_equal(f(np.array([1, 200], np.uint8)), np.array([2, 144], np.uint8))
    np.testing.assert_array_equal(f(np.array([100], np.int8)), np.array([-56], np.int8))


# -- guards ------------------------------------------------------------------------------------


def halvings(x):
    count = 0
    while x > 1:
        x = x / 2
        count += 1
    return x, count


def test_python_branches_are_guarded():
    f = tg.jit(halvings)
    for x in (1.5, 3.0, 30.0, 1.2, 0.5, 31.0):
        assert f(x) == halvings(x)
    assert info(f) == (1, 4, 0)


def test_numbers_that_python_is_told_are_guarded():
    f = tg.jit(lambda x, k: x[: int(k)] * float(k))
    for k in (np.int64(2), np.int64(1), np.int64(2)):
        np.testing.assert_array_equal(f(X, k), X[:k] * k)


def test_a_guard_of_nan_and_of_signed_zeros():
    f = tg.jit(lambda x: x.item())
    assert np.isnan(f(np.nan))
    assert np.isnan(f(np.nan))
    assert np.signbit(f(-0.0))
    assert not np.signbit(f(0.0))
    assert info(f) == (1, 3, 0)


def test_after_so_many_traces_it_runs_eagerly_with_one_warning():
    f = tg.jit(lambda x: np.sum(x[: int(x[0])]))
    for k in range(MOST):
        assert f(np.full(12, float(k))) == k * k
    assert info(f) == (1, MOST, 0)
    with pytest.warns(UserWarning, match="branched in more than 8 ways") as said:
        assert f(np.full(12, 10.0)) == 100.0
    assert [warning.filename for warning in said] == [__file__]
    assert f"asked for at {__file__}:" in str(said[0].message)
    assert "`np.sin(t)` for `math.sin(t)`" in str(said[0].message)
    assert info(f) == (1, MOST, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(np.full(12, 11.0)) == 121.0
        assert f(np.full(12, 2.0)) == 4.0
        assert f(np.full(13, 3.0)) == 9.0  # another signature
    assert info(f) == (2, MOST + 1, 1)


def test_guards_under_a_gradient():
    f = tg.jit(tg.grad(lambda x: x**2 if x > 1 else 3 * x))
    assert [f(x) for x in (2.0, 0.5, 4.0, -1.0)] == [4.0, 3.0, 8.0, 3.0]
    assert info(f) == (1, 2, 0)


# -- writing in place, random numbers, escapes -------------------------------------------------


def test_indexed_assignment_and_views_inside():
    def f(x):
        y = x * 1
        y[0] = 5.0
        tail = y[1:]
        tail += y[0]
        y[-1] = y[0] * x[1]
        return y, tail

    def expected(x):
        y = x.copy()
        y[0] = 5.0
        y[1:] += 5.0
        y[-1] = 5.0 * x[1]
        return y, y[1:]

    jitted = tg.jit(f)
    for x in (X, -X):
        for a, b in zip(jitted(x), expected(x), strict=True):
            np.testing.assert_array_equal(a, b)


def write_first(x):
    x[0] = 7.0
    return x


def add_one(x):
    x += 1
    return x


def write_view(x):
    x[1:].mul_(2.0)
    return x


@pytest.mark.parametrize("write", [write_first, add_one, write_view])
@pytest.mark.parametrize("x", [X, tg.tensor(X)], ids=["array", "Tensor"])
def test_writing_into_an_argument_is_an_error(write, x):
    for f in (tg.jit(write), tg.jit(tg.vjp), tg.jit(tg.grad(lambda x: write(x).sum()))):
        args = (write, x) if f.function is tg.vjp else (x,)
        with pytest.raises(RuntimeError, match=r"memory of an argument is the caller's.*clone"):
            f(*args)
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0, 3.0])


def test_the_random_numbers_of_the_library_are_refused():
    for draw in (lambda: tg.rand(3), lambda: tg.randn(3), lambda: tg.randint(0, 5, (3,))):
        with pytest.raises(RuntimeError, match=r"random numbers.*draw them outside"):
            tg.jit(lambda x, draw=draw: x + draw())(X)


def test_a_traced_value_that_escapes_names_where_it_was_made():
    kept = []
    tg.jit(lambda x: (kept.append(x * 2), x)[1])(X)
    (t,) = kept
    for use in (lambda: t + 1, lambda: t.sum().item(), lambda: t[0], lambda: t.numpy()):
        with pytest.raises(RuntimeError, match=r"test_jitted\.py:\d+"):
            use()
    kept.clear()
    tg.jit(lambda x: (kept.append(x.sum()), x)[1])(X)
    for use in (lambda: float(kept[0]), lambda: bool(kept[0] > 1), lambda: bool(kept[0])):
        with pytest.raises(RuntimeError, match=r"test_jitted\.py:\d+"):
            use()


def test_values_cannot_be_turned_into_arrays():
    for f in (lambda x: np.asarray(x), lambda x: x.numpy(), lambda x: np.array([x[0], x[1]])):
        with pytest.raises(RuntimeError, match=r"`tapegrad\.jit` cannot be turned into an array"):
            tg.jit(f)(X)


@pytest.mark.parametrize(
    "f",
    [lambda x: x[x > 1], np.nonzero, lambda x: np.packbits(x > 1)],
    ids=["mask", "nonzero", "packbits"],
)
def test_what_needs_the_values_speaks_of_jit(f):
    with pytest.raises(RuntimeError, match=r"inside `tapegrad\.jit`"):
        tg.jit(f)(X)


# -- what is captured --------------------------------------------------------------------------


def test_a_captured_array_is_a_constant_of_the_trace():
    held = np.array([1.0, 2.0, 3.0])
    f = tg.jit(lambda x: x + held)
    np.testing.assert_array_equal(f(X), X + [1.0, 2.0, 3.0])
    held[0] = 100.0
    np.testing.assert_array_equal(f(X), X + [1.0, 2.0, 3.0])
    f.clear_cache()
    np.testing.assert_array_equal(f(X), X + held)


def test_a_captured_tensor_that_changes_is_traced_anew():
    held = tg.tensor([1.0, 2.0, 3.0])
    f = tg.jit(lambda x: x + held)
    np.testing.assert_array_equal(f(X), X + [1.0, 2.0, 3.0])
    held[0] = 100.0
    np.testing.assert_array_equal(f(X), X + [100.0, 2.0, 3.0])
    assert info(f) == (1, 1, 0)


def test_a_captured_tensor_that_requires_grad_gets_its_gradient():
    held = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    f = tg.jit(lambda x: (x * held).sum())
    for _ in range(2):
        f(tg.tensor(X)).backward()
    np.testing.assert_array_equal(held.grad.numpy(), 2 * X)


# -- the cache, and what is compiled -----------------------------------------------------------


def test_the_cache_can_be_cleared():
    f = tg.jit(lambda x: x * 2)
    f(X), f(1.0)
    assert f.cache_info() == CacheInfo(signatures=2, traces=2, eager=0)
    f.clear_cache()
    assert info(f) == (0, 0, 0)
    np.testing.assert_array_equal(f(X), 2 * X)


def test_the_lowered_text_and_callbacks():
    f = tg.jit(lambda x: np.sum(np.sin(x)) + np.median(x))
    lowered = f.lower(X)
    assert "sin" in lowered.as_text()
    assert "-> result 0" in lowered.as_text()
    assert info(f) == (1, 1, 0)
    assert tg.jit(squares).lower(X).callbacks == ()


def test_an_error_leaves_nothing_half_cached():
    fails = [True]

    def f(x):
        if fails:
            raise ZeroDivisionError("by me")
        return x * 2

    jitted = tg.jit(f)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="by me"):
            jitted(X)
        assert jitted.cache_info().traces == 0
    fails.clear()
    np.testing.assert_array_equal(jitted(X), 2 * X)
    assert info(jitted) == (1, 1, 0)
    np.testing.assert_array_equal(tg.grad(squares)(X), 2 * X)  # no level was left open


def test_an_error_of_a_computation_is_raised_again_and_again():
    f = tg.jit(lambda a: np.linalg.cholesky(a))
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(f(good), np.linalg.cholesky(good))
    for _ in range(3):
        with pytest.raises(Exception, match=r"(?i)positive"):
            f(-good)
        np.testing.assert_allclose(f(good), np.linalg.cholesky(good))


def test_programs_are_freed_with_their_function():
    f = tg.jit(lambda x: x * 3)
    f(X)
    program = weakref.ref(next(iter(f._specializations.values()))[0].program.kept)
    del f
    gc.collect()
    assert program() is None


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "what"), [(np.array(["a"]), "<U1"), ([{1, 2}], "set")])
def test_arguments_that_cannot_be_compiled_are_refused(x, what):
    with pytest.raises(TypeError, match=rf"`jit`: an argument of <lambda> has the .*{what}"):
        tg.jit(lambda x: x)(x)


def test_complex_arguments_and_results():
    """They are computed by calls back into Python, and are differentiated like any."""
    z = X + 1j * X[::-1]
    for f in (lambda z: np.exp(z) * 2, lambda z: np.abs(np.fft.fft(z)), lambda z: z.real * z[0]):
        np.testing.assert_allclose(tg.jit(f)(z), f(z))
        np.testing.assert_allclose(tg.jit(f)(z.astype(np.complex64)), f(z), rtol=1e-5)
    size = lambda z: (np.abs(z) ** 3).sum()
    np.testing.assert_allclose(tg.jit(tg.grad(size))(z), 3 * np.abs(z) * z)


def test_results_that_are_not_arrays_are_refused():
    with pytest.raises(TypeError, match=r"<lambda> must return arrays.*got a leaf of type set"):
        tg.jit(lambda x: {1, 2})(X)
    with pytest.raises(TypeError, match=r"leaf of type generator"):
        tg.jit(lambda x: (x for _ in range(3)))(X)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="`jit`"):
        tg.jit(3)


def test_endless_recursion_is_reported_and_harmless():
    def f(x):
        return f(x)

    before = sys.getrecursionlimit()
    jitted = tg.jit(f)
    for _ in range(2):
        with pytest.raises(RecursionError, match=r"`jit`: .* deeper than Python allows"):
            jitted(X)
    assert jitted.cache_info().traces == 0
    assert sys.getrecursionlimit() == before
    assert tg.jit(squares)(X) == 14.0


def test_a_wrong_call_is_pythons_own_error():
    f = tg.jit(lambda x, y: x + y)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f(X)
    with pytest.raises(RuntimeError, match="do not broadcast"):
        f(X, np.ones(2))


# -- threads -----------------------------------------------------------------------------------


def in_threads(count, work):
    errors = []
    barrier = threading.Barrier(count)

    def run(k):
        barrier.wait()
        try:
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_threads_call_and_compile_at_once():
    f = tg.jit(tg.value_and_grad(lambda x: np.sum(np.sin(x) * x)))

    def work(k):
        for n in range(1, 6):
            x = np.arange(float(n)) + k
            for _ in range(20):
                value, gradient = f(x)
                np.testing.assert_allclose(value, np.sum(np.sin(x) * x))
                np.testing.assert_allclose(gradient, np.sin(x) + x * np.cos(x))

    in_threads(4, work)
    assert f.cache_info().signatures == 5


def test_threads_with_guards_and_large_scratch():
    f = tg.jit(
        lambda x: np.sum(np.flip(np.cumsum(x)) @ np.ones((len(x), 3))) if x[0] > 0 else -x[0]
    )

    def work(k):
        x = np.full(3000, 1.0 if k % 2 else -1.0)
        for _ in range(20):
            assert f(x) == (3 * 3000 * 3001 / 2 if k % 2 else 1.0)

    in_threads(4, work)
    assert f.cache_info().traces == 2


def test_a_trace_in_one_thread_does_not_touch_another():
    inside, done = threading.Event(), threading.Event()

    def slow(x):
        inside.set()
        assert done.wait(30)
        return x * 2

    def work(k):
        if k:
            np.testing.assert_array_equal(tg.jit(slow)(X), 2 * X)
        else:
            assert inside.wait(30)
            np.testing.assert_array_equal(tg.grad(squares)(X), 2 * X)
            assert tg.jit(squares)(X) == 14.0
            done.set()

    in_threads(2, work)
