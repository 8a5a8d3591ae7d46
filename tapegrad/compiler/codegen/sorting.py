"""Sort lines of elements, select one of each, or find where the extremes so far stand.

Elements are compared as whole numbers in the same order, their keys.  A short line takes a rank
sort: the keys that come before each one are counted, without a branch.  A long one takes a radix
sort by the bytes of the keys, the last one first; or a radix selection, the first one first, among
ever fewer.  All of it is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.codegen.small_matmul import KEPT
from tapegrad.compiler.ir.loop_nest import MEMORY
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine

COUNTED = 192  # elements up to which keys are counted
LANES = 8  # keys that are counted for together
BYTE = 256


Writer = Callable[..., Routine]


class Lines(NamedTuple):
    """The lines of an array in C order: n elements, `after` apart, in each of `before` blocks."""

    before: int
    n: int
    after: int


def scratch(n: int, dtype: np.dtype[Any]) -> int:
    """How many integers of 8 bytes a line takes: its keys and places, or two arrays of words."""
    return 2 * n if n <= COUNTED or dtype.itemsize < 8 else 4 * n


def writer(name: str) -> Writer | None:
    """What writes an operation: over the operand, scratch memory and the places it finds."""
    known = {"argsort": argsort, "argkth": argkth, "argmedian": argmedian, "argcummax": argcummax}
    return known.get(name)


@lru_cache(KEPT)
def argsort(lines: Lines, dtype: np.dtype[Any], descending: bool) -> Routine:
    """Where the elements of lines stand in order."""
    keys = _Keys(dtype, lines, descending=descending)
    t = keys.t
    with keys.each_line():

        def put(place: str, i: str) -> None:
            t.store(i, t.at("%a2", keys.at(place), "i64"), "i64")

        if lines.n <= COUNTED:
            _rank_sort(keys, put)
        else:
            _radix_sort(keys, put)
    return keys.routine()


@lru_cache(KEPT)
def argkth(lines: Lines, dtype: np.dtype[Any], k: int) -> Routine:
    """Where the element stands that is number k in order."""
    return _selection(lines, dtype, lambda _: str(k))


@lru_cache(KEPT)
def argmedian(lines: Lines, dtype: np.dtype[Any], ignore_nan: bool) -> Routine:
    """Where the lower of the two in the middle stands, or the first NaN, if that counts."""
    n = lines.n

    def middle(keys: _Keys) -> str:
        if dtype.kind != "f":
            return str((n - 1) // 2)
        t, known = keys.t, keys.known()
        if ignore_nan:
            last = t.emit(f"sub i64 {known}, 1")
            none = t.emit(f"icmp slt i64 {last}, 0")
            return t.emit(f"lshr i64 {t.emit(f'select i1 {none}, i64 0, i64 {last}')}, 1")
        all_known = t.emit(f"icmp eq i64 {known}, {n}")
        return t.emit(f"select i1 {all_known}, i64 {(n - 1) // 2}, i64 {known}")

    return _selection(lines, dtype, middle)


@lru_cache(KEPT)
def argcummax(lines: Lines, dtype: np.dtype[Any], largest: bool) -> Routine:
    """Where the largest, or the smallest, elements so far stand."""
    keys = _Keys(dtype, lines, smallest=not largest)
    t = keys.t
    best, place = t.room(t.kind), t.room("i64")
    with keys.each_line():
        t.store(keys.load("0"), best)
        with t.loop(lines.n) as i:
            key, so_far = keys.load(i), t.load(best)
            better = t.emit(f"icmp sge {t.kind} {key}, {so_far}")
            t.store(t.choose(better, key, so_far), best)
            found = t.emit(f"select i1 {better}, i64 {i}, i64 {t.load(place, 'i64')}")
            t.store(found, place, "i64")
            t.store(found, t.at("%a2", keys.at(i), "i64"), "i64")
    return keys.routine()


def _selection(lines: Lines, dtype: np.dtype[Any], which: Callable[[_Keys], str]) -> Routine:
    """The place of one element of each line, whose number in order is told."""
    keys = _Keys(dtype, lines)
    t, n = keys.t, lines.n
    with keys.each_line():
        k = which(keys)
        if n <= COUNTED:
            places = t.at("%a1", n, "i64")

            def put(place: str, i: str) -> None:
                t.store(i, t.at(places, place, "i64"), "i64")

            _rank_sort(keys, put)
            found = t.load(t.at(places, k, "i64"), "i64")
        else:
            found = _radix_select(keys, k)
        t.store(found, t.at("%a2", keys.line, "i64"), "i64")
    return keys.routine()


class _Keys:
    """Signed numbers in the order of elements: zeros are equal, and so are NaN, the largest.

    `descending` turns that order round; where the `smallest` are sought, NaN stays the largest.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        lines: Lines,
        *,
        descending: bool = False,
        smallest: bool = False,
    ) -> None:
        self.dtype, self.lines = dtype, lines
        self.descending, self.smallest = descending, smallest
        self.bits = 64 if dtype.itemsize == 8 else 32
        self.t = FunctionBuilder(np.dtype(f"i{self.bits // 8}"))
        self.line = self.first = ""  # the number of a line, and the index of its first element

    @contextmanager
    def each_line(self) -> Iterator[None]:
        """The lines that are written inside are done for each line of the array."""
        t, (before, n, after) = self.t, self.lines
        with t.loop(before) as block, t.loop(after) as column:
            self.line = t.mad(block, after, column)
            self.first = t.mad(block, n * after, column)
            yield

    def routine(self) -> Routine:
        """The function, over the operand, scratch memory and places."""
        return self.t.routine(["noalias readonly", "noalias", "noalias"])._replace(
            longest=self.lines.n
        )

    def at(self, i: str) -> str:
        """The index of an element of the line."""
        return self.t.mad(i, self.lines.after, self.first)

    def element(self, i: str) -> str:
        """An element of the line."""
        memory = MEMORY[self.dtype.name]
        return self.t.load(self.t.at("%a0", self.at(i), memory), memory)

    def load(self, i: str) -> str:
        """The key of an element."""
        t, memory, x = self.t, MEMORY[self.dtype.name], self.element(i)
        if self.dtype.kind != "f":
            key = t.emit(f"zext i8 {x} to {t.kind}") if memory == "i8" else x
            return self._turned(key) if self.descending or self.smallest else key
        bits = t.emit(f"bitcast {memory} {x} to {t.kind}")
        sign = t.emit(f"ashr {t.kind} {bits}, {self.bits - 1}")
        size = t.emit(f"lshr {t.kind} {sign}, 1")
        key = t.two("sub", t.two("xor", bits, size), sign)
        key = self._turned(key) if self.smallest else key
        nan = t.emit(f"fcmp uno {memory} {x}, {x}")
        key = t.choose(nan, str(2 ** (self.bits - 1) - 1), key)
        return self._turned(key) if self.descending else key

    def _turned(self, key: str) -> str:
        return self.t.two("xor", key, "-1")

    def unsigned(self, i: str) -> str:
        """The key as a number without a sign, of which as many bytes differ as an element has."""
        key = self.load(i)
        return (
            key if self.dtype.kind == "b" else self.t.two("xor", key, str(-(2 ** (self.bits - 1))))
        )

    def known(self) -> str:
        """How many elements are not NaN."""
        t, memory = self.t, MEMORY[self.dtype.name]
        count = t.room("i64")
        t.store("0", count, "i64")
        with t.loop(self.lines.n) as i:
            x = self.element(i)
            _add(t, count, t.emit(f"zext i1 {t.emit(f'fcmp ord {memory} {x}, {x}')} to i64"))
        return t.load(count, "i64")


def _rank_sort(keys: _Keys, put: Callable[[str, str], None]) -> None:
    """Count what comes before each element: keys below its own, and equal ones in front of it."""
    t, n = keys.t, keys.lines.n
    with t.loop(n) as i:
        t.store(keys.load(i), t.at("%a1", i))
    full, left = divmod(n, LANES)
    with t.loop(full) as block:
        start = t.emit(f"mul i64 {block}, {LANES}")
        _rank_block(keys, start, LANES, put)
    if left:
        _rank_block(keys, str(full * LANES), left, put)


def _rank_block(keys: _Keys, start: str, lanes: int, put: Callable[[str, str], None]) -> None:
    """Count for neighbours at once."""
    t, kind, truth = keys.t, keys.t.vector(lanes), "i1" if lanes == 1 else f"<{lanes} x i1>"
    mine, counts = t.read(t.at("%a1", start), lanes), t.room(kind)

    def add(how: str, test: str, j: str, behind: str = "") -> None:
        """Add to the counts, or subtract from them, a test of a key, where True is -1."""
        other = t.splat(t.load(t.at("%a1", j)), lanes)
        hit = t.emit(f"icmp {test} {kind} {other}, {mine}")
        hit = t.emit(f"and {truth} {hit}, {behind}") if behind else hit
        change = t.emit(f"sext {truth} {hit} to {kind}")
        t.store(t.two(how, t.load(counts, kind), change, lanes), counts, kind)

    first = start if t.kind == "i64" else t.emit(f"trunc i64 {start} to i32")
    t.store(t.splat(first, lanes), counts, kind)  # all in front, but for larger ones
    with t.loop(start) as j:
        add("add", "sgt", j)
    with t.loop(keys.lines.n, start) as j:
        add("sub", "slt", j)
    for k in range(lanes - 1):  # equal neighbours
        behind = ", ".join(f"i1 {'true' if j > k else 'false'}" for j in range(lanes))
        add("sub", "eq", t.emit(f"add i64 {start}, {k}"), f"<{behind}>")
    found = t.load(counts, kind)
    for k in range(lanes):
        count = t.element(found, lanes, k)
        place = count if t.kind == "i64" else t.emit(f"zext i32 {count} to i64")
        put(place, t.emit(f"add i64 {start}, {k}"))


class _Words:
    """Keys above places, in arrays in the scratch memory: what comes before is the smaller word."""

    def __init__(self, keys: _Keys) -> None:
        self.keys, self.t, self.half = keys, keys.t, keys.bits
        self.word = f"i{2 * keys.bits}"
        self.bytes = keys.dtype.itemsize  # of keys that differ
        self.counts = self.t.room(f"[{self.bytes * BYTE} x i64]")

    def write(self) -> None:
        """Write those of the line."""
        t, word, half = self.t, self.word, self.half
        with t.loop(self.keys.lines.n) as i:
            key = t.emit(f"zext {t.kind} {self.keys.unsigned(i)} to {word}")
            place = t.emit(f"zext i64 {i} to i128") if half == 64 else i
            value = t.emit(f"or {word} {t.emit(f'shl {word} {key}, {half}')}, {place}")
            self.store(value, "%a1", i)

    def load(self, base: str, i: str) -> str:
        """A word of an array."""
        return self.t.emit(f"load {self.word}, ptr {self.t.at(base, i, self.word)}, align 8")

    def store(self, value: str, base: str, i: str) -> None:
        """Put a word into an array."""
        at = self.t.at(base, i, self.word)
        self.t.lines.append(f"store {self.word} {value}, ptr {at}, align 8")

    def counter(self, base: str, i: str, k: str | int) -> str:
        """Where words are counted with the same byte number k of their key."""
        t = self.t
        at = t.at(t.at(base, i, self.word), t.emit(f"add i64 {k}, {self.half // 8}"), "i8")
        digit = t.emit(f"zext i8 {t.load(at, 'i8')} to i64")
        return t.at(
            self.counts, t.emit(f"add i64 {t.emit(f'mul i64 {k}, {BYTE}')}, {digit}"), "i64"
        )

    def place(self, base: str, i: str) -> str:
        """The place in a word."""
        value = self.load(base, i)
        if self.half == 64:
            return self.t.emit(f"trunc i128 {value} to i64")
        return self.t.emit(f"and i64 {value}, {2**32 - 1}")

    def clear(self) -> None:
        """Set all counts to zero."""
        t = self.t
        with t.loop(self.bytes * BYTE) as k:
            t.store("0", t.at(self.counts, k, "i64"), "i64")


def _radix_sort(keys: _Keys, put: Callable[[str, str], None]) -> None:
    """Sort by one byte of the keys after the other, from one array into another and back."""
    t, n, words = keys.t, str(keys.lines.n), _Words(keys)
    source, target, before = t.room("ptr"), t.room("ptr"), t.room("i64")
    words.write()
    words.clear()
    with t.loop(n) as i:
        for k in range(words.bytes):
            _add(t, words.counter("%a1", i, k), "1")
    t.store("%a1", source, "ptr")
    t.store(t.at("%a1", n, words.word), target, "ptr")
    with t.loop(words.bytes) as k:
        given, sorted = t.load(source, "ptr"), t.load(target, "ptr")
        alike = t.load(words.counter(given, "0", k), "i64")
        with t.where(t.emit(f"icmp ne i64 {alike}, {n}")):
            t.store("0", before, "i64")
            first = t.at(words.counts, t.emit(f"mul i64 {k}, {BYTE}"), "i64")
            with t.loop(BYTE) as d:
                at = t.at(first, d, "i64")
                here = t.load(at, "i64")
                t.store(t.load(before, "i64"), at, "i64")
                _add(t, before, here)
            with t.loop(n) as i:
                at = words.counter(given, i, k)
                words.store(words.load(given, i), sorted, t.load(at, "i64"))
                _add(t, at, "1")
            t.store(sorted, source, "ptr")
            t.store(given, target, "ptr")
    found = t.load(source, "ptr")
    with t.loop(n) as i:
        put(i, words.place(found, i))


def _radix_select(keys: _Keys, k: str) -> str:
    """The place of the element that is number k in order: those of one byte are kept each time."""
    t, words = keys.t, _Words(keys)
    left, sought, chosen, kept = (t.room(kind) for kind in ("i64", "i64", "ptr", "i64"))
    t.store(str(keys.lines.n), left, "i64")
    t.store(k, sought, "i64")
    words.write()
    words.clear()
    with t.loop(words.bytes) as step:
        n = t.load(left, "i64")
        with t.where(t.emit(f"icmp ne i64 {n}, 1")):
            byte = t.emit(f"sub i64 {words.bytes - 1}, {step}")
            with t.loop(n) as i:
                _add(t, words.counter("%a1", i, byte), "1")
            _choose(words, byte, sought, chosen)
            here = t.load(chosen, "ptr")
            t.store("0", kept, "i64")
            with t.loop(n) as i:
                to = t.load(kept, "i64")
                hit = t.emit(f"icmp eq ptr {words.counter('%a1', i, byte)}, {here}")
                words.store(words.load("%a1", i), "%a1", to)
                t.store(t.emit(f"add i64 {to}, {t.emit(f'zext i1 {hit} to i64')}"), kept, "i64")
            t.store(t.load(kept, "i64"), left, "i64")
    return words.place("%a1", t.load(sought, "i64"))


def _choose(words: _Words, byte: str, sought: str, chosen: str) -> None:
    """Find the counter of the word sought, and what is its number among those counted there."""
    t, before = words.t, words.t.room("i64")
    k, first = t.load(sought, "i64"), t.emit(f"mul i64 {byte}, {BYTE}")
    t.store("0", before, "i64")
    with t.loop(BYTE) as d:
        counter = t.at(words.counts, t.emit(f"add i64 {first}, {d}"), "i64")
        number = t.emit(f"sub i64 {k}, {t.load(before, 'i64')}")
        reached = t.emit(f"icmp sge i64 {number}, 0")  # it is the last one that begins before it
        for kind, value, at in (("ptr", counter, chosen), ("i64", number, sought)):
            best = t.emit(f"select i1 {reached}, {kind} {value}, {kind} {t.load(at, kind)}")
            t.store(best, at, kind)
        _add(t, before, t.load(counter, "i64"))


def _add(t: FunctionBuilder, at: str, n: str) -> None:
    """Add to a number in memory."""
    t.store(t.emit(f"add i64 {t.load(at, 'i64')}, {n}"), at, "i64")
