"""Subscripts: elements and views of arrays, parts of tuples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.njit.numba_front.components import COMPLEX, components, element_of, in_words, parts_in
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, ir, types
from tapegrad.njit.numba_front.writer import ONE, ZERO, Found, Operands, Writer
from tapegrad.njit.three_address_code import ELEMENTS, Constant, Operand, Unsupported


class Slice(NamedTuple):
    """A slice; None stands for what is left out."""

    start: Operand | None
    stop: Operand | None
    step: Operand | None


class Chosen(NamedTuple):
    """Places in a dimension that a vector says, of indices or of conditions."""

    ops: Operands
    type: NumbaType


Entry = Slice | Chosen | Operand | None  # of a subscript; None: a new dimension


def is_index(entry: Entry) -> bool:
    """Whether an entry is one place in a dimension."""
    return isinstance(entry, str | Constant)


class Subscripts(Writer):
    """Writes the code of subscripts."""

    def entries(self, index: Any, ndim: int) -> list[Entry]:
        """The entries of a subscript that is a variable or, if Numba knows it, a Python object.

        `...` becomes slices, as many as dimensions are left.
        """
        found = self.written_entries(index)
        if Ellipsis in found:
            at, named = found.index(Ellipsis), sum(x is not None for x in found) - 1
            found[at : at + 1] = [Slice(None, None, None)] * (ndim - named)
        return found

    def written_entries(self, index: Any) -> list[Any]:
        """The entries as they stand there."""
        if not isinstance(index, ir.Var):
            return self.static_entries(index)
        t = self.type(index)
        if isinstance(t, types.Integer):
            return [self.get(index)[0]]
        if isinstance(t, types.SliceType):
            return [self.slices[index.name]]
        if isinstance(t, types.EllipsisType):
            return [...]
        if not isinstance(t, types.BaseTuple):
            raise Unsupported(f"an index of type {t}")
        ops, found, at = self.get(index), list[Any](), 0
        inner = self.slices.get(index.name) or [None] * len(t)
        for part, chosen in zip(t, inner):
            if isinstance(part, types.Integer):
                found.append(self.to(ops[at], "i64"))
            elif isinstance(part, types.SliceType) and chosen is not None:
                found.append(chosen)
            elif isinstance(part, types.NoneType):
                found.append(None)
            elif isinstance(part, types.EllipsisType):
                found.append(...)
            elif isinstance(part, types.Array):
                found.append(Chosen(ops[at : at + len(components(part))], part))
            else:
                raise Unsupported(f"an index of type {part}")
            at += len(components(part))
        return found

    def static_entries(self, index: Any) -> list[Any]:
        """The entries of a subscript of constants."""
        found: list[Any] = []
        for x in index if isinstance(index, tuple) else (index,):
            if isinstance(x, slice):
                parts = [None if p is None else Constant(int(p), "i64") for p in _parts(x)]
                found.append(Slice(*parts))
            elif x is None or x is Ellipsis:
                found.append(x)
            elif isinstance(x, int | np.integer):
                found.append(Constant(int(x), "i64"))
            else:
                raise Unsupported(f"an index of type {type(x).__name__}")
        return found

    def place(self, i: Operand, n: Operand) -> Operand:
        """An index as it counts from the start; where bounds are checked it has to lie in them."""
        if isinstance(i, Constant):
            at = i if i.value >= 0 else self.index("iadd", n, i)
        else:
            at = self.emit("wrap", [i, n], "i64")
        if self.typed.checks_bounds:
            self.require(self.emit("ge", [at, ZERO], "i1"))
            self.require(self.emit("lt", [at, n], "i1"))
        return at

    def clipped(self, i: Operand, n: Operand) -> Operand:
        """A bound of a slice, within an array's length."""
        if isinstance(i, Constant) and i.value >= 0:
            return self.emit("imin", [i, n], "i64") if i.value else ZERO
        at = self.emit("wrap", [i, n], "i64")
        return self.emit("imin", [self.emit("imax", [at, ZERO], "i64"), n], "i64")

    def clipped_back(self, i: Operand, n: Operand) -> Operand:
        """A bound of a slice that goes backwards, from -1 to the last place."""
        at = self.emit("wrap", [i, n], "i64")
        least = self.emit("imax", [at, Constant(-1, "i64")], "i64")
        return self.emit("imin", [least, self.index("isub", n, ONE)], "i64")

    def element_offset(self, ops: Operands, t: NumbaType, entries: list[Entry]) -> Operand:
        """The offset of one element."""
        offset: Operand = ZERO
        for i, n, step in zip(entries, self.shape(ops, t), self.strides(ops, t)):
            assert isinstance(i, str | Constant)
            offset = self.index("iadd", offset, self.index("imul", self.place(i, n), step))
        return offset

    def load(self, ops: Operands, t: NumbaType, offset: Operand) -> Found:
        """An element."""
        element = element_of(t)
        values: Operands = [
            self.emit("load", [ops[0], at], ELEMENTS[element], element)
            for at in self.places_in_memory(t, offset)
        ]
        return ([self.to(values[0], "i1")] if t.dtype == types.boolean else values), t.dtype

    def places_in_memory(self, t: NumbaType, offset: Operand) -> Operands:
        """The offsets of the parts of an element, of which a complex number has two."""
        first = self.index("imul", offset, Constant(parts_in(t), "i64"))
        more = [self.index("iadd", first, Constant(k, "i64")) for k in range(1, parts_in(t))]
        return [first, *more]

    def pointer_to(self, ops: Operands, t: NumbaType, offset: Operand) -> Operand:
        """The address of an element."""
        return self.emit("gep", [ops[0], self.places_in_memory(t, offset)[0]], "ptr", element_of(t))

    def part_of(self, name: str, ops: Operands, t: NumbaType) -> Found:
        """`real` or `imag` of a number, or of all elements of an array, whose parts are a view."""
        k = ("real", "imag").index(name)
        if not isinstance(t, types.Array):
            return ([ops[k]], COMPLEX[t]) if t in COMPLEX else ([*ops, ZERO][k : k + 1], t)
        if t.dtype not in COMPLEX:
            if name == "imag":
                raise Unsupported("`imag` of an array of real numbers")
            return ops, t
        pointer = self.emit("gep", [ops[0], Constant(k, "i64")], "ptr", element_of(t))
        twice = [self.index("imul", s, Constant(parts_in(t), "i64")) for s in self.strides(ops, t)]
        view = types.Array(COMPLEX[t.dtype], t.ndim, "A")
        return [pointer, *self.shape(ops, t), *twice], view

    def store(self, ops: Operands, t: NumbaType, offset: Operand, value: Found) -> None:
        """Write an element."""
        element, numbers = element_of(t), value[0]
        if t.dtype == types.boolean:
            numbers = [self.to(numbers[0], "i1")]
        elif parts_in(t) > 1:
            numbers = self.cast(*value, t.dtype)
        for at, x in zip(self.places_in_memory(t, offset), numbers):
            self.effect("store", ops[0], at, self.to(x, ELEMENTS[element]), attribute=element)

    def subscript(self, ops: Operands, t: NumbaType, entries: list[Entry]) -> Found:
        """An element or a view."""
        if len(entries) == t.ndim and all(map(is_index, entries)):
            return self.load(ops, t, self.element_offset(ops, t, entries))
        shape, strides = iter(self.shape(ops, t)), iter(self.strides(ops, t))
        offset: Operand = ZERO
        kept: list[tuple[Operand, Operand]] = []
        for entry in entries:
            if entry is None:
                kept.append((ONE, ZERO))
                continue
            n, step = next(shape), next(strides)
            if isinstance(entry, Slice):
                start, length, by = self.extent(entry, n)
                kept.append((length, self.index("imul", step, by)))
            elif isinstance(entry, Chosen):
                raise Unsupported("vectors as indices")
            else:
                start = self.place(entry, n)
            offset = self.index("iadd", offset, self.index("imul", start, step))
        kept += zip(shape, strides)
        pointer = self.pointer_to(ops, t, offset)
        view = types.Array(t.dtype, len(kept), "A")
        return [pointer, *(n for n, _ in kept), *(s for _, s in kept)], view

    def extent(self, entry: Slice, n: Operand) -> tuple[Operand, Operand, Operand]:
        """Where a slice starts in a dimension, its length, its step."""
        step = ONE if entry.step is None else entry.step
        if not isinstance(step, Constant) or step.value == 0:
            raise Unsupported("a slice whose step is not a constant")
        if step.value < 0:
            last, before = self.index("isub", n, ONE), Constant(-1, "i64")
            start = last if entry.start is None else self.clipped_back(entry.start, n)
            stop = before if entry.stop is None else self.clipped_back(entry.stop, n)
            length = self.emit("imax", [self.index("isub", start, stop), ZERO], "i64")
            return self.emit("imax", [start, ZERO], "i64"), self.steps(length, -step.value), step
        start = ZERO if entry.start is None else self.clipped(entry.start, n)
        if entry.stop is None and start == ZERO:
            return start, self.steps(n, step.value), step
        stop = n if entry.stop is None else self.clipped(entry.stop, n)
        length = self.emit("imax", [self.index("isub", stop, start), ZERO], "i64")
        return start, self.steps(length, step.value), step

    def steps(self, n: Operand, size: int) -> Operand:
        """How many steps of a size lie in a length that is not negative."""
        if size == 1:
            return n
        more = self.index("iadd", n, Constant(size - 1, "i64"))
        return self.emit("ifloordiv", [more, Constant(size, "i64")], "i64")

    def view_as(self, found: Found, want: NumbaType) -> Found:
        """A view in the layout that Numba knows of it."""
        ops, have = found
        if isinstance(have, types.Array) and isinstance(want, types.Array) and want.layout == "C":
            return ops[: 1 + want.ndim], want
        return found

    def item(self, value: NumbaIR, index: Any, want: NumbaType) -> Found:
        """`value[index]`."""
        base = self.type(value)
        if isinstance(base, types.BaseTuple):
            return self.tuple_item(value, base, index, want)
        if not isinstance(base, types.Array):
            raise Unsupported(f"a subscript of {in_words(base)}")
        return self.view_as(
            self.subscript(self.get(value), base, self.entries(index, base.ndim)), want
        )

    def parts(self, ops: Operands, t: NumbaType) -> list[Found]:
        """The parts of a tuple."""
        found, rest = list[Found](), iter(ops)
        for part in t:
            found.append(([next(rest) for _ in components(part)], part))
        return found

    def tuple_item(self, value: NumbaIR, base: NumbaType, index: Any, want: NumbaType) -> Found:
        """A part of a tuple; if the place is not known, of one whose parts are alike."""
        if isinstance(index, ir.Var):
            known = self.constant_of(index)
            if known is None:
                alike = types.UniTuple(want, len(base))
                parts = self.parts(self.get(value, alike), alike)
                return self.part_at(self.get(index)[0], parts)
            index = known
        parts = self.parts(self.get(value), base)
        if isinstance(index, slice):
            chosen = parts[index]
            ops = [x for part, _ in chosen for x in part]
            return ops, types.BaseTuple.from_types([t for _, t in chosen])
        return parts[int(index)]

    def part_at(self, k: Operand, parts: list[Found]) -> Found:
        """The part of a tuple at a place that is known at run time."""
        n = Constant(len(parts), "i64")
        at = self.emit("wrap", [k, n], "i64")
        self.require(self.emit("ge", [at, ZERO], "i1"))
        self.require(self.emit("lt", [at, n], "i1"))
        ops, t = parts[-1]
        if any(self.code.type_of(x) == "ptr" for x in ops):
            return self.array_at(at, parts)
        for j in range(len(parts) - 2, -1, -1):
            here = self.emit("eq", [at, Constant(j, "i64")], "i1")
            ops = [self.chosen(here, x, y) for x, y in zip(parts[j][0], ops, strict=True)]
        return ops, t

    def array_at(self, at: Operand, parts: list[Found]) -> Found:
        """The part of a tuple with arrays at a place: the one to which a branch leads."""
        names: Operands = [self.code.name(self.code.type_of(x), "r") for x in parts[0][0]]
        after = self.code.block()
        for j, (ops, _) in enumerate(parts):
            others = self.current
            if j < len(parts) - 1:
                here, others = self.code.block(), self.code.block()
                this = self.emit("eq", [at, Constant(j, "i64")], "i1")
                self.current.end("branch", (this,), here.label, others.label)
                self.current = here
            for name, value in zip(names, ops, strict=True):
                self.copy(value, str(name))
            self.current.end("jump", (), after.label)
            self.current = others
        self.current = after
        return names, parts[0][1]


def _parts(x: slice) -> tuple[Any, Any, Any]:
    return x.start, x.stop, x.step
