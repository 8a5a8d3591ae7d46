"""Decompose compound operations into those that loops and matrix products compute.

A form is a function over Tensors with the operands and parameters of its row; it computes what the
row's forward computes, by the same formula.  Derivatives do not see it: a gradient comes from the
row's own rule, and what that rule computes is expanded in turn.  No operand is empty: such records
are constants before a form is asked.  A form that returns None does not serve these parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.passes import bool_decompositions
from tapegrad.ops import elementwise as e
from tapegrad.ops import reduce as r
from tapegrad.ops import scan, special, tiling
from tapegrad.ops import shape as s
from tapegrad.ops.core import Op
from tapegrad.ops.einsum import contracted, contraction, einsum
from tapegrad.ops.factorizations import part
from tapegrad.ops.index import HOLE, at, index, masked_fill, unindex
from tapegrad.ops.linalg import matmul, product

Dims = tuple[int, ...]


# -- products of all but some ----------------------------------------------------------------------


def _others_prod(x: Any, *, dim: int) -> Any:
    n = x.shape[dim]
    one = np.ones((*x.shape[:dim], 1, *x.shape[dim + 1 :]), x.dtype)
    if n == 1:
        return one
    before = scan.cumprod(s.getitem(x, index=at(dim, slice(0, n - 1))), dim=dim)
    turned = s.flip(s.getitem(x, index=at(dim, slice(1, n))), dims=(dim,))
    after = s.flip(scan.cumprod(turned, dim=dim), dims=(dim,))
    return s.cat(one, before, dim=dim) * s.cat(after, one, dim=dim)


def _pair_prod(g: Any, x: Any, *, dim: int) -> Any:
    # others[..., i, ..., j] leaves out i and j, where i stands for the result's place.
    n = x.shape[dim]
    rank = len(x.shape)
    wide = (*x.shape[:dim], n, *x.shape[dim:])
    eye = np.eye(n, dtype=bool).reshape((1,) * dim + (n, n) + (1,) * (rank - dim - 1))
    each = e.where(eye, 1.0, s.expand(s.unsqueeze(x, dims=(dim,)), shape=wide))
    terms = s.unsqueeze(g, dims=(dim,)) * _others_prod(each, dim=dim + 1)
    return r.sum(e.where(eye, 0.0, terms), dim=(dim + 1,), keepdim=False)


# -- elements laid out anew ------------------------------------------------------------------------


def _below(x: Any, diagonal: int) -> np.ndarray:
    """Where the elements of matrices lie on a diagonal or below it."""
    rows, columns = x.shape[-2:]
    return np.tri(rows, columns, diagonal, dtype=bool)


def _tril(x: Any, *, diagonal: int) -> Any:
    return e.where(_below(x, diagonal), x, np.zeros((), x.dtype))


def _triu(x: Any, *, diagonal: int) -> Any:
    return e.where(_below(x, diagonal - 1), np.zeros((), x.dtype), x)


def _repeat(x: Any, *, reps: Dims) -> Any:
    around = s.unsqueeze(x, dims=tuple(range(0, 2 * len(reps), 2)))
    shape = tuple([n for pair in zip(reps, x.shape, strict=True) for n in pair])
    whole = tuple([n * k for n, k in zip(x.shape, reps, strict=True)])
    return s.reshape(s.expand(around, shape=shape), shape=whole)


def _roll(x: Any, *, shifts: Dims, dims: Dims) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        n = x.shape[dim]
        if shift % n:
            low = s.getitem(x, index=at(dim, slice(0, n - shift % n)))
            high = s.getitem(x, index=at(dim, slice(n - shift % n, n)))
            x = s.cat(high, low, dim=dim)
    return s.clone(x)


def _fold(g: Any, *, shape: Dims, dim: int, size: int, step: int) -> Any:
    stop = (g.shape[dim] - 1) * step + 1
    total = None
    for k in range(size):
        index = at(dim, slice(k, k + stop, step))
        part = s.embed(s.getitem(g, index=(..., k)), shape=shape, index=index)
        total = part if total is None else total + part
    return total


def _restride(x: Any, *, size: Dims, stride: Dims, offset: int, layout: Any) -> Any:
    where = s.strided_map(size, stride, offset, layout)
    found = index(s.reshape(x, shape=(-1,)), np.maximum(where, 0), plan=(HOLE,))
    return found if (where >= 0).all() else e.where(where >= 0, found, np.zeros((), x.dtype))


def _as_strided(x: Any, *, size: Dims, stride: Dims, offset: int, layout: Any) -> Any:
    if (s.strided_map(size, stride, offset, layout) < 0).any():
        return None  # it reads memory that its operand does not show
    return _restride(x, size=size, stride=stride, offset=offset, layout=layout)


def _unstride(g: Any, *, shape: Dims, size: Dims, stride: Dims, offset: int, layout: Any) -> Any:
    where = s.strided_map(size, stride, offset, layout)
    g = e.where(where >= 0, g, np.zeros((), g.dtype))
    flat = unindex(g, np.maximum(where, 0), shape=(math.prod(shape),), plan=(HOLE,))
    return s.reshape(flat, shape=shape)


def _only_view(g: Any, *, shape: Dims, chain: Any) -> Any:
    if not s.overlaps(chain):
        return None  # it is written to the place where it lies
    places = s.places(shape, chain)
    if (places < 0).any():
        return None  # memory that the operand does not show
    flat = unindex(g, np.ascontiguousarray(places), shape=(math.prod(shape),), plan=(HOLE,))
    return s.reshape(flat, shape=shape)


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return e.where(mask, s.to(value, dtype=x.dtype), x)


def _part(x: Any, *, index: Any) -> Any:
    return s.clone(s.getitem(x, index=index))


# -- contractions ----------------------------------------------------------------------------------


def _einsum(*xs: Any, terms: Any, out: str) -> Any:
    return contracted(xs, terms, out, e.mul, matmul)


def _contraction(*xs: Any, terms: Any, out: str) -> Any:
    return contracted(xs, terms, out, e.exact, product)


# -- elementwise -----------------------------------------------------------------------------------


def _xlogy(a: Any, b: Any) -> Any:
    return e.where(e.mul(e.eq(a, 0), e.eq(b, b)), 0.0, a * e.log(b))


def _xlog1py(a: Any, b: Any) -> Any:
    return e.where(e.mul(e.eq(a, 0), e.eq(b, b)), 0.0, a * e.log1p(b))


def _entr(x: Any) -> Any:
    return e.where(e.eq(x, 0), 0.0, e.where(e.lt(x, 0), -math.inf, -x * e.log(x)))


def _logit(x: Any) -> Any:
    # Near one half log(x / (1 - x)) loses digits.
    off = x - 0.5
    near = e.log1p(off + off) - e.log1p(-(off + off))
    return e.where(e.lt(e.abs(off), 0.2), near, e.log(x / (1.0 - x)))


Form = Callable[..., Any]

# Of numbers: the result is one that is computed, so a float.
FLOATS: dict[Op, Form] = {
    r.others_prod: _others_prod, r.pair_prod: _pair_prod, einsum: _einsum,
    contraction: _contraction, special.xlogy: _xlogy, special.xlog1py: _xlog1py,
    special.entr: _entr, special.logit: _logit,
}  # fmt: skip
# Of anything.
FORMS: dict[Op, Form] = {
    s.tril: _tril, s.triu: _triu, tiling.repeat: _repeat, tiling.roll: _roll, s.fold: _fold,
    masked_fill: _masked_fill, part: _part, s.as_strided: _as_strided, s.restride: _restride,
    s.unstride: _unstride, s.only_view: _only_view, **bool_decompositions.FORMS,
}  # fmt: skip


def form_of(op: Op, kind: str) -> Form | None:
    """The form of an operation whose result has a dtype of some kind, if it has one."""
    if kind == "b" and op in bool_decompositions.OF_BOOLS:
        return bool_decompositions.OF_BOOLS[op]
    found = FORMS.get(op)
    return FLOATS.get(op) or op.decomposition if found is None and kind == "f" else found
