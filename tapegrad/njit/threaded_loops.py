"""Sweeps whose `prange` loops threads share: each has trips of its own, forward and back.

A loop becomes two routines.  In the forward sweep each thread keeps stacks of its own and sums up
what the trips add to; the reverse sweep gives it the same trips.  There it sums up the adjoints of
what was computed before the loop, of numbers and of arrays that have copies; all sums are added in
the order of the threads.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tapegrad.njit.dual_emitter import DualCell, parts
from tapegrad.njit.emitter import Emitter
from tapegrad.njit.forward_sweep import ForwardSweep
from tapegrad.njit.reverse_plan import AT_HAND
from tapegrad.njit.runtime_text import NO_MEMORY
from tapegrad.njit.runtime_text import RAISED as RAISES
from tapegrad.njit.sweep_frame import FULL, RAISED, Stack, SweepFrame
from tapegrad.njit.thread_team import FIRST, LAST, MARK, NUMBER, Routine, Team
from tapegrad.njit.values import Block, Loop, Value
from tapegrad.njit.vector_emitter import Lanes

ThreadedLoops: TypeAlias = "dict[Loop, ThreadedLoop]"
ENDED = "ended"  # the label where a thread is through its trips


def threaded_loops(frame: SweepFrame) -> ThreadedLoops:
    """The loops of a function whose trips threads share."""
    shared = [x for x in frame.function.loops if x.shared is not None and not x.in_lanes]
    if shared:
        blocks = {b for x in shared for b in x.blocks}
        frame.emitter.team = Team(x.index for x in frame.stacks if x.header in blocks)
    return {loop: ThreadedLoop(frame, loop) for loop in shared}


def _plain(cell: Any) -> list[tuple[str, str]]:
    """The variables that one is made of, each with its type."""
    if isinstance(cell, Lanes | DualCell):
        return [one for part in cell for one in _plain(part)]
    return [cell]


class ThreadedLoop:
    """Writes the routines of a loop, and what calls them."""

    def __init__(self, frame: SweepFrame, loop: Loop) -> None:
        assert loop.shared is not None
        assert frame.emitter.team is not None
        self.frame, self.emitter, self.loop = frame, frame.emitter, loop
        self.sums, self.copied = loop.shared
        self.team: Team = frame.emitter.team
        self.blocks = [b for b in frame.function.blocks if b in loop.blocks]
        self.stacks = [s for s in frame.stacks.values() if s.loop.header in loop.blocks]
        self.tops = {s: self.team.word() for s in self.stacks}
        self.given: dict[Value, Any] = {v: frame.cell(v) for v in self._read_from_outside()}
        self.partial = {p: frame.cell(p) for p in self.sums}
        self.words: dict[str, int] = {}  # of what threads sum up, by variables
        self.first: Any = None  # trip of a thread

    def _read_from_outside(self) -> list[Value]:
        """What the loop reads that was computed before it, and all arguments."""
        found: dict[Value | None, None] = dict.fromkeys(self.frame.function.parameters)
        found |= {p.shadow: None for kind, p in self.frame.words.inputs if kind == "shadow"}
        for block in self.blocks:
            found |= dict.fromkeys(block.operands)
            for v in (*block.phis, *block.instructions):
                found |= dict.fromkeys(v.args)
        for loop in self.frame.function.loops:
            if loop.header in self.loop.blocks:
                found[loop.count] = None
        return [
            v for v in found
            if v is not None and v.op not in ("const", "undef") and not self.loop.holds(v)
        ]  # fmt: skip

    # -- words of a thread's frame -----------------------------------------------------------

    def _word(self, word: int, kind: str = "i64") -> Any:
        at = self.emitter.current.emit("ptr", f"getelementptr i64, ptr %thread, i64 {word}")
        return self.emitter.current.emit(kind, f"load {kind}, {at}")

    def _put_word(self, word: int, x: Any) -> None:
        at = self.emitter.current.emit("ptr", f"getelementptr i64, ptr %thread, i64 {word}")
        self.emitter.line(f"store {x}, {at}")

    def _hand_over(self, cells: list[Any]) -> None:
        """Put what a thread has summed up into its frame."""
        for name, kind in [one for cell in cells for one in _plain(cell)]:
            if name not in self.words:
                self.words[name] = self.team.word()
            self._put_word(
                self.words[name], self.emitter.current.emit(kind, f"load {kind}, ptr {name}")
            )

    def _add_up(self, cells: list[Any]) -> None:
        """Add what all threads have summed up to variables."""
        for name, kind in [one for cell in cells for one in _plain(cell)]:
            self.team.totals[kind] = None
            emit = self.emitter.current.emit
            start = emit(kind, f"load {kind}, ptr {name}")
            total = emit(
                kind, f"call {kind} @total.{kind}(ptr %team, i64 {self.words[name]}, {start})"
            )
            self.emitter.line(f"store {total}, ptr {name}")

    # -- routines ----------------------------------------------------------------------------

    def begin(self, rewinds: bool) -> Any:
        """Begin a routine: its stacks, and their slots for these trips; returns the last trip."""
        emitter = self.emitter
        emitter.start("enter")
        for v, cell in self.given.items():
            if v.op in AT_HAND or not rewinds:
                self.frame.now[v] = emitter.get(cell)
        self.first, last = self._word(FIRST), self._word(LAST)
        trips = emitter.integer("isub", [last, self.first])
        for stack in self.stacks:
            level = stack.loop.index
            buffer = emitter.current.emit("ptr", f"load ptr, ptr %level{level}")
            Emitter.put(emitter, stack.buffer, buffer)
            capacity = emitter.current.emit("i64", f"load i64, ptr %level{level}.cap")
            Emitter.put(emitter, stack.capacity, capacity)
            top = self._word(self.tops[stack])
            if stack.loop is self.loop:
                used = emitter.integer("iadd", [trips, emitter.const(stack.extra, "i64")])
                after = emitter.integer("isub" if rewinds else "iadd", [top, used])
                base = after if rewinds else top
                emitter.put(stack.base, emitter.integer("isub", [base, self.first]))
                top = after
            emitter.put(stack.top, top)
        return last

    def end(self, cells: list[Any]) -> None:
        """End a routine, whose blocks are written."""
        emitter = self.emitter
        emitter.start(ENDED)
        for stack, word in self.tops.items():
            self._put_word(word, emitter.get(stack.top))
        self._hand_over(cells)
        emitter.line("ret i64 0")
        for label, status in ((RAISED, RAISES), (FULL, NO_MEMORY)):
            emitter.start(label)
            emitter.line(f"ret i64 {status}")

    def _call(self, routine: Routine, trips: Any, known: list[Any]) -> None:
        """Have the threads call a routine, which reads those of some variables that it has."""
        emitter, own = self.emitter, set(routine.variables())
        for cell in known:
            routine.shared |= {name: kind for name, kind in _plain(cell) if name in own}
        structure = f"%shared.{routine.name}"
        for name, kind, place in routine.places(structure):
            at = emitter.current.emit("ptr", place)
            x = emitter.current.emit(kind, f"load {kind}, ptr {name}")
            emitter.line(f"store {x}, {at}")
        status = emitter.current.emit(
            "i64",
            f"call i64 @on_threads(ptr @{routine.name}, ptr %team, {trips}, ptr {structure}, "
            "ptr %left)",
        )
        raised = emitter.current.emit("i1", f"icmp ne {status}, {RAISES}")
        emitter.require(raised, RAISED)
        emitter.require(emitter.current.emit("i1", f"icmp eq {status}, 0"), FULL)

    def forward(self, sweep: ForwardSweep) -> None:
        """Write the loop's forward sweep; its sums are known then."""
        emitter, frame = self.emitter, self.frame
        for v, cell in self.given.items():
            emitter.put(cell, frame.value(v))
        before = self.loop.header.predecessors.index(self.loop.preheader)
        for p, cell in self.partial.items():
            emitter.put(cell, frame.value(p.args[before]))
        assert self.loop.count is not None
        trips = frame.value(self.loop.count)
        now = dict(frame.now)
        with emitter.routine(f"forward.loop{self.loop.index}") as routine:
            TripSweep(self).write()
        frame.now = now
        self._call(routine, trips, list(self.given.values()))
        self._add_up(list(self.partial.values()))
        for p, cell in self.partial.items():
            frame.now[p] = emitter.get(cell)

    def reverse(self, sweep: Any) -> None:
        """Write the loop's reverse sweep; the adjoints of its sums are known."""
        emitter, frame = self.emitter, self.frame
        now, before = dict(frame.now), (sweep.block, sweep.known, sweep.pending)
        outer = [frame.counters[x] for x in frame.counters if self.loop.header in x.blocks]
        known = [*self.given.values(), *frame.variables.values(), *outer]
        known += [cell for (_, loop), cell in sweep.invariants.items() if loop is self.loop]
        known += [sweep.variable(p) for p in self.sums if p.active]
        copied = [a for a in self.copied if a.shadow is not None]
        copies = {a: [self.team.word() for _ in range(emitter.words)] for a in copied}
        trips = emitter.get(frame.counters[self.loop])
        with emitter.routine(f"reverse.loop{self.loop.index}") as routine:
            last = self.begin(rewinds=True)
            emitter.put(frame.counters[self.loop], last)
            self._copy_arrays(sweep, copies)
            emitter.jump(f"r{self.loop.header.label}")
            sweep.thread = self
            sweep.write_blocks(self.blocks)
            sweep.thread = None
            own = set(routine.variables())
            sums = [
                cell for v, cell in sweep.adjoints.items()
                if not self.loop.holds(v) and any(name in own for name, _ in _plain(cell))
            ]  # fmt: skip
            self.end(sums)
        frame.now = now
        sweep.block, sweep.known, sweep.pending = before
        self._call(routine, trips, known)
        self._add_up(sums)
        for array, words in copies.items():
            self._add_copies(sweep, array, words)
        if copies:
            emitter.line("call void @free_copies(ptr %team, ptr %left)")
        start = self.loop.header.predecessors.index(self.loop.preheader)
        for p in self.sums:
            if p.active:
                sweep.add(p.args[start], sweep.take(p))

    # -- arrays of whose adjoints each thread has a copy -------------------------------------

    def _copy_arrays(self, sweep: Any, copies: dict[Value, list[int]]) -> None:
        """Have copies of adjoints, and let pointers lead there; the first thread has none."""
        emitter = self.emitter
        if not copies:
            return
        mark = emitter.current.emit("ptr", f"getelementptr i64, ptr %thread, i64 {MARK}")
        emitter.line(f"call void @mark(ptr %arena, {mark})")
        cells = {a: emitter.cell("ptr") for a in copies}
        sweep.block, sweep.known = self.loop.header, {}
        for array, cell in cells.items():
            emitter.put(cell, sweep.value(array.shadow))
        make, on = emitter.label("copy"), emitter.label("on")
        first = emitter.apply("eq", self._word(NUMBER), emitter.const(0, "i64"))
        emitter.branch(first, on, make)
        emitter.start(make)
        sweep.known = {}
        for array, words in copies.items():
            made = emitter.allocate(self._size(sweep, array), self._element(array), True, FULL)
            emitter.put(cells[array], made)
            for word, part in zip(words, parts(made)):
                self._put_word(word, part)
        emitter.jump(on)
        emitter.start(on)
        sweep.known = {}
        for array, cell in cells.items():
            self._redirect(sweep, array, emitter.get(cell))

    def _redirect(self, sweep: Any, array: Value, copy: Any) -> None:
        """Let all pointers into the adjoint of an array that the loop has lead into the copy."""
        emitter, frame = self.emitter, self.frame
        of, base = frame.function.alias_class, sweep.value(array.shadow)
        memory = of(array)
        shadows = {v.shadow for v in frame.function.values if v.shadow and of(v) is memory}
        for v in shadows:
            if v in self.given and v.op in AT_HAND:
                frame.now[v] = emitter.moved(frame.now[v], base, copy)
        cells = [(v, cell) for v, cell in frame.variables.items() if v in shadows]
        cells += [
            (v, cell) for (v, loop), cell in sweep.invariants.items()
            if v in shadows and loop is self.loop
        ]  # fmt: skip
        for _, cell in cells:
            emitter.put(cell, emitter.moved(emitter.get(cell), base, copy))

    def _size(self, sweep: Any, array: Value) -> Any:
        found = self.emitter.const(1, "i64")
        for n in self.frame.function.lengths_of(array):
            found = self.emitter.integer("imul", [found, sweep.value(n)])
        return found

    @staticmethod
    def _element(array: Value) -> str:
        element: str = array.attribute[0] if array.op == "alloc" else array.attribute.element
        return element

    def _add_copies(self, sweep: Any, array: Value, words: list[int]) -> None:
        emitter, element = self.emitter, self._element(array)
        name = f"copies.{element}"
        self.team.copies[name] = f"add.{element}"
        to, size = sweep.value(array.shadow), self._size(sweep, array)
        for word, part in zip(words, parts(to)):
            emitter.line(f"call void @{name}(ptr %team, i64 {word}, {part}, {size})")


class ThreadedSweep(ForwardSweep):
    """The forward sweep of a function with such loops."""

    def __init__(self, frame: SweepFrame, after: str, threads: ThreadedLoops) -> None:
        super().__init__(frame, after)
        self.threads = threads
        self.inside = {b for loop in threads for b in loop.blocks}

    def stack(self, loop: Loop | None) -> Stack | None:
        """No stack within such a loop: threads have them."""
        return None if loop is None or loop.header in self.inside else super().stack(loop)

    def _begin(self) -> None:
        emitter = self.emitter
        emitter.require(emitter.current.emit("i1", "call i1 @assemble(ptr %team)"), FULL)

    def _block(self, block: Block) -> None:
        if block not in self.inside:
            super()._block(block)

    def _end(self, block: Block) -> None:
        for loop, threaded in self.threads.items():
            if loop.preheader is block:
                threaded.forward(self)
                self._hand_on(loop.header, loop.exits[0])
                self.emitter.jump(self.label(loop.exits[0]))
                return
        super()._end(block)


class TripSweep(ForwardSweep):
    """The forward sweep of a thread's trips."""

    def __init__(self, threaded: ThreadedLoop) -> None:
        super().__init__(threaded.frame, ENDED)
        self.threaded, self.loop = threaded, threaded.loop

    def write(self) -> None:
        """Write the routine."""
        emitter, threaded = self.emitter, self.threaded
        self.last = threaded.begin(rewinds=False)
        for block in threaded.blocks:
            for phi in block.phis:
                self.phis[phi] = threaded.partial.get(phi) or self.frame.cell(phi)
        stack = self.frame.stacks.get(self.loop)
        if stack is not None:
            self.ensure(stack, emitter.get(stack.top))
        emitter.put(self.phis[self.loop.number], threaded.first)
        for p in threaded.sums:
            emitter.put(self.phis[p], emitter.const(0 if p.type == "i64" else -0.0, p.type))
        emitter.jump(self.label(self.loop.header))
        for block in threaded.blocks:
            self._block(block)
        threaded.end([self.phis[p] for p in threaded.sums])

    def label(self, block: Block) -> str:
        """The label of a block; that behind the loop ends the routine."""
        return f"f{block.label}" if block in self.loop.blocks else self.after

    def _instruction(self, v: Value) -> None:
        super()._instruction(v)
        if v in self.loop.header.operands:  # whether it goes on
            number = self.frame.now[self.loop.number]
            self.frame.now[v] = self.emitter.apply("lt", number, self.last)

    def _hand_on(self, block: Block, following: Block) -> None:
        if following in self.loop.blocks:
            super()._hand_on(block, following)
