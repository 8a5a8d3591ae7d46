"""Elementwise functions that are no ufuncs: choosing, clipping, rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import index_array
from tapegrad.functions.complex_parts import imag, real
from tapegrad.functions.creation import zeros_like
from tapegrad.functions.indexing import take_along_dim
from tapegrad.functions.joining import stack, unbind
from tapegrad.functions.masked_elements import unknown_mask
from tapegrad.functions.rounding import nan_to_num, round
from tapegrad.functions.shapes import broadcast_to, clone, to
from tapegrad.numpy_face.common import brought_in, floating, handles, operand, plain, tensor
from tapegrad.ops import logic
from tapegrad.tensor import Tensor


@handles(np.where)
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    c = tensor(condition)
    if x is None and y is None:
        return np.nonzero(c)  # which asks the Tensor
    if x is None or y is None:
        raise ValueError("`np.where` takes both `x` and `y`, or neither")
    if c._a.dtype.kind != "b":
        c = ew.ne(c, 0)
    return ar.where(c, operand(x), operand(y))


@handles(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            f"`np.select` needs as many choices as conditions and at least one, got "
            f"{len(condlist)} and {len(choicelist)}"
        )
    found = operand(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = ar.where(tensor(condition), operand(choice), found)
    return tensor(found)


@handles(np.clip)
def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    low, high = operand(a_min if min is None else min), operand(a_max if max is None else max)
    if low is None and high is None:
        return clone(tensor(a))
    return ar.clamp(tensor(a), low, high)


@handles(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    if not copy:
        raise TypeError("`np.nan_to_num`: `copy=False` is not supported for Tensors: leave it out")
    t = tensor(x)
    if t._a.dtype.kind == "c":
        return nan_to_num(t, nan, posinf, neginf)
    if t._a.dtype.kind != "f":
        return clone(t)
    limits = np.finfo(t._a.dtype)
    t = ar.where(ew.isnan(t), nan, t)
    t = ar.where(ew.eq(t, np.inf), float(limits.max) if posinf is None else posinf, t)
    return ar.where(ew.eq(t, -np.inf), float(limits.min) if neginf is None else neginf, t)


handles(np.real)(lambda val: tensor(val).real)


@handles(np.imag)
def _imag(val: Any) -> Tensor:
    """Zeros, whose derivative is zero too."""
    return tensor(val).imag if tensor(val).is_complex() else zeros_like(tensor(val))


handles(np.copy)(lambda a, order="K", subok=False: clone(tensor(a)))
handles(np.astype)(lambda x, dtype, *, copy=True: to(tensor(x), dtype=dtype, copy=copy))


handles(np.round, np.around)(lambda a, decimals=0: round(tensor(a), decimals=int(decimals)))
handles(np.fix)(lambda x: ew.trunc(floating(tensor(x))))
handles(np.sinc)(lambda x: ew.sinc(floating(tensor(x))))
handles(np.i0)(lambda x: ew.i0(floating(tensor(x))))


@handles(np.extract)
def _extract(condition: Any, arr: Any) -> Tensor:
    t = tensor(arr).reshape(-1)
    if isinstance(condition, Tensor) and unknown_mask(mask := condition.reshape(-1), t):
        return t[mask]
    return t[np.flatnonzero(plain(condition, "extract"))]


@handles(np.choose)
def _choose(a: Any, choices: Any, mode: str = "raise") -> Tensor:
    places = index_array(a, "np.choose")
    parts = list(unbind(choices)) if isinstance(choices, Tensor) else [tensor(c) for c in choices]
    n = len(parts)
    places = brought_in(places, n, mode, "np.choose")
    given = everything(places._a)
    if given.size and (given.min() < 0 or given.max() >= n):
        raise ValueError(f"`np.choose`: an index is out of range for {n} choices")
    shape = np.broadcast_shapes(places._a.shape, *(c._a.shape for c in parts))
    whole = stack([broadcast_to(c, shape) for c in parts])
    return take_along_dim(whole, broadcast_to(places, (1, *shape)), 0)[0]


@handles(np.angle)
def _angle(z: Any, deg: bool = False) -> Tensor:
    """Of real numbers 0 or pi, with the derivative 0."""
    x = floating(tensor(z))
    if x._a.dtype.kind == "c":
        found = ew.atan2(imag(x), real(x))
        return found * (180.0 / np.pi) if deg else found
    back = run(logic.signbit, (x,), {})
    half = 180.0 if deg else np.pi
    return ar.where(ew.isnan(x), x, ar.where(back, half, 0.0))


handles(np.real_if_close)(lambda a, tol=100: tensor(a))
