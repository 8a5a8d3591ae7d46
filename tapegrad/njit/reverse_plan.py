"""What the reverse sweep reads of the forward sweep, and where each of it comes from.

In this order: arguments, constants and the numbers of trips are at hand; values from outside of all
loops stay in variables; cheap arithmetic is computed again, an element of an array loaded again, if
what that needs in turn costs no more than keeping the value; all else is kept in stacks, a column
of a loop's stack for each value, a slot for each trip.  To load an element again memory has to be
as it was: the stores that follow save what they overwrite, and the reverse sweep puts it back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.njit.activity import Activity
from tapegrad.njit.memory_order import MemoryOrder
from tapegrad.njit.partials import is_row, operand, partials
from tapegrad.njit.values import Block, Function, Loop, Value, dominates

GROWTH = 8  # how often a loop is taken to run: what it keeps weighs so many times as much
DEEPEST = 200  # operations in a row that are thought of as computed again
AT_HAND = ("const", "arg", "argshadow", "undef")


def _is_slow(v: Value) -> bool:
    """Whether a value takes longer to compute than to read."""
    return is_row(v.op) and (v.op == "sqrt" or calls(v.op))


NOTHING = frozenset[Value]()


class Place(NamedTuple):
    """Before an instruction of a block, in the reverse sweep."""

    block: Block
    at: int


class Merge(NamedTuple):
    """How the reverse sweep knows from where control came to a block.

    By the condition of a branch, of which the first predecessor is the side `first`; or by the
    number of the predecessor, where that is None.
    """

    value: Value
    first: bool | None


class ReversePlan:
    """The plan for a function.

    Where `restores` is false, nothing is loaded again, but kept.
    """

    def __init__(self, function: Function, activity: Activity, restores: bool = True) -> None:
        self.function, self.activity = function, activity
        self.memory = MemoryOrder(function)
        self.weight: dict[Loop | None, int] = {None: 1}
        for loop in function.loops:
            self.weight[loop] = GROWTH**loop.depth
        self.counters = {loop.number for loop in function.loops}
        # Memory of which nothing is loaded again.
        self.fixed = set(self.memory.stores) if not restores else self._left_as_it_is()
        self.saved: dict[Value, Value] = {}  # by the store: what it overwrites
        while not self._settled():
            pass

    def _left_as_it_is(self) -> set[Value]:
        """Memory that trips write into which the reverse sweep leaves out."""
        idle = [x.idle_paths.blocks for x in self.function.loops if x.idle_paths is not None]
        return {
            memory for memory, stores in self.memory.stores.items()
            if any(s.home in blocks for s in stores for blocks in idle)
        }  # fmt: skip

    # -- questions of the sweeps -------------------------------------------------------------

    def has_work(self, block: Block) -> bool:
        """Whether the reverse sweep has anything to do in a block."""
        if any(v.active for v in block.phis):
            return True
        return any(
            v.active or v in self.saved or self.activity.stores_active(v)
            for v in block.instructions
        )

    def sources(self, block: Block) -> list[Block]:
        """The predecessors that the reverse sweep may go to."""
        idle = None if block.loop is None else block.loop.idle_paths
        return block.predecessors if idle is None else idle.sources.get(block, block.predecessors)

    def child(self, outer: Loop | None, block: Block) -> Loop:
        """The loop around a block that lies in another one directly."""
        loop = block.loop
        assert loop is not None
        while loop.parent is not outer:
            assert loop.parent is not None
            loop = loop.parent
        return loop

    def parts(self, v: Value) -> list[Value]:
        """What a value is computed again of."""
        if v.op != "phi":
            return v.args
        found = self.selection(v)
        assert found is not None
        return found

    # -- what a value would take -------------------------------------------------------------

    def _free(self, v: Value) -> bool:
        return v.op in AT_HAND or v.home.loop is None or v in self.counters

    def _wanted(self, v: Value, place: Place) -> frozenset[Value]:
        """What would have to be kept for a value to be there at a place."""
        if self._free(v) or v in self.stacked:
            return NOTHING
        key = (v.id, place.block.label, place.at)
        if key not in self._memo:
            found = NOTHING
            if v in self.function.rows:
                found = found.union(*(self._wanted(a, place) for a in v.args))
            elif v.home.loop is not place.block.loop:
                for block in self.child(v.home.loop, place.block).exits:
                    found |= self._wanted(v, Place(block, 0))
            else:
                self._depth += 1
                found = frozenset([v]) if self._depth > DEEPEST else self._choice(v, place)[1]
                self._depth -= 1
            self._memo[key] = found
        return self._memo[key]

    def _choice(self, v: Value, place: Place) -> tuple[bool, frozenset[Value]]:
        """Whether a value is kept, or else computed again, and what is kept then."""
        itself = frozenset([v])
        args: Iterable[Value] | None = v.args
        if v.op in ("phi", "alloc"):
            args = self.selection(v)
        elif v.op in ("load", "call") and not self._loadable(v, place):
            args = None
        if args is None or _is_slow(v):
            return True, itself
        parts = [x for a in args if (x := self._wanted(a, place))]
        if not parts:
            return False, NOTHING
        found = parts[0].union(*parts[1:])
        return (True, itself) if self._cost(found) > self._cost(itself) else (False, found)

    def _loadable(self, v: Value, place: Place) -> bool:
        """Whether an element can be loaded again; what a call gives cannot."""
        if v.op == "call" or v in self._saved_values:
            return False
        if not self.memory.of(v):
            return True
        if self.function.alias_class(v.args[0]) in self.fixed:
            return False
        return self.memory.holds(v, place.block, place.at)

    def _cost(self, values: Collection[Value]) -> int:
        return sum(self.weight[v.home.loop] for v in values)

    def selection(self, v: Value) -> list[Value] | None:
        """The condition and both values of a phi behind an `if`, if either can be computed."""
        block = v.home
        if v.op != "phi" or block.leaves is not None or block.is_header:
            return None
        sides = self.sides(block)
        if sides is None:
            return None
        assert block.dominator is not None
        condition, first = sides
        a, b = v.args if first else v.args[::-1]
        for x in (a, b):
            if x.op not in AT_HAND and not dominates(x.home, block.dominator):
                return None
        return [condition, a, b]

    def sides(self, block: Block) -> tuple[Value, bool] | None:
        """The condition that chooses between two predecessors; whether the first is its yes."""
        above = block.dominator
        if above is None or len(block.predecessors) != 2 or above.terminator != "branch":
            return None
        if above.loop is not block.loop:
            return None
        found = []
        for p in block.predecessors:
            for k, s in enumerate(above.successors):
                if (s is block and p is above) or (
                    s is not block and len(s.predecessors) == 1 and dominates(s, p)
                ):
                    found.append(k)
                    break
        if len(found) != 2 or found[0] == found[1]:
            return None
        return above.operands[0], found[0] == 0

    # -- decisions ---------------------------------------------------------------------------

    def _commit(self, v: Value, place: Place) -> None:
        """Have a value at hand at a place."""
        pending = [(v, place)]
        while pending:
            v, place = pending.pop()
            if v.op in AT_HAND or v in self.counters:
                continue
            if v.home.loop is None:
                self.variables.add(v)
            elif (v, place) not in self._done:
                self._done.add((v, place))
                pending += self._decide(v, place)

    def _decide(self, v: Value, place: Place) -> list[tuple[Value, Place]]:
        """Keep a value or not; returns what has to be at hand for that, and where."""
        block = place.block
        if v.home.loop is not block.loop:
            if v in self.function.rows:
                self.again[v] = None
                return [(a, place) for a in v.args]
            inner = self.child(v.home.loop, block)
            for leaving in inner.exits:
                self.invariants.setdefault(leaving, {})[v] = inner
            return [(v, Place(leaving, 0)) for leaving in inner.exits]
        if v not in self.stacked:
            keeps, _ = self._choice(v, place)
            if not keeps:
                self.again[v] = None
                if v.op == "load" and self.memory.of(v):
                    self._reloads.append((v, place))
                return [(a, place) for a in self.parts(v)]
            self.stacked[v] = None
            self._memo.clear()
        self._at_header(v, block)
        return []

    def _at_header(self, v: Value, block: Block) -> None:
        if block.is_header:
            self.read_in_header.add(v)

    def _settled(self) -> bool:
        """Plan with the stores that save what they overwrite; True if no others have to."""
        self.stacked: dict[Value, None] = {}
        self.again: dict[Value, None] = {}  # computed or loaded again
        self.variables: set[Value] = set()
        self.invariants: dict[Block, dict[Value, Loop]] = {}
        self.read_in_header: set[Value] = set()
        self.merges: dict[Block, Merge] = {}
        # By a value's and a block's number, which take less time to look up than these.
        self._memo: dict[tuple[int, int, int], frozenset[Value]] = {}
        self._depth = 0
        self._done: set[tuple[Value, Place]] = set()
        self._reloads: list[tuple[Value, Place]] = []
        self._saved_values = set(self.saved.values())
        blocks = self.function.blocks
        self.busy = {b for b in blocks if self.has_work(b)}
        self.idle = {loop for loop in self.function.loops if not loop.blocks & self.busy}
        for block in blocks:
            if block in self.busy:
                self._need_of_block(block)
        for block in blocks:
            self._need_of_control(block)
        return self._restoring()

    def _restoring(self) -> bool:
        """Have memory restored that is loaded from again; if that pays, and if it is not yet."""
        classes: dict[Value, list[tuple[Value, Place]]] = {}
        for v, place in self._reloads:
            classes.setdefault(self.function.alias_class(v.args[0]), []).append((v, place))
        needed: dict[Value, None] = {}
        given_up = False
        for memory, reloads in classes.items():
            stores = [
                s for s in self.memory.stores[memory]
                if any(self.memory.follows(place.block, place.at, s) for _, place in reloads)
            ]  # fmt: skip
            loads = {v for v, _ in reloads if v.home.loop is not None}
            # As often, keeping is cheaper: it neither loads what is overwritten nor puts it back.
            if any(s.op == "call" for s in stores) or self._cost(stores) >= self._cost(loads):
                self.fixed.add(memory)
                given_up = True
            needed |= dict.fromkeys(stores)
        if given_up:
            for old in self.saved.values():
                old.home.instructions.remove(old)
            self.saved = {}
        elif missing := [s for s in needed if s not in self.saved]:
            for s in missing:
                self._save(s)
        else:
            return True
        self.function.number_positions()
        return False

    def _save(self, store: Value) -> None:
        """Load what a store overwrites."""
        pointer, offset, x = store.args
        old = self.function.value("load", [pointer, offset], x.type, store.attribute, store.block)
        old.varying, old.lanes = self.function.has_lanes(old), store.lanes
        instructions = store.home.instructions
        instructions.insert(instructions.index(store), old)
        self.saved[store] = old

    def _need_of_block(self, block: Block) -> None:
        """What the reverse of a block's instructions reads."""
        for k, v in enumerate(block.instructions):
            place = Place(block, k)
            if v.op == "store":
                pointer, offset, _ = v.args
                if self.activity.stores_active(v):
                    assert pointer.shadow is not None
                    self._commit(pointer.shadow, place)
                    self._commit(offset, place)
                    if v in self.function.masked:
                        self._commit(self.function.masked[v], place)
                if v in self.saved:
                    self._keep(self.saved[v], block)
                    self._commit(pointer, place)
                    self._commit(offset, place)
            elif v.active and v.op == "load":
                assert v.args[0].shadow is not None
                self._commit(v.args[0].shadow, place)
                self._commit(v.args[1], place)
            elif v.active and v.op in ("lane_sum", "select"):
                self._commit(v.args[v.op == "lane_sum"], place)
            elif v.active and is_row(v.op):
                for a, partial in zip(v.args, partials(v.op)):
                    if a.active and partial is not None:
                        for name in partial.reads:
                            self._commit(operand(v, name), place)

    def _keep(self, v: Value, block: Block) -> None:
        if block.loop is None:
            self.variables.add(v)
        else:
            self.stacked[v] = None
            self._at_header(v, block)

    def _need_of_control(self, block: Block) -> None:
        """What the reverse sweep reads to find its way."""
        place = Place(block, 0)
        if block.leaves is not None:
            if block.leaves not in self.idle:
                self._commit(block.leaves.trips[block], place)
                self._need_of_threads(block.leaves)
        elif len(self.sources(block)) > 1 and not block.is_header and not self.skipped(block):
            sides = self.sides(block)
            if sides is not None and self.sources(block) is block.predecessors:
                kept = self._wanted(sides[0], place)
                if self._cost(kept) <= self.weight[block.loop]:
                    self.merges[block] = Merge(*sides)
                    self._commit(sides[0], place)
                    return
            number = self._predecessor_number(block)
            self.merges[block] = Merge(number, None)
            self._commit(number, place)

    def _need_of_threads(self, loop: Loop) -> None:
        """The arrays of whose adjoints threads have copies."""
        for array in () if loop.shared is None else loop.shared.copied:
            if array.shadow is not None:
                for v in (array.shadow, *self.function.lengths_of(array)):
                    self._commit(v, Place(loop.header, 0))

    def _predecessor_number(self, block: Block) -> Value:
        """A phi that says from which predecessor control came."""
        for phi in block.phis:
            if phi.attribute == "predecessor":
                return phi
        sources = self.sources(block)
        numbers = [
            self.function.const(sources.index(p) if p in sources else 0, "i64")
            for p in block.predecessors
        ]
        phi = self.function.value("phi", numbers, "i64", "predecessor", block)
        block.phis.append(phi)
        return phi

    def skipped(self, block: Block) -> bool:
        """Whether there is nothing to do between a merge and what decides on the paths to it."""
        above = block.dominator
        if any(p.active for p in block.phis):
            return False
        seen: set[Block] = set()
        stack = list(block.predecessors)
        while stack:
            x = stack.pop()
            if x is not above and x not in seen:
                if x in self.busy:
                    return False
                seen.add(x)
                stack += x.predecessors
        return above is not None and above.loop is block.loop
