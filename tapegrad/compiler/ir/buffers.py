"""Buffers, and strided windows into them.

A view (a slice, a transpose, a broadcast) costs nothing in a compiled program: its result is
another window into the same buffer.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.ir.graph import Node
from tapegrad.ops.core import Op
from tapegrad.tape.shape_table import Shape

INPUT, OUTPUT, CONSTANT, SCRATCH = "input", "output", "constant", "scratch"
# Of `Op.moves`: the result is a window into the operand, if its strides allow.
WINDOWS = ("identity", "reshape", "broadcast", "reverse", "strided", "sliding", "chain")


class Buffer:
    """A piece of memory: of the caller (input, output), of the program, or borrowed for a run."""

    __slots__ = ("dtype", "first", "kind", "last", "number", "offset", "size")

    def __init__(self, kind: str, number: int, dtype: np.dtype[Any], size: int) -> None:
        self.kind = kind
        self.number = number
        self.dtype = dtype
        self.size = size
        self.offset = 0  # in bytes, within scratch memory
        self.first = -1  # its live range in steps
        self.last = -1

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.size * self.dtype.itemsize


class Gather(NamedTuple):
    """An offset that is read: an element of an index array (a window over the result), times
    a stride; the index counts from the end of `extent` elements where it is negative.
    """

    index: Any  # a Place
    stride: int
    extent: int


class Place(NamedTuple):
    """A window into a buffer; offset and strides count elements, gathered indices add to them."""

    buffer: Buffer
    offset: int
    shape: Shape
    strides: Shape
    gathers: tuple[Gather, ...] = ()

    def broadcast(self, shape: Shape) -> Place:
        """Broadcast to a larger shape."""
        extra = len(shape) - len(self.shape)
        kept = [
            s if n == m else 0
            for s, n, m in zip(self.strides, self.shape, shape[extra:], strict=True)
        ]
        gathers = tuple([p._replace(index=p.index.broadcast(shape)) for p in self.gathers])
        return Place(self.buffer, self.offset, shape, (*(0,) * extra, *kept), gathers)

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        if self.gathers:
            return False
        expected = 1
        for n, s in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and s != expected:
                return False
            expected *= n
        return True


def boxed(place: Place, first: Shape, extent: Shape) -> Place:
    """The part of a window from an index on."""
    if place.shape == extent and not any(first):
        return place
    offset = place.offset + sum([k * s for k, s in zip(first, place.strides, strict=True)])
    gathers = tuple([p._replace(index=boxed(p.index, first, extent)) for p in place.gathers])
    return Place(place.buffer, offset, extent, place.strides, gathers)


@cache
def blank(dtype: np.dtype[Any]) -> Buffer:
    """A buffer without memory, to run views on."""
    return Buffer(SCRATCH, 0, dtype, 0)


def layout(place: Place) -> Place:
    """The layout of a window apart from its address, for comparison."""
    return Place(blank(place.buffer.dtype), 0, place.shape, place.strides)


def whole(buffer: Buffer, shape: Shape, offset: int = 0) -> Place:
    """A window in C order."""
    return Place(buffer, offset, shape, c_strides(shape))


def c_strides(shape: Shape) -> Shape:
    """The strides of a C-ordered array, in elements."""
    steps: list[int] = []
    step = 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))


def window(place: Place, node: Node) -> Place | None:
    """The window of a view of an operand's window; None if elements must be copied."""
    if not isinstance(node.op, Op) or node.op.moves not in WINDOWS:
        return None
    if node.op.moves == "chain":
        return follow(place, node.params["chain"])
    return _step(place, node.op, node.params)


def follow(place: Place, chain: Any) -> Place | None:
    """The window that a chain of view operations leads to."""
    for op, params in chain:
        found = _step(place, op, params)
        if found is None:
            return None
        place = found
    return place


def _step(place: Place, op: Op, params: dict[str, Any]) -> Place | None:
    """The window that one view operation leads to."""
    if not place.gathers:
        return _viewed(place, op, params)
    viewed = _viewed(place._replace(gathers=()), op, params)
    indices = [_viewed(p.index, op, params) for p in place.gathers]
    if viewed is None or any(i is None for i in indices):
        return None
    gathers = [p._replace(index=i) for p, i in zip(place.gathers, indices, strict=True)]
    return viewed._replace(gathers=tuple(gathers))


def _viewed(place: Place, op: Op, params: dict[str, Any]) -> Place | None:
    """Run a view operation on an array that lies as the window does and has no memory.

    NumPy computes a view's strides without looking at the elements.
    """
    unit = np.empty(1, np.uint8)  # one byte is one element
    start = int(unit.__array_interface__["data"][0])
    array = np.lib.stride_tricks.as_strided(unit, place.shape, place.strides)
    if op.moves == "identity":
        return place
    if op.name == "reshape":
        return reshaped(place, params["shape"])
    if op.moves == "broadcast":
        return place.broadcast(params["shape"])
    if op.moves == "reverse":
        turned: list[Any] = [
            slice(None, None, -1 if d in params["dims"] else 1) for d in range(array.ndim)
        ]
        array = array[(*turned, ...)]
    elif op.name == "getitem":
        index = params["index"]  # integers alone would read the element
        array = array[index if any(i is ... for i in index) else (*index, ...)]
    elif op.moves in WINDOWS:
        array = op.forward(array, **params)
    else:
        return None
    offset = int(array.__array_interface__["data"][0]) - start
    if array.size == 0:
        offset = 0
    return Place(place.buffer, place.offset + offset, array.shape, array.strides)


def reshaped(place: Place, shape: Shape) -> Place | None:
    """Group by group: runs of dimensions with as many elements on both sides."""
    if 0 in shape or place.is_contiguous():
        return place._replace(shape=shape, strides=c_strides(shape))
    old = [(n, s) for n, s in zip(place.shape, place.strides, strict=True) if n != 1]
    strides: list[int] = []
    i = 0
    j = 0
    while j < len(shape):
        if shape[j] == 1:
            strides.append(0)
            j += 1
            continue
        first, low = i, j
        have, want = old[i][0], shape[j]
        while have != want:
            if have < want:
                i += 1
                have *= old[i][0]
            else:
                j += 1
                want *= shape[j]
        for (_, s), (n, t) in zip(old[first:i], old[first + 1 : i + 1], strict=True):
            if s != n * t:
                return None
        step = old[i][1]
        found: list[int] = []
        for n in reversed(shape[low : j + 1]):
            found.append(step if n != 1 else 0)
            step *= n
        strides += reversed(found)
        i += 1
        j += 1
    return place._replace(shape=shape, strides=tuple(strides))
