"""The reverse sweep: adjoints of values in registers and variables, of memory in its shadow."""

from __future__ import annotations

from functools import reduce
from typing import Any

from tapegrad.njit.checkpoints import Checkpoints
from tapegrad.njit.loop_fission import Fission, Places
from tapegrad.njit.partials import is_row, operand, partials
from tapegrad.njit.reverse_plan import AT_HAND, Merge
from tapegrad.njit.sweep_frame import Stack, SweepFrame
from tapegrad.njit.threaded_loops import ENDED, ThreadedLoop, ThreadedLoops
from tapegrad.njit.three_address_code import ELEMENTS, FLOATS
from tapegrad.njit.trip_order import goes_upwards
from tapegrad.njit.values import Block, Loop, Value

SHORT = 8  # trips that take no longer than a branch that goes another way than the last time


class ReverseSweep:
    """Writes the blocks of the function, backwards."""

    def __init__(
        self, frame: SweepFrame, lengths: dict[int, list[Value]], checkpoints: Checkpoints,
        threads: ThreadedLoops,
    ) -> None:  # fmt: skip
        assert frame.plan is not None
        assert frame.activity is not None
        self.frame, self.emitter = frame, frame.emitter
        self.plan, self.activity = frame.plan, frame.activity
        self.lengths = lengths  # of the arrays among the results
        self.checkpoints, self.threads = checkpoints, threads
        self.thread: ThreadedLoop | None = None  # whose routine is written
        self.adjoints: dict[Value, Any] = {}  # variables
        self.pending: dict[Value, Any] = {}  # adjoints in the block that is written
        self.known: dict[Value, Any] = {}  # values of the forward sweep in that block
        self.block = frame.function.last
        self.fission: Fission | None = None  # where adjoints of loads wait
        self.readers = self._find_readers()
        self.has_lanes = frame.function.has_lanes
        # How many trips the loops have that are taken upwards.
        self.upwards = {
            loop: self.emitter.cell("i64")
            for loop in frame.function.loops
            if loop not in checkpoints and loop.shared is None and goes_upwards(loop, self.plan)
        }  # fmt: skip
        self.invariants: dict[tuple[Value, Loop], Any] = {}
        for kept in self.plan.invariants.values():
            for v, loop in kept.items():
                if (v, loop) not in self.invariants:
                    self.invariants[v, loop] = frame.cell(v)

    def write(self) -> None:
        """Write the sweep, from the label `r<last>` to `gradients`."""
        inside = {b for loop in self.threads for b in loop.blocks}
        self.write_blocks([b for b in self.frame.function.blocks if b not in inside])
        emitter, words = self.emitter, self.frame.words
        emitter.start("gradients")
        for p in self.frame.function.parameters:
            if ("gradient", p) in words.output:
                g = self.adjoints.get(p)
                found = emitter.const(0.0, p.type) if g is None else emitter.get(g)
                emitter.result(words.output["gradient", p], found)
        emitter.jump("done")

    def write_blocks(self, blocks: list[Block]) -> None:
        """Write the reverse of some blocks, the last one first."""
        for block in reversed(blocks):
            if block.loop is None or block.loop not in self.plan.idle:
                self._block(block)

    # -- adjoints ----------------------------------------------------------------------------

    def _find_readers(self) -> dict[Value, set[Block | None]]:
        """The blocks in which an adjoint is added to; None is another place than a block."""
        found: dict[Value, set[Block | None]] = {}
        for block in self.frame.function.blocks:
            for v in block.instructions:
                if v.active or v.op == "store":
                    for a in v.args:
                        found.setdefault(a, set()).add(block)
            for phi in block.phis:
                for a in phi.args:
                    found.setdefault(a, set()).add(None)
        for v in self.frame.function.results:
            found.setdefault(v, set()).add(None)
        return found

    def _local(self, v: Value) -> bool:
        """Whether an adjoint is nowhere but in the block that is written."""
        own = v.op not in ("phi", "arg") and v.home is self.block
        return own and self.readers.get(v, set()) <= {self.block}

    def _contribute(self, v: Value, g: Any) -> None:
        """Add to the adjoint of a value."""
        if v.active:
            g = g if self.has_lanes(v) else self.emitter.over_lanes(g)
            old = self.pending.get(v)
            self.pending[v] = g if old is None else self.emitter.summed(old, g)

    def take(self, v: Value) -> Any:
        """The adjoint of a value of this block, which is zero from then on; None: it is zero."""
        g = self.pending.pop(v, None)
        if self._local(v):
            return g
        emitter, cell = self.emitter, self.variable(v)
        found = emitter.get(cell)
        emitter.put(cell, emitter.const(0.0, v.type))
        return found if g is None else emitter.summed(found, g)

    def variable(self, v: Value) -> Any:
        """The variable of an adjoint that is added to in several blocks."""
        if v not in self.adjoints:
            self.adjoints[v] = self.emitter.cell(v.type, True, self.has_lanes(v))
        return self.adjoints[v]

    def add(self, v: Value, g: Any) -> None:
        """Add to the variable of an adjoint."""
        if v.active:
            cell = self.variable(v)
            g = g if self.has_lanes(v) else self.emitter.over_lanes(g)
            self.emitter.put(cell, self.emitter.summed(self.emitter.get(cell), g))

    # -- values of the forward sweep ---------------------------------------------------------

    def value(self, v: Value) -> Any:
        """A value of the forward sweep, before the instruction that is reversed."""
        emitter, frame = self.emitter, self.frame
        if v.op in ("const", "undef"):
            return emitter.const(v.attribute if v.op == "const" else 0, v.type)
        if v.op in AT_HAND:
            return frame.now[v]
        if v in self.known:
            return self.known[v]
        loop = v.home.loop
        if loop is not None and v is loop.number:
            found = emitter.get(frame.counters[loop])
        elif loop is None:
            found = emitter.get(frame.variables[v])
        elif loop is not self.block.loop and v not in frame.function.rows:
            found = emitter.get(self.invariants[v, self.plan.child(loop, self.block)])
        elif v in self.plan.stacked:
            found = self._popped(v, loop)
        else:
            found = frame.compute(v, [self.value(a) for a in self.plan.parts(v)])
        self.known[v] = found
        return found

    def _popped(self, v: Value, loop: Loop) -> Any:
        emitter, stack = self.emitter, self.frame.stacks[loop]
        trip = emitter.get(self.frame.counters[loop])
        slot = emitter.integer("iadd", [emitter.get(stack.base), trip])
        at = stack.place(v, slot, emitter)
        moves = self.frame.moves(v)
        return emitter.pop(loop.index, at, stack.columns[v], v.type, v.varying, moves)

    # -- blocks ------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        emitter = self.emitter
        self.block, self.known, self.pending = block, {}, {}
        emitter.start(f"r{block.label}")
        if block is self.frame.function.last:
            self._seed()
        self.reverse_instructions(block)
        incoming = [(p, g) for p in block.phis if p.active and (g := self.take(p)) is not None]
        if block is self.frame.function.entry:
            emitter.jump("gradients")
        elif block.leaves is not None:
            self._enter_loop(block, block.leaves, incoming)
        elif block.is_header:
            self._next_trip(block, incoming)
        elif len(block.predecessors) == 1:
            above = block.predecessors[0]
            emitter.jump(f"r{above.label}", block.is_of_innermost(above))
        elif block not in self.plan.merges and len(self.plan.sources(block)) > 1:
            assert block.dominator is not None
            emitter.jump(f"r{block.dominator.label}")
        else:
            self._part(block, incoming)

    def reverse_instructions(self, block: Block) -> None:
        """The reverse of the instructions of a block."""
        for v in reversed(block.instructions) if block in self.plan.busy else ():
            self._reverse(v)
        for v, g in self.pending.items():
            self.add(v, g)
        self.pending = {}

    def _seed(self) -> None:
        """Begin with the adjoints of the results."""
        emitter, frame = self.emitter, self.frame
        for k, v in enumerate(frame.function.results):
            at = frame.words.input.get(("seed", k))
            if at is None:
                continue
            if v.type in FLOATS:
                self._contribute(v, emitter.argument(at, v.type, False))
                continue
            assert v.shadow is not None
            count = emitter.const(1, "i64")
            for n in self.lengths[k]:
                count = emitter.integer("imul", [count, frame.value(n)])
            element = self._element(v)
            given = emitter.argument(at, "ptr", False)
            emitter.add_into(frame.now[v.shadow], given, count, element)

    def _element(self, pointer: Value) -> str:
        """The element type of the memory that a result's pointer leads to."""
        assert pointer.op == "phi" or pointer.op == "alloc"
        while pointer.op == "phi":
            pointer = next(a for a in pointer.args if a.op != "undef")
        element: str = pointer.attribute[0]
        return element

    def _enter_loop(self, block: Block, loop: Loop, incoming: list[tuple[Value, Any]]) -> None:
        """From an exit into a loop, at its last trip."""
        emitter, frame = self.emitter, self.frame
        for phi, g in incoming:
            self.add(phi.args[0], g)
        if loop in self.plan.idle:
            emitter.jump(f"r{loop.preheader.label}")
            return
        trips = self.value(loop.trips[block])
        if loop in self.upwards:
            emitter.put(self.upwards[loop], trips)
        first = emitter.const(-1, "i64") if loop in self.upwards else trips
        emitter.put(frame.counters[loop], first)
        for v, inner in self.plan.invariants.get(block, {}).items():
            emitter.put(self.invariants[v, inner], self.value(v))
        if loop in self.checkpoints:
            self.checkpoints[loop].enter()
            return
        if loop in self.threads:
            self.threads[loop].reverse(self)
            emitter.jump(f"r{loop.preheader.label}")
            return
        skipped = self._skipped(loop, trips)
        if skipped is not None:
            emitter.put(frame.counters[loop], emitter.integer("isub", [trips, skipped]))
        if (stack := frame.stacks.get(loop)) is not None:
            used = emitter.integer("iadd", [trips, emitter.const(stack.extra, "i64")])
            base = emitter.integer("isub", [emitter.get(stack.top), used])
            emitter.put(stack.top, base)
            if skipped is not None:
                base = emitter.integer("iadd", [base, skipped])
            emitter.put(stack.base, base)
        header = f"r{block.predecessors[0].label}"
        places = Places(loop, self.plan)
        fissioned = places.usable and loop.width == 1
        if stack is not None and (loop in self.upwards or (fissioned and places.upwards)):
            self._fetch_ahead(stack, trips)
        if fissioned:
            Fission(self, places).write(trips, header)
        elif incoming and self._only_carries(loop):
            tests = [emitter.vanishes(g) for _, g in incoming]
            tests.append(emitter.apply("lt", emitter.const(SHORT, "i64"), trips))
            nothing = reduce(lambda a, b: emitter.integer("band", [a, b]), tests)
            emitter.branch(nothing, f"r{loop.preheader.label}", header)
        else:
            emitter.jump(header)

    def _fetch_ahead(self, stack: Stack, trips: Any) -> None:
        """Have the processor fetch what is read when the loop is gone through the next time.

        Where trips are taken upwards and what the stack holds downwards, it does not by itself.
        """
        emitter = self.emitter
        before = emitter.integer("isub", [emitter.get(stack.base), trips])
        for v in stack.columns:
            emitter.fetch(stack.place(v, before, emitter), stack.slots(trips, emitter))

    def _skipped(self, loop: Loop, trips: Any) -> Any:
        """How many trips are all but the last one, if its reverse leaves adjoints of zero."""
        if loop.idle_paths is None or not loop.idle_paths.forgets or not self._only_carries(loop):
            return None
        one = self.emitter.const(1, "i64")
        return self.emitter.integer("isub", [trips, self.emitter.integer("imin", [trips, one])])

    def _only_carries(self, loop: Loop) -> bool:
        """Whether adjoints of zero behind a loop mean that its reverse does nothing.

        A search for the largest has such: all that was not found has an adjoint of zero.
        """
        inner = {b.loop for b in loop.blocks} - {loop}
        stores = any(v.op == "store" for b in loop.blocks for v in b.instructions)
        stacks = any(x in self.frame.stacks for x in inner if x is not None)
        return not (stores or stacks)

    def _next_trip(self, block: Block, incoming: list[tuple[Value, Any]]) -> None:
        """From a header to the trip that comes next, or out of the loop."""
        emitter, loop = self.emitter, block.loop
        assert loop is not None
        counter, one = self.frame.counters[loop], emitter.const(1, "i64")
        k = emitter.get(counter)
        thread = self.thread if self.thread is not None and loop is self.thread.loop else None
        if loop in self.upwards:
            after = emitter.integer("iadd", [k, one], "nsw")
            ended = emitter.apply("eq", after, emitter.get(self.upwards[loop]))
        else:
            after = emitter.integer("isub", [k, one], "nsw")
            first = emitter.const(0, "i64") if thread is None else thread.first
            ended = emitter.apply("eq", k, first)
        back, out = emitter.label("back"), emitter.label("out") if thread is None else ENDED
        emitter.branch(ended, out, back)
        sources = {back: loop.latch} | ({out: loop.preheader} if thread is None else {})
        for label, source in sources.items():
            emitter.start(label)
            if label == back:
                emitter.put(counter, after)
            for phi, g in incoming:
                self.add(phi.args[block.predecessors.index(source)], g)
            if label == back and loop in self.checkpoints:
                self.checkpoints[loop].go_back(k)
            else:
                emitter.jump(f"r{source.label}")

    def _part(self, block: Block, incoming: list[tuple[Value, Any]]) -> None:
        """To the predecessor that control came from."""
        emitter, sources = self.emitter, self.plan.sources(block)
        labels = [emitter.label("from") for _ in sources]
        if len(sources) == 1:
            emitter.jump(labels[0])
        else:
            self._choose(self.plan.merges[block], labels)
        for source, label in zip(sources, labels):
            emitter.start(label)
            for phi, g in incoming:
                self.add(phi.args[block.predecessors.index(source)], g)
            emitter.jump(f"r{source.label}")

    def _choose(self, merge: Merge, labels: list[str]) -> None:
        """Go on at one of some labels."""
        emitter, x = self.emitter, self.value(merge.value)
        if merge.first is None and len(labels) > 2:
            emitter.switch(x, labels)
        elif merge.first is None:
            emitter.branch(emitter.apply("eq", x, emitter.const(0, "i64")), *labels)
        else:
            emitter.branch(x, *(labels if merge.first else labels[::-1]))

    # -- instructions ------------------------------------------------------------------------

    def _reverse(self, v: Value) -> None:
        if v.op == "store":
            self._reverse_store(v)
        elif v.active and (g := self.take(v)) is not None:
            if v.op == "load":
                self._reverse_load(v, g)
            elif v.op == "cast":
                self._contribute(v.args[0], self.emitter.cast(g, v.args[0].type))
            elif v.op == "lane_sum":
                self._reverse_sum(v, g)
            elif v.op == "select":
                self._reverse_select(v, g)
            elif is_row(v.op):
                self._reverse_row(v, g)

    def _reverse_store(self, v: Value) -> None:
        emitter, frame = self.emitter, self.frame
        pointer, offset, x = v.args
        if self.activity.stores_active(v):
            place, scope = self.place(v), frame.scope(pointer, shadow=True)
            g = emitter.load(*place, v.attribute, scope, v.lanes)
            zero = emitter.const(0.0, ELEMENTS[v.attribute])
            emitter.store(*place, zero, v.attribute, scope, v.lanes)
            if (valid := frame.function.masked.get(v)) is not None:
                g = emitter.select(self.value(valid), g, zero)
            self._contribute(x, g)
        if v in self.plan.saved:
            old = self.value(self.plan.saved[v])
            place = self.value(pointer), self.value(offset)
            emitter.store(*place, old, v.attribute, frame.scope(pointer), v.lanes)

    def _reverse_load(self, v: Value, g: Any) -> None:
        if self.fission is not None and v in self.fission.rooms:
            self.fission.wait(v, g)
        else:
            self.add_to_memory(v, g)

    def place(self, v: Value) -> tuple[Any, Any]:
        """The pointer and the offset of the adjoint of what is loaded or stored."""
        pointer, offset, *_ = v.args
        assert pointer.shadow is not None
        return self.value(pointer.shadow), self.value(offset)

    def add_to_memory(self, v: Value, g: Any) -> None:
        """Add to the adjoint of what is loaded."""
        scope = self.frame.scope(v.args[0], shadow=True)
        self.emitter.accumulate(*self.place(v), g, v.attribute, scope, v.lanes)

    def _reverse_sum(self, v: Value, g: Any) -> None:
        """Hand the adjoint of a sum on to its terms, in the lanes that are trips."""
        start, valid, *terms = v.args
        self._contribute(start, g)
        zero = self.emitter.const(0.0, v.type)
        for x, sign in zip(terms, v.attribute):
            signed = g if sign > 0 else self.emitter.apply("neg", g)
            self._contribute(x, self.emitter.select(self.value(valid), signed, zero))

    def _reverse_select(self, v: Value, g: Any) -> None:
        """Hand the adjoint on to what was chosen, in each lane."""
        condition, a, b = v.args
        zero, chosen = self.emitter.const(0.0, v.type), self.value(condition)
        self._contribute(a, self.emitter.select(chosen, g, zero))
        self._contribute(b, self.emitter.select(chosen, zero, g))

    def _reverse_row(self, v: Value, g: Any) -> None:
        """Multiply the adjoint with each partial derivative."""
        emitter = self.emitter
        values: dict[str, Any] = {}
        for a, partial in zip(v.args, partials(v.op)):
            if not a.active or partial is None:
                continue
            for name in partial.reads:
                if name not in values:
                    values[name] = self.value(operand(v, name))
            self._contribute(a, emitter.scaled(g, partial, values))
