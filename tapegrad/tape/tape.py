"""The Wengert tape: one flat buffer of integers, one record per operation.

A record (`record_format`) stands at an absolute position that only ever grows.  Beside the buffer
run two lists with an entry per record: `keep`, the values that the derivative will need, and
`tokens`, the position objects themselves.  There is room for `capacity` records, of which `used`
are written.  A handle (a Tensor) holds the very integer object that stands in `tokens`, so its
reference count tells whether the record is still referenced: abandoned records are found without
weak references, and without a finaliser per Tensor.

**Re-entrancy.** At every call, function entry, loop back edge and allocation of a container (the
collector) Python may run a signal handler, a finaliser or another thread, which may compute with
Tensors or raise. So changes of a tape are optimistic: prepare, check that the object in `next` is
still the same (each change puts a new one there), then commit by stores and operators alone.
"""

from __future__ import annotations

import itertools
import weakref
from _thread import _local, allocate_lock, get_ident  # `threading` takes a millisecond to import
from array import array
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, ClassVar, Protocol

import numpy as np

from tapegrad.base.public_names import listed
from tapegrad.base.reference_counts import expected_count
from tapegrad.tape import cycles, debts
from tapegrad.tape.record_format import (
    CODE_MASK,
    FIELDS,
    IN0,
    IN1,
    LISTED,
    RELEASED,
    SAVES,
    SHAPE,
    SPENT,
    STRIDE,
    WORD,
    pack_into,
    unpack_from,
)
from tapegrad.tape.records import Record, Records
from tapegrad.tape.shape_table import Shape, shapes

# Positions start above 256: CPython shares its integers up to that, so their counts say nothing.
FIRST = 1000
# References to a position that nobody holds: in `tokens`, in a copy of it too, and in a variable,
# the table of escaped positions and a copy of that.
_IN_TOKENS, UNHELD = expected_count(0, holders=1), expected_count(0, holders=2)
_ESCAPED = expected_count(variables=1, holders=2)
MIN_CAPACITY = 4096

MODE_OFF, MODE_FAST, MODE_CAREFUL = range(3)
Mark = tuple[list[Any], int, int, int]  # the tokens, and the lengths of these, leaves, input_lists

leaf_keys: Callable[[], int] = itertools.count(1).__next__
_serials = itertools.count()
_born = allocate_lock()

Propagate = Callable[["Tape", np.ndarray, int], None]


class Leaf(Protocol):
    """The part of a leaf Tensor that a tape uses: the key of its slot."""

    _pos: int


class Ended:
    """The `_home` of a variable whose transform has ended, with its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Tape(Records):
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
        "careful",
        "cycles_from",
        "debt",
        "debt_limit",
        "depth",
        "element",
        "enabled",
        "escaped",
        "floor",
        "hooks",
        "inference",
        "input_lists",
        "keep",
        "last_mutation",
        "leaf_debt",
        "leaves",
        "levels",
        "mode",
        "next",
        "old",
        "old_at",
        "recomputed",
        "saved",
        "saved_hooks",
        "serial",
        "shift",
        "slots",
        "sweeping",
        "tail",
        "thread",
        "tokens",
        "torchs",
        "traces",
        "transform_start",
        "used",
        "workspace",
    )

    propagate: ClassVar[Propagate]  # the liveness pass, of `autograd.install`, later compiled
    on_full: ClassVar[Callable[[], None] | None] = None  # `install.when_full`
    on_switch: ClassVar[Callable[[], None] | None] = None  # a thread gets a tape: `forget_tape`
    profiled: ClassVar[Tape | None] = None  # whose operations are timed: see `show.profiler`
    every: ClassVar[list[weakref.ref[Tape]]] = []  # one for each thread that recorded
    op_names: ClassVar[list[str]] = []  # filled by the op table: code -> name

    def __init__(self) -> None:
        self.thread = get_ident()
        self.serial = next(_serials)
        self.used = 0  # records that are written
        self.buffer = bytearray()
        self.tokens: list[Any] = []
        self.keep: list[Any] = []
        self.next = FIRST - 1 + 1  # the next position, a new object whenever something has changed
        self._resize(MIN_CAPACITY)
        self.shift = FIRST  # position - index, for every record that was never moved
        self.old: np.ndarray = np.empty(0, np.int64)  # positions of the records that were moved
        self.old_at = 0  # the address of these
        self.floor = 0  # index below which every record is released
        self.input_lists = array("q")
        self.slots: dict[int, int] = {}  # leaf key -> input code
        self.leaves: list[Any] = []  # slot -> leaf
        self.hooks: dict[int, Any] = {}  # position -> hooks on the adjoint there
        self.traces: dict[int, str] = {}  # position -> the user's line, under anomaly detection
        self.last_mutation = 0  # the position at the last in-place change, see `storage`
        self.debt = self.leaf_debt = 0
        self.debt_limit = debts.DEBT_FLOOR
        self.cycles_from = debts.DEBT_FLOOR  # bytes in use from which on `reclaim` looks for cycles
        self.tail = (0, 0)  # the records that `drop_tail` has emptied: first, and one past the last
        self.workspace: Any = None  # memory of the compiled sweep, made by the first sweep
        self.sweeping = 0  # sweeps in progress; a hook may start another
        self.recomputed: dict[Any, Any] = {}  # checkpoint -> its values, for these sweeps
        self.levels: list[Any] = []  # of the open transforms that lift Tensors
        self.depth = 0  # open transforms
        self.transform_start = 0  # the position at which the outermost of these began
        self.saved: Any = None  # `versions.SavedStorages` of it
        self.element: Any = None  # the `View` of all elements that are numbers of their own
        self.torchs = False  # PyTorch's rules hold within transforms, too: see `numpy_semantics`
        self.escaped: dict[int, str] = {}  # positions that outlived their transform, and its name
        self.enabled = True
        self.inference = False
        self.anomaly: Any = None  # None: off; else how to check for NaN
        self.saved_hooks: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = []
        self.careful = MODE_FAST  # the mode where operations are recorded
        self.mode = MODE_FAST
        with _born:
            others = [other for other in Tape.every if other() is not None]
            Tape.every = [*others, weakref.ref(self)]

    @staticmethod
    def all() -> list[Tape]:
        """The tapes of all threads."""
        return [tape for reference in tuple(Tape.every) if (tape := reference()) is not None]

    # -- writing ---------------------------------------------------------------------------

    def append(
        self, word: int, places: Sequence[int], shape: Shape, aux: int, entry: Any,
        operands: Sequence[Any] = (),
    ) -> int:  # fmt: skip
        """Write one record and return its position (the object that a handle must hold).

        `places` are positions, 0, or the keys of leaves, which stand there among the operands.
        """
        number = shapes.number(shape)
        if self.leaf_debt > self.debt_limit:
            self.reclaim()
        while True:
            token, used = self.next, self.used
            a, b, c = (*places, 0, 0, 0)[:3]
            bits, inputs = word, None
            if len(places) > 3:
                slot = self.slot
                codes = [p if p >= 0 else slot(operands[k]) for k, p in enumerate(places)]
                inputs = array("q", codes)
                bits, a, b, c = word | LISTED, len(self.input_lists), len(inputs), 0
            if a < 0:
                a = self.slots.get(a) or self.slot(operands[0])
            if b < 0:
                b = self.slots.get(b) or self.slot(operands[1])
            if c < 0:
                c = self.slots.get(c) or self.slot(operands[2])
            pack_into(self.buffer, used * STRIDE, bits, a, b, c, number, aux)
            if used == self.capacity:
                self.make_room()
            elif self.next is token:  # and so it stays to the end
                self.tokens[used] = token
                self.keep[used] = entry
                if inputs:
                    self.input_lists += inputs
                self.used = used + 1
                self.next = token + 1
                return token

    def list_inputs(self, codes: bytes) -> int:
        """Put the codes of many inputs, as bytes, into the list of them; where they begin there.

        They are another record's, or nobody's, if something else is recorded meanwhile.
        """
        start = len(self.input_lists)
        self.input_lists.frombytes(codes)
        return start

    def slot(self, leaf: Leaf) -> int:
        """The input code of a leaf, which the tape keeps, and owes, from its first use on."""
        while True:
            key = leaf._pos
            if (code := self.slots.get(key)) is not None:
                return code
            leaves = self.leaves
            leaves += [leaf]
            code = -len(leaves)
            if self.leaves is leaves and leaves[-1] is leaf and key not in self.slots:
                self.slots[key] = code
                self.leaf_debt += debts.owed_by(leaf._a)
                return code

    def add_debt(self, nbytes: int) -> None:
        """Account for a large result, and reclaim when abandoned records may hold much memory."""
        self.debt += nbytes
        if self.debt > self.debt_limit:
            self.reclaim()

    def drop_tail(self) -> None:
        """Free values saved by unreferenced records at the tape's end.

        So a large result that was dropped frees its memory before the next one is allocated.
        """
        before, tokens, keep = self.next, self.tokens, self.keep
        count = index = self.used
        (first, end), found = self.tail, list[int]()
        while index and not self.sweeping:
            if index == end:
                index, end = first, -1
            elif getrefcount(tokens[index - 1]) > _IN_TOKENS:
                break
            else:
                index -= 1
                found.append(index)
        if not found:
            return
        rows = self.words()[found]
        rows[:, WORD] |= RELEASED | SPENT
        debt = max(self.debt - debts.owed(rows), 0)
        words = self.words()
        dropped: list[Any] = []
        tail = (index, count)
        if self.next is before:
            words[found] = rows
            self.tail = tail
            self.debt = debt
        for at in found:
            if self.next is not before:  # indices mean other records now
                break
            entry, keep[at] = keep[at], None
            dropped.append(entry)
        del dropped  # last: freeing values may run code of the user

    def set_mode(self) -> None:
        """Choose between not recording, the fast path, and the careful one."""
        careful = self.saved_hooks or self.escaped or self is Tape.profiled
        self.careful = MODE_CAREFUL if careful or self.anomaly is not None else MODE_FAST
        self.mode = self.careful if self.enabled else MODE_OFF

    def switch(self, enabled: bool, inference: bool) -> None:
        """Switch recording and inference mode."""
        self.enabled, self.inference = enabled, inference
        self.mode = self.careful if enabled else MODE_OFF

    def mark_words(self, indices: Any, bits: int) -> None:
        """Set bits in the words of records during a sweep."""
        while True:
            buffer = self.buffer
            words = self.words()[:, WORD]
            words[indices] |= bits
            if self.buffer is buffer:
                self.next = self.next - 1 + 1
                return

    def flag(self, position: int, bits: int) -> None:
        """Set bits in the word of a referenced record."""
        self.sweeping += 1  # the record stays where it is
        try:
            self.mark_words(self.index(position), bits)
        finally:
            self.sweeping -= 1

    # -- reading ---------------------------------------------------------------------------

    def words(self) -> np.ndarray:
        """The buffer as an array of shape (records, fields); shares memory."""
        return np.frombuffer(self.buffer, np.int64, self.used * FIELDS).reshape(-1, FIELDS)

    def index(self, position: int) -> int:
        """The index of the record of a position, or -1 if it was reclaimed."""
        index = position - self.shift
        if index >= len(self.old):
            return index if index < self.used else -1
        found = int(self.old.searchsorted(position))
        return found if found < len(self.old) and self.old[found] == position else -1

    def first_from(self, position: int) -> int:
        """The index of the first record that has this position or a later one."""
        index = position - self.shift
        return index if index >= len(self.old) else int(self.old.searchsorted(position))

    def inputs(self, index: int) -> tuple[int, ...]:
        """The input codes of a record."""
        word, a, b, c, _, _ = unpack_from(self.buffer, index * STRIDE)
        return tuple(self.input_lists[a : a + b]) if word & LISTED else (a, b, c)

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
        return self.used

    def __dir__(self) -> list[str]:
        return listed(self, "all index inputs keep leaves reclaim record words")

    def __repr__(self) -> str:
        return f"<Tape of {len(self)} records, next position {self.next}>"

    # -- releasing and reclaiming ----------------------------------------------------------

    def release(self, indices: np.ndarray) -> None:
        """Drop the saved values of swept records (ascending indices) and mark them released."""
        if not len(indices):
            return
        words, keep = self.words()[indices, WORD], self.keep
        first, last = int(indices[0]), int(indices[-1])
        saving = indices[(words & SAVES) != 0]
        self.mark_words(indices, RELEASED)
        self.mark_words(saving, SPENT)  # before anything is missing
        if last - first + 1 == len(saving):
            keep[first : last + 1] = [None] * len(saving)
        else:
            for i in saving.tolist():
                keep[i] = None
        self.raise_floor(first, last + 1 if last - first + 1 == len(indices) else first + 1)

    def raise_floor(self, first: int, end: int) -> None:
        """Note that records from `first` up to `end` are released, and perhaps all below."""
        if first <= self.floor < end:
            self.floor = end

    def mark(self) -> Mark:
        """A mark of the tape's end, for `tapegrad.dispatch.truncate`."""
        return self.tokens, self.used, len(self.leaves), len(self.input_lists)

    def drop_spent(self, mark: Mark) -> None:
        """Free the values of records since a mark that a sweep has spent."""
        first = mark[1] if mark[0] is self.tokens else 0
        before, keep = self.next, self.keep
        spent = (self.words()[first:, WORD] & SPENT) != 0
        dropped: list[Any] = []
        for index in (first + np.flatnonzero(spent)).tolist():
            if self.next is not before:  # indices mean other records now
                break
            entry, keep[index] = keep[index], None
            dropped.append(entry)
        del dropped  # last: freeing values may run code of the user

    def places(self, count: int) -> tuple[np.ndarray, int]:
        """The positions of the first `count` records, for bisection, and their address."""
        old, tokens = self.old, self.tokens
        have = len(old)
        if count <= have:
            return old[:count], self.old_at
        room = old if old.base is None else old.base
        if len(room) < count:
            room = np.resize(old, 2 * count)
        at, rest, later = room.ctypes.data, slice(have, count), tokens[have:count]
        if self.old is not old:  # the room may be another table's by now
            return self.places(count)
        room[rest] = later
        return room[:count], at

    def forget_escaped(self) -> None:
        """Forget escaped positions once nobody references any; this reopens the fast paths."""
        # A record that is still there has one reference more.
        if all(getrefcount(p) <= _ESCAPED + (self.index(p) >= 0) for p in [*self.escaped]):
            self.escaped = {}
            self.set_mode()

    def make_room(self, records: int = 1) -> int:
        """Reclaim, and grow if more than half of the records are still in use.

        Returns how many are.
        """
        if self.used + records <= self.capacity:
            return self.used
        if Tape.on_full is not None:
            Tape.on_full()
        self.forget_escaped()
        self.reclaim()
        used = self.used + records - 1
        if 2 * used > self.capacity:
            self._resize(max(2 * self.capacity, 2 * used))
        elif self.capacity > MIN_CAPACITY and 8 * used < self.capacity:
            self._resize(max(MIN_CAPACITY, self.capacity // 4))
        return self.used

    def _resize(self, capacity: int) -> None:
        while True:
            before, used = self.next, self.used
            capacity = max(capacity, 2 * used)
            # One record more: it is written before the check that there was room.
            buffer = bytearray((capacity + 1) * STRIDE)
            address = np.frombuffer(buffer, np.int64).ctypes.data
            rows, cut = slice(0, used * STRIDE), slice(capacity, None)
            spare = [None] * (capacity - len(self.tokens))
            buffer[rows] = self.buffer[rows]
            if self.next is before:
                self.buffer, self.address = buffer, address
                self.tokens += spare  # in place: a sweep may be using the lists
                self.keep += spare
                del self.tokens[cut], self.keep[cut]
                self.capacity = capacity
                self.next = before - 1 + 1
                return

    def reclaim(self) -> None:
        """Garbage-collect the records that no handle reaches, and compact the tape.

        One pass over the records: those whose position is referenced are live, and so is what a
        live, unspent record reads.  The survivors are compacted; they keep their positions, which
        are found by bisection from then on.
        """
        if self.sweeping:  # a sweep holds indices; it may only grow
            return
        self.sweeping = 1  # excludes other compactions and users of the workspace
        try:
            before, count = self.next, self.used
            live = np.fromiter(map(getrefcount, self.tokens[:count]), np.int64, count) > UNHELD
            marks = live.astype(np.uint8)
            Tape.propagate(self, marks, count)
            held = debts.held(self.words()[marks != 0])
            if held > self.cycles_from:
                marks = cycles.in_use(self, marks, Tape.propagate)
                held = debts.held(self.words()[marks != 0])
                self.cycles_from = 2 * held
            self.cycles_from = max(debts.DEBT_FLOOR, min(self.cycles_from, 4 * held))
            dropped = None
            if count and marks.all():
                limit = debts.limit(self.words(), self.leaves)
                self.debt, self.leaf_debt, self.debt_limit = 0, 0, limit
            else:
                dropped = self._squeeze(np.flatnonzero(marks), before)
        finally:
            self.sweeping = 0
        del dropped  # last: freeing values may run code of the user

    def _squeeze(self, survivors: np.ndarray, before: int) -> Any:
        """Compact to the survivors, unless the tape has changed; returns what the others saved."""
        words = self.words()[survivors]
        chosen = survivors.tolist()
        below = int(np.searchsorted(survivors, self.floor))
        used = len(chosen)
        spare = [None] * (self.capacity - used)
        keep = [self.keep[i] for i in chosen] + spare
        tokens = [self.tokens[i] for i in chosen] + spare
        inputs = self._squeezed_inputs(words)
        leaves, slots, inputs = self._known_leaves(words, inputs)
        old = np.array(tokens[:used], np.int64)
        old_at = old.ctypes.data
        limit = debts.limit(words, leaves)
        surviving = set(tokens[:used]) if self.hooks or self.traces else set()
        hooks = {p: found for p, found in {**self.hooks}.items() if p in surviving}
        traces = {p: line for p, line in {**self.traces}.items() if p in surviving}
        written, rows = words.tobytes(), slice(0, used * STRIDE)
        dropped = self.keep
        if self.next is not before:
            return None
        self.buffer[rows] = written
        self.keep, self.tokens, self.input_lists = keep, tokens, inputs
        self.leaves, self.slots = leaves, slots
        self.old, self.old_at = old, old_at
        self.next = before + 1  # which no record has, so that codes read before are read again
        self.shift = before + 1 - used
        self.used = used
        self.floor = below
        self.tail = (0, 0)
        self.debt, self.leaf_debt, self.debt_limit = 0, 0, limit
        self.hooks, self.traces = hooks, traces
        return dropped

    def _squeezed_inputs(self, words: np.ndarray) -> array[int]:
        inputs = array("q")
        for i in np.flatnonzero(words[:, WORD] & LISTED):
            start, number = int(words[i, IN0]), int(words[i, IN1])
            words[i, IN0] = len(inputs)
            inputs.extend(self.input_lists[start : start + number])
        return inputs

    def _known_leaves(
        self, words: np.ndarray, inputs: array[int]
    ) -> tuple[list[Any], dict[int, int], array[int]]:
        """Renumber the leaves that surviving records read, in their words too.

        Large ones that somebody holds stay: they would be owed anew at their next use.
        """
        inline = (words[:, WORD] & LISTED) == 0
        codes = words[inline, IN0:SHAPE]
        used = set(codes[codes < 0].tolist()) | {code for code in inputs if code < 0}
        held = enumerate(map(getrefcount, self.leaves), 1)
        used |= {
            -k for k, n in held if n > _IN_TOKENS and self.leaves[k - 1]._a.nbytes >= debts.OWED
        }
        if len(used) == len(self.leaves):
            return self.leaves, self.slots, inputs
        renumber = {code: -1 - i for i, code in enumerate(sorted(used, reverse=True))}
        leaves = [self.leaves[-code - 1] for code in renumber]
        table = np.zeros(len(self.leaves) + 1, np.int64)
        table[[-code for code in renumber]] = [*renumber.values()]
        words[inline, IN0:SHAPE] = np.where(codes < 0, table[-np.minimum(codes, 0)], codes)
        slots = {key: renumber[c] for key, c in {**self.slots}.items() if c in renumber}
        return leaves, slots, array("q", [renumber.get(code, code) for code in inputs])


class _Current(_local):
    """Every thread records on a tape of its own."""

    tape: Tape

    def __init__(self) -> None:
        self.tape = Tape()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if Tape.on_switch is not None:
            Tape.on_switch()


current = _Current()
