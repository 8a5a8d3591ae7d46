"""Passes on the graphs of random programs, whose values and gradients stay what they are.

A graph is interpreted record by record, so a pass is held to the bits and nothing is compiled.
`PROGRAMS` in the environment asks for more of them.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.compiler.passes.apply_decompositions import expanded
from tapegrad.compiler.passes.common_subexpressions import simplified
from tapegrad.compiler.passes.dead_code import without_dead
from tests.compiler.graphs import passed, same_bits, traced
from tests.compiler.programs import computed, total
from tests.compiler.test_random_loops import MORE, TRANSFORMS, X, program
from tests.compiler.test_random_programs import TOLERANCE, points, profile, programs, shapes


def close(found, wanted):
    """Equal but for rounding, in either precision."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        tolerance = 1e-4 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def derivative(steps, count):
    """The value of a program, and its gradient in all arguments."""
    f = lambda *arrays: total(computed(steps, arrays))
    return tg.value_and_grad(f, argnums=tuple(range(count)))


def on_random_programs(change, *, shapes=shapes, count=20, alike=same_bits):
    """A test of a pass: before and after other passes, where it was traced and elsewhere."""

    @pytest.mark.parametrize("kind", TOLERANCE)
    @profile(count)
    @given(programs, shapes, st.integers(0, 1000))
    def test(kind, steps, shapes, seed):
        here, there = points(shapes, kind, seed)
        graph = traced(derivative(steps, len(shapes)), *here)
        for before in (graph, without_dead(simplified(expanded(graph)))):
            for arrays in (here, there):
                passed(change, before, *arrays, alike=alike)

    return test


def on_random_loops(change, alike=same_bits):
    """The same of programs of loops and branches within each other."""

    @pytest.mark.parametrize("seed", range(MORE or 4))
    @pytest.mark.parametrize("transform", TRANSFORMS)
    def test(transform, seed):
        f = program(np.random.default_rng([7, seed, *transform.encode()]))
        before = traced(TRANSFORMS[transform](f), X)
        for x in (X, -X):
            passed(change, before, x, alike=alike)

    return test
