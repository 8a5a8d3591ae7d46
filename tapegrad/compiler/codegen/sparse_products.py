"""Write products with sparse matrices, and those elements of an outer product that a pattern names.

The elements of a matrix lie line by line: these are its rows, or its columns.  One table has the
number of the element with which each line starts, another one the place of each in its line.
Columns of dense operands are taken in blocks, which stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.compiler.codegen.small_matmul import KEPT
from tapegrad.compiler.codegen.vector_lines import COLD
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine

BLOCK = 4  # vectors of columns that are taken together
CHAINS = 4  # sums of a long line
# The parameters: two operands, where lines start, the places of the elements, and the result.
A, B, STARTS, PLACES, OUT = [f"%a{k}" for k in range(5)]
ATTRIBUTES = [*["noalias readonly"] * 4, "noalias"]


@lru_cache(KEPT)
def product(
    lines: int, columns: int, long: bool, dtype: np.dtype[Any], index: np.dtype[Any]
) -> Routine:
    """The elements of a matrix, and columns that it is multiplied with: its lines are its rows.

    Of `long` lines and one column a sum does not wait for the one before.
    """
    t = _Writer(dtype, index)
    if columns == 1:
        with t.loop(lines) as i:
            t.store(t.dot(i, CHAINS if long else 1), t.at(OUT, i))
        return t.routine(ATTRIBUTES)
    for first, widths in t.blocks(columns):
        with t.loop(lines) as i:
            sums = t.sums(widths)
            with t.elements(*t.ends(i)) as (k, place):
                t.add(sums, widths, t.load(t.at(A, k)), t.at(B, t.mad(place, columns, first)))
            t.write_all(t.totals(sums, widths), widths, t.at(OUT, t.mad(i, columns, first)))
    return t.routine(ATTRIBUTES)


@lru_cache(KEPT)
def transposed_product(
    lines: int, rows: int, columns: int, dtype: np.dtype[Any], index: np.dtype[Any]
) -> Routine:
    """The same of a matrix with so many rows, whose lines are its columns."""
    t = _Writer(dtype, index)
    t.clear(rows * columns)
    for first, widths in t.blocks(columns):
        with t.loop(lines) as i:
            xs = t.read_all(widths, t.at(B, t.mad(i, columns, first)))
            with t.elements(*t.ends(i)) as (k, place):
                at, factor = t.at(OUT, t.mad(place, columns, first)), t.load(t.at(A, k))
                before = t.read_all(widths, at)
                t.write_all(t.scaled(factor, xs, before, widths), widths, at)
    return t.routine(ATTRIBUTES)


@lru_cache(KEPT)
def sampled(
    lines: int, columns: int, by_column: bool, dtype: np.dtype[Any], index: np.dtype[Any]
) -> Routine:
    """Elements of ``a b^T``: a line has one row of `a` or `b`, and rows of the other."""
    t = _Writer(dtype, index)
    line, other = (B, A) if by_column else (A, B)
    full, rest = divmod(columns, t.lanes)
    with t.loop(lines) as i, t.elements(*t.ends(i)) as (k, place):
        x, y = (t.at(base, t.mad(row, columns, 0)) for base, row in ((line, i), (other, place)))
        widths = [t.lanes] * (full > 0) + [rest] * (rest > 0)
        sums = t.sums(widths)
        if full:
            with t.loop(full) as block:
                at = t.mad(block, t.lanes, 0)
                t.multiply(sums[0], t.lanes, t.at(x, at), t.at(y, at))
        if rest:
            t.multiply(sums[-1], rest, *(t.at(p, full * t.lanes) for p in (x, y)))
        first, *more = [t.total(s, n) for s, n in zip(t.totals(sums, widths), widths, strict=True)]
        t.store(t.two("fadd", first, more[0]) if more else first, t.at(OUT, k))
    return t.routine(ATTRIBUTES)


class _Writer(FunctionBuilder):
    """Text over the elements of a matrix and rows of columns."""

    def __init__(self, dtype: np.dtype[Any], index: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.index = f"i{8 * index.itemsize}"
        self.lanes = 16 if self.single else 8

    def blocks(self, columns: int) -> Iterator[tuple[str | int, list[int]]]:
        """The first column of a block, and the widths of its vectors; inside, it is written."""
        width = BLOCK * self.lanes
        full, rest = divmod(columns, width)
        if full:
            with self.loop(full) as block:
                yield self.mad(block, width, 0), [self.lanes] * BLOCK
        if rest:
            whole, last = divmod(rest, self.lanes)
            yield full * width, [self.lanes] * whole + [last] * (last > 0)

    def ends(self, line: str) -> tuple[str, str]:
        """The numbers of the first element of a line and of the one behind it."""
        start = self._number(STARTS, line)
        return start, self._number(STARTS, self.emit(f"add i64 {line}, 1"))

    @contextmanager
    def elements(self, start: str, end: str) -> Iterator[tuple[str, str]]:
        """The lines inside are done for some elements, each of a number and a place."""
        with self.loop(end, start, COLD) as k:  # few follow each other
            yield k, self._number(PLACES, k)

    def dot(self, line: str, chains: int) -> str:
        """The product of a line and one column, by several sums that do not wait for each other."""
        start, end = self.ends(line)
        sums = self.sums([1] * chains)
        if chains > 1:
            count = self.emit(f"sdiv i64 {self.emit(f'sub i64 {end}, {start}')}, {chains}")
            with self.loop(count, 0, COLD) as block:
                first = self.mad(block, chains, start)
                for j, total in enumerate(sums):
                    k = self.emit(f"add i64 {first}, {j}")
                    self._add_product(total, k, self._number(PLACES, k))
            start = self.mad(count, chains, start)
        with self.elements(start, end) as (k, place):
            self._add_product(sums[0], k, place)
        total, *others = self.totals(sums, [1] * chains)
        for x in others:
            total = self.two("fadd", total, x)
        return total

    def _add_product(self, total: str, k: str, place: str) -> None:
        """Multiply, then add: a sum waits less for the one before than if it were one step."""
        term = self.two("fmul", self.load(self.at(A, k)), self.load(self.at(B, place)))
        self.store(self.two("fadd", self.load(total), term), total)

    def _number(self, table: str, at: str) -> str:
        found = self.load(self.at(table, at, self.index), self.index)
        return found if self.index == "i64" else self.emit(f"sext {self.index} {found} to i64")

    def clear(self, count: int) -> None:
        """Set the result to zero."""
        full, rest = divmod(count, self.lanes)
        zero = self.constant(0.0)
        if full:
            with self.loop(full) as k:
                at = self.at(OUT, self.mad(k, self.lanes, 0))
                self.write(self.splat(zero, self.lanes), at, self.lanes)
        if rest:
            self.write(self.splat(zero, rest), self.at(OUT, full * self.lanes), rest)

    def sums(self, widths: list[int]) -> list[str]:
        """Sums that are zero at first."""
        found = [self.room(self.vector(n)) for n in widths]
        for at, n in zip(found, widths, strict=True):
            self.store(self.splat(self.constant(0.0), n), at, self.vector(n))
        return found

    def totals(self, sums: list[str], widths: list[int]) -> list[str]:
        """What sums are now."""
        return [self.load(at, self.vector(n)) for at, n in zip(sums, widths, strict=True)]

    def read_all(self, widths: list[int], at: str) -> list[str]:
        """Vectors that lie one behind the other."""
        return [self.read(self.at(at, place), n) for place, n in self._placed(widths)]

    def write_all(self, vectors: list[str], widths: list[int], at: str) -> None:
        """Store vectors one behind the other."""
        for x, (place, n) in zip(vectors, self._placed(widths), strict=True):
            self.write(x, self.at(at, place), n)

    def _placed(self, widths: list[int]) -> list[tuple[int, int]]:
        return [(sum(widths[:j]), n) for j, n in enumerate(widths)]

    def scaled(self, factor: str, xs: list[str], before: list[str], widths: list[int]) -> list[str]:
        """Vectors times a number, added to others."""
        return [
            self.fused(x, self.splat(factor, n), y, n)
            for x, y, n in zip(xs, before, widths, strict=True)
        ]

    def add(self, sums: list[str], widths: list[int], factor: str, at: str) -> None:
        """Add a number times what lies somewhere to sums."""
        before = self.totals(sums, widths)
        after = self.scaled(factor, self.read_all(widths, at), before, widths)
        for s, x, n in zip(sums, after, widths, strict=True):
            self.store(x, s, self.vector(n))

    def multiply(self, total: str, n: int, x: str, y: str) -> None:
        """Add the products of two vectors to a sum."""
        before = self.load(total, self.vector(n))
        found = self.fused(self.read(x, n), self.read(y, n), before, n)
        self.store(found, total, self.vector(n))
