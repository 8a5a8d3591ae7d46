"""The memory of the compiled sweep: frame, adjoint table, arena of small adjoints.

A tape keeps one workspace from sweep to sweep, so that a sweep of a small graph allocates nothing;
a sweep inside a sweep (a hook that calls `backward`) gets one of its own.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.sweep.sweep_abi import (
    CHUNK,
    DONE,
    EVERY_LEAF,
    FREE_LISTS,
    ONE_LEAF,
    PROPAGATE,
    START,
    SweepFrame,
    find,
)
from tapegrad.ops.elementwise import where
from tapegrad.tape.shape_table import shapes, strides
from tapegrad.tape.tape import Tape

# Read once: a look-up in a class takes as long as what is written there.
_TASK, _RECORDS, _SEEDS, _SEED_COUNT = (
    SweepFrame.task,
    SweepFrame.records,
    SweepFrame.seeds,
    SweepFrame.seed_count,
)
LARGEST = 1 << 22
LONG = 1 << 17  # bytes of an adjoint whose place in the arena is worth a copy
# The first fields of the frame: what a sweep changes, and what one from a root to a leaf adds.
_FIELDS = (
    "task", "records", "keep_at", "input_lists_at", "sizes", "views", "shift", "old", "old_count",
    "leaves", "low", "cursor", "target_count", "strict",
)  # fmt: skip
_begin = SweepFrame.writer(*_FIELDS)
_begin_one_leaf = SweepFrame.writer(*_FIELDS, "root", "leaf", "into", "count")
_word = ctypes.c_int64.from_address
_double = ctypes.c_double.from_address


class Workspace:
    """The memory of one compiled sweep."""

    def __init__(self) -> None:
        found = find()
        assert found is not None
        self.layout = found
        self.inner: Workspace | None = None
        self.kernel_at, self.kernel = kernel_table.compiled_sweep()
        frame = self.frame = array("q", bytes(8 * SweepFrame.SIZE))
        self.place = frame.buffer_info()[0]
        self.address = ctypes.c_int64(self.place)  # which a call need not convert
        self.free = array("q", bytes(8 * FREE_LISTS))
        self.chunks = [np.empty(CHUNK // 8)]
        self.starts = [self.chunks[0].ctypes.data]
        self._seeds = array("q")
        self._targets = array("q")
        self._reserve(256)
        frame[SweepFrame.free] = self.free.buffer_info()[0]
        frame[SweepFrame.arena] = self.starts[0]
        frame[SweepFrame.arena_end] = self.starts[0] + CHUNK
        frame[SweepFrame.kinds] = kernel_table.kinds.ctypes.data
        frame[SweepFrame.kernels] = kernel_table.addresses.ctypes.data
        frame[SweepFrame.nothing] = id(None)
        frame[SweepFrame.kernel] = self.kernel_at
        frame[SweepFrame.choice] = where.code  # whose first operand is of bytes
        frame[SweepFrame.tuple_items] = found.tuple_items
        frame[SweepFrame.array_data] = found.array_data
        frame[SweepFrame.array_strides] = found.array_strides
        frame[SweepFrame.array_flags] = found.array_flags

    def inside(self) -> Workspace:
        """The workspace of a nested sweep, kept for the next."""
        if self.inner is None:
            self.inner = Workspace()
        return self.inner

    def _reserve(self, count: int) -> None:
        """Make room for the adjoints and the marks of this many records and leaves."""
        # Python reads and writes single numbers of a memoryview in half the time of an array's.
        cells = array("q", bytes(8 * count))
        marks: Any = np.zeros((3, count), np.uint8)
        seen, needed = memoryview(cells), [memoryview(row) for row in marks[1:]]
        addresses = [cells.buffer_info()[0], *[row.ctypes.data for row in marks]]
        frame, reach = self.frame, marks[0]
        # By stores alone, so that the frame names what is held even if an interruption comes.
        self._cells, self._reach = seen, reach
        self._need, self._leaf_need = needed
        frame[SweepFrame.leaf_adjoints], frame[SweepFrame.reach_at], *others = addresses
        frame[SweepFrame.need_at], frame[SweepFrame.leaf_need] = others
        frame[SweepFrame.capacity] = count

    def _ready(self, count: int) -> None:
        """Prepare buffers for a sweep over so many records and leaves."""
        kernel_table.learn()
        if count > self.frame[SweepFrame.capacity]:
            self._reserve(2 * count)
        if len(self.chunks) > 1:
            del self.chunks[1:], self.starts[1:]
            self.frame[SweepFrame.arena_end] = self.starts[0] + CHUNK

    def begin(self, tape: Tape, low: int, top: int) -> None:
        """Set the frame up for the records low..top, and for every leaf that they reach."""
        leaves = len(tape.leaves)
        self._ready(leaves - low + top + 1)
        self.note(tape, leaves, low, top)
        _begin(
            self.frame, 0, START, tape.address, *self._lists(tape), shapes.address,
            strides.address, tape.shift, tape.old_at, len(tape.old), leaves, low, top, EVERY_LEAF,
            0,
        )  # fmt: skip

    def _lists(self, tape: Tape) -> tuple[int, int]:
        """Where the addresses of what lies in two lists stand, which change as these grow."""
        items = self.layout.list_items
        return id(tape.keep) + items, id(tape.input_lists) + items

    def note(self, tape: Tape, leaves: int, low: int, top: int) -> None:
        """Note what a sweep is about, of which the frame has been told."""
        self.tape, self.leaves, self.first = tape, leaves, leaves - low
        self.cells = self._cells[: leaves - low + top + 1]
        self.sizes, self.views = shapes.sizes, strides.table  # growing replaces them: hold these

    def one_leaf(self, tape: Tape, low: int, root: int, leaf: int, into: np.ndarray) -> bool:
        """Sweep from a root (a position) to a leaf (a code), which nothing below `low` reads.

        The gradient goes into an array of zeros, and what was swept is marked as released; the
        values that it kept are left to the caller.  False: nothing is done, since the compiled
        sweep alone could not have finished.
        """
        leaves = len(tape.leaves)
        self._ready(leaves + tape.used - low)
        tables = shapes.sizes, strides.table  # growing replaces them: hold these
        _begin_one_leaf(
            self.frame, 0, ONE_LEAF, tape.address, *self._lists(tape), shapes.address,
            strides.address, tape.shift, tape.old_at, len(tape.old), leaves, low, low, EVERY_LEAF,
            0, root, leaf, id(into), into.size,
        )  # fmt: skip
        self.frame[_RECORDS] = tape.address  # last: there may be new records
        done: bool = self.kernel(self.address) == DONE
        del tables
        return done

    def set_seeds(self, seeds: Sequence[int]) -> None:
        """Set the seeds: pairs of a record's index and the address of its adjoint."""
        words = self._seeds = array("q", seeds)
        frame = self.frame
        frame[_SEEDS], size = words.buffer_info()
        frame[_SEED_COUNT] = size >> 1

    def set_targets(self, targets: list[int], strict: int) -> None:
        """Keep the sweep to what leads to targets; the first `strict` of them must be reached."""
        words = self._targets = array("q", targets)
        frame = self.frame
        frame[SweepFrame.targets], frame[SweepFrame.target_count] = words.buffer_info()
        frame[SweepFrame.strict] = strict

    def reach(self) -> np.ndarray:
        """Mark the records that the roots reach."""
        found: np.ndarray = self._reach[: len(self.cells) - self.leaves]
        return found

    def need(self) -> tuple[memoryview, memoryview]:
        """Mark the records and leaves that lead to a target."""
        return self._need[: len(self.cells) - self.leaves], self._leaf_need[: self.leaves]

    def bring_blas(self) -> None:
        """Load BLAS, which only graphs with matrix products need."""
        from tapegrad.kernels.blas import routine

        self.block = np.zeros(24, np.int64)
        self.frame[SweepFrame.gemm_arguments] = self.block.ctypes.data
        self.frame[SweepFrame.gemm] = routine("dgemm")
        self.frame[SweepFrame.gemm_f4] = routine("sgemm")

    def grow(self) -> None:
        """Give the arena another chunk."""
        size = min(CHUNK << len(self.chunks), LARGEST)
        chunk = np.empty(size // 8)
        self.chunks.append(chunk)
        self.starts.append(chunk.ctypes.data)
        self.frame[SweepFrame.arena_at] = self.starts[-1]
        self.frame[SweepFrame.arena_end] = self.starts[-1] + size

    def view(self, cell: int, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
        """The arena memory of an adjoint as an array."""
        start = self.starts[0]
        if start <= cell < start + CHUNK:
            return np.ndarray(shape, dtype, self.chunks[0], cell - start)
        for start, chunk in zip(self.starts, self.chunks, strict=True):
            if start <= cell < start + chunk.nbytes:
                return np.ndarray(shape, dtype, chunk, cell - start)
        raise AssertionError("an adjoint that is not Python's lies in the arena")

    def given(self, cell: int, shape: Any, dtype: np.dtype[Any]) -> np.ndarray:
        """An adjoint for Python, which may hand it on: of a long one a copy, and its place is free.

        The places of others are not used again in this sweep.
        """
        found = self.view(cell, shape, dtype)
        if found.nbytes < LONG:
            return found
        level = (found.nbytes - 1).bit_length()  # see `arena.size_class`
        found = found.copy()
        ctypes.c_int64.from_address(cell).value, self.free[level] = self.free[level], cell
        return found

    def lent(self, array: np.ndarray) -> bool:
        """Whether an adjoint is a `view` of the arena, which the next sweep overwrites."""
        base = array.base
        return base is not None and any(base is chunk for chunk in self.chunks)

    def copy(self, cell: int, like: np.ndarray, number: int) -> np.ndarray:
        """A copy of an adjoint, in an array of the shape of another."""
        if number == 0:  # a float64 without dimensions
            return np.array(_double(cell).value)
        return self.view(cell, like.shape, like.dtype).copy()

    def data(self, array: np.ndarray) -> int:
        """The address of an array's first element."""
        return _word(id(array) + self.layout.array_data).value

    def run(self, task: int) -> int:
        """Run a task of the sweep; Python code may have moved the tape's buffers."""
        frame, tape = self.frame, self.tape
        if task != START:  # which `begin` has made ready
            frame[SweepFrame.shift], frame[SweepFrame.old] = tape.shift, tape.old_at
            frame[SweepFrame.old_count] = len(tape.old)
        frame[_TASK], frame[_RECORDS] = task, tape.address
        return int(self.kernel(self.address))


def propagate(tape: Tape, marks: np.ndarray, count: int) -> None:
    """The compiled liveness pass, for `Tape.reclaim`."""
    workspace = Workspace() if tape.workspace is None else tape.workspace
    workspace.begin(tape, 0, count - 1)
    workspace.frame[SweepFrame.reach] = marks.ctypes.data
    workspace.run(PROPAGATE)
