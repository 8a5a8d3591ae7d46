"""Show a program's stages, from the traced tape to machine code."""

from __future__ import annotations

from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.lower.lower import Module
from tapegrad.kernels import build

FORMS = ("tape", "llvm", "asm")


class Lowering:
    """The optimised tape of a jitted function, its LLVM IR and its machine code as text.

    >>> import tapegrad as tg
    >>> lowering = tg.jit(lambda x: x * x).lower(3.0)
    >>> print(lowering)
    %0     input                               -          float64  k=0
    %1     mul              %0 %0              -          float64    -> result 0
    >>> "fmul double" in lowering.as_text("llvm")
    True
    >>> lowering.callbacks
    ()
    """

    def __init__(self, graph: Graph, fast: bool = False) -> None:
        self.graph = graph
        self.fast = fast

    def __str__(self) -> str:
        return str(self.graph)

    def as_text(self, form: str = "tape") -> str:
        """The optimised tape, the LLVM IR before LLVM's own passes, or the assembly.

        The IR is that of two modules: what LLVM optimises, and loops that need no optimising.
        """
        if form not in FORMS:
            raise ValueError(f"`as_text` shows one of {', '.join(FORMS)}, got {form!r}")
        if form == "tape":
            return str(self.graph)
        lowered = Module(self.graph, self.fast).lower()
        if form == "llvm":
            return f"{lowered.text}\n{lowered.ready}"
        return build.assembly(lowered.text, lowered.level, lowered.ready)

    @property
    def callbacks(self) -> tuple[str, ...]:
        """The operations that the program calls back into Python for."""
        return Module(self.graph).lower().callbacks
