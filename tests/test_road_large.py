"""What the compiled road does for large arrays is what the functions in Python do."""

import gc
import threading
import warnings
import weakref

import numpy as np
import pytest
from tests.kernels.test_along import CALLS
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
from tapegrad import along, parallel
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


def changed(name, make, others):
    """What an operation in place leaves behind, on a Tensor that is made for it."""
    x = make()
    before, version = len(current.tape), x._version
    getattr(x, name)(*others)
    made = current.tape.words()[before:].tolist()
    return x, x._a.copy(), x._version - version, made, current.tape.keep[before:], x.requires_grad


def assert_changed_alike(name, make, *others):
    """An operation in place does by the road what it does without it."""
    roads.road.close()
    try:
        x, values, versions, records, kept, tracked = changed(name, make, others)
    finally:
        roads.road.open()
    x_, values_, versions_, records_, kept_, tracked_ = changed(name, make, others)
    assert values_.tobytes() == values.tobytes()
    assert (versions_, tracked_, len(records_)) == (versions, tracked, len(records))
    for a, b in zip(records, records_, strict=True):
        assert (a[0], a[3:]) == (b[0], b[3:])
        assert [bool(code) for code in a[1:3]] == [bool(code) for code in b[1:3]]
    for entry, entry_ in zip(kept, kept_, strict=True):
        assert type(entry_) is type(entry)
        for a, b in zip(entry or (), entry_ or (), strict=True):
            assert (b is x_._a) == (a is x._a)
            assert (a is None) == (b is None)
            assert a is None or np.array_equal(a, b)
    if records:
        assert x_._pos is current.tape.tokens[-1]
        assert x_._home is current.tape


MAKERS = {
    "constant": lambda op: tapegrad.tensor(values(op, LARGE)),
    "result": lambda op: tapegrad.tensor(values(op, LARGE), requires_grad=True).clone(),
}


@pytest.mark.parametrize("op", [op for op in UNARY if hasattr(Tensor, op.name + "_")], ids=str)
@pytest.mark.parametrize("kind", MAKERS)
def test_unary_operations_in_place(op, kind):
    for _ in range(2):
        assert_changed_alike(op.name + "_", lambda: MAKERS[kind](op))


@pytest.mark.parametrize("op", [op for op in BINARY if hasattr(Tensor, op.name + "_")], ids=str)
@pytest.mark.parametrize("kind", MAKERS)
def test_binary_operations_in_place(op, kind):
    for how in PLACES:
        for other in (placed(values(op, LARGE, 1), how), placed(values(op, (), 1), how), 0.5, 2):
            assert_changed_alike(op.name + "_", lambda: MAKERS[kind](op), other)
    with tapegrad.no_grad():
        leaf = placed(values(op, LARGE), "leaf")
        assert_changed_alike(op.name + "_", lambda: leaf.clone(), 0.5)
        assert_changed_alike(op.name + "_", lambda: placed(values(op, LARGE), "leaf"), leaf)


ALONG = CALLS | {
    "clone": lambda x, d: tapegrad.clone(x),
    "norm of all": lambda x, d: tapegrad.norm(x),
    "var of all": lambda x, d: tapegrad.var(x, correction=0),
    "std, kept": lambda x, d: tapegrad.std(x, d, keepdim=True),
}


@pytest.mark.parametrize("name", sorted(ALONG))
@pytest.mark.parametrize("shape", [(SHORT,), (300, 61), (3, 70, 80), (17000, 2)])
@pytest.mark.parametrize("how", PLACES)
def test_operations_along_dimensions(name, shape, how, monkeypatch):
    monkeypatch.setattr(along, "TIMES", 1)
    x = placed(np.random.default_rng(0).uniform(0.5, 1.5, shape), how)
    for d in range(len(shape)):
        along._plans.clear()
        along._met.clear()
        results = [outcome(lambda x, d=d: ALONG[name](x, d), (x,)) for _ in range(3)]
        (y, record, entry, debt), *others = results
        for y_, record_, entry_, debt_ in others:
            assert y_._a.tobytes() == y._a.tobytes()
            assert (y_.shape, y_._s, debt_, y_._pos > 0) == (y.shape, y._s, debt, y._pos > 0)
            assert (record is None) == (record_ is None)
            if record is not None:
                assert record_.tolist() == record.tolist()
                assert [b is y_._a for b in entry_] == [a is y._a for a in entry]
                assert [b is x._a for b in entry_] == [a is x._a for a in entry]
                assert entry_[2] == entry[2]
