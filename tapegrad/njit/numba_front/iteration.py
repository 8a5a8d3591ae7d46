"""Ranges, lengths, and what a loop runs over."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.njit.numba_front.components import sequence
from tapegrad.njit.numba_front.objects import NumbaIR, NumbaType, types
from tapegrad.njit.numba_front.subscripts import Slice, Subscripts
from tapegrad.njit.numba_front.writer import ONE, ZERO, Found, Operands
from tapegrad.njit.three_address_code import Constant, Operand, Unsupported

INDEXED: tuple[Any, ...] = (np.ndindex, np.ndenumerate, np.nditer)
INDEXED_ITERATORS = (
    types.NumpyFlatType, types.NumpyNdEnumerateType, types.NumpyNdIterType, types.NumpyNdIndexType,
)  # fmt: skip


class Iteration(Subscripts):
    """Writes the code of iterators."""

    def slice_of(self, args: list[NumbaIR]) -> Slice:
        """`slice(...)`."""
        parts = [None if isinstance(self.type(a), types.NoneType) else self.get(a)[0] for a in args]
        padded = [None, *parts] if len(parts) == 1 else parts
        return Slice(*[*padded, None, None][:3])

    def range(self, args: list[NumbaIR]) -> Operands:
        """`range(...)`: start, step and count."""
        ops = [self.number(a, "i64") for a in args]
        start, stop, step = (
            (ZERO, ops[0], ONE) if len(ops) == 1 else (*ops, ONE) if len(ops) == 2 else ops
        )
        if not isinstance(step, Constant):
            return self.range_of_any_step(start, stop, step)
        if step.value == 0:
            raise Unsupported("a range whose step is zero")
        down = step.value < 0
        span = self.index("isub", *((start, stop) if down else (stop, start)))
        if isinstance(span, Constant):
            count: Operand = Constant(max(0, -(-span.value // abs(step.value))), "i64")
        else:
            count = self.steps(self.emit("imax", [span, ZERO], "i64"), abs(step.value))
        return [start, step, count]

    def range_of_any_step(self, start: Operand, stop: Operand, step: Operand) -> Operands:
        """A range whose step is known at run time."""
        self.require(self.emit("ne", [step, ZERO], "i1"))
        down = self.emit("lt", [step, ZERO], "i1")
        there, back = self.index("isub", stop, start), self.index("isub", start, stop)
        span = self.emit("imax", [self.chosen(down, back, there), ZERO], "i64")
        size = self.emit("iabs", [step], "i64")
        more = self.index("iadd", span, self.index("isub", size, ONE))
        return [start, step, self.emit("ifloordiv", [more, size], "i64")]

    def indexed(self, key: Any, args: list[NumbaIR], t: NumbaType) -> Operands:
        """`np.ndindex`, `np.ndenumerate` and `np.nditer` of one array."""
        ops = [x for a in args for x in self.names(a)]
        if key is np.ndindex:
            shape = [self.to(x, "i64") for x in ops]
            shape = [self.emit("imax", [n, ZERO], "i64") for n in shape]
            return [*shape, self.product(shape), ZERO]
        a = self.type(args[0])
        if not isinstance(a, types.Array) or (key is np.nditer and a.layout != "C"):
            raise Unsupported(f"`np.{key.__name__}` of {a}")
        return [*ops, self.product(self.shape(ops, a)), ZERO]

    def indices(self, k: Operand, shape: Operands) -> Operands:
        """The indices of an element by its number in C order."""
        found: Operands = []
        for n in reversed(shape[1:]):
            found.append(self.emit("imod", [k, n], "i64"))
            k = self.emit("ifloordiv", [k, n], "i64")
        return [k, *reversed(found)] if shape else []

    def numbered(self, ops: Operands, a: NumbaType, k: Operand) -> tuple[Operand, Operands]:
        """The offset and the indices of an element by its number in C order."""
        places = self.indices(k, self.shape(ops, a))
        if a.layout == "C":
            return k, places
        offset: Operand = ZERO
        for i, step in zip(places, self.strides(ops, a)):
            offset = self.index("iadd", offset, self.index("imul", i, step))
        return offset, places

    def length(self, ops: Operands, t: NumbaType) -> Operand:
        """`len(...)`."""
        if isinstance(t, types.BaseTuple):
            return Constant(len(t), "i64")
        if isinstance(t, types.Array):
            return self.shape(ops, t)[0] if t.ndim else ZERO
        if isinstance(t, types.RangeType):
            return ops[2]
        raise Unsupported(f"the length of {t}")

    def parts_of(self, ops: Operands, t: NumbaType) -> Operands:
        """What an iterator holds of a value that is iterated over, and the count."""
        if isinstance(t, types.RangeType | types.Array | types.BaseTuple):
            kept = ops[:2] if isinstance(t, types.RangeType) else ops
            return [*kept, self.length(ops, t)]
        if isinstance(t, (types.EnumerateType, types.ZipType, *INDEXED_ITERATORS)):
            return ops[:-1]
        raise Unsupported(f"a loop over {t}")

    def held_by(self, t: NumbaType, var: NumbaIR) -> Operands:
        """What an iterator over a variable holds, and the count; of a tuple all parts are alike."""
        if isinstance(t, types.UniTupleIter):
            return self.parts_of(self.get(var, t.container), t.container)
        if isinstance(self.type(var), types.StringLiteral):
            return self.parts_of(self.get(var, types.unicode_type), types.unicode_type)
        return self.parts_of(self.names(var), self.type(var))

    def iterator_over(self, key: Any, args: list[NumbaIR], t: NumbaType) -> Operands:
        """`enumerate` or `zip`."""
        first: Operands = []
        if key is enumerate:
            first = [self.number(args[1], "i64") if len(args) > 1 else ZERO]
            args = args[:1]
        sources = [t.source_type] if key is enumerate else t.source_types
        parts, counts = first, list[Operand]()
        for a, source in zip(args, sources):
            *held, count = self.held_by(source, a)
            parts = [*parts, *held]
            counts.append(count)
        least = counts[0] if counts else ZERO
        for count in counts[1:]:
            least = self.emit("imin", [least, count], "i64")
        return [*parts, least, ZERO]

    def element(self, ops: Operands, t: NumbaType, k: Operand) -> Found:
        """What an iterator gives at a place."""
        if isinstance(t, types.RangeIteratorType):
            return [self.index("iadd", ops[0], self.index("imul", k, ops[1]))], t.yield_type
        if isinstance(t, types.ArrayIterator):
            a = t.array_type
            offset = self.index("imul", k, self.strides(ops, a)[0])
            if a.ndim == 1:
                return self.load(ops, a, offset)
            pointer = self.pointer_to(ops, a, offset)
            rest = [*self.shape(ops, a)[1:], *self.strides(ops, a)[1:]]
            view = types.Array(a.dtype, a.ndim - 1, "A")
            return self.view_as(([pointer, *rest], view), t.yield_type)
        if isinstance(t, types.NumpyNdIndexType):
            return self.indices(k, ops), t.yield_type
        if isinstance(t, types.NumpyFlatType):
            return self.load(ops, t.array_type, self.numbered(ops, t.array_type, k)[0])
        if isinstance(t, types.NumpyNdEnumerateType):
            offset, places = self.numbered(ops, t.array_type, k)
            return [*places, *self.load(ops, t.array_type, offset)[0]], t.yield_type
        if isinstance(t, types.NumpyNdIterType):
            a = t.arrays[0]
            return [self.pointer_to(ops, a, k)], t.yield_type
        if isinstance(t, types.UniTupleIter):
            return self.part_at(k, self.parts(ops, t.container))
        if isinstance(t, types.EnumerateType):
            value, kind = self.element(ops[1:], t.source_type, k)
            value = self.cast(value, kind, t.yield_type[1])
            return [self.index("iadd", ops[0], k), *value], t.yield_type
        found: Operands = []
        for source, part in zip(t.source_types, t.yield_type):
            count = len(sequence(source))
            value, kind = self.element(ops[:count], source, k)
            found += self.cast(value, kind, part)
            ops = ops[count:]
        return found, t.yield_type
