"""Redirect tensors of a finished trace to the trace that inlined it.

The body of a loop is traced once.  Its derivative inlines that body in a trace of its own, and
calls the `backward` of `Function`s there.  What these have saved, in a context or in a closure, are
Tensors of the first trace: while a `backward` runs, they stand for the inlined records.
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.trace.trace import Trace
from tapegrad.tape.tape import current


def replace(trace: Trace, origin: Trace, where: dict[int, int]) -> None:
    """Note that the records of a finished trace were inlined into another one, and where."""
    trace.pulls.update({where[p]: pull.remapped(where) for p, pull in origin.pulls.items()})
    trace.origins[origin] = where
    for other, places in origin.origins.items():
        trace.origins[other] = {p: where[q] for p, q in places.items()}


class redirected:
    """Have this trace, and those around it, stand for the traces inlined into them.

    They take over their numbers too, so that levels which lie above the one lie above the other.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        before: dict[Trace, Any] = {}
        tape, trace = current.tape, self.trace
        self.before, self.tape = before, tape
        self.levels, self.in_backward = tape.levels, trace.in_backward
        at: Trace | None = trace
        while at is not None:
            for origin, where in at.origins.items():
                if origin not in before:
                    before[origin] = origin.redirect, origin.where, origin.number
                    origin.redirect, origin.where, origin.number = at, where, at.number
            at = None if at.owner is None else at.owner.trace
        tape.levels = sorted({*before, *self.levels}, key=lambda level: level.number)
        trace.in_backward = True

    def __exit__(self, *exception: object) -> None:
        self.tape.levels, self.trace.in_backward = self.levels, self.in_backward
        for origin, (redirect, where, number) in self.before.items():
            origin.redirect, origin.where, origin.number = redirect, where, number
