"""Signals, images and volumes of another size, and pixels from channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import floor, prod
from typing import Any

import numpy as np

from tapegrad.functions.arguments import as_input
from tapegrad.functions.indexing import index_select
from tapegrad.functions.shapes import permute, reshape, transpose
from tapegrad.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tapegrad.tensor import Tensor, wrap

Sizes = tuple[int, ...]
Dtype = np.dtype[Any]
# A point on an axis: the elements that it lies between, each with its weight.
Neighbours = Sequence[tuple[np.ndarray, np.ndarray | None]]
LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
CUBIC, ANTIALIAS_CUBIC = -0.75, -0.5  # the slope that Keys calls a
POOLS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def interpolate(
    input: Tensor, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Signals, images or volumes (batch, channels, *size) of another size.

    `mode` is "nearest" (whose places are PyTorch's own, "nearest-exact" those of pixels' centres),
    "linear", "bilinear" or "trilinear" by the number of dimensions, "bicubic" for images, or
    "area", the mean.  With `align_corners` the outermost elements stay where they are.  With
    `antialias` bilinear and bicubic modes that make an image smaller read all that is between.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[[1.0, 2.0]]])
    >>> tg.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    >>> tg.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.5000, 2.0000]]])
    """
    x = as_input(input, "interpolate")
    dims = x._a.ndim - 2
    _check_mode(mode, dims, align_corners, antialias, x)
    old = x._a.shape[2:]
    new, factors = _sizes(old, size, scale_factor)
    if recompute_scale_factor:
        if factors is None:
            raise ValueError("`interpolate`: recompute_scale_factor needs a scale_factor")
        factors = None
    if min((*new, *old)) < 1:
        raise RuntimeError(f"`interpolate`: sizes are at least 1, got {old} and {new}")
    if mode == "area":
        return POOLS[dims](x, new)
    for d in range(dims):
        factor = None if factors is None else float(factors[d])
        around = _filtered if antialias else _neighbours
        x = _resampled(
            x, d + 2, around(mode, old[d], new[d], factor, bool(align_corners), x._a.dtype)
        )
    return x


def upsample(
    input: Tensor, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate` under an older name.

    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample(tg.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate` in the mode "nearest".

    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample_nearest(tg.tensor([[[1.0, 2.0]]]), 4)
    tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate` of images in the mode "bilinear", where corners stay.

    >>> import tapegrad as tg
    >>> tg.nn.functional.upsample_bilinear(tg.tensor([[[[1.0, 2.0]]]]), (1, 3))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


def _check_mode(mode: str, dims: int, align_corners: Any, antialias: bool, x: Tensor) -> None:
    known = ("nearest", "nearest-exact", "area", "bicubic", *LINEAR)
    if mode not in known:
        raise NotImplementedError(f"`interpolate`: mode is one of {', '.join(known)}, got {mode!r}")
    if mode in known[:3] and align_corners is not None:
        raise ValueError(f"`interpolate`: align_corners is for linear and cubic modes, not {mode}")
    if dims not in (1, 2, 3) or LINEAR.get(mode, 2 if mode == "bicubic" else dims) != dims:
        raise NotImplementedError(
            f"`interpolate`: there is no {mode} mode for an input of the shape {x._a.shape}, which "
            "is (batch, channels, *size)"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(f"`interpolate`: antialias is for bilinear and bicubic modes, not {mode}")
    if x._a.dtype.kind != "f":
        raise NotImplementedError(f"`interpolate` takes floating-point numbers, got {x.dtype}")


def _sizes(old: Sizes, size: Any, scale_factor: Any) -> tuple[Sizes, Sequence[float] | None]:
    """The new size, and the factors if they were given."""
    if (size is None) == (scale_factor is None):
        raise ValueError("`interpolate` takes either size or scale_factor")
    given = size if scale_factor is None else scale_factor
    many = tuple(given) if isinstance(given, (tuple, list)) else (given,) * len(old)
    if len(many) != len(old):
        raise ValueError(
            f"`interpolate`: one number for each of {len(old)} dimensions, got {given!r}"
        )
    if scale_factor is None:
        return tuple([int(n) for n in many]), None
    return tuple([floor(n * float(f)) for n, f in zip(old, many, strict=True)]), many


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

    >>> from tapegrad.nn.resampling import near
    >>> near(0.0, -0.75), near(1.0, -0.75)
    (1.0, 0.0)
    """
    return ((a + 2) * t - (a + 3)) * t * t + 1


def far(t: Any, a: Any) -> Any:
    """That of one less than two away.

    >>> from tapegrad.nn.resampling import far
    >>> far(1.0, -0.75), far(2.0, -0.75)
    (0.0, 0.0)
    """
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def _resampled(x: Tensor, dim: int, neighbours: Neighbours) -> Tensor:
    parts = []
    for place, weight in neighbours:
        part = index_select(x, dim, wrap(place))
        if weight is not None:
            part = part * wrap(weight.reshape(-1, *[1] * (x._a.ndim - dim - 1)))
        parts.append(part)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# -- pixels and channels ---------------------------------------------------------------------------


def _images(name: str, input: Any) -> tuple[Tensor, Sizes, Sizes]:
    x = as_input(input, name)
    if x._a.ndim < 3:
        raise RuntimeError(
            f"`{name}` takes images (*, channels, height, width), got the shape {x._a.shape}"
        )
    return x, x._a.shape[:-3], x._a.shape[-3:]


def _rearranged(x: Tensor, shape: Sizes, order: Sizes, outer: Sizes, result: Sizes) -> Tensor:
    n = len(outer)
    dims = (*range(n), *[n + k for k in order])
    return reshape(permute(reshape(x, (*outer, *shape)), dims), (*outer, *result))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Images that are larger by a factor, from images with as many more channels.

    >>> import tapegrad as tg
    >>> tg.nn.functional.pixel_shuffle(tg.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    r = upscale_factor
    x, outer, (c, h, w) = _images("pixel_shuffle", input)
    if r < 1 or c % (r * r):
        raise RuntimeError(
            f"`pixel_shuffle` by {r}: the channels are a multiple of its square, got {c}"
        )
    shape = c // (r * r), r, r, h, w
    return _rearranged(x, shape, (0, 3, 1, 4, 2), outer, (shape[0], h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Undo `pixel_shuffle`: smaller images with more channels.

    >>> import tapegrad as tg
    >>> tg.nn.functional.pixel_unshuffle(tg.tensor([[[0.0, 1.0], [2.0, 3.0]]]), 2).shape
    tapegrad.Size([4, 1, 1])
    """
    r = downscale_factor
    x, outer, (c, h, w) = _images("pixel_unshuffle", input)
    if r < 1 or h % r or w % r:
        raise RuntimeError(
            f"`pixel_unshuffle` by {r}: height and width are multiples of it, got {(h, w)}"
        )
    shape = c, h // r, r, w // r, r
    return _rearranged(x, shape, (0, 2, 4, 1, 3), outer, (c * r * r, h // r, w // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Images whose channels come from each of some groups in turn.

    >>> import tapegrad as tg
    >>> x = tg.arange(4.0).reshape(1, 4, 1, 1)
    >>> tg.nn.functional.channel_shuffle(x, 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    x = as_input(input, "channel_shuffle")
    shape = x._a.shape
    if len(shape) < 3 or groups < 1 or shape[1] % groups:
        raise RuntimeError(
            f"`channel_shuffle` takes (batch, channels, *size) whose channels are a multiple of "
            f"{groups}, got the shape {shape}"
        )
    rest = prod(shape[2:])
    grouped = reshape(x, (shape[0], groups, shape[1] // groups, rest))
    return reshape(transpose(grouped, 1, 2), shape)
