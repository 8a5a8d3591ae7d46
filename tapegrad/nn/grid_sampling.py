"""Images and volumes read between their elements: at the points of a grid, of an affine map."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import clamp, sign, where
from tapegrad.functions.compositions import detach
from tapegrad.functions.elementwise import abs, eq, floor, ge, isnan, lt, remainder
from tapegrad.functions.indexing import gather
from tapegrad.functions.products import matmul
from tapegrad.functions.rounding import round
from tapegrad.functions.shapes import expand, reshape, transpose, unsqueeze
from tapegrad.ops.interpolation import CUBIC, far, near
from tapegrad.tensor import Tensor, wrap

MODES = "bilinear", "nearest", "bicubic"
PADDINGS = "zeros", "border", "reflection"
# The elements on one axis that a point lies between, each with its weight.
Neighbours = list[tuple[Tensor, Tensor]]


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """Images (batch, channels, height, width), or volumes, at the points of a grid.

    The last dimension of `grid` holds x, y (and z) between -1 and 1, the outermost elements'
    centres with `align_corners`, else their edges.  Beyond them are zeros, the border, or a
    reflection.  Both arguments have gradients.

    >>> import tapegrad as tg
    >>> image = tg.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> grid = tg.tensor([[[[0.0, 0.0], [1.0, -1.0]]]])
    >>> tg.nn.functional.grid_sample(image, grid, align_corners=True)
    tensor([[[[2.5000, 2.0000]]]])
    """
    x, points = as_input(input, "grid_sample"), as_input(grid, "grid_sample")
    _check(x, points, mode, padding_mode)
    batch, channels, *sizes = x._a.shape
    shape = points._a.shape[1:-1]
    points = reshape(points, (batch, -1, len(sizes)))
    axes = []
    for d, size in enumerate(sizes):
        at = points[:, :, len(sizes) - 1 - d]
        at = where(isnan(at), -1.0, at)
        at = (at + 1) * ((size - 1) / 2) if align_corners else ((at + 1) * size - 1) * 0.5
        axes.append(_neighbours(at, size, mode, padding_mode, bool(align_corners)))
    flat = reshape(x, (batch, channels, prod(sizes)))
    total = None
    for corner in product(*axes):
        place, weight = corner[0]
        for size, (p, w) in zip(sizes[1:], corner[1:], strict=True):
            place, weight = place * size + p, weight * w
        places = expand(unsqueeze(place, 1), (batch, channels, place._a.shape[1]))
        part = gather(flat, 2, places) * unsqueeze(weight, 1)
        total = part if total is None else total + part
    assert total is not None
    return reshape(total, (batch, channels, *shape))


def _check(x: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"`grid_sample`: mode is one of {', '.join(MODES)}, got {mode!r}")
    if padding_mode not in PADDINGS:
        raise ValueError(
            f"`grid_sample`: padding_mode is one of {', '.join(PADDINGS)}, got {padding_mode!r}"
        )
    shapes = f"got the shapes {x._a.shape} and {grid._a.shape}"
    dims = x._a.ndim - 2
    if dims not in (2, 3) or grid._a.ndim != dims + 2 or grid._a.shape[-1] != dims:
        raise RuntimeError(
            "`grid_sample` takes images (batch, channels, height, width) and a grid (batch, "
            f"height, width, 2), or volumes and a grid of triples; {shapes}"
        )
    if x._a.shape[0] != grid._a.shape[0] or x._a.dtype != grid._a.dtype:
        raise RuntimeError(
            f"`grid_sample`: input and grid have one batch size and one dtype; {shapes}, "
            f"{x.dtype} and {grid.dtype}"
        )
    if min(x._a.shape[2:]) < 1:
        raise RuntimeError(f"`grid_sample`: sizes are at least 1; {shapes}")
    if mode == "bicubic" and dims != 2:
        raise RuntimeError("`grid_sample`: there is a bicubic mode for images alone")
    if x._a.dtype.kind != "f":
        raise NotImplementedError(f"`grid_sample` takes floating-point numbers, got {x.dtype}")


def _neighbours(at: Tensor, size: int, mode: str, padding: str, align_corners: bool) -> Neighbours:
    """Of each point on an axis the elements that it lies between."""
    if mode == "bicubic":
        first = floor(at)
        t = at - first
        weights = [far(t + 1, CUBIC), near(t, CUBIC), near(1 - t, CUBIC), far(2 - t, CUBIC)]
        places = [_inside(first + (k - 1), size, padding, align_corners) for k in range(4)]
        return [_element(p, w, size) for p, w in zip(places, weights, strict=True)]
    at = _inside(at, size, padding, align_corners)
    if mode == "nearest":
        return [_element(round(at), sign(at) * 0 + 1, size)]  # the gradient is zero, not absent
    first = floor(at)
    t = at - first
    return [_element(first, 1 - t, size), _element(first + 1, t, size)]


def _element(place: Tensor, weight: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """An element's number and weight, which is zero outside."""
    place = detach(place)
    exists = ge(place, 0) & lt(place, size)
    return clamp(place, 0, size - 1).long(), where(exists, weight, 0.0)


def _inside(at: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Places beyond the outermost elements brought inside; there the gradient is zero."""
    if padding == "zeros":
        return at
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if not span:
            return at * 0
        r = abs(at - low)
        flips = detach(floor(r / span))
        rest = r - flips * span
        at = where(eq(remainder(flips, 2), 0), rest, span - rest) + low
    seen = detach(at)
    return where((seen > 0) & (seen < size - 1), at, clamp(seen, 0, size - 1))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where affine maps (batch, 2, 3) or (batch, 3, 4) send the points of a grid.

    >>> import tapegrad as tg
    >>> theta = tg.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> tg.nn.functional.affine_grid(theta, (1, 1, 1, 2))
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    t = as_input(theta, "affine_grid")
    n, *inner = [int(m) for m in size]
    dims = len(inner) - 1
    if dims not in (2, 3) or t._a.shape != (n, dims, dims + 1):
        raise ValueError(
            f"`affine_grid`: theta is (batch, 2, 3) for images, (batch, 3, 4) for volumes; got the "
            f"shape {t._a.shape} and the size {tuple(size)}"
        )
    if t._a.dtype.kind != "f":
        raise ValueError(f"`affine_grid` takes floating-point numbers, got {t.dtype}")
    if min(n, *inner) < 1:
        raise ValueError(f"`affine_grid`: sizes are at least 1, got {tuple(size)}")
    points = np.meshgrid(*[_points(m, bool(align_corners)) for m in inner[1:]], indexing="ij")
    base = np.stack([*reversed(points), np.ones_like(points[0])], -1).astype(t._a.dtype)
    grid = matmul(wrap(base.reshape(-1, dims + 1)), transpose(t, 1, 2))
    return reshape(grid, (n, *inner[1:], dims))


def _points(n: int, align_corners: bool) -> np.ndarray:
    """The places of n elements between -1 and 1."""
    if align_corners:
        return np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return (2 * np.arange(n) + 1.0) / n - 1
