"""Differences, integrals and interpolation along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import all_dims, one_dim
from tapegrad.functions.calculus import slope
from tapegrad.functions.indexing import getitem
from tapegrad.functions.joining import cat
from tapegrad.functions.scans import argsort
from tapegrad.functions.shapes import narrow, reshape
from tapegrad.numpy_face.common import floating, handles, operand, tensor
from tapegrad.numpy_face.joining import joined
from tapegrad.numpy_face.mapped import varies
from tapegrad.numpy_face.order import searchsorted_
from tapegrad.tensor import Tensor, wrap


@handles(np.diff)
def diff_(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """`np.diff`."""
    x = tensor(a)
    if n < 0:
        raise ValueError(f"`np.diff`: the order must not be negative, got {n}")
    if not n:
        return x
    if not x._a.ndim:
        raise ValueError("`np.diff` needs at least one dimension")
    d = all_dims(axis, x._a.ndim, "np.diff")[0]
    ends = [_edge(end, x, d) for end in (prepend, append)]
    x = joined([*(ends[:1] if prepend is not None else []), x,
                *(ends[1:] if append is not None else [])], d)  # fmt: skip
    for _ in range(n):
        size = x._a.shape[d]
        if not size:
            break
        step = narrow(x, d, 1, size - 1), narrow(x, d, 0, size - 1)
        x = ew.ne(*step) if x._a.dtype.kind == "b" else step[0] - step[1]
    return x


def _edge(end: Any, x: Tensor, d: int) -> Any:
    if end is None:
        return None
    e = tensor(end)
    if e._a.ndim:
        return e
    shape = [1 if i == d else n for i, n in enumerate(x._a.shape)]
    return e.expand(shape)


@handles(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    x = reshape(tensor(ary), (tensor(ary)._a.size,))
    parts = [to_begin, diff_(x), to_end]
    return cat([reshape(tensor(p), (-1,)) for p in parts if p is not None])


@handles(np.unwrap)
def _unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Tensor:
    """Whole periods are added where an element is too far from the one before it."""
    x = tensor(p)
    d = all_dims(axis, x._a.ndim, "np.unwrap")[0]
    if x._a.dtype.kind in "biu" and isinstance(period, (int, np.integer)):
        half, ambiguous = period // 2, period % 2 == 0
    else:
        x, half, ambiguous = floating(x), period / 2, True
    steps = diff_(x, axis=d).detach()
    near = ar.sub(ew.remainder(ar.add(steps, half), period), half)
    if ambiguous:
        far = ew.logical_and(ew.eq(near, -half), ew.gt(steps, 0))
        near = ar.where(far, half, near)
    small = ew.lt(ew.abs(steps), half if discont is None else discont)
    whole = r.cumsum(ar.where(small, 0, ar.sub(near, steps)), d)
    first, rest = (getitem(x, ((slice(None),) * d + (s,))) for s in (slice(1), slice(1, None)))
    return cat([first, ar.add(rest, whole)], d)


@handles(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    t = tensor(y)
    d = all_dims(axis, t._a.ndim, "np.trapezoid")[0]
    before = (slice(None),) * d
    pairs = getitem(t, (*before, slice(1, None))) + getitem(t, (*before, slice(None, -1)))
    steps = dx
    if x is not None:
        points = tensor(x)
        steps = diff_(points, axis=-1 if points._a.ndim == 1 else axis)
        if points._a.ndim == 1:
            shape = [1] * t._a.ndim
            shape[d] = steps._a.size
            steps = reshape(steps, shape)
    return r.sum(pairs * steps / 2.0, axis)


@handles(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences inside, one-sided ones at the ends."""
    x = floating(tensor(f))
    if edge_order not in (1, 2):
        raise ValueError(f"`np.gradient`: edge_order is 1 or 2, got {edge_order}")
    dims = all_dims(axis, x._a.ndim, "np.gradient") if axis is None else _whole(axis, x)
    one = len(varargs) == 1 and not tensor(varargs[0])._a.ndim
    spacings = varargs * len(dims) if one else varargs or (1.0,) * len(dims)
    if len(spacings) != len(dims):
        raise TypeError(
            f"`np.gradient` takes one spacing, or one for each of the {len(dims)} axes, got "
            f"{len(varargs)}"
        )
    found = tuple(_slope(x, h, d, edge_order) for h, d in zip(spacings, dims, strict=True))
    return found[0] if len(found) == 1 else found


def _whole(axis: Any, x: Tensor) -> tuple[int, ...]:
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(one_dim(d, x._a.ndim, "np.gradient") for d in given)


def _slope(x: Tensor, spacing: Any, d: int, edge_order: int) -> Tensor:
    n = x._a.shape[d]
    if n <= edge_order:
        raise ValueError(
            f"`np.gradient` needs at least {edge_order + 1} elements along axis {d}, got {n}"
        )
    h = tensor(spacing)
    if h._a.ndim and h._a.shape != (n,):
        raise ValueError(f"`np.gradient`: {n} coordinates are needed, got {h._a.shape}")
    return slope(x, h, d, edge_order)


@handles(np.interp)
def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """Between the points linear, beyond them constant; at a point the slope is the right one."""
    at, points, values = (floating(tensor(t)) for t in (x, xp, fp))
    n = points._a.size
    if points._a.ndim != 1 or values._a.shape != points._a.shape or not n:
        raise ValueError(
            f"`np.interp` takes as many values as points, in vectors, got the shapes "
            f"{points._a.shape} and {values._a.shape}"
        )
    if period is not None:
        at, points, values = _periodic(at, points, values, period)
        n, left, right = n + 2, None, None
    low = values[0] if left is None else operand(left)
    high = values[n - 1] if right is None else operand(right)
    below, above = ew.lt(at, points[0]), ew.gt(at, points[n - 1])
    k = ar.clamp(ar.sub(searchsorted_(points, at, "right"), 1), 0, n - 1)
    slopes = cat([diff_(values) / diff_(points), wrap(np.zeros(1, values._a.dtype))])
    found = getitem(values, (k,)) + (at - getitem(points, (k,))) * getitem(slopes, (k,))
    return ar.where(below, low, ar.where(above, high, found))


def _periodic(x: Tensor, xp: Tensor, fp: Tensor, period: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Places and points in the first period, in their order, with a point before and after them."""
    length = ew.abs(tensor(period))
    if not length._a.size or (not varies(length) and not length._a.all()):
        raise ValueError("`np.interp`: the period must not be zero")
    points = ew.remainder(xp, length)
    order = argsort(points.detach(), 0)
    points, values = getitem(points, (order,)), getitem(fp, (order,))
    first, last = (narrow(points, 0, k, 1) for k in (0, points._a.size - 1))
    points = cat([ar.sub(last, length), points, ar.add(first, length)])
    first, last = (narrow(values, 0, k, 1) for k in (0, values._a.size - 1))
    return ew.remainder(x, length), points, cat([last, values, first])
