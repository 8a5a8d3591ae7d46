"""Loops that the reverse sweep goes back through in segments, each of which is run again.

The forward sweep keeps no stacks in such a loop, but the loop's state at the beginning of each
segment of about the square root of the trips: what its header's phis hold, and the arrays that the
loop reads and that are written in it or after it.  The reverse sweep restores the state of the last
segment, runs it with stacks, goes back through it, and so on to the first.  That is possible for an
outermost loop whose count is known before and that is left from its header alone; arrays that it
makes are no part of its state, and so do not live longer than a trip: they are freed.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from tapegrad.njit.emitter import LLVM, SIZE
from tapegrad.njit.forward_sweep import ForwardSweep
from tapegrad.njit.loop_arrays import LoopArrays, hands_on_arrays
from tapegrad.njit.reverse_plan import AT_HAND, ReversePlan
from tapegrad.njit.sweep_frame import FULL, Stack, SweepFrame
from tapegrad.njit.values import Block, Function, Loop, Value, dominates

Checkpoints: TypeAlias = "dict[Loop, CheckpointedLoop]"


class Memory(NamedTuple):
    """An array of a loop's state."""

    pointer: Value
    element: str
    lengths: list[Value]  # whose product is the number of elements


def checkpoints_of(frame: SweepFrame) -> Checkpoints:
    """The loops of a function that have stacks, and can be gone back through in segments."""
    found = {}
    assert frame.plan is not None
    for loop in frame.function.loops:
        inside = any(s.header in loop.blocks for s in frame.stacks)
        if inside and loop.parent is None and loop.count is not None:
            memory = _state(frame.function, frame.plan, loop)
            if memory is not None:
                found[loop] = CheckpointedLoop(frame, loop, memory)
    return found


def _state(function: Function, plan: ReversePlan, loop: Loop) -> list[Memory] | None:
    """The arrays of a loop's state, or None if these are not all there before the loop."""
    (leaving,) = loop.exits
    if hands_on_arrays(function, loop):
        return None
    of = function.alias_class
    inside = [v for b in loop.blocks for v in b.instructions]
    if any(v.op == "call" for v in inside):
        return None  # it is called once
    written = {
        memory for memory, stores in plan.memory.stores.items()
        if any(s.home in loop.blocks or plan.memory.follows(leaving, 0, s) for s in stores)
    }  # fmt: skip
    classes = {of(v.args[0]) for v in inside if v.op == "load"} & written
    pointers = function.written_pointers()
    found = [
        Memory(p, p.attribute.element, function.lengths_of(p))
        for p in function.parameters
        if of(p) in classes and p in pointers
    ]
    for v in function.instructions():
        if v.type == "ptr" and v.op in ("call", "word") and of(v) in classes:
            return None  # an array of which the length is not known
        if v.op != "alloc" or of(v) not in classes or v.home in loop.blocks:
            continue
        if v.home.loop is None and dominates(v.home, loop.preheader):
            found.append(Memory(v, v.attribute[0], function.lengths_of(v)))
        elif not dominates(loop.preheader, v.home):
            return None
    return found


class CheckpointedLoop:
    """Writes what a loop does before it, at its header, and on the way back."""

    def __init__(self, frame: SweepFrame, loop: Loop, memory: list[Memory]) -> None:
        self.frame, self.emitter, self.loop, self.memory = frame, frame.emitter, loop, memory
        self.phis = loop.header.phis
        self.arrays = LoopArrays(self.emitter, loop)
        cell = self.emitter.cell
        self.count, self.length, self.size = cell("i64"), cell("i64"), cell("i64")
        self.states, self.next_state = cell("ptr"), cell("ptr")
        self.next = cell("i64")  # the trip at which the next segment begins
        self.start, self.stop = cell("i64"), cell("i64")  # of the segment that is run again
        self.pointers = [(cell("ptr"), cell("i64")) for _ in memory]  # and bytes
        self.outer = {v: cell(v.type) for v in self._read_from_outside()}

    def _read_from_outside(self) -> list[Value]:
        """What the loop reads that was computed before it."""
        found: dict[Value, None] = {}
        for block in self.frame.function.blocks:
            if block in self.loop.blocks:
                found |= dict.fromkeys(block.operands)
                for v in (*block.phis, *block.instructions):
                    if v not in self.phis:
                        found |= dict.fromkeys(v.args)
        for loop in self.frame.function.loops:
            if loop.header in self.loop.blocks and loop.count is not None:
                found[loop.count] = None
        return [v for v in found if v.op not in AT_HAND and not self.loop.holds(v)]

    def _const(self, x: int) -> Any:
        return self.emitter.const(x, "i64")

    def _moved(self, pointer: Any, count: Any) -> Any:
        """A pointer some bytes further."""
        return self.emitter.current.emit("ptr", f"getelementptr i8, {pointer}, {count}")

    # -- the forward sweep -------------------------------------------------------------------

    def begin(self) -> None:
        """Before the loop: room for the states."""
        emitter, frame = self.emitter, self.frame
        for v, cell in self.outer.items():
            emitter.put(cell, frame.value(v))
        assert self.loop.count is not None
        count, size = frame.value(self.loop.count), self._const(8 * len(self.phis))
        for one, (pointer, room) in zip(self.memory, self.pointers):
            total = self._const(SIZE[one.element])
            for n in one.lengths:
                total = emitter.integer("imul", [total, frame.value(n)])
            emitter.put(room, total)
            emitter.put(pointer, frame.value(one.pointer))
            size = emitter.integer("iadd", [size, total])
        emit = emitter.current.emit
        length = emit("i64", f"call i64 @segment({count}, {size}, ptr %left)")
        number = emitter.integer(
            "iadd", [emit("i64", f"udiv {count}, {length.name}"), self._const(1)]
        )
        states = emit("ptr", f"call ptr @take(ptr %arena, ptr %left, {number}, {size}, i1 false)")
        emitter.require(emitter.current.emit("i1", f"icmp ne {states}, null"), FULL)
        for cell, x in (
            (self.count, count), (self.length, length), (self.size, size), (self.states, states),
            (self.next_state, states), (self.next, self._const(0)),
        ):  # fmt: skip
            emitter.put(cell, x)
        self.arrays.begin()

    def save(self) -> None:
        """At the header: save the state, if a segment begins here."""
        emitter, frame = self.emitter, self.frame
        self.arrays.free()
        save, on = emitter.label("save"), emitter.label("on")
        following = emitter.get(self.next)
        due = emitter.apply("eq", frame.now[self.loop.number], following)
        emitter.branch(due, save, on, ", !prof !unlikely")
        emitter.start(save)
        at = emitter.get(self.next_state)
        for k, phi in enumerate(self.phis):
            emitter.line(f"store {frame.now[phi]}, {self._moved(at, self._const(8 * k))}, align 1")
        self._copy(at, to_state=True)
        emitter.put(self.next_state, self._moved(at, emitter.get(self.size)))
        emitter.put(self.next, emitter.integer("iadd", [following, emitter.get(self.length)]))
        emitter.jump(on)
        emitter.start(on)

    def _copy(self, state: Any, to_state: bool) -> None:
        """Copy arrays into a state, or back."""
        emitter = self.emitter
        at = self._moved(state, self._const(8 * len(self.phis)))
        for pointer, room in self.pointers:
            size, array = emitter.get(room), emitter.get(pointer)
            to, what = (at, array) if to_state else (array, at)
            emitter.line(f"call void @llvm.memcpy.p0.p0.i64({to}, {what}, {size}, i1 false)")
            at = self._moved(at, size)

    # -- the reverse sweep -------------------------------------------------------------------

    def enter(self) -> None:
        """From the loop's exit into its last segment; writes the sweep that runs segments again."""
        emitter = self.emitter
        self.arrays.begin()
        count, length = emitter.get(self.count), emitter.get(self.length)
        rest = emitter.current.emit("i64", f"urem {count}, {length.name}")
        emitter.put(self.start, emitter.integer("isub", [count, rest]))
        emitter.put(self.stop, self._const(-1))  # it is left from the header
        emitter.jump(self._label("resume"))
        SegmentSweep(self).write()

    def _label(self, hint: str) -> str:
        return f"{hint}.loop{self.loop.index}"

    def go_back(self, trip: Any) -> None:
        """From a trip to the one before, which may be in the segment before."""
        emitter = self.emitter
        before = emitter.label("before")
        start = emitter.get(self.start)
        first = emitter.apply("eq", trip, start)
        emitter.branch(first, before, f"r{self.loop.latch.label}", ", !prof !unlikely")
        emitter.start(before)
        self.arrays.free()
        emitter.put(self.stop, start)
        emitter.put(self.start, emitter.integer("isub", [start, emitter.get(self.length)]))
        emitter.jump(self._label("resume"))

    def resume(self, sweep: SegmentSweep) -> None:
        """Restore the state at the beginning of the segment; room for its trips."""
        emitter, frame = self.emitter, self.frame
        emitter.start(self._label("resume"))
        start, length = emitter.get(self.start), emitter.get(self.length)
        number = emitter.current.emit("i64", f"udiv {start}, {length.name}")
        state = self._moved(
            emitter.get(self.states), emitter.integer("imul", [number, emitter.get(self.size)])
        )
        for k, phi in enumerate(self.phis):
            at = self._moved(state, self._const(8 * k))
            kind = LLVM[phi.type]
            emitter.put(sweep.phis[phi], emitter.current.emit(kind, f"load {kind}, {at}, align 1"))
        self._copy(state, to_state=False)
        for v, cell in self.outer.items():
            frame.now[v] = emitter.get(cell)
        if (stack := frame.stacks.get(self.loop)) is not None:
            emitter.put(stack.base, emitter.integer("isub", [self._const(0), start]))
            rest = emitter.integer("isub", [emitter.get(self.count), start])
            trips = emitter.integer("imin", [length, rest])
            sweep.ensure(stack, emitter.integer("iadd", [trips, self._const(stack.extra)]))


class StateSweep(ForwardSweep):
    """The forward sweep of a function with such loops: it keeps their states."""

    def __init__(self, frame: SweepFrame, after: str, checkpoints: Checkpoints) -> None:
        super().__init__(frame, after)
        self.checkpoints = checkpoints
        self.inside = {b for loop in checkpoints for b in loop.blocks}
        self.shadows = {v.shadow for v in frame.function.values}

    def stack(self, loop: Loop | None) -> Stack | None:
        """No stack within such a loop."""
        return None if loop is None or loop.header in self.inside else super().stack(loop)

    def _enter_loop(self, loop: Loop) -> None:
        if loop in self.checkpoints:
            self.checkpoints[loop].begin()
        super()._enter_loop(loop)

    def _begin_trip(self, block: Block) -> None:
        if block.loop in self.checkpoints and block.is_header:
            self.checkpoints[block.loop].save()
        super()._begin_trip(block)

    def _instruction(self, v: Value) -> None:
        if v.op == "alloc" and v.home in self.inside and v in self.shadows:
            self.frame.now[v] = self.emitter.const(0, "ptr")  # of what is computed again
        else:
            super()._instruction(v)


class SegmentSweep(ForwardSweep):
    """The forward sweep of a segment of a loop, with stacks."""

    def __init__(self, checkpoint: CheckpointedLoop) -> None:
        super().__init__(checkpoint.frame, f"r{checkpoint.loop.header.label}")
        self.checkpoint, self.loop = checkpoint, checkpoint.loop

    def write(self) -> None:
        """Write the loop's blocks, from the label where a segment is resumed."""
        frame = self.frame
        before = dict(frame.now)
        blocks = [b for b in frame.function.blocks if b in self.loop.blocks]
        for block in blocks:
            for phi in block.phis:
                self.phis[phi] = self.emitter.cell(phi.type)
        self.checkpoint.resume(self)
        self.emitter.jump(self.label(self.loop.header))
        for block in blocks:
            self._block(block)
        frame.now = before

    def label(self, block: Block) -> str:
        """The label of a block; the last segment leads on to the reverse sweep of the header."""
        return f"g{block.label}" if block in self.loop.blocks else self.after

    def _begin_trip(self, block: Block) -> None:
        if block is self.loop.header:
            emitter = self.emitter
            on = emitter.label("on")
            stop = emitter.get(self.checkpoint.stop)
            ends = emitter.apply("eq", self.frame.now[self.loop.number], stop)
            emitter.branch(ends, f"r{self.loop.latch.label}", on, ", !prof !unlikely")
            emitter.start(on)
        super()._begin_trip(block)

    def _hand_on(self, block: Block, following: Block) -> None:
        if following in self.loop.blocks:
            super()._hand_on(block, following)
