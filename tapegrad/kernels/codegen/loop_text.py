"""Write the loop over elements that `rule_codegen` has described as LLVM text.

A loop whose operations have short forms computes a block at a time, in the first of them.  Where an
argument was one that the form does not serve, the block is computed anew in the next one.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import numpy as np

from tapegrad.compiler.llvm import elementary
from tapegrad.compiler.llvm.function_builder import FunctionBuilder
from tapegrad.compiler.llvm.scalar_ops import Code, Value, literal
from tapegrad.kernels import build
from tapegrad.kernels.codegen.rule_codegen import ADJOINT, BLOCK, ElementLoop

ATTRIBUTES = 'nounwind "prefer-vector-width"="512"'
ALSO = "", " noinline cold"  # of the first attempt, and of those that are rarely needed


def text(source: str, name: str) -> str:
    r"""The LLVM text of a loop, a function of eight integers.

    >>> from tapegrad.kernels.codegen.loop_text import text
    >>> from tapegrad.kernels.codegen.rule_codegen import forward_source
    >>> from tapegrad.ops.core import table
    >>> lines = text(forward_source(table["add"], "f8", 0), "loop").split("\n")
    >>> [line for line in lines if "fadd" in line]
    ['%v4 = fadd double %v1, %v3']
    """
    return _Text(ElementLoop(*json.loads(source))).written(name)


def value_of(code: Code, x: Any, kind: str, values: dict[str, Value]) -> Value:
    """An expression as `rule_codegen.plain` has it, of values that have names."""
    if isinstance(x, str):
        return values[x]
    if not isinstance(x, list):
        return literal(x, kind)
    found = code.apply(x[0], [value_of(code, arg, kind, values) for arg in x[1:]])
    assert found is not None, x[0]
    return found


class _Text:
    """Writes the function of a loop, and one for each form of what it computes."""

    def __init__(self, loop: ElementLoop) -> None:
        self.loop = loop
        self.kind = "double" if loop.dtype == "f8" else "float"
        self.reads = loop.reads
        self.used: set[str] = set()  # functions that are called
        self.hints: list[str] = []
        self.tested = False  # whether some argument may not be served by a form
        self.functions = [self._attempt("attempt0", 0)]
        self.guarded = self.tested
        while self.tested:
            place = len(self.functions)
            self.functions.append(self._attempt(f"attempt{place}", place))
        self.attempts = len(self.functions)

    def written(self, name: str) -> str:
        """All functions."""
        functions = [self._entry(name), *self.functions, elementary.definitions(self.used)]
        kinds = [f"attributes #{k} = {{ {ATTRIBUTES}{more} }}" for k, more in enumerate(ALSO)]
        return "\n".join([*functions, *kinds, *self.hints])

    def _attempt(self, name: str, place: int, adds: bool = False) -> str:
        """One form for n elements, or for their sum; it returns whether it did not serve."""
        loop, kind = self.loop, self.kind
        code = Code()
        code.place, code.short = place, loop.short
        values = {name: self._load(code, name, "") for name in self.reads if name in loop.fixed}
        before = ["store i1 false, ptr %bad", f"store {kind} {literal(0, kind).name}, ptr %sum"]
        before += code.lines
        code.lines.clear()
        for read in self.reads:
            if read not in loop.fixed:
                values[read] = self._load(code, read, "i64 %i")
        value = code.cast(value_of(code, loop.value, kind, values), kind)
        self._note(code)
        if loop.total:
            summed = code.emit(kind, f"load {kind}, ptr %sum")
            summed = code.emit(kind, f"fadd reassoc nsz {summed}, {value.name}")
            code.lines.append(f"store {summed}, ptr %sum")
        else:
            at = code.emit("ptr", f"getelementptr {kind}, ptr %out, i64 %i").name
            if adds:
                old = code.emit(kind, f"load {kind}, ptr {at}")
                value = code.emit(kind, f"fadd {old}, {value.name}")
            code.lines.append(f"store {value}, ptr {at}")
        self.used |= code.used
        work = elementary.multiplications(code.lines)
        end, hint = build.interleaved(work, 2 * len(self.hints))
        self.hints += [hint] * bool(hint)
        pointers = "".join(f"ptr %{read}, " for read in self.reads)
        stored = ["%total = load {0}, ptr %sum", "store {0} %total, ptr %out"] if loop.total else []
        return "\n".join(
            [
                f"define internal i1 @{name}({pointers}ptr %out, i64 %n) #{min(place, 1)} {{",
                "%bad = alloca i1", f"%sum = alloca {kind}", "%count = alloca i64", *before,
                "store i64 0, ptr %count", "br label %head",
                "head:", "%i = load i64, ptr %count", "%more = icmp slt i64 %i, %n",
                "br i1 %more, label %body, label %done",
                "body:", *code.lines, "%next = add nsw i64 %i, 1", "store i64 %next, ptr %count",
                f"br label %head{end}",
                "done:", *[line.format(kind) for line in stored],
                "%rare = load i1, ptr %bad", "ret i1 %rare", "}",
            ]
        )  # fmt: skip

    def _load(self, code: Code, name: str, index: str) -> Value:
        """An operand, or its element at an index."""
        condition = name in self.loop.conditions
        kind = "i8" if condition else self.kind
        at = f"%{name}"
        if index:
            at = code.emit("ptr", f"getelementptr {kind}, ptr {at}, {index}").name
        found = code.emit(kind, f"load {kind}, ptr {at}")
        return code.emit("i1", f"icmp ne {found}, 0") if condition else found

    def _note(self, code: Code) -> None:
        """Note whether an argument is one that a form does not serve."""
        self.tested = bool(code.bad)
        for bad in code.bad:
            before = code.emit("i1", "load i1, ptr %bad")
            after = code.emit("i1", f"or {before}, {bad.name}")
            code.lines.append(f"store {after}, ptr %bad")

    def _entry(self, name: str) -> str:
        """The function that is called: it takes addresses and goes from block to block."""
        loop = self.loop
        b = FunctionBuilder(np.dtype(loop.dtype))
        at = {read: b.emit(f"inttoptr i64 %at.{read} to ptr") for read in self.reads}
        out = at[loop.over] if loop.over else b.emit("inttoptr i64 %at.out to ptr")
        adds = b.emit("icmp ne i64 %at.accumulate, 0") if "accumulate" in loop.arguments else ""
        if loop.total:
            self._summed(b, at, out, adds)
        elif self.guarded:
            self._blocks(b, at, out, adds)
        elif adds:
            self.functions.append(self._attempt("added", 0, adds=True))
            with b.otherwise(adds) as held:
                self._call(b, "attempt0", at, out, "%at.n")
                held()
                self._call(b, "added", at, out, "%at.n")
        else:
            self._call(b, "attempt0", at, out, "%at.n")
        given = [f"i64 %at.{argument}" for argument in loop.arguments]
        given += ["i64"] * (len(ADJOINT) - len(given))
        head = f"define i64 @{name}({', '.join(given)}) #0 {{"
        return "\n".join([head, *b.head, *b.lines, "ret i64 0", "}", *sorted(b.declared)])

    def _call(self, b: FunctionBuilder, name: str, at: dict[str, str], out: str, n: str) -> str:
        """Whether some argument was not served."""
        pointers = "".join(f"ptr {at[read]}, " for read in self.reads)
        return b.emit(f"call i1 @{name}({pointers}ptr {out}, i64 {n})")

    def _served(self, b: FunctionBuilder, at: dict[str, str], out: str, n: str) -> None:
        """Attempt one form after the other."""
        with ExitStack() as inside:
            for place in range(self.attempts):
                rare = self._call(b, f"attempt{place}", at, out, n)
                if place + 1 < self.attempts:
                    inside.enter_context(b.where(rare))

    def _block(
        self, b: FunctionBuilder, block: str, at: dict[str, str]
    ) -> tuple[str, str, dict[str, str]]:
        """Where a block begins, how many elements it has, and its operands."""
        start = b.emit(f"mul i64 {block}, {BLOCK}")
        left = b.emit(f"sub i64 %at.n, {start}")
        short = b.emit(f"icmp slt i64 {left}, {BLOCK}")
        n = b.emit(f"select i1 {short}, i64 {left}, i64 {BLOCK}")
        moved = {}
        for read, pointer in at.items():
            kind = "i8" if read in self.loop.conditions else self.kind
            moved[read] = pointer if read in self.loop.fixed else b.at(pointer, start, kind)
        return start, n, moved

    def _count(self, b: FunctionBuilder) -> str:
        """The number of blocks."""
        more = b.emit(f"add i64 %at.n, {BLOCK - 1}")
        return b.emit(f"sdiv i64 {more}, {BLOCK}")

    def _summed(self, b: FunctionBuilder, at: dict[str, str], out: str, adds: str) -> None:
        """Add up what all elements contribute to one number."""
        part = b.room(self.kind)
        if self.guarded:
            total = b.room(self.kind, b.constant(0.0))
            with b.loop(self._count(b)) as block:
                _, n, moved = self._block(b, block, at)
                self._served(b, moved, part, n)
                b.store(b.two("fadd", b.load(total), b.load(part)), total)
            part = total
        else:
            self._call(b, "attempt0", at, part, "%at.n")
        found = b.load(part)
        b.store(b.choose(adds, b.two("fadd", found, b.load(out)), found), out)

    def _blocks(self, b: FunctionBuilder, at: dict[str, str], out: str, adds: str) -> None:
        """Compute a block, anew if need be; then only is it added, or written over an operand."""
        over = self.loop.over
        if adds or over:
            b.head.append(f"%aside = alloca [{BLOCK} x {self.kind}], align 64")
        with b.loop(self._count(b)) as block:
            start, n, moved = self._block(b, block, at)
            target = b.at(out, start)
            size = b.emit(f"mul i64 {n}, {4 if b.single else 8}")
            if over:
                self._copy(b, "%aside", target, size)
                moved[over] = "%aside"
            self._served(b, moved, "%aside" if adds else target, n)
            if adds:
                with b.otherwise(adds) as held:
                    self._copy(b, target, "%aside", size)
                    held()
                    with b.loop(n) as i:
                        here = b.at(target, i)
                        b.store(b.two("fadd", b.load(here), b.load(b.at("%aside", i))), here)

    def _copy(self, b: FunctionBuilder, to: str, source: str, size: str) -> None:
        b.declared.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        b.lines.append(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)"
        )
