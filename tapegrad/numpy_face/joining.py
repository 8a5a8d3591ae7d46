"""Joining Tensors and taking them apart, with NumPy's arguments; pieces are lists, as there."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import joining as j
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.indexing import getitem
from tapegrad.functions.shapes import broadcast_to, clone, movedim, reshape, to
from tapegrad.numpy_face.common import handles, plain, tensor
from tapegrad.tensor import Tensor


def _parts(arrays: Any) -> list[Tensor]:
    if isinstance(arrays, Tensor):
        return list(j.unbind(arrays))
    return [tensor(x) for x in arrays]


def joined(parts: list[Tensor], axis: int) -> Tensor:
    """Parts behind each other; one without elements has as many dimensions as the others."""
    if len({x._a.ndim for x in parts}) > 1:
        raise ValueError(
            "arrays that are joined need as many dimensions, got the shapes "
            + ", ".join(str(x._a.shape) for x in parts)
        )
    return j.cat(parts, axis)


@handles(np.concatenate)
def _concatenate(arrays: Any, axis: Any = 0, dtype: Any = None) -> Tensor:
    parts = _parts(arrays)
    if axis is None:
        parts, axis = [reshape(x, (x._a.size,)) for x in parts], 0
    found = joined(parts, axis)
    return found if dtype is None else to(found, dtype=dtype)


@handles(np.stack)
def _stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Tensor:
    found = j.stack(_parts(arrays), axis)
    return found if dtype is None else to(found, dtype=dtype)


@handles(np.array)
def _array(object: Any, dtype: Any = None, *, copy: Any = None, ndmin: int = 0) -> Tensor:
    """A Tensor of nested lists, for ``np.array(rows, like=t)``: NumPy says who is asked by that."""
    rows = isinstance(object, list | tuple)
    found = j.stack([_array(x) for x in object]) if rows and len(object) else tensor(object)
    found = found if dtype is None else to(found, dtype=plain(dtype, "array"))
    found = found if rows or copy is False else clone(found)
    missing = ndmin - found._a.ndim
    return reshape(found, (*(1,) * missing, *found._a.shape)) if missing > 0 else found


handles(np.asarray)(lambda a, dtype=None: _array(a, dtype, copy=False))


def at_least(x: Tensor, n: int) -> Tensor:
    """With at least so many dimensions, the new ones where NumPy puts them."""
    shape = x._a.shape
    if len(shape) >= n:
        return x
    if n == 3 and len(shape):
        return reshape(x, (1, *shape, 1) if len(shape) == 1 else (*shape, 1))
    return reshape(x, (1,) * (n - len(shape)) + shape)


def _atleast(arys: Any, n: int) -> Any:
    found = tuple(at_least(tensor(x), n) for x in arys)
    return found[0] if len(found) == 1 else found


handles(np.atleast_1d)(lambda *arys: _atleast(arys, 1))
handles(np.atleast_2d)(lambda *arys: _atleast(arys, 2))
handles(np.atleast_3d)(lambda *arys: _atleast(arys, 3))
handles(np.vstack)(lambda tup: j.cat([at_least(x, 2) for x in _parts(tup)], 0))


@handles(np.hstack)
def _hstack(tup: Any) -> Tensor:
    parts = [at_least(x, 1) for x in _parts(tup)]
    return joined(parts, 0 if parts and parts[0]._a.ndim == 1 else 1)


handles(np.dstack)(lambda tup: j.cat([at_least(x, 3) for x in _parts(tup)], 2))


@handles(np.column_stack)
def _column_stack(tup: Any) -> Tensor:
    parts = _parts(tup)
    return j.cat([x if x._a.ndim > 1 else reshape(x, (x._a.size, 1)) for x in parts], 1)


handles(np.append)(lambda arr, values, axis=None: _concatenate([tensor(arr), tensor(values)], axis))


@handles(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """The new elements stand behind the others, before all are brought into their order."""
    x = tensor(arr)
    if axis is None:
        x, d = reshape(x, (x._a.size,)), 0
    else:
        d = one_dim(axis, x._a.ndim, "np.insert")
    n, at = x._a.shape[d], plain(obj, "insert")
    places = np.arange(n)[at] if isinstance(at, slice) else np.asarray(at)
    count = int(places.sum()) if places.dtype == bool else places.size
    new = to(tensor(values), dtype=x._a.dtype)
    if new._a.ndim < x._a.ndim:
        new = reshape(new, (1,) * (x._a.ndim - new._a.ndim) + new._a.shape)
    if places.size == 1 and places.dtype != bool:
        new = movedim(new, 0, d) if not places.ndim else new
        count = new._a.shape[d]
        at = places.item()
    new = broadcast_to(new, (*x._a.shape[:d], count, *x._a.shape[d + 1 :]))
    order = np.insert(np.arange(n), at, n + np.arange(count))
    return getitem(j.cat([x, new], d), (*(slice(None),) * d, order))


@handles(np.block)
def _block(arrays: Any) -> Tensor:
    """The innermost lists are joined along the last axis, the next along the one before."""
    levels = _levels(arrays)
    ndim = max(levels, *(x._a.ndim for x in _leaves(arrays)))

    def joined(part: Any, level: int) -> Tensor:
        if not isinstance(part, list):
            t = tensor(part)
            return reshape(t, (1,) * (ndim - t._a.ndim) + t._a.shape)
        return j.cat([joined(p, level - 1) for p in part], ndim - level)

    return joined(arrays, levels)


def _levels(part: Any) -> int:
    if not isinstance(part, list):
        return 0
    found = {_levels(p) for p in part}
    if len(found) != 1:
        raise ValueError("`np.block`: lists must be nested equally deep and not be empty")
    return 1 + found.pop()


def _leaves(part: Any) -> list[Tensor]:
    if not isinstance(part, list):
        return [tensor(part)]
    return [leaf for p in part for leaf in _leaves(p)]


@handles(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    given = plain(indices_or_sections, "array_split")
    if np.ndim(given) == 0:
        given = int(given)
        if given < 1:
            raise ValueError(f"`np.array_split` needs a positive number of pieces, got {given}")
    return list(j.tensor_split(tensor(ary), given, axis))


@handles(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    x = tensor(ary)
    if np.ndim(plain(indices_or_sections, "split")) == 0 and x._a.shape[axis] % int(
        indices_or_sections
    ):
        raise ValueError(
            f"`np.split`: {x._a.shape[axis]} elements cannot be divided into "
            f"{int(indices_or_sections)} equal pieces: use `np.array_split`"
        )
    return _array_split(x, indices_or_sections, axis)


handles(np.vsplit)(
    lambda ary, indices_or_sections: _split(_deep(ary, 2, "np.vsplit"), indices_or_sections, 0)
)


@handles(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    x = _deep(ary, 1, "np.hsplit")
    return _split(x, indices_or_sections, min(x._a.ndim - 1, 1))


handles(np.dsplit)(
    lambda ary, indices_or_sections: _split(_deep(ary, 3, "np.dsplit"), indices_or_sections, 2)
)


def _deep(ary: Any, n: int, name: str) -> Tensor:
    x = tensor(ary)
    if x._a.ndim < n:
        raise ValueError(f"`{name}` needs at least {n} dimensions, got the shape {x._a.shape}")
    return x
