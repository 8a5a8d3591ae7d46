"""Run what derivative rules call on Tensors, by the fast path of each kind of operation.

A rule says `product` or `permute` of arrays and of Tensors alike.  On Tensors, in a sweep that is
recorded, such a call takes the path of the public function that does the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.views import ViewFn, ViewRequest
from tapegrad.functions.reductions import along_dims
from tapegrad.ops import linalg, reduce, shape
from tapegrad.ops.core import Op, Params
from tapegrad.tape import versions
from tapegrad.tensor import F4, F8, Tensor

Call = Callable[..., Tensor | None]


def called_by_rule(op: Op, args: tuple[Any, ...], params: Params) -> Tensor:
    """Run an operation that was called on Tensors."""
    if op.entry_point is not None and not params:
        return op.entry_point(*args)  # type: ignore[no-any-return]
    found = None
    if type(args[0]) is Tensor:
        if op.view:
            return native_calls.view(_view_fn(op), args, params)  # type: ignore[no-any-return]
        if op in _FAST:
            found = _FAST[op](*args, **params)
    return run(op, args, params) if found is None else found


@cache
def _view_fn(op: Op) -> ViewFn:
    """The view function of an operation, whose arguments are those of its row."""

    def view(x: Tensor, **params: Any) -> Tensor | ViewRequest:
        array = x._a
        try:
            r = op.forward(array, **params)
            key = tuple(params.items())
            hash(key)
        except (TypeError, ValueError):  # slices, before Python 3.12; or `run` says what is wrong
            return run(op, (x,), params)
        if type(x) is not Tensor or versions.root(r) is not versions.root(array):  # it was copied
            return run(op, (x,), params)
        return ViewRequest(op, x, params, r, key)

    return view


def _sum_to(x: Tensor, *, shape: tuple[int, ...]) -> Tensor | None:
    """`sum` along the dimensions that broadcasting has added or repeated."""
    given = x._a.shape
    extra = len(given) - len(shape)
    if not extra:
        repeated = tuple([k for k, n in enumerate(shape) if n != given[k]])
        return _sum(x, dim=repeated, keepdim=True) if repeated else None
    return _sum(x, dim=tuple(range(extra)), keepdim=False) if given[extra:] == shape else None


def _sum(x: Tensor, *, dim: tuple[int, ...], keepdim: bool) -> Tensor | None:
    return run_axis(reduce.sum, along_dims, x, dim, keepdim) if dim else None  # to `tg.sum` all


def _product(a: Tensor, b: Tensor) -> Tensor | None:
    """`matmul`, whose adjoints have kernels; a strong product is another where that gives NaN."""
    if type(b) is not Tensor:
        return None
    x, y = a._a, b._a
    if x.dtype is not y.dtype or x.ndim != 2 or y.ndim != 2 or x.dtype not in (F8, F4):
        return None
    with np.errstate(all="ignore"):
        found: Tensor = linalg.matmul.entry_point(a, b)
    r = found._a
    return None if math.isnan(np.vdot(r, r)) else found


_FAST: dict[Op, Call] = {shape.sum_to: _sum_to, reduce.sum: _sum, linalg.product: _product}
