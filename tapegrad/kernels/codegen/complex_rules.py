"""The adjoints of operations on complex numbers, as expressions in real and imaginary parts.

A formula is called on symbols that say that they are complex; what comes out is taken apart by the
forms of `ops.complex_forms`, and the two expressions are the loop that `complex_loop_text` writes.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.codegen.rule_codegen import OPERANDS, Symbol, computable, names_in, plain
from tapegrad.ops.complex_forms import FORMS, Pair, form_of, knows_zeros
from tapegrad.ops.complex_parts import complex_, conj
from tapegrad.ops.core import ANALYTIC, ELEMENTWISE, OWN, Formula, Op, table
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.elementwise import angle
from tapegrad.ops.shape import getitem

REAL_RESULTS = (abs_, angle)
PER_ELEMENT = (conj, complex_)  # linear rows whose formulas take one number after the other
IMAGINARY = ".im"  # behind the name of an operand: its imaginary part
RESULT = 1  # of the bits that say what is complex; above it those of the operands


class ComplexSymbol(Symbol):
    """A complex number that is not known yet, or an operation on such numbers."""

    __slots__ = ()
    dtype = np.dtype(np.complex128)  # for formulas that ask whether it is complex

    @staticmethod
    def _tapegrad_run(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Symbol:
        if op is getitem:  # of `view_as_real`
            return Symbol("part", (args[0].args[0], params["index"][-1]))
        found = Symbol._tapegrad_run(op, args, params)
        return ComplexSymbol(found.name, found.args)

    @property
    def real(self) -> Symbol:
        """The real part."""
        return Symbol("part", (self, 0))


class ComplexLoop(NamedTuple):
    """A loop over elements of which some are pairs of numbers; as JSON its key on disk."""

    value: list[Any]  # the expressions of a number, or of both parts of one
    reads: list[str]  # the operands in them
    pairs: list[str]  # those that are complex
    conditions: list[str]  # those whose elements are bytes
    fixed: list[str]  # those that are one number for the whole loop
    dtype: str
    total: bool  # whether the results are added up, in an order that LLVM chooses


def parts(x: Any) -> Any:
    """A complex expression as a pair of real ones, None for an imaginary part that is zero.

    >>> from tapegrad.kernels.codegen.complex_rules import ComplexSymbol, parts
    >>> parts(abs(ComplexSymbol("a"))).name
    'hypot'
    """
    if not isinstance(x, Symbol):
        return Pair(x.real, x.imag) if isinstance(x, complex) else x
    if not x.args:
        return Pair(Symbol(x.name), Symbol(x.name + IMAGINARY)) if _is_complex(x) else x
    if x.name == "part":
        whole, which = parts(x.args[0]), x.args[1]
        return (whole[which] or 0.0) if isinstance(whole, Pair) else (0.0 if which else whole)
    args = [parts(arg) for arg in x.args]
    if not any(isinstance(arg, Pair) for arg in args):
        return Symbol(x.name, tuple(args))
    op = table[x.name]
    form = form_of(op, len(args), True)
    if form is None:
        raise NotImplementedError(f"`{op.name}` has no form for complex numbers")
    missing = None if knows_zeros(op) else 0.0
    given = op.inputs + ("",) * len(args)
    return form(*[
        arg if isinstance(arg, Pair) or kind == "condition" else Pair(arg, missing)
        for kind, arg in zip(given, args, strict=False)
    ])  # fmt: skip


def _is_complex(x: Any) -> bool:
    return isinstance(x, ComplexSymbol)


def adjoint(op: Op, k: int, mixed: int) -> list[Any]:
    """What the adjoint `g` of a result contributes to that of operand k: one part of it, or both.

    Bit 0 of `mixed` says that the result is complex, those above that the operands are.
    """
    names = [*OPERANDS[: len(op.inputs)], "g", "y"]
    complex_names = {name for i, name in enumerate(OPERANDS[:3]) if mixed >> (i + 1) & 1}
    complex_names |= {"g", "y"} if mixed & RESULT else set()
    symbols = {name: (ComplexSymbol if name in complex_names else Symbol)(name) for name in names}
    values = dict(zip(op.inputs, [symbols[name] for name in names], strict=False))
    values |= {"g": symbols["g"], "y": symbols["y"]}
    formula = op.formulas[k]
    assert isinstance(formula, Formula)
    analytic = op.complex is ANALYTIC and mixed & RESULT
    if op.kind is not ELEMENTWISE:
        found = parts(formula.function(*[values[name] for name in formula.reads]))
    else:
        factor = _pair(parts(formula.function(*[values[name] for name in formula.reads])))
        if analytic and factor.im is not None:
            factor = Pair(factor.re, -factor.im)
        found = _product(_pair(parts(symbols["g"])), factor, "exact" if op.exact[k] else "strong")
    whole = _pair(found)
    if not mixed >> (k + 1) & 1:
        return [whole.re]
    return [whole.re, 0.0 if whole.im is None else whole.im]


def _pair(x: Any) -> Pair:
    return x if isinstance(x, Pair) else Pair(x, None)


def _product(g: Pair, factor: Pair, name: str) -> Pair:
    """The adjoint times a partial derivative, by the strong product."""
    if factor.im is None and not isinstance(factor.re, Symbol):
        if factor.re == 0:
            return Pair(0.0, None)
        if abs(factor.re) == 1:
            minus = factor.re < 0
            return Pair(*[-x if minus and x is not None else x for x in g])
    found: Pair = FORMS[name](g, factor)
    return found


def mixtures(op: Op) -> list[int]:
    """What may be complex of an operation that can be compiled, as bits: see `adjoint`.

    All operands that have a derivative, or all of them but one.

    >>> from tapegrad.kernels.codegen.complex_rules import mixtures
    >>> from tapegrad.ops.core import table
    >>> [f"{mixed:03b}" for mixed in mixtures(table["mul"])], mixtures(table["abs"])
    (['011', '101', '111'], [2])
    """
    if op is complex_:
        return [RESULT]
    moving = [1 << k + 1 for k, kind in enumerate(op.inputs) if kind != "condition"]
    operands = {sum(moving), *[sum(moving) - one for one in moving]} - {0}
    found = [bits | (0 if op in REAL_RESULTS else RESULT) for bits in sorted(operands)]
    return [mixed for mixed in found if has_kernels(op, mixed)]


@cache
def has_kernels(op: Op, mixed: int) -> bool:
    """Whether the formulas of all operands that have a derivative can be compiled."""
    if op.kind is ELEMENTWISE:
        known = op.complex in (ANALYTIC, OWN)
    else:
        known = op in PER_ELEMENT
    moving = [k for k, formula in enumerate(op.formulas) if isinstance(formula, Formula)]
    if not known or len(op.inputs) > 3:
        return False
    try:
        return all(computable(part) for k in moving for part in adjoint(op, k, mixed))
    except NotImplementedError:
        return False


@cache
def source(op: Op, k: int, dtype: str, scalars: int, mixed: int) -> str:
    """The loop that hands the adjoint of a result on to operand k.

    `scalars` and `mixed` are as in `rule_codegen.adjoint_source` and in `adjoint`.
    """
    value = adjoint(op, k, mixed)
    names = set().union(*map(names_in, value))
    pairs = {name.removesuffix(IMAGINARY) for name in names if name.endswith(IMAGINARY)}
    reads = {name.removesuffix(IMAGINARY) for name in names}
    for i, name in enumerate(OPERANDS[:3]):
        pairs |= {name} & reads if mixed >> (i + 1) & 1 else set()
    pairs |= {"g", "y"} & reads if mixed & RESULT else set()
    given = {name for name, kind in zip(OPERANDS, op.inputs, strict=False) if kind == "condition"}
    fixed = {name for i, name in enumerate(OPERANDS[:3]) if scalars >> i & 1} & reads
    loop = ComplexLoop(
        [plain(x) for x in value], sorted(reads), sorted(pairs), sorted(given & reads),
        sorted(fixed), dtype, bool(scalars >> k & 1),
    )  # fmt: skip
    return json.dumps(loop)
