"""Filters of `scipy.ndimage` that choose an element of each window by its place in their order.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 9.0, 2.0, 3.0], requires_grad=True)
>>> tg.scipy.ndimage.median_filter(x, 3).sum().backward(); x.grad
tensor([1., 0., 1., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from tapegrad.functions.arguments import all_dims, one_dim
from tapegrad.functions.order_statistics import kthvalue
from tapegrad.functions.reductions import amax, amin
from tapegrad.functions.strided_views import unfold
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.image_filters import continued, for_each, image_of
from tapegrad.tensor import Tensor

_own = for_tensors("scipy.ndimage")


def _windows(
    t: Tensor, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any, name: str
) -> Tensor:
    """The elements of the window around each element, along a dimension behind the others."""
    ndim = t._a.ndim
    dims = tuple(range(ndim)) if axes is None else all_dims(axes, ndim, "axes")
    if footprint is None:
        if size is None:
            raise RuntimeError(f"`scipy.ndimage.{name}`: pass the `size` or the `footprint`")
        shown = np.ones([index(n) for n in for_each(size, len(dims), "size", name)], bool)
    else:
        shown = np.asarray(footprint, bool)
    if shown.ndim != len(dims) or not shown.any():
        raise RuntimeError(
            f"`scipy.ndimage.{name}`: a footprint has a dimension for each of {len(dims)} axes and "
            f"an element, got the shape {shown.shape}"
        )
    origins, modes = (
        for_each(value, len(dims), key, name) for key, value in (("origin", origin), ("mode", mode))
    )
    for d, n, at, how in zip(dims, shown.shape, origins, modes, strict=True):
        sizes, places = [1] * ndim, [0] * ndim
        sizes[d], places[d] = n, at
        t = continued(t, sizes, how, cval, places, name)
    for d, n in zip(dims, shown.shape, strict=True):
        t = unfold(t, d, n, 1)
    flat = t.reshape(*t._a.shape[:ndim], shown.size)
    return flat if shown.all() else flat[..., np.flatnonzero(shown)]


def _chosen(
    name: str, rank_of: Callable[[int], int], input: Any, size: Any, footprint: Any, output: Any,
    mode: Any, cval: Any, origin: Any, axes: Any,
) -> Tensor:  # fmt: skip
    """The element of each window with the rank that is meant of so many; ties of extremes share."""
    windows = _windows(
        image_of(input, output, name), size, footprint, mode, cval, origin, axes, name
    )
    n = windows._a.shape[-1]
    rank = rank_of(n)
    if rank in (0, n - 1):
        return (amax if rank else amin)(windows, -1) if n > 1 else windows[..., 0]
    return kthvalue(windows, rank + 1, -1).values


@_own
def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The element of each window that has this rank from 0 on, or from the largest, which is -1.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.rank_filter(tg.tensor([1.0, 9.0, 2.0, 3.0]), -2, 3)
    tensor([1., 2., 3., 3.])
    """

    def counted(n: int) -> int:
        if not -n <= index(rank) < n:
            raise RuntimeError(
                f"`scipy.ndimage.rank_filter`: windows have {n} elements, got the rank {rank}"
            )
        return index(rank) % n

    return _chosen("rank_filter", counted, input, size, footprint, output, mode, cval, origin, axes)


@_own
def percentile_filter(
    input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None,
    mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The element of each window below which so many percent of it are, or above which if negative.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.percentile_filter(tg.tensor([1.0, 9.0, 2.0, 3.0]), 40, 3)
    tensor([1., 2., 3., 3.])
    """
    name = "percentile_filter"
    if not -100 <= percentile <= 100:
        raise RuntimeError(f"`scipy.ndimage.{name}`: a percentile up to 100, got {percentile}")
    share = percentile + 100 * (percentile < 0)
    rank_of = lambda n: n - 1 if share == 100 else int(n * share / 100)
    return _chosen(name, rank_of, input, size, footprint, output, mode, cval, origin, axes)


@_own
def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The median of each window, the upper one of two.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.median_filter(tg.tensor([1.0, 9.0, 2.0, 3.0]), 3)
    tensor([1., 2., 3., 3.])
    """
    return _chosen(
        "median_filter", lambda n: n // 2, input, size, footprint, output, mode, cval, origin, axes
    )


@_own
def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The smallest element of each window; ties share the gradient.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.minimum_filter(tg.tensor([1.0, 9.0, 2.0, 3.0]), 3)
    tensor([1., 1., 2., 2.])
    """
    return _chosen(
        "minimum_filter", lambda n: 0, input, size, footprint, output, mode, cval, origin, axes
    )


@_own
def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Tensor:  # fmt: skip
    """The largest element of each window; ties share the gradient.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.maximum_filter(tg.tensor([1.0, 9.0, 2.0, 3.0]), 3)
    tensor([9., 9., 9., 3.])
    """
    return _chosen(
        "maximum_filter", lambda n: n - 1, input, size, footprint, output, mode, cval, origin, axes
    )


@_own
def minimum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """The smallest of `size` elements along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.minimum_filter1d(tg.tensor([1.0, 9.0, 2.0]), 2)
    tensor([1., 1., 2.])
    """
    d = one_dim(axis, np.ndim(input), "scipy.ndimage.minimum_filter1d")
    return minimum_filter(input, size, None, output, mode, cval, origin, axes=(d,))


@_own
def maximum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect",
    cval: Any = 0.0, origin: int = 0,
) -> Tensor:  # fmt: skip
    """The largest of `size` elements along one axis.

    >>> import tapegrad as tg
    >>> tg.scipy.ndimage.maximum_filter1d(tg.tensor([1.0, 9.0, 2.0]), 2)
    tensor([1., 9., 9.])
    """
    d = one_dim(axis, np.ndim(input), "scipy.ndimage.maximum_filter1d")
    return maximum_filter(input, size, None, output, mode, cval, origin, axes=(d,))
