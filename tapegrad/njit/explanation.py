"""What the gradient of a function that Numba compiles keeps of the forward sweep: `explain`."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any, NamedTuple

from numba.core.dispatcher import Dispatcher

from tapegrad.base.text_tables import byte_count, text_table
from tapegrad.njit import marshalling
from tapegrad.njit.derivative_program import Request
from tapegrad.njit.evaluation import Call, argument_name
from tapegrad.njit.gradients import Gradient
from tapegrad.njit.numba_front.objects import types
from tapegrad.njit.partials import is_row
from tapegrad.njit.reverse_plan import ReversePlan
from tapegrad.njit.runtime_text import NO_MEMORY
from tapegrad.njit.stack_sizes import StackSizes
from tapegrad.njit.three_address_code import FLOATS, SourceLine
from tapegrad.njit.values import Block, Function, Value
from tapegrad.transforms.call_arguments import Argnums, any_tensor

HEAD = ("line", "value", "is", "bytes/trip", "trips", "bytes", "source")
NESTED = 2  # operations of which the text of a value is made
SHOWN = 2  # values of a line that are computed or loaded again


class ExplainedValue(NamedTuple):
    """One value that the reverse sweep reads, and how it comes by it.

    `what` is ``"kept"`` on a stack, ``"saved"`` before it is overwritten, and put back, ``"loaded
    again"`` from memory, or ``"computed again"``.  The last two, and what is saved outside of
    loops, take no bytes of a stack.
    """

    line: SourceLine
    value: str
    what: str
    bytes_per_trip: int = 0
    trips: int = 0

    @property
    def nbytes(self) -> int:
        """All bytes of the call."""
        return self.bytes_per_trip * self.trips


class ExplainedLoop(NamedTuple):
    """A `prange` loop that is in no other one; the `reason` why one thread alone goes through it.

    That is empty where threads share its trips in both sweeps.
    """

    line: SourceLine
    reason: str


class Explanation:
    """What `explain` found; it prints as a table.

    Attributes
    ----------
    rows : the values, by line.
    prange : `prange` loops of functions with `parallel=True`: whether threads share their trips.
    stack_bytes : what the stacks hold when the reverse sweep begins, the sum over all rows.
    array_bytes : arrays that the function makes, and their adjoints.
    total_bytes : what the call allocates; stacks have room to grow.
    """

    def __init__(
        self, f: Dispatcher, chosen: tuple[int, ...], rows: list[ExplainedValue],
        loops: list[ExplainedLoop], reserved: int, array_bytes: int,
    ) -> None:  # fmt: skip
        self._function = f.py_func.__name__
        self._chosen = ", ".join([f"`{argument_name(f, k)}`" for k in chosen])
        self.rows, self.prange = tuple(rows), tuple(loops)
        self.stack_bytes = sum(row.nbytes for row in rows)
        self.array_bytes, self.total_bytes = array_bytes, reserved + array_bytes

    def __repr__(self) -> str:
        head = (
            f"The gradient of `{self._function}` with respect to {self._chosen}: "
            f"{byte_count(self.stack_bytes)} on stacks, {byte_count(self.array_bytes)} of arrays; "
            f"the call allocates {byte_count(self.total_bytes)}"
        )
        for loop in self.prange:
            how = f"goes in one thread: {loop.reason}" if loop.reason else "is shared among threads"
            head += f"\n`prange` in line {loop.line.line} {how}"
        rows = list(self._cells())
        return f"{head}\n{text_table(HEAD, rows, 'bytes/trip trips bytes')}" if rows else head

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """The rows of the table; what takes no bytes has one for a line."""
        grouped: dict[Any, list[str]] = {}
        for k, row in enumerate(self.rows):
            key = (row.line, row.what, k if row.bytes_per_trip else -1)
            grouped.setdefault(key, []).append(row.value)
        for (at, what, k), values in grouped.items():
            line = f"{at.line}" if at.function == self._function else f"{at.function}:{at.line}"
            values.sort(key=len)
            rest = len(values) - SHOWN
            text = ", ".join(values[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
            numbers = [""] * 3
            if k >= 0:
                row = self.rows[k]
                numbers = [f"{row.bytes_per_trip}", f"{row.trips:,}", f"{row.nbytes:,}"]
            yield line, text, what, *numbers, linecache.getline(at.file, at.line).strip()


def explain(f: Any, *args: Any, argnums: Argnums = 0) -> Explanation:
    """What the gradient of a function that Numba compiles keeps in memory, line by line.

    It is read off the plan that the gradient is compiled by; the numbers of trips are those of a
    forward sweep over the arguments, which counts and keeps nothing.

    Parameters
    ----------
    f : a function under `numba.njit`.
    args : arguments as the gradient would be called with.
    argnums : which of them are differentiated in, as in `grad`.

    >>> import numba, tapegrad as tg
    >>> @numba.njit
    ... def decay(x, steps):
    ...     for _ in range(steps):
    ...         x = x - 0.01 * x * x
    ...     return x
    >>> found = tg.explain(decay, 1.0, 1000)
    >>> found.stack_bytes
    8000
    >>> found.rows[0][1:]
    ('x', 'kept', 8, 1000)
    """
    if not isinstance(f, Dispatcher):
        raise TypeError(
            f"`explain` takes a function under `numba.njit`, got {type(f).__name__}: of what is "
            "recorded on the tape `tapegrad.show.memory` tells what is kept"
        )
    if any_tensor(*args):
        raise TypeError("`explain` takes arrays and numbers, got a Tensor: pass `t.numpy()`")
    derivative = Gradient(f, "explain", argnums)
    given, chosen = derivative.prepared(args, {})
    in_order = [marshalling.contiguous(x) for x in given]
    program = StackSizes(f, Request(marshalling.kinds_of(in_order), chosen, whole=False))
    derivative.has_aux = isinstance(program.result, types.BaseTuple)
    derivative.check_program(program)
    derivative.evaluator.refuse_overlap(program.written, list(given))
    words = Call(program, in_order, None, None).run(derivative.evaluator, in_order)
    if words is None:
        derivative.evaluator.failed(NO_MEMORY, in_order)
    if program.owns:
        program.release(words[program.owner_word])
    output = program.words.output
    slots = {s.loop: words[output["slots", s.loop.index]] for s in program.stacks}
    assert program.plan is not None
    found = _Rows(program.plan, slots, SourceLine(f.py_func.__name__, "", 0))
    sizes = words[output["taken", 0]], words[output["arrays", 0]]
    return Explanation(f, chosen, found.sorted(), found.loops(), *sizes)


class _Rows:
    """The rows of a plan."""

    def __init__(self, plan: ReversePlan, slots: dict[Any, int], unknown: SourceLine) -> None:
        self.plan, self.slots, self.unknown = plan, slots, unknown
        self.function: Function = plan.function
        self.stores = {old: store for store, old in plan.saved.items()}
        self.primal = {
            v.shadow: v for v in self.function.values if v.shadow is not None and v.op != "undef"
        }
        self.trips = {v for loop in self.function.loops for v in loop.trips.values()}

    def sorted(self) -> list[ExplainedValue]:
        """All rows, by line."""
        rows = list(self._with_bytes())
        rows += dict.fromkeys(self._without())  # a function that is called twice has them twice
        return sorted(rows, key=lambda row: row.line)

    def loops(self) -> list[ExplainedLoop]:
        """The `prange` loops that are in no other one."""
        lanes = "iterations of the loop around it run side by side in vectors"
        return [
            ExplainedLoop(
                loop.header.operands[0].line or self.unknown,
                lanes if loop.shared is not None and loop.in_lanes else loop.sequential,
            )
            for loop in self.function.loops
            if loop.shared is not None or loop.sequential
        ]

    def _with_bytes(self) -> Iterator[ExplainedValue]:
        for v in self.plan.stacked:
            what, loop = "saved" if v in self.stores else "kept", v.home.loop
            assert loop is not None
            trips = self.slots[loop] * (loop.width if v.varying else 1)  # in lanes, full or not
            yield ExplainedValue(self._line(v), self._text(v), what, 8, trips)

    def _without(self) -> Iterator[ExplainedValue]:
        for old in self.stores:
            if old not in self.plan.stacked:
                yield ExplainedValue(self._line(old), self._text(old), "saved")
        for v in self.plan.again:
            if v.op == "load":
                yield ExplainedValue(self._line(v), self._text(v), "loaded again")
            elif v.type in FLOATS:
                yield ExplainedValue(self._line(v), self._text(v), "computed again")

    # -- where -------------------------------------------------------------------------------

    def _line(self, v: Value) -> SourceLine:
        if v in self.stores:
            v = self.stores[v]
        v = self.primal.get(v, v)
        if v.line is None and v.op == "phi":
            return self._line_of(v.home)
        return v.line or self.unknown

    def _line_of(self, block: Block) -> SourceLine:
        """The first line of a block; of an empty one that of the loop it leaves, or before it."""
        while True:
            assert block.code is not None
            for one in block.code.instructions:
                if one.line is not None:
                    return one.line
            above = block.leaves.header if block.leaves is not None else block.dominator
            if above is None or above is block:
                return self.unknown
            block = above

    # -- what --------------------------------------------------------------------------------

    def _text(self, v: Value, depth: int = NESTED) -> str:
        """A value in words: by its name, or what it is computed of."""
        if v.type == "ptr" and depth == NESTED:
            name = self._text(self.primal.get(v, v), 1)
            return f"address of {name}'s adjoint" if v in self.primal else f"address of {name}"
        if v in self.trips:
            return "the number of trips"
        if v.attribute == "predecessor":
            return "which branch was taken"
        if v.op == "const":
            return f"{v.attribute}"
        if v.op == "load" and not v.name:
            return f"{self._text(v.args[0], 1)}[...]"
        if v.name or (v.op not in ("cast", "gep") and not is_row(v.op)):
            return v.name or {"alloc": "an array", "call": "the result of a call"}.get(v.op, "...")
        if v.op in ("cast", "gep"):
            return self._text(v.args[0], min(depth, 1))
        if depth == 0:
            return "..."
        return f"{v.op}({', '.join(self._text(a, depth - 1) for a in v.args)})"
