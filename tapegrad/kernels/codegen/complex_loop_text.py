"""Write the loop that `complex_rules` has described as LLVM text.

The parts of a complex number lie side by side.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.llvm.scalar_ops import Code, Value
from tapegrad.kernels.codegen.complex_rules import IMAGINARY, ComplexLoop
from tapegrad.kernels.codegen.loop_text import ATTRIBUTES, value_of
from tapegrad.kernels.codegen.rule_codegen import ADJOINT


def text(source: str, name: str) -> str:
    r"""The LLVM text of a loop, a function of the eight integers that an adjoint kernel takes.

    >>> from tapegrad.kernels.codegen.complex_loop_text import text
    >>> from tapegrad.kernels.codegen.complex_rules import source
    >>> from tapegrad.ops.core import table
    >>> lines = text(source(table["conj"], 0, "f8", 0, 3), "loop").split("\n")
    >>> sum(" fneg " in line for line in lines)  # where it is added, and where it is not
    2
    """
    return _Text(ComplexLoop(*json.loads(source))).written(name)


class _Text:
    def __init__(self, loop: ComplexLoop) -> None:
        self.loop = loop
        self.used: set[str] = set()
        self.b = FunctionBuilder(np.dtype(loop.dtype))
        self.kind = self.b.kind

    def written(self, name: str) -> str:
        """The function."""
        b, loop = self.b, self.loop
        at = {read: b.emit(f"inttoptr i64 %at.{read} to ptr") for read in loop.reads}
        out = b.emit("inttoptr i64 %at.out to ptr")
        adds = b.emit("icmp ne i64 %at.accumulate, 0")
        before = {
            key: value for read in loop.fixed for key, value in self._loaded(read, at[read], "")
        }
        if loop.total:
            self._summed(at, before, out, adds)
        else:
            with b.otherwise(adds) as held:
                self._each(at, before, out, "p", False)
                held()
                self._each(at, before, out, "q", True)
        head = f"define i64 @{name}({', '.join(f'i64 %at.{x}' for x in ADJOINT)}) #0 {{"
        return "\n".join([
            head, *b.head, *b.lines, "ret i64 0", "}", *sorted(b.declared),
            elementary.definitions(self.used), f"attributes #0 = {{ {ATTRIBUTES} }}",
        ])  # fmt: skip

    def _loaded(self, read: str, at: str, i: str) -> list[tuple[str, Value]]:
        """The parts of an operand, or of its i-th element, by their names."""
        b, pair = self.b, read in self.loop.pairs
        if read in self.loop.conditions:
            byte = b.load(b.at(at, i or 0, "i8"), "i8")
            return [(read, Value(b.emit(f"icmp ne i8 {byte}, 0"), "i1"))]
        found = []
        for part, key in enumerate((read, read + IMAGINARY)[: 1 + pair]):
            index: Any = (b.mad(i, 2, part) if pair else i) if i else part
            found.append((key, Value(b.load(b.at(at, index)), self.kind)))
        return found

    def _parts(
        self, at: dict[str, str], before: dict[str, Value], i: str, prefix: str
    ) -> list[str]:
        """The number, or both parts, that the i-th elements give."""
        loop, values = self.loop, dict(before)
        for read in loop.reads:
            if read not in loop.fixed:
                values.update(self._loaded(read, at[read], i))
        code = Code(prefix)
        made = [code.cast(value_of(code, x, self.kind, values), self.kind) for x in loop.value]
        self.b.lines += code.lines
        self.used |= code.used
        return [x.name for x in made]

    def _each(
        self, at: dict[str, str], before: dict[str, Value], out: str, prefix: str, adds: bool
    ) -> None:
        """One result for each element."""
        b, width = self.b, len(self.loop.value)
        with b.loop("%at.n") as i:
            for part, x in enumerate(self._parts(at, before, i, prefix)):
                place = b.at(out, b.mad(i, width, part) if width > 1 else i)
                b.store(b.two("fadd", b.load(place), x) if adds else x, place)

    def _summed(self, at: dict[str, str], before: dict[str, Value], out: str, adds: str) -> None:
        """The sum of what all elements give."""
        b = self.b
        sums = [b.room(self.kind, b.constant(0.0)) for _ in self.loop.value]
        with b.loop("%at.n") as i:
            for place, x in zip(sums, self._parts(at, before, i, "p"), strict=True):
                b.store(b.emit(f"fadd reassoc nsz {self.kind} {b.load(place)}, {x}"), place)
        for part, place in enumerate(sums):
            target, found = b.at(out, part), b.load(place)
            b.store(b.choose(adds, b.two("fadd", found, b.load(target)), found), target)
