"""Arrays that a loop makes for one trip: nobody reads them in the next, in which they are freed.

A reverse sweep reads them later, so that they stay; a forward sweep alone frees them.
"""

from __future__ import annotations

from tapegrad.njit.arena_text import MARK_WORDS
from tapegrad.njit.emitter import Emitter
from tapegrad.njit.forward_sweep import ForwardSweep
from tapegrad.njit.sweep_frame import SweepFrame
from tapegrad.njit.values import Block, Function, Loop


def hands_on_arrays(function: Function, loop: Loop) -> bool:
    """Whether an array that is made in a loop may be read in another trip, or after the loop."""
    of = function.alias_class
    made = {of(v) for b in loop.blocks for v in b.instructions if v.op == "alloc"}
    blocks = (loop.header, *loop.exits)
    if any(p.type == "ptr" and of(p) in made for b in blocks for p in b.phis):
        return True
    # A call may put one into another: an array into a list or a dictionary.
    calls = (v for b in loop.blocks for v in b.instructions if v.op == "call")
    given = ([a for a in v.args if a.type == "ptr"] for v in calls if v.attribute.writes)
    return any(len(pointers) > 1 and made & set(map(of, pointers)) for pointers in given)


class LoopArrays:
    """Writes the code that frees the arrays of a loop."""

    def __init__(self, emitter: Emitter, loop: Loop) -> None:
        self.emitter = emitter
        self.any = any(v.op == "alloc" for b in loop.blocks for v in b.instructions)
        self.mark = Emitter.room(emitter, MARK_WORDS, "i64")

    def begin(self) -> None:
        """Note how far the arena is taken: what is made from here on is the loop's."""
        self.emitter.line(f"call void @mark(ptr %arena, {self.mark})")

    def free(self) -> None:
        """Free the arrays that the loop has made."""
        if self.any:
            self.emitter.line(f"call void @release_to(ptr %arena, ptr %left, {self.mark})")


class ForwardAlone(ForwardSweep):
    """The forward sweep of a program that has no reverse sweep."""

    def __init__(self, frame: SweepFrame) -> None:
        super().__init__(frame, "done")
        function = frame.function
        made = {loop: LoopArrays(frame.emitter, loop) for loop in function.loops}
        self.arrays = {
            loop: arrays for loop, arrays in made.items()
            if arrays.any and not hands_on_arrays(function, loop)
        }  # fmt: skip

    def _enter_loop(self, loop: Loop) -> None:
        if loop in self.arrays:
            self.arrays[loop].begin()
        super()._enter_loop(loop)

    def _begin_trip(self, block: Block) -> None:
        if block.loop in self.arrays and block.is_header:
            self.arrays[block.loop].free()
        super()._begin_trip(block)
