"""Redirect tensors of a finished trace to the trace that inlined it.

The body of a loop is traced once.  Its derivative runs that body again, in a trace of its own, and
calls the `backward` of the `Function`s there.  What these have kept, in a context or in a closure,
are Tensors of the first trace, wherever they hide: while a `backward` runs, they are taken for what
their records have become.
"""

from __future__ import annotations

from typing import Any

from tapegrad.compiler.trace.trace import Trace
from tapegrad.tape.tape import current


def replace(trace: Trace, origin: Trace, where: dict[int, int]) -> None:
    """Note that all records of a trace that has ended were put into another one, and where."""
    trace.pulls.update({where[p]: pull.moved(where) for p, pull in origin.pulls.items()})
    trace.origins[origin] = where
    for other, places in origin.origins.items():
        trace.origins[other] = {p: where[q] for p, q in places.items()}


class standing:
    """The traces that were put into this one, or into one around it, stand for those.

    They take over their numbers too, so that levels which lie above the one lie above the other.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        before: dict[Trace, Any] = {}
        tape, trace = current.tape, self.trace
        self.before, self.tape = before, tape
        self.levels, self.ruled = tape.levels, trace.ruled
        at: Trace | None = trace
        while at is not None:
            for origin, where in at.origins.items():
                if origin not in before:
                    before[origin] = origin.stands, origin.where, origin.number
                    origin.stands, origin.where, origin.number = at, where, at.number
            at = None if at.owner is None else at.owner.trace
        tape.levels = sorted({*before, *self.levels}, key=lambda level: level.number)
        trace.ruled = True

    def __exit__(self, *exception: object) -> None:
        self.tape.levels, self.trace.ruled = self.levels, self.ruled
        for origin, (stands, where, number) in self.before.items():
            origin.stands, origin.where, origin.number = stands, where, number
