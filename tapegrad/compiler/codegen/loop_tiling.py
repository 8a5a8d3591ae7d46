"""Tile loop nests that call elementary functions.

A tile is a range of one loop with all loops inside it.  It is done in stages: each computes the
arguments of functions of `math_runtime` into arrays that fit in the L1 cache, then calls these.
That compiles fast.  It is best for functions alone; with other operations, one fused loop
waits less for memory, and tiles serve arguments outside the domain of its fast forms.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen import math_runtime
from tapegrad.compiler.codegen.scalar_nest import Writer, Written, written
from tapegrad.compiler.ir.loop_nest import ADD, SET, Nest, collapsed, memory, register
from tapegrad.compiler.llvm.scalar_ops import Value
from tapegrad.ops.core import table

DOUBLE = np.dtype(np.float64)
MOST, LEAST = 1024, 64  # elements of a tile
ROOM = 3072  # elements of all arrays of a tile
TWICE = 1 << 15  # elements from which on it pays to compile a nest in two forms
TILED_LEAST = 1000  # elements below which loops between calls do not pay
PAIR = {"sin", "cos"}  # which have most of their work in common where they are computed at once


class Plan(NamedTuple):
    """The stages of a tile; operands are terms (>= 0) or loads (~k), as in a nest.

    Results of the calls after stage s are used from stage s + 1 on.
    """

    level: int  # of the loop that is tiled
    rows: int  # steps of it in a tile
    stages: tuple[int, ...]  # of the terms
    calls: tuple[tuple[int, ...], ...]  # per stage, the terms computed by calls
    fixed: frozenset[int]  # terms invariant in the innermost loop: recomputed in any stage
    arrays: dict[int, int]  # operands that get an array, with the stage that fills it
    there: frozenset[int]  # loads that calls read in place
    placed: dict[int, int]  # terms that calls write to the place of a store (k)


def quick(nest: Nest, part: bool = False) -> Written | None:
    """The function of a nest with fast forms of elementary functions; None if they do not pay.

    A nest without other operations is left to the functions of `math_runtime`, and so is one of
    several functions that fits in the caches.  A long one is computed in one pass, and again in
    tiles if an argument was outside the fast domain.
    """
    nest = collapsed(nest)
    plan = planned(nest)
    if plan is None:
        return None
    if not plan.arrays or _calls_pay(nest, plan):
        return written(nest, part, tiles=Tiles(nest, plan))
    if prod(nest.domain) < TWICE or any(s.mode == ADD for s in nest.stores):
        return None
    return written(nest, part, redo=Tiles(nest, plan))


def _calls_pay(nest: Nest, plan: Plan) -> bool:
    """Whether calling `math_runtime` saves more than the loops between the calls cost."""
    names = [nest.terms[t].name for t in chain(*plan.calls)]
    if not TILED_LEAST <= prod(nest.domain) < TWICE or PAIR.issubset(names):
        return False
    return len(names) > 1 or table[names[0]].vmath == "many"


def planned(nest: Nest) -> Plan | None:
    """The stages of a nest; its neighbouring dimensions are one."""
    if not nest.domain or any(x.buffer is s.place.buffer for x in nest.loads for s in nest.stores):
        return None  # a scan reads what it has just written
    staged = _staged(nest)
    level, inner = len(nest.domain) - 1, 1
    while level > 0 and inner * nest.domain[level] <= MOST // 4:
        inner *= nest.domain[level]
        level -= 1
    if staged is None or nest.domain[level] * inner < LEAST:
        return None
    stages, calls, fixed = staged
    called = set(chain(*calls))
    placed = {
        s.source: k
        for k, s in enumerate(nest.stores)
        if s.mode == SET and s.source in called and _runs(nest, len(nest.loads) + k, level)
    }
    there = {a for t in called for a in nest.terms[t].args if a < 0 and _runs(nest, ~a, level)}
    arrays = {t: stages[t] for t in called if t not in placed}
    for operand in _uses(nest, staged):
        if operand not in called | there:
            arrays[operand] = stages[operand] if operand >= 0 else 0
    most = min(MOST, max(MOST // 8, ROOM // max(1, len(arrays))))
    rows = _stretch(nest.domain[level], max(1, most // inner))
    return Plan(level, rows, stages, calls, fixed, arrays, frozenset(there), placed)


Staged = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], frozenset[int]]


def _staged(nest: Nest) -> Staged | None:
    """The stage of each term, the calls after each stage, and the invariant terms."""
    stages: list[int] = []
    calls: list[list[int]] = []
    fixed: set[int] = set()
    for t, term in enumerate(nest.terms):
        at = max((stages[a] for a in term.args if a >= 0), default=0)
        if all(a in fixed if a >= 0 else _stands(nest, ~a) for a in term.args):
            fixed.add(t)
        elif term.name in math_runtime.NAMES and all(_doubles(nest, x) for x in (t, *term.args)):
            calls += [[] for _ in range(at + 1 - len(calls))]
            calls[at].append(t)
            at += 1
        elif term.name in table and table[term.name].guard:
            return None  # it would have to be recomputed as a whole
        stages.append(at)
    return (tuple(stages), tuple(map(tuple, calls)), frozenset(fixed)) if calls else None


def _uses(nest: Nest, staged: Staged) -> list[int]:
    """The operands that need arrays: those of calls, and those used in a later stage."""
    stages, calls, fixed = staged
    called = set(chain(*calls))
    found = [a for t in called for a in nest.terms[t].args]
    later = [(a, stages[t]) for t, term in enumerate(nest.terms) for a in term.args
             if t not in called and t not in fixed]  # fmt: skip
    later += [(s.source, len(calls)) for s in nest.stores]
    return found + [a for a, at in later if a >= 0 and a not in fixed and stages[a] < at]


def _stands(nest: Nest, load: int) -> bool:
    """Whether a load is invariant in the innermost loop."""
    gathers = nest.gathers[load] if nest.gathers else ()
    return nest.loads[load].strides[-1] == 0 and all(_stands(nest, k) for k, _, _ in gathers)


def _dtype(nest: Nest, operand: int) -> np.dtype:
    return nest.terms[operand].dtype if operand >= 0 else nest.loads[~operand].buffer.dtype


def _doubles(nest: Nest, operand: int) -> bool:
    return _dtype(nest, operand) == DOUBLE


def _runs(nest: Nest, window: int, level: int) -> bool:
    """Whether a load, or a store after all loads, is contiguous float64 within a tile."""
    places = [*nest.loads, *[s.place for s in nest.stores]]
    steps = [prod(nest.domain[d + 1 :]) for d in range(level, len(nest.domain))]
    found = places[window]
    gathered = bool(nest.gathers and nest.gathers[window])
    return not gathered and found.buffer.dtype == DOUBLE and list(found.strides[level:]) == steps


def _stretch(count: int, most: int) -> int:
    """The steps of a tile, without a remainder if possible."""
    if count <= most:
        return count
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


class Tiles:
    """Writes the tiles of a nest into its function."""

    def __init__(self, nest: Nest, plan: Plan) -> None:
        self.nest = nest
        self.plan = plan
        self.level = plan.level
        self._inner = prod(nest.domain[plan.level + 1 :])
        self._start = Value("0", "i64")
        self._values: dict[int, Value] = {}
        self._at = 0  # the stage

    def write(self, writer: Writer) -> None:
        """Write the loop over tiles."""
        plan, count = self.plan, self.nest.domain[self.level]
        for a in plan.arrays:
            kind = memory(_dtype(self.nest, a))
            size = plan.rows * self._inner
            writer.allocas.append(f"{_array(a)} = alloca [{size} x {kind}], align 64")
        first, last = writer.ends(self.level)
        divided = first != "0"
        if plan.rows == count and not divided:
            self._tile(writer, Value(first, "i64"), Value(last, "i64"))
            return

        def stretch(start: Value) -> Value:
            stop = writer.code.emit("i64", f"add nuw nsw i64 {start.name}, {plan.rows}")
            if divided or count % plan.rows:
                less = writer.code.emit("i1", f"icmp ult i64 {stop.name}, {last}")
                chosen = f"select {less}, {stop}, i64 {last}"
                stop = writer.code.emit("i64", chosen)
            self._tile(writer, start, stop)
            return stop

        writer.steps(first, last, stretch)

    def _tile(self, writer: Writer, start: Value, stop: Value) -> None:
        plan = self.plan
        self._start = start
        count = writer.code.emit("i64", f"sub nuw nsw i64 {stop.name}, {start.name}")
        if self._inner > 1:
            count = writer.code.emit("i64", f"mul nuw nsw i64 {count.name}, {self._inner}")
        dims = list(range(self.level, len(self.nest.domain)))
        for at, calls in enumerate(plan.calls):
            self._at = at
            filled = [a for a, by in plan.arrays.items() if by == at and not self._called(a)]
            if filled:
                body = self._filling(writer, filled)
                writer.over(dims, body, (start.name, stop.name))
            for t in calls:
                self._call(writer, t, count)
        self._at = len(plan.calls)
        if len(plan.placed) < len(self.nest.stores):
            writer.loop(self.level, lambda: writer.level(self.level + 1), (start.name, stop.name))

    def _called(self, operand: int) -> bool:
        return any(operand in terms for terms in self.plan.calls)

    def _filling(self, writer: Writer, operands: list[int]) -> Callable[[], None]:
        def body() -> None:
            self.begin()
            writer.elements.clear()
            for a in operands:
                writer.put_at(self.value(writer, a), self._element(writer, a))

        return body

    def _element(self, writer: Writer, operand: int) -> str:
        """The address of an array's element at the current indices."""
        code, extents = writer.code, self.nest.domain[self.level :]
        here, *inner = writer.loops[self.level :]
        at = code.share("i64", f"sub nuw nsw i64 {here.name}, {self._start.name}")
        for index, extent in zip(inner, extents[1:], strict=True):
            row = code.share("i64", f"mul nuw nsw i64 {at.name}, {extent}")
            at = code.share("i64", f"add nuw nsw i64 {row.name}, {index.name}")
        kind = memory(_dtype(self.nest, operand))
        address = f"getelementptr inbounds {kind}, ptr {_array(operand)}, i64 {at.name}"
        return code.emit("ptr", address).name

    def _call(self, writer: Writer, t: int, count: Value) -> None:
        """Compute a term for all elements of the tile."""
        name, args = self.nest.terms[t].name, self.nest.terms[t].args
        arrays = ", ".join(f"ptr {self._whole(writer, a)}" for a in (t, *args))
        symbol = math_runtime.symbol(name)
        writer.code.used.add(symbol)
        writer.line(f"call void @{symbol}({count}, {arrays})")

    def _whole(self, writer: Writer, operand: int) -> str:
        """The address of an operand's first element."""
        if operand not in self.plan.there and operand not in self.plan.placed:
            return _array(operand)
        outer = writer.loops
        writer.loops = [*outer, self._start]
        if operand < 0:
            found = writer.pointer(f"%l{~operand}", self.nest.loads[~operand])
        else:
            k = self.plan.placed[operand]
            found = writer.pointer(f"%s{k}", self.nest.stores[k].place)
        writer.loops = outer
        return found.name

    # -- within the loops of a stage ---------------------------------------------------------------

    def begin(self) -> None:
        """Forget the values of the previous element."""
        self._values.clear()

    def value(self, writer: Writer, operand: int) -> Value:
        """An operand at the current indices."""
        if operand < 0:
            return writer.loaded(~operand)
        found = self._values.get(operand)
        if found is None:
            found = self._values[operand] = self._found(writer, operand)
        return found

    def places(self, operand: int, store: int) -> bool:
        """Whether a call has written an operand to its store's place."""
        return self.plan.placed.get(operand) == store

    def _found(self, writer: Writer, t: int) -> Value:
        term, plan = self.nest.terms[t], self.plan
        if t in plan.placed:
            k = plan.placed[t]
            return writer.load(f"%s{k}", self.nest.stores[k].place)
        if t in plan.arrays and (self._called(t) or plan.stages[t] < self._at):
            kind = memory(term.dtype)
            found = writer.code.emit(kind, f"load {kind}, ptr {self._element(writer, t)}")
            return writer.code.cast(found, register(term.dtype))
        return writer.compute(term, [self.value(writer, a) for a in term.args])


def _array(operand: int) -> str:
    return f"%t{operand}" if operand >= 0 else f"%u{~operand}"
