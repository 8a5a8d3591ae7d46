"""Version counters: who shares memory with whom, and when it was last changed in place.

NumPy owns the memory.  A storage is the array at the bottom of a chain of views.  Nothing is kept
for a storage until it is first changed in place; from then on it has a counter, and every tape
notes the position at which the change came.  A record that saved a value of that storage before
then finds out when it is swept.  Recording itself pays nothing for this.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.tape import Tape

# storage -> [count, weak reference to its array, when it was last changed]
_versions: dict[int, list[Any]] = {}
_moments = 0  # changes so far


def root(array: np.ndarray) -> np.ndarray:
    """The array whose identity counts for versions, as far down as NumPy tells."""
    while True:
        base: Any = array.base
        if base is not None and not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # NumPy's stride tricks put an object in between
        if not isinstance(base, np.ndarray):
            return array
        array = base


def apart(array: np.ndarray) -> np.ndarray:
    """The same memory as a storage of its own: views of it lead to it, and no further."""
    return np.asarray(memoryview(array))  # type: ignore[arg-type]  # NumPy's have strides as well


def roots(array: np.ndarray) -> Iterator[np.ndarray]:
    """The storages that an array's memory belongs to: its own, then what that stands `apart` of."""
    while True:
        array = root(array)
        yield array
        base: Any = array.base
        if type(base) is not memoryview or not isinstance(base.obj, np.ndarray):
            return
        array = base.obj


def memory(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory, whoever counts its versions."""
    *_, last = roots(array)
    return last


def offset(array: np.ndarray) -> int:
    """How many elements into its storage an array begins."""
    start, here = [int(a.__array_interface__["data"][0]) for a in (memory(array), array)]
    return (here - start) // array.itemsize


def version(key_array: np.ndarray) -> int:
    """How often the storage was changed in place."""
    found = _versions.get(id(key_array))
    return found[0] if found else 0


def moment() -> int:
    """A number for this moment, to compare with what `changed` says."""
    return _moments


def changed(key_array: np.ndarray) -> int:
    """When the storage was last changed in place."""
    found = _versions.get(id(key_array))
    return found[2] if found else 0


def bump(key_array: np.ndarray) -> None:
    """Count an in-place change and date it on every tape."""
    global _moments
    key = id(key_array)
    found = _versions.get(key)
    if found is None:
        reference = weakref.ref(key_array, lambda _: _forget(key))
        found = _versions[key] = [0, reference, 0]
    found[0] += 1
    found[2] = _moments = _moments + 1
    for its in tuple(Tape.every):
        tape = its()
        if tape is not None:
            # A number of its own: the object in `next` becomes the handle of a record, and one
            # that stood in a table would keep that record alive.
            tape.mutated[key] = tape.last_mutation = tape.next - 1 + 1


def _forget(key: int) -> None:
    _versions.pop(key, None)
    for tape in Tape.all():
        tape.mutated.pop(key, None)
