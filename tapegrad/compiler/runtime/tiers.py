"""Tiered compilation: a program that takes long to compile begins in a tier that is there at once.

In the first tier nests are interpreted (`lower.vector_code`), if they are many, and LLVM optimises
nothing.  It counts the time of its calls (`lower.first_tier`); when they have taken a part of the
time that compiling will take, a thread lowers the program again, another process compiles it, and
from then on the first tier passes its calls on.
"""

from __future__ import annotations

import os
import threading
import weakref

from tapegrad.base.compile_stages import stage
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.lower.first_tier import WITHOUT_END
from tapegrad.compiler.lower.lower import Lowered, Module
from tapegrad.compiler.runtime.link import Linked
from tapegrad.kernels import build, compile_ahead

_one_at_a_time = threading.Lock()
_changing = threading.Lock()


def tiered() -> bool:
    """Whether programs begin in a first tier; ``TAPEGRAD_TIERED=0`` says no."""
    return os.environ.get("TAPEGRAD_TIERED") != "0"


def linked(graph: Graph, fast: bool) -> tuple[Lowered, Linked]:
    """A graph's program, in its first tier if compiling takes long."""
    with stage("lower"):
        lowered = Module(graph, fast, tiered=tiered()).lower()
    counts = lowered.counts
    if counts is None or (not lowered.interpreted and build.is_assembled(*_module(lowered))):
        return lowered, Linked(lowered)
    found = Linked(lowered.in_first_tier())
    first = weakref.ref(found)
    found.count(counts, lambda now: _begin(first, graph, fast, now))
    return lowered, found


def _module(lowered: Lowered) -> tuple[str, int, str]:
    return lowered.text, lowered.level, lowered.ready


def _begin(first: weakref.ref[Linked], graph: Graph, fast: bool, now: bool) -> None:
    if now:
        _compile(first, graph, fast)
        return
    # Without a disk cache LLVM runs in this process, which must not end meanwhile.
    thread = threading.Thread(
        target=_compile_aside, args=(first, graph, fast), name="tapegrad compiler",
        daemon=compile_ahead.possible(),
    )  # fmt: skip
    thread.start()


def _compile_aside(first: weakref.ref[Linked], graph: Graph, fast: bool) -> None:
    with _one_at_a_time:
        _compile(first, graph, fast, aside=True)


def _compile(first: weakref.ref[Linked], graph: Graph, fast: bool, aside: bool = False) -> None:
    """Compile a program, and have its first tier call that."""
    better = None
    if (begun := first()) is None or begun.compiled is not None:
        return
    del begun  # what nobody calls any more is not compiled
    try:
        lowered = Module(graph, fast).lower()
        if aside:
            compile_ahead.compile_module(*_module(lowered))
        better = Linked(lowered)
    except MemoryError:
        better = None
    with _changing:
        if (begun := first()) is None or begun.compiled is not None:
            return  # or a call that waited was quicker
        if better is None:  # it goes on as it is
            begun.set("tapegrad_limit", WITHOUT_END)
        else:
            begun.pass_on(better)
