"""NumPy's functions that write into an array, on Tensors: the rules of operations in place hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.indexing import getitem
from tapegrad.functions.inplace_methods import copy_, index_put_, setitem
from tapegrad.functions.scattering import diagonal_places, index_reduce
from tapegrad.functions.shapes import broadcast_to, clone, reshape, to
from tapegrad.numpy_face.common import handles, plain, tensor, unsupported
from tapegrad.numpy_face.mapped import varies
from tapegrad.tensor import Tensor, wrap


def _target(a: Any, name: str) -> Tensor:
    """What is written into: an array would lose the gradient of what it takes in."""
    if not isinstance(a, Tensor):
        raise unsupported(name)
    return a


def _again(values: Any, count: int, name: str) -> Tensor:
    """So many elements, from the beginning again where there are fewer."""
    x = tensor(values)
    n = x._a.size
    if not n and count:
        raise ValueError(f"`{name}`: no values to write into {count} places")
    return getitem(reshape(x, (n,)), (np.resize(np.arange(n), count),))


@handles(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    write(_target(dst, "np.copyto"), src, "np.copyto", casting, where)


def write(x: Tensor, value: Any, name: str, casting: Any = "same_kind", where: Any = True) -> None:
    """Write values into a Tensor, where a condition holds, if a rule of NumPy's allows the cast."""
    source = tensor(value)
    kind = value if isinstance(value, (bool, int, float)) else source._a.dtype
    if isinstance(kind, np.dtype) and not np.can_cast(kind, x._a.dtype, casting):
        raise TypeError(
            f"`{name}` from {kind} to {x._a.dtype} is not allowed with casting={casting!r}"
        )
    if where is not True:
        source = ar.where(tensor(where), source, x)
    if source._a.shape == x._a.shape:
        copy_(x, source)
    else:
        setitem(x, ..., source)


def into(
    out: Any, found: Any, name: str, casting: Any = "same_kind", where: Any = True,
    spread: bool = False,
) -> Any:  # fmt: skip
    """Write the results of a function into the Tensors given as `out=`, and return those."""
    outs, results = (v if isinstance(v, tuple) else (v,) for v in (out, found))
    kept = [r if o is None else o for o, r in zip(outs, results, strict=True)]
    for x, value in zip(kept, results, strict=True):
        if x is not value:
            shape, own = np.shape(value), x._a.shape
            ends = zip(shape[::-1], own[::-1], strict=False)
            spreads = spread and len(shape) <= len(own) and all(n in (1, m) for n, m in ends)
            if shape != own and not spreads:
                raise ValueError(
                    f"`{name}`: a result of shape {shape} does not fit `out=` of shape {own}"
                )
            write(x, value, name, casting, where)
    return kept[0] if len(kept) == 1 else tuple(kept)


@handles(np.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    x = _target(a, "np.put")
    n, places = x._a.size, np.ravel(plain(ind, "put"))
    if mode == "clip":
        places = np.clip(places, 0, n - 1)
    elif mode not in ("raise", "wrap"):
        raise ValueError(f"`np.put`: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    elif mode == "raise" and places.size and (places.min() < -n or places.max() >= n):
        raise IndexError(f"`np.put`: an index is out of range for size {n}")
    index = np.unravel_index(places % max(n, 1), x._a.shape)
    setitem(x, index, _again(v, places.size, "np.put"))


@handles(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    x = _target(a, "np.putmask")
    spread = reshape(_again(values, x._a.size, "np.putmask"), x._a.shape)
    setitem(x, ..., ar.where(tensor(mask), spread, x))


@handles(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    x = _target(arr, "np.place")
    index = np.nonzero(np.reshape(plain(mask, "place"), x._a.shape))
    setitem(x, index, _again(vals, index[0].size, "np.place"))


@handles(np.put_along_axis)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x, places = _target(arr, "np.put_along_axis"), tensor(indices)
    shape = x._a.shape
    if places._a.ndim != (1 if axis is None else len(shape)):
        raise ValueError(
            f"`np.put_along_axis`: indices of shape {places._a.shape} need as many dimensions as "
            f"the Tensor of shape {shape}, or one if the axis is None"
        )
    if axis is None:
        setitem(x, np.unravel_index(places._a, shape), tensor(values))
        return
    d = one_dim(axis, len(shape), "np.put_along_axis")
    grid: list[Any] = list(np.ix_(*[np.arange(n) for n in shape]))
    grid[d] = places
    setitem(x, tuple(grid), tensor(values))


@handles(np.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = _target(a, "np.fill_diagonal")
    shape = x._a.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise ValueError(
            f"`np.fill_diagonal` takes a matrix, or more dimensions of one size, got {shape}"
        )
    index = diagonal_places(shape, wrap)
    setitem(x, index, _again(val, index[0].size, "np.fill_diagonal"))


# The ufuncs whose `at` adds up what it brings to one place.
ADDING: dict[Any, int] = {np.add: 1, np.subtract: -1}


def add_at(a: Tensor, indices: Any, b: Any, *, sign: int) -> None:
    """`np.add.at` and `np.subtract.at`, into a Tensor."""
    key = indices if isinstance(indices, tuple) else (indices,)
    value = to(tensor(b), dtype=a._a.dtype) * sign
    if any(isinstance(part, (Tensor, np.ndarray, list)) for part in key):
        index_put_(a, key, value, accumulate=True)
    else:  # each place once
        setitem(a, indices, getitem(a, indices) + value)


def reduce_at(a: Tensor, indices: Any, b: Any, *, reduce: str) -> None:
    """`np.multiply.at`, `np.maximum.at` and `np.minimum.at`, into a Tensor.

    What comes to one place is reduced, with what stands there.
    """
    every = np.arange(a._a.size).reshape(a._a.shape)
    key = indices if isinstance(indices, tuple) else (indices,)
    if varies(key):
        key = tuple([tensor(part) if isinstance(part, list) else part for part in key])
        places = getitem(wrap(every), key)
    else:
        places = wrap(every[plain(indices, "at")])
    value = broadcast_to(to(tensor(b), dtype=a._a.dtype), places._a.shape)
    rows = [reshape(x, (-1,)) for x in (clone(a), places, value)]
    setitem(a, ..., reshape(index_reduce(rows[0], 0, rows[1], rows[2], reduce), a._a.shape))
