"""Eigenvalues and eigenvectors of matrices, with SciPy's arguments.

>>> import tapegrad as tg
>>> stiffness, mass = tg.tensor([[4.0, 0.0], [0.0, 3.0]]), tg.tensor([[4.0, 0.0], [0.0, 1.0]])
>>> tg.scipy.linalg.eigh(stiffness, mass, eigvals_only=True)
tensor([1., 3.])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import factorizations
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.diagonals import diag, tril, triu
from tapegrad.functions.matrices import solve, solve_triangular
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import narrow
from tapegrad.numpy_face.common import floating, promoted
from tapegrad.scipy.either import for_tensors
from tapegrad.tensor import Tensor, tensor_of

_own = for_tensors("scipy.linalg")


@_own
def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False,
    overwrite_a: bool = False, overwrite_b: bool = False, type: int = 1, check_finite: bool = True,
    subset_by_index: Any = None, subset_by_value: Any = None, driver: str | None = None,
) -> Any:  # fmt: skip
    """The eigenvalues, in rising order, and eigenvectors of a symmetric or Hermitian matrix.

    With a positive definite `b` those of ``a v = w b v``, or of the other equations that `type`
    names.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigh(tg.tensor([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True)
    tensor([1., 3.])
    """
    if subset_by_value is not None:
        raise TypeError(
            "`scipy.linalg.eigh` of a Tensor has no argument 'subset_by_value', for how many there "
            "are depends on the values: use `subset_by_index`"
        )
    if b is not None and type not in (1, 2, 3):
        raise ValueError(f"`scipy.linalg.eigh`: type is 1, 2 or 3, got {type!r}")
    x, factor = (a if isinstance(a, Tensor) else promoted(a)[0]), None
    if b is None:
        x = floating(x)
    else:
        x, weights = (floating(t) for t in promoted(a, b))
        factor = factorizations.cholesky(_whole(weights, lower))
        x = _whole(x, lower)
        x = _between(factor, x) if type == 1 else matmul(matmul(adjoint(factor), x), factor)
    half = "L" if lower else "U"
    if eigvals_only:
        return _chosen(factorizations.eigvalsh(x, half), subset_by_index)
    values, vectors = factorizations.eigh(x, half)
    vectors = _chosen(vectors, subset_by_index)
    if factor is not None:
        vectors = (
            matmul(factor, vectors)
            if type == 3
            else solve_triangular(adjoint(factor), vectors, upper=True)
        )
    return _chosen(values, subset_by_index), vectors


@_own
def eigvalsh(a: Any, b: Any = None, **kwargs: Any) -> Any:
    """The eigenvalues of `eigh` alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigvalsh(tg.eye(2))
    tensor([1., 1.])
    """
    return eigh(a, b, eigvals_only=True, **kwargs)


@_own
def eig(
    a: Any, b: Any = None, left: bool = False, right: bool = True, overwrite_a: bool = False,
    overwrite_b: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False,
) -> Any:  # fmt: skip
    """The eigenvalues and eigenvectors of any square matrix, or of ``a v = w b v``.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eig(tg.tensor([[0.0, 1.0], [-1.0, 0.0]]))[0].imag
    tensor([ 1., -1.])
    """
    if left or homogeneous_eigvals:
        raise TypeError(
            "`scipy.linalg.eig` of a Tensor has neither 'left' eigenvectors, which are those of "
            "the adjoint, nor 'homogeneous_eigvals'"
        )
    x = floating(tensor_of(a, "scipy.linalg.eig"))
    if b is not None:
        weights = floating(tensor_of(b, "scipy.linalg.eig"))
        kind = np.result_type(x._a.dtype, weights._a.dtype)
        x = solve(weights.to(kind), x.to(kind))
    return tuple(factorizations.eig(x)) if right else factorizations.eigvals(x)


@_own
def eigvals(a: Any, b: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The eigenvalues of `eig` alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigvals(tg.tensor([[0.0, 1.0], [-1.0, 0.0]])).imag
    tensor([ 1., -1.])
    """
    return eig(a, b, right=False)


@_own
def eig_banded(
    a_band: Any, lower: bool = False, eigvals_only: bool = False, overwrite_a_band: bool = False,
    select: Any = "a", select_range: Any = None, max_ev: int = 0, check_finite: bool = True,
) -> Any:  # fmt: skip
    """The eigenvalues, in rising order, and eigenvectors of a Hermitian matrix in banded form.

    >>> import tapegrad as tg
    >>> bands = tg.tensor([[2.0, 2.0], [1.0, 0.0]])
    >>> tg.scipy.linalg.eig_banded(bands, lower=True, eigvals_only=True)
    tensor([1., 3.])
    """
    bands = tensor_of(a_band, "scipy.linalg.eig_banded")
    if bands._a.ndim != 2:
        raise ValueError(
            f"`scipy.linalg.eig_banded`: the bands are rows of a matrix, got {bands._a.shape}"
        )
    count, n = bands._a.shape
    x = diag(bands[0 if lower else -1])
    for k in range(1, min(count, n)):
        half = diag(bands[k, : n - k], -k) if lower else diag(bands[count - 1 - k, k:], k)
        x = x + half + adjoint(half)
    return eigh(x, eigvals_only=eigvals_only, subset_by_index=_selected(select, select_range))


def _selected(select: Any, among: Any) -> Any:
    """Which eigenvalues are meant, by their places."""
    if select in ("a", "all", 0):
        return None
    if select in ("i", "index", 2):
        return among
    raise ValueError(f"`scipy.linalg`: Tensors take select='a' or select='i', got {select!r}")


@_own
def eigvals_banded(a_band: Any, lower: bool = False, **kwargs: Any) -> Any:
    """The eigenvalues of `eig_banded` alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigvals_banded(tg.tensor([[2.0, 2.0], [1.0, 0.0]]), lower=True)
    tensor([1., 3.])
    """
    return eig_banded(a_band, lower, eigvals_only=True, **kwargs)


@_own
def eigh_tridiagonal(
    d: Any, e: Any, eigvals_only: bool = False, select: Any = "a", select_range: Any = None,
    check_finite: bool = True, tol: float = 0.0, lapack_driver: str = "auto",
) -> Any:  # fmt: skip
    """The eigenvalues and eigenvectors of a symmetric matrix with a diagonal and one beside it.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigh_tridiagonal(tg.tensor([2.0, 2.0]), [1.0], eigvals_only=True)
    tensor([1., 3.])
    """
    middle, beside = promoted(d, e)
    x = diag(middle) + diag(beside, 1) + diag(beside, -1)
    return eigh(x, eigvals_only=eigvals_only, subset_by_index=_selected(select, select_range))


@_own
def eigvalsh_tridiagonal(d: Any, e: Any, **kwargs: Any) -> Any:
    """The eigenvalues of `eigh_tridiagonal` alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigvalsh_tridiagonal(tg.tensor([2.0, 2.0]), [1.0])
    tensor([1., 3.])
    """
    return eigh_tridiagonal(d, e, eigvals_only=True, **kwargs)


def _whole(x: Tensor, lower: bool) -> Tensor:
    """A Hermitian matrix by one of its halves.

    The gradient goes to both halves alike, as that of `tapegrad.linalg.eigh` does.
    """
    half, rest = (tril(x), tril(x, -1)) if lower else (triu(x), triu(x, 1))
    return x + (half + adjoint(rest) - x).detach()


def _between(factor: Tensor, x: Tensor) -> Tensor:
    """The matrix between the inverse of a triangle and the adjoint of that."""
    left = solve_triangular(factor, x, upper=False)
    return adjoint(solve_triangular(factor, adjoint(left), upper=False))


def _chosen(x: Tensor, subset: Any) -> Tensor:
    if subset is None:
        return x
    first, last = (int(k) for k in subset)
    n = x._a.shape[-1]
    if not 0 <= first <= last < n:
        raise ValueError(
            f"`scipy.linalg.eigh`: subset_by_index is the first and the last of {n}, got "
            f"{list(subset)}"
        )
    return narrow(x, -1, first, last - first + 1)
