"""Reductions, softmax, norms, cumulative sums, extrema."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple, NoReturn, overload

import numpy as np

from tapegrad.dispatch.axis_plans import Arguments, run_axis
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.dispatch.op_functions import whole
from tapegrad.functions import shapes
from tapegrad.functions.arguments import (
    Dim,
    TypeLike,
    all_dims,
    as_input,
    as_type,
    both_given,
    floating,
    one_dim,
    ordered,
)
from tapegrad.functions.deferred import load
from tapegrad.functions.elementwise import abs as abs_
from tapegrad.functions.elementwise import eq, maximum, minimum, ne
from tapegrad.functions.method_decorators import axis_method, method
from tapegrad.ops import order
from tapegrad.ops import reduce as r
from tapegrad.ops.core import Op
from tapegrad.ops.elementwise import where
from tapegrad.ops.index import gather
from tapegrad.ops.shape import reshape, to
from tapegrad.tape.tape import MODE_FAST, current
from tapegrad.tensor import Tensor, fresh, wrap

INT64 = np.dtype(np.int64)
Given = tuple[Tensor, dict[str, Any]]  # an operand and static parameters


class ValuesAndIndices(NamedTuple):
    """What a reduction along one dimension found, and where."""

    values: Tensor
    indices: Tensor

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            "`max`, `min` and `sort` of a Tensor along a dimension give two Tensors, the values "
            "and their places: take `.values`, or call NumPy's function, as in `np.max(x, axis=0)`"
        )


def _renamed(name: str, dim: Dim, keepdim: bool, axis: Dim, keepdims: bool) -> tuple[Dim, bool]:
    """NumPy's names, without a call between where every nanosecond counts (see `numpy_names`)."""
    if dim is not None and axis is not None:
        raise both_given(name, "axis", "dim")
    return (dim if axis is None else axis), keepdim or keepdims


@method
def sum(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: TypeLike | None = None,
    axis: Dim = None, keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """The sum of all elements, or along dimensions.

    >>> import tapegrad as tg
    >>> tg.sum(tg.ones(2, 3), dim=1)
    tensor([3., 3.])
    """
    if axis is not None or keepdims:
        dim, keepdim = _renamed("sum", dim, keepdim, axis, keepdims)
    if dim is None and dtype is None and not keepdim and type(input) is Tensor:
        return r.sum.entry_point(input)  # type: ignore[no-any-return]
    return _sum(input, dim, keepdim, dtype)


def _sum(input: Any, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    x = input if dtype is None and type(input) is Tensor else as_type(as_input(input, "sum"), dtype)
    if x._a.dtype.kind in "biu" and dtype is None:
        x = run(to, (x,), {"dtype": INT64})
    return run_axis(r.sum, along_dims, x, dim, keepdim)


def along_dims(op: Op, input: Tensor, dim: Any, keepdim: bool, _: Any) -> Given:
    """What a reduction along some dimensions, or all, is given."""
    return input, {"dim": all_dims(dim, input._a.ndim, op.name), "keepdim": keepdim}


@method
def mean(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: TypeLike | None = None,
    axis: Dim = None, keepdims: bool = False,
) -> Tensor:  # fmt: skip
    """The mean of all elements, or along dimensions.

    >>> import tapegrad as tg
    >>> tg.mean(tg.tensor([1.0, 3.0]))
    tensor(2.)
    """
    if axis is not None or keepdims:
        dim, keepdim = _renamed("mean", dim, keepdim, axis, keepdims)
    if dim is None and dtype is None and not keepdim and type(input) is Tensor:
        return r.mean.entry_point(input)  # type: ignore[no-any-return]
    return _mean(input, dim, keepdim, dtype)


def _mean(input: Any, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    x = floating(as_type(as_input(input, "mean"), dtype), "mean")
    return run_axis(r.mean, along_dims, x, dim, keepdim)


@axis_method
def nansum(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: TypeLike | None = None
) -> Tensor:
    """The sum of the elements that are not NaN.

    >>> import tapegrad as tg
    >>> tg.nansum(tg.tensor([1.0, tg.nan, 2.0]))
    tensor(3.)
    """
    x = ordered(as_input(input, "nansum"), "nansum")
    found = sum(x, dim, keepdim, dtype=dtype)
    # A NaN among the elements would be seen in their sum.
    if type(x) is Tensor and not np.isnan(found._a).any():
        return found
    return sum(_known(x), dim, keepdim, dtype=dtype)


@axis_method
def nanmean(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: TypeLike | None = None
) -> Tensor:
    """The mean of the elements that are not NaN.

    >>> import tapegrad as tg
    >>> tg.nanmean(tg.tensor([1.0, tg.nan, 2.0]))
    tensor(1.5000)
    """
    x = ordered(floating(as_input(input, "nanmean"), "nanmean"), "nanmean")
    total = nansum(x, dim, keepdim, dtype=dtype)
    return total / sum(run(to, (eq(x, x),), {"dtype": total._a.dtype}), dim, keepdim)


def _known(x: Tensor) -> Tensor:
    """Zeros in place of NaN."""
    return run(where, (ne(x, x), np.zeros((), x._a.dtype), x), {}) if x._a.dtype.kind == "f" else x


whole(r.sum, _sum)
whole(r.mean, _mean)


@axis_method
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: TypeLike | None = None
) -> Tensor:
    """The product of all elements, or along one dimension.

    >>> import tapegrad as tg
    >>> tg.prod(tg.tensor([2.0, 3.0]))
    tensor(6.)
    """
    x = as_type(as_input(input, "prod"), dtype)
    if x._a.dtype.kind in "biu" and dtype is None:
        x = run(to, (x,), {"dtype": INT64})
    if dim is None:
        _no_keepdim(keepdim, "prod")
    if dim is None or not x._a.ndim:
        x = x if x._a.ndim == 1 else shapes.reshape(x, (x._a.size,))
        dim, keepdim = 0, False
    return run_axis(r.prod, _multiplying, x, dim, keepdim)


def _no_keepdim(keepdim: Any, name: str) -> None:
    """Refuse to keep dimensions where none was given to reduce along."""
    if keepdim:
        raise TypeError(f"`{name}` keeps a dimension only where `dim` says which: pass `dim`")


def _multiplying(op: Op, x: Tensor, dim: Any, keepdim: bool, _: Any) -> Given:
    return x, {"dim": (one_dim(dim, x._a.ndim, op.name),), "keepdim": keepdim}


def _spread(
    op: Op, input: Any, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None
) -> Tensor:
    if isinstance(dim, bool):  # the older form: (input, unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    elif unbiased is not None:
        raise TypeError(f"`{op.name}`: give `unbiased` or `correction`, not both")
    return run_axis(op, _spreading, input, dim, keepdim, correction)


def _spreading(op: Op, input: Any, dim: Any, keepdim: bool, correction: float) -> Given:
    x = floating(as_input(input, op.name), op.name)
    dims = all_dims(dim, x._a.ndim, op.name)
    return x, {"dim": dims, "correction": correction, "keepdim": keepdim}


@axis_method
def var(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dim = None,
) -> Tensor:
    """The variance; `correction` is taken from the count (1 by default).

    >>> import tapegrad as tg
    >>> tg.var(tg.tensor([1.0, 3.0]))
    tensor(2.)
    """
    if axis is not None:
        dim, keepdim = _renamed("var", dim, keepdim, axis, False)
    return _spread(r.var, input, dim, unbiased, keepdim, correction)


@axis_method
def std(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dim = None,
) -> Tensor:
    """The standard deviation; `correction` is taken from the count (1 by default).

    >>> import tapegrad as tg
    >>> tg.std(tg.tensor([1.0, 1.0]))
    tensor(0.)
    """
    if axis is not None:
        dim, keepdim = _renamed("std", dim, keepdim, axis, False)
    return _spread(r.std, input, dim, unbiased, keepdim, correction)


def _not_empty(
    x: Tensor, dims: tuple[int, ...], name: str, problem: type[Exception] = IndexError
) -> None:
    if builtins.any(x._a.shape[d] == 0 for d in dims):
        raise problem(f"`{name}`: no elements to choose from in the shape {x._a.shape}")


def _choosing(op: Op, input: Any, dim: Any, keepdim: bool, _: Any) -> Given:
    x = ordered(as_input(input, op.name), op.name)
    dims = all_dims(dim, x._a.ndim, op.name)
    if not x._a.size:
        _not_empty(x, dims, op.name, IndexError if dim is not None and dim != () else RuntimeError)
    return x, {"dim": dims, "keepdim": keepdim}


@axis_method
def amax(input: Tensor, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The largest elements; ties share the gradient.

    >>> import tapegrad as tg
    >>> tg.amax(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
    tensor([2., 4.])
    """
    return run_axis(r.amax, _choosing, input, dim, keepdim)


@axis_method
def amin(input: Tensor, dim: Dim = (), keepdim: bool = False) -> Tensor:
    """The smallest elements; ties share the gradient.

    >>> import tapegrad as tg
    >>> tg.amin(tg.tensor([[1.0, 2.0], [4.0, 3.0]]), dim=1)
    tensor([1., 3.])
    """
    return run_axis(r.amin, _choosing, input, dim, keepdim)


def _extreme(
    input: Any, dim: Any, keepdim: bool, name: str, whole: Any, where: Any, pair: Any
) -> Any:
    x = ordered(as_input(input, name), name)
    if not isinstance(keepdim, (bool, np.bool_)):
        raise TypeError(f"`{name}`: keepdim is a bool, got {type(keepdim).__name__}")
    if dim is None:
        _no_keepdim(keepdim, name)
        if x._a.size == 0:
            raise RuntimeError(f"`{name}`: an empty Tensor has no extreme element")
        return whole(x)
    if isinstance(dim, Tensor):
        return pair(x, dim)
    d = one_dim(dim, x._a.ndim, name)
    if not x._a.ndim:
        return ValuesAndIndices(whole(x), wrap(np.zeros((), np.int64)))
    _not_empty(x, (d,), name)
    indices = _places(where, x, d, True)
    values = run_planned(gather, x, indices, None, d)
    if values is None:
        values = run_and_plan(gather, (x, indices), {"dim": d}, index=indices, how=d)
    if not keepdim:
        values, indices = shapes.squeeze(values, d), shapes.squeeze(indices, d)
    return ValuesAndIndices(values, indices)


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
@overload
def max(input: Tensor, dim: Tensor) -> Tensor: ...
@axis_method
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; along one dimension, values and indices; of two Tensors, the maximum.

    >>> import tapegrad as tg
    >>> tg.max(tg.tensor([1.0, 3.0, 2.0]), dim=0).indices
    tensor(1)
    """
    return _extreme(input, dim, keepdim, "max", amax, order.argmax, maximum)


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> ValuesAndIndices: ...
@overload
def min(input: Tensor, dim: Tensor) -> Tensor: ...
@axis_method
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; along one dimension, values and indices; of two Tensors, the minimum.

    >>> import tapegrad as tg
    >>> tg.min(tg.tensor([3.0, 1.0, 2.0]))
    tensor(1.)
    """
    return _extreme(input, dim, keepdim, "min", amin, order.argmin, minimum)


def _places(op: Op, x: Tensor, d: int, keepdim: bool) -> Tensor:
    """Where something stands along a dimension: a constant, whatever `x` is."""
    tape = current.tape
    if type(x) is Tensor and tape.mode == MODE_FAST and (x._home is None or x._home is tape):
        return fresh(op.forward(x._a, dim=d, keepdim=keepdim))
    return run(op, (x,), {"dim": d, "keepdim": keepdim})


def _arg(input: Any, dim: Any, keepdim: bool, op: Op) -> Tensor:
    x = ordered(as_input(input, op.name), op.name)
    ndim = x._a.ndim
    d = 0 if dim is None else one_dim(dim, ndim, op.name)
    if x._a.size == 0:
        _not_empty(x, tuple(range(ndim)) if dim is None else (d,), op.name)
    if not ndim:
        return wrap(np.zeros((), np.int64))
    if dim is not None:
        return _places(op, x, d, keepdim)
    flat = shapes.reshape(x.detach(), (x._a.size,)) if ndim > 1 else x
    found = _places(op, flat, 0, keepdim)
    return run(reshape, (found,), {"shape": (1,) * ndim}) if keepdim else found


@axis_method
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element.

    >>> import tapegrad as tg
    >>> tg.argmax(tg.tensor([1.0, 3.0]))
    tensor(1)
    """
    return _arg(input, dim, keepdim, order.argmax)


@axis_method
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element.

    >>> import tapegrad as tg
    >>> tg.argmin(tg.tensor([1.0, 3.0]))
    tensor(0)
    """
    return _arg(input, dim, keepdim, order.argmin)


def _over(op: Op, input: Any, dim: Any, keepdim: bool) -> Tensor:
    x = as_input(input, op.name)
    return run(op, (x,), {"dim": all_dims(dim, x._a.ndim, op.name), "keepdim": keepdim})


@axis_method
def all(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true.

    >>> import tapegrad as tg
    >>> tg.all(tg.tensor([True, False]))
    tensor(False)
    """
    return _over(order.all, input, dim, keepdim)


@axis_method
def any(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true.

    >>> import tapegrad as tg
    >>> tg.any(tg.tensor([True, False]))
    tensor(True)
    """
    return _over(order.any, input, dim, keepdim)


@axis_method
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements are not zero.

    >>> import tapegrad as tg
    >>> tg.count_nonzero(tg.tensor([0, 1, 2]))
    tensor(2)
    """
    return _over(order.count_nonzero, input, dim, keepdim=False)


@axis_method
def cumsum(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """The sums of the elements so far.

    >>> import tapegrad as tg
    >>> tg.cumsum(tg.ones(3), dim=0)
    tensor([1., 2., 3.])
    """
    x = as_type(as_input(input, "cumsum"), dtype)
    if x._a.dtype.kind in "biu" and dtype is None:
        x = run(to, (x,), {"dtype": INT64})
    return run_axis(r.cumsum, along_one, x, dim)


def along_one(op: Op, x: Tensor, dim: Any, *_: Any) -> Given:
    """The arguments of an operation along one dimension."""
    return x, {"dim": one_dim(dim, x._a.ndim, op.name)}


@axis_method
def norm(
    input: Tensor,
    p: float | str | None = 2,
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: TypeLike | None = None,
) -> Tensor:
    """The p-norm of the elements, as of one vector; the derivative at 0 is 0.

    "fro" is the 2-norm, "nuc" the sum of the singular values of a matrix.

    >>> import tapegrad as tg
    >>> tg.norm(tg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = as_type(as_input(input, "norm"), dtype)
    if isinstance(p, str) and p == "nuc":
        found: Tensor = load("norms").nuclear_norm(x, dim, keepdim)
        return found
    if x._a.dtype.kind == "c":
        x = abs_(x)
    return norm_of(x, _norm, dim, keepdim, 2 if isinstance(p, str) and p == "fro" else p)


def norm_of(x: Tensor, arguments: Arguments, dim: Any, keepdim: bool, p: Any) -> Tensor:
    """The p-norm of real numbers: for 1, of few, by operations whose adjoints are compiled."""
    if p == 1 and x._s != -1:
        return sum(abs_(x), dim, keepdim)
    return run_axis(r.norm, arguments, x, dim, keepdim, p)


def _norm(op: Op, input: Tensor, dim: Any, keepdim: bool, p: Any) -> Given:
    x = floating(input, "norm")
    if p is None:
        p = 2
    if not isinstance(p, (int, float)):
        raise ValueError(f"`norm`: p is a number, 'fro' or 'nuc', got {p!r}")
    dims = all_dims(dim, x._a.ndim, "norm")
    if (p < 0 or p == float("inf")) and not builtins.all(x._a.shape[d] for d in dims):
        raise RuntimeError(
            f"`norm`: p={p} is not defined for no elements, got the shape {x._a.shape}"
        )
    return x, {"p": float(p), "dim": dims, "keepdim": keepdim}


def neutral(reduce: str, kind: np.dtype[Any]) -> np.ndarray:
    """What changes no sum, no product, no extreme."""
    if reduce in ("sum", "mean", "prod"):
        return np.asarray(reduce == "prod", kind)
    if kind.kind == "f":
        return np.asarray(-np.inf if reduce == "amax" else np.inf, kind)
    if kind.kind == "b":
        return np.asarray(reduce == "amin")
    limits = np.iinfo(kind)
    return np.asarray(limits.min if reduce == "amax" else limits.max, kind)
