"""Examples are promoted among each other as each would be alone, whatever their types are."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import called
from tapegrad.ops import logic
from tapegrad.ops.core import ELEMENTWISE, Formula
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("walks the table of operations")

COUNT = 3
NUMBERS = {
    "float32": np.array([0.25, 0.5, 0.75, 0.125, 0.375, 0.625], np.float32),
    "float64": np.array([0.5, 0.7, 0.1, 0.3, 0.9, 0.4]),
    "int64": np.array([1, 2, 1, 3, 2, 1]),
    "bool": np.array([True, False, True, True, False, True]),
}
FLOATS = ("float32", "float64")
ROWS = [op for op in table.values() if op.kind is ELEMENTWISE and len(op.inputs) > 1]
ROWS += [op for op in logic.ROWS if len(op.inputs) == 2]
MOVING = [op for op in ROWS if all(type(formula) is Formula for formula in op.formulas)]
FORMS = [(mapped, ndim) for mapped in (True, False) for ndim in (0, 1)]


def operand(kind, mapped, ndim):
    """An operand for all examples, or the examples of one; each has `ndim` dimensions."""
    shape = ((COUNT,) if mapped else ()) + (2,) * ndim
    return tg.tensor(NUMBERS[kind][: int(np.prod(shape))].reshape(shape))


def cases(op, kinds):
    """Operands of every mixture of types and dimensions, of which some are examples."""
    scaled = op.inputs[-1] == "value"  # by a number
    several = len(op.inputs) - scaled
    for types in itertools.product(kinds if several == 2 else FLOATS, repeat=several):
        for forms in itertools.product(FORMS, repeat=several):
            if any(mapped for mapped, _ in forms):
                args = [operand(kind, *form) for kind, form in zip(types, forms, strict=True)]
                if op.inputs[0] == "condition":
                    args[0] = args[0] > 0.5
                axes = [0 if mapped else None for mapped, _ in forms]
                yield args + [2.0] * scaled, tuple(axes + [None] * scaled)


def outcome(function, args):
    try:
        return function(*args)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        return type(error)


def one_by_one(function, axes):
    def loop(*args):
        found = [
            function(*[a if axis is None else a[i] for a, axis in zip(args, axes, strict=True)])
            for i in range(COUNT)
        ]
        if isinstance(found[0], tuple):
            return tuple([tg.stack(list(part)) for part in zip(*found, strict=True)])
        return tg.stack(found)

    return loop


def same(found, expected, args):
    """The same type, and the same values to what the least exact operand allows."""
    if isinstance(expected, type):
        assert found is expected
        return
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    tolerance = 1e-5 if any(getattr(a, "dtype", None) == tg.float32 for a in args) else 1e-12
    np.testing.assert_allclose(
        found.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_examples_have_the_type_that_each_has_alone(op):
    def f(*args):
        return called(op, args, {})

    for args, axes in cases(op, NUMBERS):
        found = outcome(tg.func.vmap(f, in_dims=axes), args)
        same(found, outcome(one_by_one(f, axes), args), args)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", MOVING, ids=lambda op: op.name)
def test_so_have_their_tangents(op):
    def f(*args):
        return called(op, args, {})

    def along(function):
        return lambda *args: tg.func.jvp(lambda *x: function(*x, *args[3:]), args[:3], args[:3])

    for args, axes in cases(op, FLOATS):
        expected = one_by_one(along(f), axes)(*args)
        mapped = tg.func.vmap(f, in_dims=axes)
        for found in (along(mapped)(*args), tg.func.vmap(along(f), in_dims=axes)(*args)):
            for one, other in zip(found, expected, strict=True):
                same(one, other, args)


def test_in_place_too():
    def scaled(x, s):
        y = x.clone()
        y *= s
        return y

    args = operand("float32", True, 1), operand("float64", True, 0)
    for mapped in (tg.func.vmap(scaled), tg.jit(tg.func.vmap(scaled))):
        same(mapped(*args), one_by_one(scaled, (0, 0))(*args), args)
