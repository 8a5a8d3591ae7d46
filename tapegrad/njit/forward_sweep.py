"""The forward sweep: the function itself, which keeps what the plan says."""

from __future__ import annotations

from typing import Any

from tapegrad.njit.idle_trips import is_at, record_side
from tapegrad.njit.sweep_frame import FULL, RAISED, Stack, SweepFrame
from tapegrad.njit.values import Block, Loop, Value


class ForwardSweep:
    """Writes the blocks of the function."""

    def __init__(self, frame: SweepFrame, after: str) -> None:
        self.frame, self.emitter = frame, frame.emitter
        self.after = after  # the label where it goes on
        self.phis: dict[Value, Any] = {}

    def write(self) -> None:
        """Write the sweep."""
        emitter, frame, words = self.emitter, self.frame, self.frame.words
        emitter.start("enter")
        self._begin()
        for p in frame.function.parameters:
            frame.now[p] = emitter.argument(words.input["value", p], p.type, frame.moves(p))
            if ("shadow", p) in words.input:
                assert p.shadow is not None
                frame.now[p.shadow] = emitter.argument(words.input["shadow", p], "ptr")
        for block in frame.function.blocks:
            for phi in block.phis:
                self.phis[phi] = frame.cell(phi)
        emitter.jump(self.label(frame.function.entry))
        for block in frame.function.blocks:
            self._block(block)

    def _begin(self) -> None:
        """What comes before everything else."""

    def label(self, block: Block) -> str:
        """The label of a block."""
        return f"f{block.label}"

    def stack(self, loop: Loop | None) -> Stack | None:
        """The stack that a loop's values are kept on, if any are."""
        return None if loop is None else self.frame.stacks.get(loop)

    def _block(self, block: Block) -> None:
        emitter, frame = self.emitter, self.frame
        emitter.start(self.label(block))
        for phi in block.phis:
            frame.now[phi] = emitter.get(self.phis[phi])
        self._begin_trip(block)
        for v in (*block.phis, *block.instructions):
            if v.op != "phi":
                self._instruction(v)
            self._keep(v, block)
        for s in block.successors:
            if s.is_header and s.loop is not None and s.loop.preheader is block:
                self._enter_loop(s.loop)
        self._end(block)

    def _begin_trip(self, block: Block) -> None:
        """Begin a trip with room for its slot; on leaving a loop, the number of slots in use."""
        emitter, frame = self.emitter, self.frame
        stack = self.stack(block.loop)
        if stack is not None and block.is_header and stack.grows_in_trips:
            self._ensure_next(stack)
        for inner, mark in frame.marks(block.loop if block.is_header else None):
            emitter.put(mark, emitter.get(inner.top))
        left = self.stack(block.leaves)
        if left is not None:
            emitter.put(left.top, self._slots(left, left.base, left.loop.trips[block]))
        if stack is not None and block.predecessors == [stack.loop.header]:
            for v in stack.delayed:
                self._push(v, stack, frame.now[v])

    def _slots(self, stack: Stack, base: Any, trips: Value) -> Any:
        """How many slots are in use after so many trips."""
        emitter = self.emitter
        found = emitter.integer("iadd", [emitter.get(base), self.frame.value(trips)])
        return emitter.integer("iadd", [found, emitter.const(stack.extra, "i64")])

    def _enter_loop(self, loop: Loop) -> None:
        stack = self.stack(loop)
        if stack is not None:
            self.emitter.put(stack.base, self.emitter.get(stack.top))
            if stack.most is not None:
                self.ensure(stack, self._slots(stack, stack.top, stack.most))

    def ensure(self, stack: Stack, need: Any) -> None:
        """Have room for so many slots."""
        k, need = stack.loop.index, stack.slots(need, self.emitter)
        columns = len(stack.columns)
        self.emitter.ensure(k, stack.buffer, stack.capacity, need, columns, stack.by_slot, FULL)

    def _ensure_next(self, stack: Stack) -> None:
        """Have room for one more slot."""
        emitter = self.emitter
        trip = emitter.integer("iadd", [emitter.get(stack.base), self.frame.now[stack.loop.number]])
        self.ensure(stack, emitter.integer("iadd", [trip, emitter.const(1, "i64")]))

    def _keep(self, v: Value, block: Block) -> None:
        """Keep a value where the plan says so."""
        if v in self.frame.variables:
            self.emitter.put(self.frame.variables[v], self.frame.now[v])
        stack = self.stack(block.loop)
        if stack is not None and v in stack.columns and v not in stack.waiting:
            self._push(v, stack, self.frame.now[v])

    def _push(self, v: Value, stack: Stack, x: Any) -> None:
        emitter = self.emitter
        slot = emitter.integer("iadd", [emitter.get(stack.base), self.frame.now[stack.loop.number]])
        at = stack.place(v, slot, emitter)
        emitter.push(stack.loop.index, at, stack.columns[v], x, self.frame.moves(v))

    def _instruction(self, v: Value) -> None:
        emitter, frame = self.emitter, self.frame
        args = [frame.value(a) for a in v.args]
        if v.op == "store":
            pointer, offset, x = args
            emitter.store(pointer, offset, x, v.attribute, frame.scope(v.args[0]), v.lanes)
        elif v.op == "alloc":
            element, zeroed, _ = v.attribute
            frame.now[v] = emitter.allocate(args[0], element, zeroed, FULL, frame.moves(v))
        elif v.op == "require":
            emitter.require(args[0], RAISED)
        elif v.op == "call":
            found = emitter.call(v.attribute, args, v.type, RAISED, FULL)
            if found is not None:
                frame.now[v] = found
        elif v in frame.unordered:
            frame.now[v] = emitter.summed(args[0], args[1], v.op)
        else:
            frame.now[v] = frame.compute(v, args)

    def _end(self, block: Block) -> None:
        emitter, frame = self.emitter, self.frame
        if block.terminator == "ret":
            for k, v in enumerate(block.operands):
                at = frame.words.output.get(("result", k))
                if at is not None:
                    emitter.result(at, frame.value(v))
            emitter.jump(self.after)
        elif block.terminator == "jump":
            self._hand_on(block, block.successors[0])
            following = block.successors[0]
            emitter.jump(self.label(following), block.is_of_innermost(following))
        else:
            labels = [emitter.label("edge") if s.phis else self.label(s) for s in block.successors]
            yes, no = labels
            emitter.branch(frame.value(block.operands[0]), yes, no, self._hint(block))
            for s, label in zip(block.successors, labels):
                if s.phis:
                    emitter.start(label)
                    self._hand_on(block, s)
                    emitter.jump(self.label(s))

    @staticmethod
    def _hint(block: Block) -> str:
        """Which side of a branch is taken seldom, as far as one knows."""
        if block.loop is None or block.loop.idle_paths is None:
            return ""
        side = record_side(block, block.loop)
        return "" if side is None else (", !prof !unlikely", ", !prof !likely")[side]

    def _hand_on(self, block: Block, following: Block) -> None:
        """Give the phis of the block that follows their values."""
        k = following.predecessors.index(block)
        given = [
            (self.phis[phi], self.frame.value(phi.args[k]))
            for phi in following.phis
            if phi.args[k].op != "undef"
        ]
        for cell, x in given:
            self.emitter.put(cell, x)
        loop = block.loop
        if loop is None or loop.idle_paths is None:
            return
        if (block, following) in loop.idle_paths.ends:
            self._keep_at_end(block, following)
        if following is loop.header:
            self._drop_idle(loop)

    def _drop_idle(self, loop: Loop) -> None:
        """Take off the stacks of loops inside what an idle trip has kept."""
        emitter, number = self.emitter, loop.number
        after = number.args[loop.header.predecessors.index(loop.latch)]
        for inner, mark in self.frame.marks(loop):
            idle = emitter.apply("eq", self.frame.value(after), self.frame.now[number])
            tops = emitter.get(mark), emitter.get(inner.top)
            emitter.put(inner.top, emitter.select(idle, *tops))

    def _keep_at_end(self, block: Block, following: Block) -> None:
        """Keep what waits until it is known that a trip is not idle."""
        if (stack := self.stack(block.loop)) is None:
            return
        if stack.grows_at_ends:
            self._ensure_next(stack)
        k = following.predecessors.index(block)
        for v in stack.late:
            if is_at(v, (block, following)):
                x = v.args[k] if v in following.phis else v
                self._push(v, stack, self.frame.value(x))
