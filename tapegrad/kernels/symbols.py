"""Derivative formulas on symbols: what a kernel computes, as straight-line code.

A formula called on symbols returns an expression; equal subexpressions are written once.  `SCALARS`
says how each elementwise operation is computed for one element.  An operation that is missing there
has no compiled kernel and is computed by NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.ops.core import ELEMENTWISE, Formula, Op

SCALARS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "neg": "-{0}",
    "square": "{0} * {0}",
    "reciprocal": "one / {0}",
    "cube": "{0} * {0} * {0}",
    "abs": "abs({0})",
    "sign": "select({0} > zero, one, select({0} < zero, -one, {0} * zero))",
    "floor": "math.floor({0})",
    "sqrt": "math.sqrt({0})",
    "rsqrt": "one / math.sqrt({0})",
    "exp": "vmath.exp({0})",
    "log": "vmath.log({0})",
    "log1p": "vmath.log1p({0})",
    "expm1": "vmath.expm1({0})",
    "sin": "vmath.sin({0})",
    "cos": "vmath.cos({0})",
    "tan": "vmath.tan({0})",
    "tanh": "vmath.tanh({0})",
    "sinh": "vmath.sinh({0})",
    "cosh": "vmath.cosh({0})",
    "sigmoid": "vmath.sigmoid({0})",
    "softplus": "vmath.softplus({0})",
    "erf": "vmath.erf({0})",
    "pow": "vmath.power({0}, {1})",
    "asin": "math.asin({0})",
    "acos": "math.acos({0})",
    "atan": "math.atan({0})",
    "atan2": "math.atan2({0}, {1})",
    "relu": "select({0} > zero, {0}, {0} * zero)",
    "strong": "select({0} != zero, {0} * {1}, zero)",
    "addcmul": "{0} + {1} * {2}",
    "addcdiv": "{0} + {1} / {2}",
    "lerp": "{0} + {2} * ({1} - {0})",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "both": "{0} & {1}",
    "where": "select({0}, {1}, {2})",
}
CONDITIONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "both"})


class Symbol:
    """A scalar that is not known yet: a name, or an operation on symbols and numbers."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.args = args

    @staticmethod
    def _tapegrad_run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Symbol:
        name = op.name
        if name == "mul" and all(_is_condition(arg) for arg in args):
            name = "both"
        return Symbol(name, args)

    def __add__(self, other: Any) -> Symbol:
        return Symbol("add", (self, other))

    def __radd__(self, other: Any) -> Symbol:
        return Symbol("add", (other, self))

    def __sub__(self, other: Any) -> Symbol:
        return Symbol("sub", (self, other))

    def __rsub__(self, other: Any) -> Symbol:
        return Symbol("sub", (other, self))

    def __mul__(self, other: Any) -> Symbol:
        return Symbol("mul", (self, other))

    def __rmul__(self, other: Any) -> Symbol:
        return Symbol("mul", (other, self))

    def __truediv__(self, other: Any) -> Symbol:
        return Symbol("div", (self, other))

    def __rtruediv__(self, other: Any) -> Symbol:
        return Symbol("div", (other, self))

    def __neg__(self) -> Symbol:
        return Symbol("neg", (self,))


def _is_condition(x: Any) -> bool:
    return isinstance(x, Symbol) and x.name in CONDITIONS


class Lines:
    """Straight-line code: one assignment per distinct operation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def write(self, x: Any) -> str:
        """The name that holds an expression, after the assignments that compute it."""
        if not isinstance(x, Symbol):
            return f"T({float(x)!r})"
        if not x.args:
            return x.name
        text = SCALARS[x.name].format(*[self.write(arg) for arg in x.args])
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"t{len(self._names)}"
            self.lines.append(f"{name} = {text}")
        return name


OPERANDS = ("a", "b", "c")


def partial(op: Op, k: int) -> Any:
    """The partial derivative of an elementwise operation in operand k, as an expression."""
    formula = op.formulas[k]
    assert isinstance(formula, Formula)
    values = dict(zip(op.inputs, (Symbol(name) for name in OPERANDS), strict=False))
    values["y"] = Symbol("y")
    return formula.function(*[values[name] for name in formula.reads])


def result(op: Op) -> Symbol:
    """The result of an elementwise operation, as an expression."""
    return Symbol(op.name, tuple(Symbol(name) for name in OPERANDS[: len(op.inputs)]))


def computable(x: Any) -> bool:
    """Whether every operation of an expression is known for one element."""
    if not isinstance(x, Symbol) or not x.args:
        return True
    return x.name in SCALARS and all(computable(arg) for arg in x.args)


def names_in(x: Any) -> set[str]:
    """The operands that an expression reads."""
    if not isinstance(x, Symbol):
        return set()
    if not x.args:
        return {x.name}
    return set().union(*(names_in(arg) for arg in x.args))


HEADER = """\
import math
from tapegrad.kernels import vmath
from tapegrad.kernels.memory import select{suffix} as select, {pointer} as pointer
from numba import {kind} as T
zero = T(0.0)
one = T(1.0)

"""
KINDS = {"f8": ("f8", "float64"), "f4": ("f4", "float32")}


def header(dtype: str) -> str:
    """What every generated kernel begins with."""
    pointer, kind = KINDS[dtype]
    return HEADER.format(pointer=pointer, kind=kind, suffix="_" + dtype)


def adjoint_source(op: Op, k: int, dtype: str, scalars: int) -> str:
    """The kernel that hands the adjoint of a result on to operand k.

    Bit i of `scalars` says that operand i is one number for the whole loop (bit 3: the adjoint).
    The kernel's `accumulate` chooses between adding and writing.
    """
    expression = partial(op, k)
    read = names_in(expression)
    lines = Lines()
    if isinstance(expression, Symbol):
        value = lines.write(Symbol("strong", (Symbol("g"), expression)))
    elif expression in (1, -1):
        value = "g" if expression == 1 else "-g"
    else:
        value = lines.write(Symbol("strong", (Symbol("g"), expression)))
    fixed = {name for i, name in enumerate(OPERANDS) if scalars >> i & 1} & read
    if scalars >> 3 & 1:
        fixed.add("g")
    moving = sorted((read | {"g"}) - fixed)
    body = [f"{name} = {name}_p[i]" for name in moving] + lines.lines
    reduced = bool(scalars >> k & 1)
    if reduced:
        loops = ["total = zero", "for i in range(n):", *_indent([*body, f"total += {value}"]),
                 "out_p[0] = total + out_p[0] if accumulate else total"]  # fmt: skip
    else:
        loops = ["if accumulate:", "    for i in range(n):",
                 *_indent([*body, f"out_p[i] += {value}"], 2), "else:", "    for i in range(n):",
                 *_indent([*body, f"out_p[i] = {value}"], 2)]  # fmt: skip
    setup = [f"{name}_p = pointer({name}_at)" for name in sorted(read | {"g", "out"})]
    setup += [f"{name} = {name}_p[0]" for name in sorted(fixed)]
    return _function("n, accumulate, g_at, out_at, a_at, b_at, c_at, y_at", [*setup, *loops], dtype)


def forward_source(op: Op, dtype: str, scalars: int) -> str:
    """The kernel that computes an elementwise operation."""
    lines = Lines()
    value = lines.write(result(op))
    names = OPERANDS[: len(op.inputs)]
    fixed = [name for i, name in enumerate(names) if scalars >> i & 1]
    body = [f"{name} = {name}_p[i]" for name in names if name not in fixed]
    setup = [f"{name}_p = pointer({name}_at)" for name in (*names, "out")]
    setup += [f"{name} = {name}_p[0]" for name in fixed]
    loop = ["for i in range(n):", *_indent([*body, *lines.lines, f"out_p[i] = {value}"])]
    return _function("n, out_at, a_at, b_at, c_at", [*setup, *loop], dtype)


def _indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line for line in lines]


def _function(arguments: str, body: list[str], dtype: str) -> str:
    return header(dtype) + f"def kernel({arguments}):\n" + "\n".join(
        _indent([*body, "return 0"])
    ) + "\n"  # fmt: skip


def has_kernel(op: Op, k: int) -> bool:
    """Whether the formula of operand k can be compiled."""
    formula = op.formulas[k]
    return (
        op.kind == ELEMENTWISE
        and isinstance(formula, Formula)
        and "g" not in formula.reads
        and computable(partial(op, k))
    )


