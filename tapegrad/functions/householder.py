"""Orthogonal matrices as products of reflections, as LAPACK's `geqrf` gives them.

With the vectors of the reflections as the columns of V (ones on its diagonal, zeros above) the
product of all is ``I - V @ T @ V.mH`` with an upper triangular T (Schreiber and Van Loan 1989).  T
is ``inv(I + D @ U) @ D``, where D has the numbers `tau` on its diagonal and U is the strict upper
triangle of ``V.mH @ V``, also where one of them is zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.complex_parts import adjoint, conj
from tapegrad.functions.diagonals import tril, triu
from tapegrad.functions.elementwise import mul
from tapegrad.functions.factorizations import recorded
from tapegrad.functions.matrices import matrices, part, triangular
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import narrow, unsqueeze
from tapegrad.ops import factorizations
from tapegrad.tensor import Tensor, wrap


class Geqrf(NamedTuple):
    """R over the vectors of reflections, and the numbers of the reflections."""

    a: Tensor
    tau: Tensor


def _reflections(input: Any, tau: Any, name: str) -> tuple[Tensor, Tensor]:
    """V, and the column of `tau`."""
    x, t = matrices(input, name), as_input(tau, name)
    m, n = x._a.shape[-2:]
    if x._a.dtype != t._a.dtype:
        raise RuntimeError(f"`{name}`: expected one dtype, got {x.dtype} and {t.dtype}")
    most = min(m, n)
    if not t._a.ndim or t._a.shape[:-1] != x._a.shape[:-2] or t._a.shape[-1] > most:
        raise RuntimeError(
            f"`{name}`: for the shape {x._a.shape} tau has the shape {x._a.shape[:-2]} and then at "
            f"most {most}, got {t._a.shape}"
        )
    k = t._a.shape[-1]
    one = wrap(np.eye(m, k, dtype=x._a.dtype))
    return tril(narrow(x, -1, 0, k), -1) + one, unsqueeze(t, -1)


def _inner(v: Tensor, tau: Tensor, right: Tensor) -> Tensor:
    """T @ right."""
    above = mul(tau, triu(matmul(adjoint(v), v), 1))
    return triangular(above, mul(tau, right), True, True)


def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of reflections, whose vectors are the columns of A.

    >>> import tapegrad as tg
    >>> tg.linalg.householder_product(tg.tensor([[0.0], [1.0]]), tg.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    name = "linalg.householder_product"
    m, n = matrices(A, name)._a.shape[-2:]
    if m < n:
        raise RuntimeError(
            f"`{name}` takes matrices with at least as many rows as columns, got {A._a.shape}"
        )
    v, t = _reflections(A, tau, name)
    right = adjoint(narrow(v, -2, 0, n))
    return wrap(np.eye(m, n, dtype=A._a.dtype)) - matmul(v, _inner(v, t, right))


@method
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`.

    >>> import tapegrad as tg
    >>> tg.orgqr(tg.tensor([[0.0], [1.0]]), tg.tensor([1.0]))
    tensor([[ 0.],
            [-1.]])
    """
    return householder_product(input, input2)


@method
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """A product of reflections (with all its columns, or transposed) times a matrix.

    The vectors are the columns of `input`, the numbers are `input2`, the matrix is `input3`; with
    ``left=False`` the matrix comes first.

    >>> import tapegrad as tg
    >>> tg.ormqr(tg.tensor([[0.0], [1.0]]), tg.tensor([1.0]), tg.tensor([[1.0], [2.0]]))
    tensor([[-2.],
            [-1.]])
    """
    v, t = _reflections(input, input2, "ormqr")
    x = matrices(input3, "ormqr")
    side = x._a.shape[-2 if left else -1]
    if side != v._a.shape[-2]:
        raise RuntimeError(
            f"`ormqr`: the shapes {input._a.shape} and {x._a.shape} do not fit: the matrix needs "
            f"{v._a.shape[-2]} {'rows' if left else 'columns'}, got {side}"
        )
    turned = bool(transpose) == bool(left)
    y = x if left else adjoint(x)
    inner = matmul(adjoint(v), y)
    if not turned:
        found = y - matmul(v, _inner(v, t, inner))
    else:  # by T.mH: D.mH @ inv(I + D @ U).mH
        above = mul(t, triu(matmul(adjoint(v), v), 1))
        half = triangular(adjoint(above), inner, False, True)
        found = y - matmul(v, mul(conj(t), half))
    return found if left else adjoint(found)


@method
def geqrf(input: Tensor) -> Geqrf:
    """R and the reflections of the QR factorization, as LAPACK gives them; values only.

    >>> import tapegrad as tg
    >>> tg.geqrf(tg.tensor([[3.0], [4.0]])).a
    tensor([[-5.0000],
            [ 0.5000]])
    """
    x = matrices(input, "geqrf")
    if recorded(x):
        raise NotImplementedError(
            "`geqrf` has no derivative, as in PyTorch: use `linalg.qr`, or pass `input.detach()`"
        )
    whole = run(factorizations.geqrf, (x,), {})
    m, n = x._a.shape[-2:]
    return Geqrf(part(whole, slice(0, m), slice(0, n)), part(whole, slice(0, min(m, n)), n))
