"""Find the program for a call from machine code, by the shapes of its arguments.

Code that was compiled before its arguments' shapes were known (a Numba function, say) has a `Table`
of the programs for its ranks and dtypes.  `find` looks up the entry for the actual shapes, and
`run` tries its program, then those for other branches.  Neither takes the GIL on a hit.  On a miss
they call back into Python, which makes a program and adds it.  Entries are only ever added, each
after it is complete, so readers need no lock.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.locks import lock
from tapegrad.base.word_struct import WordStruct
from tapegrad.compiler.front.foreign import Input, Returned, Source, paired
from tapegrad.compiler.front.specialization import FLOAT, STATIC, Specialization
from tapegrad.compiler.runtime.link import failure
from tapegrad.kernels import build


class CallError(RuntimeError):
    """No program served a call from compiled code; the cause is what went wrong in Python."""

    def __init__(self, name: str, error: BaseException | None) -> None:
        said = f"{type(error).__name__}: {error}" if error else "nothing is known of the reason"
        super().__init__(f"`{name}` could not be run from compiled code: {said}")
        self.__cause__ = error


class Failed(CallError):
    """As Numba raises it, which can only hand over a number: that of the table."""

    def __init__(self, number: int) -> None:
        table = _kept[number]
        super().__init__(table.source.name, table.failures.get(threading.get_ident()))


def _not_raised(error: BaseException) -> None:
    raise error


# Reports an exception to `sys.unraisablehook`.
_print = ctypes.CFUNCTYPE(None, ctypes.py_object)(_not_raised)


class EntryWords(WordStruct):
    """A program for the lengths of inputs and outputs, which follow."""

    next: int  # of the same bucket
    program: int
    alternative: int  # for other branches


class TableWords(WordStruct):
    """What `find` and `run` are given; the buckets follow."""

    count: int  # of the lengths of inputs
    admit: int  # functions of Python, see `Table`
    mend: int


# Why a table asks Python.
OTHER_BRANCH, STUCK, RAISED, WRONG_SIZE = range(4)
BITS = 6  # of the hash: 64 buckets
WRITTEN = 1  # in place of an entry: the outputs were computed in Python

_numbers = itertools.count()
_kept: dict[int, Table] = {}  # tables whose addresses are embedded in code
_admit_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_mend_type = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


class _Entry(NamedTuple):
    words: Any
    specialization: Specialization
    shapes: tuple[tuple[int, ...], ...]


class Table:
    """The programs for some ranks and dtypes of inputs, in a form that machine code reads.

    `keeps`: failures are kept for the caller to raise as `Failed`; otherwise, and on threads
    from which no exception would get anywhere, they go to `sys.unraisablehook`.
    """

    def __init__(
        self, source: Source, inputs: tuple[Input, ...], returned: Returned, keeps: bool
    ) -> None:
        self.source, self.inputs, self.returned, self.keeps = source, inputs, returned, keeps
        self.failures: dict[int, BaseException] = {}
        self.number = next(_numbers)
        self._lock = lock()
        self._entries: dict[int, _Entry] = {}
        # For shapes the addresses of their entries; for a bucket the entry that it begins with.
        self._chains: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        self._newest: dict[int, int] = {}
        self._callbacks = _admit_type(self._admit), _mend_type(self._mend)
        self._words = (ctypes.c_int64 * (TableWords.SIZE + (1 << BITS)))()
        self._words[TableWords.count] = sum(i.rank for i in inputs)
        for place, function in zip((TableWords.admit, TableWords.mend), self._callbacks):
            self._words[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.address = ctypes.addressof(self._words)

    def keep(self) -> None:
        """Keep the table alive as long as the process, for code of unknown lifetime."""
        _kept[self.number] = self

    def entry(self, specialization: Specialization) -> int:
        """The address of an entry with this program, first of its shapes, in no bucket."""
        shapes = tuple([spec.shape for spec in specialization.program.inputs])
        with self._lock:
            chain = self._chains.setdefault(shapes, [])
            if not chain:
                chain.append(self._made(specialization, shapes, 0))
            return chain[0]

    def _made(
        self, specialization: Specialization, shapes: tuple[tuple[int, ...], ...], after: int
    ) -> int:
        """The address of a new entry."""
        outputs = [spec.shape for spec in specialization.program.outputs]
        dims = [*itertools.chain(*shapes, *outputs)]
        head = EntryWords.words(next=after, program=specialization.program.address, alternative=0)
        words = (ctypes.c_int64 * (EntryWords.SIZE + len(dims)))(*head, *dims)
        address = ctypes.addressof(words)
        self._entries[address] = _Entry(words, specialization, shapes)
        return address

    def _admit(self, dims: int, inputs: int, bucket: int) -> int | None:
        """Make the entry for shapes after a miss."""
        try:
            shapes = self._shapes(dims)
            chain = self._chains.get(shapes)
            if chain is None:
                specialization = self.source.compiled(*self._values(shapes, inputs))
                self._check(specialization)
                chain = self._chain(shapes, specialization, bucket)
        except BaseException as error:
            self._failed(error)
            return None
        return chain[0]

    def _chain(
        self, shapes: tuple[tuple[int, ...], ...], specialization: Specialization, bucket: int
    ) -> list[int]:
        with self._lock:
            chain = self._chains.get(shapes)
            if chain is None:
                address = self._made(specialization, shapes, self._newest.get(bucket, 0))
                chain = self._chains[shapes] = [address]
                self._newest[bucket] = address
                driver().publish(self.address + 8 * bucket, address)
            return chain

    def _mend(self, first: int, inputs: int, outputs: int, why: int) -> int | None:
        """Add an entry for values that fail the guards of those of their shapes."""
        try:
            shapes = self._entries[first].shapes
            if why == RAISED:
                raise failure()
            if why == WRONG_SIZE:
                raise ValueError(
                    f"it was made for arguments of the shapes {shapes}, and got others"
                )
            values = self._values(shapes, inputs)
            specialization = self.source.specialization(*values) if why == OTHER_BRANCH else None
            if specialization is None:
                self._write(first, self.source(*values), outputs)
                return WRITTEN
            self._check(specialization)
            return self._alternative(first, specialization)
        except BaseException as error:
            self._failed(error)
            return None

    def _alternative(self, first: int, specialization: Specialization) -> int:
        entries = self._entries
        expected = [spec.shape for spec in entries[first].specialization.program.outputs]
        found = [spec.shape for spec in specialization.program.outputs]
        if expected != found:
            raise self._changed(f"the shapes {found}, otherwise {expected}")
        with self._lock:
            chain = self._chains[entries[first].shapes]
            for address in chain:
                if entries[address].specialization is specialization:
                    return address
            address = self._made(specialization, entries[first].shapes, 0)
            driver().publish(chain[-1] + 8 * EntryWords.alternative, address)
            chain.append(address)
            return address

    def _write(self, first: int, result: Any, outputs: int) -> None:
        """Put what Python computed where the caller wants it."""
        specs = self._entries[first].specialization.program.outputs
        pointers = (ctypes.c_void_p * max(len(specs), 1)).from_address(outputs)
        for leaf, value in paired(self.returned.form, result):
            if leaf.form == STATIC:
                if not _same(value, leaf.value):
                    raise self._changed(f"the constant {value!r}, otherwise {leaf.value!r}")
            else:
                spec = specs[leaf.output]
                if np.shape(value) != spec.shape:
                    raise self._changed(f"the shape {np.shape(value)}, otherwise {spec.shape}")
                _seen(pointers[leaf.output], spec.shape, spec.dtype)[...] = value

    def _check(self, specialization: Specialization) -> None:
        found = self.source.returned(specialization)
        if found != self.returned:
            raise self._changed(f"{found}, otherwise {self.returned}")

    def _changed(self, what: str) -> TypeError:
        return TypeError(
            f"`{self.source.name}` returns for these arguments {what}. Called from compiled code "
            "its result must be of one kind for all arguments of the same kind"
        )

    def _shapes(self, dims: int) -> tuple[tuple[int, ...], ...]:
        every = (ctypes.c_int64 * max(self._words[TableWords.count], 1)).from_address(dims)
        numbers = iter(every)
        return tuple([tuple(itertools.islice(numbers, i.rank)) for i in self.inputs])

    def _values(self, shapes: tuple[tuple[int, ...], ...], inputs: int) -> list[Any]:
        """The arguments of a call, as Python sees them."""
        pointers = (ctypes.c_void_p * max(len(shapes), 1)).from_address(inputs)
        found = [_seen(p, s, i.dtype).copy() for p, s, i in zip(pointers, shapes, self.inputs)]
        return [float(a) if i.kind == FLOAT else a for a, i in zip(found, self.inputs)]

    def _failed(self, error: BaseException) -> None:
        # Nothing is raised here: from a callback it would give no result, but an arbitrary one.
        here = threading.get_ident()
        self.failures[here] = error
        if not self.keeps or all(thread.ident != here for thread in threading.enumerate()):
            _print(CallError(self.source.name, error))


def _same(a: Any, b: Any) -> bool:
    """Whether two constant results are the same."""
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _seen(address: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The C-ordered array at an address."""
    count = math.prod(shape)
    if not count or address is None:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.ndarray(shape, dtype, memory)


class Driver(NamedTuple):
    """Addresses of `find` and `run`, and `publish`, which makes an entry visible to readers."""

    find: int
    run: int
    publish: Any
    engine: Any


@cache
def driver() -> Driver:
    """The compiled part, linked once."""
    pair = build.assembled(TEXT)
    address = pair[0].get_function_address
    publish = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address("publish"))
    return Driver(address("find"), address("run"), publish, pair)


TEXT = f"""
; The entry for these dimensions, from the table or from Python; null if there is none.
define ptr @find(ptr %table, ptr %dims, ptr %inputs) {{
start:
  %count_at = getelementptr i64, ptr %table, i64 {TableWords.count}
  %count = load i64, ptr %count_at
  br label %hash
hash:
  %d = phi i64 [ 0, %start ], [ %d_next, %mix ]
  %h = phi i64 [ 0, %start ], [ %h_next, %mix ]
  %more = icmp ult i64 %d, %count
  br i1 %more, label %mix, label %look
mix:
  %dim_at = getelementptr i64, ptr %dims, i64 %d
  %dim = load i64, ptr %dim_at
  %sum = add i64 %h, %dim
  %h_next = mul i64 %sum, {0x9E3779B97F4A7C15 - (1 << 64)}  ; 2**64 over the golden ratio
  %d_next = add i64 %d, 1
  br label %hash
look:
  %top = lshr i64 %h, {64 - BITS}
  %bucket = add i64 %top, {TableWords.SIZE}
  %bucket_at = getelementptr i64, ptr %table, i64 %bucket
  br label %follow
follow:
  %link = phi ptr [ %bucket_at, %look ], [ %next_at, %compare ]
  %entry = load atomic ptr, ptr %link acquire, align 8
  %none = icmp eq ptr %entry, null
  br i1 %none, label %miss, label %compare_first
compare_first:
  %next_at = getelementptr i64, ptr %entry, i64 {EntryWords.next}
  %entry_dims = getelementptr i64, ptr %entry, i64 {EntryWords.SIZE}
  br label %compare_next
compare_next:
  %k = phi i64 [ 0, %compare_first ], [ %k_next, %compare ]
  %rest = icmp ult i64 %k, %count
  br i1 %rest, label %compare_load, label %hit
compare_load:
  %mine_at = getelementptr i64, ptr %dims, i64 %k
  %mine = load i64, ptr %mine_at
  %its_at = getelementptr i64, ptr %entry_dims, i64 %k
  %its = load i64, ptr %its_at
  %k_next = add i64 %k, 1
  br label %compare
compare:
  %same = icmp eq i64 %mine, %its
  br i1 %same, label %compare_next, label %follow
hit:
  ret ptr %entry
miss:
  %admit_at = getelementptr i64, ptr %table, i64 {TableWords.admit}
  %admit = load ptr, ptr %admit_at
  %admitted = call ptr %admit(ptr %dims, ptr %inputs, i64 %bucket)
  ret ptr %admitted
}}

; Run the first program of an entry and its alternatives that holds; 0: the outputs are written.
define i64 @run(ptr %table, ptr %first, ptr %inputs, ptr %outputs) {{
start:
  br label %try
try:
  %entry = phi ptr [ %first, %start ], [ %next, %follow ], [ %found, %mended ]
  %fresh = phi i1 [ false, %start ], [ false, %follow ], [ true, %mended ]
  %program_at = getelementptr i64, ptr %entry, i64 {EntryWords.program}
  %program = load ptr, ptr %program_at
  %status = call i64 %program(ptr %inputs, ptr %outputs, ptr null)
  %done = icmp eq i64 %status, 0
  br i1 %done, label %end, label %trouble
trouble:
  %guard = icmp sgt i64 %status, 0
  %known = xor i1 %fresh, true
  %other = and i1 %guard, %known
  %reason = select i1 %guard, i64 {STUCK}, i64 {RAISED}
  br i1 %other, label %follow, label %ask
follow:
  %next_at = getelementptr i64, ptr %entry, i64 {EntryWords.alternative}
  %next = load atomic ptr, ptr %next_at acquire, align 8
  %last = icmp eq ptr %next, null
  br i1 %last, label %ask, label %try
ask:
  %why = phi i64 [ %reason, %trouble ], [ {OTHER_BRANCH}, %follow ]
  %mend_at = getelementptr i64, ptr %table, i64 {TableWords.mend}
  %mend = load ptr, ptr %mend_at
  %found = call ptr %mend(ptr %first, ptr %inputs, ptr %outputs, i64 %why)
  %answer = ptrtoint ptr %found to i64
  switch i64 %answer, label %mended [ i64 0, label %failed
                                      i64 {WRITTEN}, label %end ]
mended:
  br label %try
failed:
  ret i64 1
end:
  ret i64 0
}}

define void @publish(ptr %cell, ptr %entry) {{
  store atomic ptr %entry, ptr %cell release, align 8
  ret void
}}
"""
