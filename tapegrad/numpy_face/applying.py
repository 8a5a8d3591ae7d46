"""Functions of the caller's, applied along axes and to parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.arithmetic import where
from tapegrad.functions.creation import zeros_like
from tapegrad.functions.indexing import getitem
from tapegrad.functions.inplace_methods import setitem
from tapegrad.functions.joining import stack, unbind
from tapegrad.functions.shapes import movedim, reshape, to, unsqueeze
from tapegrad.numpy_face.common import handles, plain, tensor
from tapegrad.numpy_face.mapped import varies
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
    """Each function is called with the elements for which its condition holds.

    Where it is not known which these are, under a map and in a trace, it is called with all.
    """
    t, given = tensor(x), ew.ne(tensor(condlist), 0)
    single = not given._a.ndim or (given._a.ndim == 1 and t._a.ndim > 0)
    conditions = [given] if single else list(unbind(given))
    if len(funclist) == len(conditions) + 1:
        conditions.append(ew.logical_not(r.any(stack(conditions), 0)))
    if len(funclist) != len(conditions):
        n = len(conditions)
        raise ValueError(
            f"`np.piecewise` with {n} conditions takes {n} or {n + 1} functions, got "
            f"{len(funclist)}"
        )
    shape = t._a.shape
    if not shape:  # a number has no places to write into
        t, conditions = reshape(t, (1,)), [reshape(c, (1,)) for c in conditions]
    found = zeros_like(t)
    for condition, part in zip(conditions, funclist, strict=True):
        everywhere, value = varies(condition), part
        if callable(part):
            if not everywhere and not condition._a.any():
                continue
            chosen = reshape(t, (-1,)) if everywhere else getitem(t, condition)
            value = part(chosen, *args, **kw)
        if t._a.dtype.kind in "biu" and tensor(value)._a.dtype.kind == "f":
            raise TypeError(
                f"`np.piecewise` of {t.dtype} gives {t.dtype}, which would cut off what a function "
                "gives: convert it with `x.astype(float)`"
            )
        if everywhere:
            found = _where_it_holds(condition, tensor(value), found)
        else:
            setitem(found, condition, value)
    return found if shape else reshape(found, shape)


def _where_it_holds(condition: Tensor, value: Tensor, other: Tensor) -> Tensor:
    shape = other._a.shape
    if value._a.size not in (1, other._a.size):
        raise ValueError(
            f"`np.piecewise` under `vmap` and in `tapegrad.jit` calls functions with all elements: "
            f"each must go element by element, got the shape {value._a.shape} for {shape}: choose "
            "with `np.where`"
        )
    value = to(value, dtype=other._a.dtype)
    return where(condition, reshape(value, shape if value._a.size > 1 else ()), other)
