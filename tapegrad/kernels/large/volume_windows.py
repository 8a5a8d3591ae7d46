"""The largest elements of windows, sums of windows, and their transpose."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels.codegen import kernel_table
from tapegrad.kernels.windows_abi import WindowTable
from tapegrad.parallel import large_elementwise
from tapegrad.parallel.large_elementwise import address


@lru_cache(256)
def _table(windows: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """What the loops are told, and the bounds that this names; dimensions are made three."""
    more = 3 - len(windows.size)
    bounds = [[(0, 1)]] * more + windows.bounds()
    kept = [np.array(b, np.int64).reshape(-1, 2) for b in bounds]
    lengths = [{int(end - start) for start, end in b} for b in kept]
    step = (1,) * more + (windows.dilation or (1,) * len(windows.size))
    words = WindowTable.words(
        size=(1,) * more + windows.size, count=[len(b) for b in kept],
        step=step, fours=lengths == [{1}, {2}, {2}] and step == (1, 1, 1),
        bounds=[address(b) for b in kept],
    )  # fmt: skip
    return np.array(words, np.int64), kept


def _run(name: str, x: Any, windows: Any, volumes: int, out: Any) -> Any:
    table, _ = _table(windows)
    loop = kernel_table.loop(name, f"f{x.itemsize}", "window_loops", waiting=True).call
    at = address(table), address(x), address(out)

    def work(start: int, stop: int) -> None:
        loop(start, stop, *at, 0, 0, 0)

    if out.size and x.size:
        large_elementwise.split(volumes, work, max(x.size, out.size) // volumes)
    return out


def _in_order(x: Any) -> Any:
    return np.ascontiguousarray(x, None if x.dtype.isnative else x.dtype.newbyteorder("="))


def _of_volumes(name: str, x: Any, windows: Any, dtype: Any) -> Any:
    x, outer = _in_order(x), x.shape[: -len(windows.size)]
    out = np.empty(outer + windows.counts, dtype)
    return _run(name, x, windows, prod(outer), out)


def argmax(x: Any, *, windows: Any) -> Any:
    """Of each window of volumes the place of its largest element."""
    return _of_volumes("window_argmax", x, windows, np.int64)


def total(x: Any, *, windows: Any) -> Any:
    """The sum of each window of volumes."""
    return _of_volumes("window_sum", x, windows, x.dtype)


def spread(x: Any, *, windows: Any) -> Any:
    """Volumes, to all elements of whose windows is added what there is for these."""
    x, outer = _in_order(x), x.shape[: -len(windows.size)]
    out = np.zeros(outer + windows.size, x.dtype)
    return _run("window_spread", x, windows, prod(outer), out)
