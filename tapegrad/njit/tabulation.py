"""Compute once what a loop computes again in each trip, and look it up in a table.

`for i: for j: t += f(q[j])` has the same values of `f` in every trip of the outer loop.  A loop in
front of that fills a table with them, and the derivative of `f` is taken once for each as well: the
table has an adjoint, in which those of all trips are added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.njit.partials import is_row
from tapegrad.njit.three_address_code import FLOATS
from tapegrad.njit.values import Block, Function, Loop, Value, dominates

_INTEGERS = (
    "gep", "cast", "select", "wrap", "not", "iadd", "isub", "imul", "imax", "imin", "iabs",
    "ifloordiv", "imod", "band", "bor", "bxor",
)  # fmt: skip
_SITES = 1 << 30  # numbers of allocations that no code has


class Invariant(NamedTuple):
    """A value that is the same in all trips of a loop, for the same trips of loops in it."""

    value: Value
    loop: Loop
    inner: tuple[Loop, ...]  # in the loop and around the value, the outermost first
    numbers: tuple[Loop, ...]  # those of which it depends on the number of the trip


def tabulate_functions(function: Function) -> None:
    """Take functions that are slow out of the loops in which they are invariant."""
    slow = [v for v in function.instructions() if is_row(v.op) and calls(v.op)]
    for v in slow:
        for loop in reversed(list(loops_around(v))):
            found = invariant_in(function, v, loop)
            if found is not None and not found.numbers:
                _take_out(function, found)
                break
            if found is not None and tabulated(function, found) is not None:
                break
    function.number_positions()


def loops_around(v: Value) -> Iterator[Loop]:
    """The loops around a value, the innermost first."""
    loop = v.home.loop
    while loop is not None:
        yield loop
        loop = loop.parent


def invariant_in(function: Function, v: Value, loop: Loop) -> Invariant | None:
    """A value of floats, if it is invariant in a loop, and computed in each trip."""
    inner: list[Loop] = []
    block = v.home
    for around in loops_around(v):
        if around.count is None or not dominates(block, around.latch):
            return None
        if around is loop:
            break
        inner.insert(0, around)
        block = around.header
    if v.type not in FLOATS or not (inner or v.op != "load") or not _may_be_early(loop):
        return None
    parts = _slice(function, [v], loop, inner)
    if parts is None:
        return None
    numbers = tuple(x for x in inner if x.number in parts)
    if not numbers and any(x.op == "load" for x in parts):
        return None
    return Invariant(v, loop, tuple(inner), numbers)


def _may_be_early(loop: Loop) -> bool:
    """Whether what is read in a loop may be read before: no index is checked there."""
    return not any(
        v.op == "require" and not (v.args[0].op == "ne" and v.args[0].args[0].type in FLOATS)
        for b in loop.blocks for v in b.instructions
    )  # fmt: skip


def _slice(
    function: Function, values: list[Value], loop: Loop, inner: Iterable[Loop]
) -> dict[Value, None] | None:
    """What values are computed of in a loop; None if that may be another thing in each trip."""
    of, numbers = function.alias_class, {x.number for x in inner}
    inside = [v for b in loop.blocks for v in b.instructions]
    written = set[Value]().union(*map(function.written_classes, inside))
    found: dict[Value, None] = {}
    pending = list(values)
    while pending:
        v = pending.pop()
        if v in found or not loop.holds(v):
            continue
        found[v] = None
        if v in numbers:
            continue
        if v.op == "load":
            if of(v.args[0]) in written:
                return None
        elif not (v.op in _INTEGERS or is_row(v.op)) or v.op == "phi":
            return None
        pending += v.args
    return found


def _take_out(function: Function, found: Invariant) -> None:
    """Compute a value before the loop."""
    v, before = found.value, found.loop.preheader
    v.args = [_copied(function, a, found.loop, before, {}) for a in v.args]
    v.home.instructions.remove(v)
    v.block = before
    before.instructions.append(v)


def tabulated(function: Function, found: Invariant) -> Loop | None:
    """Let a value be looked up, if the size of the table is known: then, the loop that fills it."""
    v, loop, inner, numbers = found
    outermost = loop
    while outermost.parent is not None:
        outermost = outermost.parent
    counts = [x.count for x in (loop, *inner) if x.count is not None]
    if _slice(function, counts, outermost, ()) is None or not 1 <= len(numbers) <= 2:
        return None
    before = outermost.preheader
    lengths = {
        x: _copied(function, count, outermost, before, {})
        for x, count in zip((loop, *inner), counts)
    }
    size = _size(function, lengths, numbers, before)
    table = function.value("alloc", [size], "ptr", None, before)
    table.attribute = (v.type, False, _SITES + table.id)
    before.instructions.append(table)
    filling = loop_before(function, loop, size)
    place, body = filling.number, filling.latch
    at = {numbers[-1].number: place}
    if len(numbers) == 2:
        for one, op in zip(numbers, ("ifloordiv", "imod")):
            args = [place, lengths[numbers[1]]]
            at[one.number] = function.value(op, args, "i64", "nonnegative", body)
            body.instructions.append(at[one.number])
    x = _copied(function, v, loop, body, at, anew=True)
    body.instructions.append(function.value("store", [table, place, x], "", v.type, body))
    _look_up(function, v, table, [one.number for one in numbers], lengths[numbers[-1]])
    return filling


def _size(
    function: Function, lengths: dict[Loop, Value], numbers: tuple[Loop, ...], block: Block
) -> Value:
    """How many elements a table has: none, where one of the loops around the value has no trips."""

    def emit(op: str, args: list[Value], type: str = "i64") -> Value:
        value = function.value(op, args, type, "nsw" if op == "imul" else None, block)
        block.instructions.append(value)
        return value

    zero, size = function.const(0, "i64"), lengths[numbers[0]]
    for loop in numbers[1:]:
        size = emit("imul", [size, lengths[loop]])
    for loop, length in lengths.items():
        if loop not in numbers:
            size = emit("select", [emit("lt", [zero, length], "i1"), size, zero])
    return size


def _look_up(
    function: Function, v: Value, table: Value, numbers: list[Value], length: Value
) -> None:
    instructions, index = v.home.instructions, numbers[-1]
    at = instructions.index(v)
    if len(numbers) == 2:
        row = function.value("imul", [numbers[0], length], "i64", "nsw", v.home)
        index = function.value("iadd", [row, index], "i64", "nsw", v.home)
        instructions[at:at] = [row, index]
    v.op, v.args, v.attribute = "load", [table, index], v.type


def _copied(
    function: Function, v: Value, loop: Loop, block: Block, new: dict[Value, Value],
    anew: bool = False,
) -> Value:  # fmt: skip
    """A value computed in another block, where `new` are the numbers of trips."""
    if v in new:
        return new[v]
    if not (anew or loop.holds(v)):
        return v
    args = [_copied(function, a, loop, block, new) for a in v.args]
    made = function.value(v.op, args, v.type, v.attribute, block)
    made.line, made.name = v.line, v.name
    if v.type == "ptr":
        function.unite(made, v)
    block.instructions.append(made)
    new[v] = made
    return made


def loop_before(function: Function, loop: Loop, count: Value) -> Loop:
    """A loop with an empty body, of so many trips, that runs before another one."""
    before, after = loop.preheader, loop.header
    label = max(b.label for b in function.blocks) + 1
    header, body, left, joint = (Block(label + k) for k in range(4))
    made = Loop(header)
    made.parent, made.depth, made.preheader, made.latch = before.loop, loop.depth, before, body
    made.blocks, made.exits = {header, body}, [left]
    made.index = max(x.index for x in function.loops) + 1
    header.loop = body.loop = made
    left.loop = joint.loop = before.loop
    left.leaves = made
    for a, b in ((before, header), (body, header), (header, left), (left, joint)):
        b.predecessors.append(a)
    header.successors, body.successors = [body, left], [header]
    body.predecessors = [header]
    left.successors, joint.successors = [joint], [after]
    before.successors = [header if s is after else s for s in before.successors]
    after.predecessors = [joint if p is before else p for p in after.predecessors]
    header.dominator, body.dominator, left.dominator = before, header, header
    joint.dominator, after.dominator, loop.preheader = left, joint, joint
    around = before.loop
    while around is not None:
        around.blocks |= {header, body, left, joint}
        around = around.parent
    at = function.blocks.index(after)
    function.blocks[at:at] = [header, body, left, joint]
    for k, b in enumerate(function.blocks):
        b.index = k
    function.loops.insert(function.loops.index(loop), made)
    _count(function, made, count)
    return made


def _count(function: Function, loop: Loop, count: Value) -> None:
    header, body = loop.header, loop.latch
    number = function.value("phi", [], "i64", None, header)
    after = function.value("iadd", [number, function.const(1, "i64")], "i64", "nsw", header)
    number.args = [function.const(0, "i64"), after]
    header.phis.append(number)
    more = function.value("lt", [number, count], "i1", None, header)
    header.instructions += [more, after]
    header.terminator, header.operands = "branch", [more]
    body.terminator = "jump"
    loop.trip, loop.count, loop.trips = number, count, {loop.exits[0]: count}
