"""Windows of signals, images and volumes: the largest element, the sum, and its transpose.

The last dimensions, as many as `Windows` has bounds for, are those of one volume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tapegrad.ops.core import Op, custom, linear
from tapegrad.ops.large import found
from tapegrad.ops.order import PLACES

Sizes = tuple[int, ...]


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


def _loop(name: str) -> Callable[..., Any]:
    def forward(x: Any, **params: Any) -> Any:
        loop = found(f"volume_windows.{name}")
        if x.dtype.kind == "c":
            return loop(x.real, **params) + 1j * loop(x.imag, **params)
        return loop(x, **params)

    return forward


# fmt: off
window_argmax: Op = custom("window_argmax", _loop("argmax"), x=PLACES)
window_sum: Op = linear(
    "window_sum", _loop("total"), grad_name="AvgPool",
    x=lambda g, windows: window_spread(g, windows=windows),
)
window_spread: Op = linear(
    "window_spread", _loop("spread"), grad_name="AvgUnpool",
    x=lambda g, windows: window_sum(g, windows=windows),
)
# fmt: on
ROWS = window_argmax, window_sum, window_spread
