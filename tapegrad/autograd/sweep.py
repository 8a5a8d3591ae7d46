"""The reverse sweep: mark what is reachable, then hand adjoints down, record by record.

`Sweep` runs the compiled walk as far as it goes, does by itself the records that need Python (large
arrays, general rules, hooks, a user's Function), and resumes the walk below.  When the sweep is
itself recorded every record is done in Python, on Tensors.
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad import storage
from tapegrad.autograd import large, matrix, slow
from tapegrad.autograd.hooks import run_hooks
from tapegrad.autograd.pullback import contributions, spec_at
from tapegrad.kernels import layout
from tapegrad.kernels.layout import (
    BELOW,
    CURSOR,
    DETAIL,
    LEAF_REACHED,
    NEED_CAPTURE,
    NEED_INSIDE,
    PREPARE,
    RELEASE,
    SPENT_RECORD,
    SWEEP,
    WANTS_BLAS,
    WANTS_KERNEL,
    WANTS_PYTHON,
    WANTS_ROOM,
)  # fmt: skip
from tapegrad.tape import CODE_MASK, GENERAL, HOOKED, SAVES, SPENT, WORD, Tape
from tapegrad.tensor import Tensor, grad_name, wrap

if TYPE_CHECKING:
    from tapegrad.autograd.workspace import Workspace


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
        self.marked = False
        self.need: np.ndarray | None = None
        self.leaf_need: np.ndarray | None = None
        self.native = layout.find() is not None and not recorded and tape.anomaly is None
        self.work: Workspace | None = _workspace(tape) if self.native else None

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
        self._mark()
        top = self.top
        self._check_versions()
        tape.sweeping += 1
        try:
            if self.work is not None:
                self._walk(self.work, top)
            else:
                self.values.update(self.seeds)
                for index in np.flatnonzero(self.reach)[::-1].tolist():
                    self._step(self.low + index)
        finally:
            tape.sweeping -= 1
        if not self.retain:
            self._release()

    def reaches(self, codes: list[int]) -> bool:
        """Whether the roots depend on all of these targets; nothing is swept."""
        if not codes:
            return True
        if not self.seeds or 0 in codes:
            return False
        self._mark()
        assert self.leaf_need is not None
        for code in codes:
            if code < 0:
                if not self.leaf_need[-code - 1] & LEAF_REACHED:
                    return False
                continue
            index = self.tape.index(code) - self.low
            if not (0 <= index < len(self.reach) and self.reach[index]):
                return False
        return True

    def _mark(self) -> None:
        """Mark the records that will be met; refuse a second sweep over released values."""
        if self.marked:
            return
        tape = self.tape
        self.top = max(self.seeds)
        self.low = min(tape.floor, *self.seeds)
        mark = self._mark_in_python if self.work is None else self._mark_compiled
        status, at = mark()
        if status == BELOW:
            self.low = 0
            status, at = mark()
        if status == SPENT_RECORD:
            raise RuntimeError(
                f"backward through the graph a second time: `{tape.record(at).op}` at position "
                f"{tape.tokens[at]} was swept before and its saved values were "
                "released; pass `retain_graph=True` to the first sweep"
            )
        self.marked = True

    def _mark_compiled(self) -> tuple[int, int]:
        work, low = self.work, self.low
        assert work is not None
        reach = self.reach = work.begin(self.tape, low, self.top)
        for index in self.seeds:
            reach[index - low] = 1
        if self.targets is not None:
            self.need, self.leaf_need = work.bound(low, self.top)
            self._mark_targets(self.need, self.leaf_need)
        return work.run(PREPARE), work.frame[DETAIL]

    def _mark_in_python(self) -> tuple[int, int]:
        tape, low, top = self.tape, self.low, self.top
        self.reach = np.zeros(top + 1 - low, np.uint8)
        for index in self.seeds:
            self.reach[index - low] = 1
        if self.targets is not None:
            self.need = np.zeros(top + 1 - low, np.uint8)
            self.leaf_need = np.zeros(max(1, len(tape.leaves)), np.uint8)
            self._mark_targets(self.need, self.leaf_need)
            slow.needs(tape, self.need, self.leaf_need, low, top)
        return slow.mark(tape, self.reach, self.need, self.leaf_need, low, top)

    def _mark_targets(self, need: np.ndarray, leaf_need: np.ndarray) -> None:
        """Mark the targets themselves, on records and on leaves."""
        for code in self.targets or ():
            if code < 0:
                leaf_need[-code - 1] = 1
            elif 0 <= (index := self.tape.index(code) - self.low) < len(need):
                need[index] = NEED_CAPTURE

    def _check_versions(self) -> None:
        """Refuse when a value that a record saved was changed after it was saved."""
        tape = self.tape
        if tape.last_mutation <= tape.tokens[self.low]:
            return
        indices = np.flatnonzero(self.reach)
        if not len(indices):
            return
        lowest = tape.tokens[self.low + int(indices[0])]
        mutated = {key: date for key, date in tape.mutated.items() if date > lowest}
        if not mutated:
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
                if type(value) is np.ndarray and (
                    mutated.get(id(storage.root(value)), 0) > position
                    or mutated.get(id(value), 0) > position
                ):
                    raise self._changed(index, value)

    def _changed(self, index: int, value: np.ndarray) -> Exception:
        tape = self.tape
        position = tape.tokens[index]
        return RuntimeError(
            f"a value of shape {value.shape} that `{tape.record(index).op}` "
            f"({grad_name(tape, position)}, position {position}) saved has been modified by an "
            f"inplace operation, its version is now {storage.version(storage.root(value))}; use an "
            "operation that returns a new Tensor, or `clone()` before changing it"
        )

    def _release(self) -> None:
        """The swept records give their values back; those that only delivered do not."""
        tape, work = self.tape, self.work
        if work is None:
            swept = self.reach if self.need is None else self.reach & (self.need & NEED_INSIDE)
            tape.release(self.low + np.flatnonzero(swept))
            return
        work.refresh(tape)
        work.frame[CURSOR] = self.top
        count = work.run(RELEASE)
        listed = work.cells[work.leaves :]
        keep = tape.keep
        if count < 0:
            for index in listed[: -1 - count].tolist():
                keep[index] = None
            return
        stays = [(index, keep[index]) for index in listed[:count].tolist()]
        keep[self.low : self.top + 1] = [None] * (self.top + 1 - self.low)
        for index, entry in stays:
            keep[index] = entry
        tape.raise_floor(self.low, self.top + 1)

    # -- walking ---------------------------------------------------------------------------

    def _walk(self, work: Workspace, top: int) -> None:
        tape, frame = self.tape, work.frame
        work.start(self.low, top)
        for index, value in self.seeds.items():
            self._add(index, value)
        frame[CURSOR] = top
        while True:
            work.refresh(tape)
            status = work.run(SWEEP)
            if status == WANTS_PYTHON:
                index = frame[CURSOR]
                self._step(index)
                frame[CURSOR] = index - 1
            elif status == WANTS_KERNEL:
                if not _fill(frame[DETAIL]):
                    tape.words()[frame[CURSOR], WORD] |= GENERAL
            elif status == WANTS_ROOM:
                work.grow()
            elif status == WANTS_BLAS:
                work.bring_blas()
            else:
                return

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
        if self.recorded or not (
            (matrix.step(self, index, g) if word & CODE_MASK == matrix.CODE else False)
            or large.step(self, index, g)
        ):
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
            return bool(self.leaf_need[-code - 1] & 1)
        return bool(self.need[self.tape.index(code) - self.low])

    def _hooked(self, position: int, g: Any) -> Any:
        found = run_hooks(self.tape.hooks.get(position), g if self.recorded else wrap(g.copy()))
        return found if self.recorded else found._a

    # -- adjoints --------------------------------------------------------------------------

    def _take(self, key: int) -> Any:
        """Remove and return the adjoint of a record."""
        work = self.work
        if work is None:
            return self.values.pop(key, None)
        place = key + work.first
        cell = int(work.cells[place])
        if not cell:
            return None
        work.cells[place] = 0
        if cell & 1:
            return self.values.pop(key)
        return work.view(cell, *spec_at(self.tape, key))

    def _add(self, key: int, found: Any) -> None:
        """Add to the adjoint of a record (by its index) or of a leaf (by its code)."""
        work = self.work
        if work is None:
            held = self.values.get(key)
            self.values[key] = found if held is None else held + found
            return
        place = key + work.first if key >= 0 else -key - 1
        cell = int(work.cells[place])
        if not cell:
            if found.size <= layout.SMALL:  # the walk may write there
                found = np.array(found, order="C")
            self._hold(key, place, found)
        elif cell & 1:
            held = self.values.pop(key)
            if held.base is None and getrefcount(held) == 2:
                np.add(held, found, out=held)
            else:
                held = held + found
                if not held.flags.c_contiguous:
                    held = np.ascontiguousarray(held)
            self._hold(key, place, held)
        else:
            view = work.view(cell, found.shape, found.dtype)
            np.add(view, found, out=view)

    def give(self, key: int, found: np.ndarray) -> None:
        """`_add` for an array in C order that nobody else holds."""
        work = self.work
        if work is None:
            self._add(key, found)
            return
        place = key + work.first if key >= 0 else -key - 1
        if work.cells[place]:
            self._add(key, found)
        else:
            self._hold(key, place, found)

    def _hold(self, key: int, place: int, array: np.ndarray) -> None:
        assert self.work is not None
        self.values[key] = array
        self.work.cells[place] = self.work.data(array) | 1  # odd: the memory is Python's

    def leaf_gradients(self) -> list[tuple[int, Any]]:
        """The codes of the leaves that were reached, and adjoints that nobody else holds."""
        work, values = self.work, self.values
        if self.recorded:
            return [(code, value) for code, value in values.items() if code < 0]
        if work is None or not self.seeds:
            return [(code, alone(values.pop(code))) for code in [*values] if code < 0]
        found = []
        code = 0
        for cell in work.cells[: work.leaves].tolist():
            code -= 1
            if cell & 1:
                found.append((code, alone(values.pop(code))))
            elif cell:
                leaf = self.tape.leaves[-code - 1]._a
                found.append((code, work.view(cell, leaf.shape, leaf.dtype).copy()))
        return found


def alone(array: np.ndarray) -> np.ndarray:
    """An array that has its memory to itself, all of it, in C order: this one or a copy.

    It is passed straight from where it was: only this function and `getrefcount` may hold it.
    """
    if array.flags.c_contiguous and getrefcount(array) <= 2:
        owner = array.base
        if owner is None or (
            type(owner) is np.ndarray
            and owner.base is None
            and owner.size == array.size
            and getrefcount(owner) <= 3
        ):
            return array
    return array.copy(order="C")


def _workspace(tape: Tape) -> Workspace:
    """The tape's workspace, or a new one for a sweep inside a sweep."""
    if tape.workspace is None or tape.sweeping:
        from tapegrad.autograd.workspace import Workspace, propagate

        made = Workspace()
        if tape.sweeping:
            return made
        tape.workspace = made
        Tape.propagate = propagate
    return tape.workspace  # type: ignore[no-any-return]


def _fill(place: int) -> bool:
    from tapegrad.kernels import table

    return table.fill(place)


def _look_for_nan(tape: Tape, index: int, found: Any) -> None:
    array = found._a if isinstance(found, Tensor) else found
    if np.isnan(array).any():
        position = tape.tokens[index]
        trace = tape.traces.get(position, "  (recorded outside anomaly detection)\n")
        raise RuntimeError(
            f"{grad_name(tape, position)} returned NaN in its backward (position {position}). "
            f"It was recorded here:\n{trace}"
        )
