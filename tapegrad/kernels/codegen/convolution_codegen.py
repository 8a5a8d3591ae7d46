"""Generate the innermost loops of direct convolutions, which keep a block of sums in registers.

`tile` is the loop of a product of matrices one of which is nowhere: its rows are read from packed
images at offsets.  `correlation` is that of a product whose sums run over the positions.  A block
is as large as the vector registers are many: each value that is loaded then meets several others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from tapegrad.kernels import build

WORD = ir.IntType(64)
REGISTERS = {64: 32, 32: 16}  # by bytes of a vector
ARGUMENTS = 8


class Vectors(NamedTuple):
    """The vectors of a type that the machine has."""

    dtype: str
    lanes: int
    registers: int

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype[1])

    @property
    def element(self) -> ir.Type:
        """The type of an element."""
        return ir.FloatType() if self.dtype == "f4" else ir.DoubleType()

    @property
    def type(self) -> ir.Type:
        """The type of a vector."""
        return ir.VectorType(self.element, self.lanes)


def vectors(dtype: str) -> Vectors:
    """The widest vectors of a type."""
    features = build.binding().get_host_cpu_features()
    nbytes = 64 if features.get("avx512f") else 32
    return Vectors(dtype, nbytes // int(dtype[1]), REGISTERS[nbytes])


def tile_shape(outputs: int, kind: Vectors) -> tuple[int, int]:
    """How many outputs, and how many vectors of positions, a tile has."""
    most = kind.registers // 4
    rows = -(-outputs // -(-outputs // most))
    return rows, min(kind.registers * 3 // 4 // rows, 6)


def block_shape(outputs: int, kind: Vectors) -> tuple[int, int]:
    """How many outputs, and how many taps, a block of a correlation has."""
    most = 6 if kind.registers == 32 else 3
    return -(-outputs // -(-outputs // most)), 4


class _Kernel:
    """A function of words with one loop, under construction."""

    def __init__(self, kind: Vectors) -> None:
        self.kind, self.module = kind, ir.Module()
        shape = ir.FunctionType(WORD, [WORD] * ARGUMENTS)
        function = ir.Function(self.module, shape, build.SYMBOL)
        self.arguments: Sequence[ir.Value] = function.args
        name = f"v{kind.lanes}f{8 * kind.itemsize}"
        three = ir.FunctionType(kind.type, [kind.type] * 3)
        self.fma = ir.Function(self.module, three, f"llvm.fma.{name}")
        summing = ir.FunctionType(kind.element, [kind.element, kind.type])
        self.sum = ir.Function(self.module, summing, f"llvm.vector.reduce.fadd.{name}")
        names = ("entry", "loop", "end")
        self.entry, self.body, self.end = [function.append_basic_block(name) for name in names]
        self.b = ir.IRBuilder(self.entry)

    def pointer(self, at: ir.Value, to: ir.Type) -> ir.Value:
        """The address as a pointer."""
        return self.b.inttoptr(at, to.as_pointer())

    def load(self, at: ir.Value, of: ir.Type) -> ir.Value:
        """What stands at an address, which need not be aligned."""
        return self.b.load(self.pointer(at, of), align=self.kind.itemsize)

    def store(self, value: ir.Value, at: ir.Value) -> None:
        """Write to an address."""
        self.b.store(value, self.pointer(at, value.type), align=self.kind.itemsize)

    def after(self, at: ir.Value, count: int) -> ir.Value:
        """The address so many elements behind."""
        return self.b.add(at, WORD(count * self.kind.itemsize))

    def spread(self, x: ir.Value) -> ir.Value:
        """A vector of one number."""
        nothing = ir.Constant(self.kind.type, ir.Undefined)
        one = self.b.insert_element(nothing, x, ir.IntType(32)(0))
        places = ir.VectorType(ir.IntType(32), self.kind.lanes)
        return self.b.shuffle_vector(one, nothing, ir.Constant(places, [0] * self.kind.lanes))

    def start(self, sums: int) -> tuple[ir.Value, list[ir.Value]]:
        """Begin the loop: its counter, and sums that are zero at first."""
        self.b.branch(self.body)
        self.b.position_at_end(self.body)
        zero = ir.Constant(self.kind.type, [0.0] * self.kind.lanes)
        counter = self.b.phi(WORD)
        counter.add_incoming(WORD(0), self.entry)
        found = []
        for _ in range(sums):
            found.append(self.b.phi(self.kind.type))
            found[-1].add_incoming(zero, self.entry)
        return counter, found

    def repeat(self, counter: ir.Value, old: list[ir.Value], new: list[ir.Value]) -> None:
        """End the loop, which runs as often as the first argument says."""
        more = self.b.add(counter, WORD(1))
        counter.add_incoming(more, self.body)
        for a, b in zip(old, new, strict=True):
            a.add_incoming(b, self.body)
        self.b.cbranch(self.b.icmp_signed("<", more, self.arguments[0]), self.body, self.end)
        self.b.position_at_end(self.end)

    def text(self) -> str:
        """The module."""
        self.b.ret(WORD(0))
        return str(self.module)


def tile(kind: Vectors, rows: int, width: int) -> str:
    """Compute (depth, offsets, packed, filters, out, step): a block of outputs at some positions.

    The result has `rows` rows of `width` vectors that begin `step` bytes apart.
    """
    k = _Kernel(kind)
    b, (_, offsets, packed, filters, out, step, *_) = k.b, k.arguments
    counter, sums = k.start(rows * width)
    offset = k.load(b.add(offsets, b.shl(counter, WORD(3))), WORD)
    at = b.add(packed, offset)
    found = [k.load(k.after(at, v * kind.lanes), kind.type) for v in range(width)]
    at = b.add(filters, b.mul(counter, WORD(rows * kind.itemsize)))
    weights = [k.spread(k.load(k.after(at, r), kind.element)) for r in range(rows)]
    terms = [(x, w) for w in weights for x in found]
    new = [b.call(k.fma, [x, w, s]) for (x, w), s in zip(terms, sums, strict=True)]
    k.repeat(counter, sums, new)
    for r in range(rows):
        at = b.add(out, b.mul(step, WORD(r)))
        for v in range(width):
            k.store(new[r * width + v], k.after(at, v * kind.lanes))
    return k.text()


def correlation(kind: Vectors, rows: int, columns: int) -> str:
    """Add (steps, weights, step, packed, offsets, sums): products over positions, to a block.

    Rows of weights begin `step` bytes apart; of each column the offset of its tap is given.
    """
    k = _Kernel(kind)
    b, (_, weights, step, packed, offsets, sums_at, *_) = k.b, k.arguments
    starts = [b.add(packed, k.load(b.add(offsets, WORD(8 * c)), WORD)) for c in range(columns)]
    starts += [b.add(weights, b.mul(step, WORD(r))) for r in range(rows)]
    counter, sums = k.start(rows * columns)
    here = b.mul(counter, WORD(kind.lanes * kind.itemsize))
    found = [k.load(b.add(start, here), kind.type) for start in starts]
    terms = [(found[c], found[columns + r]) for r in range(rows) for c in range(columns)]
    new = [b.call(k.fma, [x, w, s]) for (x, w), s in zip(terms, sums, strict=True)]
    k.repeat(counter, sums, new)
    for i, total in enumerate(new):
        at = k.after(sums_at, i)
        before = k.load(at, kind.element)
        added = b.call(k.sum, [ir.Constant(kind.element, -0.0), total], fastmath=("reassoc",))
        k.store(b.fadd(before, added), at)
    return k.text()
