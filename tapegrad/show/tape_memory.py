"""What a tape keeps alive: the buffers that its records have saved, and its leaves."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.text_tables import byte_count, counted, html_table, text_table
from tapegrad.ops.core import Op, by_code
from tapegrad.show.named_slice import root_of
from tapegrad.tape import versions
from tapegrad.tape.record_format import CODE_MASK, WORD
from tapegrad.tape.shape_table import Shape
from tapegrad.tape.tape import Tape, current
from tapegrad.tape.tape_slice import TapeSlice, beneath
from tapegrad.tensor import Tensor

HEAD = ("bytes", "shape", "dtype", "kept by", "line")
SHOWN, PRINTED = 4, 50  # records that a printed row names; rows that are printed
LINES_UNKNOWN = (
    "The lines are those of records that were made under `tapegrad.autograd.detect_anomaly()`."
)
_CONTAINERS = (tuple, list, set, dict)
_FRAME = re.compile(r'^  File "(.*)", line (\d+)', re.MULTILINE)


class Buffer(NamedTuple):
    """A piece of memory that a tape keeps alive.

    `records` holds a position and the name of a saved value for each record that keeps it, `leaves`
    the slots of leaves that lie in it, and `line` where the first of the records was made.

    >>> import tapegrad as tg
    >>> x = tg.ones(1000, requires_grad=True)
    >>> tg.show.memory(tg.exp(x)).rows[0].records
    ((..., 'exp', 'result'),)
    """

    nbytes: int
    shape: Shape
    dtype: np.dtype[Any]
    records: tuple[tuple[int, str, str], ...]
    leaves: tuple[int, ...]
    line: str

    @property
    def kept_by(self) -> str:
        """The records and leaves in words."""
        names = [f"leaf{slot}" for slot in self.leaves]
        names += [f"{op} {at}" + (f" ({name})" if name else "") for at, op, name in self.records]
        rest = len(names) - SHOWN
        return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


class MemoryUse:
    """What a tape keeps alive, largest first; made by `tapegrad.show.memory`.

    >>> import tapegrad as tg
    >>> use = tg.show.memory(tg.sin(tg.ones(1000, requires_grad=True)))
    >>> use.nbytes, len(use.rows), use.records
    (8000, 1, 1)
    """

    def __init__(self, rows: Iterable[Buffer], records: int) -> None:
        self.rows = tuple(sorted(rows, key=lambda row: -row.nbytes))
        self.records = records

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return sum(row.nbytes for row in self.rows)

    def _cells(self) -> list[tuple[str, ...]]:
        cells: list[tuple[str, ...]] = [
            (byte_count(row.nbytes), str(row.shape), row.dtype.name, row.kept_by, row.line)
            for row in self.rows[:PRINTED]
        ]
        rest = self.rows[PRINTED:]
        if rest:
            nbytes = byte_count(sum(row.nbytes for row in rest))
            cells.append((nbytes, f"({len(rest)} more)", "", "", ""))
        return cells

    def _title(self) -> str:
        buffers = counted(len(self.rows), "buffer")
        return f"{byte_count(self.nbytes)} in {buffers} of {counted(self.records, 'record')}"

    @property
    def _note(self) -> str:
        known = all(row.line or not row.records for row in self.rows)
        return "" if known else LINES_UNKNOWN

    def __str__(self) -> str:
        table = text_table(HEAD, self._cells(), "bytes") if self.rows else ""
        return "\n".join(filter(None, [self._title(), table, self._note]))

    def __repr__(self) -> str:
        return f"<MemoryUse: {self._title()}>"

    def _repr_html_(self) -> str:
        note = f"<p>{self._note}</p>" if self._note else ""
        return html_table(HEAD, self._cells(), self._title()) + note


def memory(of: Tape | TapeSlice | Tensor | None = None) -> MemoryUse:
    """What a tape keeps alive: each buffer once, the largest first, and who keeps it.

    Parameters
    ----------
    of : a Tensor or its `tape`, for the records that it was computed by; a whole tape; None: this
        thread's tape.

    A record keeps what its derivative reads, until a sweep releases it or nothing refers to the
    record. Under `tapegrad.autograd.detect_anomaly()` the tape notes the user's line of each
    record, which is shown then.

    >>> import tapegrad as tg
    >>> x = tg.ones(1000, requires_grad=True)
    >>> y = (tg.exp(x) * x).sum()
    >>> print(tg.show.memory(y))
    16 kB in 2 buffers of 3 records
    bytes  shape    dtype    kept by                          line
     8 kB  (1000,)  float64  exp ... (result), mul ... (a)
     8 kB  (1000,)  float64  leaf..., mul ... (b)
    The lines are those of records that were made under `tapegrad.autograd.detect_anomaly()`.
    >>> y.backward()
    >>> tg.show.memory(y).rows[0].kept_by
    'leaf...'
    """
    if of is None or isinstance(of, Tape):
        tape = current.tape if of is None else of
        indices: Iterable[int] = range(len(tape))
    elif isinstance(of, TapeSlice):
        tape, indices = of.whole, of.indices()
    elif isinstance(of, Tensor):
        tape, top = root_of(of, "memory")
        indices = beneath(tape, top)
    else:
        raise TypeError(f"`memory` takes a Tape, a Tensor or nothing, got {type(of).__name__}")
    return _use(tape, list(indices))


def _use(tape: Tape, indices: list[int]) -> MemoryUse:
    arrays: dict[int, np.ndarray] = {}
    records: dict[int, dict[tuple[int, str, str], None]] = {}
    slots: dict[int, list[int]] = {}
    for index in indices:
        position, op = tape.tokens[index], tape.record(index).op
        for name, array in _saved(tape, index):
            found = versions.memory(array)
            arrays[id(found)] = found
            records.setdefault(id(found), {})[position, op, name] = None
    for slot in sorted({-code - 1 for i in indices for code in tape.inputs(i) if code < 0}):
        found = versions.memory(tape.leaves[slot]._a)
        arrays[id(found)] = found
        slots.setdefault(id(found), []).append(slot)
    rows = []
    for key, array in arrays.items():
        kept = tuple(records.get(key, ()))
        line = _line(tape, kept[0][0]) if kept else ""
        rows.append(
            Buffer(array.nbytes, array.shape, array.dtype, kept, tuple(slots.get(key, ())), line)
        )
    return MemoryUse(rows, len(indices))


def _saved(tape: Tape, index: int) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays that a record keeps, and which operand, or the result, each of them is."""
    entry = tape.keep[index]
    op = by_code[int(tape.words()[index, WORD]) & CODE_MASK]
    names = (*op.inputs, "result") if type(entry) is tuple and not op.variadic else ()
    for k, value in enumerate(entry if type(entry) is tuple else (entry,)):
        for array in _arrays(value):
            yield names[k] if k < len(names) else "", array


def _arrays(thing: Any) -> Iterator[np.ndarray]:
    """The arrays that an object of the library refers to, through containers and Tensors."""
    seen, pending = set[int](), [thing]
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, (Tape, Op)):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            yield thing
        elif isinstance(thing, Tensor):
            pending.append(thing._a)
        elif isinstance(thing, _CONTAINERS) or (
            type(thing).__module__.startswith("tapegrad.") and not callable(thing)
        ):
            pending += gc.get_referents(thing)


def _line(tape: Tape, position: int) -> str:
    """The user's line that made a record, and what stands there; empty where it is not known."""
    trace = str(tape.traces.get(position, ""))
    frames = list(_FRAME.finditer(trace))
    if not frames:
        return ""
    source = trace[frames[-1].end() :].split("\n")[1:2]
    return f"{frames[-1][1]}:{frames[-1][2]}" + "".join(f"  {text.strip()}" for text in source)
