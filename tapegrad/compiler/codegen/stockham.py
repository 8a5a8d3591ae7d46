"""Write discrete Fourier transforms along a dimension, by Stockham's algorithm.

A pass takes a factor of the size: it combines as many elements, and stores them in the order in
which the next pass loads them, so that nothing is permuted at the end.  Real and imaginary parts
lie in planes of their own, hence a vector holds the one or the other of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapegrad.compiler.codegen.small_matmul import KEPT
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine
from tapegrad.kernels.codegen.butterflies import Number, combined, twiddled
from tapegrad.ops.fourier_forms import factors, roots_of_unity

COLUMNS = 64  # neighbours that are transformed together, so that they stay in the cache
GAP = 72  # elements between planes: at a power of two apart they would displace each other


class Planes(NamedTuple):
    """Where the parts of an array begin, and how far the elements of a transform lie apart."""

    re: str
    im: str
    step: int


@lru_cache(KEPT)
def twiddles(n: int, dtype: np.dtype[Any]) -> np.ndarray:
    """The factors between the passes, in their order: real parts, then imaginary parts.

    >>> import numpy as np
    >>> from tapegrad.compiler.codegen.stockham import twiddles
    >>> twiddles(8, np.dtype(float)).round(2).tolist()
    [1.0, 0.71, 1.0, 0.0, 1.0, -0.71, 0.0, -0.71, 0.0, -1.0, 0.0, -0.71]
    """
    found, left = [], n
    for radix in factors(n)[:-1]:
        powers = np.outer(np.arange(1, radix), np.arange(left // radix))
        roots = roots_of_unity(-powers.ravel(), left)
        found += [roots.real, roots.imag]
        left //= radix
    table = np.concatenate([*found, np.empty(0)]).astype(dtype)
    table.flags.writeable = False
    return table


def scratch(n: int, after: int) -> int:
    """How many elements the routine needs beside the result: two arrays between passes."""
    return 4 * (n * min(after, COLUMNS) + GAP)


@lru_cache(KEPT)
def routine(before: int, n: int, after: int, dtype: np.dtype[Any]) -> Routine:
    """The transforms of n elements, `after` apart, of each of `before` blocks.

    It takes both planes of the operand, the twiddle factors, scratch memory, and the result.
    """
    t = FunctionBuilder(dtype)
    width = min(after, COLUMNS)
    room = [t.at("%a2", k * (n * width + GAP)) for k in range(4)]
    full, left = divmod(after, COLUMNS)

    def columns(first: str, width: int) -> None:
        other = t.emit(f"add i64 {first}, {before * n * after}")
        given, out = (Planes(t.at(at, first), t.at(at, other), after) for at in ("%a0", "%a3"))
        _Transform(t, n, width, room).write(given, out)

    with t.loop(before) as block:
        start = t.mad(block, n * after, 0)
        if full:
            with t.loop(full) as k:
                columns(t.mad(k, COLUMNS, start), COLUMNS)
        if left:
            columns(t.emit(f"add i64 {start}, {full * COLUMNS}"), left)
    return t.routine([*["noalias readonly"] * 2, "noalias", "noalias"])


class _Transform:
    """Writes the transform of some neighbouring columns."""

    def __init__(self, t: FunctionBuilder, n: int, width: int, room: list[str]) -> None:
        self.t, self.n, self.width = t, n, width
        self.lanes = 8 if t.single else 4
        self.room = [Planes(room[k], room[k + 1], width) for k in (0, 2)]

    def write(self, given: Planes, out: Planes) -> None:
        """All passes."""
        *radices, last = factors(self.n)
        rest, table, source = self.n, 0, given
        for k, radix in enumerate(radices):
            inner, rest = self.n // rest, rest // radix  # combined so far, and to be combined
            if inner * source.step == 1:
                self._first(source, self.room[0], radix, rest)
            else:
                self._pass(source, self.room[k % 2], radix, rest, inner, table)
            table += 2 * (radix - 1) * rest
            source = self.room[k % 2]
        self._last(source, out, last, self.n // last)

    def _first(self, source: Planes, target: Planes, radix: int, rest: int) -> None:
        """Of a single column: vectors along the transform, whose results are interleaved."""
        t = self.t

        def work(p: str, lanes: int) -> None:
            xs = [self._read(source, p, j * rest, lanes) for j in range(radix)]
            known = Planes("%a1", t.at("%a1", (radix - 1) * rest), 1)
            ws = [self._read(known, p, j * rest, lanes) for j in range(radix - 1)]
            ys = twiddled(t, combined(t, xs, lanes), ws, lanes)
            first = t.mad(p, radix, 0)
            for k, plane in enumerate((target.re, target.im)):
                parts, to = [y[k] for y in ys], t.at(plane, first)
                if radix in (2, 4):
                    t.write(self._interleaved(parts, lanes), to, radix * lanes)
                else:
                    for j, part in enumerate(parts):
                        t.write(part, t.at(to, j), lanes, radix)

        self._vectors(rest, work)

    def _pass(
        self, source: Planes, target: Planes, radix: int, rest: int, inner: int, table: int
    ) -> None:
        """Vectors of columns, of all that has been combined."""
        t = self.t
        count = inner * self.width
        step = source.step if inner == 1 else count
        known = Planes(t.at("%a1", table), t.at("%a1", table + (radix - 1) * rest), 1)
        with t.loop(rest) as p:
            ws = [self._read(known, p, j * rest, 1) for j in range(radix - 1)]
            first, to = t.mad(p, step, 0), t.mad(p, radix * count, 0)

            def work(q: str, lanes: int) -> None:
                here, there = (t.emit(f"add i64 {q}, {at}") for at in (first, to))
                xs = [self._read(source, here, j * rest * step, lanes) for j in range(radix)]
                spread = [(t.splat(c, lanes), t.splat(s, lanes)) for c, s in ws]
                ys = twiddled(t, combined(t, xs, lanes), spread, lanes)
                for j, y in enumerate(ys):
                    self._write(target, y, there, j * count, lanes)

            self._vectors(count, work)

    def _last(self, source: Planes, target: Planes, radix: int, inner: int) -> None:
        """No factors any more; the results may lie further apart than the columns."""
        t, width = self.t, self.width
        step = source.step if inner == 1 else inner * width
        rows, count = (1, inner * width) if target.step == width else (inner, width)
        with t.loop(rows) as k:
            first, to = t.mad(k, width, 0), t.mad(k, target.step, 0)

            def work(q: str, lanes: int) -> None:
                here, there = (t.emit(f"add i64 {q}, {at}") for at in (first, to))
                xs = [self._read(source, here, j * step, lanes) for j in range(radix)]
                for j, y in enumerate(combined(t, xs, lanes)):
                    self._write(target, y, there, j * inner * target.step, lanes)

            self._vectors(count, work)

    def _vectors(self, count: int, work: Callable[[str, int], None]) -> None:
        """Do something for vectors of elements, and for each of those that are left."""
        t, lanes = self.t, self.lanes
        if count >= lanes:
            with t.loop(count // lanes) as k:
                work(t.mad(k, lanes, 0), lanes)
        if count % lanes:
            with t.loop(count, count - count % lanes) as k:
                work(k, 1)

    def _read(self, planes: Planes, index: str, offset: int, lanes: int) -> Number:
        t = self.t
        at = t.emit(f"add i64 {index}, {offset}")
        return t.read(t.at(planes.re, at), lanes), t.read(t.at(planes.im, at), lanes)

    def _write(self, planes: Planes, y: Number, index: str, offset: int, lanes: int) -> None:
        t = self.t
        at = t.emit(f"add i64 {index}, {offset}")
        t.write(y[0], t.at(planes.re, at), lanes)
        t.write(y[1], t.at(planes.im, at), lanes)

    def _interleaved(self, vectors: list[str], lanes: int) -> str:
        """The first elements of all vectors, of a power of two, then the second ones."""
        if len(vectors) == 1:
            return vectors[0]
        t, half = self.t, len(vectors) // 2 * lanes
        x, y = (self._interleaved(vectors[k::2], lanes) for k in range(2))
        if half == 1:
            return t.gathered([x, y])
        order = ", ".join(f"i32 {k}, i32 {k + half}" for k in range(half))
        kind = t.vector(half)
        return t.emit(f"shufflevector {kind} {x}, {kind} {y}, <{2 * half} x i32> <{order}>")
