"""Where elements stand and what is true of them, with NumPy's arguments; sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions import scans
from tapegrad.functions.arguments import all_dims
from tapegrad.functions.shapes import reshape, to
from tapegrad.numpy_face.common import bad_option, handles, line, nothing, operand, plain, tensor
from tapegrad.ops import order
from tapegrad.tensor import Tensor

handles(np.argmax)(lambda a, axis=None, keepdims=False: r.argmax(tensor(a), axis, bool(keepdims)))
handles(np.argmin)(lambda a, axis=None, keepdims=False: r.argmin(tensor(a), axis, bool(keepdims)))


def _stable(name: str, kind: Any, stable: Any, order: Any) -> None:
    """Sorting here is stable, as any `kind` may be."""
    if order is not None:
        raise bad_option(name, "order")
    if kind is not None and (stable is not None or kind not in _KINDS):
        raise ValueError(f"`{name}`: kind is one of {_KINDS}, and excludes `stable`; got {kind!r}")


_KINDS = ("quicksort", "mergesort", "heapsort", "stable")


@handles(np.argsort)
def _argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    _stable("np.argsort", kind, stable, order)
    x, d = line(tensor(a), axis)
    return scans.argsort(x, d)


@handles(np.sort)
def sort_(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tensor:
    """`np.sort`: every element keeps its gradient."""
    _stable("np.sort", kind, stable, order)
    x, d = line(tensor(a), axis)
    found = scans.sort(x, d).values
    return found if tensor(a)._a.ndim or axis is None else reshape(found, ())


@handles(np.partition)
def _partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Tensor:
    """Elements in order are partitioned everywhere."""
    x, d = line(tensor(a), axis)
    n, places = x._a.shape[d], np.asarray(plain(kth, "partition"))
    if (places < -n).any() or (places >= n).any():
        raise ValueError(f"`np.partition`: a place in `kth` is out of range for {n} elements")
    return sort_(a, axis, order=order)


@handles(np.all)
def all_(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """`np.all`, and `np.logical_and.reduce`."""
    x = tensor(a)
    x = x if where is None else ew.logical_or(x, ew.logical_not(tensor(where)))
    return ew.ne(x, 0) if nothing(axis) else ew.ne(r.all(x, axis, bool(keepdims)), 0)


@handles(np.any)
def any_(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """`np.any`, and `np.logical_or.reduce`."""
    x = tensor(a)
    x = x if where is None else ew.logical_and(x, tensor(where))
    return ew.ne(x, 0) if nothing(axis) else ew.ne(r.any(x, axis, bool(keepdims)), 0)


@handles(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    x = tensor(a)
    if nothing(axis):
        return to(ew.ne(x, 0), dtype=np.int64)
    dims = all_dims(axis, x._a.ndim, "np.count_nonzero")
    return run(order.count_nonzero, (x,), {"dim": dims, "keepdim": bool(keepdims)})


@handles(np.searchsorted)
def searchsorted_(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """`np.searchsorted`."""
    if side not in ("left", "right"):
        raise ValueError(f"`np.searchsorted`: side is 'left' or 'right', got {side!r}")
    points = tensor(a) if sorter is None else tensor(a)[tensor(sorter)]
    return run(order.searchsorted, (points, tensor(v)), {"side": side})


@handles(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Tensor:
    x, y = (tensor(operand(t)).detach() for t in (a, b))
    return ar.near(x, y, operand(rtol), operand(atol), equal_nan)
