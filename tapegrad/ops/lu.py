"""Factorizations by elimination: LU with row exchanges, and L D L' of symmetric matrices.

A row has one result: the exchanges stand in a column of their own beside the factors, counted from
1 as LAPACK does; `factorizations.part` takes both out.  `swap_rows` carries them out, and is
linear, so solving with the factors is a composition of it and of `solve_triangular`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_FACTOR
from tapegrad.ops.complex_parts import conjugate
from tapegrad.ops.core import ANALYTIC, NotDifferentiable, Op, custom, linear
from tapegrad.ops.factorizations import columns, right_solve, rows
from tapegrad.ops.linalg import product, transposed
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.shape import cat, getitem, tril, triu
from tapegrad.ops.solve import LinAlgError, solve_triangular

EXCHANGES = NotDifferentiable("which rows are exchanged is constant almost everywhere")
BLOCKS = NotDifferentiable("PyTorch has no derivative of it either: `linalg.solve` has one")


def _lu(x: Any, *, check: bool) -> Any:
    m, n = x.shape[-2:]
    out = np.zeros((*x.shape[:-1], n + 1), x.dtype)
    if not x.size:
        return out
    getrf = routine("getrf", x.dtype)
    for at in np.ndindex(*x.shape[:-2]) if x.ndim > 2 else ((),):
        out[at][:, :n], pivots, info = getrf(x[at])
        out[at][: min(m, n), n] = pivots + 1
        if info > 0 and check:
            place = f"matrix at {at} of the batch" if at else "matrix"
            raise LinAlgError(
                f"`linalg.lu_factor`: the {place} of shape {x.shape} is singular: element {info} "
                "of the diagonal of U is zero, and `lu_solve` would divide by it; "
                "`linalg.lu_factor_ex` and `linalg.lu` return the factors all the same"
            )
    return out


def _lu_vjp(g: Any, y: Any, x_spec: Any) -> Any:
    # With B the rows of x in their new order and F = inv(L) dB inv(U), square and as large as the
    # smaller side allows: dL = L tril(F, -1) and dU = triu(F) U.  What stands beside that square
    # (B = L U2 in a wide matrix, B = L2 U in a tall one) moves with both.
    m, n = x_spec.shape[-2:]
    k = min(m, n)
    square = columns(rows(y, 0, k), 0, k)
    slope = columns(rows(g, 0, k), 0, k)
    unit = tril(square, diagonal=-1) + np.eye(k, dtype=x_spec.dtype)
    below = product(transposed(unit), tril(slope, diagonal=-1))
    above = product(triu(slope, diagonal=0), transposed(triu(square, diagonal=0)))
    last = len(x_spec.shape)
    if n > m:
        right = columns(g, k, n)
        below = below - product(right, transposed(columns(y, k, n)))
    if m > n:
        under = columns(rows(g, k, None), 0, n)
        above = above - product(transposed(columns(rows(y, k, None), 0, n)), under)
    out = right_solve(tril(below, diagonal=-1) + triu(above, diagonal=0), square)
    if n > m:
        out = cat(out, right, dim=last - 1)
    out = solve_triangular(transposed(square), out, upper=True, unit=True, strong=True)
    if m > n:
        out = cat(out, right_solve(under, square), dim=last - 2)
    return swap_rows(out, getitem(y, index=(..., slice(0, k), n)), inverse=True)


def _order(pivots: Any, m: int) -> Any:
    """Where each row comes from, when one exchange is made after the other."""
    shape, k = pivots.shape[:-1], pivots.shape[-1]
    count = prod(shape)
    if count == 1:
        order = list(range(m))
        for here, there in enumerate(pivots.real.reshape(k).astype(np.int64).tolist()):
            order[here], order[there - 1] = order[there - 1], order[here]
        return np.array(order, np.int64).reshape(*shape, m)
    found = np.tile(np.arange(m), (count, 1))
    every = np.arange(count)
    for here, there in enumerate(pivots.real.reshape(count, k).astype(np.int64).T - 1):
        found[every, here], found[every, there] = found[every, there], found[every, here]
    return found.reshape(*shape, m)


def _swap_rows(x: Any, pivots: Any, *, inverse: bool) -> Any:
    order = _order(pivots, x.shape[-2])
    order = np.argsort(order, -1) if inverse else order
    if order.ndim == 1:
        return x[..., order, :]
    order = order[..., None]
    batch = np.broadcast_shapes(x.shape[:-2], order.shape[:-2])
    full = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    return np.take_along_axis(full, np.broadcast_to(order, (*batch, *order.shape[-2:])), -2)


def _ldl(x: Any, *, check: bool, hermitian: bool) -> Any:
    """The factor of LAPACK's `sytrf` or `hetrf`, of the lower triangle, and its exchanges."""
    n = x.shape[-1]
    out = np.zeros((*x.shape[:-1], n + 1), x.dtype)
    if not x.size:
        return out
    trf = routine("hetrf" if hermitian else "sytrf", x.dtype)
    for at in np.ndindex(*x.shape[:-2]):
        factor, pivots, info = trf(x[at], lower=1)
        if info > 0 and check:
            raise LinAlgError(
                f"`linalg.ldl_factor`: a matrix of the input of shape {x.shape} is singular: the "
                f"diagonal block {info} of D is zero; `linalg.ldl_factor_ex` returns the factors"
            )
        out[at][:, :n], out[at][:, n] = np.tril(factor), pivots
    return out


def _ldl_solve(b: Any, x: Any, pivots: Any, *, hermitian: bool) -> Any:
    """`sytrs` or `hetrs`."""
    batch = np.broadcast_shapes(x.shape[:-2], b.shape[:-2])
    out = np.array(np.broadcast_to(b, (*batch, *b.shape[-2:])))
    if not out.size:
        return out
    trs = routine("hetrs" if hermitian else "sytrs", x.dtype)
    n = x.shape[-1]
    xs, ps = np.broadcast_to(x, (*batch, n, n)), np.broadcast_to(pivots, (*batch, n))
    for at in np.ndindex(*batch):
        out[at] = trs(xs[at], ps[at], out[at], lower=1)[0]
    return out


def _ldl_solve_transpose(g: Any, x: Any, pivots: Any, hermitian: bool) -> Any:
    # A symmetric matrix is its own transpose, a Hermitian one the conjugate of it.
    if not hermitian:
        return ldl_solve(g, x, pivots, hermitian=False)
    return conjugate(ldl_solve(conjugate(g), x, pivots, hermitian=True))


lu: Op = custom(
    "lu", _lu, complex=ANALYTIC, x=_lu_vjp, grad_name="LinalgLuFactorEx", sweep=KIND_FACTOR,
    lapack=True,
)  # fmt: skip
swap_rows: Op = linear(
    "swap_rows",
    _swap_rows,
    x=lambda g, pivots, inverse: swap_rows(g, pivots, inverse=not inverse),
    pivots=EXCHANGES,
    lapack=True,
)
ldl: Op = custom("ldl", _ldl, x=BLOCKS, lapack=True)
ldl_solve: Op = linear(
    "ldl_solve", _ldl_solve, b=_ldl_solve_transpose, x=BLOCKS,
    pivots=EXCHANGES, grad_name="LinalgLdlSolve", complex=ANALYTIC,
    lapack=True,
)  # fmt: skip
