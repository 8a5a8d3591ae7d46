"""Tiered compilation: a long program is interpreted at once, and compiled when that pays.

The first tier's nests are interpreted (`lower.vector_code`). It counts its calls; when they have
taken a part of the time that compiling will take, a thread lowers the program again, another
process compiles it, and from then on the first tier passes its calls on.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref

from tapegrad.base.compile_stages import stage
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.lower.lower import Lowered, Module
from tapegrad.compiler.runtime.link import Linked
from tapegrad.kernels import compile_ahead

_one_at_a_time = threading.Lock()


def tiered() -> bool:
    """Whether long programs begin interpreted; ``TAPEGRAD_TIERED=0`` says no."""
    return os.environ.get("TAPEGRAD_TIERED") != "0"


def linked(graph: Graph, fast: bool) -> tuple[Lowered, Linked]:
    """A graph's program in its first tier."""
    with stage("lower"):
        lowered = Module(graph, fast, interpreting=tiered()).lower()
    found = Linked(lowered)
    if lowered.calls_until_compiled:
        first = weakref.ref(found)
        found.when_it_pays(lowered.calls_until_compiled, lambda: _begin(first, graph, fast))
    return lowered, found


def _begin(first: weakref.ref[Linked], graph: Graph, fast: bool) -> None:
    # Without a disk cache LLVM runs in this process, which must not end meanwhile.
    thread = threading.Thread(
        target=_compile, args=(first, graph, fast), name="tapegrad compiler",
        daemon=compile_ahead.possible(),
    )  # fmt: skip
    thread.start()


def _compile(first: weakref.ref[Linked], graph: Graph, fast: bool) -> None:
    """Compile a program, and have its first tier call that."""
    with _one_at_a_time:
        if first() is None:
            return
        try:
            lowered = Module(graph, fast).lower()
            compile_ahead.compile_module(lowered.text, lowered.level, lowered.ready)
            found = Linked(lowered)
        except MemoryError:  # it goes on being interpreted
            return
    if (interpreted := first()) is not None:
        interpreted.compiled = found
        place = interpreted.engine[0].get_global_value_address("tapegrad_compiled")
        ctypes.c_int64.from_address(place).value = found.address
