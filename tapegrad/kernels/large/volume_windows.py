"""The largest elements of windows, weighted sums of windows, and their transpose.

A form is a loop over volumes with its table; `dispatch.window_plans` has native code run the same.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.sweep.sweep_abi import SMALL
from tapegrad.kernels.windows_abi import SumTable, WindowAdjoint, WindowTable
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address

Matrix = tuple[np.ndarray, np.ndarray, np.ndarray]
ARGMAX, TOTAL, SPREAD = "argmax", "total", "spread"
TRANSPOSES = {TOTAL: SPREAD, SPREAD: TOTAL}


class Form(NamedTuple):
    """What is computed of each volume, by a loop with its table."""

    loop: kernel_table.Kernel
    words: np.ndarray
    kept: Any  # arrays that the table names
    size: tuple[int, ...]  # of a volume that is read
    result: tuple[int, ...]  # of what is written for it
    room: int  # bytes


def form_of(op: Any, windows: Any, itemsize: int) -> Form:
    """The form of an operation, whose forward names it, on elements of so many bytes."""
    return form(_name(op), windows, itemsize)


def _name(op: Any) -> str:
    name: str = op.forward.loop.split(".")[1]
    return name


@lru_cache(512)
def form(name: str, windows: Any, itemsize: int) -> Form:
    """A form of windows, of elements of so many bytes; dimensions are made three."""
    size, counts = windows.size, windows.counts
    ones = (1,) * (3 - len(size))
    if name == ARGMAX:
        kept, words = _bounds(windows, ones)
    else:
        if name == SPREAD:
            size, counts = counts, size
        one = np.arange(2), np.zeros(1, np.int64), np.ones(1, f"f{itemsize}")
        given = [_matrix(axis, name == SPREAD, itemsize) for axis in windows.axes(itemsize)]
        kept = [one] * len(ones) + given
        starts, places, weights = [[address(part) for part in parts] for parts in zip(*kept)]
        taps = set(np.diff(kept[-1][0]).tolist())
        words = SumTable.words(
            size=ones + size, count=ones + counts, starts=starts, places=places, weights=weights,
            taps=taps.pop() if len(taps) == 1 else 0,
        )  # fmt: skip
    loop = "window_argmax" if name == ARGMAX else "window_sum"
    kernel = kernel_table.loop(loop, f"f{itemsize}", "window_loops", waiting=True)
    room = 0 if name == ARGMAX else size[-1] * itemsize
    return Form(kernel, np.array(words, np.int64), kept, size, counts, room)


def _bounds(windows: Any, ones: tuple[int, ...]) -> tuple[list[Any], list[int]]:
    bounds = [[(0, 1)]] * len(ones) + windows.bounds()
    kept = [np.array(b, np.int64).reshape(-1, 2) for b in bounds]
    lengths = [{int(end - start) for start, end in b} for b in kept]
    step = ones + (windows.dilation or (1,) * len(windows.size))
    words = WindowTable.words(
        size=ones + windows.size, count=ones + windows.counts, step=step,
        fours=lengths == [{1}, {2}, {2}] and step == (1, 1, 1), bounds=[address(b) for b in kept],
    )  # fmt: skip
    return kept, words


def _matrix(axis: Any, transposed: bool, itemsize: int) -> Matrix:
    """Of a sparse matrix, or of its transpose, where rows begin, the columns and the weights."""
    starts, places, weights, length = axis
    if transposed:
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[order], np.arange(length + 1))
        places, weights = rows[order], weights[order]
    return (
        np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(places, np.int64),
        np.ascontiguousarray(weights, f"f{itemsize}"),
    )  # fmt: skip


def _computed(name: str, x: Any, windows: Any, dtype: Any = None) -> Any:
    this = form(name, windows, x.itemsize)
    x = np.ascontiguousarray(x, None if x.dtype.isnative else x.dtype.newbyteorder("="))
    outer = x.shape[: -len(this.size)]
    out = np.empty(outer + this.result, dtype or x.dtype)
    volumes, at = prod(outer), (address(this.words), address(x), 0, address(out))

    def work(start: int, stop: int) -> None:
        room = np.empty(this.room, np.uint8)
        this.loop.call(*at, address(room), start, stop, 0)

    if out.size and x.size:
        large_elementwise.split(volumes, work, max(x.size, out.size) // volumes)
    elif out.size:
        out[...] = 0
    return out


def argmax(x: Any, *, windows: Any) -> Any:
    """Of each window of volumes the place of its largest element."""
    return _computed(ARGMAX, x, windows, np.int64)


def total(x: Any, *, windows: Any) -> Any:
    """The weighted sum of each window of volumes."""
    return _computed(TOTAL, x, windows)


def spread(x: Any, *, windows: Any) -> Any:
    """Volumes, to whose elements is added what there is for each window, with their weights."""
    return _computed(SPREAD, x, windows)


# -- their adjoints in the compiled sweep ----------------------------------------------------------

PLANNED = 4096  # adjoints of records, which are kept for good
_adjoints: list[Any] = []


def adjoint(op: Any, windows: Any, x: np.ndarray, y: np.ndarray) -> int:
    """Where the adjoint of a form stands; 0: the compiled sweep has no room for it."""
    if not 0 < x.size <= SMALL or not 0 < y.size <= SMALL or len(_adjoints) == PLANNED:
        return 0
    this = form(TRANSPOSES[_name(op)], windows, y.itemsize)
    words = WindowAdjoint.words(
        loop=this.loop.address, table=address(this.words), volumes=x.size // prod(this.result),
        itemsize=y.itemsize, size=x.size, room=this.room,
    )  # fmt: skip
    row = np.array(words, np.int64)
    _adjoints.append((row, this))
    return address(row)
