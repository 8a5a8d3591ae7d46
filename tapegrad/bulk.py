"""Large arrays: compiled loops beside the NumPy forwards of operations that are not elementwise.

Each function here computes what the forward of its row in the table computes, for the layouts that
it knows, and gives None for all others; then the forward does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import parallel
from tapegrad.ops.core import table
from tapegrad.ops.index import WRITES
from tapegrad.parallel import COMPILED, address, launch

Array = np.ndarray
CHUNK = 4096  # elements that are added up in one go by a kernel of a formula
GROUP = 1 << 16  # elements that a kernel adds up block by block
SHORT = 32  # a row below this length is not worth a call


def loop(name: str, x: Array) -> Any:
    """The compiled loop of `kernels.rows` for the type of an array."""
    from tapegrad.kernels import table as kernels

    return kernels.loop(name, "f8" if x.itemsize == 8 else "f4")


def known(x: Any) -> bool:
    """Whether an array is large, of a real type and in C order."""
    return (
        type(x) is np.ndarray
        and x.size >= COMPILED
        and x.dtype.char in "df"
        and x.flags.c_contiguous
    )


def blocks(x: Array, dim: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Outer, reduced and inner length of a reduction over neighbouring dimensions."""
    if not dim or dim != tuple(range(dim[0], dim[-1] + 1)):
        return None
    outer = reduced = inner = 1
    for d, n in enumerate(x.shape):
        if d < dim[0]:
            outer *= n
        elif d <= dim[-1]:
            reduced *= n
        else:
            inner *= n
    return outer, reduced, inner


def kept(x: Array, dim: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape of the result of a reduction."""
    if keepdim:
        return tuple(1 if d in dim else n for d, n in enumerate(x.shape))
    return tuple(n for d, n in enumerate(x.shape) if d not in dim)


# -- reductions ------------------------------------------------------------------------------------


def fold(
    kernel: Any, rows: int, n: int, at: list[int], by_row: list[int], by_element: list[int],
    out: int, dtype: Any,
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


def row_totals(name: str, x: Array, rows: int, n: int, combine: Any, *more: Array) -> Array:
    """For each row what a loop makes of it; `more` are numbers that it takes, one per row."""
    kernel, size = loop(name, x), x.itemsize
    at = [address(x), *[address(m) for m in more]]
    threads = parallel.get_num_threads()
    if rows > 1 or threads == 1 or n < 2 * parallel.SPLIT:
        out = np.empty(rows, x.dtype)
        step = [n * size, *[size] * len(more), size]
        launch(kernel, rows, n, [*at, address(out)], step)
        return out
    part = -(-n // threads)
    parts = np.empty((1, -(-n // part)), x.dtype)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            here = [at[0] + i * part * size, *at[1:], address(parts) + i * size]
            launch(kernel, 1, min(part, n - i * part), here, [])

    parallel.split(parts.size, work, part)
    return np.asarray(combine.reduce(parts, axis=1))


def row_sums(x: Array, rows: int, n: int) -> Array:
    """The sum of each row."""
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
    kernel = loop("add_columns", x)
    size = x.itemsize
    group = max(1, min(rows, int(rows**0.5) // 4 * 4 or rows))
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


def total(x: Array, dim: tuple[int, ...]) -> Array | None:
    """The sum over neighbouring dimensions, flat."""
    found = blocks(x, dim) if known(x) else None
    if found is None:
        return None
    outer, n, inner = found
    if inner == 1 and n >= SHORT:
        return row_sums(x, outer, n)
    if inner >= SHORT and n >= 4 and outer <= 64:
        return column_sums(x, outer, n, inner)
    return None


def sum(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The sum."""
    found = total(x, dim)
    return None if found is None else found.reshape(kept(x, dim, keepdim))


def mean(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The mean."""
    found = total(x, dim)
    if found is None:
        return None
    count = x.size // found.size
    return np.divide(found, x.dtype.type(count), out=found).reshape(kept(x, dim, keepdim))


def prod(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The product, unless another order of its factors might overflow where this one does not."""
    found = blocks(x, dim) if known(x) else None
    if found is None or found[2] != 1 or found[1] < SHORT:
        return None
    with np.errstate(all="ignore"):
        out = row_totals("multiply_up", x, found[0], found[1], np.multiply)
    if not np.isfinite(out).all() or (out == 0).any():
        return None
    return out.reshape(kept(x, dim, keepdim))


def moments(x: Array, dim: tuple[int, ...]) -> tuple[Array, Array, int] | None:
    """Mean and sum of squared deviations of each row, flat, and the length of a row."""
    found = blocks(x, dim) if known(x) else None
    if found is None or found[2] != 1 or found[1] < SHORT:
        return None
    rows, n = found[:2]
    centre = row_sums(x, rows, n) / x.dtype.type(n)
    return centre, row_totals("square_up", x, rows, n, np.add, centre), n


def var(x: Array, *, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """The variance."""
    found = moments(x, dim)
    if found is None:
        return None
    _, squares, n = found
    with np.errstate(all="ignore"):
        out = squares / x.dtype.type(max(n - correction, 0))
    return out.reshape(kept(x, dim, keepdim))


def std(x: Array, *, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """The standard deviation."""
    found = var(x, dim=dim, correction=correction, keepdim=keepdim)
    return None if found is None else np.sqrt(found)


def norm(x: Array, *, p: float, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The Euclidean norm; no other."""
    found = blocks(x, dim) if known(x) and p == 2 else None
    if found is None or found[2] != 1 or found[1] < SHORT:
        return None
    rows, n = found[:2]
    squares = row_totals("square_up", x, rows, n, np.add, np.zeros(rows, x.dtype))
    return np.sqrt(squares).reshape(kept(x, dim, keepdim))


def others_prod(x: Array, *, dim: int) -> Any:
    """The product of all others, by division where there is no zero and nothing overflows."""
    if not known(x) or dim != x.ndim - 1:
        return None
    whole = prod(x, dim=(dim,), keepdim=True)
    if whole is None or (np.abs(whole) < np.finfo(x.dtype).tiny).any():
        return None
    return whole / x


# -- rows ------------------------------------------------------------------------------------------


def along_rows(name: str, x: Array, dim: int) -> tuple[Any, int, int] | None:
    """The loop for whole rows of an array, their number and length."""
    if not known(x) or dim != x.ndim - 1 or x.shape[-1] < SHORT:
        return None
    return loop(name, x), x.size // x.shape[-1], x.shape[-1]


def _rows(name: str, x: Array, dim: tuple[int, ...]) -> Any:
    found = along_rows(name, x, dim[0]) if len(dim) == 1 else None
    if found is None:
        return None
    kernel, rows, n = found
    out = np.empty_like(x)
    launch(kernel, rows, n, [address(x), address(out)], [n * x.itemsize, n * x.itemsize])
    return out


def softmax(x: Array, *, dim: tuple[int, ...]) -> Any:
    """The softmax along the last dimension."""
    return _rows("softmax", x, dim)


def log_softmax(x: Array, *, dim: tuple[int, ...]) -> Any:
    """The logarithm of the softmax along the last dimension."""
    return _rows("log_softmax", x, dim)


def logsumexp(x: Array, *, dim: tuple[int, ...], keepdim: bool) -> Any:
    """The logarithm of the sum of exponentials along the last dimension."""
    found = along_rows("log_sum_exp", x, dim[0]) if len(dim) == 1 else None
    if found is None:
        return None
    kernel, rows, n = found
    out = np.empty(kept(x, dim, keepdim), x.dtype)
    launch(kernel, rows, n, [address(x), address(out)], [n * x.itemsize, x.itemsize])
    return out


def cumsum(x: Array, *, dim: int) -> Any:
    """The sums of the elements so far, along the last dimension."""
    return _rows("running_sum", x, (dim,))


def rcumsum(x: Array, *, dim: int) -> Any:
    """The sums of the elements from here on, along the last dimension."""
    return _rows("running_sum_back", x, (dim,))


def sum_to(x: Array, *, shape: tuple[int, ...]) -> Any:
    """Add up the dimensions along which an array of `shape` would be broadcast."""
    if not known(x) or x.shape == shape:
        return None
    extra = x.ndim - len(shape)
    axes = tuple(
        d for d in range(x.ndim) if d < extra or (shape[d - extra] == 1 and x.shape[d] != 1)
    )
    found = total(x, axes)
    return None if found is None else found.reshape(shape)


def strong(a: Any, b: Any, out: Any = None) -> Any:
    """The strong product."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or max(a.size, b.size) < COMPILED:
        return None
    if a.dtype is not b.dtype or a.dtype.char not in "df":
        return None
    return parallel.compiled(table["strong"], (a, b))


def where(condition: Any, a: Any, b: Any, out: Any = None) -> Any:
    """One of two, by a condition."""
    if type(condition) is not np.ndarray or condition.dtype.char != "?":
        return None
    if condition.size < COMPILED:
        return None
    arrays = [x for x in (a, b) if type(x) is np.ndarray]
    if not arrays or any(x.dtype.char not in "df" or x.dtype is not arrays[0].dtype for x in arrays):
        return None
    kind = arrays[0].dtype
    return parallel.compiled(table["where"], (condition, np.asarray(a, kind), np.asarray(b, kind)))


# -- places ----------------------------------------------------------------------------------------


def _places(index: Array, size: int) -> Array | None:
    """An index of int64 in C order without negative numbers, or None."""
    if index.dtype.char not in "lq" or not index.flags.c_contiguous or not index.size:
        return None
    from tapegrad.kernels import table as kernels

    outside = kernels.loop("outside").call(index.size, address(index), size, 0, 0, 0, 0, 0)
    return None if outside else index


def gather(x: Array, index: Array, *, dim: int) -> Any:
    """Elements of each row, by their place in it."""
    if not known(x) or dim != x.ndim - 1 or x.shape[:-1] != index.shape[:-1]:
        return None
    where = _places(index, x.shape[-1])
    if where is None:
        return None
    n, m = index.shape[-1], x.shape[-1]
    out = np.empty(index.shape, x.dtype)
    launch(loop("gather", x), index.size // n, n, [address(x), address(where), address(out)],
           [m * x.itemsize, n * 8, n * x.itemsize])  # fmt: skip
    return out


def _scattered_by(name: str, out: Array, index: Array, src: Array | None, dim: int) -> Any:
    """Write to each row of `out`, by places in it."""
    if not known(out) or dim != out.ndim - 1 or out.shape[:-1] != index.shape[:-1]:
        return None
    where = _places(index, out.shape[-1])
    if where is None:
        return None
    n, m = index.shape[-1], out.shape[-1]
    at, steps = [address(where), address(out)], [n * 8, m * out.itemsize]
    if src is not None:
        if src.shape[:-1] != index.shape[:-1] or src.dtype != out.dtype:
            return None
        if not src.flags.c_contiguous:
            return None
        at, steps = [address(src), *at], [src.shape[-1] * out.itemsize, *steps]
    launch(loop(name, out), index.size // n, n, at, steps)
    return out


def put_along(out: Array, index: Array, src: Array, *, dim: int) -> Any:
    """Elements written to places in each row."""
    return _scattered_by("scatter", out, index, src, dim) if src.ndim else None


def add_along(out: Array, index: Array, src: Array, *, dim: int) -> Any:
    """Elements added to places in each row."""
    return _scattered_by("scatter_add", out, index, src, dim) if src.ndim else None


def scattered(g: Array, index: Array, *, dim: int) -> Any:
    """A copy with zeros at places in each row."""
    return _scattered_by("scatter_zero", g.copy(), index, None, dim) if known(g) else None


def ungather(g: Array, index: Array, *, shape: tuple[int, ...], dim: int) -> Any:
    """Elements of each row added to places in rows of zeros."""
    if not known(g) or not shape:
        return None
    return _scattered_by("scatter_add", np.zeros(shape, g.dtype), index, g, dim)


def _add_rows(out: Array, index: Array, src: Array, dim: int) -> Any:
    """Add rows to those that an index names."""
    if dim or out.ndim < 2 or index.ndim != 1 or not (known(src) and out.flags.c_contiguous):
        return None
    where = _places(index, out.shape[0])
    if where is None or src.dtype != out.dtype or src.shape != (*index.shape, *out.shape[1:]):
        return None
    length = src.size // len(index)
    at = [length, address(src), address(where), address(out)]
    # On one thread: two rows may be added to the same place.
    loop("add_rows", out).call(len(index), *at, 0, 0, 0)
    return out


def add_rows(out: Array, index: Array, source: Array, *, dim: int) -> Any:
    """Rows added to those that an index names."""
    return _add_rows(out, index, source, dim)


def masked_fill(x: Array, mask: Array, value: Array) -> Any:
    """One number where a mask holds."""
    if not known(x) or mask.shape != x.shape:
        return None
    return parallel.compiled(table["where"], (mask, value.astype(x.dtype, copy=False), x))


def unselect(g: Array, index: Array, *, shape: tuple[int, ...], dim: int) -> Any:
    """Rows added to rows of zeros."""
    return _add_rows(np.zeros(shape, g.dtype), index, g, dim) if known(g) else None


def unindex(g: Array, *others: Array, shape: tuple[int, ...], plan: Any) -> Any:
    """Rows added to rows of zeros, for an index that names rows."""
    if len(plan) != 1 or len(others) != 1 or not known(g) or others[0].ndim != 1:
        return None
    index = others[0]
    if index.dtype.char in "lq" and index.size and index.min() < 0:
        index = np.where(index < 0, index + shape[0], index)
    return _add_rows(np.zeros(shape, g.dtype), index, g, 0)


def select_rows(x: Array, index: Array, *, dim: int) -> Any:
    """Rows by their place; NumPy's mode that clips is its fast one."""
    if dim or not known(x) or x.ndim < 2 or _places(index, x.shape[0]) is None:
        return None
    return np.take(x, index, 0, mode="clip")


# -- parts of arrays -----------------------------------------------------------------------------


def _triangle(x: Array, diagonal: int, upper: bool) -> Any:
    if not known(x) or x.ndim != 2:
        return None
    out = np.empty_like(x)
    rows, columns = x.shape
    kernel = loop("triangle", x)
    step = columns * x.itemsize
    at, to = address(x), address(out)

    def work(start: int, stop: int) -> None:
        here, there = at + start * step, to + start * step
        kernel.call(stop - start, start, diagonal, int(upper), columns, here, there, 0)

    parallel.split(rows, work, columns)
    return out


def flip(x: Array, *, dims: tuple[int, ...]) -> Any:
    """Rows backwards."""
    return _rows("backwards", x, dims) if len(dims) == 1 else None


def tril(x: Array, *, diagonal: int) -> Any:
    """The lower triangle."""
    return _triangle(x, diagonal, False)


def triu(x: Array, *, diagonal: int) -> Any:
    """The upper triangle."""
    return _triangle(x, diagonal, True)


def outer(a: Array, b: Array) -> Any:
    """The product of a column and a row, which NumPy's matmul does not see to be one."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != 1 or a.size * b.size < COMPILED:
        return None
    if a.dtype.char not in "df" or a.dtype != b.dtype:
        return None
    return parallel.compiled(table["exact"], (a, b))


# -- beside the forwards -----------------------------------------------------------------------------


def beside(plain: Callable[..., Any], fast: Callable[..., Any], least: int = COMPILED) -> Any:
    """A function that tries one of this module before the plain one, from a size on."""

    def function(x: Any, *args: Any, **params: Any) -> Any:
        if x.size >= least:
            found = fast(x, *args, **params)
            if found is not None:
                return found
        return plain(x, *args, **params)

    function.plain = plain  # type: ignore[attr-defined]
    return function


for _function in (
    sum, mean, prod, var, std, norm, others_prod, softmax, log_softmax, logsumexp, cumsum, rcumsum,
    sum_to, strong, where, gather, scattered, ungather, unselect, unindex, masked_fill, flip, tril, triu,
):  # fmt: skip
    _op = table[_function.__name__]
    _op.forward = beside(_op.forward, _function)
table["index_select"].forward = beside(table["index_select"].forward, select_rows)
table["product"].forward = beside(table["product"].forward, outer, 1)
for _name, _function in (
    ("scatter", put_along), ("scatter_add", add_along), ("index_add", add_rows),
):  # fmt: skip
    WRITES[_name] = beside(WRITES[_name], _function)
