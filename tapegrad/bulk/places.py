"""Gathering from and scattering to large arrays, and what chooses between two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import parallel
from tapegrad.bulk.common import Array, known, loop
from tapegrad.ops.core import table
from tapegrad.parallel import COMPILED, address, launch


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


def strong(a: Any, b: Any, out: Any = None) -> Any:
    """The strong product."""
    return _product("strong", a, b)


def exact(a: Any, b: Any, out: Any = None) -> Any:
    """The product that is zero where a factor is."""
    return _product("exact", a, b)


def _product(name: str, a: Any, b: Any) -> Any:
    if type(a) is not np.ndarray or type(b) is not np.ndarray or max(a.size, b.size) < COMPILED:
        return None
    if a.dtype is not b.dtype or a.dtype.char not in "df":
        return None
    return parallel.compiled(table[name], (a, b), row=parallel.ROW_OF_PASSES)


def where(condition: Any, a: Any, b: Any, out: Any = None) -> Any:
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
    return parallel.compiled(table["where"], (condition, np.asarray(a, kind), np.asarray(b, kind)))


def outer(a: Array, b: Array) -> Any:
    """The product of a column and a row, which NumPy's matmul does not see to be one."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != 1 or a.size * b.size < COMPILED:
        return None
    if a.dtype.char not in "df" or a.dtype != b.dtype:
        return None
    return parallel.compiled(table["exact"], (a, b))
