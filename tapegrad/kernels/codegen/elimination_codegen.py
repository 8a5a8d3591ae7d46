"""Generate elimination with partial pivoting of as many small matrices as a vector has elements.

An element of all of them is a vector.  Every matrix has pivots of its own: where the candidate of
a matrix is larger than its pivot, their rows are exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.codegen.vector_function import VectorFunction


class _Elimination:
    """The function under construction, and the vectors of elements of the systems."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.f = VectorFunction(dtype)
        self.t, self.lanes = self.f.t, self.f.lanes
        self.room = self.f.pointer(0)

    def at(self, row: str, column: str) -> str:
        """Where an element of all systems stands."""
        index = self.t.emit(f"add i64 {self.t.emit(f'mul i64 {row}, %w2')}, {column}")
        return self.t.at(self.room, self.t.mad(index, self.lanes, 0))

    def read(self, address: str) -> str:
        """The vector at an address."""
        return self.t.read(address, self.lanes)

    def write(self, value: str, address: str) -> None:
        """Put a vector at an address."""
        self.t.write(value, address, self.lanes)

    def less(self, at: str, factor: str, other: str) -> None:
        """Subtract a multiple of a vector from the one at an address."""
        t, n = self.t, self.lanes
        minus = t.emit(f"fneg {t.vector(n)} {factor}")
        self.write(t.fused(minus, other, self.read(at), n), at)

    def exchange(self, row: str, column: str, signs: str) -> None:
        """Exchange a row with that of the pivot where its element is larger."""
        f, t = self.f, self.t
        here, pivot = (self.read(self.at(r, column)) for r in (row, column))
        larger = f.compared("ogt", f.size(here), f.size(pivot))
        sign = self.read(signs)
        self.write(f.where(larger, t.emit(f"fneg {t.vector(self.lanes)} {sign}"), sign), signs)
        with t.loop("%w2", column) as k:
            low, high = self.at(row, k), self.at(column, k)
            x, y = self.read(low), self.read(high)
            self.write(f.where(larger, y, x), low)
            self.write(f.where(larger, x, y), high)

    def eliminate(self, signs: str, bad: str) -> None:
        """Make the matrices triangular, and say where a pivot is zero or no number."""
        f, t = self.f, self.t
        zero, one = (t.splat(t.constant(x), self.lanes) for x in (0.0, 1.0))
        self.write(one, signs)
        self.write(zero, bad)
        with t.loop("%w1") as c:
            after = t.emit(f"add i64 {c}, 1")
            with t.loop("%w1", after) as r:
                self.exchange(r, c, signs)
            pivot = self.read(self.at(c, c))
            self.write(f.where(f.compared("ule", f.size(pivot), zero), one, self.read(bad)), bad)
            self.write(f.two("fmul", self.read(signs), pivot), signs)
            with t.loop("%w1", after) as r:
                factor = f.two("fdiv", self.read(self.at(r, c)), pivot)
                with t.loop("%w2", after) as k:
                    self.less(self.at(r, k), factor, self.read(self.at(c, k)))

    def substitute(self) -> None:
        """Solve with the triangular matrices."""
        f, t = self.f, self.t
        with t.loop("%w1") as step:
            after = t.emit(f"sub i64 %w1, {step}")
            r = t.emit(f"sub i64 {after}, 1")
            with t.loop("%w1", after) as k:
                factor = self.read(self.at(r, k))
                with t.loop("%w2", "%w1") as c:
                    self.less(self.at(r, c), factor, self.read(self.at(k, c)))
            pivot = self.read(self.at(r, r))
            with t.loop("%w2", "%w1") as c:
                self.write(f.two("fdiv", self.read(self.at(r, c)), pivot), self.at(r, c))


def elimination(dtype: np.dtype[Any]) -> str:
    """The LLVM text of a function that solves systems in place, whose right sides stand beside.

    Its words are the address of the systems, how many rows, and how many columns with those of the
    right sides, and the addresses of two vectors: for the determinants, and for 1 where a pivot was
    zero or no number.
    """
    made = _Elimination(dtype)
    made.eliminate(made.f.pointer(3), made.f.pointer(4))
    made.substitute()
    return made.f.text()
