"""Aliasing of memory: version counters, and copy-on-write of what records saved.

NumPy owns the memory.  A storage is the array at the bottom of a chain of views.  It has no state
until it is first changed in place; from then on it has a counter, and for every tape the position
of the last change.  The sweep checks it for records that saved a value of that storage before.
Recording itself costs nothing extra.

A change is counted before it is made, so that an interruption leaves none uncounted.

In a transform of a function of arrays, which may read an array and later write into it as NumPy
code does, records get copies of what they saved there, and the sweep finds nothing changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from sys import getrefcount
from typing import Any

import numpy as np

from tapegrad.base.reference_counts import expected_count
from tapegrad.tape.tape import Tape, current

# storage -> [count, weak reference to its array, when it was last changed, and the position then on
# each tape, by its serial number]
_versions: dict[int, list[Any]] = {}
_moments = 0  # changes so far
# References to an array in a variable, and to the memory below that only a view shows.
_OURS, _BELOW = expected_count(variables=1), expected_count(variables=1, holders=1)


def root(array: np.ndarray) -> np.ndarray:
    """The storage of an array, by the chain of `base`."""
    while True:
        base: Any = array.base
        if base is not None and not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # NumPy's stride tricks put an object in between
        if not isinstance(base, np.ndarray):
            return array
        array = base


def detached(array: np.ndarray) -> np.ndarray:
    """Make the memory a storage of its own: the `base` chain of its views ends there."""
    return np.asarray(memoryview(array))  # type: ignore[arg-type]  # NumPy's have strides as well


def roots(array: np.ndarray) -> Iterator[np.ndarray]:
    """The storages that an array's memory belongs to: its own, then those it is `detached` from."""
    while True:
        array = root(array)
        yield array
        base: Any = array.base
        if type(base) is not memoryview or not isinstance(base.obj, np.ndarray):
            return
        array = base.obj


def memory(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory, beneath detached storages."""
    *_, last = roots(array)
    return last


def offset(array: np.ndarray) -> int:
    """The offset of an array into its storage, in elements."""
    start, here = [int(a.__array_interface__["data"][0]) for a in (memory(array), array)]
    return (here - start) // array.itemsize


def version(key_array: np.ndarray) -> int:
    """The number of in-place changes of the storage."""
    found = _versions.get(id(key_array))
    return found[0] if found else 0


def moment() -> int:
    """A timestamp, to compare with `changed`."""
    return _moments


def changed(key_array: np.ndarray) -> int:
    """When the storage was last changed in place."""
    found = _versions.get(id(key_array))
    return found[2] if found else 0


def changed_at(tape: Tape, position: int) -> dict[int, int]:
    """The storages that were changed in place since a position of a tape, and where."""
    serial = tape.serial
    # A copy: the collector may run while items are made, and take some away.
    dates = [(key, found[3].get(serial, 0)) for key, found in {**_versions}.items()]
    return {key: date for key, date in dates if date > position}


def bump(key_array: np.ndarray) -> None:
    """Count an in-place change, which is about to be made, and date it on every tape."""
    global _moments
    tape = current.tape
    if tape.depth and not tape.torchs:
        if tape.saved is None:
            tape.saved = SavedStorages()
        tape.saved.preserve(tape, key_array)
    key = id(key_array)
    found = _versions.get(key)
    if found is None:
        # No function of Python, which might be interrupted: `pop` takes the reference as default.
        reference = weakref.ref(key_array, partial(_versions.pop, key))
        found = _versions.setdefault(key, [0, reference, 0, {}])
    dates = found[3]
    found[0] += 1
    found[2] = _moments = _moments + 1
    for its in Tape.every:
        dated = its()
        if dated is not None:
            # Numbers of their own: the object in `next` becomes the handle of a record, and one
            # that stood in a table would keep that record alive.
            position = dated.next - 1
            dated.next = position + 1
            dates[dated.serial] = dated.last_mutation = position + 1


class SavedStorages:
    """The records of a transform that saved something, by the arrays that own the memory."""

    __slots__ = ("positions", "until")

    def __init__(self) -> None:
        self.positions: dict[int, list[int]] = {}  # id of the owner -> positions
        self.until = 0  # records from here on have not been looked at

    def preserve(self, tape: Tape, storage: np.ndarray) -> None:
        """Give the records that saved something of an array copies of it."""
        tape.sweeping += 1  # records stay where they are
        try:
            self._look(tape)
            for position in self.positions.pop(id(storage), ()):
                index = tape.index(position)
                entry = tape.keep[index] if index >= 0 else None
                if type(entry) is tuple:  # an address may be another array's by now
                    copies = [x.copy() if _lies_in(x, storage) else x for x in entry]
                    tape.keep[index] = tuple(copies)
        finally:
            tape.sweeping -= 1

    def _look(self, tape: Tape) -> None:
        """List the records that have come since."""
        if tape.transform_start > self.until:
            self.positions.clear()
            self.until = tape.transform_start
        first, self.until = tape.first_from(self.until), tape.next - 1 + 1
        for index, entry in enumerate(tape.keep[first : tape.used], first):
            if type(entry) is tuple:
                for x in entry:
                    if type(x) is np.ndarray:
                        position = tape.tokens[index] - 1 + 1
                        for owner in (x,) if x.base is None else roots(x):
                            self.positions.setdefault(id(owner), []).append(position)


def _lies_in(x: Any, storage: np.ndarray) -> bool:
    return type(x) is np.ndarray and any(owner is storage for owner in roots(x))


def count(key_array: np.ndarray) -> list[Any]:
    """The state that `bump` changes, for `restore`."""
    found = _versions.get(id(key_array))
    return [0, 0, {}] if found is None else [found[0], found[2], {**found[3]}]


def restore(key_array: np.ndarray, before: list[Any]) -> None:
    """Undo the count of a change that was refused."""
    found = _versions[id(key_array)]
    found[0], found[2], found[3] = before


def alone(array: np.ndarray) -> np.ndarray:
    """A contiguous array that shares its memory with none: this one or a copy.

    It is passed straight from where it was: only this function and `getrefcount` may hold it.
    """
    if array.flags.c_contiguous and getrefcount(array) <= _OURS:
        owner = array.base
        if owner is None or (
            type(owner) is np.ndarray
            and owner.base is None
            and owner.size == array.size
            and getrefcount(owner) <= _BELOW
        ):
            return array
    return array.copy(order="C")
