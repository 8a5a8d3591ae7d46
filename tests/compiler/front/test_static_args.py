"""Static arguments of `jit`: which they are, how their values are told apart; options alone."""

import functools
import math

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")


def traces(f):
    return f.cache_info().traces


def test_zeros_of_both_signs_are_two_values_and_nan_is_one():
    f = tg.jit(lambda x, n: np.divide(1.0, x * n), static_argnums=1)
    assert [f(1.0, n) for n in (0.0, -0.0, 0.0)] == [math.inf, -math.inf, math.inf]
    assert traces(f) == 2
    for nan in (math.nan, float("nan"), -math.nan):
        assert math.isnan(f(1.0, nan))
    assert traces(f) <= 4
    g = tg.jit(lambda x, n: x * math.copysign(1.0, n[0]), static_argnums=1)
    assert [g(1.0, n) for n in ((0.0, 1), (-0.0, 1), (0.0, True))] == [1.0, -1.0, 1.0]
    assert traces(g) == 3
    h = tg.jit(lambda x, n: x * np.copysign(1.0, n), static_argnums=1)
    assert [h(1.0, np.float32(n)) for n in (0.0, -0.0)] == [1.0, -1.0]


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "n"}])
def test_place_and_name_mean_the_same_argument(options):
    f = tg.jit(lambda x, n: x * sum(range(int(n))), **options)
    assert f(2.0, 3.0) == f(2.0, n=3.0) == 6.0
    assert f(x=2.0, n=3.0) == 6.0
    assert f.lower(2.0, 3.0).graph.guards == f.lower(2.0, n=3.0).graph.guards == ()


@pytest.mark.parametrize("k", [1, -1, np.int64(1), (1,), [1]])
def test_places_are_whole_numbers(k):
    f = tg.jit(lambda x, n: x * int(n), static_argnums=k)
    assert f(2.0, 3.0) == 6.0
    assert f.lower(2.0, 3.0).graph.guards == ()


def test_functions_without_names_for_what_they_take():
    f = tg.jit(lambda *xs, **ys: xs[0] * int(xs[-1]) * int(ys["n"]), static_argnums=-1,
               static_argnames="n")  # fmt: skip
    assert f(2.0, 3.0, 4.0, n=5.0) == 40.0
    assert f.lower(2.0, 3.0, 4.0, n=5.0).graph.guards == ()
    assert tg.jit(np.add, static_argnums=1)(2.0, 3.0) == 5.0


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"static_argnums": 2}, ValueError, "static_argnums has 2, but f has 2 arguments"),
        ({"static_argnums": (0, -3)}, ValueError, "static_argnums has -3"),
        ({"static_argnums": "a"}, TypeError, "static_argnums is an int or a tuple of ints"),
        ({"static_argnums": 1.5}, TypeError, "static_argnums is an int or a tuple of ints"),
        ({"static_argnums": (1.5,)}, TypeError, "static_argnums is an int or a tuple of ints"),
        ({"static_argnames": "m"}, ValueError, "'m', but f has no argument .*: it has n, x"),
        ({"static_argnames": 1}, TypeError, "static_argnames is a str or a tuple of them"),
    ],
)
def test_static_arguments_that_are_not_there_are_refused(options, error, match):
    def f(x, n):
        return x * n

    with pytest.raises(error, match=match):
        tg.jit(f, **options)


def test_slices_are_told_apart_and_complex_numbers_are_arguments():
    f = tg.jit(lambda x, at: x[at])
    x = np.arange(4.0)
    for at in (slice(1, 3), slice(None, None, 2), slice(1, 3)):
        np.testing.assert_array_equal(f(x, at), x[at])
    assert traces(f) == 2
    turned = tg.jit(lambda x, c: np.abs(x * c))
    for value in (1j, -2j, np.complex128(1 + 1j)):
        np.testing.assert_allclose(turned(x, value), x * abs(value))
    assert traces(turned) == 1
    assert tg.jit(lambda x, c: x * abs(c), static_argnums=1)(2.0, 2j) == 4.0


def test_options_alone_make_a_decorator():
    @tg.jit(fastmath=True)
    def f(x):
        return x * 2

    @tg.jit(static_argnames="n")
    def g(x, n):
        return x**n

    assert (f(2.0), g(2.0, 3.0), tg.jit()(abs)(-1.0)) == (4.0, 8.0, 1.0)
    assert f.fastmath
    assert f.__name__ == "f"
    assert functools.partial(tg.jit, fastmath=True)(abs).fastmath

    class Model:
        @tg.jit(static_argnums=(0, 2))
        def scaled(self, x, by):
            return x * by

    assert Model().scaled(2.0, by=3.0) == Model().scaled(2.0, 3.0) == 6.0
