"""What the forward and the reverse sweep have in common: words, variables, stacks, operations."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tapegrad.njit import runtime_text
from tapegrad.njit.activity import Activity, depending
from tapegrad.njit.emitter import Emitter
from tapegrad.njit.idle_trips import kept_at_ends
from tapegrad.njit.partials import is_row
from tapegrad.njit.reverse_plan import ReversePlan
from tapegrad.njit.three_address_code import FLOATS, Unsupported
from tapegrad.njit.unordered_sums import unordered_sums
from tapegrad.njit.values import Function, Loop, Value
from tapegrad.njit.vector_emitter import VectorEmitter

RAISED, FULL, LEAVE = "raised", "full", "leave"  # labels
LANE_OPS = ("lane", "lane_index", "lane_valid", "lane_sum")  # of trips side by side


class Stack:
    """The stack of a loop: a column for each value that is kept, a slot for each trip.

    Where the count is known LLVM may make vectors of trips, for which columns lie one by one; else
    slots do, and the stack grows in one piece.

    In a loop whose count is known, what is computed in the header is pushed in the body, unless the
    reverse of the header reads it: then there are as many slots as trips, else one more.
    """

    def __init__(
        self, loop: Loop, kept: list[Value], plan: ReversePlan, emitter: VectorEmitter
    ) -> None:
        self.loop = loop
        self.columns = {v: k for k, v in enumerate(kept)}
        self.width = loop.width if any(v.varying for v in kept) else 1  # words of a slot
        self.by_slot = loop.count is None and self.width == 1
        in_header = [v for v in kept if v.home is loop.header]
        delayed = loop.count is not None and not plan.read_in_header.intersection(in_header)
        self.delayed = set(in_header) if delayed else set[Value]()
        self.extra = 0 if delayed else 1
        self.late = kept_at_ends(loop, kept)
        self.waiting = self.delayed.union(self.late)
        # As many slots as it may take are there before the loop, or each one where it is needed.
        self.most = loop.count if loop.idle_paths is None else loop.idle_paths.most
        self.grows_at_ends = self.most is None and 0 < len(self.late) == len(kept)
        self.grows_in_trips = self.most is None and not self.grows_at_ends
        self.buffer, self.capacity = Emitter.cell(emitter, "ptr"), Emitter.cell(emitter, "i64")
        # Slots in use before the loop, and at its beginning this time.
        self.top, self.base = emitter.cell("i64", True), emitter.cell("i64", True)
        emitter.level(loop.index, len(kept))

    def slots(self, trips: Any, emitter: VectorEmitter) -> Any:
        """The words of a column for so many trips."""
        if self.width == 1:
            return trips
        return emitter.integer("imul", [trips, emitter.const(self.width, "i64")])

    def place(self, v: Value, trip: Any, emitter: VectorEmitter) -> Any:
        """Where a value of a trip lies; what all lanes share is one word."""
        slot = self.slots(trip, emitter) if v.varying else trip
        buffer, capacity = emitter.get(self.buffer), emitter.get(self.capacity)
        columns = len(self.columns) if self.by_slot else 0
        return emitter.slot(buffer, capacity, self.columns[v], slot, columns)


class Words:
    """Which word of the arguments and results is what.

    Arguments: the components of the function's own, then the pointers to their adjoints, then the
    adjoints of results, or pointers to them.  Results: the components of the function's own, if its
    value is wanted, then adjoints of numbers.
    """

    def __init__(self, function: Function, activity: Activity | None, value: bool) -> None:
        self.inputs: list[tuple[str, Any]] = [("value", p) for p in function.parameters]
        self.outputs: list[tuple[str, Any]] = [
            ("result", k) for k in range(len(function.results) if value else 0)
        ]
        if activity is not None:
            self.inputs += [("shadow", p) for p in function.parameters if p.shadow is not None]
            for k in activity.seeded:
                self.inputs.append(("seed", k))
            self.outputs += [
                ("gradient", p) for p in function.parameters
                if p.type in FLOATS and p.attribute.argument in activity.arguments
            ]  # fmt: skip
        self.input: dict[tuple[str, Any], int] = {key: k for k, key in enumerate(self.inputs)}
        self.output = {key: k for k, key in enumerate(self.outputs)}


class SweepFrame:
    """The function under construction."""

    def __init__(
        self, function: Function, activity: Activity | None, plan: ReversePlan | None,
        emitter: VectorEmitter, value: bool = True, moved: Collection[int] | None = None,
    ) -> None:  # fmt: skip
        self.function, self.activity, self.plan = function, activity, plan
        self.emitter, emitter.lanes = emitter, function.lanes
        self.words = Words(function, activity, value)
        emitter.interface(len(self.words.inputs), len(self.words.outputs))
        self.status = emitter.cell("i64", True)
        self.now: dict[Value, Any] = {}  # values of the forward sweep, where they are computed
        # Additions that the forward sweep may make in any order.
        self.unordered = set[Value]() if value else unordered_sums(function)
        self.stacks: dict[Loop, Stack] = {}
        self.variables: dict[Value, Any] = {}
        self.counters: dict[Loop, Any] = {}
        self.moving = _moving(function, moved or ())
        if plan is not None:
            for loop in function.loops:
                kept = [v for v in plan.stacked if v.home.loop is loop]
                if kept:
                    self.stacks[loop] = Stack(loop, kept, plan, emitter)
                self.counters[loop] = emitter.cell("i64", True)
            self.variables = {v: self.cell(v) for v in plan.variables}
        self._marks = {loop: self._marked(loop) for loop in function.loops}

    def _marked(self, loop: Loop) -> list[tuple[Stack, Any]]:
        blocks = () if loop.idle_paths is None else loop.idle_paths.blocks
        inner = [s for x, s in self.stacks.items() if x is not loop and x.header in blocks]
        return [(stack, self.emitter.cell("i64")) for stack in inner]

    def marks(self, loop: Loop | None) -> list[tuple[Stack, Any]]:
        """The stacks of the loops that idle trips go through; what each held before the trip."""
        return [] if loop is None else self._marks[loop]

    def moves(self, v: Value) -> bool:
        """Whether a value has a tangent, or memory that it leads to; adjoints have."""
        return v in self.moving

    def cell(self, v: Value) -> Any:
        """A variable for a value of the forward sweep."""
        return self.emitter.cell(v.type, False, v.varying, self.moves(v))

    def scope(self, pointer: Value, shadow: bool = False) -> Any:
        """What memory a pointer leads to, for LLVM's analysis of aliases."""
        return ("adjoint" if shadow else "primal", self.function.alias_class(pointer).id)

    def value(self, v: Value) -> Any:
        """A value in the forward sweep."""
        if v.op == "const":
            return self.emitter.const(v.attribute, v.type)
        return self.emitter.const(0, v.type) if v.op == "undef" else self.now[v]

    def compute(self, v: Value, args: list[Any]) -> Any:
        """A value that has no effects, of operands."""
        emitter, op = self.emitter, v.op
        if op == "load":
            return emitter.load(args[0], args[1], v.attribute, self.scope(v.args[0]), v.lanes)
        if op == "gep":
            return emitter.at(args[0], args[1], v.attribute)
        if op == "cast":
            return emitter.cast(args[0], v.type)
        if op in ("phi", "select"):  # a phi behind an `if`
            return emitter.select(*args)
        if op in LANE_OPS:
            return emitter.of_lanes(op, args, v.attribute)
        if op == "word":
            return emitter.part(args[0], v.attribute, v.type)
        if op == "address":
            return emitter.address(args[0])
        if is_row(op):
            return emitter.apply(op, *args)
        if v.type in ("i64", "i1"):
            return emitter.integer(op, args, v.attribute)
        raise Unsupported(f"`{op}`")

    def finish(self, hands_over: bool) -> None:
        """The ends of the function: it raised, memory ran out, or it is done."""
        emitter = self.emitter
        for label, status in ((RAISED, runtime_text.RAISED), (FULL, runtime_text.NO_MEMORY)):
            emitter.start(label)
            emitter.put(self.status, emitter.const(status, "i64"))
            emitter.jump("failed")
        emitter.start("failed")
        emitter.line("call void @release_arena(ptr %arena)")
        emitter.jump(LEAVE)
        emitter.start("done")
        if hands_over:
            emitter.line(f"%owner.at = getelementptr i64, ptr %out, i64 {self.owner_word}")
            emitter.line("%arrays = load ptr, ptr %arena")
            emitter.line("store ptr %arrays, ptr %owner.at")
        else:
            emitter.line("call void @release_arena(ptr %arena)")
        emitter.jump(LEAVE)
        emitter.start(LEAVE)
        emitter.drop_boxes()
        emitter.free_stacks()
        emitter.line(f"ret {emitter.get(self.status)}")

    @property
    def owner_word(self) -> int:
        """The word of the results that says what arrays they own."""
        return self.emitter.words * self.emitter.outputs


def _moving(function: Function, moved: Collection[int]) -> set[Value]:
    """The values that have tangents along some arguments, and pointers to what has."""
    found, memory = depending(function, moved)
    for v in (*function.parameters, *function.values):
        if v.type == "ptr" and function.alias_class(v) in memory:
            found.add(v)
    return found | {v.shadow for v in function.values if v.shadow is not None}
