"""Compute both sides of a branch and choose, where lanes go different ways.

A lane that goes the other way computes a side of ones, and hands no adjoint on to what that side
reads: what is undefined there, as the root of a negative number, is seen by nobody.
"""

from __future__ import annotations

from typing import NamedTuple

from tapegrad.njit.three_address_code import FLOATS, CodeBlock
from tapegrad.njit.values import Block, Function, Value

MOVED = ("store", "alloc", "call")  # what no side may do


class Branch(NamedTuple):
    """A branch to one or two blocks that meet again at once."""

    block: Block
    sides: tuple[Block, ...]
    meeting: Block


def branch_of(block: Block) -> Branch | None:
    """The branch at the end of a block, if both of its sides can be computed."""
    yes, no = block.successors
    sides = tuple(s for s in (yes, no) if s.predecessors == [block])
    following = {s.successors[0] for s in sides if len(s.successors) == 1}
    if len(sides) == 1:
        following &= {yes, no}
    if len(following) != 1 or any(s.terminator != "jump" for s in sides):
        return None
    (meeting,) = following
    found = Branch(block, sides, meeting)
    alone = len(meeting.predecessors) == 2 and meeting.loop is block.loop
    if not alone or meeting.is_header or meeting.leaves is not None:
        return None
    if any(p.type == "ptr" for p in meeting.phis):
        return None
    return found if all(_can_be_computed(s, block) for s in sides) else None


def _can_be_computed(side: Block, block: Block) -> bool:
    for v in side.instructions:
        if v.op in MOVED or (v.op == "load" and not _is_read_anyway(v, block)):
            return False
    return not side.phis and side.loop is block.loop and side.leaves is None


def _is_read_anyway(load: Value, block: Block) -> bool:
    """Whether the same place has been read or written before."""
    above: Block | None = block
    while above is not None:
        if any(
            v.op in ("load", "store") and v.args[:2] == load.args[:2] for v in above.instructions
        ):
            return True
        above = None if above.dominator is above else above.dominator
    return False


def convert(function: Function, branch: Branch) -> None:
    """Make one block of a branch, its sides and where they meet."""
    block, sides, meeting = branch
    condition = block.operands[0]
    first = block.successors[0]
    for side in sides:
        _guard(function, side, condition, side is first)
        _take_over(block, side)
        function.blocks.remove(side)
    yes = meeting.predecessors.index(first if first is not meeting else block)
    for phi in meeting.phis:
        args = [condition, phi.args[yes], phi.args[1 - yes]]
        phi.op, phi.args, phi.attribute = "select", args, None
        phi.line = condition.line
    meeting.instructions[:0] = meeting.phis
    meeting.phis = []
    _take_over(block, meeting)
    function.blocks.remove(meeting)
    block.terminator, block.operands = meeting.terminator, meeting.operands
    block.successors = meeting.successors
    for s in block.successors:
        s.predecessors = [block if p is meeting else p for p in s.predecessors]
    _rename(function, branch)


def _guard(function: Function, side: Block, condition: Value, first: bool) -> None:
    """Let a side read ones, and require nothing, where the other one is taken."""
    one: dict[Value, Value] = {}
    guarded: list[Value] = []

    def made(op: str, args: list[Value], type: str) -> Value:
        found = function.value(op, args, type, None, side)
        found.varying = True
        guarded.append(found)
        return found

    other = made("not", [condition], "i1") if first else condition
    for v in side.instructions:
        for k, x in enumerate(v.args):
            if x.type in FLOATS and x.op != "const" and x.block is not side:
                if x not in one:
                    pair = [x, function.const(1.0, x.type)]
                    one[x] = made("select", [condition, *(pair if first else pair[::-1])], x.type)
                    one[x].line, one[x].name = v.line, x.name
                v.args[k] = one[x]
        if v.op == "require":
            v.args = [made("bor", [other, v.args[0]], "i1")]
        v.varying = v.varying or v.op == "require" or bool(set(one.values()).intersection(v.args))
        guarded.append(v)
    side.instructions = guarded


def _take_over(block: Block, other: Block) -> None:
    for v in other.instructions:
        v.block = block
    block.instructions += other.instructions


def _rename(function: Function, branch: Branch) -> None:
    """Let the block stand for what is gone."""
    block, gone = branch.block, {*branch.sides, branch.meeting}
    for other in function.blocks:
        if other.dominator in gone:
            other.dominator = block
    for loop in function.loops:
        if loop.blocks & gone:
            loop.blocks -= gone
            loop.blocks.add(block)
        loop.latch = block if loop.latch in gone else loop.latch
        loop.preheader = block if loop.preheader in gone else loop.preheader


def branch_on(function: Function, choice: Value) -> None:
    """Let a branch choose between two numbers: the other way round."""
    block = choice.home
    at = block.instructions.index(choice)
    condition, a, b = choice.args
    label = max(x.label for x in function.blocks) + 1
    side, meeting = Block(label), Block(label + 1)
    for k, new in enumerate((side, meeting)):
        new.code, new.loop, new.dominator = CodeBlock(new.label), block.loop, block
        function.blocks.insert(function.blocks.index(block) + 1 + k, new)
    meeting.instructions = block.instructions[at + 1 :]
    for v in meeting.instructions:
        v.block = meeting
    del block.instructions[at:]
    meeting.terminator, meeting.operands = block.terminator, block.operands
    meeting.successors, meeting.predecessors = block.successors, [side, block]
    for s in meeting.successors:
        s.predecessors = [meeting if p is block else p for p in s.predecessors]
    side.successors, side.predecessors = [meeting], [block]
    block.terminator, block.operands, block.successors = "branch", [condition], [side, meeting]
    choice.op, choice.args, choice.block = "phi", [a, b], meeting
    meeting.phis = [choice]
    _put_after(function, block, side, meeting)


def _put_after(function: Function, block: Block, side: Block, meeting: Block) -> None:
    """Let a block that meets again behind a block take its place for what comes after."""
    for k, other in enumerate(function.blocks):
        other.index = k
        if other.dominator is block and other not in (side, meeting):
            other.dominator = meeting
    for loop in function.loops:
        if block in loop.blocks:
            loop.blocks |= {side, meeting}
        loop.latch = meeting if loop.latch is block else loop.latch
        loop.preheader = meeting if loop.preheader is block else loop.preheader
