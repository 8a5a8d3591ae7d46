"""Write a loop nest as LLVM text with vectors.

LLVM's vectoriser, and the passes that prepare loops for it and clean up after it, take most of the
compile time of a program with many loops.  A nest already holds all that these find out, so its
loops are written in the order of its `LoopOrder`, one of them vectorised, with loop-invariant code
hoisted: there is nothing left to optimise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tapegrad.compiler.codegen.loop_order import LoopOrder, Segment, loop_order_of, segments
from tapegrad.compiler.codegen.scalar_nest import LOOSE  # fmt: skip
from tapegrad.compiler.codegen.transpose import SIDE, columns, transpose
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import (
    ADD,
    MAX,
    MIN,
    SET,
    Gathers,
    Nest,
    Store,
    Term,
    memory,
    register,
    start_value,
)
from tapegrad.compiler.llvm import widen
from tapegrad.compiler.llvm.scalar_ops import Code, Value, literal


class VectorWriter:
    """Writes the function of one nest."""

    def __init__(
        self, nest: Nest, loops: LoopOrder, guarded: bool, part: bool, names: str = ""
    ) -> None:
        self.nest = nest
        self.loops = loops
        self.part = part
        self.names = names
        self.loads = [f"%l{k}" for k in range(len(nest.loads))]
        self.stores = [f"%s{k}" for k in range(len(nest.stores))]
        self.uniform = Code(f"u{names}", guarded)  # values that all elements of a vector share
        self.vector = Code(f"v{names}", guarded)
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.used: dict[int, set[str]] = {}  # functions, by the width that they are called with
        self.declared: set[str] = set()
        self.blocks = 0
        self.width = 1  # of vectors now
        self.mask = ""  # of the elements that exist, in a partial vector
        self.values: dict[int, Value] = {}  # of terms (>= 0) and of loads (~k)
        self.splats: dict[str, str] = {}
        self._look()
        # Masked stores do not forward to loads, so what is read again soon must not be masked.
        extent = nest.domain[loops.order[loops.simd]] if loops.simd >= 0 else 0
        exact = (loops.exact or bool(self.outer)) and not self.folded
        self.segments = segments(extent, loops.width, exact) if extent else []
        self.widths = sorted({one.width for one in self.segments})

    def _look(self) -> None:
        """Find the loop level at which each value is computed, and which vary within a vector."""
        nest, loops = self.nest, self.loops
        self.depth: dict[int, int] = {}
        self.varying: dict[int, bool] = {}
        for k, place in enumerate(nest.loads):
            self.depth[~k] = self._reach(place)
            self.varying[~k] = loops.simd >= 0 and place.strides[loops.order[loops.simd]] != 0
        for k, gathers in enumerate(nest.gathers[: len(nest.loads)]):
            self.depth[~k] = max([self.depth[~k], *[self.depth[~load] for load, _, _ in gathers]])
            self.varying[~k] |= any(self.varying[~load] for load, _, _ in gathers)
        for k, term in enumerate(nest.terms):
            self.depth[k] = max([self.depth[a] for a in term.args], default=0)
            self.varying[k] = any(self.varying[a] for a in term.args)
        self.summed: dict[int, int] = {}  # reductions in a register: from which level
        self.outer: list[int] = []  # reductions in memory
        self.folded: set[int] = set()  # reductions of a single vector, without a loop
        alone = loops.simd == 0 and nest.domain[loops.order[0]] <= loops.width
        for k, (_, place, mode) in enumerate(nest.stores):
            if mode in (SET, ADD):
                continue
            level = self._reach(place)
            outer_dims = loops.order[:level]
            if alone and place.strides[loops.order[0]] == 0:
                self.folded.add(k)
                outer_dims, level = outer_dims[1:], max(level, 1)
            if level < len(loops.order):
                self.summed[k] = level
            if any(place.strides[d] == 0 for d in outer_dims):
                self.outer.append(k)

    def _reach(self, place: Place) -> int:
        """The innermost loop level that a window depends on."""
        return max([i + 1 for i, d in enumerate(self.loops.order) if place.strides[d]], default=0)

    # -- lines ---------------------------------------------------------------------------------

    def label(self) -> str:
        """A fresh basic-block label."""
        self.blocks += 1
        return f"b{self.names}{self.blocks}"

    def emit(self, type: str, text: str) -> Value:
        """Emit one instruction verbatim."""
        value = self.uniform.emit(type, text)
        self._take(self.uniform)
        return value

    def _take(self, code: Code) -> None:
        """Move the lines of a `Code` to the function, widened if it is the vector one."""
        width = self.width if code is self.vector else 1
        if width > 1:
            self.lines += [widen.widened(line, width) for line in code.lines]
        else:
            self.lines += code.lines
        code.lines.clear()
        self.used.setdefault(width, set()).update(code.used)
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

    # -- loops ---------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the body."""
        for k in self.outer:
            self._fill(k)
        self._enter(0)

    def _fill(self, k: int) -> None:
        """Initialise the result of a reduction in memory."""
        store = self.nest.stores[k]
        place, dtype = store.place, store.place.buffer.dtype
        dims = [d for d, s in enumerate(place.strides) if s]
        shape = tuple([self.nest.domain[d] for d in dims])
        place = place._replace(shape=shape, strides=tuple([place.strides[d] for d in dims]))
        start = Term("constant", (), dtype, start_value(store.mode, dtype))
        nest = Nest(shape, (), (start,), (Store(0, place, SET),))
        divided = self.part and store.place.strides[0] != 0
        loops = loop_order_of(nest, divided) or LoopOrder(tuple(range(len(shape))), -1, 1)
        inner = VectorWriter(nest, loops, False, divided, f"{self.names}f{k}.")
        inner.stores = [self.stores[k]]
        inner.write()
        self.lines += inner.lines
        self.allocas += inner.allocas
        self.declared |= inner.declared  # it calls no functions

    def _enter(self, level: int) -> None:
        """Write what depends on the loops above only, then the inner loops."""
        opened = [k for k, at in self.summed.items() if at == level]
        inside = 0 <= self.loops.simd < level
        for k in opened:
            self._open(k, inside)
            for width in () if inside else self.widths:
                with self._at_width(width):
                    self._open(k, True)
        self._compute(level)
        if level == len(self.loops.order):
            beside = self._rows() if self.loops.rows else set()
            for k in range(len(self.nest.stores)):
                if k not in beside:
                    self._store(k)
        elif level == self.loops.simd and self.loops.rows:
            with self._at_width(self.loops.width):
                self._blocks(level)
        elif level == self.loops.simd:
            for segment in self.segments:
                with self._at_width(segment.width):
                    self._segment(level, segment)
        else:
            divided = self.part and self.loops.order[level] == 0
            last = str(self.nest.domain[self.loops.order[level]])
            first, last = ("%from", "%to") if divided else ("0", last)
            self._loop(first, last, 1, lambda index: self._step(level, index))
        for k in opened:
            for width in () if inside else self.widths:
                with self._at_width(width):
                    self._add(k, self._fold(k, self._total(k, True)), False)
            self._finish(k, self._total(k, inside), inside)

    @contextmanager
    def _at_width(self, width: int) -> Iterator[None]:
        """Write vectors of some width meanwhile."""
        before, self.width = self.width, width
        with self._scope():
            yield
        self.width = before

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Drop the values computed meanwhile: they do not dominate what follows."""
        splats = dict(self.splats)
        with self.uniform.scope(), self.vector.scope():
            yield
        self.splats = splats

    def _segment(self, level: int, segment: Segment) -> None:
        """The steps of a segment: a loop, or one that may be masked."""
        first, last, width = segment
        if last - first > width:
            steps = (str(first), str(last), width)
            self._loop(*steps, lambda index: self._step(level, index))
            return
        if last - first < width:
            bits = ["true" if first + i < last else "false" for i in range(width)]
            self.mask = f"<{', '.join([f'i1 {bit}' for bit in bits])}>"
        self._step(level, str(first))
        self.mask = ""

    def _step(self, level: int, index: str) -> None:
        """One step of the loop at a level."""
        d = self.loops.order[level]
        before = (list(self.loads), list(self.stores))
        for names, places in (
            (self.loads, self.nest.loads),
            (self.stores, [s.place for s in self.nest.stores]),
        ):
            for k, place in enumerate(places):
                names[k] = self._offset(names[k], place, index, place.strides[d])
        self._enter(level + 1)
        self.loads[:], self.stores[:] = before

    def _offset(self, base: str, place: Place, index: str, stride: int) -> str:
        if stride == 0 or index == "0":
            return base
        steps = index
        if stride != 1:
            steps = self.uniform.share("i64", f"mul nsw i64 {index}, {stride}").name
        kind = memory(place.buffer.dtype)
        found = self.uniform.share("ptr", f"getelementptr inbounds {kind}, ptr {base}, i64 {steps}")
        self._take(self.uniform)
        return found.name

    def _loop(self, first: str, last: str, step: int, body: Callable[[str], None]) -> None:
        head, after = self.label(), self.label()
        counter = f"%c{head}"
        self.allocas.append(f"{counter} = alloca i64")
        self.lines += [f"store i64 {first}, ptr {counter}", f"br label %{head}", f"{head}:"]
        index = self.emit("i64", f"load i64, ptr {counter}").name
        with self._scope():
            body(index)
        up = self.emit("i64", f"add nuw nsw i64 {index}, {step}").name
        self.lines.append(f"store i64 {up}, ptr {counter}")
        more = self.emit("i1", f"icmp ult i64 {up}, {last}").name
        self.lines += [f"br i1 {more}, label %{head}, label %{after}", f"{after}:"]

    # -- values --------------------------------------------------------------------------------

    def _compute(self, level: int) -> None:
        """Write the loads and terms that depend on so many loops."""
        nest = self.nest
        read = {a for t in nest.terms for a in t.args} | {s.source for s in nest.stores}
        indices = {load for gathers in nest.gathers for load, _, _ in gathers}
        for k in sorted(indices):
            if self.depth[~k] == level:
                self.values[~k] = self._load(k)
        for k in range(len(nest.loads)):
            if self.depth[~k] == level and k not in indices and ~k in read:
                self.values[~k] = self._load(k)
        for k, term in enumerate(nest.terms):
            if self.depth[k] == level:
                self.values[k] = self._term(k, term)

    def _term(self, k: int, term: Term) -> Value:
        code = self.vector if self.varying[k] else self.uniform
        if term.name == "constant":
            return literal(term.constant, register(term.dtype))
        args = []
        for a in term.args:
            value = self.values[a]
            if self.varying[k] and not self.varying[a] and value.name[0] == "%":
                value = Value(self.whole(value, False), value.type)
            args.append(value)
        if term.name == "to":
            found: Value | None = code.cast(args[0], register(term.dtype))
        else:
            found = code.apply(term.name, args)
        assert found is not None, term.name
        self._take(code)
        for bad in code.bad:
            self._note(bad, self.varying[k])
        code.bad.clear()
        return found

    def _note(self, bad: Value, varying: bool) -> None:
        """Note that an argument was outside the domain of a fast form."""
        name = bad.name
        if varying and self.width > 1:
            kind = self.typed("i1")
            if self.mask:
                name = self.emit("", f"and {kind} {name}, {self.mask}").name
            call = f"i1 @llvm.vector.reduce.or.v{self.width}i1({kind}"
            name = self.emit("i1", f"call {call} {name})").name
            self.declared.add(f"declare {call})")
        before = self.emit("i1", "load i1, ptr %unsafe")
        after = self.emit("i1", f"or i1 {before.name}, {name}")
        self.lines.append(f"store i1 {after.name}, ptr %unsafe")

    def _gather_address(self, base: str, place: Place, gathers: Gathers) -> str:
        """An address plus the offsets of loaded indices."""
        one = self.uniform
        for load, stride, extent in gathers:
            index = self.values[~load].name
            low = one.share("i1", f"icmp slt i64 {index}, 0").name
            wrapped = one.share("i64", f"add nsw i64 {index}, {extent}").name
            index = one.share("i64", f"select i1 {low}, i64 {wrapped}, i64 {index}").name
            base = self._offset(base, place, index, stride)
        self._take(one)
        return base

    def _load(self, k: int) -> Value:
        nest = self.nest
        place = nest.loads[k]
        gathers = nest.gathers[k] if nest.gathers else ()
        if self.loops.rows and self.varying[~k] and (gathers or place.strides[0] != 1):
            return self._gathered(k, place, gathers)
        address = self._gather_address(self.loads[k], place, gathers)
        return self._read(address, place, self.varying[~k])

    def _addresses(self, base: str, place: Place, gathers: Gathers = ()) -> str:
        """The vector of addresses of strided or gathered elements."""
        many, stride = self.vector, place.strides[0]
        steps = ", ".join([f"i64 {i * stride}" for i in range(self.width)])
        found = f"<{steps}>"
        for load, step, extent in gathers:
            index = self.whole(self.values[~load], self.varying[~load])
            low = many.share("i1", f"icmp slt i64 {index}, 0").name
            up = many.share("i64", f"add nsw i64 {index}, {extent}").name
            index = many.share("i64", f"select i1 {low}, i64 {up}, i64 {index}").name
            index = many.share("i64", f"mul nsw i64 {index}, {step}").name
            self._take(many)
            found = self.emit("", f"add nsw {self.typed('i64')} {index}, {found}").name
        kind = memory(place.buffer.dtype)
        line = f"getelementptr inbounds {kind}, ptr {base}, {self.typed('i64')} {found}"
        return self.emit("", line).name

    def _gathered(self, k: int, place: Place, gathers: Gathers) -> Value:
        """Gather a vector of strided or indexed elements."""
        dtype = place.buffer.dtype
        kind, pointers, all_ = memory(dtype), self.typed("ptr"), self.typed("i1")
        type, size = self.typed(kind), dtype.itemsize
        symbol = f"{_masked('gather', self.width, kind)[:-3]}.v{self.width}p0"
        self.declared.add(f"declare {type} @{symbol}({pointers}, i32 immarg, {all_}, {type})")
        at = self._addresses(self.loads[k], place, gathers)
        found = self.emit(
            kind, f"call {type} @{symbol}({pointers} {at}, i32 {size}, {all_} splat (i1 true), "
            f"{type} poison)",
        )  # fmt: skip
        if dtype.name == "bool":
            return self.emit("i1", f"trunc {type} {found.name} to {all_}")
        return found

    def _read(self, address: str, place: Place, varying: bool) -> Value:
        dtype = place.buffer.dtype
        kind = memory(dtype)
        type = self.typed(kind) if varying else kind
        if varying and self.mask:
            symbol = _masked("load", self.width, kind)
            call = (
                f"{type} @{symbol}(ptr {address}, i32 {dtype.itemsize}, {self.typed('i1')} "
                f"{self.mask}, {type} zeroinitializer)"
            )
            self.declared.add(
                f"declare {type} @{symbol}(ptr, i32 immarg, {self.typed('i1')}, {type})"
            )
            found = self.emit(kind, f"call {call}")
        else:
            found = self.emit(kind, f"load {type}, ptr {address}, align {dtype.itemsize}")
        if dtype.name == "bool":
            to = self.typed("i1") if varying else "i1"
            return self.emit("i1", f"trunc {type} {found.name} to {to}")
        return found

    def _put(self, name: str, address: str, place: Place, varying: bool) -> None:
        """Store a scalar or a vector."""
        dtype = place.buffer.dtype
        kind = memory(dtype)
        type = self.typed(kind) if varying else kind
        if dtype.name == "bool":
            flags = self.typed("i1") if varying else "i1"
            name = self.emit("i8", f"zext {flags} {name} to {type}").name
        if varying and self.mask:
            symbol = _masked("store", self.width, kind)
            self.declared.add(
                f"declare void @{symbol}({type}, ptr, i32 immarg, {self.typed('i1')})"
            )
            self.lines.append(
                f"call void @{symbol}({type} {name}, ptr {address}, "
                f"i32 {dtype.itemsize}, {self.typed('i1')} {self.mask})"
            )
        else:
            self.lines.append(f"store {type} {name}, ptr {address}, align {dtype.itemsize}")

    # -- results -------------------------------------------------------------------------------

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
        self._take(code)
        return found

    def _accumulator(self, k: int, vectors: bool) -> tuple[str, str]:
        kind = register(self.nest.stores[k].place.buffer.dtype)
        type = self.typed(kind) if vectors else kind
        name = f"%acc{self.names}{k}.{self.width if vectors else 't'}"
        line = f"{name} = alloca {type}"
        if line not in self.allocas:
            self.allocas.append(line)
        return name, type

    def _open(self, k: int, vectors: bool) -> None:
        store = self.nest.stores[k]
        dtype = store.place.buffer.dtype
        name, type = self._accumulator(k, vectors)
        start = literal(start_value(store.mode, dtype), register(dtype))
        value = self.literal(start) if vectors else start.name
        self.lines.append(f"store {type} {value}, ptr {name}")

    def _total(self, k: int, vectors: bool = False) -> Value:
        name, type = self._accumulator(k, vectors)
        kind = register(self.nest.stores[k].place.buffer.dtype)
        return self.emit(kind, f"load {type}, ptr {name}")

    def _add(self, k: int, value: Value, vectors: bool) -> None:
        """Add to an accumulator."""
        name, type = self._accumulator(k, vectors)
        before = self._total(k, vectors)
        after = self.combine(self.nest.stores[k].mode, before, value, vectors)
        if vectors and self.mask and (k in self.folded or self.summed[k] <= self.loops.simd):
            after = self._chosen(after, before.name)
        self.lines.append(f"store {type} {after.name}, ptr {name}")

    def _fold(self, k: int, value: Value) -> Value:
        """Reduce a vector to a scalar, by halves."""
        mode, kind = self.nest.stores[k].mode, value.type
        width = self.width
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

    def _chosen(self, value: Value, other: str) -> Value:
        """Select under the mask: elsewhere the elements of another vector."""
        type = self.typed(value.type)
        line = f"select {self.typed('i1')} {self.mask}, {type} {value.name}, {type} {other}"
        return self.emit(value.type, line)

    def _masked(self, k: int, value: Value) -> Value:
        """Select under the mask: elsewhere the neutral element of the reduction."""
        store = self.nest.stores[k]
        start = literal(start_value(store.mode, store.place.buffer.dtype), value.type)
        return self._chosen(value, self.literal(start))

    def _store(self, k: int) -> None:
        store = self.nest.stores[k]
        vectors = self.loops.simd >= 0
        value = self.values[store.source]
        if vectors and (store.mode == SET or k in self.folded or value.name[0] == "%"):
            value = Value(self.whole(value, self.varying[store.source]), value.type)
        if k in self.summed:
            self._add(k, value, vectors)
        elif k in self.folded:
            if self.mask:
                value = self._masked(k, value)
            self._finish(k, value, vectors)
        elif self.width > 1 and self.loops.rows and store.place.strides[0] != 1:
            self._scattered(k, value.name, store.place)
        elif store.mode == SET:
            self._put(value.name, self._target(k), store.place, vectors)
        else:
            self._finish(k, value, vectors)

    def _blocks(self, level: int) -> None:
        """Step over blocks of rows; the last overlaps the one before if rows are left."""
        extent = self.nest.domain[0]
        first, last = ("%from", "%to") if self.part else ("0", str(extent))
        latest = self.emit("i64", f"sub nsw i64 {last}, {self.width}").name

        def step(index: str) -> None:
            over = self.emit("i1", f"icmp sgt i64 {index}, {latest}").name
            self._step(level, self.emit("i64", f"select i1 {over}, i64 {latest}, i64 {index}").name)

        self._loop(first, last, self.width, step)

    def _rows(self) -> set[int]:
        """Store adjacent columns as rows, by transposing in registers; returns the stores done."""
        runs = columns(self.nest)
        for run in runs:
            place = self.nest.stores[run[0]].place
            kind = memory(place.buffer.dtype)
            type = self.typed(kind)

            def shuffle(x: str, y: str, order: tuple[int, ...], type: str = type) -> str:
                places = ", ".join([f"i32 {i}" for i in order])
                line = f"shufflevector {type} {x}, {type} {y}, <{len(order)} x i32> <{places}>"
                return self.emit("", line).name

            for first in range(0, len(run), SIDE):
                sources = [self.nest.stores[k].source for k in run[first : first + SIDE]]
                names = [self.whole(self.values[a], self.varying[a]) for a in sources]
                for i, name in enumerate(transpose(names, shuffle)):
                    off = i * place.strides[0] + first
                    line = f"getelementptr inbounds {kind}, ptr {self.stores[run[0]]}, i64 {off}"
                    at = self.emit("ptr", line).name
                    self.lines.append(f"store <{len(names)} x {kind}> {name}, ptr {at}, align 8")
        return {k for run in runs for k in run}

    def _scattered(self, k: int, name: str, place: Place) -> None:
        """Scatter a vector to strided elements."""
        kind, pointers, all_ = memory(place.buffer.dtype), self.typed("ptr"), self.typed("i1")
        type, size = self.typed(kind), place.buffer.dtype.itemsize
        symbol = f"{_masked('scatter', self.width, kind)[:-3]}.v{self.width}p0"
        self.declared.add(f"declare void @{symbol}({type}, {pointers}, i32 immarg, {all_})")
        at = self._addresses(self.stores[k], place)
        self.lines.append(
            f"call void @{symbol}({type} {name}, {pointers} {at}, i32 {size}, "
            f"{all_} splat (i1 true))"
        )

    def _finish(self, k: int, value: Value, vectors: bool) -> None:
        store = self.nest.stores[k]
        address = self._target(k)
        if k in self.folded:
            value, vectors = self._fold(k, value), False
        if k in self.outer or store.mode == ADD:
            before = self._read(address, store.place, vectors)
            value = self.combine(store.mode, before, value, vectors)
        self._put(value.name, address, store.place, vectors)

    def _target(self, k: int) -> str:
        nest = self.nest
        gathers = nest.gathers[len(nest.loads) + k] if nest.gathers else ()
        return self._gather_address(self.stores[k], nest.stores[k].place, gathers)


def _masked(what: str, width: int, kind: str) -> str:
    short = {"double": "f64", "float": "f32"}.get(kind, kind)
    return f"llvm.masked.{what}.v{width}{short}.p0"
