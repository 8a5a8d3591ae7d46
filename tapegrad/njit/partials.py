"""Partial derivatives of elementwise operations, read off the table of rules."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from tapegrad.compiler.llvm.scipy_calls import SCIPY
from tapegrad.kernels.codegen.rule_codegen import OPERANDS, Symbol, names_in, partial, scalar_form
from tapegrad.njit.three_address_code import Unsupported
from tapegrad.ops.core import Formula
from tapegrad.ops.families import table


class Partial(NamedTuple):
    """The partial derivative in one operand: a number or an expression, and what that reads.

    `product` is the row by which an adjoint is multiplied with it.
    """

    formula: Any
    reads: tuple[str, ...]
    product: str


@cache
def partials(name: str) -> tuple[Partial | None, ...]:
    """For each operand of a row its partial derivative; None where that is zero.

    >>> from tapegrad.njit.partials import partials
    >>> [p.reads for p in partials("mul")], partials("floor")
    ([('b',), ('a',)], (None,))
    """
    op = table[name]
    found: list[Partial | None] = []
    for k, formula in enumerate(op.formulas):
        expression = partial(op, k) if isinstance(formula, Formula) else 0
        if isinstance(expression, int | float) and expression == 0:
            found.append(None)
            continue
        if not _computable(expression):
            raise Unsupported(f"`{name}`, whose derivative no compiled code computes")
        product = "exact" if op.exact[k] else "strong"
        found.append(Partial(expression, tuple(sorted(names_in(expression))), product))
    return tuple(found)


def _computable(x: Any) -> bool:
    """Whether compiled code has every operation of an expression."""
    if not isinstance(x, Symbol) or not x.args:
        return True
    return has_scalar_form(x.name) and all(map(_computable, x.args))


def has_scalar_form(name: str) -> bool:
    """Whether compiled code computes one element of an operation, if only by calling SciPy."""
    return bool(scalar_form(name)) or name in SCIPY


def is_row(name: str) -> bool:
    """Whether an instruction is an operation of the table."""
    return name in table


def operand(v: Any, name: str) -> Any:
    """The operand of a value, or the value itself, that a formula calls by a name."""
    return v if name == "y" else v.args[OPERANDS.index(name)]
