"""Count what the stacks of a call would hold, by its forward sweep, without holding it."""

from __future__ import annotations

from typing import Any

from tapegrad.njit.derivative_program import DerivativeProgram
from tapegrad.njit.forward_sweep import ForwardSweep
from tapegrad.njit.sweep_frame import SweepFrame
from tapegrad.njit.values import Value
from tapegrad.njit.vector_emitter import VectorEmitter

LIMIT = 1 << 62


class CountingEmitter(VectorEmitter):
    """Writes stacks that grow by the rule of stacks, and have no memory."""

    def __init__(self) -> None:
        super().__init__()
        self.left = self.cell("i64")  # bytes that stacks may take yet
        self.head.append(f"store i64 {LIMIT}, ptr {self.left[0]}")

    def ensure(self, k: int, buffer: Any, capacity: Any, need: Any, columns: int, by_slot: bool,
               otherwise: str) -> None:  # fmt: skip
        """Have room for so many slots."""
        emit = self.current.emit
        old = emit("i64", f"load i64, ptr %level{k}.cap")
        grow, on, grown = self.label("grow"), self.label("on"), self.label("grown")
        self.branch(emit("i1", f"icmp ugt {need}, {old.name}"), grow, on)
        self.start(grow)
        emit = self.current.emit
        room = emit("i64", f"call i64 @room({old}, ptr {self.left[0]}, {need}, i64 {columns})")
        self.branch(emit("i1", f"icmp ne {room}, 0"), grown, otherwise)
        self.start(grown)
        self.line(f"store {room}, ptr %level{k}.cap")
        self.jump(on)
        self.start(on)

    def slot(self, buffer: Any, capacity: Any, column: int, slot: Any, columns: int) -> Any:
        """Nothing is read from this place."""
        return slot

    def push(self, k: int, at: Any, column: int, x: Any, moves: bool = True) -> None:
        """Nothing is kept."""


class StackSizes(DerivativeProgram):
    """The forward sweep of a gradient, which returns sizes in place of the gradient.

    To the words of the results it adds, by the loop's index, how many slots each stack has in use
    at the end (`slots`); then how many bytes the stacks have taken as they grew (`taken`), and how
    many the arrays that the function has made (`arrays`).
    """

    def _emitter(self) -> VectorEmitter:
        return CountingEmitter()

    def _write_sweeps(self, frame: SweepFrame, lengths: dict[int, list[Value]]) -> None:
        emitter, words = frame.emitter, frame.words
        assert isinstance(emitter, CountingEmitter)
        found = [(("slots", s.loop.index), s.top) for s in frame.stacks.values()]
        number = frame.function.const(0, "i64")
        for key in (*(key for key, _ in found), ("taken", 0), ("arrays", 0)):
            words.output[key] = len(words.outputs)
            words.outputs.append((key[0], number))
        emitter.interface(len(words.inputs), len(words.outputs))
        ForwardSweep(frame, "sizes").write()
        emitter.start("sizes")
        for key, cell in found:
            emitter.result(words.output[key], emitter.get(cell))
        left = emitter.get(emitter.left)
        limit = emitter.const(LIMIT, "i64")
        taken = emitter.integer("isub", [limit, left])
        emitter.result(words.output["taken", 0], taken)
        before = emitter.current.emit("i64", "add i64 %limit, 0")
        after = emitter.current.emit("i64", "load i64, ptr %left")
        emitter.result(words.output["arrays", 0], emitter.integer("isub", [before, after]))
        emitter.jump("done")
