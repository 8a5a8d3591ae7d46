"""The same formulas under other interpreters: dual numbers (forward mode) and LLVM (a compiler).

Both are spikes: they show that a rule is written once and can be run in these ways too.
"""

import ctypes
import math

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from tapegrad.kernels.codegen.rule_codegen import Symbol, partial, result
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import ELEMENTWISE, Formula
from tapegrad.ops.families import table
from tests.conformance.samples import FIRST_ORDER, of_shapes

# -- dual numbers ----------------------------------------------------------------------------------


class Dual:
    """A value and its tangent; operations push tangents forward by the formulas of the table."""

    def __init__(self, value, tangent):
        self.value, self.tangent = value, tangent

    @staticmethod
    def _tapegrad_run(op, args, params):
        assert op.kind is ELEMENTWISE
        values = [x.value if isinstance(x, Dual) else x for x in args]
        y = op(*values, **params)
        names = dict(zip(op.inputs, values, strict=True), y=y)
        tangent = 0.0
        for formula, x in zip(op.formulas, args, strict=True):
            if isinstance(x, Dual) and isinstance(formula, Formula):
                slope = formula.function(*[names[name] for name in formula.reads])
                tangent = e.add(tangent, e.mul(slope, x.tangent))
        return Dual(y, tangent)

    def __add__(self, other):
        return e.add(self, other)

    def __radd__(self, other):
        return e.add(other, self)

    def __sub__(self, other):
        return e.sub(self, other)

    def __rsub__(self, other):
        return e.sub(other, self)

    def __mul__(self, other):
        return e.mul(self, other)

    def __rmul__(self, other):
        return e.mul(other, self)

    def __truediv__(self, other):
        return e.div(self, other)

    def __rtruediv__(self, other):
        return e.div(other, self)

    def __neg__(self):
        return e.neg(self)


SMOOTH = [
    op
    for op in table.values()
    if op.kind is ELEMENTWISE
    and op.name not in ("where", "remainder", "floor", "sign")
    and all(type(f) is Formula for f in op.formulas)
]
smooth = pytest.mark.parametrize("op", SMOOTH, ids=lambda op: op.name)


def operands_of(op):
    return of_shapes(op, [(5,)] * len(op.inputs)).operands


def difference(f, h=1e-3):
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


@smooth
def test_a_rule_pushes_tangents(op):
    operands = operands_of(op)
    rng = np.random.default_rng(3)
    tangents = [rng.uniform(-1, 1, x.shape) for x in operands]
    found = op(*[Dual(x, t) for x, t in zip(operands, tangents, strict=True)])
    expected = difference(
        lambda h: op(*[x + h * t for x, t in zip(operands, tangents, strict=True)])
    )
    np.testing.assert_allclose(found.value, op(*operands))
    np.testing.assert_allclose(np.broadcast_to(found.tangent, (5,)), expected, rtol=2e-6, atol=1e-8)


@smooth
def test_a_rule_on_duals_of_duals_is_the_second_derivative(op):
    """The tangent of the formula itself: forward over forward."""
    operands = operands_of(op)
    ones = [np.ones_like(x) for x in operands]
    inner = [Dual(x, 1.0) for x in operands]
    twice = [Dual(x, 1.0) for x in inner]
    if op.name in FIRST_ORDER:
        with pytest.raises(NotImplementedError, match="the second derivative of"):
            op(*twice)
        return
    found = op(*twice).tangent
    second = found.tangent if isinstance(found, Dual) else 0.0

    def first(h):
        moved = [Dual(x + h * o, o) for x, o in zip(operands, ones, strict=True)]
        return np.broadcast_to(op(*moved).tangent, (5,))

    expected = difference(first)
    np.testing.assert_allclose(np.broadcast_to(second, (5,)), expected, rtol=2e-6, atol=1e-7)


# -- LLVM ------------------------------------------------------------------------------------------

DOUBLE = ir.DoubleType()
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
LIBM = {
    "sin": "sin", "cos": "cos", "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh",
    "sinh": "sinh", "cosh": "cosh", "log1p": "log1p", "floor": "floor", "abs": "fabs", "pow": "pow",
}  # fmt: skip


class Lowering:
    """Writes an expression of symbols as straight-line LLVM; equal parts are computed once."""

    def __init__(self, name, operands):
        self.module = ir.Module(name)
        kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(operands))
        self.function = ir.Function(self.module, kind, name)
        self.builder = ir.IRBuilder(self.function.append_basic_block())
        self.known = {
            (name, ()): arg for name, arg in zip(operands, self.function.args, strict=True)
        }

    def value(self, x):
        if not isinstance(x, Symbol):
            return ir.Constant(DOUBLE, float(x))
        if not x.args:
            return self.known[x.name, ()]
        args = [self.value(arg) for arg in x.args]
        key = (
            x.name,
            tuple(id(arg) if not isinstance(arg, ir.Constant) else str(arg) for arg in args),
        )
        if key not in self.known:
            self.known[key] = self.compute(x.name, args)
        return self.known[key]

    def compute(self, name, args):
        b = self.builder
        simple = {"add": b.fadd, "sub": b.fsub, "mul": b.fmul, "div": b.fdiv, "neg": b.fneg,
                  "both": b.and_, "where": b.select}  # fmt: skip
        if name in simple:
            return simple[name](*args)
        if name in COMPARISONS:
            return b.fcmp_ordered(COMPARISONS[name], *args)
        if name == "square":
            return b.fmul(args[0], args[0])
        if name == "sigmoid":
            one = ir.Constant(DOUBLE, 1.0)
            return b.fdiv(one, b.fadd(one, self.compute("exp", [b.fneg(args[0])])))
        kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(args))
        found = self.module.globals.get(LIBM[name]) or ir.Function(self.module, kind, LIBM[name])
        return b.call(found, args)


@pytest.fixture(scope="module")
def jit():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    kept = []

    def compile_(name, expression, operands):
        lowering = Lowering(name, operands)
        lowering.builder.ret(lowering.value(expression))
        assert len(lowering.function.blocks) == 1  # straight-line
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(lowering.module)), machine)
        engine.finalize_object()
        kept.append(engine)
        address = engine.get_function_address(name)
        return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(operands))(address)

    return compile_


LOWERED = ["sin", "tanh", "sigmoid", "sqrt", "relu", "mul", "div", "pow", "atan2", "maximum",
           "clamp_min",
           "addcdiv", "lerp", "softplus", "asin"]  # fmt: skip


@pytest.mark.parametrize("name", LOWERED)
def test_a_rule_is_traced_into_machine_code(jit, name):
    op = table[name]
    operands = operands_of(op)
    letters = "abc"[: len(op.inputs)]
    points = list(zip(*[x.tolist() for x in operands], strict=True))
    for k, formula in enumerate(op.formulas):
        compiled = jit(f"{name}_{k}", partial(op, k), [*letters, "y"])
        for point in points:
            arrays = [np.array(x) for x in point]
            y = op(*arrays)
            names = dict(zip(op.inputs, arrays, strict=True), y=y)
            expected = formula.function(*[names[n] for n in formula.reads])
            assert math.isclose(compiled(*point, float(y)), float(expected), rel_tol=1e-14)


def test_a_composition_and_its_gradient_in_one_function(jit):
    """d/dx of tanh(x * x) + sin(x): the formulas chained by hand on symbols."""
    x = Symbol("a")
    square = e.mul(x, x)
    y = e.tanh(square)
    slope = table["tanh"].formulas[0].function(y) * (x + x) + table["sin"].formulas[0].function(x)
    compiled = jit("gradient", slope, ["a"])
    for at in (-1.3, 0.0, 0.4):
        expected = (1 - math.tanh(at * at) ** 2) * 2 * at + math.cos(at)
        assert math.isclose(compiled(at), expected, rel_tol=1e-14)


def test_the_result_of_an_operation_is_an_expression_too(jit):
    compiled = jit("forward", result(table["div"]), ["a", "b"])
    assert compiled(1.0, 4.0) == 0.25
