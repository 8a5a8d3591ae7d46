"""Trips of a loop that leave the reverse sweep nothing to do, and that no stack has a slot for.

A trip is idle that writes into no memory with an adjoint and hands on each number that has one as
it found it: it skips an element, or finds no new maximum.  The forward sweep numbers the other
trips alone: what it keeps in an idle one is overwritten in the next.  The reverse sweep goes from
each trip that is numbered to the one before, on paths that are not idle.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tapegrad.njit.activity import Activity
from tapegrad.njit.if_conversion import branch_on
from tapegrad.njit.values import Block, Function, IdlePaths, Loop, Value, dominates

UNROLLED = 16  # trips, up to which LLVM makes straight-line code of a loop with a constant count


class Fork(NamedTuple):
    """Where paths meet that are idle and others: what is true of those by each predecessor."""

    block: Block
    sides: tuple[Idle, ...]


Idle: TypeAlias = "bool | Fork"  # whether all paths are idle, or none is


def leave_out_idle_trips(function: Function, activity: Activity) -> None:
    """Number the trips that are not idle alone, in loops where that pays."""
    for loop in function.loops:
        if not _may_pay(loop):
            continue
        paths = _Paths(activity, loop)
        if paths.idle is False or (paths.idle is True and not paths.choices):
            continue
        if not _pays(loop, paths):
            continue
        for choice in paths.choices:
            branch_on(function, choice)
        _number(function, loop, _Paths(activity, loop) if paths.choices else paths)
    function.number_positions()


def _may_pay(loop: Loop) -> bool:
    """Whether a loop is none that has vectors of trips, or that LLVM unrolls, or threads share."""
    if loop.shared is not None or _in_lanes(loop):
        return False
    count = loop.count
    if count is not None and count.op == "const" and count.attribute <= UNROLLED:
        return False
    return count is None or not loop.is_innermost or _replaces(loop)


def _pays(loop: Loop, paths: _Paths) -> bool:
    """Whether it takes no longer to number trips than it takes to reverse those that are idle.

    Where a loop inside takes the time of a trip, and a trip that chooses a number does little more
    than one that does not, places that depend on what was chosen before would hold trips up.
    """
    if loop.count is None or loop.is_innermost:
        return True
    return not (paths.choices or any(_choice(*end, loop) for end in paths.ends()))


def _replaces(loop: Loop) -> bool:
    return any(_is_replaced(p, loop) for p in loop.header.phis if p.active)


def _in_lanes(loop: Loop | None) -> bool:
    return loop is not None and (loop.width > 1 or _in_lanes(loop.parent))


def _is_replaced(phi: Value, loop: Loop) -> bool:
    """Whether a trip keeps a number, or puts another in its place that does not depend on it."""
    return any(
        phi in v.args and not all(_depends(a, phi, loop) for a in v.args if a.type == phi.type)
        for b in loop.blocks - {loop.header}
        for v in (*b.phis, *b.instructions)
        if v.op in ("phi", "where") and v.active
    )


def _depends(v: Value, phi: Value, loop: Loop) -> bool:
    seen, pending = {v}, [v]
    while pending:
        x = pending.pop()
        if x is phi:
            return True
        if loop.holds(x) and x.home is not loop.header:
            pending += [a for a in x.args if a not in seen]
            seen.update(x.args)
    return False


class _Paths:
    """The paths of a trip, looked through from its end.

    Which of them are `idle`, up to the latch; the `choices` between a number and another one are
    to be branches: where they keep it, the path is idle.  Blocks that were `passed` may be on such
    paths; those that are `working` are on none, for some names of what is handed on.
    """

    def __init__(self, activity: Activity, loop: Loop) -> None:
        self.activity, self.loop = activity, loop
        self.carried = tuple([p for p in loop.header.phis if p.active])
        self.choices: dict[Value, None] = {}
        self.passed: dict[Block, None] = {}
        self.working: set[Block] = set()
        self._known: dict[tuple[Block, tuple[Value, ...]], Idle] = {}
        back = loop.header.predecessors.index(loop.latch)
        self.idle = self._before(loop.latch, tuple([p.args[back] for p in self.carried]))

    def _before(self, block: Block, carried: tuple[Value, ...]) -> Idle:
        """Which paths to the end of a block are idle, by the names there of what is handed on."""
        key = (block, carried)
        if key not in self._known:
            self._known[key] = self._looked(block, carried)
        return self._known[key]

    def _looked(self, block: Block, carried: tuple[Value, ...]) -> Idle:
        kept = tuple([self._kept(x, p) for x, p in zip(carried, self.carried)])
        inner = block.leaves
        if self._works(block, kept) or (inner is not None and self._works_inside(inner)):
            self.working.add(block)
            return False
        self.passed |= dict.fromkeys([block, *(() if inner is None else inner.blocks)])
        if block is self.loop.header:
            return kept == self.carried
        before = block.predecessors if inner is None else [inner.preheader]
        names = [
            tuple([x.args[k] if x in block.phis else x for x in kept]) for k in range(len(before))
        ]
        sides = tuple([self._before(p, own) for p, own in zip(before, names)])
        return sides[0] if all(side is sides[0] for side in sides) else Fork(block, sides)

    def _works(self, block: Block, kept: tuple[Value, ...]) -> bool:
        """Whether a block writes memory that has an adjoint, or computes what is handed on."""
        return any(map(self.activity.stores_active, block.instructions)) or any(
            x.block is block and (x.op != "phi" or block.leaves is not None) for x in kept
        )

    def _works_inside(self, inner: Loop) -> bool:
        return any(self.activity.stores_active(v) for b in inner.blocks for v in b.instructions)

    def _kept(self, x: Value, phi: Value) -> Value:
        """The number that a trip found, if it may be chosen here."""
        if x.op == "where" and phi in x.args[1:] and x.home.loop is self.loop:
            self.choices[x] = None
            return phi
        return x

    def sources(self) -> dict[Block, list[Block]]:
        """The predecessors on paths that are not idle, of blocks behind which all is idle."""
        found: dict[Block, set[Block]] = {}
        for (block, _), idle in self._known.items():
            if idle is not True and len(block.predecessors) > 1 and self._only_passes(block):
                busy = block.predecessors
                if isinstance(idle, Fork) and idle.block is block:
                    busy = [p for p, side in zip(busy, idle.sides) if side is not True]
                found.setdefault(block, set()).update(busy)
        return {
            block: [p for p in block.predecessors if p in sources]
            for block, sources in found.items() if len(sources) < len(block.predecessors)
        }  # fmt: skip

    def _turns(self) -> list[tuple[Block, Block, tuple[Value, ...]]]:
        """The edges on which trips turn out not to be idle, and the numbers as they are there."""
        return [
            (p, block, tuple([x.args[k] if x in block.phis else x for x in carried]))
            for (block, carried), idle in self._known.items()
            if isinstance(idle, Fork) and idle.block is block
            for k, (p, side) in enumerate(zip(block.predecessors, idle.sides)) if side is False
        ]  # fmt: skip

    def ends(self) -> list[tuple[Block, Block]]:
        """The edges on which trips turn out not to be idle, or the loop is left."""
        left = [(p, block) for block in self.loop.exits for p in block.predecessors]
        return list(dict.fromkeys([*left, *((p, block) for p, block, _ in self._turns())]))

    def forgets(self) -> bool:
        """Whether all that a trip hands on that is not idle is independent of what it was given."""
        return not any(
            _depends(x, p, self.loop)
            for *_, handed_on in self._turns() for x in handed_on for p in self.carried
        )  # fmt: skip

    def _only_passes(self, block: Block) -> bool:
        """Whether there is nothing to do from a block to the end of the trip."""
        return all(x in self.passed and x not in self.working for x in _after(block, self.loop))


def _number(function: Function, loop: Loop, paths: _Paths) -> None:
    """Number the trips of a loop that are not idle."""
    header, const = loop.header, function.const
    number = function.value("phi", [], "i64", None, header)
    after = function.value("iadd", [number, const(1, "i64")], "i64", "nsw", header)
    header.phis.append(number)
    header.instructions.append(after)

    def at_the_end(idle: Idle) -> Value:
        if not isinstance(idle, Fork):
            return number if idle else after
        args = [at_the_end(side) for side in idle.sides]
        phi = function.value("phi", args, "i64", None, idle.block)
        idle.block.phis.append(phi)
        return phi

    following = at_the_end(paths.idle)
    number.args = [
        const(0, "i64") if p is loop.preheader else following for p in header.predecessors
    ]
    for block in loop.exits:
        loop.trips[block] = function.value("phi", [number], "i64", None, block)
        block.phis.append(loop.trips[block])
    loop.idle_paths = IdlePaths(
        frozenset(paths.passed), paths.sources(), paths.ends(), paths.forgets(), loop.count
    )
    loop.trip, loop.count = number, None


def kept_at_ends(loop: Loop, kept: list[Value]) -> list[Value]:
    """What waits until it is known that a trip is not idle.

    Nothing where LLVM would choose between numbers without a branch, which may be hard to
    predict: there all trips keep what the others need.  A new maximum is not.
    """
    paths = loop.idle_paths
    if paths is None:
        return []
    choices = (_choice(*end, loop) for end in paths.ends)
    if any(block is not None and record_side(block, loop) is None for block in choices):
        return []
    return [v for v in kept if v.home in paths.blocks and _is_at_ends(v, paths, loop)]


def _choice(block: Block, following: Block, loop: Loop) -> Block | None:
    """The branch, if there is nothing to where its sides meet but numbers' names."""
    if following not in loop.blocks:
        return None
    while block.terminator == "jump" and not block.instructions and block.leaves is None:
        if len(block.predecessors) != 1:
            return None
        (block,) = block.predecessors
    return block if block.terminator == "branch" else None


def record_side(block: Block, loop: Loop) -> int | None:
    """The side of a branch that puts a new maximum, or minimum, in the place of the one so far.

    Few trips of a search take it.  LLVM would have each trip wait for the maximum of all before.
    """
    condition = block.operands[0] if block.terminator == "branch" else None
    if condition is None or condition.op not in ("lt", "le", "gt", "ge"):
        return None
    for phi, x in (condition.args, condition.args[::-1]):
        if phi not in loop.header.phis:
            continue
        for meeting in loop.blocks:
            for v in meeting.phis:
                if phi in v.args and x in v.args:
                    source = meeting.predecessors[v.args.index(x)]
                    return _side(block, source, meeting)
    return None


def _side(block: Block, source: Block, meeting: Block) -> int | None:
    """The side of a branch from which control comes to where both meet."""
    for k, s in enumerate(block.successors):
        if (source is block) if s is meeting else dominates(s, source):
            return k
    return None


def _is_at_ends(v: Value, paths: IdlePaths, loop: Loop) -> bool:
    """Whether a value is there at all ends of paths that it is computed on."""
    after = _after(v.home, loop)
    return all(
        is_at(v, (block, following)) for block, following in paths.ends
        if block in after or v.home in _after(following, loop)
    )  # fmt: skip


def is_at(v: Value, end: tuple[Block, Block]) -> bool:
    """Whether a value is there when control goes from a block to another one."""
    return v in end[1].phis or dominates(v.home, end[0])


def _after(block: Block, loop: Loop) -> set[Block]:
    """A block, and those that a trip may reach from it."""
    seen, pending = {block}, [block]
    while pending:
        after = [
            s
            for s in pending.pop().successors
            if s is not loop.header and s not in seen and (s in loop.blocks or s in loop.exits)
        ]
        seen.update(after)
        pending += after
    return seen
