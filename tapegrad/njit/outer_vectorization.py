"""Vectorise outer loops: eight or sixteen trips side by side, one in each lane of a vector.

LLVM makes vectors of innermost loops alone.  Rows of data that are independent of each other, with
a sum in order or a recurrence within each, are found here, in SSA form and before anything is said
of derivatives: all sweeps of the function are of vectors then.  What depends on the number of the
trip is *varying*; the rest is computed once for all lanes.  A trip that is none, behind the last
one, computes what the first of its lanes does and adds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from tapegrad.compiler.llvm.scalar_ops import calls
from tapegrad.njit.if_conversion import Branch, branch_of, convert
from tapegrad.njit.own_places import OwnPlaces
from tapegrad.njit.partials import is_row
from tapegrad.njit.private_memory import PrivateMemory, Uses
from tapegrad.njit.tabulation import Invariant, invariant_in, loops_around, tabulated
from tapegrad.njit.three_address_code import FLOATS
from tapegrad.njit.trip_order import distance
from tapegrad.njit.values import LANES, Block, Function, Loop, Value

GATHER, CALL = 4, 10  # how much a load of all lanes is, and a function; in additions
SHORT = 12  # operations of which two vectors are computed side by side
ALLOWED = (
    "load", "store", "gep", "alloc", "cast", "select", "require", "wrap", "not", "iadd", "isub",
    "imul", "imax", "imin", "iabs", "ifloordiv", "imod", "iand", "ior", "ixor", "ishl", "ishr",
    "band", "bor", "bxor",
)  # fmt: skip


def vectorize_outer_loops(function: Function) -> None:
    """Vectorise the outermost loops that can be."""
    done: set[Loop] = set()
    function.lanes = 2 * LANES if _is_short(function) else LANES
    uses = Uses(function)
    for loop in sorted(function.loops, key=lambda x: x.depth):
        if loop.parent in done:
            done.add(loop)
        elif (found := _OuterLoop(function, loop, uses)).usable():
            filled = {x for one in found.packed.values() if (x := tabulated(function, one))}
            function.number_positions()
            uses = Uses(function)
            if not filled or (found := _OuterLoop(function, loop, uses, filled)).usable():
                if not done and found.adds_deep_within():
                    function.lanes = 2 * LANES
                found.vectorize()
                uses = Uses(function)
                done.add(loop)
    function.number_positions()


def _is_short(function: Function) -> bool:
    """Whether loops compute so little that each operation waits for the one before it."""
    inside = [v for b in function.blocks if b.loop is not None for v in b.instructions]
    work = [v for v in inside if is_row(v.op) and v.type in FLOATS]
    return len(work) <= SHORT and not any(calls(v.op) for v in work)


class _OuterLoop:
    """A loop, and what is known of the values in it."""

    def __init__(
        self, function: Function, loop: Loop, uses: Uses, filled: Collection[Loop] = ()
    ) -> None:
        self.function, self.loop, self.uses, self.filled = function, loop, uses, filled
        self.readers = uses.readers
        self.varying: set[Value] = set()
        self.branches: dict[Block, Branch] = {}
        self.sums: dict[Value, dict[Value, Value]] = {}  # by the phi: additions in a row, terms
        self.packed: dict[Value, Invariant] = {}  # loads that are the same in a loop within

    # -- whether it can be -------------------------------------------------------------------

    def usable(self) -> bool:
        """Whether the trips are independent, but for sums, and vectors of them pay."""
        if not self._has_form():
            return False
        self.sums = {p: self._additions(p) for p in self._carried()}
        if self.condition in self.readers:
            return False
        if not (all(self.sums.values()) and self._leaves_sums_alone()):
            return False
        of, stores = self.function.alias_class, [v for v in self._instructions() if v.op == "store"]
        written = dict.fromkeys(of(v.args[0]) for v in stores)
        memories = [PrivateMemory(self.function, self.loop, x, self.uses) for x in written]
        self.private = [x for x in memories if x.usable]
        self._mark()
        self.own = [
            OwnPlaces(self.loop, self.uses.accesses[x.memory], self.varying)
            for x in memories if not x.usable
        ]  # fmt: skip
        if not all(x.usable for x in self.own):
            return False
        return self._pays() and self._control_is_uniform() and self._pointers_are()

    def _has_form(self) -> bool:
        """Whether the header does nothing but count, and no operation is out of the common."""
        loop, header = self.loop, self.loop.header
        if loop.count is None or len(loop.exits) != 1 or loop.exits[0].predecessors != [header]:
            return False
        if loop.count.op == "const" and loop.count.attribute < self.function.lanes:
            return False
        self.condition, (_, self.after) = header.operands[0], self._arguments(loop.number)
        if set(header.instructions) != {self.condition, self.after}:
            return False
        return header.successors[0].predecessors == [header] and all(
            v.op in ALLOWED or is_row(v.op) for b in loop.blocks for v in b.instructions
        )

    @cached_property
    def blocks(self) -> list[Block]:
        """The blocks in order."""
        return [b for b in self.function.blocks if b in self.loop.blocks]

    def _arguments(self, phi: Value) -> tuple[Value, Value]:
        """What a phi of the header is before the loop, and after a trip."""
        before = self.loop.header.predecessors.index(self.loop.preheader)
        return phi.args[before], phi.args[1 - before]

    def _carried(self) -> list[Value]:
        return [p for p in self.loop.header.phis if p is not self.loop.number]

    def _additions(self, phi: Value) -> dict[Value, Value]:
        """The additions to a sum in a trip with their terms; nothing else reads in between."""
        found: dict[Value, Value] = {}
        now, after = phi, self._arguments(phi)[1]
        while now is not after:
            inside = [v for v in self.readers.get(now, []) if v.home in self.loop.blocks]
            if len(inside) != 1 or inside[0].op not in ("add", "sub"):
                return {}
            before, now = now, inside[0]
            if now.op == "sub" and now.args[0] is not before:
                return {}
            if now.home.loop is not self.loop or now.home not in _always(self.loop):
                return {}
            found[now] = now.args[now.args[0] is before]
        return found if self._only_carries_on(after, phi) else {}

    def _only_carries_on(self, v: Value, phi: Value) -> bool:
        return self.readers[v] == [phi] and not any(v in b.operands for b in self.blocks)

    def _leaves_sums_alone(self) -> bool:
        return all(p.args[0] in self.sums for p in self.loop.exits[0].phis)

    def _mark(self) -> None:
        """Find what is varying, and the branches of which it decides."""
        self.varying, size = {self.loop.number}, 0
        skipped = {v for additions in self.sums.values() for v in additions}
        skipped |= {*self.sums, self.condition, self.after}
        while size != len(self.varying):
            size = len(self.varying)
            for block in self.blocks:
                joins = block.dominator is not None and self._varies_at_end(block.dominator)
                for p in block.phis:
                    if p not in skipped and (joins or self.varying.intersection(p.args)):
                        self.varying.add(p)
                self.varying |= {
                    v for v in block.instructions
                    if v not in skipped
                    and (
                        self.varying.intersection(v.args) or any(x.holds(v) for x in self.private)
                    )
                }  # fmt: skip

    def _varies_at_end(self, block: Block) -> bool:
        return block in self.loop.blocks and bool(self.varying.intersection(block.operands))

    def _pays(self) -> bool:
        """Whether LLVM would find no vectors: there is a loop within, or places are looked up."""
        inner = [x for x in self.function.loops if x.header in self.loop.blocks][1:]
        if inner:
            parents = {x.parent for x in inner} | set(self.filled)
            self.packed = {v: x for v in self._instructions() if (x := self._to_pack(v))}
            return all(self._computes(x) for x in inner if x not in parents)
        looked_up = {v for v in self.varying if v.op == "load"}
        for block in self.blocks:
            for v in block.instructions:
                if v.op != "load" and looked_up.intersection(v.args) and v.type in ("i64", "ptr"):
                    looked_up.add(v)
        return any(v.op == "load" and looked_up.intersection(v.args) for v in self._instructions())

    def _to_pack(self, v: Value) -> Invariant | None:
        """A load of all lanes that a loop within does again in each trip."""
        if v.op != "load" or v not in self.varying or v.home.loop in self.filled:
            return None
        if any(x.holds(v) for x in self.private) or distance(v.args[1], self.loop) == 1:
            return None
        within = [x for x in loops_around(v) if x is not self.loop and x.header in self.loop.blocks]
        found = (invariant_in(self.function, v, x) for x in reversed(within) if _is_long(x))
        return next((x for x in found if x is not None), None)

    def _computes(self, loop: Loop) -> bool:
        """Whether an innermost loop computes enough for what it loads lane by lane."""
        found = [v for b in self.blocks if b in loop.blocks for v in b.instructions]
        moving = {loop.number}
        for v in found:
            if moving.intersection(v.args):
                moving.add(v)
        inside = [v for v in found if v in self.varying]
        gathers = [
            v for v in inside
            if v.op == "load" and self.varying.intersection(v.args) and moving.intersection(v.args)
            and v not in self.packed and distance(v.args[1], self.loop) != 1
        ]  # fmt: skip
        work = sum(CALL if calls(v.op) else 1 for v in inside if is_row(v.op) and v.type in FLOATS)
        return work >= GATHER * len(gathers)

    def _instructions(self) -> Iterator[Value]:
        for block in self.blocks:
            yield from block.instructions

    def _control_is_uniform(self) -> bool:
        """Whether all lanes go the same way, or both ways can be computed."""
        for block in self.blocks:
            if block is not self.loop.header and self._varies_at_end(block):
                found = branch_of(block)
                if found is None:
                    return False
                self.branches[block] = found
        return True

    def _pointers_are(self) -> bool:
        """Whether no pointer is chosen and no array as long as a lane says."""
        return not any(v.op == "alloc" or (v.op == "phi" and v.type == "ptr") for v in self.varying)

    def adds_deep_within(self) -> bool:
        """Whether loops two deep within compute, and call no functions.

        Their adjoints sum over all lanes for each element that the lanes share, which takes longer
        than the products before it: one such sum serves twice as many lanes.
        """
        count, deep = self.loop.count, self.loop.depth + 2
        assert count is not None
        inner = [b for b in self.blocks if b.loop is not None and b.loop.depth >= deep]
        if not inner or (count.op == "const" and count.attribute < 2 * LANES):
            return False
        return not any(calls(v.op) for b in inner for v in b.instructions)

    # -- the vectors -------------------------------------------------------------------------

    def vectorize(self) -> None:
        """Let a trip be of as many as there are lanes."""
        for v in self.varying:
            v.varying = True
        for loop in self.function.loops:
            if loop.header in self.loop.blocks:
                loop.width = self.function.lanes
        self._count_in_lanes()
        for memory in self.private:
            memory.widen()
        for places in self.own:
            self.function.masked |= dict.fromkeys(places.stores, self.valid)
        for block in reversed(list(self.branches)):
            convert(self.function, self.branches[block])
        for phi, additions in self.sums.items():
            self._add_in_order(phi, additions)

    def _made(self, block: Block, op: str, args: list[Value], type: str = "i64") -> Value:
        return self.function.value(op, args, type, None, block)

    def _count_in_lanes(self) -> None:
        """The number of trips, and the number of each in its lane."""
        loop, number = self.loop, self.loop.number
        assert loop.count is not None
        step, chunks = self._chunks(loop.count)
        body = loop.header.successors[0]
        first = self._made(body, "imul", [number, step])
        end, added = loop.count, [first]
        if step.op != "const":  # a chunk may be of one trip
            end = self._made(body, "imin", [end, self._made(body, "iadd", [first, step])])
            added += [end.args[1], end]
        index = self._made(body, "lane_index", [first, end])
        self.valid = self._made(body, "lane_valid", [first, end], "i1")
        after = self._made(body, "iadd", [index, self.function.const(1, "i64")])
        index.name, new = number.name, {number: index, self.after: after}
        for block in self.blocks:
            for v in (*block.phis, *block.instructions):
                if v is not self.condition and v is not self.after and v is not number:
                    v.args = [new.get(a, a) for a in v.args]
            if block is not loop.header:
                block.operands = [new.get(a, a) for a in block.operands]
        self.function.rows |= self._rows(index)
        number.varying, first.varying = False, False
        index.varying = self.valid.varying = after.varying = True
        body.instructions[:0] = [*added, index, self.valid, after]
        self.condition.args = [number, chunks]
        loop.count = loop.trips[loop.exits[0]] = chunks

    def _rows(self, index: Value) -> set[Value]:
        """The numbers of the trips, with something added that all of them share."""
        found = {index}
        for block in self.blocks:
            for v in block.instructions:
                moved = [a for a in v.args if a in found]
                others = [a for a in v.args if a not in found]
                if v.op in ("iadd", "imul") and len(moved) == len(others) == 1:
                    (other,) = others
                    one = other.op == "const" and other.attribute == 1
                    if one if v.op == "imul" else other not in self.varying:
                        found.add(v)
        return found

    def _chunks(self, count: Value) -> tuple[Value, Value]:
        """How many trips go side by side, and how often; one where rows are too short for that."""
        step, before = self.function.const(self.function.lanes, "i64"), self.loop.preheader
        added: list[Value] = []
        for row in dict.fromkeys(x.row for x in self.own if x.row is not None):
            short = self._made(before, "lt", [row, count], "i1")
            step = self._made(before, "select", [short, self.function.const(1, "i64"), step])
            added += [short, step]
        more = self._made(before, "iadd", [count, step])
        less = self._made(before, "isub", [more, self.function.const(1, "i64")])
        chunks = self._made(before, "ifloordiv", [less, step])
        before.instructions += [*added, more, less, chunks]
        return step, chunks

    def _add_in_order(self, phi: Value, additions: dict[Value, Value]) -> None:
        """Make one operation of all additions to a sum: lane by lane, in each one after another."""
        *others, last = additions
        signs = tuple(-1 if v.op == "sub" else 1 for v in additions)
        block, args = last.home, [phi, self.valid, *additions.values()]
        made = self.function.value("lane_sum", args, phi.type, signs, block)
        made.line, made.name = last.line, last.name
        block.instructions[block.instructions.index(last)] = made
        for v in others:
            v.home.instructions.remove(v)
        phi.args = [made if a is last else a for a in phi.args]
        self.function.sums |= {phi, made}


def _is_long(loop: Loop) -> bool:
    """Whether a loop may have trips enough for that to pay which is done once for all of them."""
    count = loop.count
    return count is None or count.op != "const" or count.attribute >= GATHER


def _always(loop: Loop) -> set[Block]:
    """The blocks that each trip goes through."""
    found, block = {loop.latch}, loop.latch
    while block is not loop.header:
        assert block.dominator is not None
        block = block.dominator
        found.add(block)
    return found
