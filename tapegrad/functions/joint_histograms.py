"""How many points of several dimensions lie in each of the boxes of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.abstract_array import known
from tapegrad.functions import shapes
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import div
from tapegrad.functions.elementwise import mul
from tapegrad.functions.histograms import bins_of, edges_of
from tapegrad.functions.indexing import index_add
from tapegrad.functions.reductions import sum as total
from tapegrad.functions.scans import diff
from tapegrad.tensor import Tensor, wrap

NAME = "histogramdd"


class JointHistogram(NamedTuple):
    """How many points lie in each box, and between which numbers the boxes lie."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def histogramdd(
    input: Tensor, bins: int | Sequence[int] | Sequence[Tensor], *,
    range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False,
) -> JointHistogram:  # fmt: skip
    """How many points lie in each box of a grid, or the sum of their weights; and the edges.

    The last dimension of the input holds the coordinates of a point.

    Parameters
    ----------
    bins : how many boxes there are along each coordinate, or along all; or the edges of them.
    range : the first and the last edge of each coordinate, one pair after the other; else the
        smallest and the largest coordinate.
    density : the integral over all boxes is 1.

    >>> import tapegrad as tg
    >>> tg.histogramdd(tg.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), 2).hist
    tensor([[1., 0.],
            [0., 2.]])
    """
    x = as_input(input, NAME)
    known(x._a, NAME)
    if x._a.ndim < 2:
        problem = RuntimeError if x._a.ndim else IndexError
        raise problem(f"`{NAME}` takes points (*, coordinates), got the shape {x._a.shape}")
    if not x._a.shape[-1]:
        raise RuntimeError(f"`{NAME}`: points of the shape {x._a.shape} have no coordinates")
    if x._a.dtype.kind != "f":
        raise NotImplementedError(f"`{NAME}` takes floating-point numbers, got {x.dtype}")
    if weight is not None and (weight._a.shape, weight.dtype) != (x._a.shape[:-1], x.dtype):
        raise RuntimeError(
            f"`{NAME}`: there are weights of shape {weight._a.shape} and {weight.dtype} for points "
            f"of shape {x._a.shape} and {x.dtype}"
        )
    points = x._a.reshape(-1, x._a.shape[-1])
    edges, even = _all_edges(points, bins, range)
    inside = np.ones(len(points), bool)
    for values, e in zip(points.T, edges, strict=True):
        inside &= (values >= e._a[0]) & (values <= e._a[-1])
    chosen = np.flatnonzero(inside)
    shape = tuple([e._a.size - 1 for e in edges])
    box = np.zeros(len(chosen), np.int64)
    for values, e, n in zip(points[chosen].T, edges, shape, strict=True):
        box = box * n + bins_of(values, e._a, even)
    size = int(np.prod(shape))
    if weight is None:
        counts = wrap(np.bincount(box, minlength=size).astype(points.dtype))
    else:
        given = shapes.reshape(weight, (-1,))[chosen]
        counts = index_add(wrap(np.zeros(size, points.dtype)), 0, box, given)
    hist = shapes.reshape(counts, shape)
    if density:
        widths = [shapes.reshape(diff(e), _along(k, len(shape))) for k, e in enumerate(edges)]
        hist = div(hist, mul(reduce(mul, widths), total(hist)))
    return JointHistogram(hist, edges)


def _along(k: int, count: int) -> tuple[int, ...]:
    return tuple([-1 if i == k else 1 for i in np.arange(count)])


def _all_edges(
    points: np.ndarray, bins: Any, range: Sequence[float] | None
) -> tuple[tuple[Tensor, ...], bool]:
    """The edges along each coordinate, and whether they are of one width."""
    count = points.shape[1]
    if isinstance(bins, int):
        bins = [bins] * count
    elif isinstance(bins, Tensor) or not isinstance(bins, Sequence) or isinstance(bins, str):
        raise TypeError(
            f"`{NAME}`: bins are an int, or ints or Tensors for each coordinate, got "
            f"{type(bins).__name__}"
        )
    if len(bins) != count:
        raise RuntimeError(f"`{NAME}`: bins for {count} coordinates, got {len(bins)}")
    even = not any(isinstance(b, Tensor) for b in bins)
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"`{NAME}`: a range has 2 numbers for each of {count} coordinates, got {len(range)}"
        )
    found = []
    for k, b in enumerate(bins):
        limits = None if range is None or not even else (range[2 * k], range[2 * k + 1])
        found.append(edges_of(points[:, k], b, limits, NAME))
    return tuple(found), even
