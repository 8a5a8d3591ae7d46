"""Which values a program stores, and which it computes where they are needed."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.ir.loop_nest import SET
from tapegrad.compiler.schedule.fusion import STREAMED, Schedule

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

X = np.linspace(-1.0, 1.0, 5000)


def stored(f, *args):
    """How many arrays as large as the first argument nests store, results apart."""
    graph = tg.jit(f).lower(*args).graph
    stores = [s for nest in Schedule(graph).nests if nest is not None for s in nest.stores]
    size = np.size(args[0])
    return sum(s.mode == SET and s.place.buffer.size == size for s in stores)


def spread(function):
    """A function of values which its second loop wants once more."""

    def f(x):
        y = function(x)
        return np.sum((y - np.sum(y)) ** 2)

    return f


@pytest.mark.parametrize(
    ("name", "function", "count"),
    [
        ("cheap", lambda x: 2.0 * x + 1.0, 0),
        ("cheap, of what is stored", lambda x: np.exp(x) * 3.0, 1),
        ("not cheap", np.exp, 1),
        ("of two arrays", lambda x: x * X[::-1], 1),
        ("of one array twice", lambda x: x * x - x, 0),
    ],
)
def test_what_is_cheap_is_computed_again(name, function, count):
    f = spread(function)
    assert stored(f, X) == count
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(X), tg.grad(f)(X), rtol=1e-10, atol=1e-10)


def test_small_arrays_are_stored():
    assert stored(spread(lambda x: 2.0 * x), X[: STREAMED - 1]) == 1


def test_what_others_read_is_stored_once():
    a = np.ones((3, X.size))

    def f(x):
        y = 2.0 * x
        return np.sum((y - np.sum(y)) ** 2) + np.sum(a @ y)

    assert stored(f, X) == 1
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12)


def nests(f, *args):
    """The nests of a program."""
    return [n for n in Schedule(tg.jit(f).lower(*args).graph).nests if n is not None]


@pytest.mark.parametrize("join", [np.stack, np.concatenate])
def test_a_join_is_written_by_the_loop_that_computes_a_part(join):
    def f(x, w):
        return join([np.exp(x), w, x * w, np.ones_like(x), x])

    [nest] = nests(f, X, X)
    assert len(nest.stores) == 5
    assert [load.buffer.number for load in nest.loads] == [0, 1]
    np.testing.assert_allclose(tg.jit(f)(X, X[::-1]), f(X, X[::-1]), rtol=1e-14)


def test_what_a_later_step_computes_is_joined_by_itself():
    def f(x):
        y = 2.0 * x + 5.0
        return np.stack([y, np.cumsum(y), x[::-1], np.broadcast_to(np.sum(y), x.shape)], 1)

    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-12)


def test_parts_of_another_dtype_or_shape_are_joined_by_themselves():
    def f(x, k):
        return np.concatenate([2.0 * x, k, x[:7], np.zeros(3)])

    k = np.arange(X.size)
    np.testing.assert_array_equal(tg.jit(f)(X, k), f(X, k))


def test_a_part_that_is_a_result_too_is_written_twice():
    def f(x):
        y = np.exp(x)
        return y, np.stack([y, x])

    assert len(nests(f, X)) == 1
    for got, expected in zip(tg.jit(f)(X), f(X), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)


WIDE = np.random.default_rng(0).normal(size=(40, 50))


@pytest.mark.parametrize(
    ("f", "copies"),
    [
        (lambda x: x[1:], 2),
        (lambda x: x[:-3], 2),
        (lambda x: x[7:20], 3),
        (lambda x: x[:, 4:-4], 3),
        (lambda x: x[:, :-1], 2),
        (lambda x: x[2:, :-1], 2),
        (lambda x: x[::2], 2),
        (lambda x: x[3:3], 1),
        (lambda x: x[5], 2),
        (lambda x: x[:, 5], 2),
    ],
)
def test_zeros_are_written_around_a_part(f, copies):
    slope = tg.grad(lambda x: np.sum(np.sin(f(x))))
    np.testing.assert_array_equal(tg.jit(slope)(WIDE) != 0.0, slope(WIDE) != 0.0)
    np.testing.assert_allclose(tg.jit(slope)(WIDE), slope(WIDE), rtol=1e-12)
    embedding = lambda x: tg.vjp(f, WIDE)[1](x)[0]
    given = f(WIDE)
    assert len(nests(embedding, given)) <= copies
    np.testing.assert_array_equal(tg.jit(embedding)(given), embedding(given))


@pytest.mark.parametrize("widths", [((0, 9), (0, 0)), ((2, 3), (0, 0)), ((0, 0), (5, 1)), 3, 0])
def test_paddings(widths):
    f = lambda x: np.pad(x, widths, constant_values=2.5)
    np.testing.assert_array_equal(tg.jit(f)(WIDE), f(WIDE))
