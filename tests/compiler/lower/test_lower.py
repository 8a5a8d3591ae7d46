"""How much LLVM is told to do for a program."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.lower.lower import Module
from tapegrad.compiler.lower.module_functions import INLINED

pytestmark = pytest.mark.tapegrad_only("about this project")


def level(f, *args):
    return Module(tg.jit(f).lower(*args).graph).lower().level


def repeated(step, count=INLINED):
    def f(x):
        for _ in range(count):
            x = step(x)
        return x

    return f


def test_short_code_is_optimised():
    assert level(repeated(lambda x: x * x + 1.0, 3), 0.5) == 2


def test_long_arithmetic_gets_registers_and_no_passes():
    assert level(repeated(lambda x: x * x + 1.0), 0.5) == 1


def test_long_code_of_elementary_functions_gets_neither():
    assert level(repeated(lambda x: np.sin(x * x)), 0.5) == 0


def test_long_code_beside_a_loop_is_optimised():
    f = repeated(lambda x: x * x + 1.0)
    assert level(lambda x, y: f(x) * np.sum(np.sin(y)), 0.5, np.ones(100)) == 2


@pytest.mark.parametrize("f", [np.linalg.det, np.linalg.inv, lambda a: a @ a @ a])
def test_matrices_in_line_need_no_passes(f):
    assert level(f, np.eye(8)) == 1
    assert level(f, np.stack([np.eye(8)] * 100)) == 2


def test_what_lapack_does_is_no_long_code():
    assert level(np.linalg.inv, np.eye(20)) == 2


def untouched(f, *args):
    """The number of functions that LLVM is told to leave as they are."""
    text = Module(tg.jit(f).lower(*args).graph).lower().text
    return text.count(" #3 {")


def test_only_the_loop_is_optimised_beside_long_code():
    f = repeated(lambda x: x * x + 1.0)
    assert untouched(f, 0.5) == 0
    assert untouched(lambda x, y: f(x) * np.sum(np.sin(y)), 0.5, np.ones(100)) == 1
    assert untouched(lambda a: np.sum(np.linalg.inv(a)), np.eye(8)) == 1


def test_long_code_that_may_stand_in_a_loop_is_optimised():
    f = repeated(lambda x: x * x + 1.0)
    assert untouched(lambda x: tg.fori_loop(0, 100, lambda _, x: f(x), x), 0.5) == 0
    assert untouched(np.linalg.inv, np.stack([np.eye(8)] * 100)) == 0
