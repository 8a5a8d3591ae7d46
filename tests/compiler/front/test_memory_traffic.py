"""The steps of a compiled program, and the bytes that each of them moves."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the compiler")


def steps(f, *args):
    return tg.jit(f).lower(*args).steps


def moved(f, *args):
    return [(step.kind, step.read, step.written) for step in steps(f, *args)]


def test_an_array_is_read_and_written_once():
    assert moved(lambda x: np.sin(x) * x + x, np.ones((10, 10))) == [("loop nest", 800, 800)]


def test_what_is_broadcast_is_read_once():
    x, row = np.ones((10, 10)), np.ones(10)
    assert moved(lambda x, row: x * row, x, row) == [("loop nest", 880, 800)]


def test_a_reduction_writes_its_result():
    assert moved(lambda x: np.sum(x, 0), np.ones((20, 10))) == [("loop nest", 1600, 80)]


def test_windows_count_what_they_see():
    assert moved(lambda x: x[:, ::2] * 2, np.ones((10, 10))) == [("loop nest", 400, 400)]


def test_calls():
    (step,) = [s for s in steps(lambda x: x @ x, np.ones((90, 90))) if "BLAS" in s.kind]
    assert (step.read, step.written) == (2 * 8 * 90 * 90, 8 * 90 * 90)
    assert "`svd` by a routine" in [s.kind for s in steps(lambda x: tg.linalg.svd(x)[1], np.eye(3))]
    called = steps(lambda x: tg.pure_callback(np.sin, x, x), np.eye(3))
    assert "`pure_callback` in Python" in [s.kind for s in called]


def test_loops_and_branches_show_what_is_inside():
    found = steps(lambda x: tg.scan(lambda c, v: (c * v, c), x[0], x)[1], np.ones(20))
    assert [(s.kind, s.depth) for s in found] == [
        ("`loop`, 20 iterations", 0), ("loop nest", 1), ("copy", 1),
    ]  # fmt: skip
    assert str(found[1]).startswith("    loop nest: reads 16 B, writes 8 B")


def test_indices_that_are_read():
    lines = [
        line
        for step in steps(lambda x, i: x[i] * 2, np.ones(5), np.array([1, 2, 2]))
        for line in step.lines
    ]
    assert any("x1*1" in line for line in lines), lines
