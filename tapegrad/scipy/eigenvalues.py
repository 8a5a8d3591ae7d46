"""Eigenvalues and eigenvectors of Hermitian matrices, with SciPy's arguments.

>>> import tapegrad as tg
>>> stiffness, mass = tg.tensor([[4.0, 0.0], [0.0, 3.0]]), tg.tensor([[4.0, 0.0], [0.0, 1.0]])
>>> tg.scipy.linalg.eigh(stiffness, mass, eigvals_only=True)
tensor([1., 3.])
"""

from __future__ import annotations

from typing import Any

from tapegrad.functions import factorizations
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.diagonals import tril, triu
from tapegrad.functions.matrices import solve_triangular
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import narrow
from tapegrad.numpy_face.common import floating, promoted
from tapegrad.scipy.either import for_tensors
from tapegrad.tensor import Tensor


@for_tensors("scipy.linalg")
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


@for_tensors("scipy.linalg")
def eigvalsh(a: Any, b: Any = None, **kwargs: Any) -> Any:
    """The eigenvalues of `eigh` alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.eigvalsh(tg.eye(2))
    tensor([1., 1.])
    """
    return eigh(a, b, eigvals_only=True, **kwargs)


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
