"""Signals, images and volumes of another size: each element is a weighted sum of some others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_WINDOWS
from tapegrad.ops.core import Op, linear
from tapegrad.ops.elementwise import add, mul
from tapegrad.ops.index import select_rows, unselect
from tapegrad.ops.windows import Axis, Sizes, loop

Dtype = np.dtype[Any]
# A point on an axis: the elements that it lies between, each with its weight.
Neighbours = Sequence[tuple[np.ndarray, np.ndarray | None]]
CUBIC, ANTIALIAS_CUBIC = -0.75, -0.5  # the slope that Keys calls a


class Interpolation(NamedTuple):
    """How a volume is resampled: for each dimension in turn by the elements around a point."""

    size: Sizes  # of the volume
    counts: Sizes  # the new size
    mode: str
    factors: tuple[float, ...] | None
    align_corners: bool
    antialias: bool

    def neighbours(self, dtype: Dtype) -> list[Neighbours]:
        """Of each dimension and new element the old ones around it."""
        around = _filtered if self.antialias else _neighbours
        factors = self.factors or (None,) * len(self.size)
        return [
            around(self.mode, old, new, factor, self.align_corners, dtype)
            for old, new, factor in zip(self.size, self.counts, factors, strict=True)
        ]

    def axes(self, itemsize: int) -> list[Axis]:
        """The same as sparse matrices."""
        found = []
        for around, n in zip(self.neighbours(np.dtype(f"f{itemsize}")), self.size, strict=True):
            places = np.stack([place for place, _ in around], 1)
            weights = [np.ones(len(places)) if w is None else w for _, w in around]
            starts = np.arange(len(places) + 1) * len(around)
            found.append(Axis(starts, places.ravel(), np.stack(weights, 1).ravel(), n))
        return found


@lru_cache(256)
def _neighbours(
    mode: str, old: int, new: int, factor: float | None, align_corners: bool, dtype: Dtype
) -> Neighbours:
    """Of each new element on an axis the old ones that it lies between."""
    last = old - 1
    if mode.startswith("nearest"):  # in single precision for any type, as PyTorch has it
        step = np.float32(old) / np.float32(new) if factor is None else np.float32(1 / factor)
        shift = np.float32(0.5 if mode == "nearest-exact" else 0)
        found = np.floor((np.arange(new, dtype=np.float32) + shift) * step)
        return [(np.minimum(found.astype(np.int64), last), None)]
    kind = dtype.type
    at = np.arange(new, dtype=kind)
    if align_corners:
        at = at * (kind(last) / kind(new - 1) if new > 1 else kind(0))
    else:
        step = kind(old) / kind(new) if factor is None else kind(1 / factor)
        at = step * (at + kind(0.5)) - kind(0.5)
    if mode != "bicubic":
        at = np.maximum(at, kind(0))
    first = np.floor(at)
    t, place = at - first, first.astype(np.int64)
    if mode != "bicubic":
        place = np.minimum(place, last)
        return [(place, 1 - t), (np.minimum(place + 1, last), t)]
    a = kind(CUBIC)
    weights = [far(1 + t, a), near(t, a), near(1 - t, a), far(2 - t, a)]
    return [(np.clip(place + k - 1, 0, last), w) for k, w in enumerate(weights)]


@lru_cache(256)
def _filtered(
    mode: str, old: int, new: int, factor: float | None, align_corners: bool, dtype: Dtype
) -> Neighbours:
    """The same where a filter, wider the smaller the new size, reads what it covers."""
    kind = dtype.type
    if align_corners:
        step = kind(old - 1) / kind(new - 1) if new > 1 else kind(0)
    else:
        step = kind(old) / kind(new) if factor is None else kind(1 / factor)
    width = max(step, kind(1))
    reach = width if mode == "bilinear" else 2 * width
    middle = step * (np.arange(new, dtype=kind) + kind(0.5))
    first = np.maximum((middle - reach + kind(0.5)).astype(np.int64), 0)
    end = np.minimum((middle + reach + kind(0.5)).astype(np.int64), old)
    places = first[:, None] + np.arange(max((end - first).max(), 1))
    t = np.abs((places - middle[:, None] + kind(0.5)) / width)
    weights = _tent(t) if mode == "bilinear" else _bump(t)
    weights = np.where(places < end[:, None], weights, 0).astype(kind)
    total = weights.sum(1, keepdims=True)
    weights = weights / np.where(total == 0, kind(1), total)
    places = np.minimum(places, old - 1)
    return [(np.ascontiguousarray(p), w) for p, w in zip(places.T, weights.T, strict=True)]


def _tent(t: Any) -> Any:
    return np.maximum(1 - t, 0)


def _bump(t: Any) -> Any:
    a = t.dtype.type(ANTIALIAS_CUBIC)
    return np.where(t < 1, near(t, a), np.where(t < 2, far(t, a), 0))


def near(t: Any, a: Any) -> Any:
    """The weight of an element less than one away in cubic convolution, in an array or a Tensor.

    >>> from tapegrad.ops.interpolation import near
    >>> near(0.0, -0.75), near(1.0, -0.75)
    (1.0, 0.0)
    """
    return ((a + 2) * t - (a + 3)) * t * t + 1


def far(t: Any, a: Any) -> Any:
    """That of one less than two away.

    >>> from tapegrad.ops.interpolation import far
    >>> far(1.0, -0.75), far(2.0, -0.75)
    (0.0, 0.0)
    """
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def _along(windows: Interpolation, x: Any) -> list[tuple[int, Any]]:
    """The dimensions of volumes, each with its neighbours, whose weights meet `x` from there on."""
    first, found = len(x.shape) - len(windows.size), []
    for d, around in enumerate(windows.neighbours(x.dtype), first):
        column = (-1, *[1] * (len(x.shape) - d - 1))
        parts = [(place, None if w is None else w.reshape(column)) for place, w in around]
        found.append((d, parts))
    return found


def _resample_form(x: Any, *, windows: Interpolation) -> Any:
    for d, around in _along(windows, x):
        parts = [(select_rows(x, place, dim=d), w) for place, w in around]
        x = reduce(add, [part if w is None else mul(part, w) for part, w in parts])
    return x


def _unresample_form(x: Any, *, windows: Interpolation) -> Any:
    for (d, around), n in zip(_along(windows, x)[::-1], windows.size[::-1], strict=True):
        shape = (*x.shape[:d], n, *x.shape[d + 1 :])
        parts = [
            unselect(x if w is None else mul(x, w), place, shape=shape, dim=d)
            for place, w in around
        ]
        x = reduce(add, parts)
    return x


# fmt: off
resample: Op = linear(
    "resample", loop("total"), grad_name="Upsample", sweep=KIND_WINDOWS,
    x=lambda g, windows: unresample(g, windows=windows), decomposition=_resample_form,
)
unresample: Op = linear(
    "unresample", loop("spread"), grad_name="UpsampleBackward", sweep=KIND_WINDOWS,
    x=lambda g, windows: resample(g, windows=windows), decomposition=_unresample_form,
)
# fmt: on
ROWS = resample, unresample
