"""Tile loop nests that call elementary functions.

A tile is a range of one loop with all loops inside it.  It is done in stages: each computes the
arguments of functions of `math_runtime` into arrays that fit in the L1 cache, then calls these.
That compiles fast.  It is best for functions alone; with other operations, one fused loop
waits less for memory, and tiles serve arguments outside the domain of its fast forms.
"""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np

from tapegrad.compiler.codegen import math_runtime
from tapegrad.compiler.codegen.nest_function import Written, written
from tapegrad.compiler.codegen.nest_writer import NestWriter, plain_order
from tapegrad.compiler.codegen.vector_lines import ROLLED
from tapegrad.compiler.ir.buffers import SCRATCH, Buffer, Place, c_strides
from tapegrad.compiler.ir.loop_nest import ADD, SET, Gathers, Nest, Store, Term, collapsed, memory
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
    """Writes the tiles of a nest into its function: each stage is a nest over the tile."""

    def __init__(self, nest: Nest, plan: Plan) -> None:
        self.nest = nest
        self.plan = plan
        self.level = plan.level
        self.hint = ""  # of the loops in a tile
        domain = nest.domain[plan.level :]
        self.shape = (plan.rows, *domain[1:])
        self.arrays = {a: self._array(a) for a in plan.arrays}

    def _array(self, operand: int) -> Place:
        dtype = _dtype(self.nest, operand)
        buffer = Buffer(SCRATCH, 0, dtype, prod(self.shape))
        return Place(buffer, 0, self.shape, c_strides(self.shape))

    def write(self, writer: NestWriter) -> None:
        """Write the loop over tiles."""
        rows, count = self.plan.rows, self.nest.domain[self.level]
        for a, place in self.arrays.items():
            kind = memory(place.buffer.dtype)
            writer.allocas.append(f"{_name(a)} = alloca [{place.buffer.size} x {kind}], align 64")
        self.hint, writer.hint = writer.hint, writer.hint or ROLLED  # a tile is much code
        first, last = writer.bounds(self.level)
        if rows == count and first == "0":
            self._tile(writer, str(rows))
            return

        def tile(start: str) -> None:
            here = str(rows)
            if first != "0" or count % rows:
                left = writer.emit("i64", f"sub nuw nsw i64 {last}, {start}")
                less = writer.emit("i1", f"icmp ult {left}, {rows}")
                here = writer.emit("i64", f"select {less}, {left}, i64 {rows}").name
            with writer.at(self.level, start):
                self._tile(writer, here)

        writer.loop(first, last, rows, tile)

    def _tile(self, writer: NestWriter, rows: str) -> None:
        """Write a tile of so many rows."""
        plan, inner = self.plan, prod(self.shape[1:])
        count = rows if inner == 1 else writer.emit("i64", f"mul nuw nsw i64 {rows}, {inner}").name
        called = set(chain(*plan.calls))
        for at, calls in enumerate(plan.calls):
            filled = [a for a, stage in plan.arrays.items() if stage == at and a not in called]
            if filled:
                stage = _Stage(self, writer, at)
                for a in filled:
                    stage.store(Store(a, self.arrays[a], SET), _name(a))
                stage.write(rows)
            for t in calls:
                self._call(writer, t, count)
        stage = _Stage(self, writer, len(plan.calls))
        for k, store in enumerate(self.nest.stores):
            if plan.placed.get(store.source) != k:
                stage.store(store._replace(place=self.within(store.place)), writer.stores[k], k)
        stage.write(rows)

    def within(self, place: Place) -> Place:
        """A window of the nest within a tile."""
        return place._replace(shape=self.shape, strides=place.strides[self.level :])

    def _call(self, writer: NestWriter, t: int, count: str) -> None:
        """Compute a term for all elements of the tile."""
        symbol = math_runtime.symbol(self.nest.terms[t].name)
        arrays = [self._whole(writer, a) for a in (t, *self.nest.terms[t].args)]
        writer.call(symbol, f"i64 {count}, {', '.join([f'ptr {name}' for name in arrays])}")

    def _whole(self, writer: NestWriter, operand: int) -> str:
        """The address of an operand's first element."""
        if operand in self.plan.placed:
            return writer.stores[self.plan.placed[operand]]
        return writer.loads[~operand] if operand in self.plan.there else _name(operand)


class _Stage:
    """The nest of a stage: what it stores, and what that is computed of."""

    def __init__(self, tiles: Tiles, writer: NestWriter, at: int) -> None:
        self.tiles, self.writer, self.at = tiles, writer, at
        self.loads = [tiles.within(place) for place in tiles.nest.loads]
        self.names = list(writer.loads)
        self.terms: list[Term] = []
        self.stores: list[Store] = []
        self.stored: list[str] = []
        self.numbers: list[int] = []  # of the stores in the whole nest; -1: it has none
        self._values: dict[int, int] = {}

    def store(self, store: Store, name: str, number: int = -1) -> None:
        """Add a store of an operand of the whole nest."""
        self.stores.append(store._replace(source=self._value(store.source)))
        self.stored.append(name)
        self.numbers.append(number)

    def _value(self, operand: int) -> int:
        """An operand of the whole nest as one of the stage."""
        found = self._values.get(operand, operand)
        if operand < 0 or operand in self._values:
            return found
        plan, term = self.tiles.plan, self.tiles.nest.terms[operand]
        called = any(operand in terms for terms in plan.calls)
        if operand in plan.placed:
            k = plan.placed[operand]
            place = self.tiles.within(self.tiles.nest.stores[k].place)
            found = self._load(place, self.writer.stores[k])
        elif operand in plan.arrays and (called or plan.stages[operand] < self.at):
            found = self._load(self.tiles.arrays[operand], _name(operand))
        else:
            args = tuple([self._value(a) for a in term.args])
            self.terms.append(term._replace(args=args))
            found = len(self.terms) - 1
        self._values[operand] = found
        return found

    def _load(self, place: Place, name: str) -> int:
        self.loads.append(place)
        self.names.append(name)
        return ~(len(self.loads) - 1)

    def write(self, rows: str) -> None:
        """Write it."""
        if not self.stores:
            return
        whole, writer = self.tiles.nest, self.writer
        nest = Nest(
            self.tiles.shape, tuple(self.loads), tuple(self.terms), tuple(self.stores),
            self._gathers() if whole.gathers else (),
        )  # fmt: skip
        inner = writer.within(nest, plain_order(nest), self.names, self.stored)
        inner.ends = "0", rows
        inner.hint = self.tiles.hint
        inner.continues(writer, self.numbers)
        inner.enter(0)
        writer.add(inner)

    def _gathers(self) -> tuple[Gathers, ...]:
        gathers = self.tiles.nest.gathers
        count = len(self.tiles.nest.loads)
        more = [()] * (len(self.loads) - count)
        return (
            *gathers[:count], *more,
            *[gathers[count + k] if k >= 0 else () for k in self.numbers],
        )  # fmt: skip


def _name(operand: int) -> str:
    """The name of an operand's array."""
    return f"%tile{operand}" if operand >= 0 else f"%tile.l{~operand}"
