"""What ``x[mask]`` is where the mask is not known: an array of unknown length.

A program reads elements that a mask chooses, computes with each, and writes them back with the same
mask, or reduces them.  Nobody needs their number for that: all elements are computed, and the mask
decides which are taken.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.base.dtypes import category
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import div, where
from tapegrad.functions.elementwise import abs as abs_
from tapegrad.functions.elementwise import ne
from tapegrad.functions.reductions import neutral
from tapegrad.functions.reductions import sum as sum_
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.shape import clone, reshape, to
from tapegrad.tensor import Tensor, wrap

REDUCTIONS = (
    np.sum, np.prod, np.any, np.all, np.max, np.amax, np.min, np.amin, np.mean, np.var, np.std,
    np.size,
)  # fmt: skip
PRODUCTS = (np.matmul, np.dot, np.inner, np.vdot, np.vecdot)


def unknown_mask(key: Any, x: Tensor) -> bool:
    """Whether an index is a mask over the first dimensions whose elements are not known."""
    return (
        isinstance(key, Tensor)
        and type(key._a) is AbstractArray
        and key._a.dtype.kind == "b"
        and 0 < key._a.ndim <= x._a.ndim
        and x._a.shape[: key._a.ndim] == key._a.shape
    )


def behind_mask(key: Any, x: Tensor) -> tuple[Tensor, Any] | None:
    """The mask of an index, and the index without it; None: that does not begin with such a mask,
    or has other arrays behind it.
    """
    key = _mask_of_places(key)
    if unknown_mask(key, x):
        return key, ()
    if type(key) is not tuple or not key or not unknown_mask(key[0], x):
        return None
    simple = all(part in (None, Ellipsis) or isinstance(part, (int, slice)) for part in key[1:])
    return (key[0], (slice(None),) * key[0]._a.ndim + key[1:]) if simple else None


def _reduction(name: str, like: str) -> Any:
    """A method that reduces all elements, or those along the first axis; those beside the mask are
    neutral, as to a reduction like that.
    """

    def method(self: MaskedElements, axis: Any = None, **kwargs: Any) -> Any:
        if kwargs or axis not in (None, 0):
            self.refuse(f"`{name}` with { ({'axis': axis} | kwargs) }")
        if axis is not None and not numpys() and name in ("max", "min"):
            self.refuse(f"`{name}` and its places")
        return getattr(self._filled(like), name)(*(() if axis is None else (0,)))

    method.__name__ = name
    return method


def _mask_of_places(key: Any) -> Any:
    """An index in which the places where a mask holds are that mask."""
    parts = key if type(key) is tuple else (key,)
    for part in parts:
        if type(part) is MaskedElements:
            part.refuse("an index by numbers that are computed from places where a mask holds")
    if not parts or not isinstance(parts[0], MaskedPlaces):
        return key
    mask = parts[0].mask
    first, rest = parts[: mask._a.ndim], parts[mask._a.ndim :]
    for axis, part in enumerate(first):
        if not isinstance(part, MaskedPlaces) or part.axis != axis or not part.chosen_by(mask):
            parts[0].refuse("an index by some of the places where a mask holds, or by several")
    return (mask, *rest) if rest else mask


class MaskedElements(NDArrayOperatorsMixin):
    """The elements of `whole` that a mask chooses, for elementwise functions and reductions."""

    __slots__ = ("mask", "whole")

    def __init__(self, whole: Tensor, mask: Tensor) -> None:
        self.whole, self.mask = whole, mask

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "__call__" and not kwargs and out is None and ufunc in PRODUCTS:
            return self._product(ufunc.__name__, *args)
        if method != "__call__" or kwargs or ufunc.signature is not None:
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
        if func in REDUCTIONS:
            found = getattr(args[0], name)
            return found(*args[1:], **kwargs) if callable(found) else found
        if func in PRODUCTS and not kwargs:
            return self._product(name, *args)
        if func is np.linalg.norm and len(args) == 1 and not kwargs and self.ndim == 1:
            return np.linalg.norm(self._filled("sum"))
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

    def _product(self, name: str, left: Any, right: Any) -> Any:
        """A scalar product of two vectors, or rows times a matrix or a vector."""
        many = [x.ndim if isinstance(x, MaskedElements) else np.ndim(x) for x in (left, right)]
        rows = isinstance(left, MaskedElements) and not isinstance(right, MaskedElements)
        if rows and many[0] == 2 and many[1] < 3 and name in ("matmul", "dot"):
            return MaskedElements(np.matmul(left.whole, right), left.mask)
        if many != [1, 1]:
            self.refuse(f"`{name}`")
        return self._elementwise(np.multiply, (left, right), name).sum()

    def _filled(self, reduce: str) -> Tensor:
        """All elements in the order of NumPy's; those beside the mask do not count."""
        whole = self.whole._a
        found = where(spread(self.mask, self.whole), self.whole, neutral(reduce, whole.dtype))
        shape = (self.mask._a.size, *whole.shape[self.mask._a.ndim :])
        flat: Tensor = run(reshape, (found,), {"shape": shape})
        return flat

    sum, prod = _reduction("sum", "sum"), _reduction("prod", "prod")
    any, all = _reduction("any", "sum"), _reduction("all", "prod")
    max, amax = _reduction("max", "amax"), _reduction("amax", "amax")
    min, amin = _reduction("min", "amin"), _reduction("amin", "amin")

    def _count(self, axis: Any) -> Tensor:
        """How many elements there are, in all or along the first axis."""
        each = self.whole._a.size // self.mask._a.size if self.mask._a.size else 0
        return sum_(self.mask) * (each if axis is None else 1)

    def mean(self, axis: Any = None, **kwargs: Any) -> Tensor:
        """The mean of all elements, or along the first axis; NaN of none."""
        return div(self.sum(axis, **kwargs), self._count(axis))

    def _deviations(self, axis: Any, options: Any) -> tuple[Tensor, Tensor]:
        """What is left of each element without the mean, 0 beside the mask; and their number, less
        `ddof`, or PyTorch's `correction`.
        """
        fewer = options.pop("ddof", 0) if numpys() else options.pop("correction", 1)
        found = (self - self.mean(axis, **options))._filled("sum")
        return found, self._count(axis) - fewer

    def var(self, axis: Any = None, **kwargs: Any) -> Tensor:
        """The variance of all elements, or along the first axis."""
        found, number = self._deviations(axis, kwargs)
        size = abs_(found) if found._a.dtype.kind == "c" else found
        return div(sum_(size * size, axis), number)

    def std(self, axis: Any = None, **kwargs: Any) -> Tensor:
        """The standard deviation, whose derivative at 0 is 0."""
        found, number = self._deviations(axis, kwargs)
        size: Any = np.linalg.norm(found, axis=axis)
        return div(size, run(to, (number,), {"dtype": size._a.dtype}).sqrt())

    @property
    def ndim(self) -> int:
        """How many dimensions there are, of which the first has unknown length."""
        return self.whole._a.ndim - self.mask._a.ndim + 1

    @property
    def size(self) -> Any:
        """How many elements there are, a Tensor, where NumPy's rules hold."""
        if not numpys():
            self.refuse("`size`")
        return self._count(None)

    def numel(self) -> Any:
        """The same everywhere."""
        return self._count(None)

    def astype(self, dtype: Any) -> MaskedElements:
        """The same in another type."""
        return MaskedElements(run(to, (self.whole,), {"dtype": np.dtype(dtype)}), self.mask)

    def refuse(self, what: str) -> NoReturn:
        """Say why something needs to know how many elements there are."""
        raise RuntimeError(
            f"{what}: how many elements `x[mask]` has is not known inside `tapegrad.jit`, and "
            "differs from example to example under `vmap`. They can be reduced (`sum`, `max`, "
            "`std` ...), and go into elementwise functions with numbers and with what the same "
            "mask has chosen, also back into a Tensor (`m = x > 0; x[m] = 2 * x[m]`); else use "
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


class MaskedPlaces(MaskedElements):
    """Where a mask holds, along one of its dimensions: an index that is used like the mask."""

    __slots__ = ("axis",)

    def __init__(self, mask: Tensor, axis: int) -> None:
        shape = mask._a.shape
        along = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
        super().__init__(wrap(np.broadcast_to(along, shape).copy()), mask)
        self.axis = axis


def unknown_places(x: Tensor) -> tuple[MaskedPlaces, ...]:
    """Where a Tensor whose elements are not known is not zero: what `np.nonzero` finds."""
    mask = x if x._a.dtype.kind == "b" else ne(x, 0)
    mask = run(clone, (mask,), {})
    return tuple([MaskedPlaces(mask, axis) for axis in range(mask._a.ndim)])


def choose(x: Tensor, key: Any) -> MaskedElements | None:
    """``x[key]``, a copy, of an index that begins with an unknown mask; None of any other."""
    found = behind_mask(key, x)
    if found is None:
        return None
    mask, rest = found
    whole = x[rest] if rest else x
    return MaskedElements(*(run(clone, (t,), {}) for t in (whole, mask)))


def merged(target: Tensor, key: Tensor, value: Any) -> Tensor:
    """What ``target[key] = value`` makes of the target, for a mask as index."""
    if isinstance(value, MaskedElements):
        if not value.chosen_by(key):
            value.refuse("`x[mask] = values` of what another mask chooses")
        value = value.whole
    elif np.ndim(value) > target._a.ndim - key._a.ndim:
        MaskedElements(target, key).refuse(f"`x[mask] = values` of shape {np.shape(value)}")
    shown = np.asarray(value) if isinstance(value, (list, tuple)) else value
    return where(spread(key, target), as_input(shown, "x[mask] = value"), target)


def spread(mask: Tensor, x: Tensor) -> Tensor:
    """A mask over the first dimensions of a Tensor, with dimensions of one element for the rest."""
    shape = mask._a.shape + (1,) * (x._a.ndim - mask._a.ndim)
    found: Tensor = run(reshape, (mask,), {"shape": shape})
    return found
