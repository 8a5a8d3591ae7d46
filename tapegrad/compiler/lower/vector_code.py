"""Encode loop nests for the interpreter, which runs them without being compiled."""

from __future__ import annotations

from math import prod

import numpy as np

from tapegrad.compiler.codegen import vector_blocks as blocks
from tapegrad.compiler.codegen import vector_interpreter as machine
from tapegrad.compiler.ir.buffers import CONSTANT, INPUT, OUTPUT, Place
from tapegrad.compiler.ir.loop_nest import (
    ADD,
    SET,
    Nest,
    Store,
    Term,
    collapsed,
    start_value,
    supported,
)  # fmt: skip

REGISTER_BYTES = 8 * machine.CHUNK
CALL, ELEMENT = 15.0, 0.15  # nanoseconds of an instruction
SHORT = 8  # elements below which a call of a block is too dear for many
_COMBINED = {ADD: "add"}


class VectorCode:
    """The words of consecutive nests; `registers` is how many they need at most."""

    def __init__(self, scratch: int) -> None:
        self.scratch = scratch  # where registers begin
        self.count = 0
        self.words: list[int] = []
        self.blocks: dict[int, blocks.Block] = {}  # by the word that holds the address
        self.registers = 0
        self.terms = 0
        self.time = 0.0  # of a run, in nanoseconds

    def add(self, nest: Nest) -> bool:
        """Append a nest; False if it cannot be interpreted."""
        nest = collapsed(nest)
        inner = _vectorised_dimension(nest)
        if inner is None:
            return False
        written = _NestCode(self, nest, inner)
        if len(written.operands) > machine.OPERANDS_MOST:
            return False
        self.words += written.words(len(self.words) + 1)
        self.registers = max(self.registers, written.registers)
        self.count += 1
        self.terms += len(nest.terms)
        chunks = prod(nest.domain) / min(nest.domain[inner], machine.CHUNK)
        self.time += len(written.instructions) * (CALL * chunks + ELEMENT * prod(nest.domain))
        return True

    def table(self) -> np.ndarray:
        """The program, of a dtype that modules do not embed."""
        blocks.load(self.blocks.values())
        words = np.array([self.count, *self.words], np.int64)
        words[list(self.blocks)] = [block.address for block in self.blocks.values()]
        return words.view(np.uint64)


def _vectorised_dimension(nest: Nest) -> int | None:
    places = [*nest.loads, *[s.place for s in nest.stores]]
    rank = len(nest.domain)
    if not 0 < rank <= 1 + machine.OUTER or 0 in nest.domain or any(nest.gathers):
        return None
    if not all(supported(p.buffer.dtype) for p in places):
        return None
    if any(len(t.args) > blocks.MOST for t in nest.terms):
        return None
    if any(load.buffer is s.place.buffer for load in nest.loads for s in nest.stores):
        return None  # a scan
    fits = [d for d in range(rank) if all(p.strides[d] in (0, 1) for p in places)]
    fits = [
        d for d in fits
        if not any(s.mode in (SET, ADD) and s.place.strides[d] == 0 for s in nest.stores)
    ]  # fmt: skip
    if not fits:
        return None
    best = max(fits, key=lambda d: nest.domain[d])
    many = prod(nest.domain) // nest.domain[best]
    return None if nest.domain[best] < SHORT < many else best


class _NestCode:
    """One nest."""

    def __init__(self, code: VectorCode, nest: Nest, inner: int) -> None:
        self.code = code
        self.nest = nest
        self.inner = inner
        self.extent = nest.domain[inner]
        self.outer = [d for d in range(len(nest.domain)) if d != inner]
        self.operands: list[list[int]] = []
        self.blocks: list[blocks.Block] = []  # of the instructions
        self.instructions: list[list[int]] = []
        self.literals: list[tuple[int, int]] = []  # operands and their bits
        self.registers = 0
        self.free: list[int] = []
        self.before: list[tuple[Nest, int]] = []  # what initialises reductions
        self._write()

    # -- operands ------------------------------------------------------------------------------

    def window(self, place: Place) -> int:
        """An operand in a buffer."""
        size = place.buffer.dtype.itemsize
        steps = [place.strides[d] * size for d in self.outer]
        steps += [0] * (machine.OUTER - len(steps))
        kind = {INPUT: machine.INPUTS, OUTPUT: machine.OUTPUTS, CONSTANT: machine.CONSTANTS}.get(
            place.buffer.kind, machine.OTHERS
        )
        number, offset = place.buffer.number, place.offset * size
        if kind == machine.OTHERS:
            number, offset = machine.SCRATCH, offset + place.buffer.offset
        step = place.strides[self.inner] * size
        self.operands.append([kind, number, offset, step, *steps])
        return len(self.operands) - 1

    def register(self, *, kept: bool = False) -> int:
        """An operand between instructions; `kept` if it holds its value from chunk to chunk."""
        if self.free and not kept:
            return self.free.pop()
        offset = self.code.scratch + self.registers * REGISTER_BYTES
        self.registers += 1
        self.operands.append([machine.OTHERS, machine.SCRATCH, offset, *[0] * (1 + machine.OUTER)])
        return len(self.operands) - 1

    def literal(self, value: object, dtype: np.dtype) -> int:
        """An operand of one element among the words."""
        bits = int.from_bytes(
            np.array(value, dtype).tobytes().ljust(8, b"\0"), "little", signed=True
        )
        self.literals.append((len(self.operands), bits))
        self.operands.append([machine.OTHERS, machine.WORDS, 0, *[0] * (1 + machine.OUTER)])
        return len(self.operands) - 1

    def emit(self, block: blocks.Block, out: int, args: list[int], flags: int = 0) -> None:
        """An instruction, whose block is loaded later, with all others."""
        padded = [*args, *[args[0]] * (blocks.MOST - len(args))]
        self.blocks.append(block)
        self.instructions.append([0, flags, out, *padded])

    # -- the body ------------------------------------------------------------------------------

    def _write(self) -> None:
        nest = self.nest
        last = [-1] * len(nest.terms)  # the term that reads one last
        for k, term in enumerate(nest.terms):
            for a in term.args:
                if a >= 0:
                    last[a] = k
        kept = {s.source for s in nest.stores}
        direct: dict[int, int] = {}  # terms that are computed where they are stored
        for k, store in enumerate(nest.stores):
            unit = store.mode == SET and store.place.strides[self.inner] == 1
            if unit and store.source >= 0 and nest.terms[store.source].name != "constant":
                direct.setdefault(store.source, k)
        self.values: dict[int, int] = {}
        owned: dict[int, int] = {}
        for k, term in enumerate(nest.terms):
            if term.name == "constant":
                self.values[k] = self._filled(self.literal(term.constant, term.dtype), term.dtype)
                continue
            args = [self._value(a) for a in term.args]
            if k in direct:
                out = self.window(nest.stores[direct[k]].place)
            else:
                out = owned[k] = self.register()
            dtypes = tuple([self._dtype(a) for a in term.args])
            self.emit(blocks.operation(term.name, dtypes, term.dtype), out, args)
            self.values[k] = out
            for a in {a for a in term.args if a in owned and last[a] == k and a not in kept}:
                self.free.append(owned.pop(a))
        for k, store in enumerate(nest.stores):
            if direct.get(store.source) != k:
                self._store(store)

    def _dtype(self, a: int) -> np.dtype:
        return self.nest.terms[a].dtype if a >= 0 else self.nest.loads[~a].buffer.dtype

    def _filled(self, source: int, dtype: np.dtype) -> int:
        out = self.register(kept=True)
        self.emit(blocks.filled(dtype), out, [source], machine.FIRST)
        return out

    def _value(self, a: int) -> int:
        found = self.values.get(a)
        if found is None:
            place = self.nest.loads[~a]
            found = self.window(place)
            if place.strides[self.inner] == 0 and self.extent > 1:
                found = self._filled(found, place.buffer.dtype)
            self.values[a] = found
        return found

    def _store(self, store: Store) -> None:
        source, place = self._value(store.source), store.place
        dtype = place.buffer.dtype
        if store.mode == SET:
            self.emit(blocks.copied(dtype), self.window(place), [source])
            return
        name = _COMBINED.get(store.mode, store.mode)
        across = place.strides[self.inner] == 0
        outside = any(place.strides[d] == 0 for d in self.outer) or store.mode == ADD
        alone = across and not outside and self.extent <= machine.CHUNK
        out = self.window(place)
        if alone:
            self.emit(blocks.reduced(store.mode, dtype), out, [source])
            return
        if store.mode != ADD:
            self._initialise(store)
        flags = machine.SINGLE if across else 0
        if across:
            part = self.register()
            self.emit(blocks.reduced(name, dtype), part, [source])
            source = part
        after = self.register()
        self.emit(blocks.operation(name, (dtype, dtype), dtype), after, [out, source], flags)
        self.emit(blocks.copied(dtype), out, [after], flags)

    def _initialise(self, store: Store) -> None:
        """Fill the result of a reduction with the neutral element, in a nest before this one."""
        place, dtype = store.place, store.place.buffer.dtype
        dims = [d for d, s in enumerate(place.strides) if s]
        adjacent = [d for d in dims if place.strides[d] == 1]  # blocks write no gaps
        dims += [] if adjacent else [self.inner]
        shape = tuple([self.nest.domain[d] if place.strides[d] else 1 for d in dims])
        target = place._replace(shape=shape, strides=tuple([place.strides[d] for d in dims]))
        term = Term("constant", (), dtype, start_value(store.mode, dtype))
        nest = Nest(shape, (), (term,), (Store(0, target, SET),))
        self.before.append((nest, dims.index((adjacent or dims)[-1])))

    def words(self, position: int) -> list[int]:
        """The words of the nest, which begin at a position of the program."""
        found: list[int] = []
        for nest, inner in self.before:
            code = _NestCode(self.code, nest, inner)
            self.registers = max(self.registers, code.registers)
            found += code.words(position + len(found))
            self.code.count += 1
        position += len(found)
        extents = [self.nest.domain[d] for d in self.outer]
        extents += [1] * (machine.OUTER - len(extents))
        size = len(self.operands) * machine.OPERAND + len(self.instructions) * machine.INSTRUCTION
        first = position + machine.HEADER + len(self.operands) * machine.OPERAND
        for k, block in enumerate(self.blocks):
            self.code.blocks[first + k * machine.INSTRUCTION] = block
        bits = position + machine.HEADER + size
        for k, (operand, _) in enumerate(self.literals):
            self.operands[operand][2] = 8 * (bits + k)
        length = machine.HEADER + size + len(self.literals)
        found += [length, *extents, self.extent, len(self.operands), len(self.instructions)]
        for row in (*self.operands, *self.instructions):
            found += row
        return [*found, *[b for _, b in self.literals]]
