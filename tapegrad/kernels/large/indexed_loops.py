"""Gather from and scatter to large arrays, and choose between two of them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.base.compile_stages import NotCompiled
from tapegrad.kernels.large.launching import Array, known, loop
from tapegrad.ops.core import table
from tapegrad.ops.index import only_dimension
from tapegrad.ops.large import COMPILED, SLOW_IN_NUMPY
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address, launch


def _plain(index: Array) -> bool:
    """Whether the loops can read an index: of int64 and in C order."""
    return index.dtype.char in "lq" and index.flags.c_contiguous and index.size > 0


def outside(index: Array, size: int) -> bool:
    """Whether a plain index names a place that is not among the first `size`."""
    from tapegrad.kernels.codegen import kernel_table as kernels

    flag = np.zeros(1, np.int64)
    at = [address(index), size, address(flag)]
    launch(kernels.loop("outside"), 1, index.size, at, [], [8, 0, 0])
    return bool(flag[0])


def inside(index: Array, size: int) -> bool:
    """Whether an index is large and plain, and all its places are among the first `size`."""
    try:
        return index.size >= COMPILED and _plain(index) and not outside(index, size)
    except NotCompiled:
        return False


def _places(index: Array, size: int) -> Array | None:
    """A plain index whose places are all among the first `size`, or None."""
    return index if _plain(index) and not outside(index, size) else None


def names_rows(index: Array) -> bool:
    """Whether a large index, expanded, names one place all along each row."""
    steps = zip(index.shape[1:], index.strides[1:])
    return index.size >= COMPILED and index.ndim > 1 and all(n == 1 or s == 0 for n, s in steps)


def _rows(index: Array, shape: tuple[int, ...], dim: int) -> Array | None:
    """The rows along the first dimension that an index names as `names_rows` says, or None."""
    if dim or not names_rows(index) or index.shape[1:] != shape[1:]:
        return None
    return np.ascontiguousarray(index.reshape(len(index), -1)[:, 0])


def _along(x: Array, index: Array, dim: int) -> bool:
    """Whether the loops know how to go along the last dimension by the rows of an index."""
    last = known(x) and dim == x.ndim - 1
    return last and x.shape[:-1] == index.shape[:-1] and _plain(index)


def gather(x: Array, index: Array, *, dim: int) -> Any:
    """Elements of each row, by their place in it."""
    if (rows := _rows(index, x.shape, dim)) is not None:
        return None if _places(rows, len(x)) is None else np.take(x, rows, 0)
    index = np.ascontiguousarray(index)
    if not _along(x, index, dim):
        return None
    n, m, size = index.shape[-1], x.shape[-1], x.itemsize
    out, flag = np.empty(index.shape, x.dtype), np.zeros(1, np.int64)
    at = [address(x), address(index), address(out), m, address(flag)]
    by_row = [m * size, n * 8, n * size, 0, 0]
    by_element = [0, 8, size, 0, 0] if x.ndim == 1 else None
    launch(loop("gather", x), index.size // n, n, at, by_row, by_element)
    return None if flag[0] else out


def _scattered_by(
    name: str, x: Array | None, out: Array, index: Array, source: Array | None, dim: int
) -> Any:
    """Write to each row of `out`, a copy of `x` if there is one, by places in it."""
    index = np.ascontiguousarray(index)
    if not _along(out, index, dim):
        return None
    if source is not None:
        if source.shape[:-1] != index.shape[:-1] or source.dtype != out.dtype:
            return None
        source = np.ascontiguousarray(source)  # an adjoint may be one number, expanded
    n, m, size = index.shape[-1], out.shape[-1], out.itemsize
    flag = np.zeros(1, np.int64)
    at = [address(index), address(out), 0 if x is None else address(x), m, address(flag)]
    by_row = [n * 8, m * size, 0 if x is None else m * size, 0, 0]
    if source is not None:
        at, by_row = [address(source), *at], [source.shape[-1] * size, *by_row]
    launch(loop(name, out), index.size // n, n, at, by_row, weight=1 + m // n)
    return None if flag[0] else out


def scatter(x: Array, index: Array, src: Array, *, dim: int) -> Any:
    """A copy with elements written to places in each row."""
    if not known(x) or not src.ndim:
        return None
    return _scattered_by("scatter", x, np.empty_like(x), index, src, dim)


def scatter_add(x: Array, index: Array, src: Array, *, dim: int) -> Any:
    """A copy with elements added to places in each row."""
    if not known(x) or not src.ndim:
        return None
    if (rows := _rows(index, x.shape, dim)) is not None:
        return _add_rows(x.copy(), rows, src, dim)
    return _scattered_by("scatter_add", x, np.empty_like(x), index, src, dim)


def _in_place(name: str, out: Array, index: Array, src: Array, dim: int) -> Any:
    """The same in the first operand, which stays as it is where a place is refused."""
    index = np.ascontiguousarray(index)
    if not src.ndim or not _along(out, index, dim) or outside(index, out.shape[dim]):
        return None
    return _scattered_by(name, None, out, index, src, dim)


def put_along(out: Array, index: Array, src: Array, *, dim: int) -> Any:
    """Elements written to places in each row."""
    return _in_place("scatter", out, index, src, dim)


def add_along(out: Array, index: Array, src: Array, *, dim: int) -> Any:
    """Elements added to places in each row."""
    if (rows := _rows(index, out.shape, dim)) is not None:
        return _add_rows(out, rows, src, dim)
    return _in_place("scatter_add", out, index, src, dim)


def scattered(g: Array, index: Array, *, dim: int) -> Any:
    """A copy with zeros at places in each row."""
    return (
        _scattered_by("scatter_zero", g, np.empty_like(g), index, None, dim) if known(g) else None
    )


def ungather(g: Array, index: Array, *, shape: tuple[int, ...], dim: int) -> Any:
    """Elements of each row added to places in rows of zeros."""
    g = np.ascontiguousarray(g)
    if not known(g, SLOW_IN_NUMPY) or not shape:
        return None
    if (rows := _rows(index, shape, dim)) is not None:
        return _add_rows(np.zeros(shape, g.dtype), rows, g, dim)
    return _scattered_by("scatter_add", None, np.zeros(shape, g.dtype), index, g, dim)


def select(x: Array, index: Array, *, dim: int) -> Any:
    """The same places in each row."""
    if not known(x) or dim != x.ndim - 1 or index.ndim != 1 or _places(index, x.shape[-1]) is None:
        return None
    n, m, size = len(index), x.shape[-1], x.itemsize
    out = np.empty((*x.shape[:-1], n), x.dtype)
    at, by_row = [address(x), address(index), address(out)], [m * size, 0, n * size]
    launch(loop("choose", x), out.size // n, n, at, by_row, [0, 8, size] if x.ndim == 1 else None)
    return out


def index(x: Array, *others: Array, plan: Any) -> Any:
    """The same places in each row, by an index without negative numbers."""
    dim = only_dimension(plan, x.ndim) if known(x) else None
    return None if dim is None else select(x, others[0], dim=dim)


def _add_rows(out: Array, index: Array, src: Array, dim: int) -> Any:
    """Add rows to those that an index names, in each block of all that is before `dim`."""
    src = np.ascontiguousarray(src)
    if out.ndim < 2 or index.ndim != 1 or not (known(src) and out.flags.c_contiguous):
        return None
    before, size, behind = out.shape[:dim], out.shape[dim], out.shape[dim + 1 :]
    where = _places(index, size)
    if where is None or src.dtype != out.dtype or src.shape != (*before, *index.shape, *behind):
        return None
    blocks, n, item = prod(before), prod(behind), out.itemsize
    if not behind:  # an index names single elements
        flag = np.zeros(1, np.int64)
        at = [address(src), address(where), address(out), 0, size, address(flag)]
        by_row = [len(index) * item, 0, size * item, 0, 0, 0]
        launch(loop("scatter_add", out), blocks, len(index), at, by_row)
        return out
    at = [len(index), n * item, address(src), address(where), address(out)]
    by_block = [0, 0, len(index) * n * item, 0, size * n * item]
    # Threads take columns: two rows may be added to the same place.
    by_element = [0, 0, item, 0, item] if blocks == 1 else None
    launch(loop("add_rows", out), blocks, n, at, by_block, by_element, weight=len(index))
    return out


def add_rows(out: Array, index: Array, source: Array, *, dim: int) -> Any:
    """Rows added to those that an index names."""
    return _add_rows(out, index, source, dim)


def masked_fill(x: Array, mask: Array, value: Array) -> Any:
    """One number where a mask holds."""
    if not known(x) or mask.shape != x.shape:
        return None
    return large_elementwise.compiled(table["where"], (mask, value.astype(x.dtype, copy=False), x))


def unselect(g: Array, index: Array, *, shape: tuple[int, ...], dim: int) -> Any:
    """Rows added to rows of zeros."""
    g = np.ascontiguousarray(g)
    return _add_rows(np.zeros(shape, g.dtype), index, g, dim) if known(g) else None


def unindex(g: Array, *others: Array, shape: tuple[int, ...], plan: Any) -> Any:
    """Rows added to rows of zeros, for an index that names rows."""
    g = np.ascontiguousarray(g)
    dim = only_dimension(plan, len(shape)) if known(g) else None
    if dim is None or others[0].dtype.char not in "lq":
        return None
    index = others[0].reshape(-1)
    if index.size and index.min() < 0:
        index = np.where(index < 0, index + shape[dim], index)
    g = g.reshape(*shape[:dim], index.size, *shape[dim + 1 :])
    return _add_rows(np.zeros(shape, g.dtype), index, g, dim)


def where(condition: Any, a: Any, b: Any) -> Any:
    """One of two, by a condition."""
    if type(condition) is not np.ndarray or condition.dtype.char != "?":
        return None
    if condition.size < COMPILED:
        return None
    arrays = [x for x in (a, b) if type(x) is np.ndarray]
    if not arrays or any(
        x.dtype.char not in "df" or x.dtype is not arrays[0].dtype for x in arrays
    ):
        return None
    kind = arrays[0].dtype
    return large_elementwise.compiled(
        table["where"], (condition, np.asarray(a, kind), np.asarray(b, kind))
    )


def outer(a: Array, b: Array) -> Any:
    """The product of a column and a row, which NumPy's matmul does not see to be one."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != 1 or a.size * b.size < COMPILED:
        return None
    if a.dtype.char not in "df" or a.dtype != b.dtype:
        return None
    return large_elementwise.compiled(table["exact"], (a, b))
