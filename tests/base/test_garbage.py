"""The collector runs seldom while a function is traced, and as before afterwards."""

import gc

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.base.garbage import SELDOM, seldom_collected

pytestmark = pytest.mark.tapegrad_only("about tapegrad's compiler")


@pytest.fixture
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield (700, 10, 10)
    gc.set_threshold(*before)


def test_within_and_after_a_trace(usual):
    seen = []

    def f(x):
        seen.append(gc.get_threshold())
        return np.sin(x)

    tg.jit(f)(1.0)
    assert seen == [(SELDOM, 10, 10)]
    assert gc.get_threshold() == usual


def test_after_an_error(usual):
    def f(x):
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        tg.jit(f)(1.0)
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first", [0, 10**6])
def test_who_collects_less_is_left_alone(usual, first):
    gc.set_threshold(first, 5, 5)
    with seldom_collected():
        assert gc.get_threshold()[0] == first
    assert gc.get_threshold()[0] == first


def test_what_is_changed_within_stays(usual):
    with seldom_collected(), seldom_collected():
        gc.set_threshold(500, 10, 10)
    assert gc.get_threshold() == (500, 10, 10)
