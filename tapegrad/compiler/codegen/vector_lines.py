"""Lines of LLVM text that compute with vectors of a width, or with single elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import ADD, MAX, MIN, memory
from tapegrad.compiler.llvm import widen
from tapegrad.compiler.llvm.scalar_ops import Code, Value

# Reductions may be reassociated: no less accurate, and they vectorise.
LOOSE = "reassoc nsz"
# Loops that are not worth LLVM's time, and such as are not to be unrolled.
COLD, ROLLED = "!0", "!3"
LOOP_HINTS = f"""\
{COLD} = distinct !{{{COLD}, !1, !2}}
!1 = !{{!"llvm.loop.vectorize.enable", i1 false}}
!2 = !{{!"llvm.loop.unroll.disable"}}
{ROLLED} = distinct !{{{ROLLED}, !2}}
"""


class VectorLines:
    """Values, memory, loops; what varies within a vector is written once and then widened."""

    def __init__(self, names: str, guarded: bool) -> None:
        self.names = names
        self.uniform = Code(f"u{names}", guarded)  # values that all elements of a vector share
        self.vector = Code(f"v{names}", guarded)
        self.lines = self.uniform.lines
        self.allocas: list[str] = []
        self.used = {1: self.uniform.used}  # functions, by the width that they are called with
        self.declared: set[str] = set()
        self.hint = ""  # what LLVM should not do to loops: `COLD`, `ROLLED`
        self.blocks = 0
        self.width = 1  # of vectors now
        self.mask = ""  # of the elements that exist, in a partial vector
        self.splats: dict[str, str] = {}

    def label(self) -> str:
        """A fresh basic-block label."""
        self.blocks += 1
        return f"b{self.names}{self.blocks}"

    def emit(self, type: str, text: str) -> Value:
        """Emit one instruction verbatim."""
        return self.uniform.emit(type, text)

    def call(self, function: str, arguments: str) -> None:
        """Call a function that writes memory."""
        self.uniform.used.add(function)
        self.lines.append(f"call void @{function}({arguments})")

    def take(self) -> None:
        """Move the lines of what varies within a vector to the function, widened."""
        code, width = self.vector, self.width
        self.lines += (
            [widen.widened(line, width) for line in code.lines] if width > 1 else code.lines
        )
        self.used.setdefault(width, set()).update(code.used)
        code.lines.clear()
        code.used.clear()

    def typed(self, type: str) -> str:
        """The vector type of an element type."""
        return f"<{self.width} x {type}>" if self.width > 1 else type

    def literal(self, value: Value) -> str:
        """A constant as a vector."""
        return f"splat ({value})" if self.width > 1 else value.name

    def whole(self, value: Value, varying: bool) -> str:
        """The name of a value as a vector."""
        if value.name[0] != "%":
            return self.literal(value)
        if varying or self.width == 1:
            return value.name
        found = self.splats.get(value.name)
        if found is None:
            kind = self.typed(value.type)
            first = self.emit("", f"insertelement {kind} poison, {value}, i64 0").name
            found = self.splats[value.name] = self.emit(
                "", f"shufflevector {kind} {first}, {kind} poison, {self.typed('i32')} "
                "zeroinitializer",
            ).name  # fmt: skip
        return found

    def loop(self, first: str, last: str, step: int, body: Callable[[str], None]) -> None:
        """Write a loop, of at least one step."""
        head, after = self.label(), self.label()
        counter = f"%c{head}"
        self.allocas.append(f"{counter} = alloca i64")
        self.lines += [f"store i64 {first}, ptr {counter}", f"br label %{head}", f"{head}:"]
        index = self.emit("i64", f"load i64, ptr {counter}").name
        with self.scope():
            body(index)
        up = self.emit("i64", f"add nuw nsw i64 {index}, {step}").name
        self.lines.append(f"store i64 {up}, ptr {counter}")
        more = self.emit("i1", f"icmp ult i64 {up}, {last}").name
        hint = f", !llvm.loop {self.hint}" if self.hint else ""
        self.lines += [f"br i1 {more}, label %{head}, label %{after}{hint}", f"{after}:"]

    @contextmanager
    def at_width(self, width: int) -> Iterator[None]:
        """Write vectors of some width meanwhile."""
        before, self.width = self.width, width
        with self.scope():
            yield
        self.width = before

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Drop the values computed meanwhile: they do not dominate what follows."""
        splats = dict(self.splats)
        with self.uniform.scope(), self.vector.scope():
            yield
        self.splats = splats

    def read(self, address: str, place: Place, varying: bool) -> Value:
        dtype = place.buffer.dtype
        kind = memory(dtype)
        type = self.typed(kind) if varying else kind
        if varying and self.mask:
            symbol = intrinsic("load", self.width, kind)
            call = (
                f"{type} @{symbol}(ptr {address}, i32 {dtype.itemsize}, {self.typed('i1')} "
                f"{self.mask}, {type} zeroinitializer)"
            )
            self.declared.add(
                f"declare {type} @{symbol}(ptr, i32 immarg, {self.typed('i1')}, {type})"
            )
            found = self.emit(kind, f"call {call}")
        else:
            found = self.emit(kind, f"load {type}, ptr {address}{self._aligned(dtype)}")
        if dtype.name == "bool":
            to = self.typed("i1") if varying else "i1"
            return self.emit("i1", f"trunc {type} {found.name} to {to}")
        return found

    def put(self, name: str, address: str, place: Place, varying: bool) -> None:
        """Store a scalar or a vector."""
        dtype = place.buffer.dtype
        kind = memory(dtype)
        type = self.typed(kind) if varying else kind
        if dtype.name == "bool":
            flags = self.typed("i1") if varying else "i1"
            name = self.emit("i8", f"zext {flags} {name} to {type}").name
        if varying and self.mask:
            symbol = intrinsic("store", self.width, kind)
            self.declared.add(
                f"declare void @{symbol}({type}, ptr, i32 immarg, {self.typed('i1')})"
            )
            self.lines.append(
                f"call void @{symbol}({type} {name}, ptr {address}, "
                f"i32 {dtype.itemsize}, {self.typed('i1')} {self.mask})"
            )
        else:
            self.lines.append(f"store {type} {name}, ptr {address}{self._aligned(dtype)}")

    def _aligned(self, dtype: np.dtype) -> str:
        """The alignment of a vector in memory, which is that of an element."""
        return f", align {dtype.itemsize}" if self.width > 1 else ""

    def combine(self, mode: str, a: Value, b: Value, varying: bool) -> Value:
        """One step of a reduction."""
        code = self.vector if varying else self.uniform
        name, floats = "add" if mode == ADD else mode, a.type in ("double", "float")
        found: Value | None
        if floats and mode not in (MAX, MIN):
            found = code.emit(a.type, f"f{name} {LOOSE} {a.type} {a.name}, {b.name}")
        elif floats:  # the processor's instruction, with NaN propagated
            sign = "ogt" if mode == MAX else "olt"
            first = code.emit("i1", f"fcmp {sign} {a}, {b.name}")
            better = code.emit(a.type, f"select {first}, {a}, {b}")
            nan = code.emit("i1", f"fcmp uno {a}, {a.name}")
            found = code.emit(a.type, f"select {nan}, {a}, {better}")
        else:
            found = code.apply(name, [a, b])
        assert found is not None
        if varying:
            self.take()
        return found

    def fold(self, mode: str, value: Value) -> Value:
        """Reduce a vector to a scalar, by halves."""
        kind, width = value.type, self.width
        while self.width > 1:
            halves = []
            before, half = self.typed(kind), self.width // 2
            for first in (0, half):
                line = f"extractelement {before} {value.name}, i64 {first}"
                if half > 1:
                    order = ", ".join([f"i32 {first + i}" for i in range(half)])
                    line = f"{before} {value.name}, {before} poison, <{half} x i32> <{order}>"
                    line = f"shufflevector {line}"
                halves.append(self.emit(kind, line))
            self.width = half
            value = self.combine(mode, halves[0], halves[1], True)
        self.width = width
        return value

    def chosen(self, value: Value, other: str) -> Value:
        """Select under the mask: elsewhere the elements of another vector."""
        type = self.typed(value.type)
        line = f"select {self.typed('i1')} {self.mask}, {type} {value.name}, {type} {other}"
        return self.emit(value.type, line)


def intrinsic(what: str, width: int, kind: str) -> str:
    """The name of a masked access of LLVM."""
    short = {"double": "f64", "float": "f32"}.get(kind, kind)
    return f"llvm.masked.{what}.v{width}{short}.p0"
