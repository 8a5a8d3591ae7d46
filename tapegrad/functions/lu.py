"""LU and L D L' factorizations, and what is solved with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input
from tapegrad.functions.complex_parts import real
from tapegrad.functions.diagonals import tril, triu
from tapegrad.functions.factorizations import recorded
from tapegrad.functions.matrices import check_system, known, matrices, part, triangular
from tapegrad.functions.shapes import matrix_transpose, narrow, to
from tapegrad.ops import lu as ops
from tapegrad.ops.unchecked import block_code, pivot_code
from tapegrad.tensor import Tensor, wrap


class LU(NamedTuple):
    """A permutation, a lower triangular matrix with ones on its diagonal, an upper one."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """Both triangular factors in one matrix, and the exchanges of rows, counted from 1."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """The same, and the place of the first zero on the diagonal of U (0: there is none)."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class LDLFactor(NamedTuple):
    """L and D in one matrix, and the exchanges of rows in LAPACK's form."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """The same, and the place of the first block of D that is zero (0: there is none)."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _factored(A: Any, pivot: bool, name: str, check: bool) -> tuple[Tensor, Tensor, Tensor]:
    x = matrices(A, name)
    if not pivot:
        raise RuntimeError(
            f"`{name}`: without exchanges of rows it is not implemented, as on PyTorch's CPU: "
            "leave out pivot=False"
        )
    m, n = x._a.shape[-2:]
    if not recorded(x) and known(x):
        found = ops.lu.forward(x._a, check=check)
        exchanges = found[..., : min(m, n), n].real.astype(np.int32)
        return x, wrap(found[..., :n].copy()), wrap(exchanges)
    whole = run(ops.lu, (x,), {"check": check})
    places = narrow(part(whole, n), -1, 0, min(m, n))
    return x, part(whole, slice(None, -1)), to(real(places.detach()), np.dtype(np.int32))


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """The LU factorization in LAPACK's form, for `linalg.lu_solve`; a singular matrix is refused.

    >>> import tapegrad as tg
    >>> tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]])).LU
    tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]])
    """
    _, both, pivots = _factored(A, pivot, "linalg.lu_factor", True)
    return LUFactor(both, pivots)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """`linalg.lu_factor` that tells of a singular matrix by `info`.

    >>> import tapegrad as tg
    >>> tg.linalg.lu_factor_ex(tg.zeros(2, 2)).info
    tensor(1, dtype=tapegrad.int32)
    """
    x, both, pivots = _factored(A, pivot, "linalg.lu_factor_ex", check_errors)
    return LUFactorEx(both, pivots, run(pivot_code, (x.detach(),), {}))


def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """The matrices for which ``P @ L @ U`` is A.

    >>> import tapegrad as tg
    >>> tg.linalg.lu(tg.tensor([[1.0, 2.0], [2.0, 2.0]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    _, both, pivots = _factored(A, pivot, "linalg.lu", False)
    return LU(_permutation(both, pivots), *_triangles(both))


def _triangles(both: Tensor) -> tuple[Tensor, Tensor]:
    m, n = both._a.shape[-2:]
    k = min(m, n)
    one = wrap(np.eye(m, k, dtype=both._a.dtype))
    lower = tril(narrow(both, -1, 0, k), -1) + one
    return lower, triu(narrow(both, -2, 0, k))


def _permutation(both: Tensor, pivots: Tensor) -> Tensor:
    one = wrap(np.eye(both._a.shape[-2], dtype=both._a.dtype))
    return run(ops.swap_rows, (one, pivots), {"inverse": True})


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:
    """The matrices of a factorization from `linalg.lu_factor`.

    What is not asked for is an empty Tensor.

    >>> import tapegrad as tg
    >>> tg.lu_unpack(*tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    both = matrices(LU_data, "lu_unpack")
    pivots = _exchanges(both, LU_pivots, "lu_unpack") if unpack_pivots else None
    nothing = wrap(np.zeros(0, both._a.dtype))
    lower, upper = _triangles(both) if unpack_data else (nothing, nothing)
    return LU(nothing if pivots is None else _permutation(both, pivots), lower, upper)


def _exchanges(both: Tensor, pivots: Any, name: str) -> Tensor:
    found = as_input(pivots, name)
    if found._a.dtype != np.int32:
        raise RuntimeError(
            f"`{name}`: pivots are int32, as a factorization gives them, got {found.dtype}"
        )
    want = (*both._a.shape[:-2], min(both._a.shape[-2:]))
    if found._a.shape != want:
        raise RuntimeError(
            f"`{name}`: the pivots of factors of shape {both._a.shape} have the shape {want}, got "
            f"{found._a.shape}"
        )
    return found


def _system(factor: Any, pivots: Any, B: Any, left: bool, name: str) -> tuple[Tensor, Any, Tensor]:
    x, y = matrices(factor, name, square=True), matrices(B, name)
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(
            f"`{name}`: expected factors and B of one dtype, got {x.dtype} and {y.dtype}"
        )
    places = _exchanges(x, pivots, name)
    check_system(x, y, left, name)
    return x, places, y


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The X for which ``A @ X`` is B, given A's `linalg.lu_factor`.

    With ``left=False`` it is that for which ``X @ A`` is B, with ``adjoint=True`` A is transposed.

    >>> import tapegrad as tg
    >>> factors = tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> tg.linalg.lu_solve(*factors, tg.tensor([[3.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    x, places, y = _system(LU, pivots, B, left, "linalg.lu_solve")
    if left:
        return _solved(x, places, y, adjoint)
    return _adjoint(_solved(x, places, _adjoint(y), not adjoint))


def _adjoint(x: Tensor) -> Tensor:
    turned = matrix_transpose(x)
    return turned.conj() if x._a.dtype.kind == "c" else turned


def _solved(x: Tensor, places: Tensor, y: Tensor, adjoint: bool) -> Tensor:
    if adjoint:
        turned = _adjoint(x)
        half = triangular(turned, y, False, False)
        found = triangular(turned, half, True, True)
        return run(ops.swap_rows, (found, places), {"inverse": True})
    right = run(ops.swap_rows, (y, places), {"inverse": False})
    return triangular(x, triangular(x, right, False, True), True, False)


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """The factorization of a symmetric matrix, which need not be positive definite.

    With `hermitian` a complex matrix is taken for the conjugate of its transpose.  The lower
    triangle is read.  It cannot be differentiated, as in PyTorch.

    >>> import tapegrad as tg
    >>> tg.linalg.ldl_factor(tg.tensor([[4.0, 2.0], [2.0, 3.0]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 2.0000]])
    """
    _, both, pivots = _blocks(A, "linalg.ldl_factor", True, hermitian)
    return LDLFactor(both, pivots)


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """`linalg.ldl_factor` that tells of a singular matrix by `info`.

    >>> import tapegrad as tg
    >>> tg.linalg.ldl_factor_ex(tg.eye(2)).info
    tensor(0, dtype=tapegrad.int32)
    """
    x, both, pivots = _blocks(A, "linalg.ldl_factor_ex", check_errors, hermitian)
    info = run(block_code, (x,), {"hermitian": _conjugates(x, hermitian)})
    return LDLFactorEx(both, pivots, info)


def _blocks(A: Any, name: str, check: bool, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    x = matrices(A, name, square=True)
    _values_only(x, name)
    whole = run(ops.ldl, (x,), {"check": check, "hermitian": _conjugates(x, hermitian)})
    return x, part(whole, slice(None, -1)), to(real(part(whole, -1)), np.dtype(np.int32))


def _conjugates(x: Tensor, hermitian: bool) -> bool:
    """Whether the transpose is to be conjugated: of real numbers that is the same."""
    return bool(hermitian) and x._a.dtype.kind == "c"


def _values_only(x: Tensor, name: str) -> None:
    if recorded(x):
        raise NotImplementedError(
            f"`{name}` has no derivative in its matrix, as in PyTorch: use `linalg.solve`, which "
            "has one, or pass `A.detach()`"
        )


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The X for which ``A @ X`` is B, given A's `linalg.ldl_factor`.

    >>> import tapegrad as tg
    >>> factors = tg.linalg.ldl_factor(tg.tensor([[4.0, 2.0], [2.0, 3.0]]))
    >>> tg.linalg.ldl_solve(*factors, tg.tensor([[6.0], [5.0]]))
    tensor([[1.],
            [1.]])
    """
    x, places, y = _system(LD, pivots, B, True, "linalg.ldl_solve")
    _values_only(x, "linalg.ldl_solve")
    return run(ops.ldl_solve, (y, x, places), {"hermitian": _conjugates(x, hermitian)})
