"""The slice of a tape under one record: the records that its value was computed by."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tapegrad.base.public_names import listed
from tapegrad.base.text_tables import counted
from tapegrad.tape.records import Record, Records
from tapegrad.tape.tape import Tape


def output_of(tape: Tape, index: int) -> tuple[int, int]:
    """The position of the Function of which a record is one result, and which; (0, 0) of none."""
    entry = tape.keep[index]
    return getattr(entry, "main", 0), getattr(entry, "j", 0)


def beneath(tape: Tape, top: int, limit: int | None = None) -> list[int]:
    """The indices of the records that one was computed by, and its own.

    Where they are more than `limit`, only some of them, and more than `limit`.
    """
    found, pending = set[int](), [top]
    while pending and (limit is None or len(found) <= limit):
        index = pending.pop()
        if index >= 0 and index not in found:
            found.add(index)
            pending += [tape.index(code) for code in tape.inputs(index) if code > 0]
            main = output_of(tape, index)[0]
            pending += [tape.index(main)] if main else []
    return sorted(found)


class TapeSlice(Records):
    """The records under a Tensor, in the order in which they were made: `Tensor.tape`.

    `whole` is the tape that they stand on, with all records of a thread.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> y, other = tg.exp(3 * x), x + 1
    >>> print(y.tape)
    position  operation  inputs    shape  state
    ...       mul        leaf...   ()     live
    ...       exp        ...       ()     live
    >>> y.tape[-1].op, len(y.tape), y.tape.whole is other.tape.whole
    ('exp', 2, True)
    """

    def __init__(self, whole: Tape, position: int, holder: Any) -> None:
        self.whole = whole
        self._position = position
        self._holder = holder  # keeps the records

    @cached_property
    def _positions(self) -> list[int]:
        tape = self.whole
        tape.sweeping += 1  # no record may move meanwhile
        try:
            return [tape.tokens[k] for k in beneath(tape, tape.index(self._position))]
        finally:
            tape.sweeping -= 1

    def indices(self) -> list[int]:
        """The indices of the records on the whole tape, which reclaiming changes."""
        return [self.whole.index(position) for position in self._positions]

    def record(self, index: int) -> Record:
        """The readable form of one of the records."""
        return self.whole.record(self.whole.index(self._positions[index]))

    def __len__(self) -> int:
        return len(self._positions)

    def __repr__(self) -> str:
        return f"<TapeSlice of {counted(len(self), 'record')}>"

    def __dir__(self) -> list[str]:
        return listed(self, "indices record whole")
