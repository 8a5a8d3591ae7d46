"""An array with a shape and a dtype but no elements, which a Tensor under a map shows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn
from weakref import ref

import numpy as np

# How much these find depends on the values.
COUNTED = frozenset(
    "nonzero flatnonzero argwhere extract compress unique unique_consecutive".split()
)


class AbstractArray(np.ndarray):
    """Stands where the array of a batched Tensor would: shape and dtype of one example.

    There is no one value, so what would compute with it raises.  It does not keep the Tensor alive:
    the two would only go when garbage is collected, with the examples and the records behind them.
    """

    __slots__ = ("_kind", "_lift", "_owner")

    def stand_for(self, owner: Any) -> None:
        """Stand where the array of a Tensor under a transform would."""
        self._owner, self._kind, self._lift = ref(owner), type(owner), owner._lift

    @property
    def owner(self) -> Any:
        """The Tensor itself, or another one of the same parts."""
        owner = self._owner()
        return self._kind.around(self, self._lift) if owner is None else owner

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        self.__array_function__(ufunc)

    def __array_function__(self, func: Any, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(func.__name__)

    def refuse(self, name: str) -> NoReturn:
        """Say why a function cannot read the elements."""
        owner = getattr(self, "owner", None)
        if owner is not None and owner._lift.at.traces:
            raise RuntimeError(
                f"the values of a Tensor inside `tapegrad.jit` are known when the compiled program "
                f"runs, so `{name}` cannot read them"
                + (", and what it finds has no fixed shape" if name in COUNTED else "")
                + ": use operations of tapegrad (`tapegrad.where(condition, t, other)`) or NumPy's "
                "functions on the Tensor itself, or compute outside of the compiled function"
                + owner.origin()
            )
        if name in COUNTED:
            raise RuntimeError(
                f"`{name}` under `vmap` finds another number of elements in each example, and all "
                "examples have one shape: use `tapegrad.where(condition, t, other)`, or multiply "
                "with the condition and add up"
            )
        raise RuntimeError(
            f"the values of a Tensor under `vmap` differ from example to example and cannot be "
            f"read as an array (`{name}` wanted to): use an operation of tapegrad, or compute "
            "outside of the mapped function"
        )


@lru_cache(4096)
def filler(shape: tuple[int, ...], dtype: np.dtype[Any], *, noticed: bool = False) -> np.ndarray:
    """What nobody should read, in a shape; of integers a zero, or what would be `noticed`."""
    unread: Any = np.nan if dtype.kind in "fc" else 0
    if noticed and dtype.kind in "iu":
        unread = np.iinfo(dtype).min or np.iinfo(dtype).max
    return np.broadcast_to(np.array(unread, dtype), shape)


def known(array: np.ndarray, name: str) -> np.ndarray:
    """An array whose elements a function reads; refused where they are not known."""
    if type(array) is AbstractArray:
        array.refuse(name)
    return array


def everything(array: np.ndarray) -> np.ndarray:
    """The values of all examples that stand behind what a Tensor shows."""
    while type(array) is AbstractArray:
        array = array.owner.computed()._a
    return array


def lying(array: np.ndarray) -> np.ndarray:
    """An array that lies in memory as what a Tensor shows: of many examples the first."""
    if type(array) is not AbstractArray:
        return array
    whole = array
    while type(whole) is AbstractArray:
        whole = whole.owner.parts()[0]._a
    if not whole.size:
        return np.empty(array.shape, array.dtype)
    return whole[(0,) * (whole.ndim - array.ndim) + (...,)]
