"""Convert arrays from outside to the form that all other code takes for granted.

Compiled code reads the header of an array: the address, the steps, the flags.  It takes the type of
the elements for known, and the header for constant.  So an array that enters is made a `np.ndarray`
and no subclass, of a dtype that a Tensor can hold, aligned, with steps of whole elements; and what
is kept of it has a header of its own: ``a.shape = ...`` or ``a.dtype = ...`` changes the header of
whoever says so, and an array that does not own its memory cannot be resized.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.dtypes import canonical

F8 = np.dtype(np.float64)


def native_array(x: Any, name: str, *, share: bool = False) -> np.ndarray:
    """The array of an array-like, in native form and with a header of its own.

    It shares memory where that is possible; with `share` it is an error where it is not.  `name` is
    what the user called, if that is known.
    """
    own: np.ndarray = in_native_form(x, name, share=share)[...]
    return own


def in_native_form(given: Any, name: str, *, share: bool = False) -> np.ndarray:
    """The same for a header that is read now and not kept: that may be the caller's."""
    x: np.ndarray = given if type(given) is np.ndarray else _base_class(given, name)
    dtype = x.dtype
    if dtype is F8 and x.flags.aligned:  # as most are
        return x
    kind = canonical(dtype)
    if kind is None:
        raise TypeError(
            f"{_who(name)} cannot hold an array of dtype {dtype} (shape {x.shape}): Tensors hold "
            "booleans, integers, float16, float32, float64, complex64 and complex128: convert it, "
            "with `np.array(a, dtype=float)` for example"
        )
    if not dtype.isnative:
        return _copied(x, kind, name, f"its byte order, {dtype.str!r}, is foreign", share)
    if not x.flags.aligned:
        return _copied(x, kind, name, "its elements are not aligned in memory", share)
    if kind.alignment != kind.itemsize and any(step % kind.itemsize for step in x.strides):
        return _copied(x, kind, name, f"its strides {x.strides} are not whole elements", share)
    return x if kind is dtype else x.view(kind)


def _base_class(x: Any, name: str) -> np.ndarray:
    """An array of NumPy's own class; a masked one would lose its mask."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{_who(name)}: a masked array (shape {x.shape}) would lose its mask: fill it first, "
            "`a.filled(value)`, or pass `np.ma.getdata(a)` and choose with "
            "`np.where(mask, other, x)`"
        )
    return np.asarray(x)


def _copied(x: np.ndarray, kind: np.dtype[Any], name: str, why: str, share: bool) -> np.ndarray:
    if share:
        raise ValueError(
            f"{_who(name)} shares the memory of an array, and cannot share this one of "
            f"{x.dtype} and shape {x.shape}: {why}. Copy it: `tapegrad.tensor(a)`"
        )
    return x.astype(kind)


def _who(name: str) -> str:
    return f"`{name}`" if name else "a Tensor"


def refuse_operand(kind: type[np.ndarray]) -> None:
    """Refuse a class of arrays whose operators mean something that a Tensor's do not."""
    if issubclass(kind, np.matrix):
        why, instead = "its `*` is a product of matrices", "`np.asarray(m)`"
    elif issubclass(kind, np.ma.MaskedArray):
        why, instead = "it would lose its mask", "`a.filled(value)`"
    elif kind.__array_ufunc__ is not np.ndarray.__array_ufunc__ and kind is not AbstractArray:
        why, instead = "its class computes in a way of its own", "`np.asarray(a)`"
    else:
        return
    raise TypeError(
        f"a {kind.__module__}.{kind.__qualname__} cannot be an operand beside a Tensor: {why}; "
        f"pass {instead}"
    )
