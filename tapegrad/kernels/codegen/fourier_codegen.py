"""Generate the loops of Fourier transforms that eager operations run, on planes of vectors.

Planes hold an element of many lines after the other, one plane the real and one the imaginary
parts.  A pass combines a factor of the size by Stockham's algorithm: it stores results in the order
in which the next pass loads them.  Lengths are arguments, so a few loops serve all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.codegen.butterflies import Number, combined, twiddled
from tapegrad.kernels.codegen.vector_function import VectorFunction
from tapegrad.kernels.fourier_abi import FINE_BITS


class _Loop(VectorFunction):
    """A function under construction, whose vectors are planes of numbers or pairs of parts."""

    def planes(self, re: str, gap: str) -> Number:
        """Where real and imaginary parts stand, so many bytes apart."""
        return re, self.t.at(re, gap, "i8")

    def read(self, planes: Number, index: str) -> Number:
        """Vectors of both planes."""
        t = self.t
        return t.read(t.at(planes[0], index), self.lanes), t.read(
            t.at(planes[1], index), self.lanes
        )

    def write(self, y: Number, planes: Number, index: str) -> None:
        """Vectors into both planes."""
        for part, plane in zip(y, planes, strict=True):
            self.t.write(part, self.t.at(plane, index), self.lanes)

    def chosen(self, a: str, b: str, places: Sequence[int], width: int) -> str:
        """Elements of two vectors of some width."""
        kind = self.t.vector(width)
        order = ", ".join(f"i32 {k}" for k in places)
        return self.t.emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(places)} x i32> <{order}>")

    def parted(self, pairs: str) -> Number:
        """Real and imaginary parts of complex numbers."""
        n = 2 * self.lanes
        re, im = (self.chosen(pairs, "poison", range(k, n, 2), n) for k in range(2))
        return re, im

    def joined(self, y: Number) -> str:
        """The complex numbers of real and imaginary parts."""
        return self.chosen(
            *y, [k // 2 + k % 2 * self.lanes for k in range(2 * self.lanes)], self.lanes
        )

    def transposed(self, rows: list[str]) -> list[str]:
        """A square matrix, of as many vectors: its halves are interleaved again and again."""
        n = self.lanes
        halves = [[k // 2 + k % 2 * n + at for k in range(n)] for at in (0, n // 2)]
        for _ in range(n.bit_length() - 1):
            pairs = zip(rows[: n // 2], rows[n // 2 :], strict=True)
            rows = [self.chosen(a, b, half, n) for a, b in pairs for half in halves]
        return rows


def butterfly_pass(radix: int, dtype: np.dtype[Any], *, last: bool) -> str:
    """The LLVM text of a pass; the last one multiplies by no factors.

    Its words are the addresses of the real parts that it reads and writes, how many bytes behind
    them the imaginary parts are, the address of the factors, how much of the size is left to
    combine, and how many vectors lie side by side.
    """
    loop = _Loop(dtype)
    t, width = loop.t, loop.lanes
    source, target, table = (loop.pointer(k) for k in (0, 1, 3))
    gap, rest, vectors = "%w2", "%w4", "%w5"
    count = t.mad(vectors, width, 0)
    distance = t.emit(f"mul i64 {rest}, {count}")

    def planes(first: str, between: str) -> list[Number]:
        """The planes of what the pass combines."""
        found = []
        for _ in range(radix):
            found.append(loop.planes(first, gap))
            first = t.at(first, between)
        return found

    with t.loop(rest) as p:
        read = planes(t.at(source, t.emit(f"mul i64 {p}, {count}")), distance)
        written = planes(t.at(target, t.emit(f"mul i64 {t.mad(p, radix, 0)}, {count}")), count)
        factors: list[Number] = []
        if not last:
            here = t.at(table, t.mad(p, 2 * (radix - 1), 0))
            parts = [t.splat(t.load(t.at(here, k)), width) for k in range(2 * (radix - 1))]
            factors = list(zip(parts[::2], parts[1::2], strict=True))
        with t.loop(vectors) as k:
            q = t.mad(k, width, 0)
            ys = combined(t, [loop.read(x, q) for x in read], width)
            if not last:
                ys = twiddled(t, ys, factors, width)
            for y, to in zip(ys, written, strict=True):
                loop.write(y, to, q)
    return loop.text()


def rows(dtype: np.dtype[Any], parts: int, *, stores: bool) -> str:
    """The LLVM text of a loop that loads or stores lines which begin side by side.

    Its words are the address of the array, that of the real parts and how many bytes behind them
    the imaginary parts are, the bytes from element to element of a line, how many elements, how
    many vectors of lines, and where the number is that is stored is multiplied by.
    """
    loop = _Loop(dtype)
    t, width, planes = loop.t, loop.lanes, loop.planes(loop.pointer(1), "%w2")
    array, scale = loop.pointer(0), _scale(loop) if stores else ""
    with t.loop("%w4") as k:
        here = t.at(array, t.emit(f"mul i64 {k}, %w3"), "i8")
        first = t.emit(f"mul i64 {k}, %w5")
        with t.loop("%w5") as v:
            index = t.mad(t.emit(f"add i64 {first}, {v}"), width, 0)
            at = t.at(here, t.mad(v, parts * width, 0))
            if stores:
                found = [
                    loop.two("fmul", t.read(t.at(plane, index), width), scale)
                    for plane in planes[:parts]
                ]
                t.write(
                    loop.joined((found[0], found[1])) if parts == 2 else found[0], at, parts * width
                )
            else:
                x = t.read(at, parts * width)
                for part, plane in zip(loop.parted(x) if parts == 2 else [x], planes, strict=False):
                    t.write(part, t.at(plane, index), width)
    return loop.text()


def tiles(dtype: np.dtype[Any], parts: int, *, stores: bool) -> str:
    """The same of lines whose elements are neighbours, as many at a time as a vector has.

    Its words differ in these: the bytes from line to line, and how many such squares of elements.
    """
    loop = _Loop(dtype)
    t, width, planes = loop.t, loop.lanes, loop.planes(loop.pointer(1), "%w2")
    array, scale = loop.pointer(0), _scale(loop) if stores else ""
    count = t.mad("%w5", width, 0)
    with t.loop("%w4") as k, t.loop("%w5") as v:
        first = t.at(array, t.mad(k, parts * width, 0))
        lines = []
        for j in range(width):
            line = t.emit(f"add i64 {t.mad(v, width, 0)}, {j}")
            lines.append(t.at(first, t.emit(f"mul i64 {line}, %w3"), "i8"))
        at = t.emit(f"mul i64 {t.mad(k, width, 0)}, {count}")
        places = [t.emit(f"add i64 {at}, {t.mad(v, width, 0)}")]
        for _ in range(width - 1):
            places.append(t.emit(f"add i64 {places[-1]}, {count}"))
        if stores:
            squares = []
            for plane in planes[:parts]:
                square = [loop.two("fmul", t.read(t.at(plane, p), width), scale) for p in places]
                squares.append(loop.transposed(square))
            for line, *ys in zip(lines, *squares, strict=True):
                numbers = loop.joined((ys[0], ys[1])) if parts == 2 else ys[0]
                t.write(numbers, line, parts * width)
        else:
            xs = [t.read(line, parts * width) for line in lines]
            split = [loop.parted(x) if parts == 2 else (x,) for x in xs]
            for plane, columns in zip(planes, zip(*split, strict=True), strict=False):
                for p, y in zip(places, loop.transposed(list(columns)), strict=True):
                    t.write(y, t.at(plane, p), width)
    return loop.text()


def _scale(loop: _Loop) -> str:
    """A vector of the number that results are multiplied by."""
    return loop.t.splat(loop.t.load(loop.pointer(6)), loop.lanes)


def halves(dtype: np.dtype[Any], *, stores: bool) -> str:
    """The LLVM text of a loop between the frequencies of a + i b and half those of a and b each.

    Its words are the addresses of the real parts that it reads and writes, how many bytes behind
    each the imaginary parts are, the size, and how many vectors of a + i b.  The lines b follow the
    lines a, so there are twice as many.
    """
    loop = _Loop(dtype)
    t, width = loop.t, loop.lanes
    source, target = (loop.planes(loop.pointer(k), f"%w{k + 2}") for k in (0, 1))
    half, zero = (t.splat(t.constant(x), width) for x in (0.5, 0.0))
    count = t.mad("%w5", width, 0)
    end = t.emit(f"add i64 {t.emit('sdiv i64 %w4, 2')}, 1")
    with t.loop(end) as k:
        first = t.emit(f"icmp eq i64 {k}, 0")
        mirrored = t.emit(f"select i1 {first}, i64 0, i64 {t.emit(f'sub i64 %w4, {k}')}")
        own = t.emit(f"icmp eq i64 {k}, {mirrored}")
        starts = [t.emit(f"mul i64 {row}, {count}") for row in (k, mirrored)]
        of_a = t.mad(starts[0], 2, 0)
        of_b = t.emit(f"add i64 {of_a}, {count}")
        with t.loop("%w5") as v:
            q = t.mad(v, width, 0)
            whole = [t.emit(f"add i64 {start}, {q}") for start in starts]
            parts = [t.emit(f"add i64 {start}, {q}") for start in (of_a, of_b)]
            if stores:
                (c, d), (e, f) = (loop.read(source, index) for index in whole)
                a = loop.two("fadd", c, e), loop.two("fsub", d, f)
                b = loop.two("fadd", d, f), loop.two("fsub", e, c)
                for number, index in zip((a, b), parts, strict=True):
                    re, im = (loop.two("fmul", part, half) for part in number)
                    loop.write((re, im), target, index)
            else:  # frequencies that are their own conjugates are real
                (c, d), (e, f) = (loop.read(source, index) for index in parts)
                d, f = (t.choose(own, zero, part, width) for part in (d, f))
                loop.write((loop.two("fadd", c, f), loop.two("fsub", e, d)), target, whole[1])
                loop.write((loop.two("fsub", c, f), loop.two("fadd", d, e)), target, whole[0])
    return loop.text()


def roots(dtype: np.dtype[Any]) -> str:
    """The LLVM text of a loop that multiplies element k of line j by a root of unity, to the k * j.

    Its words are the address of the real parts and how many bytes behind them the imaginary parts
    are, the size of the lines, how many vectors, the first line, the size of the long line, and the
    addresses of the roots for the lines of a block and of two tables, one after the other.
    """
    loop = _Loop(dtype)
    t, width, planes = loop.t, loop.lanes, loop.planes(loop.pointer(0), "%w1")
    places, fine = loop.pointer(6), loop.pointer(7)
    coarse = t.at(fine, 2 << FINE_BITS)
    with t.loop("%w2") as k:
        power = t.emit(f"urem i64 {t.emit(f'mul i64 {k}, %w4')}, %w5")
        high = t.mad(t.emit(f"lshr i64 {power}, {FINE_BITS}"), 2, 0)
        low = t.mad(t.emit(f"and i64 {power}, {(1 << FINE_BITS) - 1}"), 2, 0)
        known = [t.at(table, index) for table, index in ((coarse, high), (fine, low))]
        numbers = [(t.load(at), t.load(t.at(at, 1))) for at in known]
        ((cos, sin),) = twiddled(t, [numbers[0], numbers[0]], [numbers[1]], 1)[1:]
        start = (t.splat(cos, width), t.splat(sin, width))
        first = t.emit(f"mul i64 {k}, %w3")
        with t.loop("%w3") as v:
            index = t.mad(t.emit(f"add i64 {first}, {v}"), width, 0)
            at = t.at(places, t.mad(index, 2, 0))
            here = t.read(at, width), t.read(t.at(at, width), width)
            root = twiddled(t, [here, here], [start], width)[1]
            x = loop.read(planes, index)
            loop.write(twiddled(t, [x, x], [root], width)[1], planes, index)
    return loop.text()
