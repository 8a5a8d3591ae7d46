"""Every row in complex numbers: adjoints are dL/dx + i dL/dy, by every way of computing them.

A row says what it is to complex operands (`Op.complex`); one that says nothing has no gradient
there, and refuses.  The loss is the real part of <weight, result>, and a change `d` of an operand
changes it by the real part of <gradient, d>.
"""

from functools import cached_property

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops.core import ELEMENTWISE, Formula
from tapegrad.ops.families import table
from tapegrad.tensor import wrap
from tests.conformance.samples import CHIEF, of_shapes, samples_of

STEP = 1e-5
FROM_REAL = {
    "complex", "view_as_complex", "fft_r2c",
    "eig", "eigh", "svd", "completed", "any_basis",  # whose phases or bases are arbitrary
}  # fmt: skip
CASES, REFUSING = [], []
for op in table.values():
    if op.name in ("function", "output") or not any(isinstance(f, Formula) for f in op.formulas):
        continue
    samples = (
        [of_shapes(op, shapes) for shapes in CHIEF[len(op.inputs)]]
        if op.kind is ELEMENTWISE
        else samples_of(op)
    )
    for sample in samples:
        into = CASES if op.complex else REFUSING
        into.append(pytest.param(op, sample, id=f"{op.name} {sample.name}"))

every_case = pytest.mark.parametrize(("op", "sample"), CASES)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of empty means


def number(rng, like):
    """A random array of the shape and the kind of another."""
    found = rng.uniform(-1, 1, np.shape(like))
    if like.dtype.kind == "c":
        found = found + 1j * rng.uniform(-1, 1, np.shape(like))
    return np.asarray(found)


def product(a, b):
    """The real part of <a, b>."""
    return sum(float(np.vdot(x, y).real) for x, y in zip(a, b, strict=True))


class Case:
    """A row on a sample whose floating-point operands got imaginary parts."""

    def __init__(self, op, sample):
        self.op, self.params = op, dict(sample.params)
        if op.name == "to":
            self.params["dtype"] = np.dtype("c16")
        rng = np.random.default_rng(5)
        self.operands = []
        for x in sample.operands:
            if x.dtype.kind == "f" and op.name not in FROM_REAL:
                x = x + 1j * (0.3 + 0.4 * rng.permutation(x.size).reshape(x.shape) / (x.size + 1))
            if sample.symmetric and op.name not in FROM_REAL:
                x = (x + x.mT.conj()) / 2
            self.operands.append(np.asarray(x))
        last = len(op.formulas) - 1
        self.moving = [
            k for k, x in enumerate(self.operands)
            if x.dtype.kind in "fc" and isinstance(op.formulas[min(k, last)], Formula)
            and not (op.name == "pair_prod" and k == 1)
        ]  # fmt: skip
        self.way = [number(rng, self.operands[k]) for k in self.moving]
        if sample.symmetric:
            self.way = [(d + d.mT.conj()) / 2 for d in self.way]
        self.rng = rng

    @cached_property
    def result(self):
        return self.value(0.0)

    @cached_property
    def weight(self):
        found = number(self.rng, self.result)
        if self.op.name == "eig":  # of real values and vectors, so that it leans to no phase
            found.imag = 0
        return found

    def moved(self, by):
        found = list(self.operands)
        for k, d in zip(self.moving, self.way, strict=True):
            found[k] = found[k] + by * d
        return found

    def value(self, by):
        with tg.no_grad():
            return self.op(*[wrap(x) for x in self.moved(by)], **self.params)._a

    def run(self, moving):
        """The operation as a function of what moves."""
        operands = [wrap(x) for x in self.operands]
        for k, x in zip(self.moving, moving, strict=True):
            operands[k] = x
        return self.op(*operands, **self.params)

    def gradients(self, by=0.0, **options):
        leaves = [tg.tensor(self.moved(by)[k], requires_grad=True) for k in self.moving]
        return leaves, tg.autograd.grad(self.run(leaves), leaves, wrap(self.weight), **options)


@every_case
def test_gradients_are_differences(op, sample):
    case = Case(op, sample)
    _, found = case.gradients()
    for g, k in zip(found, case.moving, strict=True):
        assert g.dtype == wrap(case.operands[k]).dtype
    slope = (case.value(STEP) - case.value(-STEP)) / (2 * STEP)
    expected = product([case.weight], [slope])
    np.testing.assert_allclose(product([g._a for g in found], case.way), expected, 1e-5, 1e-8)


@every_case
def test_recorded_and_second_order(op, sample):
    case = Case(op, sample)
    _, plain = case.gradients()
    leaves, recorded = case.gradients(create_graph=True)
    for a, b in zip(plain, recorded, strict=True):
        np.testing.assert_allclose(b._a, a._a, rtol=1e-12, atol=1e-12)
    if sample.orders < 2 or not any(g.requires_grad for g in recorded):
        return
    rng = np.random.default_rng(6)
    along = [number(rng, g._a) for g in recorded]
    second = tg.autograd.grad(
        [g for g in recorded if g.requires_grad], leaves,
        [wrap(u) for g, u in zip(recorded, along, strict=True) if g.requires_grad],
        allow_unused=True, materialize_grads=True,
    )  # fmt: skip
    ends = [[g._a for g in case.gradients(by)[1]] for by in (STEP, -STEP)]
    slope = [(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]
    found = product([g._a for g in second], case.way)
    np.testing.assert_allclose(found, product(along, slope), 1e-5, 1e-7)


@every_case
def test_forward(op, sample):
    case = Case(op, sample)
    _, found = case.gradients()
    primals = tuple(wrap(case.operands[k]) for k in case.moving)
    slopes = tuple(wrap(d) for d in case.way)
    y, slope = tg.func.jvp(lambda *xs: case.run(xs), primals, slopes)
    np.testing.assert_allclose(y._a, case.result)
    expected = product([g._a for g in found], case.way)
    np.testing.assert_allclose(product([case.weight], [slope._a]), expected, 1e-9, 1e-9)


@pytest.mark.filterwarnings("ignore:.vmap. has no rule")
@pytest.mark.parametrize(
    ("op", "sample"),
    [c for c in CASES if c.values[0].moves != "storage"],  # which has no batches
)
def test_batched(op, sample):
    case = Case(op, sample)
    two = [np.stack([case.moved(by)[k] for by in (0.0, 0.1)]) for k in case.moving]
    found = tg.func.vmap(lambda *xs: case.run(xs))(*[wrap(x) for x in two])
    expected = np.stack([case.value(by) for by in (0.0, 0.1)])
    np.testing.assert_allclose(found._a, expected, 1e-12, 1e-12)


@pytest.mark.parametrize(("op", "sample"), REFUSING)
def test_what_has_no_gradient_refuses(op, sample):
    """A row that says nothing of complex numbers gives an error, or a constant."""
    case = Case(op, sample)
    leaves = [tg.tensor(case.operands[k], requires_grad=True) for k in case.moving]
    if any(x.is_complex() for x in leaves):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError)):
            case.run(leaves)
