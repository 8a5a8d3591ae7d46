"""`scipy.linalg` for Tensors: solutions, factorizations and functions of matrices.

`lower`, `trans` and `mode` mean what SciPy means by them.  What only says how SciPy computes
(`overwrite_a`, `check_finite`, `lapack_driver`) is taken and has no effect.

>>> import tapegrad as tg
>>> A = tg.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
>>> tg.scipy.linalg.cho_solve(tg.scipy.linalg.cho_factor(A), tg.tensor([1.0, 2.0]))
tensor([0.0909, 0.6364], grad_fn=<SqueezeBackward0>)
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions import factorizations as _factorizations
from tapegrad.functions import lu as _lu
from tapegrad.functions import matrices as _matrices
from tapegrad.functions.complex_parts import adjoint as _adjoint
from tapegrad.functions.complex_parts import conj as _conj
from tapegrad.functions.diagonals import block_diag as _block_diag
from tapegrad.functions.diagonals import tril as _tril
from tapegrad.functions.diagonals import triu as _triu
from tapegrad.functions.joining import cat as _cat
from tapegrad.functions.products import matmul as _matmul
from tapegrad.functions.shapes import matrix_transpose as _transpose
from tapegrad.functions.shapes import squeeze as _squeeze
from tapegrad.functions.shapes import unsqueeze as _unsqueeze
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.systems import lstsq_ as _lstsq
from tapegrad.scipy.eigenvalues import (
    eig,
    eig_banded,
    eigh,
    eigh_tridiagonal,
    eigvals,
    eigvals_banded,
    eigvalsh,
    eigvalsh_tridiagonal,
)
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.matrix_equations import (
    logm,
    solve_banded,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_sylvester,
    solveh_banded,
    sqrtm,
)
from tapegrad.scipy.matrix_functions import (
    coshm,
    cosm,
    expm_frechet,
    fractional_matrix_power,
    signm,
    sinhm,
    sinm,
    tanhm,
    tanm,
)
from tapegrad.scipy.polar_factors import polar
from tapegrad.scipy.riccati_equations import solve_continuous_are, solve_discrete_are
from tapegrad.scipy.structured_matrices import (
    circulant,
    companion,
    convolution_matrix,
    hankel,
    khatri_rao,
    leslie,
    matmul_toeplitz,
    solve_circulant,
    solve_toeplitz,
    toeplitz,
)
from tapegrad.scipy.subspaces import null_space, orth, orthogonal_procrustes, subspace_angles
from tapegrad.tensor import Tensor, tensor_of

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "coshm", "cosm", "det", "eig", "eig_banded", "eigh", "eigh_tridiagonal",
    "eigvals", "eigvals_banded", "eigvalsh", "eigvalsh_tridiagonal", "expm", "expm_frechet",
    "fractional_matrix_power", "hankel", "inv", "khatri_rao", "leslie", "logm", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul_toeplitz", "norm", "null_space", "orth",
    "orthogonal_procrustes", "pinv", "polar", "qr", "signm", "sinhm", "sinm", "solve",
    "solve_banded", "solve_circulant", "solve_continuous_are", "solve_continuous_lyapunov",
    "solve_discrete_are", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz",
    "solve_triangular", "solveh_banded", "sqrtm", "subspace_angles", "svd", "svdvals", "tanhm",
    "tanm", "toeplitz",
]  # fmt: skip

_own = _for_tensors("scipy.linalg")
_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _matrix(x: _Any, name: str) -> Tensor:
    return _floating(tensor_of(x, f"scipy.linalg.{name}"))


def _system(a: _Any, b: _Any, name: str) -> tuple[Tensor, Tensor, bool]:
    """A matrix, columns in its dtype, and whether a vector was given in their place."""
    x, y = _matrix(a, name), _matrix(b, name)
    if x.dtype != y.dtype:
        kind = _np.result_type(x._a.dtype, y._a.dtype)
        x, y = x.to(kind), y.to(kind)
    vector = y._a.ndim == 1
    return x, _unsqueeze(y, 1) if vector else y, vector


def _operated(x: Tensor, trans: _Any, name: str) -> Tensor:
    if trans not in _TRANS:
        raise ValueError(f"`scipy.linalg.{name}`: trans is 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    which = _TRANS[trans]
    return (x, _transpose(x) if which else x, _adjoint(x) if which == 2 else x)[which]


def _like_right(found: Tensor, vector: bool) -> Tensor:
    return _squeeze(found, 1) if vector else found


@_own
def inv(a: _Any, *args: _Any, **kwargs: _Any) -> Tensor:
    """The inverse matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.inv(tg.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return _matrices.inv(_matrix(a, "inv"))


@_own
def det(a: _Any, *args: _Any, **kwargs: _Any) -> Tensor:
    """The determinant.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.det(tg.eye(2) * 2)
    tensor(4.)
    """
    return _matrices.det(_matrix(a, "det"))


@_own
def pinv(a: _Any, *, atol: _Any = None, rtol: _Any = None, **kwargs: _Any) -> Tensor:
    """The pseudo-inverse.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.pinv(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return _matrices.pinv(_matrix(a, "pinv"), atol=atol, rtol=rtol)


@_own
def expm(A: _Any) -> Tensor:
    """The exponential of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.expm(tg.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _matrices.matrix_exp(_matrix(A, "expm"))


@_own
def solve(
    a: _Any, b: _Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: str | None = None, transposed: bool = False,
) -> Tensor:  # fmt: skip
    """The solution x of ``a x = b``; with 'pos', 'sym' or 'her' of the triangle `lower` says.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.solve(tg.tensor([[2.0, 0.0], [1.0, 1.0]]), tg.tensor([2.0, 3.0]))
    tensor([1., 2.])
    """
    x, y, vector = _system(a, b, "solve")
    if assume_a in ("pos", "positive definite", "sym", "symmetric", "her", "hermitian"):
        half, rest = (_tril(x), _tril(x, -1)) if lower else (_triu(x), _triu(x, 1))
        other = _transpose(rest)
        x = half + (other if assume_a.startswith("sym") else _conj(other))
    elif assume_a in ("upper triangular", "lower triangular"):
        x = _triu(x) if assume_a.startswith("upper") else _tril(x)
    return _like_right(_matrices.solve(_transpose(x) if transposed else x, y), vector)


@_own
def lstsq(
    a: _Any, b: _Any, cond: float | None = None, overwrite_a: bool = False,
    overwrite_b: bool = False, check_finite: bool = True, lapack_driver: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The solution in the least squares, what is left of `b`, the rank and the singular values.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.lstsq(tg.tensor([[1.0], [1.0]]), tg.tensor([1.0, 3.0]))[0]
    tensor([2.0000])
    """
    x, y = _matrix(a, "lstsq"), _matrix(b, "lstsq")
    least = _np.finfo(x._a.dtype).eps if cond is None else cond
    found, left, rank, sizes = _lstsq(x, y, least)
    return found, _squeeze(left, 0) if y._a.ndim == 1 and left._a.size else left, rank, sizes


@_own
def norm(
    a: _Any, ord: _Any = None, axis: _Any = None, keepdims: bool = False, check_finite: bool = True
) -> Tensor:
    """The norm of vectors or matrices, with the orders of `np.linalg.norm`.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.norm(tg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    found: _Any = _np.linalg.norm(_matrix(a, "norm"), ord, axis, keepdims)  # NumPy asks the Tensor
    return found  # type: ignore[no-any-return]


@_own
def solve_triangular(
    a: _Any, b: _Any, trans: _Any = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The solution x of ``a x = b`` with a triangular matrix, its transpose or its adjoint.

    >>> import tapegrad as tg
    >>> a, b = tg.tensor([[2.0, 0.0], [1.0, 1.0]]), tg.tensor([2.0, 3.0])
    >>> tg.scipy.linalg.solve_triangular(a, b, lower=True)
    tensor([1., 2.])
    """
    x, y, vector = _system(a, b, "solve_triangular")
    upper = not lower if _TRANS.get(trans) == 0 else lower
    found = _matrices.solve_triangular(
        _operated(x, trans, "solve_triangular"), y, upper=upper, unitriangular=unit_diagonal
    )
    return _like_right(found, vector)


@_own
def cholesky(
    a: _Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Tensor:
    """The triangle whose product with its adjoint is `a`, the upper one unless `lower`.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.cholesky(tg.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 1.],
            [0., 2.]])
    """
    return _factorizations.cholesky(_matrix(a, "cholesky"), upper=not lower)


@_own
def cho_factor(
    a: _Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """A triangle for `cho_solve`, and whether it is the lower one; the other one is zeros here.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.cho_factor(tg.tensor([[4.0]]))
    (tensor([[2.]]), False)
    """
    return cholesky(a, lower=lower), lower


@_for_tensors("scipy.linalg", "c_and_lower")
def cho_solve(
    c_and_lower: tuple[_Any, bool], b: _Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """The solution of a system whose matrix `cho_factor` has factored.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.cho_solve((tg.tensor([[2.0]]), True), tg.tensor([8.0]))
    tensor([2.])
    """
    c, lower = c_and_lower
    x, y, vector = _system(c, b, "cho_solve")
    lower_one = x if lower else _adjoint(x)
    half = _matrices.solve_triangular(lower_one, y, upper=False)
    return _like_right(_matrices.solve_triangular(_adjoint(lower_one), half, upper=True), vector)


@_own
def lu(
    a: _Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, ...]:
    """P, L and U, or ``P @ L`` and U, of which `a` is the product.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.lu(tg.tensor([[2.0, 1.0], [1.0, 1.0]]))[2]
    tensor([[2.0000, 1.0000],
            [0.0000, 0.5000]])
    """
    P, L, U = _lu.lu(_matrix(a, "lu"))
    return (_matmul(P, L), U) if permute_l else (P, L, U)


@_own
def lu_factor(
    a: _Any, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, Tensor]:
    """L and U in one matrix, and with which row each was exchanged, counted from 0.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.lu_factor(tg.tensor([[1.0, 1.0], [2.0, 1.0]]))[1]
    tensor([1, 1], dtype=tapegrad.int32)
    """
    both, pivots = _lu.lu_factor(_matrix(a, "lu_factor"))
    return both, pivots - 1


@_for_tensors("scipy.linalg", "lu_and_piv")
def lu_solve(
    lu_and_piv: tuple[_Any, _Any], b: _Any, trans: int = 0, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The solution of a system whose matrix, or that transposed, `lu_factor` has factored.

    >>> import tapegrad as tg
    >>> A = tg.tensor([[1.0, 1.0], [2.0, 1.0]])
    >>> tg.scipy.linalg.lu_solve(tg.scipy.linalg.lu_factor(A), tg.tensor([3.0, 4.0]))
    tensor([1., 2.])
    """
    both, piv = lu_and_piv
    x, y, vector = _system(both, b, "lu_solve")
    pivots = tensor_of(piv, "scipy.linalg.lu_solve") + 1
    if trans == 0:
        return _like_right(_lu.lu_solve(x, pivots, y), vector)
    if trans not in (1, 2):
        raise ValueError(f"`scipy.linalg.lu_solve`: trans is 0, 1 or 2, got {trans!r}")
    if trans == 1:
        y = _conj(y)
    found = _lu.lu_solve(x, pivots, y, adjoint=True)
    return _like_right(_conj(found) if trans == 1 else found, vector)


@_own
def qr(
    a: _Any, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full",
    pivoting: bool = False, check_finite: bool = True,
) -> _Any:  # fmt: skip
    """Q and R of which `a` is the product; `mode` is 'full', 'economic' or 'r'.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.qr(tg.tensor([[3.0], [4.0]]), mode="economic")[1].abs()
    tensor([[5.]])
    """
    if pivoting or mode not in ("full", "economic", "r"):
        raise ValueError(
            "`scipy.linalg.qr` of a Tensor: mode is 'full', 'economic' or 'r', without pivoting; "
            f"got {mode!r}, pivoting={pivoting}"
        )
    x = _matrix(a, "qr")
    if mode != "r":
        return tuple(_factorizations.qr(x, "complete" if mode == "full" else "reduced"))
    rows, columns = x._a.shape[-2:]
    _, R = _factorizations.qr(x)
    return (_cat([R, R.new_zeros(rows - columns, columns)]) if rows > columns else R,)


@_own
def svd(
    a: _Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
    check_finite: bool = True, lapack_driver: str = "gesdd",
) -> _Any:  # fmt: skip
    """U, the singular values, and the adjoint of V; or the values alone.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.svd(tg.tensor([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    tensor([4., 3.])
    """
    x = _matrix(a, "svd")
    return (
        tuple(_factorizations.svd(x, full_matrices)) if compute_uv else _factorizations.svdvals(x)
    )


@_own
def svdvals(a: _Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The singular values, in falling order.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.svdvals(tg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    return _factorizations.svdvals(_matrix(a, "svdvals"))


@_own
def block_diag(*arrs: _Any) -> Tensor:
    """Matrices along the diagonal of one.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.block_diag(tg.ones(1, 1), tg.full((1, 2), 3.0))
    tensor([[1., 0., 0.],
            [0., 3., 3.]])
    """
    return _block_diag(*[tensor_of(x, "scipy.linalg.block_diag") for x in arrs])


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.linalg", name)
