"""How many elements lie where: sums of weights have a gradient, and so have the edges of bins."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.indexing import index_add
from tapegrad.functions.joining import unbind
from tapegrad.functions.shapes import reshape, to
from tapegrad.numpy_face.calculus import diff_
from tapegrad.numpy_face.common import floating, handles, tensor
from tapegrad.numpy_face.order import searchsorted_
from tapegrad.numpy_face.ranges import linspace_
from tapegrad.tensor import Tensor, wrap


def _flat(x: Any) -> Tensor:
    t = tensor(x)
    return reshape(t, (t._a.size,))


@handles(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    places = tensor(x)
    if weights is None:
        return wrap(np.bincount(places._a, minlength=int(minlength)))
    n = np.bincount(places._a, minlength=int(minlength)).size
    return _added(n, places, floating(tensor(weights)))


def _added(n: int, places: Tensor, weights: Tensor) -> Tensor:
    return index_add(wrap(np.zeros(n, weights._a.dtype)), 0, places, weights)


def _edges(x: Tensor, bins: Any, range: Any, name: str) -> Tensor:
    """Where bins begin and end: as given, or evenly spaced over the elements."""
    if isinstance(bins, str):
        raise TypeError(f"`{name}` of a Tensor takes a number of bins or their edges, got {bins!r}")
    given = tensor(bins)
    if given._a.ndim == 1:
        return given
    if given._a.ndim or int(given) < 1:
        raise ValueError(f"`{name}`: bins are a positive number or edges in a vector, got {bins!r}")
    if range is not None:
        low, high = range
    elif not x._a.size:
        low, high = 0.0, 1.0
    else:
        low, high = r.amin(floating(x)), r.amax(floating(x))
    low, high = (to(tensor(end), dtype=floating(x)._a.dtype) for end in (low, high))
    half = ar.where(ew.eq(low, high), 0.5, 0.0)
    found: Tensor = linspace_(low - half, high + half, int(given) + 1)
    return found


@handles(np.histogram_bin_edges)
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    return _edges(_flat(a), bins, range, "np.histogram_bin_edges")


@handles(np.histogram)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    x = _flat(a)
    edges = _edges(x, bins, range, "np.histogram")
    places, inside = _places(x, edges)
    what = to(inside, dtype=np.int64) if weights is None else ar.where(inside, _flat(weights), 0)
    counts = _added(edges._a.size - 1, places, what)
    if density:
        counts = counts / diff_(edges) / r.sum(counts)
    return counts, edges


def _places(x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """In which bin each element lies, and whether in any: to the last one both edges belong."""
    n, fixed = edges._a.size - 1, edges.detach()
    places = ar.sub(searchsorted_(fixed, x, "right"), 1)
    places = ar.where(ew.eq(x.detach(), fixed[n]), n - 1, places)
    inside = ew.logical_and(ew.ge(places, 0), ew.lt(places, n))
    return ar.clamp(places, 0, n - 1), inside


def _several(bins: Any) -> bool:
    return isinstance(bins, (list, tuple)) or tensor(bins)._a.ndim > 0


@handles(np.histogramdd)
def _histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """Points are rows of a matrix, or a list has their coordinates; the boxes form one line."""
    if isinstance(sample, (list, tuple)):
        columns = [_flat(x) for x in sample]
    else:
        points = tensor(sample)
        columns = list(unbind(points, 1)) if points._a.ndim == 2 else [_flat(points)]
    count = len(columns)
    each = list(bins) if _several(bins) else [bins] * count
    limits = [None] * count if range is None else list(range)
    if len(each) != count or len(limits) != count or len({x._a.size for x in columns}) > 1:
        raise ValueError(
            f"`np.histogramdd` takes bins and a range for each of {count} coordinates of as many "
            f"points, got {len(each)} and {len(limits)}, for {[x._a.size for x in columns]} points"
        )
    edges = [
        _edges(x, b, limit, "np.histogramdd")
        for x, b, limit in zip(columns, each, limits, strict=True)
    ]
    shape = [e._a.size - 1 for e in edges]
    found = [_places(x, e) for x, e in zip(columns, edges, strict=True)]
    box, inside = found[0]
    for (places, among), n in zip(found[1:], shape[1:], strict=True):
        box, inside = ar.add(ew.mul(box, n), places), ew.logical_and(inside, among)
    w = wrap(np.ones(box._a.size)) if weights is None else floating(_flat(weights))
    hist = reshape(_added(int(np.prod(shape)), box, ar.where(inside, w, 0.0)), shape)
    if density:
        last = len(shape) - 1
        widths = [reshape(diff_(e), (-1, *(1,) * (last - k))) for k, e in enumerate(edges)]
        hist = hist / reduce(ew.mul, widths) / r.sum(hist)
    return hist, edges


@handles(np.histogram2d)
def _histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A vector of bins that are not two holds the edges along both coordinates."""
    if _several(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    hist, edges = _histogramdd([x, y], bins, range, density, weights)
    return hist, edges[0], edges[1]
