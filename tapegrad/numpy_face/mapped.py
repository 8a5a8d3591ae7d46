"""Functions with a constant result, made of operations: for values that differ by example.

NumPy computes them where a Tensor has one value.  Under a map, and while a compiler traces, there
is none; what is here then says the same in operations that have rules for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray, filler
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.complex_parts import isreal
from tapegrad.functions.indexing import take_along_dim
from tapegrad.functions.masked_elements import unknown_places
from tapegrad.functions.reductions import all as all_
from tapegrad.functions.reductions import argmax, argmin
from tapegrad.functions.scans import argsort
from tapegrad.functions.sets import isin
from tapegrad.functions.shapes import reshape
from tapegrad.numpy_face.common import line, plain, promoted, tensor
from tapegrad.numpy_face.order import searchsorted_
from tapegrad.tensor import Tensor


def varies(x: Any) -> bool:
    """Whether an argument has other values in each example, or none yet."""
    if isinstance(x, Tensor):
        return isinstance(x._a, AbstractArray)
    return isinstance(x, (list, tuple)) and any(varies(part) for part in x)


def shown(x: Any) -> Any:
    """An array in the shape and dtype of a Tensor, for what reads no more; others as they are."""
    return filler(x._a.shape, x._a.dtype) if isinstance(x, Tensor) else x


def _digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    edges, side = plain(bins, "digitize"), "left" if right else "right"
    if np.all(np.diff(edges) >= 0):
        return searchsorted_(edges, x, side)
    if not np.all(np.diff(edges) <= 0):
        raise ValueError("`np.digitize`: the bins must rise or fall monotonically")
    return ar.sub(len(edges), searchsorted_(np.flip(edges), x, side))


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Tensor:  # fmt: skip
    return isin(tensor(element), tensor(test_elements), invert=invert)


def _lexsort(keys: Any, axis: int = -1) -> Tensor:
    """Sorted by each key in turn, the last one last, and what is equal keeps its order."""
    rows = promoted(*keys)
    d = one_dim(axis, rows[0]._a.ndim, "np.lexsort")
    found = argsort(rows[0], d, stable=True)
    for key in rows[1:]:
        found = take_along_dim(found, argsort(take_along_dim(key, found, d), d, stable=True), d)
    return found


def _argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    x, d = line(tensor(a), axis)
    return argsort(x, d)


def _nanarg(place: Callable[..., Tensor], least: float) -> Callable[..., Tensor]:
    """Where nothing but NaN is NumPy raises, which cannot be done here: -1, the last of these."""

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
        x = tensor(a)
        if x._a.dtype.kind != "f":
            return place(x, axis, bool(keepdims))
        absent = ew.isnan(x)
        found = place(ar.where(absent, least, x), axis, bool(keepdims))
        return ar.where(all_(absent, axis, bool(keepdims)), -1, found)

    return handler


def _iscomplex(x: Any) -> Tensor:
    return ew.logical_not(isreal(tensor(x)))


def _result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*[shown(x) if varies(x) else x for x in arrays_and_dtypes])


def _einsum_path(*operands: Any, **kwargs: Any) -> Any:
    return np.einsum_path(*map(shown, operands), **kwargs)


MAPPED: dict[Any, Callable[..., Any]] = {
    np.nonzero: lambda a: unknown_places(tensor(a)),
    np.flatnonzero: lambda a: unknown_places(reshape(tensor(a), (tensor(a)._a.size,)))[0],
    np.digitize: _digitize,
    np.isin: _isin,
    np.lexsort: _lexsort,
    np.argpartition: _argpartition,
    np.nanargmax: _nanarg(argmax, -np.inf),
    np.nanargmin: _nanarg(argmin, np.inf),
    np.isneginf: ar.isneginf,
    np.isposinf: ar.isposinf,
    np.einsum_path: _einsum_path,
    np.iscomplex: _iscomplex,
    np.isreal: isreal,
    np.result_type: _result_type,
}


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    a, b = tensor(a1), tensor(a2)
    return a._a.shape == b._a.shape and ar.all_equal(a, b, equal_nan)


def _array_equiv(a1: Any, a2: Any) -> bool:
    a, b = tensor(a1), tensor(a2)
    try:
        np.broadcast_shapes(a._a.shape, b._a.shape)
    except ValueError:
        return False
    return ar.all_equal(a, b)


def _allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    return ar.allclose(tensor(a), tensor(b), rtol, atol, equal_nan)


def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_._a.dtype if isinstance(from_, Tensor) else from_, to, casting)


# What gives a truth value: a guard of a compiled function, and an error under a map.
PREDICATES: dict[Any, Callable[..., Any]] = {
    np.array_equal: _array_equal,
    np.array_equiv: _array_equiv,
    np.allclose: _allclose,
    np.can_cast: _can_cast,
}
