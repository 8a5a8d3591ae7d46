"""Symbolic tangents of elementwise operations, for two passes over a tape.

The partial derivatives of the table give the tangent of a result, and the operands' adjoints with
their tangents.  The partials are differentiated once more by the same table.  Products are plain
ones: zero times infinity gives NaN, which the caller checks for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tapegrad.kernels.codegen.rule_codegen import OPERANDS, Symbol, is_condition
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, table

INFIX = re.compile(r"\{0\} ([-+*/]) \{1\}")
NAME = re.compile(r"[A-Za-z_]\w*")


class Tangent:
    """An operation on named operands; those with `tangents` are active.

    ``partials`` has the partial derivatives in those of them that move the result at all.
    """

    def __init__(self, op: Op, operands: list[Symbol], y: Symbol, tangents: dict[int, Any]) -> None:
        values = dict(zip(op.inputs, operands, strict=True)) | {"y": y}
        self.tangents = tangents
        self.partials: dict[int, Any] = {}
        for k in tangents:
            formula = op.formulas[k]
            if isinstance(formula, Formula):
                found = formula.function(*[values[name] for name in formula.reads])
                if moves(found):
                    self.partials[k] = found
        self._tangent_of = {operands[k].name: tangents[k] for k in self.partials}
        self._y = y.name

    def push(self) -> Any:
        """The tangent of the result."""
        total: Any = 0
        for k, p in self.partials.items():
            total = plus(total, times(self.tangents[k], p))
        return total

    def pull(self, g: Any, dg: Any, tangent: Any) -> dict[int, tuple[Any, Any]]:
        """The adjoints of the operands and their tangents, given those of the result."""
        tangents = self._tangent_of | {self._y: tangent}
        return {
            k: (times(g, p), plus(times(dg, p), times(g, slope(p, tangents))))
            for k, p in self.partials.items()
        }


def slope(x: Any, tangents: dict[str, Any]) -> Any:
    """The derivative of an expression along tangents of the symbols in it."""
    if not isinstance(x, Symbol) or is_condition(x):
        return 0
    if not x.args:
        return tangents.get(x.name, 0)
    op = table[x.name]
    values = dict(zip(op.inputs, x.args, strict=True)) | {"y": x}
    total: Any = 0
    for formula, arg in zip(op.formulas, x.args, strict=True):
        inner = slope(arg, tangents)
        if isinstance(formula, Formula) and moves(inner):
            factor = formula.function(*[values[name] for name in formula.reads])
            total = plus(total, times(inner, factor))
    return total


def moves(x: Any) -> bool:
    """Whether an expression is not the number zero."""
    return isinstance(x, Symbol) or x != 0


def plus(a: Any, b: Any) -> Any:
    """A sum of expressions of which one may be zero."""
    if not (isinstance(a, Symbol) or isinstance(b, Symbol)):
        return a + b
    if not (moves(a) and moves(b)):
        return a if moves(a) else b
    if isinstance(b, Symbol) and b.name == "neg":
        return Symbol("sub", (a, *b.args))
    return Symbol("add", (a, b))


def times(a: Any, b: Any) -> Any:
    """A product of expressions of which one may be a simple number."""
    if not (isinstance(a, Symbol) or isinstance(b, Symbol)):
        return a * b
    for x, other in ((a, b), (b, a)):
        if not isinstance(x, Symbol):
            if x == 0:
                return 0
            if x == 1:
                return other
            if x == -1:
                return -other
    return Symbol("mul", (a, b))


class Text:
    """Straight-line code over arrays, without common subexpressions and, in the end, without
    dead code.
    """

    def __init__(self) -> None:
        # By its module's name NumPy's warnings of such code are told from those of the user's.
        self.called: dict[str, Any] = {"nan": math.nan, "inf": math.inf, "__name__": __name__}
        self._lines: list[tuple[str, str]] = []  # what a line assigns or changes, and the line
        self._names: dict[str, str] = {}

    def write(self, x: Any) -> str:
        """The name of an expression, after the assignments that compute it."""
        if not isinstance(x, Symbol):
            return repr(float(x))
        if not x.args:
            return x.name
        args = [self.write(arg) for arg in x.args]
        name = "mul" if x.name in ("strong", "exact", "both") else x.name
        infix = INFIX.fullmatch(table[name].scalar)
        if infix:
            text = f" {infix[1]} ".join(args)
        elif name == "neg":
            text = f"-{args[0]}"
        else:
            self.called[name] = table[name].forward
            text = f"{name}({', '.join(args)})"
        return self.call(text).name

    def settled(self, x: Any) -> Any:
        """Assign an expression to a name now; a number stays as it is."""
        return Symbol(self.write(x)) if isinstance(x, Symbol) else x

    def call(self, text: str) -> Symbol:
        """The value of a pure call, shared with equal ones."""
        if text not in self._names:
            self._names[text] = self.assign(f"v{len(self._lines)}", text).name
        return Symbol(self._names[text])

    def assign(self, name: str, text: str) -> Symbol:
        """A value under a new name."""
        self._lines.append((name, f"{name} = {text}"))
        return Symbol(name)

    def change(self, name: str, line: str) -> None:
        """A line that changes an array."""
        self._lines.append((name, line))

    def function(self, name: str, arguments: str, result: str) -> Callable[..., Any]:
        """The lines that lead to a result, as a function."""
        read = set(NAME.findall(result))
        body = [f"    return {result}\n"]
        for target, line in reversed(self._lines):
            if target in read:
                read.update(NAME.findall(line))
                body.append(f"    {line}\n")
        body.append(f"def {name}({arguments}):\n")
        made: dict[str, Any] = {}
        exec("".join(reversed(body)), self.called, made)  # text from the table and records alone
        function: Callable[..., Any] = made[name]
        return function


@cache
def pushed(op: Op, moving: tuple[bool, ...]) -> Callable[..., Any] | None:
    """``f(a, b, c, y, ta, tb, tc)``, the tangent of one result; None if no operand is active, or
    it is not differentiable.
    """
    n = len(op.inputs)
    if op.kind is not ELEMENTWISE or n > 3:
        return None
    names = OPERANDS[:n]
    tangents = {k: Symbol(f"t{name}") for k, name in enumerate(names) if moving[k]}
    motion = Tangent(op, [Symbol(name) for name in names], Symbol("y"), tangents)
    if not motion.partials:
        return None
    text = Text()
    return text.function("pushed", "a, b, c, y, ta, tb, tc", text.write(motion.push()))
