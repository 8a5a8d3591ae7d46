"""Loops whose results, or what is kept for their derivative, turn out to be needed by nobody."""

import numpy as np

import tapegrad as tg


def test_a_loop_that_only_a_condition_reads():
    """The gradient is empty; the trips still run, and what they write has a place in memory."""

    def f(x):
        start = np.sum(x)
        found = tg.fori_loop(0, 3, lambda i, d: np.tanh(np.exp(np.sin(d)) * start), start * 1.0)
        return 0.5 * found if found > 0.1 else np.sin(found)

    compiled = tg.jit(tg.grad(f))
    for _ in range(3):
        assert compiled(np.zeros(0)).shape == (0,)


def test_a_loop_within_a_loop_whose_derivative_nobody_takes():
    def f(x):
        total = np.sum(x)

        def outer(i, d):
            return tg.fori_loop(0, 2, lambda j, e: np.sin(e) * np.exp(total), d)

        found = tg.fori_loop(0, 3, outer, total + 1.0)
        return np.sum(x) * (2.0 if found > 100.0 else 3.0)

    compiled = tg.jit(tg.grad(f))
    np.testing.assert_array_equal(compiled(np.ones(2)), [3.0, 3.0])
    assert compiled(np.zeros(0)).shape == (0,)
