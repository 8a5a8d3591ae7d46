"""From rules to loops over elements: a derivative formula called on symbols gives an expression.

A row's `scalar` says how one element is computed.  An operation without has no compiled loop and is
computed by NumPy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from tapegrad.kernels import simd_tables
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, table
from tapegrad.ops.elementwise import Lazy
from tapegrad.ops.facets import Facets

Short = Literal["none", "untabled", "all"]  # which short forms are wanted
Link = tuple[str, str]  # a form, and a test for the arguments that it does not serve, if any
BLOCK = 1024  # elements of a loop that are computed before a test decides whether that will do


def scalar_form(name: str) -> str:
    """One element of an operation as its row has it, or nothing; `both` conditions hold.

    >>> from tapegrad.kernels.codegen.rule_codegen import scalar_form
    >>> scalar_form("add"), scalar_form("matmul")
    ('{0} + {1}', '')
    """
    if name == "both":
        return "{0} & {1}"
    return table[name].scalar if name in table else ""


def chain(name: str, short: Short = "all") -> list[Link]:
    """The forms of an operation, the quickest first; the last one serves every argument.

    >>> from tapegrad.kernels.codegen.rule_codegen import chain
    >>> for form, test in chain("sin"):
    ...     print(f"{form:<20}", test)
    vmath.sin_plain({0}) vmath.angle_is_rare({0})
    vmath.sin({0})       vmath.angle_is_large({0})
    vmath.sin_any({0})
    """
    form = scalar_form(name)
    op = table.get(name, Facets)
    guard, rare = op.guard, op.rare
    links = []
    tables = short == "all" and simd_tables.in_registers()
    if rare and (tables or (short in ("untabled", "all") and op.vmath == "untabled")):
        links.append((_variant(form, "plain"), "" if rare == "never" else rare))
    if rare != "never" or not links:
        links.append((form, guard))
        if guard:
            links.append((_variant(form, "any"), ""))
    return links


def _variant(form: str, suffix: str) -> str:
    """Another function of `vmath` in place of that which a form calls."""
    return re.sub(r"v?math\.(\w+)", rf"vmath.\1_{suffix}", form)


def is_condition(x: Any) -> bool:
    """Whether an expression is true or false: a comparison has no derivatives."""
    if not isinstance(x, Symbol) or x.name == "both":
        return isinstance(x, Symbol)
    formulas = table[x.name].formulas if x.args else ()
    return bool(formulas) and not any(isinstance(f, Formula) for f in formulas)


class Symbol:
    """A scalar that is not known yet: a name, or an operation on symbols and numbers."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.args = args

    @staticmethod
    def _tapegrad_run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Symbol:
        name = op.name
        if name == "mul" and all(map(is_condition, args)):
            name = "both"
        return Symbol(name, args)

    def __add__(self, other: Any) -> Symbol:
        return type(self)("add", (self, other))

    def __radd__(self, other: Any) -> Symbol:
        return type(self)("add", (other, self))

    def __sub__(self, other: Any) -> Symbol:
        return type(self)("sub", (self, other))

    def __rsub__(self, other: Any) -> Symbol:
        return type(self)("sub", (other, self))

    def __mul__(self, other: Any) -> Symbol:
        return type(self)("mul", (self, other))

    def __rmul__(self, other: Any) -> Symbol:
        return type(self)("mul", (other, self))

    def __truediv__(self, other: Any) -> Symbol:
        return type(self)("div", (self, other))

    def __rtruediv__(self, other: Any) -> Symbol:
        return type(self)("div", (other, self))

    def __neg__(self) -> Symbol:
        return type(self)("neg", (self,))

    def __abs__(self) -> Symbol:
        return type(self)("abs", (self,))


def number(x: float) -> str:
    """A number in the code of a kernel."""
    return f"T({repr(float(x)).replace('nan', 'math.nan').replace('inf', 'math.inf')})"


class Lines:
    """Straight-line code: one assignment per distinct operation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def write(self, x: Any) -> str:
        """The name that holds an expression, after the assignments that compute it."""
        if not isinstance(x, Symbol):
            return number(x)
        if not x.args:
            return x.name
        args = [self.write(arg) for arg in x.args]
        text = chain(x.name, "none")[-1][0].format(*args)
        name = self._names.get(text)
        if name is None:
            name = self._names[text] = f"t{len(self._names)}"
            self.lines.append(f"{name} = {text}")
        return name


OPERANDS = ("a", "b", "c", "y")  # a fourth operand stands where else the result does


def partial(op: Op, k: int) -> Any:
    """The partial derivative of an elementwise operation in operand k, as an expression."""
    formula = op.formulas[k]
    assert isinstance(formula, Formula)
    values = {"y": Symbol("y")}
    values |= dict(zip(op.inputs, (Symbol(name) for name in OPERANDS), strict=False))
    return formula.function(*[values[name] for name in formula.reads])


def result(op: Op) -> Symbol:
    """The result of an elementwise operation, as an expression."""
    return Symbol(op.name, tuple(Symbol(name) for name in OPERANDS[: len(op.inputs)]))


def computable(x: Any, *, scipy: bool = False) -> bool:
    """Whether every operation of an expression is known for one element, perhaps as SciPy's."""
    if not isinstance(x, Symbol) or not x.args:
        return True
    known = bool(scalar_form(x.name)) or (scipy and is_scipys(x.name))
    return known and all(computable(arg, scipy=scipy) for arg in x.args)


def is_scipys(name: str) -> bool:
    """Whether an operation is a function of SciPy's, which compiled code calls by pointer."""
    op = table.get(name)
    return op is not None and op.in_c and isinstance(op.forward, Lazy)


def calls_scipy(op: Op, k: int) -> bool:
    """Whether the partial derivative in operand k is computed by SciPy's functions."""
    return any(map(is_scipys, _operations(partial(op, k))))


def names_in(x: Any) -> set[str]:
    """The operands that an expression reads."""
    if not isinstance(x, Symbol):
        return set()
    if not x.args:
        return {x.name}
    return set().union(*(names_in(arg) for arg in x.args))


HEADER = """\
import math
from math import copysign
from tapegrad.kernels{vmath}
from tapegrad.kernels.memory import select{suffix} as select, {pointer} as pointer, i8
from tapegrad.kernels.memory import floor{suffix} as floor, plus{suffix} as plus
from tapegrad.kernels.memory import room{suffix} as room
from tapegrad.kernels.memory import larger{suffix} as larger, smaller{suffix} as smaller
from numba import {kind} as T
zero = T(0.0)
one = T(1.0)

"""
KINDS = {
    "f8": ("f8", "float64", " import vmath"),
    "f4": ("f4", "float32", ".vmath import single as vmath"),
}


def header(dtype: str) -> str:
    """What every generated kernel begins with."""
    pointer, kind, vmath = KINDS[dtype]
    return HEADER.format(pointer=pointer, kind=kind, vmath=vmath, suffix="_" + dtype)


class ElementLoop(NamedTuple):
    """A loop over elements: what it computes of which operands, and where that goes.

    As JSON it is the loop's key on disk; `loop_text` writes it.
    """

    value: Any  # an expression: a name, a number, or the name of an operation and expressions
    reads: tuple[str, ...]  # the operands in it
    dtype: str
    arguments: tuple[str, ...]
    fixed: tuple[str, ...]  # operands that are one number for the whole loop
    conditions: tuple[str, ...]  # operands whose elements are bytes
    total: bool  # whether the results are added up, in an order that LLVM chooses
    over: str  # the operand that the results are written over, if any
    short: Short
    forms: dict[str, list[Link]]  # that the operations of the expression have


ADJOINT = ("n", "accumulate", "g", "out", "a", "b", "c", "y")  # the arguments of an adjoint
FORWARD = ("n", "out", "a", "b", "c", "y")  # and of an operation


@cache
def adjoint_source(op: Op, k: int, dtype: str, scalars: int) -> str:
    """The loop that hands the adjoint of a result on to operand k.

    Bit i of `scalars` says that operand i is one number for the whole loop; bit 3 says so of the
    adjoint, bit 4 of the fourth operand.
    Where operand k is one number, its contributions are added up, in an order that LLVM chooses.
    The loop's `accumulate` chooses between adding and writing.
    """
    factor = partial(op, k)
    g = Symbol("g")
    value: Any
    if factor in (1, -1):
        value = g if factor == 1 else -g
    elif not isinstance(factor, Symbol) and factor == 0:
        value = 0
    else:
        value = Symbol("exact" if op.exact[k] else "strong", (g, factor))
    order = ("a", "b", "c", "g", "y")
    fixed = {name for i, name in enumerate(order) if scalars >> i & 1}
    # For a few elements, which are most, a short form has to wait for what it looks up.
    short: Short = "untabled" if dtype == "f8" else "none"
    return _source(op, value, dtype, ADJOINT, fixed, short, total=bool(scalars >> k & 1))


@cache
def forward_source(op: Op, dtype: str, scalars: int) -> str:
    """The loop that computes an elementwise operation.

    Bit 4 of `scalars` says that the result is written over operand a: LLVM then knows that no
    element is read after it was overwritten.
    """
    fixed = {name for i, name in enumerate(OPERANDS) if scalars >> i & 1}
    short: Short = "all" if dtype == "f8" else "none"
    over = "a" if scalars >> 4 & 1 else ""
    return _source(op, result(op), dtype, FORWARD, fixed, short, over=over)


def _source(
    op: Op, value: Any, dtype: str, arguments: tuple[str, ...], fixed: set[str], short: Short,
    total: bool = False, over: str = "",
) -> str:  # fmt: skip
    read = names_in(value)
    given = {name for name, kind in zip(OPERANDS, op.inputs, strict=False) if kind == "condition"}
    forms = {name: chain(name, short) for name in sorted(_operations(value))}
    loop = ElementLoop(
        plain(value), tuple(sorted(read)), dtype, arguments, tuple(sorted(fixed & read)),
        tuple(sorted(given & read)), total, over, short, forms,
    )  # fmt: skip
    return json.dumps(loop)


def plain(x: Any) -> Any:
    """An expression for JSON: a number, a name, or the name of an operation and expressions."""
    if not isinstance(x, Symbol):
        return float(x)
    return [x.name, *map(plain, x.args)] if x.args else x.name


def _operations(x: Any) -> set[str]:
    if not isinstance(x, Symbol) or not x.args:
        return set()
    return {x.name}.union(*map(_operations, x.args))


def update_source(
    values: dict[str, Any], arrays: Sequence[str], numbers: Sequence[str], dtype: str
) -> str:
    """The kernel that writes new elements of arrays over old ones, by expressions in these and in
    numbers.

    It takes a table, of which a row says how many elements there are, where the numbers stand one
    after the other, and where the arrays do.
    """
    lines = Lines()
    names = {array: lines.write(value) for array, value in values.items()}
    each = [f"words = i8(rows_at + {8 * (2 + len(arrays))} * row)", "numbers = pointer(words[1])"]
    each += [f"{name}_p = pointer(words[{k}])" for k, name in enumerate(arrays, 2)]
    each += [f"{name} = numbers[{k}]" for k, name in enumerate(numbers)]
    element = [*[f"{name} = {name}_p[i]" for name in arrays], *lines.lines]
    element += [f"{array}_p[i] = {name}" for array, name in names.items()]
    each += ["for i in range(words[0]):", *indented(element)]
    unused = ", ".join(f"unused_{k}" for k in range(6))
    return _function(f"n, rows_at, {unused}", ["for row in range(n):", *indented(each)], dtype)


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Lines of a block."""
    return ["    " * depth + line for line in lines]


def _function(arguments: str, body: list[str], dtype: str) -> str:
    return header(dtype) + f"def kernel({arguments}):\n" + "\n".join(
        indented([*body, "return 0"])
    ) + "\n"  # fmt: skip


def has_kernel(op: Op, k: int) -> bool:
    """Whether the formula of operand k can be compiled."""
    formula = op.formulas[k]
    return (
        op.kind == ELEMENTWISE
        and type(formula) is Formula
        and "g" not in formula.reads
        and computable(partial(op, k), scipy=True)
    )
