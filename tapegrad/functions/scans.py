"""Sorting, cumulative products, differences: what goes along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.dispatch.dispatch import run, run_constant
from tapegrad.dispatch.index_plans import gathered
from tapegrad.functions.arguments import as_input, as_type, floating, one_dim, ordered
from tapegrad.functions.arithmetic import sub
from tapegrad.functions.elementwise import logical_xor
from tapegrad.functions.method_decorators import axis_method
from tapegrad.functions.reductions import INT64, ValuesAndIndices, along_one
from tapegrad.functions.shapes import clone, narrow
from tapegrad.ops import order, scan
from tapegrad.ops.shape import to
from tapegrad.tensor import Tensor, wrap


@axis_method
def cumprod(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """The products of the elements so far; right at zeros too, at every order.

    >>> import tapegrad as tg
    >>> tg.cumprod(tg.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([1., 2., 6.])
    """
    x = as_type(as_input(input, "cumprod"), dtype)
    if x._a.dtype.kind in "biu" and dtype is None:
        x = run(to, (x,), {"dtype": INT64})
    return run_axis(scan.cumprod, along_one, x, dim)


@axis_method
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """``log(cumsum(exp(x)))``, without overflow.

    >>> import tapegrad as tg
    >>> tg.logcumsumexp(tg.tensor([1000.0, 1000.0]), dim=0)
    tensor([1000.0000, 1000.6931])
    """
    x = floating(as_input(input, "logcumsumexp"), "logcumsumexp")
    return run_axis(scan.logcumsumexp, along_one, x, dim)


def _order(x: Tensor, d: int, descending: bool) -> Tensor:
    if not x._a.ndim:
        return wrap(np.zeros((), np.int64))
    return run_constant(order.argsort, x, {"dim": d, "descending": bool(descending)})


@axis_method
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> ValuesAndIndices:
    """The elements along one dimension in order, and where they were; always stable.

    >>> import tapegrad as tg
    >>> tg.sort(tg.tensor([3.0, 1.0, 2.0])).indices
    tensor([1, 2, 0])
    """
    x = ordered(as_input(input, "sort"), "sort")
    d = one_dim(dim, x._a.ndim, "sort")
    indices = _order(x, d, descending)
    values = gathered(x, d, indices) if x._a.ndim else clone(x)
    return ValuesAndIndices(values, indices)


@axis_method
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False
) -> Tensor:  # fmt: skip
    """The indices that sort along one dimension.

    >>> import tapegrad as tg
    >>> tg.argsort(tg.tensor([3.0, 1.0, 2.0]), descending=True)
    tensor([0, 2, 1])
    """
    x = ordered(as_input(input, "argsort"), "argsort")
    return _order(x, one_dim(dim, x._a.ndim, "argsort"), descending)


@axis_method
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Each element less the one before it, n times over.

    >>> import tapegrad as tg
    >>> tg.diff(tg.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    x = as_input(input, "diff")
    if not x._a.ndim:
        raise RuntimeError("`diff` takes at least one dimension, got a 0-d Tensor")
    if n < 0:
        raise RuntimeError(f"`diff`: n must not be negative, got {n}")
    d = one_dim(dim, x._a.ndim, "diff")
    if not n:
        return clone(x)
    beside = [part for part in (prepend, x, append) if part is not None]
    if len(beside) > 1:
        from tapegrad.functions.joining import cat

        x = cat(beside, d)
    less = logical_xor if x._a.dtype.kind == "b" else sub
    for _ in range(min(n, x._a.shape[d])):
        last = x._a.shape[d] - 1
        x = less(narrow(x, d, 1, last), narrow(x, d, 0, last))
    return x
