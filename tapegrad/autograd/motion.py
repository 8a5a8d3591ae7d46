"""How elementwise operations move, as straight-line Python over whole arrays.

From the partial derivatives in the table two functions are made for an operation and for which of
its operands move: `push` gives the tangent of the result, `bend` what an adjoint and its own
tangent become at the operands.  The partials are differentiated once more by the same table.
Products are plain ones: where a zero meets an infinity they give NaN, which the caller looks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tapegrad.kernels.symbols import CONDITIONS, OPERANDS, Symbol, partial
from tapegrad.ops.core import ELEMENTWISE, Formula, Op, table

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "strong": "*", "exact": "*"}


class Motion(NamedTuple):
    """The functions of one operation, and the operands that move its result at all.

    ``push(a, b, c, y, ta, tb, tc)`` returns the tangent of the result and the partials;
    ``bend(g, dg, a, b, c, y, ta, tb, tc, ty, partials)`` returns two for each of them, its
    adjoint and the tangent of that.
    """

    live: tuple[int, ...]
    push: Callable[..., tuple[Any, Any]]
    bend: Callable[..., list[Any]]


def slope(x: Any, along: dict[str, Symbol]) -> Any:
    """The derivative of an expression along tangents of the symbols in it."""
    if not isinstance(x, Symbol) or x.name in CONDITIONS:
        return 0
    if not x.args:
        return along.get(x.name, 0)
    op = table[x.name]
    values = dict(zip(op.inputs, x.args, strict=True)) | {"y": x}
    total: Any = 0
    for formula, arg in zip(op.formulas, x.args, strict=True):
        inner = slope(arg, along)
        if isinstance(formula, Formula) and _moves(inner):
            factor = formula.function(*[values[name] for name in formula.reads])
            total = plus(total, times(inner, factor))
    return total


def _moves(x: Any) -> bool:
    return isinstance(x, Symbol) or x != 0


def plus(a: Any, b: Any) -> Any:
    """A sum of expressions of which one may be zero."""
    return b if not _moves(a) else a if not _moves(b) else Symbol("add", (a, b))


def times(a: Any, b: Any) -> Any:
    """A product of expressions of which one may be a simple number."""
    for x, other in ((a, b), (b, a)):
        if not isinstance(x, Symbol):
            if x == 0:
                return 0
            if x == 1:
                return other
            if x == -1:
                return -other
    return Symbol("mul", (a, b))


@cache
def motion(op: Op, moving: tuple[bool, bool, bool]) -> Motion | None:
    """The functions of an operation whose operands move or not; None if there can be none."""
    if op.kind != ELEMENTWISE or len(op.inputs) > 3:
        return None
    known = [k for k in range(len(op.inputs)) if moving[k] and isinstance(op.formulas[k], Formula)]
    live = tuple([k for k in known if _moves(partial(op, k))])
    partials = [partial(op, k) for k in live]
    along = {OPERANDS[k]: Symbol(f"t{OPERANDS[k]}") for k in live} | {"y": Symbol("ty")}
    push, bend = Text(), Text()
    total: Any = 0
    for k, p in zip(live, partials, strict=True):
        total = plus(total, times(along[OPERANDS[k]], p))
    found = push.write(total), [push.write(p) for p in partials]
    push.lines.append(f"return {found[0]}, [{', '.join(found[1])}]")
    g, dg = Symbol("g"), Symbol("dg")
    results: list[Any] = []
    for i, p in enumerate(partials):
        factor = Symbol(f"p[{i}]") if isinstance(p, Symbol) else p
        results += [times(g, factor), plus(times(dg, factor), times(g, slope(p, along)))]
    bend.lines.append(f"return [{', '.join([bend.write(x) for x in results])}]")
    return Motion(
        live,
        push.function("a, b, c, y, ta, tb, tc"),
        bend.function("g, dg, a, b, c, y, ta, tb, tc, ty, p"),
    )


class Text:
    """Straight-line code over arrays: one assignment per distinct operation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.called: dict[str, Any] = {"nan": math.nan, "inf": math.inf}
        self._names: dict[str, str] = {}

    def write(self, x: Any) -> str:
        """The name of an expression, after the assignments that compute it."""
        if not isinstance(x, Symbol):
            return repr(float(x))
        if not x.args:
            return x.name
        args = [self.write(arg) for arg in x.args]
        if x.name in INFIX:
            text = f" {INFIX[x.name]} ".join(args)
        elif x.name == "neg":
            text = f"-{args[0]}"
        else:
            name = "mul" if x.name == "both" else x.name
            self.called[name] = table[name].forward
            text = f"{name}({', '.join(args)})"
        if text not in self._names:
            self._names[text] = f"v{len(self._names)}"
            self.lines.append(f"{self._names[text]} = {text}")
        return self._names[text]

    def function(self, arguments: str) -> Callable[..., Any]:
        """The lines as a function."""
        made: dict[str, Any] = {}
        body = "".join(f"    {line}\n" for line in self.lines)
        exec(f"def moved({arguments}):\n{body}", self.called, made)  # text from the table alone
        function: Callable[..., Any] = made["moved"]
        return function
