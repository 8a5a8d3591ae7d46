"""The derivative formulas of elementwise operations as text, from their rows."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tapegrad.kernels.codegen.rule_codegen import Symbol
from tapegrad.ops.core import Formula, NotImplementedYet, Op, table

INFIX = re.compile(r"\{0\} (\S+) \{1\}")
STRENGTH = {"*": 3, "/": 3, "+": 2, "-": 2, "&": 1}  # comparisons bind least, as in Python
UNARY, CALL = 4, 5


@cache
def formula_text(op: Op, k: int) -> str:
    """The partial derivative in operand k over operands and the result `y`; empty: there is none.

    >>> from tapegrad.ops.core import table
    >>> formula_text(table["div"], 1), formula_text(table["tanh"], 0)
    ('-(a / b) / b', '1 - y * y')
    """
    formula = op.formulas[min(k, len(op.formulas) - 1)]
    if not isinstance(formula, Formula) or isinstance(formula, NotImplementedYet):
        return ""
    return _written(formula.function(*map(Symbol, formula.reads)))[0]


def _written(x: Any) -> tuple[str, int]:
    """The text of an expression, and how strongly its outermost operator binds."""
    if not isinstance(x, Symbol):
        text = f"{x:g}" if isinstance(x, (int, float)) else str(x)
        return text, UNARY if text.startswith("-") else CALL
    if not x.args:
        return x.name, CALL
    if x.name == "neg":
        return "-" + _within(x.args[0], UNARY), UNARY
    sign = _sign(x.name)
    if not sign or len(x.args) != 2:
        return f"{x.name}({', '.join(_written(arg)[0] for arg in x.args)})", CALL
    strength = STRENGTH.get(sign, 0)
    left = _within(x.args[0], strength)
    right = _within(x.args[1], strength + (sign not in "+*"))
    return f"{left} {sign} {right}", strength


def _within(x: Any, strength: int) -> str:
    """The text of an operand, in brackets if it binds less than what is around it."""
    text, own = _written(x)
    return text if own >= strength else f"({text})"


def _sign(name: str) -> str:
    """The operator of a binary operation, from its row; of a product of conditions, `&`."""
    if name in ("strong", "exact"):
        return "*"
    if name == "both":
        return "&"
    found = INFIX.fullmatch(table[name].scalar)
    return found[1] if found else ""
