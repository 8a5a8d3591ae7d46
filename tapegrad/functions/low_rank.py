"""Approximations of low rank by the products of a matrix with random vectors."""

from __future__ import annotations

from tapegrad.functions.arguments import as_input
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.factorizations import qr, svd
from tapegrad.functions.products import matmul
from tapegrad.functions.random import randn
from tapegrad.functions.reductions import mean
from tapegrad.functions.shapes import broadcast_to
from tapegrad.tensor import Tensor

Triple = tuple[Tensor, Tensor, Tensor]


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> Triple:
    """Singular values and vectors of a matrix, or of ``A - M``, of which about `q` are not zero.

    ``U @ diag(S) @ V.mH`` is near the matrix, and equal to it if its rank is at most `q`. The
    random vectors are those of the default generator; `niter` iterations turn them towards the
    largest singular vectors.

    >>> import tapegrad as tg
    >>> A = tg.outer(tg.tensor([3.0, 4.0]), tg.tensor([1.0, 0.0]))
    >>> U, S, V = tg.svd_lowrank(A, 1)
    >>> S, tg.allclose(U @ tg.diag(S) @ V.mH, A)
    (tensor([5.]), True)
    """
    name = "svd_lowrank"
    x = as_input(A, name)
    if x._a.ndim < 2:
        raise ValueError(f"`{name}` takes matrices, got the shape {x._a.shape}")
    if x._a.dtype.kind not in "fc":
        raise RuntimeError(f"`{name}` takes floating-point numbers, got {x.dtype}")
    x = x if M is None else x - broadcast_to(as_input(M, name), x._a.shape)
    tall = x._a.shape[-2] >= x._a.shape[-1]
    x = x if tall else adjoint(x)
    basis = _basis(x, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = svd(matmul(adjoint(basis), x), full_matrices=False)
    left, right = matmul(basis, u), adjoint(vh)
    return (left, s, right) if tall else (right, s, left)


def _basis(x: Tensor, q: int, niter: int) -> Tensor:
    """An orthonormal basis that nearly spans the columns (Halko and others, 2009, 4.4)."""
    found = qr(matmul(x, randn(x._a.shape[-1], q, dtype=x.dtype)))[0]
    for _ in range(niter):
        found = qr(matmul(adjoint(x), found))[0]
        found = qr(matmul(x, found))[0]
    return found


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Triple:
    """`svd_lowrank` of a table of examples, one a row, from which their mean is taken.

    The columns of the last result are the principal directions, and ``S**2 / (m - 1)`` the
    variances along them.

    >>> import tapegrad as tg
    >>> A = tg.tensor([[3.0, 5.0], [-3.0, 5.0]])
    >>> tg.pca_lowrank(A, 1)[1]
    tensor([4.2426])
    """
    name = "pca_lowrank"
    x = as_input(A, name)
    if x._a.ndim < 2:
        raise ValueError(f"`{name}` takes matrices, got the shape {x._a.shape}")
    if x._a.dtype.kind not in "fc":
        raise RuntimeError(f"`{name}` takes floating-point numbers, got {x.dtype}")
    least = min(x._a.shape[-2:])
    q = min(6, least) if q is None else q
    if not 0 <= q <= least:
        raise ValueError(f"`{name}`: q is from 0 to {least}, got {q}")
    if niter < 0:
        raise ValueError(f"`{name}`: niter is not negative, got {niter}")
    return svd_lowrank(x - mean(x, -2, True) if center else x, q, niter)
