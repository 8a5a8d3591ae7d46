"""Operations and views of Traced Tensors: what a trace knows of them before they are computed."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about tracing")


def test_views_of_views_are_as_long_a_chain_as_may_be():
    """No memory is made for them before a value is asked for."""

    def f(x):
        for _ in range(3000):
            x = x[::-1]
        return x * 2.0 if x[0] > 0 else x

    x = np.array([1.0, -2.0])
    assert tg.jit(f)(x).tolist() == [2.0, -4.0]


def test_views_that_begin_alike_lie_differently():
    def f(x):
        found = []
        for k in range(4):
            y = x.T if k % 2 else x
            found.append(np.reshape(y[1:, :2], (-1,)) * (y[:2, 1:].T[0, 0] + k))
        return np.concatenate(found)

    x = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(tg.jit(f)(x), f(x))


def test_values_of_views_are_those_of_what_was_written():
    def f(x):
        y = x * 2.0
        row = y[1]
        first = 1.0 if row[0] > 5.0 else 2.0
        y[1] = 7.0
        return row * first if row[0] > 6.5 else row * 3.0

    x = np.arange(6.0).reshape(3, 2)
    assert tg.jit(f)(x).tolist() == [14.0, 14.0]


@pytest.mark.parametrize("steps", [20, 100])  # the longer one is compiled as a loop
def test_an_element_of_the_state_of_a_loop(steps):
    def f(rate):
        y = np.array([3.0, 1.0])
        for _ in range(steps):
            y = np.stack([y[1] * rate, y[0] * rate + 1.0])
        return y[0]

    np.testing.assert_allclose(tg.jit(tg.grad(f))(0.9), tg.grad(f)(0.9), rtol=1e-12)


def test_a_guard_of_a_whole_number_leaves_open_what_is_cut_off():
    f = tg.jit(lambda x: x * int(4 * x + 0.5))
    assert [f(x) for x in (0.5, 0.55, -0.1)] == [1.0, 1.1, -0.0]
    assert f.cache_info().traces == 2
    assert f(1.0) == 4.0
    assert f.cache_info().traces == 3
    with pytest.raises(ValueError, match="NaN to integer"):
        f(np.nan)
    with pytest.raises(RuntimeError, match="would lose"):
        tg.jit(tg.grad(lambda x: x * int(x)))(2.5)
    assert tg.jit(lambda k: k * int(k))(np.int64(3)) == 9


def of_slices(x):
    y = tg.zeros(3, 3)
    for i in range(2):
        y[i : i + 2, i : i + 2] += x[i]
    diagonal, corner = y.diagonal(), y[:2][:, 1:]
    diagonal *= x
    corner -= x[:2]
    return tg.sum(y**2) + diagonal[1] * corner[0, 0]


def of_a_result(x):
    y = np.zeros_like(x)
    y[1:] += x[:-1] ** 2
    rest = y[1:]
    y[0] = x[2]
    rest *= x[0]
    return np.sum(y * np.arange(3.0)) + rest[0]


def in_a_loop(x):
    def step(i, c):
        y = tg.zeros(3)
        y[1:] += c * x[i]
        return tg.sum(y)

    return tg.fori_loop(0, 3, step, x[0])


@pytest.mark.parametrize("f", [of_slices, of_a_result, in_a_loop])
def test_views_of_tensors_made_inside_are_written_into(f):
    """Once, by a program: a trace that ends in Python is made again by each call."""
    x = np.array([0.5, -1.0, 2.0])
    for g in (f, tg.grad(f), tg.hessian(f)):
        compiled = tg.jit(g)
        np.testing.assert_allclose(compiled(x), g(x), rtol=1e-12)
        np.testing.assert_allclose(compiled(2 * x), g(2 * x), rtol=1e-12)
        assert compiled.cache_info().traces == 1
    slopes = tg.vmap(tg.grad(f))
    np.testing.assert_allclose(tg.jit(slopes)(np.stack([x, -x]))[1], tg.grad(f)(-x), rtol=1e-12)


def test_a_view_of_a_tensor_from_outside_is_written_into_in_python():
    y = tg.zeros(3)

    def f(x):
        y[1:] += x
        return tg.sum(y)

    compiled = tg.jit(f)
    assert [compiled(tg.tensor(1.0)).item() for _ in range(2)] == [2.0, 4.0]
    assert y.tolist() == [0.0, 2.0, 2.0]
