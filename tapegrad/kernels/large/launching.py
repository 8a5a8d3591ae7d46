"""Launch loops over large arrays: when they apply, and how sums are put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.large import COMPILED
from tapegrad.parallel import large_elementwise, thread_pool
from tapegrad.parallel.large_elementwise import address, launch, launch_words

Array = np.ndarray
CHUNK = 4096  # elements that are added up in one go by a kernel of a formula
GROUP = 1 << 16  # elements that a kernel adds up block by block
TOGETHER = 128  # rows that are added one after the other; the sums of these in turn
SHORT = 32  # a row below this length is not worth a call


def loop(name: str, x: Array) -> Any:
    """The compiled loop of `kernels.large.axis_kernels` for the type of an array."""
    from tapegrad.kernels.codegen import kernel_table as kernels

    return kernels.loop(name, "f8" if x.itemsize == 8 else "f4")


def known(x: Any, least: int = COMPILED, types: str = "df") -> bool:
    """Whether an array is large, of a real type, or one of `types`, and in C order."""
    return (
        type(x) is np.ndarray and x.size >= least and x.dtype.char in types and x.flags.c_contiguous
    )


def blocks(shape: tuple[int, ...], dim: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Outer, reduced and inner length of a reduction over neighbouring dimensions."""
    if not dim or dim != tuple(range(dim[0], dim[-1] + 1)):
        return None
    outer = reduced = inner = 1
    for d, n in enumerate(shape):
        if d < dim[0]:
            outer *= n
        elif d <= dim[-1]:
            reduced *= n
        else:
            inner *= n
    return outer, reduced, inner


def fold(
    kernel: Any,
    rows: int,
    n: int,
    at: list[int],
    by_row: list[int],
    by_element: list[int],
    out: int,
    dtype: Any,
) -> Array:
    """For each row what a kernel makes of it: chunk by chunk, then the sums of all chunks.

    Argument number `out` of the kernel is where it writes its one result.  Returns (rows, chunks).
    """  # fmt: skip
    whole, rest = divmod(n, CHUNK)
    chunks = whole + (rest > 0)
    totals = np.empty((rows, chunks), dtype)
    size = totals.itemsize
    at[out], by_row[out], by_element[out] = address(totals), chunks * size, 0
    if chunks <= max(rows, 1):
        for c in range(chunks):
            here = [a + c * CHUNK * e for a, e in zip(at, by_element)]
            here[out] += c * size
            launch(kernel, rows, CHUNK if c < whole else rest, here, by_row)
        return totals
    by_chunk = [CHUNK * e for e in by_element]
    by_chunk[out] = size
    for r in range(rows):
        here = [a + r * s for a, s in zip(at, by_row)]
        launch(kernel, whole, CHUNK, here, by_chunk)
        if rest:
            launch(kernel, 1, rest, [a + whole * s for a, s in zip(here, by_chunk)], by_chunk)
    return totals


def row_totals(name: str, x: Array, rows: int, n: int, combine: Any) -> Array:
    """For each row what a loop makes of it."""
    kernel, size = loop(name, x.real), x.itemsize
    threads = large_elementwise.get_num_threads()
    if rows > 1 or threads == 1 or n < 2 * large_elementwise.SPLIT:
        out = np.empty(rows, x.dtype)
        launch(kernel, rows, n, [address(x), address(out)], [n * size, size])
        return out
    parts = by_parts(kernel, n, [address(x)], [size], 1, x.dtype)
    with np.errstate(all="ignore"):  # of a product
        return np.asarray(combine.reduce(parts))


def by_parts(kernel: Any, n: int, at: list[int], steps: list[int], width: int, dtype: Any) -> Array:
    """What a kernel makes of each thread's part of n elements: so many numbers for each.

    Its arguments move by `steps` from element to element; the last is where it writes.
    """
    part = max(large_elementwise.SPLIT, -(-n // large_elementwise.get_num_threads()))
    parts = np.empty((-(-n // part), width), dtype)
    steps = [*steps, *[0] * (len(at) - len(steps))]
    launches = []
    for i in range(len(parts)):
        here = [a + i * part * s for a, s in zip(at, steps)]
        to = address(parts) + i * width * parts.itemsize
        launches.append(launch_words(kernel, 1, min(part, n - i * part), [*here, to], ()))
    thread_pool.call(launches)
    return parts


def pair_total(name: str, a: Array, b: Array) -> Any:
    """The sum of what a loop makes of two large arrays, part by part, a 0-d array."""
    size = a.itemsize
    parts = by_parts(loop(name, a), a.size, [address(a), address(b)], [size, size], 1, a.dtype)
    return np.add.reduce(parts[:, 0], out=...)


def row_sums(x: Array, rows: int, n: int) -> Array:
    """The sum of each row."""
    if x.dtype.kind == "c":
        return row_totals("add_pairs_up", x, rows, n, np.add)
    fours = rows // 4 if n <= GROUP else 0
    if fours < 4:
        return row_totals("add_up", x, rows, n, np.add)
    out, size = np.empty(rows, x.dtype), x.itemsize
    step = n * size
    at, to = address(x), address(out)
    launch(loop("add_four_up", x), fours, n, [at, step, to], [4 * step, 0, 4 * size], weight=4)
    for r in range(4 * fours, rows):
        launch(loop("add_up", x), 1, n, [at + r * step, to + r * size], [])
    return out


def column_sums(x: Array, outer: int, rows: int, n: int) -> Array:
    """The sums over the middle of (outer, rows, n)."""
    if x.dtype.kind == "c":
        return column_sums(x.view(x.real.dtype), outer, rows, 2 * n).view(x.dtype)
    kernel = loop("add_columns", x)
    size = x.itemsize
    group = min(rows, max(TOGETHER, int(rows**0.5)))
    groups, rest = divmod(rows, group)
    parts = np.empty((outer, groups + (rest > 0), n), x.dtype)
    at, out = address(x), address(parts)
    for o in range(outer):
        here, there = at + o * rows * n * size, out + o * parts.shape[1] * n * size
        step = [0, 0, group * n * size, n * size]
        steps = [0, 0, size, size]
        launch(kernel, groups, n, [group, n * size, here, there], step, steps)
        if rest:
            begin = [rest, n * size, here + groups * step[2], there + groups * n * size]
            launch(kernel, 1, n, begin, step, steps)
    return parts[:, 0] if parts.shape[1] == 1 else np.add.reduce(parts, axis=1)
