"""What some functions get that ask for an array of a Tensor, and do no arithmetic of their own.

NumPy calls `Tensor.__array__` inside of them, where a Tensor cannot take over.  They pass on what
they get, to operators or to a function that a Tensor answers; so an array that carries the Tensor
keeps its history.  All others are refused, or get the values.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from tapegrad.functions.shapes import permute, reshape, to
from tapegrad.tensor import Tensor


class Piece(np.ndarray):
    """What `np.r_` and `np.c_` join: an array of zeros that carries a Tensor."""

    tensor: Tensor

    def __array_finalize__(self, origin: Any) -> None:
        """Another view, or a copy in another type, carries the same Tensor."""
        if isinstance(origin, Piece):
            self.tensor = origin.tensor

    def transpose(self, *axes: Any) -> Piece:
        """With the dimensions in another order."""
        moved = super().transpose(*axes)
        moved.tensor = permute(self.whole(), axes[0])
        return moved

    def whole(self) -> Tensor:
        """The Tensor, with the shape and the type of the array."""
        return to(reshape(self.tensor, self.shape), dtype=self.dtype)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Join the Tensors."""
        (parts,) = args
        return func([p.whole() if isinstance(p, Piece) else p for p in parts], **kwargs)


def _piece(t: Tensor, frame: FrameType) -> np.ndarray:
    found = np.zeros(t._a.shape, t._a.dtype).view(Piece)
    found.tensor = t
    return found


def _object(t: Tensor, frame: FrameType) -> np.ndarray:
    """An array without dimensions, which operators take apart."""
    found = np.empty((), object)
    found[()] = t
    return found


def _operand(t: Tensor, frame: FrameType) -> np.ndarray | None:
    """The same, for the operator of a sparse matrix; its method `multiply` has no use for it."""
    caller: FrameType | None = frame
    while caller is not None and "multiply" in caller.f_code.co_name:
        caller = caller.f_back
    called = caller is not None and caller.f_code.co_name == "__mul__"
    return _object(t, frame) if called else None


def _elements(t: Tensor, frame: FrameType) -> np.ndarray | None:
    """An array of the elements of a vector."""
    if t._a.ndim != 1:
        return None
    found = np.empty(t._a.shape, object)
    for k in range(found.size):
        found[k] = t[k]
    return found


def _coefficients(t: Tensor, frame: FrameType) -> np.ndarray | None:
    """The elements, unless NumPy would broadcast them along those of an array."""
    at = frame.f_locals.get("x")
    return None if isinstance(at, (np.ndarray, list, tuple)) else _elements(t, frame)


_SERIES = {
    "polynomial": "polyval", "chebyshev": "chebval", "legendre": "legval", "hermite": "hermval",
    "hermite_e": "hermeval", "laguerre": "lagval",
}  # fmt: skip
# By the module and the name of the function that asks.
_INSTEAD: dict[tuple[str, str], Callable[[Tensor, FrameType], np.ndarray | None]] = {
    ("numpy.lib._index_tricks_impl", "__getitem__"): _piece,
    ("numpy.polynomial.polyutils", "mapdomain"): _object,
    ("numpy.polynomial.polyutils", "as_series"): _elements,
    # Operators of a sparse matrix leave to its operand what is no array of numbers.
    ("scipy.sparse._base", "_divide"): _object,
    ("scipy.sparse._base", "_matmul_dispatch"): _object,
    ("scipy.sparse._compressed", "_multiply_2d_with_broadcasting"): _operand,
    ("scipy.sparse._compressed", "multiply"): _operand,  # of SciPy 1.16
    ("scipy.sparse._coo", "_matmul_dispatch"): _object,
    **{(f"numpy.polynomial.{kind}", name): _coefficients for kind, name in _SERIES.items()},
}


def instead_of_array(t: Tensor, frame: FrameType) -> np.ndarray | None:
    """What the function of a frame gets in place of an array, if it is one of these."""
    if frame.f_code.co_name == "<listcomp>" and frame.f_back is not None:  # until Python 3.11
        frame = frame.f_back
    found = _INSTEAD.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
    return None if found is None else found(t, frame)
