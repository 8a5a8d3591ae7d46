"""Hessians times vectors from the tape are those of the general way, for every row of the table."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import run
from tapegrad.ops.core import ELEMENTWISE, Formula
from tapegrad.ops.families import table
from tapegrad.transforms import hessian_products
from tapegrad.transforms.hessian_products import OnTape
from tests.conformance.checks import F8, Case
from tests.conformance.samples import OF_COMPLEX, samples_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, at empty means


def known(op):
    """Whether the two passes say that they know a row."""
    if op.kind is ELEMENTWISE:
        return len(op.inputs) < 4
    return (
        not op.variadic
        and op.name != "to"
        and (op.multilinear or (op.jointly_linear and len(op.inputs) == 1))
    )


ROWS = [
    op for op in table.values()
    if op.name not in {"function", "output", *OF_COMPLEX}
    if any(isinstance(f, Formula) for f in op.formulas)
]  # fmt: skip
CASES = [
    pytest.param(op, sample, id=f"{op.name} {sample.name}")
    for op in ROWS
    for sample in samples_of(op)
    if sample.orders > 1 and not sample.symmetric
    if sum(np.size(sample.operands[k]) for k in Case(op, sample, F8, "").moving)
]


def general(f):
    """The derivative of the derivative along a vector, by dual values."""
    return lambda x, v: tg.grad(lambda x: tg.jvp(f, (x,), (v,))[1])(x)


def on_one_leaf(case):
    """The operation as a function of one vector, curved once more, and a point."""
    op, sample = case.op, case.sample
    moving = [k for k in case.moving if np.asarray(sample.operands[k]).dtype == F8]
    at = [np.asarray(sample.operands[k]) for k in moving]
    x = np.concatenate([a.ravel() for a in at]) if at else np.zeros(0)

    def f(x):
        operands, start = list(sample.operands), 0
        for k, a in zip(moving, at, strict=True):
            operands[k] = x[start : start + a.size].reshape(a.shape)
            start += a.size
        y = run(op, tuple(operands), sample.params)
        return (y * y * np.linspace(0.5, 1.5, y._a.size).reshape(y._a.shape)).sum() + x.sum()

    return f, x


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_rows(op, sample):
    f, x = on_one_leaf(Case(op, sample, F8, ""))
    v = np.random.default_rng(3).standard_normal(x.shape)
    way = OnTape(f, "hvp")
    found = way.product(x, v)
    assert way.known >= known(op)
    np.testing.assert_allclose(found, general(f)(x, v), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tg.hvp(f)(x, v), found, rtol=1e-9, atol=1e-9)


def test_what_is_not_finite_is_left_to_the_strong_product():
    x, v = np.array([0.0, 4.0]), np.array([1.0, 1.0])
    way = OnTape(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), "hvp")
    np.testing.assert_allclose(way.product(x, v), [0.0, -1 / 32])
    assert way.product(x, v) is None  # which does not try any more


def test_a_changed_value_is_that_before_the_change():
    def f(x):
        y = x * x
        z = np.exp(y)
        z.mul_(2.0)
        return z.sum()

    np.testing.assert_allclose(tg.hvp(f)(np.ones(2), np.ones(2)), np.full(2, 12 * np.e))


def test_hooks_are_called():
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(1))
        return (y * y).sum()

    x, v = np.array([1.0, 2.0]), np.array([1.0, 0.5])
    np.testing.assert_allclose(OnTape(f, "hvp").product(x, v), 12 * x**2 * v)
    assert seen


def test_nothing_stays_on_the_tape():
    f = lambda x: np.sum(np.sin(x) * x)
    x = np.linspace(0.0, 1.0, 5)
    product = tg.hvp(f)
    product(x, x)
    before = len(tg.tensor(0.0, requires_grad=True).add(1.0).tape.whole)
    for _ in range(3):
        product(x, x)
    assert len(tg.tensor(0.0, requires_grad=True).add(1.0).tape.whole) <= before + 1


def test_whole_matrices():
    a = np.random.default_rng(0).standard_normal((4, 4))

    def f(x, scale=1.0):
        return scale * np.sum(np.tanh(a @ x) ** 2) + x[0, 1] * x[1, 1] - np.logaddexp(*x[:, 0])

    def general(x):
        return np.sum(np.tanh(a @ x) ** 2) + x[0, 1] * x[1, 1] - np.logaddexp.reduce(x[:2, 0])

    x = np.array([[0.5, -1.0], [2.0, 0.25]])
    a = np.vstack([a[:2, :2], a[2:, :2]])
    expected = tg.jacobian(tg.grad(f))(x)
    for _ in range(2):  # a function with an unknown record is computed in another way again
        np.testing.assert_allclose(tg.hessian(f)(x), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(tg.hessian(general)(x), expected, rtol=1e-12, atol=1e-12)
    doubled = tg.hessian(f, argnums=0)(x, scale=2.0)
    assert not np.allclose(doubled, expected)
    assert tg.hessian(lambda a, x: a * x**3, argnums=1)(2.0, 0.5) == 6.0
    np.testing.assert_array_equal(tg.hessian(lambda x: x.sum() * 0.0)(x), np.zeros((2,) * 4))


def test_many_rows_of_large_arrays_are_left_to_the_general_way():
    a = np.random.default_rng(0).standard_normal((600, 10)) / 20.0
    f = lambda x: np.sum(np.exp(a @ x))
    x = np.linspace(-1.0, 1.0, 10)
    way = OnTape(f, "hessian")
    expected = (a.T * np.exp(a @ x)) @ a
    np.testing.assert_allclose(way.matrix((x,), {}, 0), expected)
    assert not way.known
    np.testing.assert_allclose(tg.hessian(f)(x), expected)
    few = OnTape(lambda y: f(np.concatenate([y, x[2:]])), "hessian")
    few.matrix((x[:2],), {}, 0)
    assert not few.known  # joined: not known to the passes
    few = OnTape(lambda y: np.sum(np.exp(a[:, :2] @ y)), "hessian")
    few.matrix((x[:2],), {}, 0)
    assert few.known


@pytest.mark.parametrize("x", [2.0, np.array(2.0)])
def test_numbers(x):
    found = tg.hvp(lambda x: x**3)(x, 0.5 if type(x) is float else np.array(0.5))
    assert type(found) is type(x)
    assert float(found) == 6.0


def test_general_rows_are_asked_once(monkeypatch):
    calls = []
    passes = hessian_products.leaf_products
    monkeypatch.setattr(
        hessian_products, "leaf_products", lambda *a: (calls.append(1), passes(*a))[1]
    )
    product, matrix = [way(lambda x: np.logaddexp.reduce(x)) for way in (tg.hvp, tg.hessian)]
    x, v = np.array([0.5, 1.0]), np.array([1.0, 0.0])
    p = np.exp(x - np.logaddexp.reduce(x))
    for _ in range(5):
        np.testing.assert_allclose(product(x, v), p * v - p * (p @ v))
        np.testing.assert_allclose(matrix(x), np.diag(p) - np.outer(p, p))
    assert len(calls) == 2
