"""Shapes, indices and arrangement of elements, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.functions import diagonals as dg
from tapegrad.functions import indexing, joining, sliding_products, strided_views, tiling
from tapegrad.functions import shapes as s
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.masked_elements import unknown_mask
from tapegrad.numpy_face.common import brought_in, handles, plain, promoted, tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.numpy_face.reductions import sum_
from tapegrad.tensor import Tensor, wrap


def _whole(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)


def _axes(x: Tensor, axis: Any, name: str) -> tuple[int, ...]:
    """Axes in the order given; all of them for None."""
    if axis is None:
        return tuple(range(x._a.ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(one_dim(d, x._a.ndim, name) for d in given)


def _reversed(x: Tensor) -> Tensor:
    return s.permute(x, tuple(range(x._a.ndim))[::-1])


@handles(np.reshape)
def _reshape(a: Any, shape: Any, order: str = "C") -> Tensor:
    x = tensor(a)
    if order == "C":
        return s.reshape(x, _whole(shape))
    if order != "F":
        raise TypeError(f"`np.reshape` of a Tensor takes the order 'C' or 'F', got {order!r}")
    return _reversed(s.reshape(_reversed(x), _whole(shape)[::-1]))


handles(np.ravel)(lambda a, order="C": _reshape(a, tensor(a)._a.size, order))


@handles(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Tensor:
    x = tensor(a)
    return _reversed(x) if axes is None else s.permute(x, tuple(axes))


handles(np.matrix_transpose, np.linalg.matrix_transpose)(lambda x: s.matrix_transpose(tensor(x)))
handles(np.moveaxis)(
    lambda a, source, destination: s.movedim(tensor(a), *(_whole(d) for d in (source, destination)))
)


@handles(np.rollaxis)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    x = tensor(a)
    n = x._a.ndim
    axis, start = one_dim(axis, n, "np.rollaxis"), start + n if start < 0 else start
    return s.movedim(x, axis, start - (axis < start))


handles(np.swapaxes)(lambda a, axis1, axis2: s.transpose(tensor(a), axis1, axis2))


@handles(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Tensor:
    x = tensor(a)
    if axis is None:
        return s.squeeze(x)
    axes = _axes(x, axis, "np.squeeze")
    if any(x._a.shape[d] != 1 for d in axes if d < x._a.ndim):
        raise ValueError(
            f"`np.squeeze`: only axes of size 1 can go, got the axis {axis} of {x._a.shape}"
        )
    return s.squeeze(x, axes)


@handles(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Tensor:
    x = tensor(a)
    axes = _whole(axis)
    n = x._a.ndim + len(axes)
    places = sorted(one_dim(d, n, "np.expand_dims") for d in axes)
    if len(set(places)) != len(places):
        raise ValueError(f"`np.expand_dims`: an axis appears twice in {axis}")
    for d in places:
        x = s.unsqueeze(x, d)
    return x


handles(np.broadcast_to)(lambda array, shape: s.broadcast_to(tensor(array), _whole(shape)))


@handles(np.broadcast_arrays)
def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Tensors, and arrays of what is no number, such as None beside the bars of a plot."""
    parts = [x if _is_no_number(x) else tensor(x) for x in args]
    shape = np.broadcast_shapes(*map(np.shape, parts))
    return tuple(
        s.broadcast_to(x, shape) if isinstance(x, Tensor) else np.broadcast_to(x, shape)
        for x in parts
    )


def _is_no_number(x: Any) -> bool:
    return not isinstance(x, Tensor) and np.asarray(x).dtype.kind not in "biufc"


@handles(np.flip)
def _flip(m: Any, axis: Any = None) -> Tensor:
    x = tensor(m)
    return _flipped(x, _axes(x, axis, "np.flip"))


def _flipped(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A view, as NumPy's `flip` gives; that of PyTorch copies."""
    steps = [slice(None, None, -1 if d in axes else None) for d in range(x._a.ndim)]
    return indexing.getitem(x, tuple(steps))  # of a number the number, as NumPy does


handles(np.flipud)(lambda m: _flipped(tensor(m), (0,)))
handles(np.fliplr)(lambda m: _flipped(tensor(m), (1,)))


@handles(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    x = tensor(m)
    a, b = _axes(x, tuple(axes), "np.rot90")
    if a == b:
        raise ValueError(f"`np.rot90` needs two different axes, got {tuple(axes)}")
    if k % 4 == 2:
        return _flipped(x, (a, b))
    if k % 4 == 1:
        return s.transpose(_flipped(x, (b,)), a, b)
    return _flipped(s.transpose(x, a, b), (b,)) if k % 4 == 3 else indexing.getitem(x, ...)


@handles(np.diag)
def _diag(v: Any, k: int = 0) -> Tensor:
    x = tensor(v)
    if x._a.ndim not in (1, 2):
        raise ValueError(f"`np.diag` takes a vector or a matrix, got the shape {x._a.shape}")
    return dg.diag(x, k)


handles(np.diagflat)(lambda v, k=0: dg.diag(s.reshape(tensor(v), (tensor(v)._a.size,)), k))


@handles(np.diagonal)
def diagonal_(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """`np.diagonal`."""
    return dg.diagonal(tensor(a), offset, axis1, axis2)


@handles(np.trace)
def trace_(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """`np.trace`."""
    return sum_(diagonal_(a, offset, axis1, axis2), -1, dtype)


handles(np.tril)(lambda m, k=0: dg.tril(tensor(m), k))
handles(np.triu)(lambda m, k=0: dg.triu(tensor(m), k))


# -- elements at places ------------------------------------------------------------------


def _chosen(x: Tensor, places: Any, axis: Any, name: str) -> Tensor:
    """What stands at places along one axis, in the shape of the places."""
    if axis is None:
        x, axis = s.reshape(x, (x._a.size,)), 0
    d = one_dim(axis, x._a.ndim, name)
    return indexing.getitem(x, (slice(None),) * d + (places,))


@handles(np.take)
def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Tensor:
    x, places = tensor(a), tensor(indices)
    n = x._a.size if axis is None else x._a.shape[one_dim(axis, x._a.ndim, "np.take")]
    places = brought_in(places, n, mode, "np.take")
    if places._a.dtype.kind not in "iu":
        raise TypeError(f"`np.take`: indices must be integers, got {places._a.dtype}")
    given = everything(places._a)
    if given.size and (given.min() < -n or given.max() >= n):
        raise IndexError(f"`np.take`: an index is out of range for size {n}")
    return _chosen(x, places, axis, "np.take")


@handles(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tensor:
    x, places = tensor(arr), tensor(indices)
    if axis is None:
        x, axis = s.reshape(x, (x._a.size,)), 0
    if places._a.ndim != x._a.ndim:
        raise ValueError(
            f"`np.take_along_axis`: indices of shape {places._a.shape} need as many dimensions as "
            f"the Tensor of shape {x._a.shape}"
        )
    return indexing.take_along_dim(x, places, one_dim(axis, x._a.ndim, "np.take_along_axis"))


@handles(np.compress)
def _compress(condition: Any, a: Any, axis: Any = None) -> Tensor:
    x = tensor(a) if axis is not None else s.reshape(tensor(a), (tensor(a)._a.size,))
    if isinstance(condition, Tensor) and axis in (None, 0) and unknown_mask(condition, x):
        return x[condition]
    return _chosen(x, np.flatnonzero(plain(condition, "compress")), axis, "np.compress")


@handles(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Tensor:
    x = tensor(arr)
    n = x._a.size if axis is None else x._a.shape[one_dim(axis, x._a.ndim, "np.delete")]
    return _chosen(x, np.delete(np.arange(n), plain(obj, "delete")), axis, "np.delete")


@handles(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    x = tensor(a)
    n = x._a.size if axis is None else x._a.shape[one_dim(axis, x._a.ndim, "np.repeat")]
    return _chosen(x, np.repeat(np.arange(n), plain(repeats, "repeat")), axis, "np.repeat")


@handles(np.resize)
def _resize(a: Any, new_shape: Any) -> Tensor:
    x = tensor(a)
    if not x._a.size:
        return wrap(np.zeros(_whole(new_shape), x._a.dtype))
    return _chosen(x, np.resize(np.arange(x._a.size), _whole(new_shape)), None, "np.resize")


@handles(np.ix_)
def _ix(*args: Any) -> tuple[Tensor, ...]:
    found = []
    for d, given in enumerate(args):
        x = tensor(given)
        if not x._a.size and not isinstance(given, (Tensor, np.ndarray)):
            x = wrap(np.zeros(x._a.shape, np.int64))
        if x._a.ndim != 1:
            raise ValueError(f"`np.ix_` takes vectors, got the shape {x._a.shape}")
        if x._a.dtype.kind == "b":
            x = wrap(np.flatnonzero(x._a))
        found.append(s.reshape(x, [-1 if k == d else 1 for k in range(len(args))]))
    return tuple(found)


handles(np.tile)(lambda A, reps: tiling.tile(tensor(A), _whole(reps)))


@handles(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    if axis is None:
        return tiling.roll(tensor(a), shift)
    shifts, axes = np.broadcast_arrays(shift, axis)
    return tiling.roll(tensor(a), tuple(shifts.ravel().tolist()), tuple(axes.ravel().tolist()))


@handles(np.meshgrid)
def _meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"`np.meshgrid`: indexing is 'xy' or 'ij', got {indexing!r}")
    n = len(xi)
    parts = []
    for k, given in enumerate(xi):
        place = 1 - k if indexing == "xy" and k < 2 and n > 1 else k
        parts.append(s.reshape(tensor(given), [-1 if d == place else 1 for d in range(n)]))
    if not sparse:
        parts = list(_broadcast_arrays(*parts))
    return tuple(s.clone(x) for x in parts) if copy else tuple(parts)


@handles(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Tensor:
    t = tensor(x)
    sizes, axes = _whole(window_shape), _axes(t, axis, "sliding_window_view")
    if len(sizes) != len(axes):
        raise ValueError(
            f"`sliding_window_view` needs one axis for each size, got {sizes} and {axes}"
        )
    for size, d in zip(sizes, axes, strict=True):
        if not 0 < size <= t._a.shape[d]:
            raise ValueError(f"`sliding_window_view`: {sizes} does not fit {tensor(x)._a.shape}")
        t = strided_views.unfold(t, d, size, 1)
    return t


@handles(np.convolve)
def convolve_(a: Any, v: Any, mode: str = "full") -> Tensor:
    """`np.convolve`: windows of the longer one, times the shorter one reversed."""
    x, y = promoted(a, v)
    if x._a.ndim > 1 or y._a.ndim > 1:
        raise ValueError(f"`np.convolve` takes vectors, got {x._a.shape} and {y._a.shape}")
    x, y = (s.reshape(t, (1,)) if not t._a.ndim else t for t in (x, y))
    if y._a.size > x._a.size:
        x, y = y, x
    n, k = x._a.size, y._a.size
    if not k:
        raise ValueError("`np.convolve`: a vector cannot be empty")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"`np.convolve`: mode is 'full', 'same' or 'valid', got {mode!r}")
    padding, window = 0 if mode == "valid" else k - 1, s.flip(y, (0,))
    if sliding_products.slides(x, window):
        found = sliding_products.slid(x, window, padding)
    else:
        found = strided_views.unfold(pad_(x, padding) if padding else x, 0, k, 1) @ window
    return s.narrow(found, 0, (k - 1) // 2, n) if mode == "same" else found


@handles(np.unstack)
def _unstack(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    t = tensor(x)
    return tuple(t) if t._a.ndim == 1 else joining.unbind(t, axis)
