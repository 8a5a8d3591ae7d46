"""Python ints are compiled in: one that counts is noticed."""

import warnings

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch has no `jit` of this kind")


def times(x, n, other=0):
    return x * (n + other)


def said_by(calls):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        calls()
    return [str(one.message) for one in said]


def test_a_counter_is_noticed_once():
    f = tg.jit(times)
    assert said_by(lambda: [f(2.0, i) for i in range(7)]) == []
    (message,) = said_by(lambda: [f(2.0, i) for i in range(20)])
    assert "times was compiled 8 times, for each value of its argument 1" in message
    assert "`np.int64(i)`" in message
    assert f(2.0, 30) == 60.0


def test_a_counter_by_name_or_within_an_argument_is_noticed():
    f = tg.jit(times)
    (message,) = said_by(lambda: [f(2.0, 1, other=i) for i in range(10)])
    assert "argument 'other'" in message
    g = tg.jit(lambda x, state: x * state["step"])
    (message,) = said_by(lambda: [g(2.0, {"step": i}) for i in range(10)])
    assert "argument 1" in message


def test_what_is_said_compiles_once():
    f = tg.jit(times)
    for pass_on in (np.int64, float, tg.tensor):
        f.clear_cache()
        assert said_by(lambda pass_on=pass_on: [f(2.0, pass_on(i)) for i in range(12)]) == []
        assert f.cache_info().traces == 1


def test_other_things_that_change_are_no_counters():
    f = tg.jit(times, static_argnums=1)
    assert said_by(lambda: [f(2.0, i) for i in range(12)]) == []
    f = tg.jit(times)
    assert said_by(lambda: [f(np.ones(i + 1), i) for i in range(12)]) == []
    assert said_by(lambda: [f(np.ones(i), 3) for i in range(12)]) == []
