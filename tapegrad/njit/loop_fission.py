"""Loop fission: the reverse of an innermost loop in two, so that LLVM vectorizes both.

A loop that reads and writes the same memory, as a stencil with two buffers does, takes adjoints
from some places in each trip and adds to others, and LLVM cannot know that the next trip may begin
before.  For a chunk of trips one loop computes what is to be added, into a buffer; then others add
it, load by load.  A test at run time says whether the places lie apart; if not, the trips are
reversed one by one.
"""

from __future__ import annotations

from typing import Any

from tapegrad.njit.reverse_plan import ReversePlan
from tapegrad.njit.three_address_code import FLOATS
from tapegrad.njit.values import Block, Loop, Value

CHUNK = 256  # trips
LEAST = 16  # trips that pay


class Places:
    """The loads of a loop whose adjoints wait, and the stores into the same memory."""

    def __init__(self, loop: Loop, plan: ReversePlan) -> None:
        self.loop, self.body = loop, loop.latch
        memory_of, stores_active = plan.function.alias_class, plan.activity.stores_active
        stores = [v for v in self.body.instructions if stores_active(v)]
        loads = [v for v in self.body.instructions if v.op == "load" and v.active]
        stored = [memory_of(s.args[0]) for s in stores]
        self.loads = [v for v in loads if memory_of(v.args[0]) in stored]
        read = {memory_of(v.args[0]) for v in self.loads}
        self.stores = [s for s, memory in zip(stores, stored) if memory in read]
        self.pairs = [
            (s, v) for s in self.stores for v in self.loads
            if memory_of(s.args[0]) is memory_of(v.args[0])
        ]  # fmt: skip
        self.usable = (
            len(self.loads) > 1 and len(self.stores) == len(read) and _is_simple(loop, plan)
            and all(map(self._moves_evenly, (*self.loads, *self.stores)))
        )  # fmt: skip
        # Trips that hand nothing on to each other are taken upwards, as memory lies.
        saved = [s for s in self.body.instructions if s in plan.saved]
        saved_classes = {memory_of(s.args[0]) for s in saved}
        others = [
            v for v in self.body.instructions
            if v.op == "load" and v not in self.loads and memory_of(v.args[0]) in saved_classes
        ]  # fmt: skip
        self.upwards = (
            not any(p.active for p in loop.header.phis)
            and all(s in self.stores for s in saved)
            and set(others) <= set(plan.saved.values())
        )

    def _moves_evenly(self, v: Value) -> bool:
        """Whether an access goes on by the same distance in each trip."""
        pointer, offset, *_ = v.args
        return (
            not self.loop.holds(pointer) and v.attribute in FLOATS
            and self._depends(offset) and self._affine(offset)
        )  # fmt: skip

    def _depends(self, v: Value) -> bool:
        if v is self.loop.number:
            return True
        return self.loop.holds(v) and v.op != "phi" and any(map(self._depends, v.args))

    def _affine(self, v: Value) -> bool:
        if v is self.loop.number or not self.loop.holds(v):
            return True
        if v.op in ("iadd", "isub"):
            return all(map(self._affine, v.args))
        if v.op == "imul":
            return all(map(self._affine, v.args)) and not all(map(self._depends, v.args))
        return False


def _is_simple(loop: Loop, plan: ReversePlan) -> bool:
    """Whether a loop is a header, which computes no more than whether to go on, and a body."""
    count, header = loop.count, loop.header
    if count is None or loop.blocks != {header, loop.latch}:
        return False
    if count.op == "const" and count.attribute <= LEAST:
        return False
    return not any(v.active or v.op == "store" for v in header.instructions)


class Fission:
    """Writes the split reverse of a loop, in front of that trip by trip."""

    def __init__(self, sweep: Any, places: Places) -> None:
        self.sweep, self.places = sweep, places  # a `ReverseSweep`
        self.emitter, self.loop = sweep.emitter, places.loop
        self.counter = sweep.frame.counters[self.loop]
        self.low, self.high = self.emitter.cell("i64"), self.emitter.cell("i64")
        self.rooms = {v: self.emitter.room(CHUNK, v.attribute) for v in places.loads}
        self.used: list[Value] = []

    def wait(self, v: Value, g: Any) -> None:
        """Put what is to be added to the adjoint of a load into the buffer."""
        at = self._within(self.emitter.get(self.counter))
        self.emitter.store(self.rooms[v], at, g, v.attribute, ("fission", v.id))
        self.used.append(v)

    def write(self, trips: Any, otherwise: str) -> None:
        """Write it, from the current block to the label where the trips come one by one."""
        emitter = self.emitter
        outer = self.sweep.block
        head, chunk, trip, ended = map(emitter.label, ("chunks", "chunk", "trip", "ended"))
        condition = self._disjoint(trips)
        emitter.put(self.counter, trips)
        emitter.put(self.high, trips)
        emitter.branch(condition, head, otherwise)
        emitter.start(head)
        high, zero = emitter.get(self.high), emitter.const(0, "i64")
        emitter.branch(emitter.apply("eq", high, zero), ended, chunk)
        emitter.start(chunk)
        low = emitter.integer("isub", [high, emitter.const(CHUNK, "i64")])
        low = emitter.integer("imax", [low, zero])
        emitter.put(self.low, low)
        emitter.put(self.counter, low if self.places.upwards else high)
        emitter.jump(trip)
        emitter.start(trip)
        self._trip(trip)
        for v in self.used:
            self._add(v)
        emitter.put(self.high, emitter.get(self.low))
        emitter.jump(head)
        emitter.start(ended)
        emitter.put(self.counter, zero)
        emitter.jump(otherwise)
        self._in(outer)

    def _in(self, block: Block) -> None:
        """Have values computed as they are in a block."""
        self.sweep.block, self.sweep.known, self.sweep.pending = block, {}, {}

    def _within(self, k: Any) -> Any:
        return self.emitter.integer("isub", [k, self.emitter.get(self.low)])

    def _step(self, cell: Any, op: str) -> Any:
        one = self.emitter.const(1, "i64")
        after = self.emitter.integer(op, [self.emitter.get(cell), one], "nsw")
        self.emitter.put(cell, after)
        return after

    def _trip(self, label: str) -> None:
        """The reverse of a trip, again and again until the chunk is through."""
        emitter, sweep, loop = self.emitter, self.sweep, self.loop
        if not self.places.upwards:
            self._step(self.counter, "isub")
        self._in(loop.header)
        back = loop.header.predecessors.index(loop.latch)
        for phi in loop.header.phis:
            if phi.active and (g := sweep.take(phi)) is not None:
                sweep.add(phi.args[back], g)
        self._in(loop.latch)
        sweep.fission = self
        sweep.reverse_instructions(loop.latch)
        sweep.fission = None
        after = emitter.label("added")
        if self.places.upwards:
            k, end = self._step(self.counter, "iadd"), emitter.get(self.high)
        else:
            k, end = emitter.get(self.low), emitter.get(self.counter)
        emitter.branch(emitter.apply("lt", k, end), label, after)
        emitter.start(after)

    def _add(self, v: Value) -> None:
        """Add what waits to the adjoints of the places that a load reads."""
        emitter = self.emitter
        begin, end = emitter.label("add"), emitter.label("added")
        emitter.put(self.counter, emitter.get(self.low))
        emitter.jump(begin)
        emitter.start(begin)
        at = self._within(emitter.get(self.counter))
        g = emitter.load(self.rooms[v], at, v.attribute, ("fission", v.id))
        self._in(self.places.body)
        self.sweep.add_to_memory(v, g)
        k = self._step(self.counter, "iadd")
        emitter.branch(emitter.apply("lt", k, emitter.get(self.high)), begin, end)
        emitter.start(end)

    # -- whether places lie apart ------------------------------------------------------------

    def _disjoint(self, trips: Any) -> Any:
        """Whether there are trips enough, and no adjoint is read that another trip adds to."""
        emitter = self.emitter
        found = emitter.apply("lt", emitter.const(LEAST, "i64"), trips)
        ends = self._ends(trips)
        for s in self.places.stores:
            still = emitter.apply("eq", *ends[s])
            found = emitter.integer("band", [found, emitter.integer("not", [still])])
        spans = {
            v: [emitter.integer(op, list(pair)) for op in ("imin", "imax")]
            for v, pair in ends.items()
        }
        for s, v in self.places.pairs:
            before = emitter.apply("lt", spans[s][1], spans[v][0])
            after = emitter.apply("lt", spans[v][1], spans[s][0])
            found = emitter.integer("band", [found, emitter.integer("bor", [before, after])])
        return found

    def _ends(self, trips: Any) -> dict[Value, tuple[Any, Any]]:
        """The addresses of the adjoints in the first and in the last trip."""
        emitter, sweep, outer = self.emitter, self.sweep, self.sweep.block
        last = emitter.integer("isub", [trips, emitter.const(1, "i64")])
        places = (*self.places.stores, *self.places.loads)
        found: list[dict[Value, Any]] = []
        for k in (emitter.const(0, "i64"), last):
            emitter.put(self.counter, k)
            self._in(self.places.body)
            found.append(
                {v: emitter.address(emitter.at(*sweep.place(v), v.attribute)) for v in places}
            )
        self._in(outer)
        return {v: (found[0][v], found[1][v]) for v in places}
