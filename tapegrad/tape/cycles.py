"""Find records that only hooks and contexts keep in use, which the tape keeps for these records.

A hook that closes over its own Tensor refers to the position of the record that it is a hook of. As
the tape holds the hook, Python's collector never finds such a cycle.  It is found as that finds
others: of all that hooks and contexts of Functions reach, what nobody else refers to is in use only
if a record that is has it.
"""

from __future__ import annotations

import builtins
import gc
from collections.abc import Callable, Iterator
from itertools import chain
from sys import getrefcount
from types import CodeType, ModuleType
from typing import Any, Protocol

import numpy as np

from tapegrad.base.reference_counts import expected_count


class Holder(Protocol):
    """What a tape keeps of each record."""

    hooks: dict[int, Any]
    keep: list[Any]
    tokens: list[Any]

    def index(self, position: int) -> int:
        """The index of the record of a position, or -1."""


# Objects that are looked at, at all and for each hook: where there are more, all count as in use.
MOST, MOST_OF_EACH = 100_000, 100
_LISTED = expected_count(0, holders=1)  # references to what lies in one list alone


def in_use(
    tape: Holder, marks: np.ndarray, propagate: Callable[[Any, np.ndarray, int], None]
) -> np.ndarray:
    """Which of the marked records are in use by something else than cycles.

    `propagate` marks what marked records read.
    """
    count = len(marks)
    owned = [*_owned(tape, count)]
    found = _Referents([thing for _, thing in owned], tape) if owned else None
    if found is None or not found.complete:
        return marks
    below = found.below
    at = {id(token): i for i, token in enumerate(tape.tokens[:count])}
    held = np.fromiter(map(getrefcount, tape.tokens[:count]), np.int64, count) - _LISTED - 1
    holds = [[at[name] for name in names if name in at] for names in found.numbers]
    for i in chain(*holds):
        held[i] -= 1
    outside = found.outside()
    outside[: len(owned)] -= 2  # the tape itself, and the list of what it owns
    reached, pending = set[int](), np.flatnonzero(outside).tolist()
    while True:
        while pending:
            k = pending.pop()
            if k not in reached:
                reached.add(k)
                pending += below[k]
                for i in holds[k]:
                    held[i] += 1
        marks = (held > 0).astype(np.uint8)
        propagate(tape, marks, count)
        pending = [k for k, (i, _) in enumerate(owned) if marks[i] and k not in reached]
        if not pending:
            return marks


def _owned(tape: Holder, count: int) -> Iterator[tuple[int, Any]]:
    """What the tape holds for a record and may refer to Tensors: hooks, the entry of a Function."""
    for position, hooks in tape.hooks.items():
        index = tape.index(position)
        if 0 <= index < count:
            yield index, hooks
    for index, entry in enumerate(tape.keep[:count]):
        if entry is not None and type(entry) is not tuple:
            yield index, entry


class _Referents:
    """What some objects refer to, and what that refers to.

    `below` says of each object which others it refers to, `numbers` which integers, by identity.
    """

    def __init__(self, things: list[Any], tape: Holder) -> None:
        self.objects, self.complete = things, True
        most = max(MOST, MOST_OF_EACH * len(things))
        self.below: list[list[int]] = []
        self.numbers: list[list[int]] = []
        self.inside = [0] * len(things)
        seen = {id(thing): k for k, thing in enumerate(things)}
        for thing in things:  # which grows
            self.complete = len(things) <= most
            if not self.complete:
                return
            below, numbers = list[int](), list[int]()
            for part in gc.get_referents(thing):
                if type(part) is int:
                    numbers.append(id(part))
                elif gc.is_tracked(part) and part is not tape and not _is_code(part):
                    at = seen.setdefault(id(part), len(things))
                    if at == len(things):
                        things.append(part)
                        self.inside.append(0)
                    self.inside[at] += 1
                    below.append(at)
            self.below.append(below)
            self.numbers.append(numbers)

    def outside(self) -> np.ndarray:
        """How many references there are to each object from elsewhere."""
        counts = np.fromiter(map(getrefcount, self.objects), np.int64, len(self.objects))
        return counts - _LISTED - self.inside


def _is_code(thing: Any) -> bool:
    """Whether an object belongs to the program, and leads to all of it."""
    if isinstance(thing, (type, ModuleType, CodeType)):
        return True
    return type(thing) is dict and ("__builtins__" in thing or thing is vars(builtins))
