"""Tangents have memory of their own where a value is changed in place."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import called
from tapegrad.ops.core import ELEMENTWISE, Formula, NotImplementedYet
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("about functions of arrays")

X = np.array([0.2, 0.3, 0.4])
DIRECTION = np.array([1.0, -2.0, 0.5])
FORMULAS = {op.name: op.formulas for op in table.values() if op.kind is ELEMENTWISE}
OPS = [
    name
    for name, found in FORMULAS.items()
    if any(isinstance(f, Formula) for f in found) and not isinstance(found[0], NotImplementedYet)
]


def write_all(v):
    v *= 1.5
    return v


def write_part(v):
    v[1:] *= 1.5
    return v


def write_through_a_view(v):
    window = v.reshape(3, 1)[::2]
    window *= 1.5
    return v


FUNCTIONS = {
    "sum": lambda v: v + np.zeros(3),
    "spread": lambda v: v - np.zeros((2, 1)),
    "broadcast": lambda v: np.broadcast_to(v, (2, 3)) + np.zeros((2, 3)),
    "joined": lambda v: np.concatenate([v, v]),
    "cast": lambda v: v.astype(np.float64),
    "real": lambda v: np.real(v) + 0.0,
    "chosen": lambda v: np.where(np.array([True, False, True]), v, 0.0),
    "reduced": lambda v: np.sum(v, axis=(), keepdims=True),
    "index": lambda v: v[[0, 2]],
}
TRANSFORMS = {
    "jvp": lambda f: tg.jvp(f, (X,), (DIRECTION,))[1],
    "jacfwd": lambda f: tg.jacfwd(f)(X) @ DIRECTION,
    "jit of jacfwd": lambda f: tg.jit(tg.jacfwd(f))(X) @ DIRECTION,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("write", [write_all, write_part, write_through_a_view])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_result_keeps_its_tangent_when_its_operand_changes(name, write, transform):
    def changing(x):
        v = write(x * 1.0)
        y = FUNCTIONS[name](v)
        v *= 0.0
        return y

    want = TRANSFORMS[transform](lambda x: FUNCTIONS[name](write(x * 1.0)))
    np.testing.assert_array_equal(TRANSFORMS[transform](changing), want)


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("name", OPS)
def test_no_operation_shares_a_tangent_that_is_written_to(name, size):
    op = table[name]
    x = np.linspace(0.2, 0.4, size)
    others = [np.linspace(0.5, 0.3, size) for _ in op.inputs[1:]]

    def run(x, last):
        v = x * 1.0
        v *= 1.5
        y = called(op, (v, *others), {})
        v *= last
        return y

    first = tg.jvp(lambda x: run(x, 1.0), (x,), (x,))
    second = tg.jvp(lambda x: run(x, 0.0), (x,), (x,))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_nested_derivatives_of_writes_are_those_in_reverse():
    def f(x):
        v = np.stack([x * x, x])
        for i in range(2):
            w = v[i]
            w += 0.5 * v[1 - i]
            y = w + 0.0
            w *= y
        return np.sum(v.sum(0) * y)

    def pushed(x):
        return tg.jvp(f, (x,), (DIRECTION,))[1]

    want = DIRECTION @ tg.jacrev(tg.grad(f))(X) @ X
    for found in (
        tg.jvp(pushed, (X,), (X,))[1],
        np.vdot(tg.grad(pushed)(X), X),
        tg.jvp(lambda x: np.vdot(tg.grad(f)(x), DIRECTION), (X,), (X,))[1],
        DIRECTION @ tg.jit(tg.jacfwd(tg.jacfwd(f)))(X) @ X,
    ):
        np.testing.assert_allclose(found, want, rtol=1e-12)


# -- zero tangents -------------------------------------------------------------------------------

SHAPES = [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2)),
          ((4, 2, 3), (4, 3, 2)), ((2, 3), (3, 5))]  # fmt: skip


@pytest.mark.parametrize("jit", [lambda f: f, tg.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_zero_tangent_stays_zero_in_a_product_with_infinity(left, right, jit, rng):
    a, b, slope = rng.normal(size=left), rng.normal(size=right), rng.normal(size=left)
    finite, slope[..., 0] = b.copy(), 0.0
    b.flat[0], finite.flat[0] = np.inf, 0.0
    found = jit(lambda a, slope: tg.jvp(lambda a: a @ b, (a,), (slope,))[1])(a, slope)
    np.testing.assert_allclose(found, slope @ finite, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_columns_are_what_rows_are_beside_infinity():
    matrix = np.array([[np.inf, 1.0], [1.0, 2.0]])
    f = lambda x: x @ matrix
    np.testing.assert_array_equal(tg.jacfwd(f)(X[:2]), tg.jacrev(f)(X[:2]))
    np.testing.assert_array_equal(tg.jit(tg.jacfwd(f))(X[:2]), matrix.T)
