"""Indices for which NumPy's and PyTorch's rules differ: numbers beside index arrays, uint8.

For NumPy a number beside an index array is an index array of no dimensions: ``x[0, :, [1, 2]]`` has
two of them, apart from each other, so the dimension that they choose comes first.  For PyTorch a
number selects before the arrays choose: that dimension stays where the one array stands.

For NumPy an index array of type uint8 holds positions; for PyTorch it is a mask.

A user's Tensors follow PyTorch, those that stand for arrays NumPy: see `dispatch.numpy_semantics`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.numpy_semantics import numpys
from tapegrad.functions.arguments import holds_tensor
from tapegrad.functions.joining import stacked
from tapegrad.ops.shape import to
from tapegrad.tape.tape import current
from tapegrad.tensor import COPY, Tensor, View

ARRAYS, BOOL = (np.ndarray, AbstractArray), np.dtype(bool)


def selects(part: Any) -> bool:
    """Whether a part of an index selects: a number, or a Tensor of integers without dimensions."""
    array = part._a if isinstance(part, Tensor) else part
    if isinstance(array, np.ndarray):
        return array.ndim == 0 and array.dtype.kind in "iu"
    return isinstance(array, (int, np.integer)) and not isinstance(array, bool)


def of_bytes(part: Any) -> bool:
    """Whether a part of an index is a mask of type uint8, by PyTorch's rule."""
    array = part._a if isinstance(part, Tensor) else part
    return isinstance(array, ARRAYS) and array.dtype.char == "B" and not numpys()


def byte_masks(key: Any) -> Any:
    """An index with its masks of type uint8 as masks of booleans."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(map(of_bytes, parts)):
        return key
    if any(part.ndim for part in parts if of_bytes(part)):
        warnings.warn(
            "an index of type uint8 is a mask, as it is for PyTorch: make it one with `.bool()`, "
            "or positions with `.long()`",
            stacklevel=5,
        )
    found = [
        part if not of_bytes(part)
        else run(to, (part,), {"dtype": BOOL}) if isinstance(part, Tensor)
        else part.astype(BOOL)
        for part in parts
    ]  # fmt: skip
    return tuple(found) if isinstance(key, tuple) else found[0]


def _separated(parts: list[Any], kinds: tuple[str, ...]) -> bool:
    """Whether parts of some kinds have others between them."""
    found = [k for k, kind in enumerate(parts) if kind in kinds]
    return bool(found) and found[-1] - found[0] >= len(found)


def numbers_first(key: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """A mixed index as two: one that selects and makes a view, one with the arrays for that.

    None if there is nothing to it: NumPy's rule holds, or both give the same.
    """
    if not isinstance(key, tuple):
        return None
    kinds = []
    for part in key:
        if selects(part):
            kinds.append("number")
        elif part is None or part is Ellipsis or isinstance(part, slice):
            kinds.append("other")
        else:
            kinds.append("array")
    if not _separated(kinds, ("number", "array")) or "array" not in kinds or "number" not in kinds:
        return None
    if _separated([kind for kind in kinds if kind != "number"], ("array",)) or numpys():
        return None
    view: list[Any] = []
    rest: list[Any] = []
    for part, kind in zip(key, kinds, strict=True):
        if kind == "number":
            view.append(selected(part))
        elif kind == "array":
            view += [slice(None)] * taken(part)
            rest.append(part)
        else:
            view.append(part)
            rest.append(part if part is Ellipsis else slice(None))
    return tuple(view), tuple(rest)


def selected(part: Any) -> int:
    """The number that a part of an index says; a trace notes of which Tensor it is."""
    if isinstance(part, Tensor):
        if type(part) is not Tensor:
            raise IndexError(
                "an index that differs from example to example, or is known later, stands beside "
                "an index array with a slice between them: index in two steps, `x[i]` and then the "
                "array"
            )
        for at in current.tape.levels:
            if at.traces:
                at.peek(part)
        return int(part._a)
    return int(part)


def views(part: Any) -> bool:
    """Whether a part of an index selects in a way that makes a view, as a number does.

    For NumPy an array without dimensions is an index array, and makes a copy.
    """
    if isinstance(part, Tensor):
        return type(part) is Tensor and selects(part)
    return selects(part) and not (isinstance(part, np.ndarray) and numpys())


def taken(part: Any) -> int:
    """How many dimensions a part of an index stands for."""
    array = part._a if isinstance(part, Tensor) else part
    if isinstance(array, (list, tuple)):
        array = np.asarray(array)
    mask = isinstance(array, np.ndarray) and array.dtype.kind == "b"
    return int(array.ndim) if mask else 1


def protected(found: Tensor, key: Any) -> Tensor:
    """What an index has chosen; nobody may change it in place where NumPy gives a view.

    So it does for numbers; one that is known later is a Tensor without dimensions.
    """
    parts = [part for part in (key if type(key) is tuple else (key,)) if hasattr(part, "dtype")]
    later = [part for part in parts if isinstance(part, Tensor) and type(part) is not Tensor]
    if later and not any(part.ndim for part in parts):
        found._home = View(None, (), current.tape, frozen=COPY)
    return found


def with_stacks(key: Any) -> Any:
    """An index in which lists of Tensors are Tensors."""
    if type(key) is tuple and any(type(part) is list for part in key):
        return tuple(map(with_stacks, key))
    return stacked(key) if type(key) is list and holds_tensor(key) else key
