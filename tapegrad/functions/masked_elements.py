"""What ``x[mask]`` is where the mask is not known: an array of unknown length.

A program reads elements that a mask chooses, computes with each, and writes them back with the same
mask, or adds them up.  Nobody needs their number for that: all elements are computed, and the mask
decides which are taken.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.dtypes import category
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import div, where
from tapegrad.functions.reductions import sum as sum_
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.shape import clone, reshape, to
from tapegrad.tensor import Tensor


def unknown_mask(key: Any, x: Tensor) -> bool:
    """Whether an index is a mask over the first dimensions whose elements are not known."""
    return (
        isinstance(key, Tensor)
        and type(key._a) is AbstractArray
        and key._a.dtype.kind == "b"
        and 0 < key._a.ndim <= x._a.ndim
        and x._a.shape[: key._a.ndim] == key._a.shape
    )


class MaskedElements(NDArrayOperatorsMixin):
    """The elements of `whole` that a mask chooses, for elementwise functions and sums."""

    __slots__ = ("mask", "whole")

    def __init__(self, whole: Tensor, mask: Tensor) -> None:
        self.whole, self.mask = whole, mask

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs or ufunc.signature is not None:  # a product of matrices
            self.refuse(f"`{ufunc.__name__}`")
        found = self._elementwise(ufunc, args, ufunc.__name__)
        if out is None:
            return found
        return out[0]._changed(found.whole, ufunc.__name__)

    def _changed(self, whole: Tensor, name: str) -> MaskedElements:
        """The same with other values of the same type: what ``x[mask] *= 2`` writes back."""
        kind, given = self.whole._a.dtype, whole._a.dtype
        if category(given) > category(kind):
            raise RuntimeError(
                f"`{name}` in place: the result type {given} can't be cast to the type {kind} of "
                "the elements"
            )
        self.whole = whole if given == kind else run(to, (whole,), {"dtype": kind})
        return self

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        if func in (np.sum, np.mean):
            return getattr(MaskedElements, name)(*args, **kwargs)
        if kwargs or func not in (np.where, np.clip):
            self.refuse(f"`{name}`")
        return self._elementwise(func, args, name)

    def elementwise_op(self, op: Any, args: Any) -> MaskedElements:
        """An operation of which these are an operand."""
        if op.kind is not ELEMENTWISE:
            self.refuse(f"`{op.name}`")
        return self._elementwise(op.entry_point, args, op.name)

    def _elementwise(self, function: Any, args: Any, name: str) -> MaskedElements:
        """A function of each element; what has a number of elements does not fit theirs."""
        below = self.whole._a.ndim - self.mask._a.ndim
        wholes = []
        for arg in args:
            if isinstance(arg, MaskedElements):
                if not arg.chosen_by(self.mask):
                    self.refuse(f"`{name}` of what two masks choose")
                arg = arg.whole
            elif np.ndim(arg) > below:
                self.refuse(f"`{name}` with an array of shape {np.shape(arg)}")
            wholes.append(arg)
        return MaskedElements(function(*wholes), self.mask)

    def chosen_by(self, mask: Tensor) -> bool:
        """Whether it is these elements that a mask chooses."""
        own: Any = self.mask
        return bool(own.same_values(mask))

    def sum(self, axis: Any = None, **kwargs: Any) -> Tensor:
        """The sum of all elements, or of all that the mask chooses along the first axis."""
        if kwargs or axis not in (None, 0):
            self.refuse(f"a sum with { ({'axis': axis} | kwargs) }")
        chosen = where(spread(self.mask, self.whole), self.whole, 0)
        return sum_(chosen, None if axis is None else tuple(range(self.mask._a.ndim)))

    def mean(self, axis: Any = None, **kwargs: Any) -> Tensor:
        """The mean of all elements, or along the first axis; NaN of none."""
        each = self.whole._a.size // self.mask._a.size if self.mask._a.size else 0
        return div(self.sum(axis, **kwargs), sum_(self.mask) * (each if axis is None else 1))

    def astype(self, dtype: Any) -> MaskedElements:
        """The same in another type."""
        return MaskedElements(run(to, (self.whole,), {"dtype": np.dtype(dtype)}), self.mask)

    def refuse(self, what: str) -> NoReturn:
        """Say why something needs to know how many elements there are."""
        raise RuntimeError(
            f"{what}: how many elements `x[mask]` has is not known inside `tapegrad.jit`, and "
            "differs from example to example under `vmap`. They can be added up, and go into "
            "elementwise functions with numbers and with what the same mask has chosen, also back "
            "into a Tensor (`m = x > 0; x[m] = 2 * x[m]`); else use "
            "`tapegrad.where(mask, x, other)`, or multiply with the mask"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse("an array of `x[mask]`")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(f"`{name}`")

    def __len__(self) -> int:
        self.refuse("`len`")

    def __getitem__(self, key: Any) -> NoReturn:
        self.refuse("an index of `x[mask]`")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self.refuse("`x[mask][...] = value`")


def choose(x: Tensor, key: Tensor) -> MaskedElements:
    """``x[key]``, a copy."""
    whole, mask = (run(clone, (t,), {}) for t in (x, key))
    return MaskedElements(whole, mask)


def merged(target: Tensor, key: Tensor, value: Any) -> Tensor:
    """What ``target[key] = value`` makes of the target."""
    if isinstance(value, MaskedElements):
        if not value.chosen_by(key):
            value.refuse("`x[mask] = values` of what another mask chooses")
        value = value.whole
    elif np.ndim(value) > target._a.ndim - key._a.ndim:
        choose(target, key).refuse(f"`x[mask] = values` of shape {np.shape(value)}")
    shown = np.asarray(value) if isinstance(value, (list, tuple)) else value
    return where(spread(key, target), as_input(shown, "x[mask] = value"), target)


def spread(mask: Tensor, x: Tensor) -> Tensor:
    """A mask over the first dimensions of a Tensor, with dimensions of one element for the rest."""
    shape = mask._a.shape + (1,) * (x._a.ndim - mask._a.ndim)
    found: Tensor = run(reshape, (mask,), {"shape": shape})
    return found
