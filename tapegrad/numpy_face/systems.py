"""Least squares, condition and rank, and equations of tensors, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.factorizations import eigvalsh, qr, svdvals, values_beside_vectors
from tapegrad.functions.matrices import inv, pinv, solve, solve_triangular
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import movedim, narrow, reshape, squeeze
from tapegrad.numpy_face.common import floating, handles, promoted, tensor
from tapegrad.tensor import Tensor, wrap


@handles(np.linalg.lstsq)
def lstsq_(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`np.linalg.lstsq`: the solution, the squares that are left, the rank, singular values."""
    x, y = (floating(t) for t in promoted(a, b))
    m, n = _fits(x, y)
    sizes = svdvals(x)
    unit = float(np.finfo(x._a.dtype).eps)
    least = unit * max(m, n) if rcond is None else float(rcond) if rcond >= 0 else unit
    rank = _rank(sizes.detach(), ew.mul(r.amax(sizes.detach(), (0,)), least))
    right = reshape(y, (m, 1)) if y._a.ndim == 1 else y
    known = not isinstance(rank._a, AbstractArray)
    full = known and int(rank._a) == min(m, n)
    found = _solution(x, right, least, full)
    if m > n and (full or not known):
        left = r.sum(ew.square(ew.abs(right - matmul(x, found))), 0)
    else:
        left = wrap(np.zeros(0, x._a.dtype))
    return (squeeze(found, 1) if y._a.ndim == 1 else found), left, rank, sizes


def _fits(x: Tensor, y: Tensor) -> tuple[int, int]:
    if x._a.ndim != 2 or y._a.ndim not in (1, 2) or y._a.shape[0] != x._a.shape[0]:
        raise np.linalg.LinAlgError(
            f"`np.linalg.lstsq` takes a matrix and a vector or matrix of as many rows, got the "
            f"shapes {x._a.shape} and {y._a.shape}"
        )
    m, n = x._a.shape
    if not m or not n:
        raise np.linalg.LinAlgError(f"`np.linalg.lstsq`: no equations in the shape {x._a.shape}")
    return m, n


def _solution(x: Tensor, right: Tensor, least: float, full: bool) -> Tensor:
    """By orthogonal vectors; where the rank is not full, or not known, by the pseudo-inverse."""
    if not full:
        return matmul(pinv(x, rtol=least), right)
    m, n = x._a.shape
    if m >= n:
        q, triangle = qr(x)
        return solve_triangular(triangle, matmul(adjoint(q), right), upper=True)
    q, triangle = qr(adjoint(x))
    return matmul(q, solve_triangular(adjoint(triangle), right, upper=False))


def _rank(sizes: Tensor, least: Any) -> Tensor:
    return r.sum(ew.gt(sizes, least), -1)


@handles(np.linalg.matrix_rank)
def _matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    x = floating(tensor(A)).detach()
    if tol is not None and rtol is not None:
        raise ValueError("`np.linalg.matrix_rank`: give `tol` or `rtol`, not both")
    if x._a.ndim < 2:
        return r.any(ew.ne(x, 0)).to(np.int64)
    sizes = ew.abs(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is not None:
        least = tensor(tol)
        return _rank(sizes, reshape(least, (*least._a.shape, 1)))
    if rtol is None:
        rtol = max(x._a.shape[-2:]) * np.finfo(x._a.dtype).eps
    part = tensor(rtol)
    return _rank(sizes, r.amax(sizes, (-1,), keepdim=True) * reshape(part, (*part._a.shape, 1)))


@handles(np.linalg.cond)
def _cond(x: Any, p: Any = None) -> Any:
    t = floating(tensor(x))
    if t._a.ndim < 2 or not t._a.size:
        raise np.linalg.LinAlgError(
            f"`np.linalg.cond` takes matrices with elements, got the shape {t._a.shape}"
        )
    if p in (None, 2, -2):
        sizes = values_beside_vectors(t)
        first, last = (squeeze(narrow(sizes, -1, k, 1), -1) for k in (0, sizes._a.shape[-1] - 1))
        return last / first if p == -2 else first / last
    norms: tuple[Any, Any] = tuple(np.linalg.norm(part, p, axis=(-2, -1)) for part in (t, inv(t)))
    return norms[0] * norms[1]


@handles(np.linalg.tensorsolve)
def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    x, y = (floating(t) for t in promoted(a, b))
    if axes is not None:
        x = movedim(x, tuple(axes), tuple(range(x._a.ndim - len(axes), x._a.ndim)))
    shape = x._a.shape[-(x._a.ndim - y._a.ndim) :]
    n = int(np.prod(shape, dtype=int))
    if x._a.size != n * n or y._a.size != n:
        raise np.linalg.LinAlgError(
            f"`np.linalg.tensorsolve`: as many equations as unknowns are needed, got the shapes "
            f"{x._a.shape} and {y._a.shape}"
        )
    return reshape(solve(reshape(x, (n, n)), reshape(y, (n,))), shape)


@handles(np.linalg.tensorinv)
def _tensorinv(a: Any, ind: int = 2) -> Tensor:
    x = floating(tensor(a))
    if ind <= 0:
        raise ValueError(f"`np.linalg.tensorinv`: ind must be positive, got {ind}")
    first, last = x._a.shape[:ind], x._a.shape[ind:]
    n = int(np.prod(last, dtype=int))
    if x._a.size != n * n:
        raise np.linalg.LinAlgError(
            f"`np.linalg.tensorinv`: as many elements before the dimension {ind} as after it are "
            f"needed, got the shape {x._a.shape}"
        )
    return reshape(inv(reshape(x, (n, n))), (*last, *first))
