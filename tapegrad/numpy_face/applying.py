"""Functions of the caller's, applied along axes and to parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arguments import one_dim
from tapegrad.functions.creation import zeros_like
from tapegrad.functions.indexing import getitem
from tapegrad.functions.inplace_methods import setitem
from tapegrad.functions.joining import stack, unbind
from tapegrad.functions.shapes import movedim, reshape, unsqueeze
from tapegrad.numpy_face.common import handles, plain, tensor
from tapegrad.tensor import Tensor


@handles(np.apply_along_axis)
def _apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The function sees one row after the other, as a Tensor."""
    x = tensor(arr)
    d = one_dim(axis, x._a.ndim, "np.apply_along_axis")
    rows = movedim(x, d, -1)
    lead = rows._a.shape[:-1]
    count = int(np.prod(lead, dtype=int))
    if not count:
        raise ValueError(f"`np.apply_along_axis`: no rows in the shape {x._a.shape}")
    flat = reshape(rows, (count, rows._a.shape[-1]))
    found = stack([tensor(func1d(row, *args, **kwargs)) for row in unbind(flat)])
    found = reshape(found, (*lead, *found._a.shape[1:]))
    new = range(len(lead), found._a.ndim)
    return movedim(found, tuple(new), tuple(d + k for k in range(len(new)))) if new else found


@handles(np.apply_over_axes)
def _apply_over_axes(func: Any, a: Any, axes: Any) -> Tensor:
    x = tensor(a)
    n = x._a.ndim
    for axis in np.ravel(plain(axes, "apply_over_axes")).tolist():
        d = one_dim(axis, n, "np.apply_over_axes")
        found = tensor(func(x, d))
        x = unsqueeze(found, d) if found._a.ndim == n - 1 else found
        if x._a.ndim != n:
            raise ValueError(
                "`np.apply_over_axes`: the function must keep the dimensions or reduce the axis, "
                f"got the shape {found._a.shape} along the axis {d}"
            )
    return x


@handles(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Each function is called with the elements for which its condition holds."""
    t = tensor(x)
    given = plain(condlist, "piecewise")
    single = np.ndim(given) == 0 or (np.ndim(given[0]) == 0 and t._a.ndim > 0)
    conditions = [np.asarray(c, bool) for c in ([given] if single else given)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.logical_or.reduce(conditions))
    if len(funclist) != len(conditions):
        n = len(conditions)
        raise ValueError(
            f"`np.piecewise` with {n} conditions takes {n} or {n + 1} functions, got "
            f"{len(funclist)}"
        )
    shape = t._a.shape
    if not shape:  # a number has no places to write into
        t, conditions = reshape(t, (1,)), [c.reshape(1) for c in conditions]
    found = zeros_like(t)
    for condition, part in zip(conditions, funclist, strict=True):
        value = part
        if callable(part):
            if not condition.any():
                continue
            value = part(getitem(t, condition), *args, **kw)
        if t._a.dtype.kind in "biu" and tensor(value)._a.dtype.kind == "f":
            raise TypeError(
                f"`np.piecewise` of {t.dtype} gives {t.dtype}, which would cut off what a function "
                "gives: convert it with `x.astype(float)`"
            )
        setitem(found, condition, value)
    return found if shape else reshape(found, shape)
