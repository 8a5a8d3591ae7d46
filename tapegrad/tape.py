"""The Wengert tape: one flat buffer of integers, one record per operation.

A record is six 64-bit integers, `WORD IN0 IN1 IN2 SHAPE AUX`, at an absolute position that only
ever grows.  Beside the buffer run two lists with one entry per record: `keep`, the values that the
derivative will need, and `tokens`, the position objects themselves.  A handle (a Tensor) holds the
very integer object that stands in `tokens`, so its reference count tells whether anyone still holds
the record: that is how abandoned records are found, without weak references and without one
finaliser per Tensor.

An input is a position (> 0), a leaf slot (< 0, slot `s` is written `-s - 1`) or nothing (0).
"""

from __future__ import annotations

import itertools
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload

import numpy as np

from tapegrad.shapes import Shape, shapes

if TYPE_CHECKING:
    from tapegrad.tensor import Tensor

FIELDS = 6
WORD, IN0, IN1, IN2, SHAPE, AUX = range(FIELDS)
STRIDE = 8 * FIELDS
pack_into = struct.Struct(f"{FIELDS}q").pack_into
unpack_from = struct.Struct(f"{FIELDS}q").unpack_from
pack_word = struct.Struct("q").pack_into

# The word: operation code, how each input is broadcast, the dtype, and the state of the record.
CODE_MASK = 0xFFFF
FLAT, SCALAR, ROW, COLUMN = range(4)
CLASS_SHIFT = (16, 18, 20)
DTYPE_SHIFT = 22
DTYPES = (np.dtype("f8"), np.dtype("f4"), np.dtype("c16"), np.dtype("c8"))
DTYPE_BITS = {dtype: bits << DTYPE_SHIFT for bits, dtype in enumerate(DTYPES)}
GENERAL = 1 << 24  # only the general (Python) walker understands this record
RELEASED = 1 << 25  # a sweep has passed without retain_graph
SPENT = 1 << 26  # ... and took saved values away that a second sweep would need
HOOKED = 1 << 27  # somebody listens to the adjoint of this record
WIDE = 1 << 28  # inputs stand in `wide`, IN0 is their offset and IN1 their number
PACKED = 1 << 29  # the kept values went through saved_tensors_hooks
SAVES = 1 << 30  # values are kept, not only static arguments

# CPython shares its integers up to 256, so the reference count of such a position says nothing:
# positions start above them.
FIRST = 1000
MIN_CAPACITY = 4096
PRINTED = 1000  # records that a printed tape shows; of a longer one its two ends
DROP_FLOOR = 1 << 20  # bytes of recorded results from which the newest records are looked at
DEBT_FLOOR = 1 << 24  # bytes of recorded results before abandoned records are looked for

NARROW = -2  # a Tensor of float32 says NARROW - n where one of float64 says n

MODE_OFF, MODE_FAST, MODE_CAREFUL = range(3)

Mark = tuple[list[int], int, int, int]  # the tokens, and the lengths of these, leaves, wide

leaf_keys: Callable[[], int] = itertools.count(1).__next__


Propagate = Callable[["Tape", np.ndarray, int], None]


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


class Ended:
    """Stands in `_home` of a variable whose transform has ended: which one that was."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Tape:
    """The records of one thread, in the order in which they were made.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * x).sum()
    >>> [record.op for record in y.tape[-2:]]
    ['mul', 'sum']
    """

    __slots__ = (
        "__weakref__",
        "address",
        "anomaly",
        "buffer",
        "capacity",
        "debt",
        "debt_limit",
        "depth",
        "element",
        "enabled",
        "end",
        "floor",
        "hooks",
        "inference",
        "keep",
        "last_mutation",
        "leaves",
        "levels",
        "lost",
        "mode",
        "mutated",
        "next",
        "offset",
        "old",
        "old_at",
        "recomputed",
        "saved_hooks",
        "shift",
        "slots",
        "sweeping",
        "tail",
        "thread",
        "tokens",
        "torchs",
        "traces",
        "wide",
        "workspace",
    )

    # The compiled liveness pass, once the sweep is loaded.
    propagate: ClassVar[Propagate | None] = None
    full: ClassVar[Callable[[], None] | None] = None  # told when a tape's buffer is full
    moved: ClassVar[Callable[[], None] | None] = None  # told when a thread gets a tape
    every: ClassVar[list[weakref.ref[Tape]]] = []  # one for each thread that recorded
    op_names: ClassVar[list[str]] = []  # filled by the op table: code -> name

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.offset = 0  # where in the buffer the next record goes
        self.buffer = bytearray()
        self._resize(MIN_CAPACITY)
        self.next = FIRST - 1 + 1  # its position, an object that nobody else holds
        self.shift = FIRST  # position - index, for every record that was never moved
        self.old: np.ndarray = np.empty(0, np.int64)  # positions of the records that were moved
        self.old_at = 0  # the address of these
        self.floor = 0  # index below which every record is released
        self.tokens: list[int] = []
        self.keep: list[Any] = []
        self.wide: list[int] = []
        self.slots: dict[int, int] = {}  # leaf key -> input code
        self.leaves: list[Tensor] = []  # slot -> leaf
        self.hooks: dict[int, Any] = {}  # position -> hooks on the adjoint there
        self.traces: dict[int, str] = {}  # position -> the user's line, under anomaly detection
        self.mutated: dict[int, int] = {}  # storage -> position at its last in-place change
        self.last_mutation = 0
        self.debt = 0
        self.debt_limit = DEBT_FLOOR
        self.tail = (0, 0)  # the records that `drop_tail` has emptied: first, and one past the last
        self.workspace: Any = None  # memory of the compiled walk, made by the first sweep
        self.sweeping = 0  # sweeps under way; a hook may start another
        self.recomputed: dict[Any, Any] = {}  # checkpoint -> its values, for these sweeps
        self.levels: list[Any] = []  # of the transforms under way that lift Tensors
        self.depth = 0  # transforms under way
        self.element: Any = None  # the `View` of all elements that are numbers of their own
        self.torchs = False  # within them, too, PyTorch's rules hold: see `numpy_mode`
        self.lost: dict[int, str] = {}  # positions the user holds of what ended, and its name
        self.enabled = True
        self.inference = False
        self.anomaly: Any = None  # None: off; else whether, and how, NaN is looked for
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.mode = MODE_FAST
        Tape.every[:] = [other for other in Tape.every if other() is not None]
        Tape.every.append(weakref.ref(self))

    @staticmethod
    def all() -> list[Tape]:
        """The tapes of all threads."""
        return [tape for reference in tuple(Tape.every) if (tape := reference()) is not None]

    # -- writing ---------------------------------------------------------------------------

    def append(self, word: int, inputs: tuple[int, ...], shape: Shape, aux: int, entry: Any) -> int:
        """Write one record and return its position (the object that a handle must hold).

        The caller has made room before it asked for leaf slots: making room renumbers them.
        """
        if len(inputs) > 3:
            start = len(self.wide)
            self.wide.extend(inputs)
            a, b, c = start, len(inputs), 0
            word |= WIDE
        else:
            a, b, c = (*inputs, 0, 0, 0)[:3]
        token = self.next
        pack_into(self.buffer, self.offset, word, a, b, c, shapes.number(shape), aux)
        self.offset += STRIDE
        self.next = token + 1
        self.tokens.append(token)
        self.keep.append(entry)
        return token

    def append_all(self, words: np.ndarray, leaf: Tensor, entries: list[Any]) -> list[int]:
        """Write records that read one Tensor alone, and return their positions.

        `words` are the records as they stand in the buffer, but for that input.
        """
        count = len(words)
        offset = self.make_room(count)
        block = np.frombuffer(self.buffer, np.int64, count * FIELDS, offset).reshape(-1, FIELDS)
        block[:] = words
        block[:, IN0] = leaf._pos if leaf._pos > 0 else self.slot(leaf)
        first, end = self.next, self.next + count
        tokens = list(range(first, end))
        self.offset = offset + count * STRIDE
        self.next = end
        self.tokens += tokens
        self.keep += entries
        return tokens

    def slot(self, leaf: Tensor) -> int:
        """The input code of a leaf; from its first use the tape keeps the leaf alive."""
        code = self.slots.get(leaf._pos)
        if code is None:
            self.leaves.append(leaf)
            code = self.slots[leaf._pos] = -len(self.leaves)
        return code

    def owe(self, nbytes: int) -> None:
        """Account for a large result; abandoned records may be holding as much as all live ones."""
        self.debt += nbytes
        if self.debt > self.debt_limit:
            self.reclaim()

    def drop_tail(self) -> None:
        """Let go of what the newest records keep, as far down as nobody holds any of them.

        A large result that was dropped then frees its memory before the next one asks for some.
        """
        if self.sweeping:
            return
        words, tokens, keep = self.words(), self.tokens, self.keep
        count = index = len(tokens)
        first, end = self.tail
        dropped = []
        while index:
            if index == end:
                index, end = first, -1
            elif getrefcount(tokens[index - 1]) > 2:  # the list's reference and the call's
                break
            else:
                index -= 1
                dropped.append(keep[index])
                keep[index] = None
                words[index, WORD] |= RELEASED | SPENT
                self.debt -= 8 * shapes.counts[words[index, SHAPE]]
        self.tail = (index, count)
        self.debt = max(self.debt, 0)
        del dropped  # last: freeing values may run code of the user

    def set_mode(self) -> None:
        """Choose between not recording, the short path, and the careful one."""
        careful = self.anomaly is not None or bool(self.saved_hooks) or bool(self.lost)
        self.mode = (MODE_CAREFUL if careful else MODE_FAST) if self.enabled else MODE_OFF

    # -- reading ---------------------------------------------------------------------------

    def words(self) -> np.ndarray:
        """The buffer as an array of shape (records, fields); shares memory."""
        return np.frombuffer(self.buffer, np.int64, len(self.tokens) * FIELDS).reshape(-1, FIELDS)

    def index(self, position: int) -> int:
        """Where the record of a position stands now, or -1 when it was reclaimed."""
        index = position - self.shift
        if index >= len(self.old):
            return index if index < len(self.tokens) else -1
        found = int(np.searchsorted(self.old, position))
        return found if found < len(self.old) and self.old[found] == position else -1

    def inputs(self, index: int) -> tuple[int, ...]:
        """The input codes of a record."""
        word, a, b, c, _, _ = unpack_from(self.buffer, index * STRIDE)
        return tuple(self.wide[a : a + b]) if word & WIDE else (a, b, c)

    def record(self, index: int) -> Record:
        """The readable form of the record at an index."""
        row = self.words()[index].tolist()
        word = row[WORD]
        entry = self.keep[index]
        name = getattr(entry, "record_name", None) or Tape.op_names[word & CODE_MASK]
        inputs = tuple(f"leaf{-i - 1}" if i < 0 else str(i) for i in self.inputs(index) if i)
        state = "released" if word & RELEASED else "live"
        return Record(self.tokens[index], name, inputs, shapes.shapes[row[SHAPE]], state)

    def __len__(self) -> int:
        return len(self.tokens)

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
            raise IndexError(f"the tape has {len(self)} records, there is no record {key}")
        return self.record(index)

    def __iter__(self) -> Iterator[Record]:
        return (self.record(i) for i in range(len(self)))

    def __str__(self) -> str:
        rows = [("position", "operation", "inputs", "shape", "state")]
        count = len(self)
        shown = range(count) if count <= PRINTED else [*range(PRINTED // 2)]
        shown = [*shown, *range(count - PRINTED // 2, count)] if count > PRINTED else shown
        for index in shown:
            r = self.record(index)
            rows.append((str(r.position), r.op, " ".join(r.inputs), str(r.shape), r.state))
        if count > PRINTED:
            rest = f"({count - PRINTED} more)"
            rows.insert(1 + PRINTED // 2, ("...", rest, "", "", ""))
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return f"<Tape of {len(self)} records, next position {self.next}>"

    # -- releasing and reclaiming ----------------------------------------------------------

    def release(self, indices: np.ndarray) -> None:
        """Drop the saved values of swept records (ascending indices) and mark them released."""
        if not len(indices):
            return
        words = self.words()
        keep = self.keep
        first, last = int(indices[0]), int(indices[-1])
        saving = indices[(words[indices, WORD] & SAVES) != 0]
        if last - first + 1 == len(saving):
            keep[first : last + 1] = [None] * len(saving)
        else:
            for i in saving.tolist():
                keep[i] = None
        words[indices, WORD] |= RELEASED
        words[saving, WORD] |= SPENT
        self.raise_floor(first, last + 1 if last - first + 1 == len(indices) else first + 1)

    def raise_floor(self, first: int, end: int) -> None:
        """All records from `first` up to `end` are released: so may be all below `end`."""
        if first <= self.floor < end:
            self.floor = end

    def mark(self) -> Mark:
        """Where the tape stands: what `tapegrad.rewind` goes back to."""
        return self.tokens, len(self.tokens), len(self.leaves), len(self.wide)

    def drop_spent(self, mark: Mark) -> None:
        """Let go of what the records since a mark keep although a sweep has taken it away."""
        first = mark[1] if mark[0] is self.tokens else 0
        spent = (self.words()[first:, WORD] & SPENT) != 0
        dropped = []
        for index in (first + np.flatnonzero(spent)).tolist():
            dropped.append(self.keep[index])
            self.keep[index] = None
        del dropped  # last: freeing values may run code of the user

    def keep_places(self, count: int) -> None:
        """The first records, so many, are found by bisection from now on."""
        have = len(self.old)
        if count > have:
            room = self.old if self.old.base is None else self.old.base
            if len(room) < count:
                room = np.empty(2 * count, np.int64)
                room[:have] = self.old
            room[have:count] = self.tokens[have:count]
            self.old_at = room.ctypes.data
            self.old = room[:count]
        elif count < have:
            self.old = self.old[:count]

    def let_go(self) -> None:
        """Forget what was lost when nobody holds any of it; the short roads are open again."""
        # The table's reference and the call's, and the list's of a record that is still there.
        if all(getrefcount(p) <= 3 + (self.index(p) >= 0) for p in self.lost):
            self.lost.clear()
            self.set_mode()

    def make_room(self, records: int = 1) -> int:
        """Reclaim, and grow when more than half of the records are still in use."""
        if self.offset + records * STRIDE <= self.end:
            return self.offset
        if Tape.full is not None:
            Tape.full()
        self.let_go()
        self.reclaim()
        used = len(self.tokens) + records - 1
        if 2 * used > self.capacity:
            self._resize(max(2 * self.capacity, 2 * used))
        elif self.capacity > MIN_CAPACITY and 8 * used < self.capacity:
            self._resize(max(MIN_CAPACITY, self.capacity // 4))
        return self.offset

    def _resize(self, capacity: int) -> None:
        buffer = bytearray(capacity * STRIDE)
        buffer[: self.offset] = self.buffer[: self.offset]
        self.buffer, self.capacity, self.end = buffer, capacity, capacity * STRIDE
        self.address = np.frombuffer(buffer, np.int64).ctypes.data

    def reclaim(self) -> None:
        """Forget every record that no handle reaches.

        One pass over the records: those whose position somebody holds are live, and so is what a
        live, unspent record reads.  The others are squeezed out; what survives keeps its position
        and is found by bisection from then on.
        """
        count = len(self.tokens)
        # Two references are the list's own and the one of the call.
        if self.sweeping:  # a sweep holds indices; it may only grow
            return
        live = np.fromiter(map(getrefcount, self.tokens), np.int64, count) > 2
        if count:
            live[-1] |= self.tokens[-1] == self.next  # `next` may share the object
        marks = live.astype(np.uint8)
        (Tape.propagate or _propagate)(self, marks, count)
        self._squeeze(np.flatnonzero(marks))
        self.debt = 0
        self.debt_limit = max(DEBT_FLOOR, self._held_bytes())

    def _held_bytes(self) -> int:
        return int(8 * shapes.sizes[self.words()[:, SHAPE]].sum())

    def _squeeze(self, survivors: np.ndarray) -> None:
        self.tail = (0, 0)
        words = self.words()[survivors]
        chosen = survivors.tolist()
        below = int(np.searchsorted(survivors, self.floor))
        dropped_keep, self.keep = self.keep, [self.keep[i] for i in chosen]
        self.tokens = [self.tokens[i] for i in chosen]
        self._squeeze_wide(words)
        self._forget_leaves(words)
        self.old = np.array(self.tokens, np.int64)
        self.old_at = self.old.ctypes.data
        self.shift = self.next - len(chosen)
        self.floor = below
        self.offset = len(chosen) * STRIDE
        self.buffer[: self.offset] = words.tobytes()
        held = set(self.tokens) if self.hooks or self.traces else set()
        for table in (self.hooks, self.traces):
            for position in [p for p in table if p not in held]:
                del table[position]
        del dropped_keep  # last: freeing values may run code of the user

    def _squeeze_wide(self, words: np.ndarray) -> None:
        wide: list[int] = []
        for i in np.flatnonzero(words[:, WORD] & WIDE):
            start, number = int(words[i, IN0]), int(words[i, IN1])
            words[i, IN0] = len(wide)
            wide.extend(self.wide[start : start + number])
        self.wide = wide

    def _forget_leaves(self, words: np.ndarray) -> None:
        """Let go of the leaves that no surviving record reads, and number the others anew."""
        narrow = (words[:, WORD] & WIDE) == 0
        codes = words[narrow, IN0:SHAPE]
        used = set(codes[codes < 0].tolist()) | {code for code in self.wide if code < 0}
        if len(used) == len(self.leaves):
            return
        kept = sorted(used, reverse=True)
        renumber = {code: -1 - i for i, code in enumerate(kept)}
        leaves = [self.leaves[-code - 1] for code in kept]
        table = np.zeros(len(self.leaves) + 1, np.int64)
        for code, new in renumber.items():
            table[-code] = new
        words[narrow, IN0:SHAPE] = np.where(codes < 0, table[-np.minimum(codes, 0)], codes)
        self.wide = [renumber.get(code, code) for code in self.wide]
        self.leaves = leaves
        self.slots = {key: renumber[c] for key, c in self.slots.items() if c in renumber}


def _propagate(tape: Tape, marks: np.ndarray, count: int) -> None:
    """Mark what marked records read, downwards; the compiled pass does the same."""
    words = tape.words()
    for index in range(count - 1, -1, -1):
        if marks[index] and not words[index, WORD] & SPENT:
            for code in tape.inputs(index):
                if code > 0:
                    below = tape.index(code)
                    if below >= 0:
                        marks[below] = 1


class _Current(threading.local):
    """Every thread records on a tape of its own."""

    tape: Tape

    def __init__(self) -> None:
        self.tape = Tape()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if Tape.moved is not None:
            Tape.moved()


current = _Current()
