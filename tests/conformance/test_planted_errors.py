"""The tests of the tests: an error of 0.1 % in a rule is caught by the checker meant for it."""

from contextlib import contextmanager

import numpy as np
import pytest

from tapegrad.kernels.codegen import axis_codegen, complex_rules, rule_codegen
from tapegrad.kernels.codegen import kernel_table as kernels
from tapegrad.kernels.sweep.sweep_abi import CAPACITY, PER_OP
from tapegrad.ops.core import Formula
from tapegrad.ops.families import table
from tapegrad.tensor import Tensor
from tests.conformance import checks
from tests.conformance.checks import F4, F8, Case
from tests.conformance.samples import Sample, samples_of, values

WRONG = 1.001


@contextmanager
def fresh_kernels(op):
    """Kernels of an operation are built anew inside, and forgotten afterwards."""
    mine = kernels.addresses.reshape(-1, CAPACITY, PER_OP)[:, op.code]
    before = mine.copy()
    mine[:] = 0
    made = (
        kernels.adjoint, rule_codegen.adjoint_source, axis_codegen.source,
        kernels.complex_adjoint, complex_rules.source, complex_rules.has_kernels,
    )  # fmt: skip
    for cached in made:
        cached.cache_clear()
    try:
        yield
    finally:
        mine[:] = before
        for cached in made:
            cached.cache_clear()


@contextmanager
def planted(name, **formulas):
    """A row with other formulas; whatever they read besides is kept."""
    op = table[name]
    kept, saves = op.formulas, op.saves
    op.formulas = tuple(
        Formula(formulas[i]) if i in formulas else f for i, f in zip(op.inputs, kept, strict=True)
    )
    op.saves = tuple((True,) * len(s) for s in saves)
    try:
        with fresh_kernels(op):
            yield op
    finally:
        op.formulas, op.saves = kept, saves


def first(op):
    return next(s for s in samples_of(op) if all(np.size(x) > 1 for x in s.operands))


def caught(check, case):
    with pytest.raises(AssertionError):
        check(case)


def wrong(function):
    """The same formula, 0.1 % too large, with the same parameters."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return eval(f"lambda {', '.join(names)}: WRONG * function({', '.join(names)})", {
        "WRONG": WRONG, "function": function,
    })  # fmt: skip


def rule(name, k):
    return table[name].formulas[k].function


PLANTED = {
    "tanh": {"x": wrong(rule("tanh", 0))},
    "mul": {"b": wrong(rule("mul", 1))},
    "div": {"b": wrong(rule("div", 1))},
    "where": {"a": lambda condition: table["where"](condition, WRONG, 0)},
    "cumsum": {"x": wrong(rule("cumsum", 0))},
    "mean": {"x": wrong(rule("mean", 0))},
    "logsumexp": {"x": wrong(rule("logsumexp", 0))},
    "matmul": {"a": wrong(rule("matmul", 0))},
    "solve": {"a": wrong(rule("solve", 0))},
    "cholesky": {"x": wrong(rule("cholesky", 0))},
    "svd": {"x": wrong(rule("svd", 0))},
    "einsum": {"each": wrong(rule("einsum", 0))},
}


@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
@pytest.mark.parametrize("name", PLANTED)
def test_differences_catch_a_wrong_rule(name, dtype):
    case = Case(table[name], first(table[name]), dtype)
    checks.check_differences(case)
    with planted(name, **PLANTED[name]):
        caught(checks.check_differences, case)
    checks.check_differences(case)


@pytest.mark.parametrize("name", ["cumsum", "mean"])
def test_the_pairing_catches_a_wrong_transpose(name):
    case = Case(table[name], first(table[name]), F8)
    checks.check_transpose(case)
    with planted(name, **PLANTED[name]), checks.rules_only():  # it has its own loop for means
        caught(checks.check_transpose, case)


@pytest.mark.parametrize("dtype", [F8, F4], ids=str)
def test_the_kernel_is_held_to_the_rule(monkeypatch, dtype):
    case = Case(table["mul"], first(table["mul"]), dtype)
    checks.check_kernels(case)
    right = rule_codegen.partial
    monkeypatch.setattr(rule_codegen, "partial", lambda op, k: right(op, k) * WRONG)
    with fresh_kernels(table["mul"]):
        caught(checks.check_kernels, case)
    monkeypatch.undo()
    checks.check_kernels(case)


def test_the_recorded_sweep_is_held_to_the_rule():
    def two_faced(y):
        return (1 - y * y) * (WRONG if isinstance(y, Tensor) else 1.0)

    case = Case(table["tanh"], first(table["tanh"]), F8)
    checks.check_recorded(case)
    with planted("tanh", x=two_faced):
        caught(checks.check_recorded, case)


def test_a_wrong_derivative_of_a_right_gradient_is_caught():
    case = Case(table["sin"], first(table["sin"]), F8)
    checks.check_second_order(case)
    with planted("cos", x=lambda x: -WRONG * table["sin"](x)):
        checks.check_differences(case)  # the gradient itself is right
        caught(checks.check_second_order, case)


def test_a_second_derivative_that_drops_a_term_is_caught():
    detached = lambda y: 1 - y * (y.detach() if isinstance(y, Tensor) else y)
    case = Case(table["tanh"], first(table["tanh"]), F8)
    with planted("tanh", x=detached):
        checks.check_recorded(case)
        caught(checks.check_second_order, case)


def test_an_operation_that_changes_its_input_is_caught(monkeypatch):
    op = table["exp"]
    right = op.forward

    def greedy(x):
        y = right(x)
        x += 1
        return y

    case = Case(op, Sample("", values((3,))), F8)
    checks.check_record(case)
    monkeypatch.setattr(op, "entry_point", None)  # which holds on to the forward
    op.forward = greedy
    try:
        caught(checks.check_record, case)
    finally:
        op.forward = right
