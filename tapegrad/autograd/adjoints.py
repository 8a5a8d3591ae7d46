"""The adjoints of a sweep, in the arena of the compiled sweep or as Python arrays."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.base.reference_counts import expected_count
from tapegrad.kernels.sweep import sweep_abi
from tapegrad.ops.core import Spec
from tapegrad.tape.tape import Tape

if TYPE_CHECKING:
    from tapegrad.autograd.workspace import Workspace

# References to an array that nobody else holds: from who calls, and in a variable here.
GIVEN, OURS = expected_count(variables=2), expected_count(variables=1)


def added(a: Any, b: Any) -> Any:
    """The sum of two adjoints: an array also where NumPy would make a number of it."""
    total = a + b
    return np.asarray(total) if isinstance(total, np.generic) else total


class Adjoints:
    """The adjoints computed so far, and the marks of those that are needed."""

    tape: Tape
    work: Workspace | None  # of compiled code; None: all of them are Python's
    values: dict[int, Any]  # index, or leaf code, -> adjoint held by Python
    need: Any = None  # the marks of records, one byte each; None: all are needed
    leaf_need: Any = None
    low: int  # the index of the lowest record that is marked

    def wanted(self, code: int) -> bool:
        """Whether the input with a code needs an adjoint."""
        if self.need is None:
            return True
        if code < 0:
            return bool(self.leaf_need[-code - 1] & 1)
        place = self.tape.index(code) - self.low
        return place >= 0 and bool(self.need[place])  # below its bottom a sweep wants nothing

    def add(self, key: int, found: Any) -> None:
        """Add to the adjoint of a record (by its index) or of a leaf (by its code)."""
        work = self.work
        if work is None:
            total = self.values.get(key)
            self.values[key] = found if total is None else added(total, found)
            return
        place = key + work.first if key >= 0 else -key - 1
        cell = work.cells[place]
        if not cell:
            if found.size <= sweep_abi.SMALL and not (  # the compiled sweep may write there
                found.flags.carray and found.base is None and getrefcount(found) <= GIVEN
            ):
                found = np.array(found, order="C")
            self.values[key] = found  # as `_hold`, which here would take as long again
            work.cells[place] = work.data(found) | 1
        elif cell & 1:
            total = self.values.pop(key)
            if total.base is None and getrefcount(total) == OURS:
                np.add(total, found, out=total)
            else:
                total = np.asarray(total + found, order="C")  # without dimensions: a NumPy scalar
            self._hold(key, place, total)
        else:
            view = work.view(cell, found.shape, found.dtype)
            np.add(view, found, out=view)

    def in_arena(self, key: int, spec: Spec) -> np.ndarray | None:
        """The adjoint of a record or a leaf that compiled code holds; None: it holds none."""
        work = self.work
        if work is None:
            return None
        cell = work.cells[key + work.first if key >= 0 else -key - 1]
        return None if not cell or cell & 1 else work.view(cell, *spec)

    def give(self, key: int, found: np.ndarray) -> None:
        """`add` for a contiguous array that is not shared."""
        work = self.work
        if work is None:
            self.add(key, found)
            return
        place = key + work.first if key >= 0 else -key - 1
        if work.cells[place]:
            self.add(key, found)
        else:
            self._hold(key, place, found)

    def _hold(self, key: int, place: int, array: np.ndarray) -> None:
        assert self.work is not None
        self.values[key] = array
        self.work.cells[place] = self.work.data(array) | 1  # odd: the memory is Python's
