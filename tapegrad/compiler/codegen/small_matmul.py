"""Unrolled products of small matrices, with vectors in registers.

A row of the result is a sum of rows of the second matrix, weighted by elements of the first.  The
transposed product is computed where only the columns of the first matrix are contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

from tapegrad.compiler.ir.buffers import Place
from tapegrad.compiler.ir.loop_nest import Nest, collapsed
from tapegrad.compiler.llvm.function_builder import FunctionBuilder, Routine

EXACT_MOST = 4  # rows and inner size up to which a strong product tests every factor
KEPT = 512  # cached texts
SIDE = 8  # rows and columns of the matrices that are small


@contextmanager
def each(t: FunctionBuilder, places: Sequence[Place]) -> Any:
    """Loop over the batch of matrices at `%a0`, `%a1`, ...; yields their addresses."""
    batch = places[0].shape[:-2]
    windows = [p._replace(shape=batch, strides=p.strides[:-2]) for p in places]
    flat = collapsed(Nest(batch, tuple(windows), (), ()))
    at = [f"%a{k}" for k in range(len(places))]
    with ExitStack() as loops:
        for d, count in enumerate(flat.domain):
            index = loops.enter_context(t.loop(count))
            for k, window in enumerate(flat.loads):
                if window.strides[d]:
                    at[k] = t.at(at[k], t.mad(index, window.strides[d], 0))
        yield at


def fits(a: Place, b: Place, out: Place) -> bool:
    """Whether the matrices are small, and of one dtype."""
    alike = a.buffer.dtype == b.buffer.dtype == out.buffer.dtype
    return alike and max(*out.shape[-2:], a.shape[-1]) <= SIDE


@lru_cache(KEPT)
def written(a: Place, b: Place, out: Place, strong: bool = False, again: bool = False) -> Routine:
    """The routine of a product: a strong one, or one that `{redo}` may recompute."""
    t = FunctionBuilder(out.buffer.dtype)
    odd = t.room("i1", "false") if again else ""
    with each(t, (a, b, out)) as at:
        written = _Product(t, (a, b, out), at, strong)
        if again:
            total = written.total()
            bad = t.emit(f"fcmp uno {t.kind} {total}, {total}")
            t.store(t.emit(f"or i1 {t.load(odd, 'i1')}, {bad}"), odd, "i1")
    if again:
        t.lines += [
            f"br i1 {t.load(odd, 'i1')}, label %again, label %done", "again:",
            "call void @{redo}(ptr %a0, ptr %a1, ptr %a2)", "br label %done", "done:",
        ]  # fmt: skip
    return t.routine(["noalias readonly", "noalias readonly", "noalias"], "void")


class _Product:
    """Writes one product."""

    def __init__(
        self, t: FunctionBuilder, given: Sequence[Place], at: list[str], strong: bool
    ) -> None:
        self.t, self.at, self.strong = t, at, strong
        a, b, _ = given
        (self.rows, self.inner), self.columns = a.shape[-2:], b.shape[-1]
        self.a, self.b, self.out = [p.strides[-2:] for p in given]
        by_rows, by_columns = self.b[1] == 1, self.a[0] == 1
        if by_columns if self.columns == 1 else not by_rows and (by_columns or self.rows == 1):
            self._transpose()
        self.found = self._by_rows()

    def total(self) -> str:
        """The sum of the result's elements."""
        t, total = self.t, self.found[0]
        for row in self.found[1:]:
            total = t.two("fadd", total, row, self.columns)
        return t.total(total, self.columns)

    def _transpose(self) -> None:
        """The product of the transposes, in the opposite order, is the transpose."""
        (a0, a1), (b0, b1), (o0, o1) = self.a, self.b, self.out
        self.a, self.b, self.out = (b1, b0), (a1, a0), (o1, o0)
        self.rows, self.columns = self.columns, self.rows
        self.at = [self.at[1], self.at[0], self.at[2]]

    def _by_rows(self) -> list[str]:
        t, n = self.t, self.columns
        a, b, out = self.at
        below = [t.read(t.at(b, k * self.b[0]), n, self.b[1]) for k in range(self.inner)]
        found = []
        for i in range(self.rows):
            left = [t.load(t.at(a, i * self.a[0] + k * self.a[1])) for k in range(self.inner)]
            found.append(self._row([t.splat(x, n) for x in left], below))
            t.write(found[-1], t.at(out, i * self.out[0]), n, self.out[1])
        return found

    def _row(self, left: list[str], below: list[str]) -> str:
        """A weighted sum of rows, in two accumulators to shorten the dependence chain."""
        t, n = self.t, self.columns
        sums: list[str] = []
        for k, (x, right) in enumerate(zip(left, below, strict=True)):
            if k < 2:
                sums.append(self._times(x, right))
            elif self.strong:
                sums[k % 2] = t.two("fadd", sums[k % 2], self._times(x, right), n)
            else:
                sums[k % 2] = t.fused(x, right, sums[k % 2], n)
        return sums[0] if len(sums) == 1 else t.two("fadd", sums[0], sums[1], n)

    def _times(self, x: str, y: str) -> str:
        """A product; in a strong one what is exactly zero gives zero."""
        t, n = self.t, self.columns
        found = t.two("fmul", x, y, n)
        if not self.strong:
            return found
        kind, mask = t.vector(n), "i1" if n == 1 else f"<{n} x i1>"
        zero = t.splat(t.constant(0.0), n)
        for factor in (x, y):
            some = t.emit(f"fcmp oeq {kind} {factor}, {zero}")
            found = t.emit(f"select {mask} {some}, {kind} {zero}, {kind} {found}")
        return found
