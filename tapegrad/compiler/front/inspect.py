"""Show a program's stages, from the traced tape to machine code."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tapegrad.base.text_tables import byte_count, counted, html_table
from tapegrad.compiler.front.memory_traffic import ProgramStep, program_steps
from tapegrad.compiler.front.signature import Signature
from tapegrad.compiler.front.specialization import FLOAT, STATIC, Specialization
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.lower.lower import Module
from tapegrad.kernels import build

PROGRAM_HEAD = ("arguments", "results", "records", "guards")
TITLES = {"tape": "Tape", "loops": "Loop nests", "llvm": "LLVM IR", "asm": "Assembly"}
FORMS = tuple(TITLES)
STYLE = """
.tapegrad-lowering { font: 14px/1.4 sans-serif; color: #222; background: #fff }
.tapegrad-lowering .stages { display: flex; gap: 12px; align-items: flex-start; overflow-x: auto }
.tapegrad-lowering section { flex: 1 0 24em; min-width: 0 }
.tapegrad-lowering h2 { font-size: 14px; margin: 8px 0 4px }
.tapegrad-lowering pre { font: 12px/1.35 monospace; overflow: auto; max-height: 85vh; margin: 0;
  padding: 8px; border: 1px solid #ccc; background: #fafafa; white-space: pre; text-align: left }
"""


class Lowering:
    """The optimised tape of a jitted function, its loop nests, LLVM IR and machine code.

    As text, or side by side on a page, which a notebook draws and `save` writes.

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

    def __init__(self, graph: Graph, fast: bool = False, name: str = "") -> None:
        self.graph = graph
        self.fast = fast
        self.name = name

    def __str__(self) -> str:
        return str(self.graph)

    def as_text(self, form: str = "tape") -> str:
        """The optimised tape, the loop nests, the LLVM IR before LLVM's own passes, or assembly.

        The IR is that of two modules: what LLVM optimises, and loops that need no optimising.

        >>> import tapegrad as tg, numpy as np
        >>> f = tg.jit(lambda x: np.sum(np.sin(x) * x))
        >>> print(f.lower(np.ones(1000)).as_text("loops"))
        loop nest over 1000: reads 8 kB, writes 8 B
            x0 = input0
            t0 = sin(x0)
            t1 = mul(t0, x0)
            output0[0 : 0] = add.reduce(t1)
        """
        if form not in FORMS:
            raise ValueError(f"`as_text` shows one of {', '.join(FORMS)}, got {form!r}")
        if form == "tape":
            return str(self.graph)
        if form == "loops":
            return "\n".join(map(str, self.steps))
        lowered = Module(self.graph, self.fast).lower()
        if form == "llvm":
            return f"{lowered.text}\n{lowered.ready}"
        return build.assembly(lowered.text, lowered.level, lowered.ready)

    @property
    def steps(self) -> tuple[ProgramStep, ...]:
        """The loop nests and calls that the program runs in order, with the bytes that each moves.

        >>> import tapegrad as tg, numpy as np
        >>> f = tg.jit(lambda x: x @ x + 1.0)
        >>> [step.kind for step in f.lower(np.ones((100, 100))).steps][0]
        'matrix product by BLAS'
        """
        return tuple(program_steps(Module(self.graph, self.fast).schedule))

    @property
    def callbacks(self) -> tuple[str, ...]:
        """The operations that the program calls back into Python for."""
        return Module(self.graph).lower().callbacks

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of the long loops of Python that were found on the trace.

        >>> import tapegrad as tg
        >>> def shrunk(x):
        ...     for _ in range(2000):
        ...         x = x - 0.001 * x**3
        ...     return x
        >>> tg.jit(shrunk).lower(1.0).notes
        ('re-rolled: 2000 iterations of 3 records, which carry 1 value and read rows of 0 arrays',)
        """
        return self.graph.notes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stages side by side as one page of HTML that needs nothing else.

        >>> import tapegrad as tg, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tg.jit(lambda x: x * x).lower(3.0).save(f"{folder}/f.html")
        ...     "fmul double" in pathlib.Path(folder, "f.html").read_text()
        True
        """
        title = html.escape(f"{self.name or 'program'}: lowered")
        Path(path).write_text(
            f"<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
            f"</head><body>{self._repr_html_()}</body></html>\n",
            encoding="utf-8",
        )

    def _repr_html_(self) -> str:
        sections = "".join(
            f"<section><h2>{title}</h2><pre>{html.escape(self.as_text(form))}</pre></section>"
            for form, title in TITLES.items()
        )
        head = html.escape(self._summary())
        return (
            f"<div class='tapegrad-lowering'><style>{STYLE}</style><p>{head}</p>"
            f"<div class='stages'>{sections}</div></div>"
        )

    def _summary(self) -> str:
        steps = [step for step in self.steps if not step.depth]
        read, written = sum(s.read for s in steps), sum(s.written for s in steps)
        return (
            f"{self.name or 'program'}: {counted(len(self.graph.nodes), 'record')}, "
            f"{counted(len(steps), 'step')}, reads {byte_count(read)}, writes {byte_count(written)}"
        )


def program_table(known: Mapping[Signature, Sequence[Specialization]], caption: str) -> str:
    """What a jitted function was compiled for, as a table of HTML."""
    rows = []
    for signature, specializations in known.items():
        arguments = ", ".join(_argument_texts(signature))
        for made in specializations:
            results = ", ".join(f"{spec.dtype.name} {spec.shape}" for spec in made.program.outputs)
            counts = len(made.graph.nodes), len(made.graph.guards)
            rows.append((arguments, results, *map(str, counts)))
    return html_table(PROGRAM_HEAD, rows, caption)


def _argument_texts(signature: Signature) -> Iterator[str]:
    for kind, key in zip(signature.kinds, signature.keys, strict=True):
        if kind == STATIC:
            yield "static"
        elif kind == FLOAT:
            yield "float"
        else:
            yield f"{np.dtype(key[1]).name} {key[0]}"
