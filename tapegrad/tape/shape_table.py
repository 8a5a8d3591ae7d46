"""Number shapes, and the layouts of views: two tables that records refer to.

Both are the same for all tapes, and only ever grow.
"""

from __future__ import annotations

import numpy as np

from tapegrad.base.locks import lock

Shape = tuple[int, ...]
LARGE = 512  # elements from which a result counts towards the debt of its tape


class Shapes:
    """Every shape that was ever recorded, by a small integer; the same for all tapes.

    Number 0 is the shape of a scalar, and the number of a shape of more than `LARGE` elements is
    odd.  `sizes` (for compiled code) and `counts` hold the number of elements of each.
    """

    def __init__(self) -> None:
        self.ids: dict[Shape, int] = {}
        self.shapes: list[Shape] = []
        self.counts: list[int] = []
        self.sizes: np.ndarray = np.zeros(256, np.int64)
        self.address = self.sizes.ctypes.data
        self.in_memory: np.ndarray = np.array([self.address])  # the same, for compiled code
        self._growing = lock()
        self.number(())

    def number(self, shape: Shape) -> int:
        """The integer that stands for a shape."""
        found = self.ids.get(shape)
        return self._add(shape) if found is None else found

    def _add(self, shape: Shape) -> int:
        with self._growing:
            if shape in self.ids:
                return self.ids[shape]
            count = 1
            for n in shape:
                count *= n
            new = len(self.shapes) + (count > LARGE)
            if new >= len(self.sizes):
                sizes = np.concatenate([self.sizes, np.zeros_like(self.sizes)])
                address = sizes.ctypes.data
                self.sizes, self.address, self.in_memory[0] = sizes, address, address
                return self._add(shape)  # others may have been added in between
            self.sizes[new] = count
            self.shapes += (shape, shape)
            self.counts += (count, count)
            self.ids[shape] = new
            return new


shapes = Shapes()


class Strides:
    """How views lie within arrays in C order, one after the other in a flat table of integers.

    Of each view: how many elements the array has, where among them the view begins, its number of
    dimensions, and of each dimension the length and the step in elements.  Of what was joined:
    the place of each part, which is seen in the whole.
    """

    MOST = 1 << 20

    def __init__(self) -> None:
        self.table: np.ndarray = np.zeros(1024, np.int64)
        self.address = self.table.ctypes.data
        self.in_memory: np.ndarray = np.array([self.address])  # the same, for compiled code
        self._used = 0
        self._growing = lock()

    def add(self, size: int, start: int, lengths: Shape, steps: Shape) -> int:
        """The place of a view in the table, or -1 when the table is full."""
        pairs = [x for pair in zip(lengths, steps, strict=True) for x in pair]
        return self.write([size, start, len(lengths), *pairs])

    def write(self, row: list[int]) -> int:
        """The place of a row of integers, or -1 when the table is full."""
        with self._growing:
            place, end = self._used, self._used + len(row)
            if end > self.MOST:
                return -1
            if end > len(self.table):
                table = np.concatenate([self.table, np.zeros_like(self.table)])
                address = table.ctypes.data
                self.table, self.address, self.in_memory[0] = table, address, address
                return self.write(row)  # others may have been added in between
            self.table[place:end] = row
            self._used = end
        return place


strides = Strides()
