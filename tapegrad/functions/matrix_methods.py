"""Factorizations at top level, whose arguments are not those of `tapegrad.linalg`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapegrad.functions import factorizations
from tapegrad.functions.complex_parts import adjoint
from tapegrad.functions.factorizations import QR
from tapegrad.functions.lu import LUFactor, LUFactorEx, lu_factor, lu_factor_ex
from tapegrad.functions.lu import lu_solve as _lu_solve
from tapegrad.functions.matrices import matrices, solve_triangular
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import clone, expand, matrix_transpose
from tapegrad.tensor import Tensor, wrap


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as columns."""

    U: Tensor
    S: Tensor
    V: Tensor


class TriangularSolve(NamedTuple):
    """A solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@method
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """`linalg.cholesky`.

    >>> import tapegrad as tg
    >>> tg.cholesky(tg.tensor([[4.0]]))
    tensor([[2.]])
    """
    return factorizations.cholesky(input, upper=upper)


@method
def qr(input: Tensor, some: bool = True) -> QR:
    """`linalg.qr`; with ``some=False`` its mode "complete".

    >>> import tapegrad as tg
    >>> tg.qr(tg.tensor([[-2.0, 1.0], [0.0, 1.0]])).R
    tensor([[-2.,  1.],
            [ 0.,  1.]])
    """
    return factorizations.qr(input, "reduced" if some else "complete")


@method
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """`linalg.svd` with V in place of its transpose.

    With ``some=False`` U and V are square; with ``compute_uv=False`` they are zeros.

    >>> import tapegrad as tg
    >>> tg.svd(tg.tensor([[3.0], [4.0]])).S
    tensor([5.])
    """
    if not compute_uv:
        x = matrices(input, "svd")
        zeros = [wrap(np.zeros((*x._a.shape[:-2], n, n), x._a.dtype)) for n in x._a.shape[-2:]]
        return SVD(zeros[0], factorizations.svdvals(x), zeros[1])
    u, s, vh = factorizations.svd(input, not some)
    return SVD(u, s, adjoint(vh))


@method
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LUFactor | LUFactorEx:
    """`linalg.lu_factor`; with ``get_infos=True`` `linalg.lu_factor_ex`.

    >>> import tapegrad as tg
    >>> tg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))[0]
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot)


@method
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve`, what is solved for first.

    >>> import tapegrad as tg
    >>> factors = tg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> tg.lu_solve(tg.tensor([[3.0], [4.0]]), *factors)
    tensor([[1.],
            [1.]])
    """
    return _lu_solve(LU_data, LU_pivots, b)


@method
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """`linalg.solve_triangular`, what is solved for first; with ``transpose=True`` by A transposed.

    >>> import tapegrad as tg
    >>> tg.triangular_solve(tg.tensor([[2.0]]), tg.tensor([[4.0]])).solution
    tensor([[0.5000]])
    """
    x = matrices(A, "triangular_solve", square=True)
    side = matrix_transpose(x) if transpose else x
    found = solve_triangular(side, b, upper=upper != transpose, unitriangular=unitriangular)
    whole = (*found._a.shape[:-2], *x._a.shape[-2:])
    return TriangularSolve(found, clone(expand(x, whole)))
