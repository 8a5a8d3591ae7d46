"""Records of a tape in readable form, and the table that they print as."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, overload

from tapegrad.base.public_names import listed
from tapegrad.base.text_tables import counted, html_table, text_table
from tapegrad.tape.shape_table import Shape

HEAD = ("position", "operation", "inputs", "shape", "state")
SHOWN = 60  # records that a table shows of a tape; of a longer one its two ends


class Record(NamedTuple):
    """One readable record of a tape.

    >>> import tapegrad as tg
    >>> x = tg.tensor(2.0, requires_grad=True)
    >>> (x * 3.0).tape[-1].op
    'mul'
    """

    position: int
    op: str
    inputs: tuple[str, ...]
    shape: Shape
    state: str

    def __dir__(self) -> list[str]:
        return listed(self, "op position inputs shape state")

    def _repr_html_(self) -> str:
        return html_table(HEAD, [cells(self)])


class Records:
    """A sequence of records, which prints as a table of them."""

    __slots__ = ()

    def record(self, index: int) -> Record:
        """The record at an index, which counts from the first."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> list[Record]: ...
    def __getitem__(self, key: int | slice) -> Record | list[Record]:
        if isinstance(key, slice):
            return [self.record(i) for i in range(*key.indices(len(self)))]
        if not isinstance(key, int):
            raise TypeError(f"a record's place is an int or a slice, got {type(key).__name__}")
        index = key + len(self) if key < 0 else key
        if not 0 <= index < len(self):
            there = f"there {'is' if len(self) == 1 else 'are'} {counted(len(self), 'record')} here"
            raise IndexError(f"{there}, and none at {key}")
        return self.record(index)

    def __iter__(self) -> Iterator[Record]:
        return (self.record(i) for i in range(len(self)))

    def __str__(self) -> str:
        return text_table(HEAD, table_rows(self.record, len(self)))

    def _repr_html_(self) -> str:
        return html_table(HEAD, table_rows(self.record, len(self)), repr(self)[1:-1])


def cells(record: Record) -> tuple[str, ...]:
    """A record's row of the table."""
    inputs = " ".join(record.inputs)
    return str(record.position), record.op, inputs, str(record.shape), record.state


def table_rows(record: Callable[[int], Record], count: int) -> list[tuple[str, ...]]:
    """The rows of `count` records; of many, of those at the two ends."""
    half = SHOWN // 2
    left_out = count - 2 * half if count > SHOWN else 0
    shown = [*range(half), *range(count - half, count)] if left_out else range(count)
    rows = [cells(record(i)) for i in shown]
    if left_out:
        rows.insert(half, ("...", f"({left_out} more)", "", "", ""))
    return rows
