"""What `explain` says, against what a gradient allocates."""

import ctypes
import math

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from bench.njit import programs
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import Call, program_of
from tests.njit.checking import copied

pytestmark = pytest.mark.tapegrad_only("no other library has this")
CASES = programs.arguments()


def status_of(f, args, limit):
    """What a gradient in the first argument returns that may take so many bytes."""
    program = program_of(f, Request(marshalling.kinds_of(args), (0,), whole=False, strong=False))
    call = Call(program, copied(args), None, None)
    return program.call(call.words, ctypes.create_string_buffer(program.out_bytes), limit)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.py_func.__name__)
def test_total_bytes_are_what_the_gradient_takes(f):
    args = CASES[f]
    found = tg.explain(f, *args)
    assert found.stack_bytes == sum(row.nbytes for row in found.rows)
    assert found.stack_bytes + found.array_bytes <= found.total_bytes
    assert status_of(f, args, found.total_bytes) == 0
    if found.total_bytes:
        assert status_of(f, args, found.total_bytes - 1) == 2


@njit
def slowed(v, k):
    return v - 0.01 * k * math.exp(v)


@njit
def path(v, k, steps, out):
    for _ in range(steps):
        v = slowed(v, k)
        out[0] = v * v
        if v > 0.5:
            out[0] *= 2.0
    return out[0]


def rows_of(found, what):
    return {(row.line.function, row.value): row for row in found.rows if row.what == what}


def test_rows_name_variables_lines_and_trips():
    found = tg.explain(path, 1.0, 0.5, 100, np.zeros(1), argnums=(0, 1))
    kept = rows_of(found, "kept")
    first = path.py_func.__code__.co_firstlineno
    v = kept["path", "v"]
    assert (v.bytes_per_trip, v.trips, v.nbytes) == (8, 100, 800)
    assert first < v.line.line <= first + 6
    exp = kept["slowed", "exp(v)"]
    assert exp.line.line == slowed.py_func.__code__.co_firstlineno + 2
    assert exp.line.file == __file__
    text = repr(found)
    assert str(found) == text
    assert "slowed:" in text
    assert "return v - 0.01 * k * math.exp(v)" in text
    assert all(str(row.trips) in text for row in kept.values())


def test_overwritten_elements_are_saved_where_the_reverse_sweep_loads_them_again():
    @njit
    def products(x, steps):
        x = x.copy()
        for _ in range(steps):
            for i in range(1, len(x)):
                x[i] = 0.9 * x[i] * x[i - 1]
        return np.sum(x)

    found = tg.explain(products, np.ones(7), 30)
    (saved,) = rows_of(found, "saved").values()
    assert (saved.value, saved.trips) == ("x[...]", 180)
    assert rows_of(found, "loaded again")
    assert found.array_bytes == 2 * 7 * 8
    assert rows_of(tg.explain(np_sum, np.ones(3)), "saved") == {}


def test_elements_that_are_read_as_often_as_overwritten_are_kept():
    @njit
    def squares(x, steps):
        x = x.copy()
        for _ in range(steps):
            for i in range(len(x)):
                x[i] = 0.9 * x[i] * x[i]
        return np.sum(x)

    found = tg.explain(squares, np.ones(7), 30)
    assert rows_of(found, "saved") == {}
    (kept,) = rows_of(found, "kept").values()
    assert (kept.value, kept.trips) == ("x[...]", 210)


@njit
def np_sum(x):
    return np.sum(x)


@njit
def packed_triangle(packed, x):
    s, place = 0.0, 1
    for i in range(len(x)):
        place -= 1
        for j in range(i):
            s += packed[place] * x[i] * x[j]
            place += 2
        place += 1
    return s


def test_indices_that_grow_evenly_are_computed_again():
    x = np.linspace(0.0, 1.0, 5)
    found = tg.explain(packed_triangle, np.ones(30), x)
    trips = {row.trips for row in rows_of(found, "kept").values()}
    assert 10 not in trips  # of the inner loop
    gradient = tg.grad(packed_triangle, (0, 1))(np.ones(30), x)
    np.testing.assert_allclose(gradient[1], x.sum() - x, atol=1e-12)


def test_arguments_are_not_changed_and_pairs_are_taken():
    @njit
    def halved(x):
        x *= 0.5
        return np.sum(x * x), x

    x = np.ones(4)
    assert tg.explain(halved, x).stack_bytes >= 0
    assert (x == 1).all()


def test_exceptions_of_the_function_are_raised():
    @njit
    def divides(x, n):
        for k in range(n):
            x = x / (n - 1 - k)
        return x

    with pytest.raises(ZeroDivisionError):
        tg.explain(divides, 1.0, 3)


@pytest.mark.parametrize("f", [lambda x: x, 3, np.sin])
def test_anything_but_a_compiled_function_is_refused(f):
    with pytest.raises(TypeError, match=r"`explain` takes a function under `numba.njit`"):
        tg.explain(f, 1.0)


def test_arguments_that_have_no_gradient_are_refused():
    with pytest.raises(TypeError, match="takes arrays and numbers, got a Tensor"):
        tg.explain(path, 1.0, tg.tensor(0.5), 100, np.zeros(1))
    with pytest.raises(TypeError, match="needs floating-point arguments"):
        tg.explain(path, 1.0, 0.5, 100, np.zeros(1), argnums=2)
    with pytest.raises(TypeError, match="must return a floating-point scalar"):
        tg.explain(njit(lambda x: x * 2), np.ones(2))
