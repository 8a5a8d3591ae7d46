"""Calls of the elementwise rows that no line of the other tables names, made from the rows."""

from __future__ import annotations

from types import CodeType

import tapegrad
from tapegrad.ops.core import ELEMENTWISE, Op
from tapegrad.ops.families import by_code
from tests.conformance.samples import CHIEF, of_shapes
from tests.peers import loss_cases, nn_cases, torch_more  # noqa: F401 - they enter their cases first
from tests.peers.torch_cases import CASES, case

UNFINISHED = {"asinh", "acosh", "atanh"}  # whose in-place forms have no derivative in PyTorch


def names_in(code: CodeType) -> set[str]:
    """The attributes that a function reads, those of functions in it included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
    return found


def _enter(op: Op, name: str) -> None:
    """The function, the method and the in-place form under one name."""
    first, *rest = [f"x{k}" for k in range(len(op.inputs))]
    others = ", ".join(rest)
    calls = [f"t.{name}({', '.join([first, *rest])})", f"{first}.{name}({others})"]
    if op.inplace:
        calls.append(f"({first} * 1).{name}_({others})")
    for shapes in CHIEF[len(op.inputs)]:  # as text: a test looks for the names that code calls
        function = eval(f"lambda t, {', '.join([first, *rest])}: [{', '.join(calls)}]")
        case(function, *of_shapes(op, shapes).operands)


def _enter_change(op: Op, name: str) -> None:
    """The function that changes its first operand."""
    operands = of_shapes(op, CHIEF[len(op.inputs)][0]).operands
    first, *rest = [f"x{k}" for k in range(len(op.inputs))]
    part = ".detach()" if op.name in UNFINISHED else ""
    body = f"t.{name}_({', '.join([f'{first}{part} * 1', *rest])})"
    case(eval(f"lambda t, {', '.join([first, *rest])}: {body}"), *operands)


_called = set().union(*(names_in(c.function.__code__) for c in CASES))
for _op in by_code:
    if _op.doc and _op.kind is ELEMENTWISE and not _op.namespace:
        for _name in _op.names:
            if _name not in _called or (_op.inplace and f"{_name}_" not in _called):
                _enter(_op, _name)
    for _name in _op.names:
        if _op.inplace and f"{_name}_" in tapegrad.__all__:
            _enter_change(_op, _name)
