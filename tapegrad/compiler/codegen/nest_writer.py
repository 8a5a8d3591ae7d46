"""Write a loop nest as LLVM text.

LLVM's vectoriser, and the passes that prepare loops for it and clean up after it, take most of the
compile time of a program with many loops.  A nest already holds all that these find out, so its
loops are written in the order of its `LoopOrder`, one of them vectorised, with loop-invariant code
hoisted: there is nothing left to optimise.  Where none is vectorised, LLVM may do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tapegrad.compiler.codegen.loop_order import LoopOrder, Segment, loop_order_of, segments
from tapegrad.compiler.codegen.transpose import SIDE, columns, transpose
from tapegrad.compiler.codegen.vector_lines import VectorLines, intrinsic
from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import (
    ADD,
    SET,
    Gathers,
    Nest,
    Store,
    Term,
    memory,
    register,
    start_value,
)
from tapegrad.compiler.llvm.scalar_ops import Value, literal


def plain_order(nest: Nest) -> LoopOrder:
    """The loops of a nest as they are, none of them vectorised."""
    return LoopOrder(tuple(range(len(nest.domain))), -1, 1)


class Tiling(Protocol):
    """Writes the loops from a level on in tiles, see `loop_tiling`."""

    level: int

    def write(self, writer: NestWriter) -> None: ...


class NestWriter(VectorLines):
    """Writes the function of one nest."""

    def __init__(
        self, nest: Nest, loops: LoopOrder, guarded: bool, part: bool = False,
        tiles: Tiling | None = None, names: str = "",
    ) -> None:  # fmt: skip
        super().__init__(names, guarded)
        self.nest = nest
        self.loops = loops
        self.tiles = tiles
        self.ends = ("%from", "%to") if part else None  # of the outermost loop
        self.noted = False  # whether some argument may be outside the domain of a fast form
        self.loads = [f"%l{k}" for k in range(len(nest.loads))]
        self.stores = [f"%s{k}" for k in range(len(nest.stores))]
        self.values: dict[int, Value] = {}  # of terms (>= 0) and of loads (~k)
        self.accumulators: dict[int, str] = {}  # that the nest around this one has
        self.inner = 0  # nests written within this one
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
            self.depth[k] = max([self.depth[a] for a in term.args], default=0) if nest.domain else 0
            self.varying[k] = loops.simd >= 0 and any(self.varying[a] for a in term.args)
        self.indices = {load for gathers in nest.gathers for load, _, _ in gathers}
        read = {a for term in nest.terms for a in term.args} | {s.source for s in nest.stores}
        self.direct = [k for k in range(len(nest.loads)) if ~k in read and k not in self.indices]
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

    def functions(self) -> set[tuple[int, str]]:
        """The functions that are called, with the width of their vectors."""
        return {(width, name) for width, used in self.used.items() for name in used}

    # -- loops ---------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the body."""
        for k in self.outer:
            self._fill(k)
        self.enter(0)

    def within(
        self, nest: Nest, loops: LoopOrder, loads: list[str], stores: list[str]
    ) -> NestWriter:
        """The writer of a nest within this one, which is then `add`ed."""
        self.inner += 1
        found = NestWriter(nest, loops, False, names=f"{self.names}n{self.inner}.")
        found.hint = self.hint
        found.loads, found.stores = loads, stores
        return found

    def add(self, inner: NestWriter) -> None:
        """Append what the writer of an inner nest has written."""
        self.lines += inner.lines
        self.allocas += inner.allocas
        self.declared |= inner.declared
        for width, used in inner.used.items():
            self.used.setdefault(width, set()).update(used)

    def continues(self, around: NestWriter, numbers: list[int]) -> None:
        """Reduce further what the nest around this one reduces, given its stores' numbers."""
        for k, number in enumerate(numbers):
            if number in around.outer:
                self.outer.append(k)
            if around.summed.get(number, len(around.nest.domain)) <= len(around.nest.domain) - len(
                self.nest.domain
            ):
                self.accumulators[k] = around._accumulator(number, False)[0]
                self.summed[k] = -1  # from a loop around this nest

    def _fill(self, k: int) -> None:
        """Initialise the result of a reduction in memory."""
        store = self.nest.stores[k]
        place, dtype = store.place, store.place.buffer.dtype
        dims = [d for d, s in enumerate(place.strides) if s]
        shape = tuple([self.nest.domain[d] for d in dims])
        place = place._replace(shape=shape, strides=tuple([place.strides[d] for d in dims]))
        start = Term("constant", (), dtype, start_value(store.mode, dtype))
        nest = Nest(shape, (), (start,), (Store(0, place, SET),))
        divided = self.ends is not None and store.place.strides[0] != 0
        loops = loop_order_of(nest, divided) if self.loops.simd >= 0 else None
        inner = self.within(nest, loops or plain_order(nest), [], [self.stores[k]])
        inner.ends = self.ends if divided else None
        inner.write()
        self.add(inner)

    def enter(self, level: int) -> None:
        """Write what depends on the loops above only, then the inner loops."""
        opened = [k for k, at in self.summed.items() if at == level]
        inside = 0 <= self.loops.simd < level
        for k in opened:
            self._open(k, inside)
            for width in () if inside else self.widths:
                with self.at_width(width):
                    self._open(k, True)
        if self.tiles is None and 0 not in self.nest.domain:
            self._compute(level)
        if level == len(self.loops.order):
            beside = self._rows() if self.loops.rows else set()
            for k in range(len(self.nest.stores)):
                if k not in beside:
                    self._store(k)
        elif level == self.loops.simd and self.loops.rows:
            with self.at_width(self.loops.width):
                self._blocks(level)
        elif level == self.loops.simd:
            for segment in self.segments:
                with self.at_width(segment.width):
                    self._segment(level, segment)
        elif self.tiles is not None and level == self.tiles.level:
            self.tiles.write(self)
        elif self.nest.domain[self.loops.order[level]]:
            self.loop(*self.bounds(level), 1, lambda index: self._step(level, index))
        for k in opened:
            for width in () if inside else self.widths:
                with self.at_width(width):
                    self._add(k, self.fold(self.nest.stores[k].mode, self._total(k, True)), False)
            self._finish(k, self._total(k, inside), inside)

    def bounds(self, level: int) -> tuple[str, str]:
        """Where a loop begins and ends."""
        dim = self.loops.order[level]
        return self.ends if self.ends and dim == 0 else ("0", str(self.nest.domain[dim]))

    def _segment(self, level: int, segment: Segment) -> None:
        """The steps of a segment: a loop, or one that may be masked."""
        first, last, width = segment
        if last - first > width:
            steps = (str(first), str(last), width)
            self.loop(*steps, lambda index: self._step(level, index))
            return
        if last - first < width:
            bits = ["true" if first + i < last else "false" for i in range(width)]
            self.mask = f"<{', '.join([f'i1 {bit}' for bit in bits])}>"
        self._step(level, str(first))
        self.mask = ""

    def _step(self, level: int, index: str) -> None:
        """One step of the loop at a level."""
        with self.at(level, index):
            self.enter(level + 1)

    @contextmanager
    def at(self, level: int, index: str) -> Iterator[None]:
        """Point at the elements of one step of a loop meanwhile."""
        d = self.loops.order[level]
        before = (list(self.loads), list(self.stores))
        for names, places in (
            (self.loads, self.nest.loads),
            (self.stores, [s.place for s in self.nest.stores]),
        ):
            for k, place in enumerate(places):
                names[k] = self._offset(names[k], place, index, place.strides[d])
        yield
        self.loads[:], self.stores[:] = before

    def _offset(self, base: str, place: Place, index: str, stride: int) -> str:
        if stride == 0 or index == "0":
            return base
        steps = index
        if stride != 1:
            steps = self.uniform.share("i64", f"mul nsw i64 {index}, {stride}").name
        kind = memory(place.buffer.dtype)
        found = self.uniform.share("ptr", f"getelementptr inbounds {kind}, ptr {base}, i64 {steps}")
        return found.name

    # -- values --------------------------------------------------------------------------------

    def _compute(self, level: int) -> None:
        """Write the loads and terms that depend on so many loops."""
        for k in (*sorted(self.indices), *self.direct):
            if self.depth[~k] == level:
                self.values[~k] = self._load(k)
        for k, term in enumerate(self.nest.terms):
            if self.depth[k] == level:
                self.values[k] = self._term(k, term)

    def _term(self, k: int, term: Term) -> Value:
        if term.name == "constant":
            return literal(term.constant, register(term.dtype))
        varying = self.varying[k]
        code = self.vector if varying else self.uniform
        args = [self.values[a] for a in term.args]
        for i, a in enumerate(term.args if varying else ()):
            if not self.varying[a] and args[i].name[0] == "%":
                args[i] = Value(self.whole(args[i], False), args[i].type)
        if term.name == "to":
            found: Value | None = code.cast(args[0], register(term.dtype))
        else:
            found = code.apply(term.name, args)
        assert found is not None, term.name
        if varying:
            self.take()
        for bad in code.bad:
            self._note(bad, varying)
        code.bad.clear()
        return found

    def _note(self, bad: Value, varying: bool) -> None:
        """Note that an argument was outside the domain of a fast form."""
        self.noted = True
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
        return base

    def _load(self, k: int) -> Value:
        nest = self.nest
        place = nest.loads[k]
        gathers = nest.gathers[k] if nest.gathers else ()
        if self.loops.rows and self.varying[~k] and (gathers or place.strides[0] != 1):
            return self._gathered(k, place, gathers)
        address = self._gather_address(self.loads[k], place, gathers)
        return self.read(address, place, self.varying[~k])

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
            self.take()
            found = self.emit("", f"add nsw {self.typed('i64')} {index}, {found}").name
        kind = memory(place.buffer.dtype)
        line = f"getelementptr inbounds {kind}, ptr {base}, {self.typed('i64')} {found}"
        return self.emit("", line).name

    def _gathered(self, k: int, place: Place, gathers: Gathers) -> Value:
        """Gather a vector of strided or indexed elements."""
        dtype = place.buffer.dtype
        kind, pointers, all_ = memory(dtype), self.typed("ptr"), self.typed("i1")
        type, size = self.typed(kind), dtype.itemsize
        symbol = f"{intrinsic('gather', self.width, kind)[:-3]}.v{self.width}p0"
        self.declared.add(f"declare {type} @{symbol}({pointers}, i32 immarg, {all_}, {type})")
        at = self._addresses(self.loads[k], place, gathers)
        found = self.emit(
            kind, f"call {type} @{symbol}({pointers} {at}, i32 {size}, {all_} splat (i1 true), "
            f"{type} poison)",
        )  # fmt: skip
        if dtype.name == "bool":
            return self.emit("i1", f"trunc {type} {found.name} to {all_}")
        return found

    # -- results -------------------------------------------------------------------------------

    def _accumulator(self, k: int, vectors: bool) -> tuple[str, str]:
        kind = register(self.nest.stores[k].place.buffer.dtype)
        if k in self.accumulators:
            return self.accumulators[k], kind
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
            after = self.chosen(after, before.name)
        self.lines.append(f"store {type} {after.name}, ptr {name}")

    def _masked(self, k: int, value: Value) -> Value:
        """Select under the mask: elsewhere the neutral element of the reduction."""
        store = self.nest.stores[k]
        start = literal(start_value(store.mode, store.place.buffer.dtype), value.type)
        return self.chosen(value, self.literal(start))

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
            self.put(value.name, self._target(k), store.place, vectors)
        else:
            self._finish(k, value, vectors)

    def _blocks(self, level: int) -> None:
        """Step over blocks of rows; the last overlaps the one before if rows are left."""
        extent = self.nest.domain[0]
        first, last = self.ends or ("0", str(extent))
        latest = self.emit("i64", f"sub nsw i64 {last}, {self.width}").name

        def step(index: str) -> None:
            over = self.emit("i1", f"icmp sgt i64 {index}, {latest}").name
            self._step(level, self.emit("i64", f"select i1 {over}, i64 {latest}, i64 {index}").name)

        self.loop(first, last, self.width, step)

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
        symbol = f"{intrinsic('scatter', self.width, kind)[:-3]}.v{self.width}p0"
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
            value, vectors = self.fold(store.mode, value), False
        if k in self.outer or store.mode == ADD:
            before = self.read(address, store.place, vectors)
            value = self.combine(store.mode, before, value, vectors)
        self.put(value.name, address, store.place, vectors)

    def _target(self, k: int) -> str:
        nest = self.nest
        gathers = nest.gathers[len(nest.loads) + k] if nest.gathers else ()
        return self._gather_address(self.stores[k], nest.stores[k].place, gathers)
