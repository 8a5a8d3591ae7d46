"""Signals, images and volumes of another size, and pixels from channels."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, prod
from typing import Any

from tapegrad.dispatch.window_plans import run_windows
from tapegrad.functions.arguments import as_input
from tapegrad.functions.shapes import permute, reshape, transpose
from tapegrad.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tapegrad.ops.interpolation import Interpolation, resample
from tapegrad.tensor import Tensor

Sizes = tuple[int, ...]
LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
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
    how = Interpolation(old, new, mode, factors, bool(align_corners), antialias)
    return run_windows(resample, x, how)


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


def _sizes(old: Sizes, size: Any, scale_factor: Any) -> tuple[Sizes, tuple[float, ...] | None]:
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
    factors = tuple([float(f) for f in many])
    return tuple([floor(n * f) for n, f in zip(old, factors, strict=True)]), factors


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
