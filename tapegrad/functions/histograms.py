"""Where values lie among bounds that rise, and how many lie between two of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tapegrad.base.abstract_array import everything, known
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import shapes
from tapegrad.functions.arguments import Operand, as_input, floating, plain_number
from tapegrad.functions.arithmetic import div
from tapegrad.functions.creation import linspace
from tapegrad.functions.elementwise import mul
from tapegrad.functions.indexing import index_add, take_along_dim
from tapegrad.functions.method_decorators import method
from tapegrad.functions.reductions import sum as total
from tapegrad.functions.scans import diff
from tapegrad.ops import order
from tapegrad.tensor import Tensor, tensor_of, wrap


def _side(right: bool, side: str | None) -> str:
    if side not in (None, "left", "right"):
        raise RuntimeError(f"`searchsorted`: side is 'left' or 'right', got {side!r}")
    if side == "left" and right:
        raise RuntimeError("`searchsorted`: side='left' and right=True contradict each other")
    return "right" if right else side or "left"


def searchsorted(
    sorted_sequence: Tensor, input: Operand, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where values would have to be put in to keep a sequence in order, before what equals them.

    With ``right=True`` or ``side="right"`` it is behind. Of several sequences, in the rows of a
    Tensor, each is for the row of values at the same place. `sorter` puts a sequence in order.

    >>> import tapegrad as tg
    >>> tg.searchsorted(tg.tensor([1.0, 3.0, 5.0]), tg.tensor([3.0, 6.0]))
    tensor([1, 3])
    """
    name = "searchsorted"
    where = _side(right, side)
    a, v = as_input(sorted_sequence, name).detach(), tensor_of(input, name).detach()
    lead = a._a.shape[:-1]
    if not a._a.ndim or (lead and (not v._a.ndim or v._a.shape[:-1] != lead)):
        raise RuntimeError(
            f"`{name}` takes a vector, or as many rows as there are of the values, got the shapes "
            f"{a._a.shape} and {v._a.shape}"
        )
    if sorter is not None:
        k = as_input(sorter, name)
        if k._a.shape != a._a.shape or k._a.dtype != np.int64:
            raise RuntimeError(
                f"`{name}`: a sorter is a Tensor of int64 of shape {a._a.shape}, got {k.dtype} of "
                f"shape {k._a.shape}"
            )
        places = everything(k._a)
        if places.size and (places.min() < 0 or places.max() >= a._a.shape[-1]):
            raise RuntimeError(f"`{name}`: a sorter names places of the sequence alone")
        a = take_along_dim(a, k, -1)
    found: Tensor = run(order.searchsorted, (a, v), {"side": where})
    return shapes.to(found, dtype=np.int32) if out_int32 else found


def bucketize(
    input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of the bucket that each value lies in, between boundaries that rise.

    A value on a boundary lies below it, with ``right=True`` above.

    >>> import tapegrad as tg
    >>> tg.bucketize(tg.tensor([1.0, 2.5, 9.0]), tg.tensor([1.0, 2.0, 3.0]))
    tensor([0, 2, 3])
    """
    edges = as_input(boundaries, "bucketize")
    if edges._a.ndim != 1:
        raise RuntimeError(f"`bucketize`: boundaries are a vector, got the shape {edges._a.shape}")
    return searchsorted(edges, input, out_int32=out_int32, right=right)


# -- counting ----------------------------------------------------------------------------------


@method
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs among integers that are not negative; or the sum of weights.

    >>> import tapegrad as tg
    >>> tg.bincount(tg.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    x = as_input(input, "bincount")
    if x._a.dtype.kind not in "iu":
        raise NotImplementedError(f"`bincount` counts integers, got {x.dtype}")
    values = everything(x._a)
    if x._a.ndim != 1 or (values.size and values.min() < 0) or minlength < 0:
        raise RuntimeError(
            "`bincount` takes a vector of integers that are not negative, and a minlength that is "
            f"not, got the shape {x._a.shape} and minlength={minlength}"
        )
    if weights is None:
        return wrap(np.bincount(x._a, minlength=minlength))
    w = as_input(weights, "bincount")
    if w._a.shape != x._a.shape:
        raise RuntimeError(
            f"`bincount`: there are weights of shape {w._a.shape} for numbers of shape {x._a.shape}"
        )
    if not values.size:
        return wrap(np.zeros(minlength, np.int64))
    kind = w._a.dtype if w._a.dtype == np.float32 else np.dtype(np.float64)
    n = max(minlength, int(values.max()) + 1)
    return index_add(wrap(np.zeros(n, kind)), 0, x, shapes.to(w, dtype=kind))


def _ends(low: float, high: float, name: str) -> tuple[float, float]:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"`{name}`: the range from {low} to {high} is not finite")
    if low > high:
        raise RuntimeError(f"`{name}`: the range from {low} to {high} does not rise")
    return low, high


@method
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of some bins of one width between two numbers.

    If these are equal, the bins lie between the smallest and the largest element. Elements beyond
    them are not counted.

    >>> import tapegrad as tg
    >>> tg.histc(tg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    x = known(floating(as_input(input, "histc"), "histc")._a, "histc").reshape(-1)
    if bins < 1:
        raise RuntimeError(f"`histc`: the number of bins must be positive, got {bins}")
    low, high = (float(plain_number(end, "histc")) for end in (min, max))
    if low == high and x.size:
        low, high = float(np.min(x)), float(np.max(x))
    low, high = _ends(low, high, "histc")
    if low == high:
        low, high = low - 1, high + 1
    x = x[(x >= low) & (x <= high)]
    one = x.dtype.type
    places = ((x - one(low)) * one(bins) / (one(high) - one(low))).astype(np.int64)
    return wrap(np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(x.dtype))


class Histogram(NamedTuple):
    """How many elements lie in each bin, and between which numbers the bins lie."""

    hist: Tensor
    bin_edges: Tensor


@method
def histogram(
    input: Tensor, bins: int | Tensor, *, range: tuple[float, float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> Histogram:  # fmt: skip
    """How many elements lie in each bin, or the sum of their weights; and the edges of the bins.

    `bins` are the edges, or how many of one width there are in a range: without one between the
    smallest and the largest element. With `density` the integral over the bins is 1.

    >>> import tapegrad as tg
    >>> tg.histogram(tg.tensor([1.0, 2.0, 1.0]), 2, range=(0.0, 3.0))
    Histogram(hist=tensor([2., 1.]), bin_edges=tensor([0.0000, 1.5000, 3.0000]))
    """
    x = floating(as_input(input, "histogram"), "histogram")
    values = known(x._a, "histogram").reshape(-1)
    edges = edges_of(values, bins, range)
    if weight is not None and weight._a.shape != x._a.shape:
        raise RuntimeError(
            f"`histogram`: there are weights of shape {weight._a.shape} for elements of shape "
            f"{x._a.shape}"
        )
    n = edges._a.size - 1
    first, last = edges._a[0], edges._a[n]
    inside = np.flatnonzero((values >= first) & (values <= last))
    places = bins_of(values[inside], edges._a, not isinstance(bins, Tensor))
    if weight is None:
        hist = wrap(np.bincount(places, minlength=n).astype(values.dtype))
    else:
        given = shapes.reshape(weight, (-1,))[inside]
        hist = index_add(wrap(np.zeros(n, given._a.dtype)), 0, places, given)
    if density:
        hist = div(hist, mul(diff(edges), total(hist)))
    return Histogram(hist, edges)


def bins_of(values: np.ndarray, edges: np.ndarray, even: bool) -> np.ndarray:
    """The bins of values between edges; of even width they are reckoned, and then compared."""
    n = edges.size - 1
    if not even:
        found = np.searchsorted(edges, values, "right") - 1
        return np.clip(found, 0, n - 1)  # the last bin has both its edges
    step = (edges[n] - edges[0]) / values.dtype.type(n)
    places: np.ndarray = np.minimum(((values - edges[0]) / step).astype(np.int64), n - 1)
    places -= values < edges[places]
    places += (values >= edges[places + 1]) & (places < n - 1)
    return places


def edges_of(
    values: np.ndarray, bins: int | Tensor, range: tuple[float, float] | None,
    name: str = "histogram",
) -> Tensor:  # fmt: skip
    """The edges of bins: those given, or some of one width."""
    if isinstance(bins, Tensor):
        if bins._a.dtype != values.dtype or bins._a.ndim != 1:
            raise RuntimeError(
                f"`{name}`: edges are a vector of {values.dtype} as the elements, got {bins.dtype} "
                f"of shape {bins._a.shape}"
            )
        if range is not None:
            raise TypeError(f"`{name}`: edges of bins and a range contradict each other")
        count = bins._a.size - 1
    elif isinstance(bins, int):
        count = bins
    else:
        raise TypeError(f"`{name}`: bins are an int or a Tensor, got {type(bins).__name__}")
    if count < 1:
        raise RuntimeError(f"`{name}`: there must be at least one bin, got {count}")
    if isinstance(bins, Tensor):
        return bins.detach()
    if range is not None:
        low, high = (float(plain_number(end, name)) for end in range)
    elif values.size:
        low, high = float(np.min(values)), float(np.max(values))
    else:
        low, high = 0.0, 1.0
    low, high = _ends(low, high, name)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, count + 1, dtype=values.dtype)
