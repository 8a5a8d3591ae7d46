"""Orthonormal bases of what a matrix reaches or maps to zero, and how subspaces lie to each other.

Such a basis is differentiated at the rank that the matrix has, and turns no more within its
subspace than it has to.

>>> import numpy as np, tapegrad as tg
>>> height = lambda a: tg.scipy.linalg.null_space(a)[1, 0] ** 2
>>> tg.grad(height)(np.array([[3.0, 4.0]]))
array([[ 0.1536, -0.1152]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arithmetic import where
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.factorizations import cholesky, svd, svdvals
from tapegrad.functions.matrices import pinv, solve_triangular
from tapegrad.functions.products import matmul
from tapegrad.numpy_face.common import floating, promoted
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.polar_factors import polar
from tapegrad.tensor import Tensor, tensor_of

_own = for_tensors("scipy.linalg")


def _factors(A: Any, rcond: Any, name: str) -> tuple[Tensor, Tensor, Tensor, float, int]:
    """A matrix, bases on both sides of it, from which singular value on one counts, how many do."""
    x = floating(tensor_of(A, f"scipy.linalg.{name}"))
    U, sizes, Vh = svd(x.detach(), full_matrices=True)
    least = np.finfo(x._a.dtype).eps * max(x._a.shape) if rcond is None else float(rcond)
    try:
        rank = int((sizes > sizes.max() * least).sum()) if sizes._a.size else 0
    except RuntimeError as problem:
        raise RuntimeError(
            f"`scipy.linalg.{name}`: the shape of the basis is decided by the rank of the matrix, "
            "which is not known here"
        ) from problem
    return x, U, Vh, least, rank


def _orthonormal(y: Tensor) -> Tensor:
    """The columns, which are all but orthonormal, made so."""
    triangle = cholesky(matmul(adjoint(y), y))
    return adjoint(solve_triangular(triangle, adjoint(y), upper=False))


@_own
def null_space(
    A: Any, rcond: Any = None, *, overwrite_a: bool = False, check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Tensor:  # fmt: skip
    """An orthonormal basis of the vectors that a matrix maps to zero, as columns.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.null_space(tg.tensor([[3.0, 4.0]])).abs()
    tensor([[0.8000],
            [0.6000]])
    """
    x, _, Vh, least, rank = _factors(A, rcond, "null_space")
    basis = adjoint(Vh[rank:])
    return _orthonormal(basis - matmul(pinv(x, rtol=least), matmul(x, basis)))


@_own
def orth(A: Any, rcond: Any = None) -> Tensor:
    """An orthonormal basis of the vectors that a matrix reaches, as columns.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.orth(tg.tensor([[3.0, 6.0], [4.0, 8.0]])).abs()
    tensor([[0.6000],
            [0.8000]])
    """
    x, U, _, least, rank = _factors(A, rcond, "orth")
    return _orthonormal(matmul(x, matmul(pinv(x, rtol=least), U[:, :rank])))


@_own
def subspace_angles(A: Any, B: Any) -> Tensor:
    """The angles between the subspaces that the columns of two matrices span, the largest first.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.subspace_angles(tg.tensor([[1.0], [0.0]]), tg.tensor([[3.0], [3.0]]))
    tensor([0.7854])
    """
    a, b = (orth(t) for t in promoted(A, B))
    both = matmul(adjoint(a), b)
    cosines = svdvals(both).flip(0)
    first, second, both = (a, b, both) if len(both) >= both._a.shape[1] else (b, a, adjoint(both))
    sines = svdvals(second - matmul(first, both))[: len(cosines)]
    # Each where its derivative is finite.
    small = cosines.detach() ** 2 >= 0.5
    by_sine = where(small, sines, 0.0).clip(-1, 1).arcsin()
    return where(small, by_sine, where(small, 0.0, cosines).arccos())


@_own
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The orthogonal matrix that brings ``A`` nearest to ``B``, and the sum of singular values.

    >>> import tapegrad as tg
    >>> rotation, scale = tg.scipy.linalg.orthogonal_procrustes(tg.eye(2), 2 * tg.eye(2))
    >>> scale
    tensor(4.)
    """
    a, b = promoted(A, B)
    rotation, stretch = polar(matmul(a.T, b))
    return rotation, np.trace(stretch)
