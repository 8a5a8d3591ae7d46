"""Unrolled linear algebra of small matrices, by LAPACK's algorithms.

Rows are vectors in registers.  Whether rows are exchanged is a branch, which processors predict,
and which rows is decided by `select`s.  Where it fails the function returns 1, see `lapack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.compiler.codegen.small_matmul import KEPT, SIDE, each
from tapegrad.compiler.ir.buffers import Place, layout
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine


def fits(n: int, columns: int) -> bool:
    """Whether matrices of n rows, beside right sides of some columns, are small."""
    return max(n, columns) <= SIDE


def routine(name: str, params: dict[str, Any], given: Sequence[Place], out: Place) -> Routine:
    """The routine of an operation on batches of matrices: it takes them and the result."""
    return _written(name, tuple(params.items()), *map(layout, (*given, out)))


@lru_cache(KEPT)
def _written(name: str, params: tuple[tuple[str, Any], ...], *places: Place) -> Routine:
    *given, out = places
    t = FunctionBuilder(out.buffer.dtype)
    with each(t, places) as (*operands, result):
        if name == "cholesky":
            rows = _root(t, given[0], operands[0])
        elif name == "solve_triangular":
            right = _read(t, given[1], operands[1])
            rows = _substituted(t, given[0], operands[0], right, out.shape[-1], **dict(params))
        else:
            rows = _by_factors(t, name, given, operands)
        down, across = out.strides[-2:]
        if name in ("logdet_slope", "cofactor"):  # the transpose of the inverse
            down, across = across, down
        for k, row in enumerate(rows):
            t.write(row, t.at(result, k * down), out.shape[-1], across)
    return t.routine([*["noalias readonly"] * len(given), "noalias"])


def _by_factors(
    t: FunctionBuilder, name: str, given: Sequence[Place], operands: list[str]
) -> list[str]:
    """The rows of an operation's result, from the factors of a matrix."""
    rows = _read(t, given[0], operands[0])
    n = len(rows)
    if name in ("det", "slogdet"):
        return _Factors(t, rows, [], 0).determinant(name)
    if len(given) == 2:
        right, columns = _read(t, given[1], operands[1]), given[1].shape[-1]
    else:
        right, columns = [_unit(t, k, n) for k in range(n)], n
    factors = _Factors(t, rows, right, columns)
    t.fail(factors.singular)
    rows = factors.solution()
    if name == "cofactor":
        det = t.splat(factors.determinant("det")[0], n)
        rows = [t.two("fmul", row, det, n) for row in rows]
    return rows


def _read(t: FunctionBuilder, place: Place, base: str) -> list[str]:
    """The rows of a matrix."""
    (rows, columns), (down, across) = place.shape[-2:], place.strides[-2:]
    return [t.read(t.at(base, i * down), columns, across) for i in range(rows)]


def _divided(t: FunctionBuilder, row: str, pivot: str, n: int) -> str:
    """Divide a row by a pivot; several elements by its reciprocal, as BLAS does."""
    if n == 1:
        return t.two("fdiv", row, pivot)
    return t.two("fmul", row, t.splat(t.two("fdiv", t.constant(1.0), pivot), n), n)


def _unit(t: FunctionBuilder, k: int, n: int) -> str:
    """A row of the identity."""
    return t.gathered([t.constant(float(j == k)) for j in range(n)])


class _Factors:
    """Gaussian elimination: the upper factor, and right-hand sides after the same steps."""

    def __init__(self, t: FunctionBuilder, rows: list[str], right: list[str], columns: int) -> None:
        self.t, self.n = t, len(rows)
        self.sides = [(rows, self.n), (right, columns)] if right else [(rows, self.n)]
        self.pivots: list[str] = []
        self.odd = "false"  # whether the permutation is odd
        self.singular = "false"
        for c in range(self.n):
            self._exchange(c)
            self._eliminate(c)

    def _entry(self, r: int, c: int) -> str:
        return self.t.element(self.sides[0][0][r], self.n, c)

    def _exchange(self, c: int) -> None:
        """Partial pivoting: exchange in the row with the largest element of a column."""
        t, later = self.t, range(c + 1, self.n)
        if not later:
            return
        first, *sizes = [t.math("fabs", self._entry(r, c)) for r in range(c, self.n)]
        swapped = "false"
        for size in sizes:
            larger = t.emit(f"fcmp ogt {t.kind} {size}, {first}")
            swapped = t.emit(f"or i1 {swapped}, {larger}")
        with t.where(swapped) as merged:
            chosen = self._largest(first, sizes)
            sides = [(list(rows), n) for rows, n in self.sides]
            for rows, n in sides:
                old = rows[c]
                for r, here in zip(later, chosen, strict=True):
                    rows[c] = t.choose(here, rows[r], rows[c], n)
                    rows[r] = t.choose(here, old, rows[r], n)
            odd = t.emit(f"xor i1 {self.odd}, true")
        self.odd = merged("i1", odd, self.odd)
        for (rows, n), (new, _) in zip(self.sides, sides, strict=True):
            for r in range(c, self.n):
                rows[r] = merged(t.vector(n), new[r], rows[r])

    def _largest(self, best: str, sizes: list[str]) -> list[str]:
        """For each of some numbers, whether it is the largest, and larger than a first one."""
        t = self.t
        larger = []
        for size in sizes:
            larger.append(t.emit(f"fcmp ogt {t.kind} {size}, {best}"))
            best = t.choose(larger[-1], size, best)
        chosen = []
        found = "false"
        for bigger in reversed(larger):  # the last one that was larger than those before it
            left = t.emit(f"xor i1 {found}, true")
            chosen.append(t.emit(f"and i1 {bigger}, {left}"))
            found = t.emit(f"or i1 {found}, {bigger}")
        return chosen[::-1]

    def _eliminate(self, c: int) -> None:
        t = self.t
        pivot = self._entry(c, c)
        self.pivots.append(pivot)
        zero = t.emit(f"fcmp oeq {t.kind} {pivot}, {t.constant(0.0)}")
        self.singular = t.emit(f"or i1 {self.singular}, {zero}")
        for r in range(c + 1, self.n):
            factor = t.emit(f"fneg {t.kind} {t.two('fdiv', self._entry(r, c), pivot)}")
            for rows, n in self.sides:
                rows[r] = t.fused(t.splat(factor, n), rows[c], rows[r], n)

    def solution(self) -> list[str]:
        """The rows of the solution."""
        t = self.t
        rows, n = self.sides[1]
        for r in reversed(range(self.n)):
            for k in reversed(range(r + 1, self.n)):
                factor = t.emit(f"fneg {t.kind} {self._entry(r, k)}")
                rows[r] = t.fused(t.splat(factor, n), rows[k], rows[r], n)
            rows[r] = _divided(t, rows[r], self.pivots[r], n)
        return rows

    def determinant(self, name: str) -> list[str]:
        """The determinant; or its sign, and the logarithm of its size.

        The product of the pivots, unless that leaves the range of numbers on the way: then
        by logarithms, as NumPy does it.
        """
        t, kind = self.t, self.t.kind
        limits = np.finfo(np.float32 if t.single else np.float64)
        one, minus, zero = (t.constant(x) for x in (1.0, -1.0, 0.0))
        sign = t.emit(f"select i1 {self.odd}, {kind} {minus}, {kind} {one}")
        product, within = sign, "true"
        for pivot in self.pivots:
            product = t.two("fmul", product, pivot)
            size = t.math("fabs", product)
            for test, limit in (("ogt", limits.tiny), ("ole", limits.max)):
                fine = t.emit(f"fcmp {test} {kind} {size}, {t.constant(float(limit))}")
                within = t.emit(f"and i1 {within}, {fine}")
        results = [t.room(kind), t.room(kind)]
        with t.otherwise(within) as fast:
            for pivot in self.pivots:
                below = t.emit(f"fcmp olt {kind} {pivot}, {zero}")
                negated = t.emit(f"fneg {kind} {sign}")
                sign = t.emit(f"select i1 {below}, {kind} {negated}, {kind} {sign}")
            total = zero
            for pivot in self.pivots:
                total = t.two("fadd", total, t.math("log", t.math("fabs", pivot)))
            sign = t.emit(f"select i1 {self.singular}, {kind} {zero}, {kind} {sign}")
            low = t.constant(-np.inf)
            total = t.emit(f"select i1 {self.singular}, {kind} {low}, {kind} {total}")
            if name == "det":
                total = t.two("fmul", sign, t.math("exp", total))
            t.store(sign, results[0])
            t.store(total, results[1])
            fast()
            below = t.emit(f"fcmp olt {kind} {product}, {zero}")
            t.store(t.emit(f"select i1 {below}, {kind} {minus}, {kind} {one}"), results[0])
            t.store(product if name == "det" else t.math("log", size), results[1])
        found = [t.load(at) for at in results]
        return found[1:] if name == "det" else found


def _root(t: FunctionBuilder, place: Place, base: str) -> list[str]:
    """The rows of a Cholesky factor; the upper triangle of the matrix is not read."""
    n, (down, across) = place.shape[-1], place.strides[-2:]
    zero, one = t.constant(0.0), t.constant(1.0)
    factor = [[zero] * n for _ in range(n)]
    for j in range(n):
        for i in range(j, n):
            left = t.load(t.at(base, i * down + j * across))
            for k in range(j):
                left = t.fused(t.emit(f"fneg {t.kind} {factor[i][k]}"), factor[j][k], left)
            if i == j:
                t.fail(t.emit(f"fcmp ule {t.kind} {left}, {zero}"))
                factor[j][j] = t.math("sqrt", left)
                scale = t.two("fdiv", one, factor[j][j])
            else:
                factor[i][j] = t.two("fmul", left, scale)
    return [t.gathered(row) for row in factor]


def _substituted(
    t: FunctionBuilder, place: Place, base: str, rows: list[str], columns: int,
    *, upper: bool, unit: bool, strong: bool,
) -> list[str]:  # fmt: skip
    """Substitution: the rows of the right-hand sides, by one triangle of a matrix."""
    n, (down, across) = len(rows), place.strides[-2:]
    for r in reversed(range(n)) if upper else range(n):
        for k in reversed(range(r + 1, n)) if upper else range(r):
            factor = t.load(t.at(base, r * down + k * across))
            factor = t.emit(f"fneg {t.kind} {factor}")
            rows[r] = t.fused(t.splat(factor, columns), rows[k], rows[r], columns)
        if not unit:
            pivot = t.load(t.at(base, r * (down + across)))
            rows[r] = _divided(t, rows[r], pivot, columns)
    if strong:  # a number that is not finite may be zero divided by zero
        for row in rows:
            off = t.total(t.two("fsub", row, row, columns), columns)
            t.fail(t.emit(f"fcmp uno {t.kind} {off}, {off}"))
    return rows
