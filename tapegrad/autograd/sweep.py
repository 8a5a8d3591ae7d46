"""The reverse sweep: mark what is reachable, then hand adjoints down, record by record.

`Sweep` runs the compiled walk as far as it goes, does by itself the records that need Python (large
arrays, general rules, hooks, a user's Function), and resumes the walk below.  When the sweep is
itself recorded every record is done in Python, on Tensors.
"""

from __future__ import annotations

import ctypes
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad import storage
from tapegrad.autograd import large
from tapegrad.autograd.pullback import contributions, spec_at
from tapegrad.kernels import layout
from tapegrad.kernels.layout import (
    ADJOINTS, ARENA_AT, ARENA_END, ARRAY_DATA, ARRAY_FLAGS, ARRAY_STRIDES, BELOW, CURSOR, DETAIL,
    FRAME_SIZE, FREE, FREE_LISTS, KEEP, KERNELS, KINDS, LEAF_ADJOINTS, LEAF_NEED, LOW, MARK, NEED,
    NEED_CAPTURE, NEED_INSIDE, NEEDS, NOTHING, OLD, OLD_COUNT, PROPAGATE, REACH, RECORDS, SHIFT,
    SIZES, SPENT_RECORD, SWEEP, TASK, TUPLE_ITEMS, WANTS_KERNEL, WANTS_PYTHON, WANTS_ROOM,
    WIDE_INPUTS,
)  # fmt: skip
from tapegrad.tape import (
    GENERAL, HOOKED, SAVES, SPENT, WORD, Tape, shapes,
)  # fmt: skip
from tapegrad.tensor import Tensor, grad_name, wrap

ARENA = 1 << 16  # bytes of the first arena chunk
_address = ctypes.c_int64.from_address


class Sweep:
    """One pass downwards over a tape."""

    def __init__(self, tape: Tape, *, recorded: bool, retain: bool) -> None:
        self.tape = tape
        self.recorded = recorded
        self.retain = retain
        self.seeds: dict[int, Any] = {}
        self.values: dict[int, Any] = {}  # index, or leaf code, -> adjoint held by Python
        self.scratch: dict[int, Any] = {}  # what a Function's outputs collect for it
        self.captured: dict[int, Any] = {}
        self.targets: list[int] | None = None  # codes; None: every leaf
        self.need: np.ndarray | None = None
        self.leaf_need: np.ndarray | None = None
        self.native = layout.find() is not None and not recorded and tape.anomaly is None

    # -- setting up ------------------------------------------------------------------------

    def seed(self, index: int, value: Any) -> None:
        """Add to the adjoint of a root."""
        held = self.seeds.get(index)
        self.seeds[index] = value if held is None else held + value

    def run(self) -> None:
        """Sweep from the seeds down."""
        if not self.seeds:
            return
        tape = self.tape
        top = max(self.seeds)
        self.low = 0 if self.targets is not None else min(tape.floor, top)
        self._mark(top)
        self._check_versions()
        tape.sweeping += 1
        try:
            if self.native:
                self._walk(top)
            else:
                for index, value in self.seeds.items():
                    self.values[index] = value
                for index in np.flatnonzero(self.reach)[::-1].tolist():
                    self._step(self.low + index)
        finally:
            tape.sweeping -= 1
        if not self.retain:
            swept = self.reach if self.need is None else self.reach & (self.need & NEED_INSIDE)
            tape.release(self.low + np.flatnonzero(swept))

    def reaches(self) -> set[int]:
        """The targets that the roots depend on, by code; nothing is swept."""
        if not self.seeds or not self.targets:
            return set()
        tape = self.tape
        self.low = 0
        top = max(self.seeds)
        self._mark(top)
        found: set[int] = set()
        assert self.need is not None
        for index in np.flatnonzero(self.reach).tolist():
            if self.need[index] & NEED_CAPTURE:
                found.add(tape.tokens[index])
            if self.need[index] & NEED_INSIDE:
                found.update(code for code in tape.inputs(index) if code < 0)
        return found

    def _frame(self, top: int) -> np.ndarray:
        tape = self.tape
        frame = np.zeros(FRAME_SIZE, np.int64)
        frame[LOW] = self.low
        frame[CURSOR] = top
        frame[SHIFT] = tape.shift
        frame[OLD_COUNT] = len(tape.old)
        if len(tape.old):
            frame[OLD] = tape.old.ctypes.data
        self.sizes = shapes.sizes  # a growing table replaces its array: hold this one
        frame[SIZES] = shapes.address
        if tape.wide:
            self.wide = np.array(tape.wide, np.int64)
            frame[WIDE_INPUTS] = self.wide.ctypes.data
        self._refresh(frame)
        return frame

    def _refresh(self, frame: np.ndarray) -> None:
        """Addresses that may have moved while Python code ran."""
        tape = self.tape
        frame[RECORDS] = tape.address
        frame[KEEP] = _address(id(tape.keep) + 24).value

    def _mark(self, top: int) -> None:
        tape = self.tape
        while True:
            size = top + 1 - self.low
            self.reach = np.zeros(size, np.uint8)
            for index in self.seeds:
                if index >= self.low:
                    self.reach[index - self.low] = 1
            if self.targets is not None:
                self._need(size, top)
            status, at = self._mark_pass(top)
            if status == BELOW or min(self.seeds) < self.low:
                self.low = 0
                continue
            if status == SPENT_RECORD:
                raise RuntimeError(
                    f"backward through the graph a second time: `{tape.record(at).op}` at position "
                    f"{tape.tokens[at]} was swept before and its saved values were "
                    "released; pass `retain_graph=True` to the first sweep"
                )
            return

    def _mark_pass(self, top: int) -> tuple[int, int]:
        if not self.native:
            return _mark_in_python(self, top)
        frame = self.frame = self._frame(top)
        frame[TASK] = MARK
        frame[REACH] = self.reach.ctypes.data - self.low
        if self.need is not None:
            frame[NEED] = self.need.ctypes.data - self.low
        from tapegrad.kernels.table import walk

        self.walk = walk()
        if Tape.propagate is None:
            Tape.propagate = _propagate
        status = self.walk(frame.ctypes.data)
        return status, int(frame[DETAIL])

    def _need(self, size: int, top: int) -> None:
        """Mark, upwards from the targets, the records that lead to one of them."""
        assert self.targets is not None
        tape = self.tape
        self.need = np.zeros(size, np.uint8)
        self.leaf_need = np.zeros(max(1, len(tape.leaves)), np.uint8)
        for code in self.targets:
            if code < 0:
                self.leaf_need[-code - 1] = 1
            elif 0 <= (index := tape.index(code)) - self.low < size:
                self.need[index - self.low] = NEED_CAPTURE
        if not self.native:
            _need_in_python(self, top)
            return
        frame = self._frame(top)
        frame[TASK] = NEEDS
        frame[NEED] = self.need.ctypes.data - self.low
        frame[LEAF_NEED] = self.leaf_need.ctypes.data
        from tapegrad.kernels.table import walk

        walk()(frame.ctypes.data)

    def _check_versions(self) -> None:
        """Refuse when a value that a record saved was changed after it was saved."""
        tape = self.tape
        indices = np.flatnonzero(self.reach)
        if not len(indices) or tape.last_mutation <= tape.tokens[self.low + int(indices[0])]:
            return
        for index in (self.low + indices).tolist():
            position = tape.tokens[index]
            if position >= tape.last_mutation:
                return
            entry = tape.keep[index]
            values = getattr(entry, "watched", entry)
            if not isinstance(values, tuple):
                continue
            if self.need is not None and not self.need[index - self.low] & NEED_INSIDE:
                continue
            for value in values:
                if isinstance(value, np.ndarray) and storage.changed_since(tape, value, position):
                    raise RuntimeError(
                        f"a value of shape {value.shape} that `{tape.record(index).op}` "
                        f"({grad_name(tape, position)}, position {position}) saved has been "
                        f"modified by an inplace operation, "
                        f"its version is now {storage.version(storage.root(value))}; use an "
                        "operation that returns a new Tensor, or `clone()` before changing it"
                    )

    # -- walking ---------------------------------------------------------------------------

    def _walk(self, top: int) -> None:
        tape, frame = self.tape, self.frame
        from tapegrad.kernels import table

        found = layout.find()
        assert found is not None
        leaves = max(1, len(tape.leaves))
        self.cells = np.zeros(leaves + top + 1 - self.low, np.int64)
        self.first = leaves - self.low
        self.free = np.zeros(FREE_LISTS, np.int64)
        self.chunks: list[np.ndarray] = []
        start = self.cells.ctypes.data
        frame[TASK] = SWEEP
        frame[LEAF_ADJOINTS] = start
        frame[ADJOINTS] = start + 8 * self.first
        frame[FREE] = self.free.ctypes.data
        frame[KERNELS] = table.addresses.ctypes.data
        frame[KINDS] = table.kinds.ctypes.data
        frame[NOTHING] = id(None)
        frame[TUPLE_ITEMS] = found.tuple_items
        frame[ARRAY_DATA] = found.array_data
        frame[ARRAY_STRIDES] = found.array_strides
        frame[ARRAY_FLAGS] = found.array_flags
        if self.leaf_need is not None:
            frame[LEAF_NEED] = self.leaf_need.ctypes.data
        for index, value in self.seeds.items():
            self._add(index, value)
        at = frame.ctypes.data
        while True:
            self._refresh(frame)
            status = self.walk(at)
            if status == WANTS_PYTHON:
                index = int(frame[CURSOR])
                self._step(index)
                frame[CURSOR] = index - 1
            elif status == WANTS_KERNEL:
                place = int(frame[DETAIL])
                if not table.fill(place):
                    index = int(frame[CURSOR])
                    tape.words()[index, WORD] |= GENERAL
            elif status == WANTS_ROOM:
                self._grow(frame)
            else:
                return

    def _grow(self, frame: np.ndarray) -> None:
        size = min(ARENA << len(self.chunks), 1 << 22)
        chunk = np.empty(size // 8, np.int64)
        self.chunks.append(chunk)
        frame[ARENA_AT] = chunk.ctypes.data
        frame[ARENA_END] = chunk.ctypes.data + size

    def _step(self, index: int) -> None:
        """Do one record in Python."""
        g = self._take(index)
        if g is None:
            return
        tape = self.tape
        word = int(tape.words()[index, WORD])
        need = NEED_INSIDE if self.need is None else int(self.need[index - self.low])
        if word & HOOKED:
            g = self._hooked(tape.tokens[index], g)
        if need & NEED_CAPTURE:
            self.captured[index] = g
        if not need & NEED_INSIDE:
            return
        if not self.recorded and large.step(self, index, g):
            pass
        else:
            for code, found in contributions(
                tape, index, g, self._wanted, self.recorded, self.scratch
            ):
                if tape.anomaly:
                    _look_for_nan(tape, index, found)
                self._add(code if code < 0 else tape.index(code), found)
        if not self.retain and not tape.hooks and word & SAVES:
            tape.keep[index] = None  # large values go as soon as they were used
            tape.words()[index, WORD] |= SPENT

    def _wanted(self, code: int) -> bool:
        if self.need is None:
            return True
        if code < 0:
            assert self.leaf_need is not None
            return bool(self.leaf_need[-code - 1])
        return bool(self.need[self.tape.index(code) - self.low])

    def _hooked(self, position: int, g: Any) -> Any:
        from tapegrad.autograd.hooks import run_hooks

        given = g if self.recorded else wrap(g)
        found = run_hooks(self.tape.hooks.get(position, {}), given)
        return found if self.recorded else found._a

    # -- adjoints --------------------------------------------------------------------------

    def _take(self, key: int) -> Any:
        """Remove and return the adjoint of a record (or of a leaf, by its code)."""
        if not self.native:
            return self.values.pop(key, None)
        place = key + self.first if key >= 0 else -key - 1
        cell = int(self.cells[place])
        if not cell:
            return None
        self.cells[place] = 0
        if cell & 1:
            return self.values.pop(key)
        return self._view(key, cell).copy()

    def _view(self, key: int, cell: int) -> np.ndarray:
        """The arena memory of an adjoint as an array."""
        tape = self.tape
        if key >= 0:
            shape, dtype = spec_at(tape, key)
        else:
            leaf = tape.leaves[-key - 1]._a
            shape, dtype = leaf.shape, leaf.dtype
        count = _count(shape)
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(cell)
        return np.frombuffer(memory, dtype, count).reshape(shape)

    def _add(self, key: int, found: Any) -> None:
        """Add to the adjoint of a record or leaf."""
        if not self.native:
            held = self.values.get(key)
            self.values[key] = found if held is None else held + found
            return
        place = key + self.first if key >= 0 else -key - 1
        cell = int(self.cells[place])
        if not cell:
            if found.size <= layout.SMALL:
                found = np.array(found, order="C")
            self.values[key] = found
            self.cells[place] = _address(id(found) + 16).value | 1
        elif cell & 1:
            held = self.values.pop(key)
            if held.base is None and getrefcount(held) == 2:
                np.add(held, found, out=held)
            else:
                held = held + found
                if not held.flags.c_contiguous:
                    held = np.ascontiguousarray(held)
            self.values[key] = held
            self.cells[place] = _address(id(held) + 16).value | 1
        else:
            view = self._view(key, cell)
            np.add(view, found, out=view)

    def leaf_gradients(self) -> list[tuple[int, Any]]:
        """The codes of the leaves that were reached, and their adjoints."""
        if not self.native or not self.seeds:
            return [(key, value) for key, value in self.values.items() if key < 0]
        leaves = len(self.tape.leaves)
        found = []
        for slot in np.flatnonzero(self.cells[:leaves]).tolist():
            found.append((-slot - 1, self._take(-slot - 1)))
        return found


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _look_for_nan(tape: Tape, index: int, found: Any) -> None:
    array = found._a if isinstance(found, Tensor) else found
    if np.isnan(array).any():
        position = tape.tokens[index]
        trace = tape.traces.get(position, "  (recorded outside anomaly detection)\n")
        raise RuntimeError(
            f"{grad_name(tape, position)} returned NaN in its backward (position {position}). "
            f"It was recorded here:\n{trace}"
        )


# -- the passes in Python, where the compiled walk cannot be used -----------------------------


def _mark_in_python(sweep: Sweep, top: int) -> tuple[int, int]:
    tape = sweep.tape
    words = tape.words()
    for index in range(top, sweep.low - 1, -1):
        at = index - sweep.low
        if not sweep.reach[at]:
            continue
        if sweep.need is not None:
            if not sweep.need[at]:
                sweep.reach[at] = 0
                continue
            if not sweep.need[at] & NEED_INSIDE:
                continue
        if words[index, WORD] & SPENT:
            return SPENT_RECORD, index
        for code in tape.inputs(index):
            if code > 0:
                below = tape.index(code)
                if below < sweep.low:
                    return (BELOW if sweep.low > 0 else SPENT_RECORD), index
                sweep.reach[below - sweep.low] = 1
    return 0, 0


def _need_in_python(sweep: Sweep, top: int) -> None:
    tape, need, leaf_need = sweep.tape, sweep.need, sweep.leaf_need
    assert need is not None and leaf_need is not None
    for index in range(sweep.low, top + 1):
        for code in tape.inputs(index):
            if (code < 0 and leaf_need[-code - 1]) or (
                code > 0 and tape.index(code) >= sweep.low and need[tape.index(code) - sweep.low]
            ):
                need[index - sweep.low] |= NEED_INSIDE
                break


def _propagate(tape: Tape, marks: np.ndarray, count: int) -> None:
    """The compiled liveness pass, for `Tape.reclaim`."""
    from tapegrad.kernels.table import walk

    frame = np.zeros(FRAME_SIZE, np.int64)
    frame[TASK] = PROPAGATE
    frame[RECORDS] = tape.address
    frame[CURSOR] = count - 1
    frame[SHIFT] = tape.shift
    frame[OLD_COUNT] = len(tape.old)
    frame[OLD] = tape.old.ctypes.data
    frame[REACH] = marks.ctypes.data
    wide = np.array(tape.wide or [0], np.int64)
    frame[WIDE_INPUTS] = wide.ctypes.data
    walk()(frame.ctypes.data)

