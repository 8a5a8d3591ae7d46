"""Sets of elements, and how many there are of which: what is found depends on the values.

Each element that is found keeps its gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.functions.arguments import one_dim
from tapegrad.functions.indexing import getitem
from tapegrad.functions.joining import cat
from tapegrad.functions.shapes import reshape
from tapegrad.numpy_face.common import handles, plain, tensor, wrapped
from tapegrad.tensor import Tensor, wrap


def _flat(x: Any) -> Tensor:
    t = tensor(x)
    return reshape(t, (t._a.size,))


_find: Any = np.unique  # its stubs want to know the flags


@handles(np.unique)
def _unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: Any = None, *, equal_nan: bool = True,
) -> Any:  # fmt: skip
    x = tensor(ar)
    returns = {"return_inverse": return_inverse, "return_counts": return_counts}
    _, index, *more = _find(x._a, True, axis=axis, equal_nan=equal_nan, **returns)
    if axis is None:
        values = getitem(_flat(x), (index,))
    else:
        d = one_dim(axis, x._a.ndim, "np.unique")
        values = getitem(x, (*(slice(None),) * d, index))
    found = [values, *([wrap(index)] if return_index else []), *wrapped(more)]
    return found[0] if len(found) == 1 else tuple(found)


class UniqueAll(NamedTuple):
    """What `np.unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `np.unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `np.unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


handles(np.unique_all)(lambda x: UniqueAll(*_unique(x, True, True, True, equal_nan=False)))
handles(np.unique_counts)(lambda x: UniqueCounts(*_unique(x, return_counts=True, equal_nan=False)))
handles(np.unique_inverse)(
    lambda x: UniqueInverse(*_unique(x, return_inverse=True, equal_nan=False))
)


@handles(np.unique_values)
def _unique_values(x: Any) -> Tensor:
    found: Tensor = _unique(x, equal_nan=False)
    return found


@handles(np.union1d)
def _union1d(ar1: Any, ar2: Any) -> Tensor:
    found: Tensor = _unique(cat([_flat(ar1), _flat(ar2)]))
    return found


@handles(np.intersect1d)
def _intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The elements are those of the first, unless only those of the second have a gradient."""
    x, y = _flat(ar1), _flat(ar2)
    _, i, j = np.intersect1d(x._a, y._a, assume_unique, return_indices=True)
    second = y.requires_grad and not x.requires_grad
    values = getitem(y, (j,)) if second else getitem(x, (i,))
    return (values, wrap(i), wrap(j)) if return_indices else values


@handles(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    x = _flat(ar1) if assume_unique else _unique(ar1)
    return getitem(x, (np.flatnonzero(np.isin(x._a, plain(ar2, "setdiff1d"), invert=True)),))


@handles(np.setxor1d)
def _setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    both = cat([_flat(x) if assume_unique else _unique(x) for x in (ar1, ar2)])
    _, index, counts = np.unique(both._a, return_index=True, return_counts=True)
    return getitem(both, (index[counts == 1],))


@handles(np.trim_zeros)
def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    x = tensor(filt)
    sides = trim.lower()
    if sides not in ("fb", "bf", "f", "b"):
        raise ValueError(f"`np.trim_zeros`: trim is made of 'f' and 'b', got {trim!r}")
    places = np.argwhere(x._a)
    given = range(x._a.ndim) if axis is None else np.ravel(axis)
    dims = {one_dim(d, x._a.ndim, "np.trim_zeros") for d in given}
    index = []
    for d in range(x._a.ndim):
        low, high = (places[:, d].min(), places[:, d].max() + 1) if len(places) else (0, 0)
        first = low if "f" in sides or not len(places) else None
        last = high if "b" in sides or not len(places) else None
        index.append(slice(first, last) if d in dims else slice(None))
    return getitem(x, tuple(index))
