"""Windows of signals, images and volumes: the largest element, the sum, and its transpose.

The last dimensions, as many as `Windows` has sizes, are those of one volume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_WINDOWS
from tapegrad.ops.core import Op, custom, linear
from tapegrad.ops.large import found
from tapegrad.ops.order import PLACES

Sizes = tuple[int, ...]


class Axis(NamedTuple):
    """Windows along one dimension, as a sparse matrix: each row holds the weights of a window."""

    starts: np.ndarray  # where the elements of each begin, and where the last ones end
    places: np.ndarray  # of elements
    weights: np.ndarray
    length: int  # of the dimension


class Windows(NamedTuple):
    """Windows of a volume: of one size that slide, or without a `kernel` so many that cover it."""

    size: Sizes  # of the volume
    counts: Sizes  # of windows, along each dimension
    kernel: Sizes = ()
    stride: Sizes = ()
    padding: Sizes = ()
    dilation: Sizes = ()

    def bounds(self) -> list[list[tuple[int, int]]]:
        """Of each dimension the beginning and the end of every window."""
        if not self.kernel:
            return [
                [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
                for n, m in zip(self.size, self.counts, strict=True)
            ]
        found = []
        for n, count, k, s, p, d in zip(*self, strict=True):
            starts = [i * s - p for i in range(count)]
            ends = [min(a + d * (k - 1) + 1, n) for a in starts]
            found.append([(a if a >= 0 else a % d, b) for a, b in zip(starts, ends, strict=True)])
        return found

    def axes(self, itemsize: int) -> list[Axis]:
        """Of each dimension the elements of all windows, which count alike."""
        found, steps = [], self.dilation or (1,) * len(self.size)
        for bounds, step, n in zip(self.bounds(), steps, self.size, strict=True):
            parts = [range(a, b, step) for a, b in bounds]
            starts = np.cumsum([0, *map(len, parts)])
            places = np.array([k for part in parts for k in part], np.int64)
            found.append(Axis(starts, places, np.ones(len(places)), n))
        return found


def loop(name: str) -> Callable[..., Any]:
    """The forward that a loop over windows is."""

    def forward(x: Any, **params: Any) -> Any:
        run = found(forward.loop)  # type: ignore[attr-defined]
        if x.dtype.kind == "c":
            return run(x.real, **params) + 1j * run(x.imag, **params)
        return run(x, **params)

    forward.loop = f"volume_windows.{name}"  # type: ignore[attr-defined]
    return forward


# fmt: off
window_argmax: Op = custom("window_argmax", loop("argmax"), x=PLACES)
window_sum: Op = linear(
    "window_sum", loop("total"), grad_name="AvgPool", sweep=KIND_WINDOWS,
    x=lambda g, windows: window_spread(g, windows=windows),
)
window_spread: Op = linear(
    "window_spread", loop("spread"), grad_name="AvgUnpool", sweep=KIND_WINDOWS,
    x=lambda g, windows: window_sum(g, windows=windows),
)
# fmt: on
ROWS = window_argmax, window_sum, window_spread
