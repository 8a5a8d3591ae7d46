"""Schedule matrix products: unrolled if small, as a loop nest up to some size, else by BLAS.

In the strong product, which rules use, zero times anything is zero.  It differs from the plain one
only where that is NaN, so results are checked for NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.codegen import small_matmul
from tapegrad.compiler.codegen.threading import shared
from tapegrad.compiler.ir.buffers import Buffer, Place, layout, reshaped, whole
from tapegrad.compiler.ir.loop_nest import SUM, Nest, Store, Term
from tapegrad.compiler.schedule.step_ir import Copy, FixedNest, Gemm, GemmCheck, SmallMatmul, Step
from tapegrad.parallel import large_elementwise

SMALL = 1 << 13  # multiplications up to which a matrix product is a loop nest
TINY = 1 << 8  # up to which a strong product compares every factor with zero


def multiplied(
    a: Place, b: Place, out: Place, strong: bool, room: Callable[[np.dtype[Any], int], Buffer]
) -> list[Step]:
    """The steps of a product; `room` gives scratch memory for so many elements."""
    if len(a.shape) == 1:
        a = a._replace(shape=(1, *a.shape), strides=(0, *a.strides))
    if len(b.shape) == 1:
        b = b._replace(shape=(*b.shape, 1), strides=(*b.strides, 0))
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    full = whole(out.buffer, (*batch, rows, columns))
    batched_a = a.broadcast((*batch, rows, inner))
    batched_b = b.broadcast((*batch, inner, columns))
    size = rows * inner * columns
    count = out.buffer.size // (rows * columns)

    def nest(factor: str) -> Nest:
        return product(batched_a, batched_b, full, factor)

    alone = count * size < large_elementwise.SPLIT or not shared(nest("mul"))
    if alone and small_matmul.fits(batched_a, batched_b, full):
        redo = (lambda: nest("exact")) if strong else None
        return [small_product(batched_a, batched_b, full, redo)]
    exact = nest("exact") if strong else None
    if exact is not None and count * size <= TINY:
        return [FixedNest(exact)]
    if len(b.shape) == 2 and count > 1:  # the batch is folded into the rows
        tall = reshaped(batched_a, (count * rows, inner))
        if tall is not None:
            a, rows, size, count = tall, count * rows, count * size, 1
    if min(rows, columns) == 1 or size <= SMALL:
        steps: list[Step] = [FixedNest(nest("mul"))]
    else:
        steps = []
        left, right = (batched_a, batched_b) if count > 1 else (a, b)
        left = _for_blas(left, count, out.buffer.dtype, room, steps)
        right = _for_blas(right, count, out.buffer.dtype, room, steps)
        steps.append(Gemm(left, right, whole(out.buffer, (count, rows, columns))))
    if exact is not None:
        result = whole(room(out.buffer.dtype, 1), ())
        steps.append(GemmCheck(whole(out.buffer, (out.buffer.size,)), result, exact))
    return steps


def _for_blas(
    place: Place, count: int, dtype: np.dtype[Any],
    room: Callable[[np.dtype[Any], int], Buffer], steps: list[Step],
) -> Place:  # fmt: skip
    """A window over (count, rows, columns) with strides that BLAS can read."""
    *_, rows, columns = place.shape
    found = reshaped(place, (count, rows, columns))
    if found is not None and place.buffer.dtype == dtype:
        _, down, right = found.strides
        if (right == 1 and down >= columns) or (down == 1 and right >= rows):
            return found
    buffer = room(dtype, count * rows * columns)
    steps.append(Copy(place, whole(buffer, place.shape)))
    return whole(buffer, (count, rows, columns))


def product(a: Place, b: Place, out: Place, factor: str) -> Nest:
    """A product of matrices as a nest: the rows of the second are added up, weighted."""
    *batch, rows, columns = out.shape
    inner = a.shape[-1]
    domain = (*batch, rows, inner, columns)
    a = a._replace(shape=domain, strides=(*a.strides, 0))
    b = b._replace(shape=domain, strides=(*b.strides[:-2], 0, *b.strides[-2:]))
    out = out._replace(shape=domain, strides=(*out.strides[:-1], 0, out.strides[-1]))
    term = Term(factor, (~0, ~1), out.buffer.dtype)
    return Nest(domain, (a, b), (term,), (Store(0, out, SUM),))


def small_product(a: Place, b: Place, out: Place, redo: Callable[[], Nest] | None) -> SmallMatmul:
    """The step of a small product; with `redo` it is recomputed where the result is NaN."""
    given = [a, b, out]
    rows, inner = a.shape[-2:]
    if redo is not None and min(rows, out.shape[-1]) * inner <= small_matmul.EXACT_MOST:
        return SmallMatmul(given, small_matmul.written(*map(layout, given), strong=True), None)
    routine = small_matmul.written(*map(layout, given), again=redo is not None)
    return SmallMatmul(given, routine, None if redo is None else redo())
