"""Factorizations of matrices: Cholesky, eigenvalues, QR, singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.one_operand import run_one
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.factor_fast import Index, decomposed
from tapegrad.functions.joining import cat
from tapegrad.functions.matrices import known, matrices, part, triangular, without_imaginary
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import matrix_transpose, narrow
from tapegrad.ops import factorizations
from tapegrad.ops import solve as ops
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Eig(NamedTuple):
    """Complex eigenvalues in no order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L for which ``L @ L.mH`` is A, symmetric and positive definite.

    With ``upper=True`` it is ``L.mH``.  Only the triangle of that side is read; the gradient is
    symmetric.

    >>> import tapegrad as tg
    >>> tg.linalg.cholesky(tg.tensor([[4.0]]))
    tensor([[2.]])
    """
    x = matrices(A, "linalg.cholesky", square=True)
    if not upper:
        return run_one(factorizations.cholesky, x, {})
    return matrix_transpose(run(factorizations.cholesky, (matrix_transpose(x),), {}))


@method
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of ``L @ L.mH``, where L is a factor from `linalg.cholesky`.

    >>> import tapegrad as tg
    >>> tg.cholesky_inverse(tg.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    x = matrices(L, "cholesky_inverse", square=True)
    one = wrap(np.eye(x._a.shape[-1], dtype=x._a.dtype))
    half = triangular(adjoint(x) if upper else x, one, False, False)
    return matmul(adjoint(half), half)


def recorded(x: Tensor) -> bool:
    """Whether what is made of it will be differentiated."""
    return x.requires_grad and current.tape.enabled


def _upper(UPLO: Any, name: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"`{name}`: UPLO is 'L' or 'U', the triangle that is read, got {UPLO!r}")
    return str(UPLO) in "Uu"


def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of a symmetric matrix, of which one triangle is read.

    The gradient is symmetric.  The sign of an eigenvector is arbitrary, and where eigenvalues are
    equal the gradient of their eigenvectors is not defined.

    >>> import tapegrad as tg
    >>> tg.linalg.eigh(tg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    x, upper = matrices(A, "linalg.eigh", square=True), _upper(UPLO, "linalg.eigh")
    if not recorded(x) and known(x):
        return Eigh(*map(wrap, factorizations.eigenpairs(x._a, upper)))
    values, vectors = decomposed(factorizations.eigh, x, {"upper": upper}, _values_and_vectors)
    return Eigh(without_imaginary(values), vectors)


def _values_and_vectors(rows: int) -> tuple[Index, ...]:
    return (..., -1), (..., slice(None, -1))


def _values(rows: int) -> tuple[Index, ...]:
    return ((..., -1),)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, in ascending order.

    >>> import tapegrad as tg
    >>> tg.linalg.eigvalsh(tg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    x, upper = matrices(A, "linalg.eigvalsh", square=True), _upper(UPLO, "linalg.eigvalsh")
    if not recorded(x) and known(x):
        return wrap(factorizations.eigenvalues(x._a, upper))
    (values,) = decomposed(factorizations.eigh, x, {"upper": upper}, _values)
    return without_imaginary(values)


def eig(A: Tensor) -> Eig:
    """Eigenvalues and eigenvectors of any square matrix, as complex numbers.

    The vectors have the length 1 and an arbitrary phase: what depends on it cannot be
    differentiated.  For a symmetric matrix use `linalg.eigh`.

    >>> import tapegrad as tg
    >>> abs(tg.linalg.eig(tg.tensor([[0.0, 2.0], [-2.0, 0.0]])).eigenvalues).round()
    tensor([2., 2.])
    """
    x = matrices(A, "linalg.eig", square=True)
    whole = run(factorizations.eig, (x,), {})
    return Eig(part(whole, -1), part(whole, slice(None, -1)))


def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of any square matrix, as complex numbers.

    >>> import tapegrad as tg
    >>> abs(tg.linalg.eigvals(tg.tensor([[0.0, 2.0], [-2.0, 0.0]]))).round()
    tensor([2., 2.])
    """
    x = matrices(A, "linalg.eigvals", square=True)
    return part(run(factorizations.eig, (x,), {}), -1)


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """A matrix with orthonormal columns times an upper triangular one.

    ``mode="r"`` gives R alone (and an empty Q).  ``mode="complete"`` completes Q to a square
    matrix; of more rows than columns that cannot be differentiated.

    >>> import tapegrad as tg
    >>> tg.linalg.qr(tg.tensor([[-2.0, 1.0], [0.0, 1.0]])).R
    tensor([[-2.,  1.],
            [ 0.,  1.]])
    """
    x = matrices(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"`linalg.qr`: mode is 'reduced', 'complete' or 'r', got {mode!r}")
    m, n = x._a.shape[-2:]
    if mode == "r" and recorded(x):
        raise RuntimeError(
            "`linalg.qr`: mode='r' cannot be differentiated, for Q is needed: use mode='reduced'"
        )
    if mode == "complete" and m > n:
        if recorded(x):
            raise RuntimeError(
                f"`linalg.qr`: mode='complete' cannot be differentiated for the shape "
                f"{x._a.shape}, which has more rows than columns: use mode='reduced'"
            )
        return QR(*map(wrap, np.linalg.qr(x._a, "complete")))
    if m >= n and mode != "r" and not recorded(x) and known(x):
        return QR(*map(wrap, factorizations.orthogonal_triangular(x._a)))
    # The first m columns of a wide matrix determine Q.
    q, r = decomposed(factorizations.qr, narrow(x, -1, 0, m) if m < n else x, {}, _q_and_r)
    if m < n:
        r = cat([r, matmul(adjoint(q), narrow(x, -1, m, n - m))], dim=-1)
    return QR(wrap(np.zeros(0, x._a.dtype)) if mode == "r" else q, r)


def _q_and_r(rows: int) -> tuple[Index, ...]:
    return (..., slice(None, rows), slice(None)), (..., slice(rows, None), slice(None))


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The singular value decomposition: A is ``U @ diag(S) @ Vh``.

    As in PyTorch U and Vh are square unless ``full_matrices=False``.  The vectors that complete a
    basis are arbitrary: what is made of them can be differentiated if it is the same for all
    choices, as their projector is, and else `backward` refuses.

    >>> import tapegrad as tg
    >>> tg.linalg.svd(tg.tensor([[3.0], [4.0]]), full_matrices=False).S
    tensor([5.])
    """
    x = matrices(A, "linalg.svd")
    _no_driver(driver, "linalg.svd")
    m, n = x._a.shape[-2:]
    if not recorded(x) and known(x):
        return SVD(*map(wrap, ops.singular_values(x._a, "svd", full=full_matrices)))
    u, s, v = decomposed(factorizations.svd, x, {}, _vectors_and_sizes)
    if full_matrices and m > n:
        u = run(factorizations.completed, (u,), {})
    if full_matrices and m < n:
        v = run(factorizations.completed, (v,), {})
    return SVD(u, without_imaginary(s), adjoint(v))


def _vectors_and_sizes(rows: int) -> tuple[Index, ...]:
    every = slice(None)
    return (
        (..., slice(None, rows), every), (..., rows, every), (..., slice(rows + 1, None), every)
    )  # fmt: skip


def _sizes(rows: int) -> tuple[Index, ...]:
    return ((..., rows, slice(None)),)


def _no_driver(driver: str | None, name: str) -> None:
    if driver is not None:
        raise RuntimeError(
            f"`{name}`: a driver is chosen on a GPU alone, got {driver!r}: leave it out"
        )


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, in descending order.

    >>> import tapegrad as tg
    >>> tg.linalg.svdvals(tg.tensor([[3.0], [4.0]]))
    tensor([5.])
    """
    x = matrices(A, "linalg.svdvals")
    _no_driver(driver, "linalg.svdvals")
    if not recorded(x) and known(x):
        return wrap(ops.singular_values(x._a, "svd", vectors=False))
    return values_beside_vectors(x)


def values_beside_vectors(x: Tensor) -> Tensor:
    """The singular values, computed with the vectors that a gradient needs.

    They differ in the last digits from those that are computed alone.
    """
    (sizes,) = decomposed(factorizations.svd, x, {}, _sizes)
    return without_imaginary(sizes)
