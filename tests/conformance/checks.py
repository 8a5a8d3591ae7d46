"""The checkers that `test_rules.py` applies to each row; each is tested by a planted error."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

import tapegrad as tg
from tapegrad.autograd import gemm_adjoints, large_adjoints
from tapegrad.base.compile_stages import NotCompiled
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.native import install
from tapegrad.ops.core import LINEAR, Formula, Op
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import wrap
from tests.conformance.samples import GRAIN, Sample, laid_out

F8, F4 = np.dtype("f8"), np.dtype("f4")
ROUNDING = {F8: 1e-12, F4: 3e-5}
STEP = 1e-3


@contextmanager
def rules_only() -> Any:
    """No compiled sweep and no kernels: every record is done by its rule, on arrays."""

    def none(*_: Any, **__: Any) -> Any:  # a mock for each takes 30 times as long to make
        return None

    with (
        mock.patch.object(sweep_abi, "find", none),
        mock.patch.object(native_calls, "sweep", None),
        mock.patch.object(large_adjoints, "step", none),
        mock.patch.object(gemm_adjoints, "step", none),
    ):
        yield


@contextmanager
def uncompiled() -> Any:
    """Nothing is compiled yet, and another process is at it."""

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotCompiled

    def loop(*args: Any, waiting: bool = False, **kwargs: Any) -> Any:
        return there(*args, waiting=True, **kwargs) if waiting else missing()

    there, before = kernel_table.loop, current.tape
    with ExitStack() as stack:
        for name in (
            "compiled_sweep",
            "adjoint",
            "complex_adjoint",
            "forward",
            "pullback",
            "large_axis_loop",
        ):
            stack.enter_context(mock.patch.object(kernel_table, name, missing))
        stack.enter_context(mock.patch.object(kernel_table, "loop", loop))
        install.suspend()
        try:
            current.tape = Tape()  # which has no workspace for the compiled sweep
            yield
        finally:
            current.tape = before
            install.resume()


class Case:
    """A row on one sample, in one dtype: its leaves, weights for its result, a direction."""

    def __init__(self, op: Op, sample: Sample, dtype: Any, how: str = "") -> None:
        self.op, self.sample, self.dtype = op, sample, np.dtype(dtype)
        rng = np.random.default_rng(11)
        last = len(op.formulas) - 1
        self.arrays = [x.astype(self.dtype) if x.dtype.kind == "f" else x for x in sample.operands]
        self.moving = [
            i
            for i, x in enumerate(self.arrays)
            if x.dtype.kind == "f"
            and type(op.formulas[min(i, last)]) is Formula
            and not (op.name == "pair_prod" and i == 1)
        ]
        if how:
            self.arrays = [laid_out(x, how) for x in self.arrays]
        self.direction = [self._random(rng, x.shape) for x in self.arrays]
        if sample.symmetric:
            self.direction = [(d + d.mT) / 2 for d in self.direction]
        self.result = self.value(self.arrays)
        self.floating = self.result.dtype.kind == "f"
        self.weight = self._random(rng, self.result.shape).astype(
            self.result.dtype if self.floating else F8
        )

    def _random(self, rng: Any, shape: Any) -> Any:
        found = rng.uniform(-1, 1, shape)
        return np.asarray(np.round(found * GRAIN) / GRAIN)

    def value(self, arrays: Any) -> Any:
        """The result as an array; nothing is recorded."""
        with tg.no_grad():
            return self.op(*[wrap(x) for x in arrays], **self.sample.params)._a

    def moved(self, by: float) -> list[Any]:
        """The operands in float64, moved along the direction."""
        wide = [x.astype(F8) if x.dtype == F4 else x for x in self.arrays]
        return [
            np.asarray(x + by * d) if i in self.moving else x
            for i, (x, d) in enumerate(zip(wide, self.direction, strict=True))
        ]

    def leaves(self, arrays: Any = None) -> list[Any]:
        """Fresh Tensors over the operands."""
        found = [wrap(np.asarray(x)) for x in (self.arrays if arrays is None else arrays)]
        for i in self.moving:
            found[i].requires_grad_()
        return found

    def gradients(self, arrays: Any = None, weight: Any = None, recorded: bool = False) -> Any:
        """The gradients of the moving operands as arrays."""
        leaves = self.leaves(arrays)
        y = self.op(*leaves, **self.sample.params)
        weight = self.weight if weight is None else weight
        found = tg.autograd.grad(
            y, [leaves[i] for i in self.moving], wrap(weight.astype(y._a.dtype)),
            create_graph=recorded,
        )  # fmt: skip
        return [g._a for g in found]

    def second(self, arrays: Any, weight: Any, along: Any) -> list[Any]:
        """Derivatives of <gradient, along>: for each moving operand, and last for the weight."""
        leaves = self.leaves(arrays)
        y = self.op(*leaves, **self.sample.params)
        v = wrap(weight.astype(y._a.dtype)).requires_grad_()
        inputs = [leaves[i] for i in self.moving]
        first = tg.autograd.grad(y, inputs, v, create_graph=True)
        total = sum((g * wrap(u.astype(g._a.dtype))).sum() for g, u in zip(first, along))
        if not total.requires_grad:
            return [np.zeros(x.shape) for x in (*inputs, v)]
        found = tg.autograd.grad(total, [*inputs, v], allow_unused=True, materialize_grads=True)
        return [g._a for g in found]

    def along(self) -> list[Any]:
        """The direction, of the moving operands only."""
        return [self.direction[i] for i in self.moving]


def pairing(a: Any, b: Any) -> tuple[float, float]:
    """The inner product of two lists of arrays, and how large its terms are."""
    terms = [np.asarray(x, F8) * np.asarray(y, F8) for x, y in zip(a, b, strict=True)]
    return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Two lists of arrays agree up to rounding, relative to the largest element."""
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a.shape == b.shape, f"{what}: input {k} has the shape {a.shape}, not {b.shape}"
        scale = max(float(np.abs(b).max(initial=0)), 1e-3)
        np.testing.assert_allclose(
            a, b, rtol=tolerance, atol=tolerance * scale, err_msg=f"{what}, input {k}"
        )


def differences(f: Any, exact: bool) -> Any:
    """The derivative of f at 0, by central differences."""
    if exact:  # a linear function: any step gives the exact answer
        return (f(1.0) - f(-1.0)) / 2
    h = STEP
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


# -- the checkers ----------------------------------------------------------------------------------


# What the public function of the same does is recorded as that function, see `rule_calls`.
STANDS_FOR = {"product": "matmul", "sum_to": "sum"}


def check_record(case: Case) -> None:
    """One record is appended and the operands are as before."""
    before = [x.copy() for x in case.arrays]
    leaves = case.leaves()
    tape = current.tape
    start = tape.next
    y = case.op(*leaves, **case.sample.params)
    assert tape.next - start == int(bool(case.moving) and case.floating)
    assert y.requires_grad == (bool(case.moving) and case.floating)
    if y.requires_grad:
        assert tape[-1].op in (case.op.name, STANDS_FOR.get(case.op.name))
        y.backward(wrap(case.weight))
        for i in case.moving:
            grad = leaves[i].grad._a
            assert grad.shape == case.arrays[i].shape
            assert grad.dtype == case.arrays[i].dtype
    for x, old in zip(case.arrays, before, strict=True):
        np.testing.assert_array_equal(x, old)


def check_kernels(case: Case) -> None:
    """The compiled sweep and the rule on arrays give the same gradients."""
    found = case.gradients()
    with rules_only():
        expected = case.gradients()
    close(found, expected, ROUNDING[case.dtype], "kernel against rule")


def check_differences(case: Case) -> None:
    """The rule gives what differences along a direction give; float32 agrees with float64."""
    with rules_only():
        found = case.gradients()
        wide = case.gradients([x.astype(F8) if x.dtype == F4 else x for x in case.arrays])
    if case.dtype != F8:
        close(found, wide, ROUNDING[case.dtype], "float32 against float64")
    derivative = differences(
        lambda t: pairing([case.value(case.moved(t))], [case.weight])[0], case.op.kind is LINEAR
    )
    expected, scale = pairing(wide, case.along())
    assert abs(derivative - expected) <= 1e-6 * scale + 1e-9, (derivative, expected)


def check_transpose(case: Case) -> None:
    """For a linear row: <A^T v, x> = <v, A x>, to rounding."""
    left, scale = pairing(case.gradients(), [case.arrays[i] for i in case.moving])
    right, _ = pairing([case.weight], [case.result])
    assert abs(left - right) <= ROUNDING[case.dtype] * scale + 1e-300, (left, right)


def check_recorded(case: Case) -> None:
    """A sweep that is itself recorded gives the same gradients."""
    found = case.gradients(recorded=True)
    with rules_only():
        expected = case.gradients()
    close(found, expected, ROUNDING[case.dtype], "recorded sweep against rule")


def check_second_order(case: Case) -> None:
    """Derivatives of the gradient, in the operands and in the weight, by differences of it."""
    rng = np.random.default_rng(13)
    along = [np.asarray(rng.uniform(-1, 1, case.arrays[i].shape)) for i in case.moving]
    weight = np.asarray(rng.uniform(-1, 1, case.weight.shape))
    wide = [x.astype(F8) if x.dtype == F4 else x for x in case.arrays]
    found = case.second(wide, case.weight, along)
    derivative = differences(
        lambda t: pairing(
            case.gradients(case.moved(t), np.asarray(case.weight + t * weight, F8)), along
        )[0],
        case.op.kind is LINEAR,
    )
    expected, scale = pairing(found, [*case.along(), weight])
    assert abs(derivative - expected) <= 1e-6 * scale + 1e-8, (derivative, expected)
    if case.dtype != F8:
        narrow = case.second(case.arrays, case.weight, along)
        close(narrow, found, 10 * ROUNDING[case.dtype], "second order in float32")
