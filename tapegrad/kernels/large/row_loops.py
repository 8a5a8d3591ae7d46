"""Loops over whole rows of large arrays: running sums, copies, parts of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.large.launching import SHORT, Array, blocks, known, loop
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address, launch


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


def cumsum(x: Array, *, dim: int) -> Any:
    """The sums of the elements so far, along the last dimension."""
    return _rows("running_sum", x, (dim,))


def cumprod(x: Array, *, dim: int) -> Any:
    """The products of the elements so far, along the last dimension."""
    return _rows("running_product", x, (dim,))


def logcumsumexp(x: Array, *, dim: int) -> Any:
    """The logarithms of the sums of the exponentials so far, of neighbouring columns at a time."""
    found = blocks(x.shape, (dim,)) if known(x) and x.itemsize == 8 else None
    if found is None:
        return None
    outer, n, inner = found
    if inner == 1 and outer >= SHORT:  # rows, which become columns
        y = logcumsumexp(np.ascontiguousarray(x.reshape(outer, n).T), dim=0)
        return np.ascontiguousarray(y.T).reshape(x.shape)
    if inner < SHORT:
        return None
    from tapegrad.kernels.codegen import kernel_table

    kernel = kernel_table.loop("logcumsumexp", "f8", "scan_loops")
    out, step = np.empty_like(x), n * inner * x.itemsize
    at = [inner, 1, address(x), address(out)]
    launch(kernel, outer, n, at, [0, 0, step, step], weight=inner)
    return out


def rcumsum(x: Array, *, dim: int) -> Any:
    """The sums of the elements from here on, along the last dimension."""
    return _rows("running_sum_back", x, (dim,))


def decay(a: Array, b: Array, *, dim: int, reverse: bool) -> Any:
    """The recurrence of running products and sums, along the last dimension."""
    found = along_rows("decay_back" if reverse else "decay", b, dim)
    if found is None or not known(a) or a.dtype != b.dtype:
        return None
    kernel, rows, n = found
    out = np.empty_like(b)
    at = [address(a), address(b), address(out)]
    launch(kernel, rows, n, at, [n * b.itemsize] * 3)
    return out


def clone(x: Array) -> Any:
    """A copy, made on all threads."""
    if (
        not known(x)
        or large_elementwise.get_num_threads() == 1
        or x.size < 2 * large_elementwise.SPLIT
    ):
        return None
    out = np.empty_like(x)
    launch(loop("copy", x), 1, x.size, [address(x), address(out)], [], [x.itemsize, x.itemsize])
    return out


def assign(out: Array, value: Any, *, index: Any) -> Any:
    """Everything overwritten by an array that is alike, or by one number."""
    if index != (...,) or large_elementwise.get_num_threads() == 1 or not known(out):
        return None
    if type(value) is not np.ndarray or value.dtype != out.dtype:
        return None
    if value.ndim and (value.shape != out.shape or not value.flags.c_contiguous):
        return None
    size = out.itemsize
    name, step = ("copy", size) if value.ndim else ("fill", 0)
    launch(loop(name, out), 1, out.size, [address(value), address(out)], [], [step, size])
    return out


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

    large_elementwise.split(rows, work, columns)
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
