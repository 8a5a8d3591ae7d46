"""What the compiled road does for large arrays is what the functions in Python do."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from tests.test_road import (
    BINARY,
    PLACES,
    TERNARY,
    UNARY,
    assert_alike,
    fresh_tape,
    outcome,
    placed,
    road,
    three,
    values,
)

import tapegrad
from tapegrad import parallel
from tapegrad import road as roads
from tapegrad.kernels.road import frame as at
from tapegrad.ops.core import table
from tapegrad.tape import DROP_FLOOR, FIRST, current
from tapegrad.tensor import SHORT, Tensor

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")
__all__ = ["fresh_tape", "road"]  # fixtures

SHAPES = [(SHORT,), (2, SHORT // 2), (3, 1, SHORT // 3 + 5)]
LARGE = SHAPES[2]


@pytest.fixture(autouse=True)
def one_thread():
    before = tapegrad.get_num_threads()
    tapegrad.set_num_threads(1)
    yield
    tapegrad.set_num_threads(before)


@pytest.fixture
def refused(monkeypatch):
    """The operations that compiled code has left to Python; to be asked as `refused()`."""
    seen = []
    run = tapegrad.record.run
    for module in (tapegrad.record, tapegrad.fast):
        monkeypatch.setattr(module, "run", lambda op, *rest: (seen.append(op.name), run(op, *rest))[1])
    return seen


def by_road(op, scalars=0):
    """Whether the road has learnt to compute an operation on large arrays."""
    return int(roads.road.frame.large[op.code, scalars]) not in (at.UNKNOWN, at.BY_PYTHON)


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary_operations(op):
    for shape, how in zip([*SHAPES, *SHAPES[:1] * 2], [*PLACES, *PLACES[1:]], strict=True):
        assert_alike(op, (placed(values(op, shape), how),))
        assert_alike(op, (placed(values(op, shape), how),))  # the shape has a number by now


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary_operations(op):
    for how in PLACES:
        for other in PLACES:
            a = placed(values(op, LARGE), how)
            assert_alike(op, (a, placed(values(op, LARGE, 1), other)))
            assert_alike(op, (a, placed(values(op, (), 1), other)))
            assert_alike(op, (placed(values(op, ()), how), placed(values(op, LARGE, 1), other)))
    a = placed(values(op, LARGE), "leaf")
    assert_alike(op, (a, a))
    for number in (0.5, 2, True):
        assert_alike(op, (a, number))
        if number is not True:
            assert_alike(op, (number, a))


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_ternary_operations(op):
    for how, other in zip(PLACES * 2, [*PLACES, *PLACES[1:], PLACES[0]], strict=True):
        hows = (how, other, how)
        for shapes in ((LARGE,) * 3, (LARGE, (), ()), ((), LARGE, ()), ((), (), LARGE)):
            operands = three(op, shapes, hows)
            for _ in range(2):
                assert_alike(op, operands)
            scalars = sum((shape == ()) << k for k, shape in enumerate(shapes))
            assert roads.road.frame.large[op.code, scalars] != at.BY_PYTHON
        a, b, c = three(op, (LARGE,) * 3, hows)
        for operands in ((a, b, 0.25), (a, 0.25, c), (a, 1, 2.0), (a, b, c)):
            assert_alike(op, operands)
