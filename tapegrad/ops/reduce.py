"""Reductions and what is built on them: sums, products, extrema, softmax, norms, cumulative sums.

`dim` is a sorted tuple of dimensions that are not negative; `keepdim` says whether they stay.
Conventions: extrema share the gradient among ties (`amax`, `amin`); `max` and `min` along one
dimension give it to the element that they name; a product stays differentiable at zeros; a norm
and a standard deviation have the derivative 0 at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_MEAN, KIND_SUM
from tapegrad.ops.core import ANALYTIC, OWN, Op, custom, linear
from tapegrad.ops.elementwise import abs as abs_
from tapegrad.ops.elementwise import (
    eq,
    exact,
    exp,
    gt,
    is_complex,
    log,
    lt,
    maximum,
    ne,
    rsqrt,
    sign,
    sqrt,
    square,
    strong,
    where,
)
from tapegrad.ops.elementwise import pow as pow_
from tapegrad.ops.index import at
from tapegrad.ops.large import large
from tapegrad.ops.logic import falsehood, truth
from tapegrad.ops.scan import cumprod, running_type
from tapegrad.ops.shape import cat, expand, flip, getitem, squeeze, to, unsqueeze
from tapegrad.tape.shape_table import Shape

Dims = tuple[int, ...]


def spread(g: Any, x_spec: Any, dim: Dims, keepdim: bool) -> Any:
    """Bring what a reduction gave back to the shape of its input."""
    if not keepdim and dim:
        g = unsqueeze(g, dims=dim)
    return expand(g, shape=x_spec.shape)


def remaining(shape: Shape, dims: Dims, keepdim: bool) -> Shape:
    """The shape of the result of a reduction."""
    if keepdim:
        return tuple([1 if d in dims else n for d, n in enumerate(shape)])
    return tuple([n for d, n in enumerate(shape) if d not in dims])


def count(spec: Any, dim: Dims) -> int:
    """How many elements each result of a reduction was made from."""
    n = 1
    for d in dim:
        n *= spec.shape[d]
    return n


def share(spec: Any, dim: Dims) -> float:
    """What each element adds to a mean; of no elements, whose mean is NaN, each adds NaN."""
    return 1.0 / (count(spec, dim) or math.nan)


COLUMNS, MANY = 8, 2048  # of arrays that are combined column by column, and their elements


def _by(ufunc: np.ufunc) -> Callable[..., Any]:
    """The reduction of a ufunc, which takes few columns of many rows one after the other."""

    def reduced(x: Any, *, axis: Any, keepdims: bool = False, **options: Any) -> Any:
        columns = x.shape[-1] if x.size >= MANY and axis == (x.ndim - 1,) else 0
        if not 1 < columns <= COLUMNS or x.dtype.kind not in "fc":
            return ufunc.reduce(x, axis=axis, keepdims=keepdims, **options)
        found = ufunc(x[..., 0], x[..., 1])
        for k in range(2, columns):
            ufunc(found, x[..., k], out=found)
        return found[..., None] if keepdims else found

    return reduced


_total, _product = _by(np.add), _by(np.multiply)
_largest, _smallest = _by(np.maximum), _by(np.minimum)


def _kept_type(x: Any) -> Any:
    """The type to add up and to multiply in: callers choose it, NumPy widens small integers."""
    return x.dtype if x.dtype.kind in "biu" else None


def _sum(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    return _total(x, axis=dim, keepdims=keepdim, dtype=_kept_type(x))


def _prod(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    return _product(x, axis=dim, keepdims=keepdim, dtype=_kept_type(x))


def _mean(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    return _total(x, axis=dim, keepdims=keepdim) / x.dtype.type(count(x, dim) or np.nan)


def _var(x: Any, *, dim: Dims, correction: float, keepdim: bool) -> Any:
    n = count(x, dim)
    if n == 0:
        return np.full(_total(x, axis=dim, keepdims=keepdim).shape, np.nan, x.real.dtype)
    centred = x - _total(x, axis=dim, keepdims=True) / x.dtype.type(n)
    if x.dtype.kind == "c":
        centred = np.absolute(centred)
    total = _total(np.square(centred), axis=dim, keepdims=keepdim)
    with np.errstate(all="ignore"):
        return total / centred.dtype.type(max(n - correction, 0))


def _std(x: Any, *, dim: Dims, correction: float, keepdim: bool) -> Any:
    return np.sqrt(_var(x, dim=dim, correction=correction, keepdim=keepdim))


def _deviation(x: Any, dim: Dims, correction: float) -> Any:
    """(x - mean) / (n - correction), over operations; NaN where nothing is left to divide by."""
    left: Any = count(x, dim) - correction
    if isinstance(left, (int, float)):
        scale: Any = 1.0 / left if left > 0 else math.nan
    else:  # of a kernel, for rows of any length
        scale = where(gt(left, 0.0), 1.0 / left, math.nan)
    return (x - mean(x, dim=dim, keepdim=True)) * scale


def _logsumexp(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    top = _largest(x.real, axis=dim, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, top.dtype.type(0))
    with np.errstate(divide="ignore"):
        out = np.log(_total(np.exp(x - top), axis=dim, keepdims=True)) + top
    return out if keepdim else np.squeeze(out, dim)


def _log_softmax(x: Any, *, dim: Dims) -> Any:
    top = _largest(x, axis=dim, keepdims=True, initial=-np.inf)
    shifted = x - top
    return shifted - np.log(_total(np.exp(shifted), axis=dim, keepdims=True))


def _softmax(x: Any, *, dim: Dims) -> Any:
    top = _largest(x, axis=dim, keepdims=True, initial=-np.inf)
    y = np.exp(x - top)
    y /= _total(y, axis=dim, keepdims=True)
    return y


def _standardize(x: Any, *, dim: Dims, eps: float) -> Any:
    n = x.dtype.type(count(x, dim) or np.nan)
    y = x - _total(x, axis=dim, keepdims=True) / n
    y *= 1.0 / np.sqrt(_total(np.square(y), axis=dim, keepdims=True) / n + x.dtype.type(eps))
    return y


def _standardize_vjp(g: Any, x: Any, y: Any, dim: Dims, eps: float) -> Any:
    # The mean and the variance of x move with it: what g has of both is taken away.
    scale = rsqrt(var(x, dim=dim, correction=0, keepdim=True) + eps)
    along = mean(strong(g, y), dim=dim, keepdim=True)
    return strong(g - mean(g, dim=dim, keepdim=True) - strong(along, y), scale)


def _norm(x: Any, *, p: float, dim: Dims, keepdim: bool) -> Any:
    if p == 2:
        return np.sqrt(_total(np.square(x), axis=dim, keepdims=keepdim))
    size = np.absolute(x)
    if p == np.inf:
        return _largest(size, axis=dim, keepdims=keepdim)
    if p == -np.inf:
        return _smallest(size, axis=dim, keepdims=keepdim)
    if p == 0:
        return _total((x != 0).astype(x.dtype), axis=dim, keepdims=keepdim)
    if p == 1:
        return _total(size, axis=dim, keepdims=keepdim)
    return _total(size**p, axis=dim, keepdims=keepdim) ** (1.0 / p)


def _mse_loss(a: Any, b: Any, *, mean: bool) -> Any:
    total = _total(np.square(a - b), axis=None)
    return total / a.dtype.type(a.size or np.nan) if mean else total


def _mse_vjp(g: Any, x: Any, other: Any, spec: Any, mean: bool) -> Any:
    scale = 2.0 * share(spec, tuple(range(len(spec.shape)))) if mean else 2.0
    return strong(expand(g * scale, shape=spec.shape), x - other)


def _norm_vjp(g: Any, x: Any, y: Any, x_spec: Any, p: float, dim: Dims, keepdim: bool) -> Any:
    g, y = spread(g, x_spec, dim, keepdim), spread(y, x_spec, dim, keepdim)
    if p == 0:
        return g * 0
    if p == 1:
        return strong(g, sign(x))
    if p in (np.inf, -np.inf):
        hit = where(eq(abs_(x), y), 1.0, 0.0)
        return strong(g, hit * sign(x) / sum(hit, dim=dim, keepdim=True))
    if p == 2:
        return strong(g, where(eq(y, 0), 0.0, x / y))
    small = where(eq(y, 0), 1.0, y)
    ratio = where(eq(x, 0), 0.0, pow_(abs_(x) / small, p - 1.0))
    return strong(g, where(eq(y, 0), 0.0, sign(x) * ratio))


def _ties(g: Any, x: Any, y: Any, x_spec: Any, dim: Dims, keepdim: bool) -> Any:
    hit = where(eq(x, spread(y, x_spec, dim, keepdim)), 1.0, 0.0)
    return exact(spread(g, x_spec, dim, keepdim), hit / sum(hit, dim=dim, keepdim=True))


def _prod_vjp(g: Any, x: Any, x_spec: Any, dim: Dims, keepdim: bool) -> Any:
    # Products of the others, from both sides, so that zeros are no special case.
    d = dim[0]
    rest = others_prod(x, dim=d)
    return strong(spread(g, x_spec, dim, keepdim), rest)


def _others_prod(x: Any, *, dim: int) -> Any:
    moved = np.moveaxis(x, dim, 0)
    if len(moved) >= MANY and (rest := _quotients(moved)) is not None:
        return np.ascontiguousarray(np.moveaxis(rest, 0, dim))
    left = np.ones_like(moved)
    right = np.ones_like(moved)
    np.multiply.accumulate(moved[:-1], axis=0, out=left[1:]) if len(moved) > 1 else None
    if len(moved) > 1:
        right[:-1] = np.multiply.accumulate(moved[:0:-1], axis=0)[::-1]
    return np.ascontiguousarray(np.moveaxis(left * right, 0, dim))


def _quotients(x: Any) -> Any:
    """The products of the others by dividing that of all; None where it has left the numbers."""
    whole = np.multiply.reduce(x, axis=0)
    size, limits = np.abs(whole), np.finfo(x.dtype)
    if not ((size > limits.tiny / limits.eps) & (size < np.inf)).all():
        return None
    return whole / x


def _pair_prod(g: Any, x: Any, *, dim: int) -> Any:
    """For each i, the sum over j != i of g[j] times the product of all others but i and j."""
    moved, weights = np.moveaxis(x, dim, 0), np.moveaxis(g, dim, 0)
    out = np.zeros_like(moved)
    n = len(moved)
    for i in range(n):
        rest = np.delete(moved, i, 0)
        out[i] = _total(np.delete(weights, i, 0) * _others_prod(rest, dim=0), axis=0)
    return np.ascontiguousarray(np.moveaxis(out, 0, dim))


def _third(g: Any, x: Any) -> Any:
    raise NotImplementedError(
        "the third derivative of `prod` is not implemented: write the product with `*`, or with "
        "`exp(sum(log(x)))` where x > 0"
    )


def _cumsum(x: Any, *, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    return np.add.accumulate(x, axis=dim, dtype=running_type(x)).astype(x.dtype, copy=False)


def _rcumsum(x: Any, *, dim: int) -> Any:
    if not x.ndim:
        return x.copy()
    back = np.add.accumulate(np.flip(x, dim), axis=dim, dtype=running_type(x))
    return np.ascontiguousarray(np.flip(back, dim), x.dtype)


# -- decompositions --------------------------------------------------------------------------------


def _var_form(x: Any, *, dim: Dims, correction: float, keepdim: bool) -> Any:
    left: Any = count(x, dim) - correction
    left = max(left, 0.0) if isinstance(left, (int, float)) else maximum(left, 0.0)
    centred = x - mean(x, dim=dim, keepdim=True)
    size = abs_(centred) if is_complex(x) else centred
    return sum(square(size), dim=dim, keepdim=keepdim) / left


def _std_form(x: Any, *, dim: Dims, correction: float, keepdim: bool) -> Any:
    return sqrt(_var_form(x, dim=dim, correction=correction, keepdim=keepdim))


def _logsumexp_form(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    top = amax(x, dim=dim, keepdim=True)
    top = where(lt(abs_(top), math.inf), top, 0.0)
    out = log(sum(exp(x - top), dim=dim, keepdim=True)) + top
    return out if keepdim else squeeze(out, dims=dim)


def _softmax_form(x: Any, *, dim: Dims) -> Any:
    y = exp(x - amax(x, dim=dim, keepdim=True))
    return y / sum(y, dim=dim, keepdim=True)


def _log_softmax_form(x: Any, *, dim: Dims) -> Any:
    shifted = x - amax(x, dim=dim, keepdim=True)
    return shifted - log(sum(exp(shifted), dim=dim, keepdim=True))


def _norm_form(x: Any, *, p: float, dim: Dims, keepdim: bool) -> Any:
    if p == 2:
        return sqrt(sum(square(x), dim=dim, keepdim=keepdim))
    size = abs_(x)
    if p == math.inf:
        return amax(size, dim=dim, keepdim=keepdim)
    if p == -math.inf:
        return amin(size, dim=dim, keepdim=keepdim)
    if p == 0:
        return sum(to(ne(x, 0), dtype=x.dtype), dim=dim, keepdim=keepdim)
    if p == 1:
        return sum(size, dim=dim, keepdim=keepdim)
    return pow_(sum(pow_(size, p), dim=dim, keepdim=keepdim), 1.0 / p)


def _mse_form(a: Any, b: Any, *, mean: bool) -> Any:
    dim = tuple(range(len(a.shape)))
    total = sum(square(a - b), dim=dim, keepdim=False)
    return total / count(a, dim) if mean else total


def _standardize_form(x: Any, *, dim: Dims, eps: float) -> Any:
    y = x - mean(x, dim=dim, keepdim=True)
    return y * rsqrt(mean(square(y), dim=dim, keepdim=True) + eps)


def _others_prod_form(x: Any, *, dim: int) -> Any:
    n = x.shape[dim]
    one = np.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x.dtype)
    if n == 1:
        return one
    before = cumprod(getitem(x, index=at(dim, slice(0, n - 1))), dim=dim)
    turned = flip(getitem(x, index=at(dim, slice(1, n))), dims=(dim,))
    after = flip(cumprod(turned, dim=dim), dims=(dim,))
    return cat(one, before, dim=dim) * cat(after, one, dim=dim)


def _pair_prod_form(g: Any, x: Any, *, dim: int) -> Any:
    # others[..., i, ..., j] leaves out i and j, where i stands for the result's place.
    n = x.shape[dim]
    rank = len(x.shape)
    full = (*x.shape[:dim], n, *x.shape[dim:])
    eye = np.eye(n, dtype=bool).reshape((1,) * dim + (n, n) + (1,) * (rank - dim - 1))
    each = where(eye, 1.0, expand(unsqueeze(x, dims=(dim,)), shape=full))
    terms = unsqueeze(g, dims=(dim,)) * others_prod(each, dim=dim + 1)
    return sum(where(eye, 0.0, terms), dim=(dim + 1,), keepdim=False)


def count_form(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    """Count the elements that are not zero, over operations."""
    return sum(to(truth(x), dtype=np.dtype(np.int64)), dim=dim, keepdim=keepdim)


def any_form(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    """Whether an element is not zero, over operations: the largest of truth values."""
    return gt(count_form(x, dim=dim, keepdim=keepdim), 0)


def all_form(x: Any, *, dim: Dims, keepdim: bool) -> Any:
    """Whether no element is zero, over operations: the smallest of truth values."""
    return eq(count_form(falsehood(x), dim=dim, keepdim=keepdim), 0)


# fmt: off
sum = linear("sum", large("reduce_loops.sum", _sum), reduces="add", sweep=KIND_SUM,
             x=lambda g, x_spec, dim, keepdim: spread(g, x_spec, dim, keepdim))
mean = linear(
    "mean", large("reduce_loops.mean", _mean),
    decomposition=lambda x, *, dim, keepdim: sum(x, dim=dim, keepdim=keepdim) / count(x, dim),
    sweep=KIND_MEAN,
    x=lambda g, x_spec, dim, keepdim: spread(g * share(x_spec, dim), x_spec, dim, keepdim),
)
cumsum = linear("cumsum", large("row_loops.cumsum", _cumsum),
                x=lambda g, dim: rcumsum(g, dim=dim), scans="add", axis="keep")
rcumsum: Op = linear("rcumsum", large("row_loops.rcumsum", _rcumsum),
                     x=lambda g, dim: cumsum(g, dim=dim), grad_name="Flip", scans="add")
prod = custom("prod", large("reduce_loops.prod", _prod), complex=ANALYTIC,
              x=_prod_vjp, reduces="mul", axis="reduce")
others_prod = custom(
    "others_prod", large("reduce_loops.others_prod", _others_prod), complex=ANALYTIC,
    x=lambda g, x, dim: pair_prod(g, x, dim=dim), grad_name="Prod",
    decomposition=_others_prod_form, kinds="fc",
)
pair_prod: Op = linear(
    "pair_prod", _pair_prod, complex=ANALYTIC,
    weights=lambda g, x, dim: pair_prod(g, x, dim=dim), x=_third,
    decomposition=_pair_prod_form, kinds="fc",
)
var = custom(
    "var", _var, complex=OWN, decomposition=_var_form, axis="reduce",
    x=lambda g, x, x_spec, dim, correction, keepdim:
        strong(spread(g, x_spec, dim, keepdim), 2.0 * _deviation(x, dim, correction)),
)
std = custom(
    "std", _std, complex=OWN, decomposition=_std_form, axis="reduce",
    x=lambda g, x, y, x_spec, dim, correction, keepdim:
        strong(spread(strong(g, where(eq(y, 0), 0.0, 1 / y)), x_spec, dim, keepdim),
               _deviation(x, dim, correction)),
    singular="The derivative at 0 is 0.",
)
amax = custom(
    "amax", lambda x, *, dim, keepdim: _largest(x, axis=dim, keepdims=keepdim), x=_ties,
    reduces="maximum", axis="reduce", decomposition=any_form, kinds="b",
    singular="Ties share the gradient.",
)
amin = custom(
    "amin", lambda x, *, dim, keepdim: _smallest(x, axis=dim, keepdims=keepdim), x=_ties,
    reduces="minimum", axis="reduce", decomposition=all_form, kinds="b",
    singular="Ties share the gradient.",
)
logsumexp = custom(
    "logsumexp", _logsumexp, complex=ANALYTIC, decomposition=_logsumexp_form,
    axis="reduce", to_float=True, doc="``log(sum(exp(x)))``, without overflow.",
    example=("tg.logsumexp(tg.tensor([1000.0, 1000.0]), dim=0)", "tensor(1000.6931)"),
    x=lambda g, x, y, x_spec, dim, keepdim:
        strong(spread(g, x_spec, dim, keepdim), exp(x - spread(y, x_spec, dim, keepdim))),
)
softmax = custom(
    "softmax", _softmax, decomposition=_softmax_form, axis="keep",
    ordered=True, doc="Exponentials along one dimension, scaled to the sum 1.",
    example=("tg.softmax(tg.zeros(2), dim=0)", "tensor([0.5000, 0.5000])"),
    x=lambda g, y, dim: strong(g - sum(strong(g, y), dim=dim, keepdim=True), y),
)
log_softmax = custom(
    "log_softmax", _log_softmax,
    decomposition=_log_softmax_form, axis="keep", ordered=True,
    doc="The logarithm of `softmax`, computed directly.",
    example=("tg.log_softmax(tg.zeros(2), dim=0)", "tensor([-0.6931, -0.6931])"),
    x=lambda g, y, dim: g - strong(sum(g, dim=dim, keepdim=True), exp(y)),
)
# Mean 0 and variance 1, to which `eps` is added.
standardize = custom(
    "standardize", _standardize, decomposition=_standardize_form, axis="keep", ordered=True,
    grad_name="NativeLayerNorm", x=_standardize_vjp,
)
# Of large arrays of one shape; others are made of a squared difference and a mean.
mse_loss = custom(
    "mse_loss", large("reduce_loops.mse_loss", _mse_loss), decomposition=_mse_form,
    a=lambda g, a, b, a_spec, mean: _mse_vjp(g, a, b, a_spec, mean),
    b=lambda g, a, b, b_spec, mean: _mse_vjp(g, b, a, b_spec, mean),
)
norm = custom("norm", _norm, decomposition=_norm_form,
              axis="reduce", x=_norm_vjp, grad_name="LinalgVectorNorm",
              singular="The derivative at 0 is 0.")
# fmt: on
