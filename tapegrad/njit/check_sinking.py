"""Sink checks for divisors of zero out of a loop, behind it: LLVM vectorizes the loop then.

A quotient by zero harms nobody who only computes with it: what the function raises, it raises, and
nothing else is left of the call.  In loops that look places up by what they compute, checks stay.
"""

from __future__ import annotations

from tapegrad.njit.three_address_code import FLOATS
from tapegrad.njit.values import Function, Loop, Value, dominates

_INDEX = ("iadd", "isub", "imul", "imin", "imax", "ifloordiv", "imod", "wrap", "gep")


def sink_divisor_checks(function: Function) -> None:
    """Take the checks out of innermost loops of which the number of trips is known."""
    for loop in function.loops:
        checks = [
            v for b in sorted(loop.blocks, key=lambda b: b.index)
            for v in b.instructions if _is_of_divisor(v) and dominates(b, loop.latch)
        ]  # fmt: skip
        if checks and _may_go_on(loop):
            _take_out(function, loop, checks)
    function.number_positions()


def _is_of_divisor(v: Value) -> bool:
    if v.op != "require":
        return False
    condition = v.args[0]
    return condition.op == "ne" and condition.args[0].type in FLOATS


def _may_go_on(loop: Loop) -> bool:
    """Whether a loop ends and stays in its arrays, whatever its floats are."""
    if loop.count is None or loop.shared is not None or loop.width > 1:
        return False
    if any(b.loop is not loop for b in loop.blocks):
        return False
    inside = [v for b in loop.blocks for v in b.instructions]
    accesses = [v for v in inside if v.op in ("load", "store")]
    return not any(v.op in ("alloc", "call") for v in inside) and all(
        _is_counted(a, loop) for v in accesses for a in v.args[:2]
    )


def _is_counted(index: Value, loop: Loop) -> bool:
    """Whether an index or a pointer is known from the number of the trip."""
    if index is loop.number or not loop.holds(index):
        return True
    return index.op in _INDEX and all(_is_counted(a, loop) for a in index.args)


def _take_out(function: Function, loop: Loop, checks: list[Value]) -> None:
    header, (after,) = loop.header, loop.exits
    good = function.value("phi", [], "i1", None, header)
    now = good
    for check in checks:
        made = function.value("band", [now, check.args[0]], "i1", None, check.home)
        instructions = check.home.instructions
        instructions[instructions.index(check)] = now = made
    start = function.const(True, "i1")
    good.args = [start if p is loop.preheader else now for p in header.predecessors]
    header.phis.append(good)
    found = function.value("phi", [good], "i1", None, after)
    after.phis.append(found)
    required = function.value("require", [found], "", None, after)
    required.line = checks[0].line
    after.instructions.insert(0, required)
