"""Write one loop nest as LLVM text, on scalars.

It becomes a function over pointers, so that equal nests in a program share one function.  `noalias`
on the pointers lets LLVM vectorise: except for scans, a nest never writes what it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import (
    ADD,
    MAX,
    MIN,
    SET,
    Ends,
    Gathers,
    Nest,
    Term,
    collapsed,
    memory,
    register,
    start_value,
)
from tapegrad.compiler.llvm.scalar_ops import Code, Value, literal

# Reductions may be reassociated: no less accurate, and they vectorise.
LOOSE = "reassoc nsz"


class Written(NamedTuple):
    """A nest as text; `{name}` stands for the function's name."""

    text: str
    used: frozenset[str]


class Tiling(Protocol):
    """Writes the loops from a level on in tiles, see `loop_tiling`."""

    level: int

    def write(self, writer: Writer) -> None: ...
    def begin(self) -> None: ...
    def value(self, writer: Writer, operand: int) -> Value: ...
    def places(self, operand: int, store: int) -> bool: ...


class Writer:
    """Writes the function of one nest."""

    def __init__(
        self, nest: Nest, guarded: bool, part: bool = False, tiles: Tiling | None = None
    ) -> None:
        self.nest = nest
        self.tiles = tiles
        self.rarely = False  # cold: not worth LLVM's time
        self.part = part  # the outermost loop runs from `%from` to `%to`
        self.code = Code()
        self.code.guarded = guarded
        self.loops: list[Value] = []
        self.elements: dict[int, Value] = {}
        self.allocas: list[str] = []
        self.blocks = 0

    def line(self, text: str) -> None:
        """Append a line."""
        self.code.lines.append(text)

    def label(self) -> str:
        """A fresh basic-block label."""
        self.blocks += 1
        return f"b{self.blocks}"

    def pointer(self, base: str, place: Place, gathers: Gathers = ()) -> Value:
        """The address of the element at the current indices."""
        code = self.code
        offset: Value | None = None
        for load, stride, extent in gathers:
            index = self.loaded(load)
            low = code.emit("i1", f"icmp slt i64 {index.name}, 0")
            wrapped = code.emit("i64", f"add nsw i64 {index.name}, {extent}")
            index = code.emit("i64", f"select i1 {low.name}, i64 {wrapped.name}, i64 {index.name}")
            step = code.emit("i64", f"mul nsw i64 {index.name}, {stride}")
            offset = (
                step
                if offset is None
                else code.emit("i64", f"add nsw i64 {offset.name}, {step.name}")
            )
        for index, stride in zip(self.loops, place.strides, strict=False):
            if stride == 0:
                continue
            step = index if stride == 1 else code.emit("i64", f"mul nsw i64 {index.name}, {stride}")
            offset = (
                step
                if offset is None
                else code.emit("i64", f"add nsw i64 {offset.name}, {step.name}")
            )
        if offset is None:
            return Value(base, "ptr")
        kind = memory(place.buffer.dtype)
        return code.emit("ptr", f"getelementptr inbounds {kind}, ptr {base}, i64 {offset.name}")

    def loaded(self, k: int) -> Value:
        """The element of a load at the current indices."""
        found = self.elements.get(k)
        if found is None:
            nest = self.nest
            gathers = nest.gathers[k] if nest.gathers else ()
            found = self.elements[k] = self.load(f"%l{k}", nest.loads[k], gathers)
        return found

    def gathers(self, k: int) -> Gathers:
        """The gathered indices of a store."""
        nest = self.nest
        return nest.gathers[len(nest.loads) + k] if nest.gathers else ()

    def load(self, base: str, place: Place, gathers: Gathers = ()) -> Value:
        """An element of a window."""
        kind = memory(place.buffer.dtype)
        address = self.pointer(base, place, gathers).name
        found = self.code.emit(kind, f"load {kind}, ptr {address}")
        if place.buffer.dtype == bool:
            return self.code.emit("i1", f"trunc i8 {found.name} to i1")
        return found

    def put(self, value: Value, base: str, place: Place, gathers: Gathers = ()) -> None:
        """Store an element into a window."""
        self.put_at(value, self.pointer(base, place, gathers).name)

    def put_at(self, value: Value, address: str) -> None:
        """Store a value at an address."""
        if value.type == "i1":
            value = self.code.emit("i8", f"zext i1 {value.name} to i8")
        self.line(f"store {value.type} {value.name}, ptr {address}")

    def combine(self, mode: str, a: Value, b: Value) -> Value:
        """One step of a reduction."""
        name = "add" if mode == ADD else mode
        if a.type in ("double", "float") and mode not in (MAX, MIN):
            return self.code.emit(a.type, f"f{name} {LOOSE} {a.type} {a.name}, {b.name}")
        found = self.code.apply(name, [a, b])
        assert found is not None
        return found

    # -- the function ----------------------------------------------------------------------

    def write(self) -> None:
        """Write the body."""
        nest = self.nest
        rank = len(nest.domain)
        self.outer: list[int] = []  # reductions in memory: some outer loop is reduced
        self.local: list[tuple[int, int, str]] = []  # (store, level, accumulator)
        for k, store in enumerate(nest.stores):
            if store.mode in (SET, ADD):
                continue
            strides = store.place.strides
            level = rank
            while level > 0 and strides[level - 1] == 0:
                level -= 1
            above = any(
                s == 0 and n != 1 for s, n in zip(strides[:level], nest.domain[:level], strict=True)
            )
            if above:
                self.outer.append(k)
                self._fill(k)
            if level < rank:
                kind = register(store.place.buffer.dtype)
                name = f"%acc{k}"
                self.allocas.append(f"{name} = alloca {kind}")
                self.local.append((k, level, name))
        self.level(0)

    def _fill(self, k: int) -> None:
        """Initialise the result of a reduction in memory."""
        store = self.nest.stores[k]
        place = store.place
        dims = [d for d, s in enumerate(place.strides) if s]
        start = literal(start_value(store.mode, place.buffer.dtype), register(place.buffer.dtype))
        saved, self.loops = self.loops, []
        shape = tuple([self.nest.domain[d] for d in dims])
        inner = place._replace(shape=shape, strides=tuple([place.strides[d] for d in dims]))
        self.over(dims, lambda: self.put(start, f"%s{k}", inner))
        self.loops = saved

    def over(self, dims: list[int], body: Callable[[], None], ends: Ends | None = None) -> None:
        """Write nested loops; the bounds of the outermost may differ from the nest's."""
        if not dims:
            body()
            return
        self.loop(dims[0], lambda: self.over(dims[1:], body), ends)

    def ends(self, dim: int) -> Ends:
        """The bounds of a loop of the nest."""
        return ("%from", "%to") if self.part and dim == 0 else ("0", str(self.nest.domain[dim]))

    def loop(self, dim: int, body: Callable[[], None], ends: Ends | None = None) -> None:
        """Write a loop of the nest."""

        def step(index: Value) -> Value:
            self.loops.append(index)
            body()
            self.loops.pop()
            return self.code.emit("i64", f"add nuw nsw i64 {index.name}, 1")

        if self.nest.domain[dim]:
            self.steps(*(ends or self.ends(dim)), step)

    def steps(self, first: str, last: str, step: Callable[[Value], Value]) -> None:
        """Write a loop; `step` writes the body at an index, and returns the next one."""
        head, after = self.label(), self.label()
        code = self.code
        counter = f"%c{self.blocks}"
        self.allocas.append(f"{counter} = alloca i64")
        self.line(f"store i64 {first}, ptr {counter}")
        self.line(f"br label %{head}")
        self.line(f"{head}:")
        code.forget()
        following = step(code.emit("i64", f"load i64, ptr {counter}"))
        self.line(f"store i64 {following.name}, ptr {counter}")
        more = code.emit("i1", f"icmp ult i64 {following.name}, {last}")
        hint = ", !llvm.loop !0" if self.rarely else ""
        self.line(f"br i1 {more.name}, label %{head}, label %{after}{hint}")
        self.line(f"{after}:")
        code.forget()

    def level(self, level: int) -> None:
        """Write the loops from a level on, and around them the accumulators of that level."""
        nest = self.nest
        opening = [(k, name) for k, at, name in self.local if at == level]
        for k, name in opening:
            store = nest.stores[k]
            dtype = store.place.buffer.dtype
            start = literal(start_value(store.mode, dtype), register(dtype))
            self.line(f"store {start.type} {start.name}, ptr {name}")
        if level == len(nest.domain):
            self._body()
        elif self.tiles is not None and level == self.tiles.level:
            self.tiles.write(self)
        else:
            self.loop(level, lambda: self.level(level + 1))
        for k, name in opening:
            store = nest.stores[k]
            kind = register(store.place.buffer.dtype)
            total = self.code.emit(kind, f"load {kind}, ptr {name}")
            self._finish(k, total)

    def _finish(self, k: int, value: Value) -> None:
        store = self.nest.stores[k]
        base = f"%s{k}"
        if k in self.outer or store.mode == ADD:
            before = self.load(base, store.place, self.gathers(k))
            value = self.combine(store.mode, before, value)
        self.put(value, base, store.place, self.gathers(k))

    def compute(self, term: Term, args: list[Value]) -> Value:
        """The value of an operation."""
        if term.name == "constant":
            return literal(term.constant, register(term.dtype))
        if term.name == "to":
            return self.code.cast(args[0], register(term.dtype))
        found = self.code.apply(term.name, args)
        assert found is not None, term.name
        return found

    def _body(self) -> None:
        nest, code = self.nest, self.code
        values: list[Value] = []
        self.elements.clear()

        def value(arg: int) -> Value:
            if self.tiles is not None:
                return self.tiles.value(self, arg)
            return values[arg] if arg >= 0 else self.loaded(~arg)

        if self.tiles is not None:
            self.tiles.begin()
        else:
            for term in nest.terms:
                values.append(self.compute(term, [value(a) for a in term.args]))
        for bad in code.bad:
            before = code.emit("i1", "load i1, ptr %unsafe")
            after = code.emit("i1", f"or i1 {before.name}, {bad.name}")
            self.line(f"store i1 {after.name}, ptr %unsafe")
        accumulators = {k: name for k, _, name in self.local}
        for k, store in enumerate(nest.stores):
            if self.tiles is not None and self.tiles.places(store.source, k):
                continue
            found = value(store.source)
            if k in accumulators:
                kind = found.type
                before = code.emit(kind, f"load {kind}, ptr {accumulators[k]}")
                after = self.combine(store.mode, before, found)
                self.line(f"store {kind} {after.name}, ptr {accumulators[k]}")
            elif store.mode == SET:
                self.put(found, f"%s{k}", store.place, self.gathers(k))
            else:
                self._finish(k, found)


def _carried(nest: Nest) -> list[tuple[int, str]]:
    """Loads from a store's buffer, as offsets from the store: LLVM sees the dependence distance.

    Only a scan has such loads.
    """
    found = []
    for k, place in enumerate(nest.loads):
        for j, store in enumerate(nest.stores):
            if store.place.buffer is place.buffer:
                kind = memory(place.buffer.dtype)
                off = place.offset - store.place.offset
                found.append((k, f"%l{k} = getelementptr {kind}, ptr %s{j}, i64 {off}"))
    return found


def memory_intrinsic(nest: Nest) -> str | None:
    """The memcpy or memset equal to a collapsed nest, if there is one."""
    if len(nest.domain) != 1 or len(nest.stores) != 1 or any(nest.gathers):
        return None
    source, place, mode = nest.stores[0]
    if mode != SET or place.strides != (1,):
        return None
    dtype = place.buffer.dtype
    size = nest.domain[0] * dtype.itemsize
    if source < 0:
        load = nest.loads[~source]
        if load.strides != (1,) or load.buffer.dtype != dtype or load.buffer is place.buffer:
            return None
        return f"call void @llvm.memcpy.p0.p0.i64(ptr %s0, ptr %l{~source}, i64 {size}, i1 false)"
    term = nest.terms[source]
    if term.name != "constant" or any(np.asarray(term.constant, dtype).tobytes()):
        return None
    return f"call void @llvm.memset.p0.i64(ptr %s0, i8 0, i64 {size}, i1 false)"


def written(
    nest: Nest, part: bool = False, tiles: Tiling | None = None, redo: Tiling | None = None
) -> Written:
    """The function of a nest, or of a part of its outermost loop, from `%from` to `%to`.

    Where an operation has a fast form that serves most arguments, the loop that uses it notes
    others, and is then run again in the form that serves all.

    With `tiles` the nest is written in these; with `redo` fast forms are used wherever there are
    some, and it is run again in tiles.
    """
    nest = collapsed(nest)
    params = [f"ptr noalias readonly %l{k}" for k in range(len(nest.loads))]
    params += [f"ptr noalias %s{k}" for k in range(len(nest.stores))]
    params += ["i64 %from", "i64 %to"] if part else []
    heading = f"define internal void @{{name}}({', '.join(params)}) #0 {{"
    for k, line in _carried(nest):
        heading = heading.replace(f"noalias readonly %l{k}", f"%u{k}") + "\n" + line
    instruction = None if part else memory_intrinsic(nest)
    if instruction:
        return Written("\n".join([heading, instruction, "ret void", "}"]), frozenset())
    first = Writer(nest, guarded=bool(nest.domain) and tiles is None, part=part, tiles=tiles)
    first.code.short = redo is not None
    first.write()
    used = set(first.code.used)
    if not first.code.bad:
        lines = [heading, *first.allocas, *first.code.lines, "ret void", "}"]
        return Written("\n".join(lines), frozenset(used))
    second = Writer(nest, guarded=False, part=part, tiles=redo)
    second.rarely = redo is not None
    second.write()
    used |= second.code.used
    names = ", ".join(f"{p.split()[0]} {p.split()[-1]}" for p in params)
    lines = [
        heading, *first.allocas, "%unsafe = alloca i1", "store i1 false, ptr %unsafe",
        *first.code.lines,
        "%again = load i1, ptr %unsafe", "br i1 %again, label %repeat, label %done",
        "repeat:", f"call void @{{name}}.any({names})", "br label %done",
        "done:", "ret void", "}",
        heading.replace("{name}", "{name}.any").replace("#0", "#1" if redo is None else "#4"),
        *second.allocas, *second.code.lines, "ret void", "}",
    ]  # fmt: skip
    return Written("\n".join(lines), frozenset(used))
