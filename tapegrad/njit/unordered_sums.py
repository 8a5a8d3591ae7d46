"""Sums that the forward sweep may add up in any order, as only their rounding changes.

Where the value of the function is not wanted, a sum has to have the function's own bits only if
something is decided by it: a branch, an index, a kink, what is given to other code.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tapegrad.kernels.codegen.rule_codegen import Symbol
from tapegrad.njit.partials import is_row, partials
from tapegrad.njit.three_address_code import FLOATS, Unsupported
from tapegrad.njit.values import Function, Loop, Value


def unordered_sums(function: Function) -> set[Value]:
    """The additions of loops whose order decides nothing."""
    readers: dict[Value, list[Value]] = {}
    for v in function.all_values():
        for a in v.args:
            readers.setdefault(a, []).append(v)
    found = {v for loop in function.loops for v in _sums(loop, readers)}
    return found - _deciding(function) if found else found


def _sums(loop: Loop, readers: dict[Value, list[Value]]) -> list[Value]:
    """The additions to a number that a loop carries, which nothing else in it reads."""
    back = loop.header.predecessors.index(loop.latch)
    found = []
    for phi in loop.header.phis:
        v = phi.args[back]
        if phi.type not in FLOATS or v.op not in ("add", "sub") or v.varying:
            continue
        if v.args[0] is not phi and (v.op == "sub" or v.args[1] is not phi):
            continue
        inside = [x for x in readers[phi] if loop.holds(x)]
        if inside == [v] and readers[v] == [phi]:
            found.append(v)
    return found


def _deciding(function: Function) -> set[Value]:
    """All that something is decided by, or that other code is given."""
    memory_of = function.alias_class
    found, memory = set[Value](), set[Value]()
    for v in function.all_values():
        if v.type not in FLOATS or v.op == "call" or not _is_smooth(v.op):
            found.update(a for a in v.args if a.type in FLOATS and v.op != "store")
        if v.op == "call":
            memory.update(memory_of(a) for a in v.args if a.type == "ptr")
    size = None
    while size != (size := (len(found), len(memory))):
        for v in function.all_values():
            if v.op == "store":
                if memory_of(v.args[0]) in memory:
                    found.add(v.args[2])
            elif v in found:
                if v.op == "load":
                    memory.add(memory_of(v.args[0]))
                found.update(v.args)
    return found


@cache
def _is_smooth(op: str) -> bool:
    """Whether an operation has a derivative without jumps."""
    if not is_row(op):
        return True
    try:
        slopes = partials(op)
    except Unsupported:
        return False
    return None not in slopes and all(p is not None and _is_continuous(p.formula) for p in slopes)


def _is_continuous(x: Any) -> bool:
    if not isinstance(x, Symbol) or not x.args:
        return True
    return None not in partials(x.name) and all(map(_is_continuous, x.args))
