"""Compiled functions as C function pointers: prototypes, SciPy, threads, branches, failures."""

import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import integrate

import tapegrad as tg
from tapegrad.compiler.front.cfunc import NOT_RUN, WRONG_SIZE

pytestmark = pytest.mark.tapegrad_only("no other library has this")


@pytest.fixture
def told(monkeypatch):
    """What `sys.unraisablehook` was told."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: found.append(str(args.exc_value)))
    return found


def doubles(a):
    return a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def at(function, values):
    values = np.asarray(values, float)
    return function.ctypes(len(values), doubles(values), None)


def test_nquad_calls_it_directly():
    def python(x, y):
        return np.exp(-x * y) * np.cos(x)

    made = tg.jit(python).cfunc("scipy", 0.0, 0.0).low_level_callable()
    found, _ = integrate.nquad(made, [[0, 1], [0, 2]])
    wanted, _ = integrate.nquad(python, [[0, 1], [0, 2]])
    assert found == pytest.approx(wanted, rel=1e-13)


def test_quad_calls_it_directly_with_parameters():
    made = tg.jit(lambda x, a: x**a).cfunc("scipy", 0.0, 0.0).low_level_callable()
    assert integrate.quad(made, 0, 1, args=(3.0,))[0] == pytest.approx(0.25)


def test_vectors_and_numbers_are_taken_one_after_another():
    f = tg.jit(lambda a, x, b, y: a * (x * x).sum() + b * y.sum())
    made = f.cfunc("scipy", 1.0, np.zeros(2), 1, np.zeros((1, 2)))
    assert at(made, [2.0, 1.0, 2.0, 3.0, 4.0, 5.0]) == 2 * 5.0 + 3 * 9.0


def test_another_number_of_values_is_refused(told):
    made = tg.jit(lambda x: x.sum()).cfunc("scipy", np.zeros(3))
    assert np.isnan(at(made, [1.0, 2.0]))
    assert len(told) == 1
    assert "made for arguments of the shapes ((3,),)" in told[0]


@pytest.fixture(scope="module")
def normal():
    precision = np.array([[2.0, 0.3], [0.3, 1.0]])
    return tg.jit(tg.value_and_grad(lambda x: -0.5 * x @ precision @ x)), precision


def sampled(made, x):
    gradient, value = np.full_like(x, np.nan), np.full(1, np.nan)
    status = made.ctypes(len(x), doubles(x), doubles(gradient), doubles(value), None)
    return status, value[0], gradient


def test_a_sampler_gets_value_and_gradient(normal):
    f, precision = normal
    made = f.cfunc("logp", np.zeros(2))
    x = np.array([1.0, -2.0])
    status, value, gradient = sampled(made, x)
    assert status == 0
    assert value == pytest.approx(-0.5 * x @ precision @ x)
    np.testing.assert_allclose(gradient, -precision @ x)
    assert sampled(made, np.zeros(3))[0] == WRONG_SIZE


def test_many_threads_may_call_it(normal):
    f, precision = normal
    made = f.cfunc("logp", np.zeros(2))

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            x = rng.normal(size=2)
            status, value, gradient = sampled(made, x)
            assert status == 0
            assert value == pytest.approx(-0.5 * x @ precision @ x)
            np.testing.assert_allclose(gradient, -precision @ x, atol=1e-14)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_branches_are_followed():
    python = lambda x: x * 2.0 if x > 1.0 else (-x if x < 0.0 else x * x)
    made = tg.jit(python).cfunc("scipy", 2.0)
    for x in (3.0, -1.0, 0.5, -2.0, 0.25, 4.0):
        assert at(made, [x]) == python(x)


def test_what_fails_is_told(told):
    def python(x):
        if x[0] < 0:
            raise ValueError("negative")
        return (x * x).sum()

    scalar = tg.jit(python).cfunc("scipy", np.ones(2))
    assert at(scalar, [1.0, 2.0]) == 5.0
    assert np.isnan(at(scalar, [-1.0, 2.0]))
    sampler = tg.jit(tg.value_and_grad(python)).cfunc("logp", np.ones(2))
    assert sampled(sampler, np.array([-1.0, 0.0]))[0] == NOT_RUN
    assert len(told) == 2
    assert all(
        "`python` could not be run from compiled code: ValueError: negative" in s for s in told
    )


def test_plain_pointers():
    f = tg.jit(lambda x, k: (x * k, (x.sum(), x > k)))
    x = np.arange(6.0).reshape(2, 3)
    inputs = [x, np.array(2.0)]
    outputs = [np.empty((2, 3)), np.empty(()), np.empty((2, 3), bool)]
    made = f.cfunc("plain", x, 2.0)
    pointers = [(ctypes.c_void_p * len(a))(*[y.ctypes.data for y in a]) for a in (inputs, outputs)]
    assert made.ctypes(*pointers) == 0
    np.testing.assert_array_equal(outputs[0], x * 2)
    assert outputs[1] == 15.0
    np.testing.assert_array_equal(outputs[2], x > 2)


def filled(f, outputs, *examples):
    """The outputs after a call; each has room for more bytes, which must stay as they were."""
    inputs = [np.asarray(x) for x in examples]
    room = [np.full(y.nbytes + 16, 0xA5, np.uint8) for y in outputs]
    pointers = [(ctypes.c_void_p * len(a))(*[y.ctypes.data for y in a]) for a in (inputs, room)]
    assert f.cfunc("plain", *examples).ctypes(*pointers) == 0
    assert all((memory[y.nbytes :] == 0xA5).all() for memory, y in zip(room, outputs, strict=True))
    return [
        memory[: y.nbytes].view(y.dtype).reshape(y.shape).tolist()
        for memory, y in zip(room, outputs, strict=True)
    ]


def test_each_result_has_its_own_pointer_constants_too():
    x = np.array([3.0, 4.0])
    a, number, whole, truth = np.empty(2), np.empty(()), np.empty((), int), np.empty((), bool)
    assert filled(tg.jit(lambda x: (3.5, x + 1)), [number, a], x) == [3.5, [4.0, 5.0]]
    assert filled(tg.jit(lambda x: (x * 2, x * 2, x + 1)), [a, a, a], x) == [
        [6.0, 8.0], [6.0, 8.0], [4.0, 5.0],
    ]  # fmt: skip
    assert filled(tg.jit(lambda x: (x, x)), [a, a], x) == [[3.0, 4.0], [3.0, 4.0]]
    mixed = tg.jit(lambda x: (-7, None, (x.sum(), True), np.array([1.5, 2.5]), x.sum(), -0.0))
    assert filled(mixed, [whole, number, truth, a, number, number], x) == [
        -7, 7.0, True, [1.5, 2.5], 7.0, 0.0,
    ]  # fmt: skip


def test_pointers_keep_alive_what_they_need():
    function = tg.jit(lambda x: x + 1.0).cfunc("scipy", 0.0).ctypes
    value = np.array([1.0])
    assert function(1, doubles(value), None) == 2.0
    assert function.owner.address == ctypes.cast(function, ctypes.c_void_p).value
    assert repr(function.owner) == "<<lambda> as a C function of the kind 'scipy'>"


@pytest.mark.parametrize(
    ("kind", "f", "example", "match"),
    [
        ("fortran", np.sin, 1.0, "got the kind 'fortran': it knows 'scipy', 'logp', 'plain'"),
        ("scipy", np.sin, "x", "an example of the type str"),
        ("scipy", np.sin, np.ones(2), r"returns one float; `sin` takes float64\[2\] and returns"),
        ("scipy", lambda x: x[0], np.ones(2, np.int64), "takes floats and float64 arrays"),
        ("logp", np.sum, np.ones(2), "a float and a vector as long"),
        ("plain", lambda x: [x], 1.0, "returns a list"),
        ("plain", lambda x: (x, 1 << 63), 1.0, "what else fits 64 bits"),
    ],
)
def test_what_does_not_fit_is_refused(kind, f, example, match):
    with pytest.raises((ValueError, TypeError), match=match):
        tg.jit(f).cfunc(kind, example)
