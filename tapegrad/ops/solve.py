"""Systems of linear equations: inverses, solutions, and the exponential of a matrix.

All rows take matrices in the last two dimensions; those before are a batch, and broadcast.  The
forward of `inv` and of `solve` refuses a singular matrix with `LinAlgError`.  That of
`solve_triangular` looks at nothing, as in PyTorch: a zero on the diagonal gives inf and NaN.  Rules
call it with `strong=True`, by which zero divided by zero is zero, as in the strong product.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_FACTOR, KIND_SOLVE, SYSTEM
from tapegrad.ops.core import ANALYTIC, OWN, Op, custom
from tapegrad.ops.large import large
from tapegrad.ops.linalg import adjoint, product, transposed
from tapegrad.ops.lu_factors import Factors, kept
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.ops.shape import cat, getitem, tril, triu

# NumPy's loops over LAPACK; `np.linalg` asks much before it calls them. They have no public name.
loops: Any = getattr(np.linalg, "_umath_linalg", None)


DOUBLE = {"f": "d", "d": "d", "F": "D", "D": "D"}  # of the types that the loops take


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix for which the computation has no result: singular, not positive definite."""


def solved(name: str, *arrays: Any) -> Any:
    """What NumPy's loop of that name makes of matrices; None where `np.linalg` has to be asked.

    Of a matrix for which there is no result the loop gives NaN alone.
    """
    loop = getattr(loops, name, None)
    last = arrays[-1]
    if loop is None or last.ndim < 2 or not last.size or last.dtype.char not in DOUBLE:
        return None
    y = quietly(loop, *arrays)
    if not y.size:
        return None
    corners = y[..., 0, :1]
    return None if math.isnan(np.vdot(corners, corners).real) else y


def singular(x: Any) -> str:
    """Which matrix of a batch it is that has no inverse, in words."""
    if x.ndim == 2:
        return f"the matrix of shape {x.shape} is singular"
    for at in np.ndindex(*x.shape[:-2]):
        try:
            np.linalg.inv(x[at])
        except np.linalg.LinAlgError:
            return f"the matrix at {at} of the batch of shape {x.shape} is singular"
    return f"a matrix of the batch of shape {x.shape} is singular"


def factors_of(x: Any, least: int) -> Factors | None:
    """The factors of one matrix of so many elements or more."""
    return Factors(x) if x.ndim == 2 and x.size >= least and x.dtype.char in DOUBLE else None


def _inv(x: Any) -> Any:
    factors = factors_of(x, SYSTEM)  # in half the time of NumPy's, which solves with the identity
    if factors is not None and not factors.singular:
        return factors.inverse()
    if (y := solved("inv", x)) is not None:
        return y
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"`linalg.inv`: {singular(x)}: only matrices of full rank have an inverse; use "
            "`linalg.pinv` for the others"
        ) from None


def inv_vjp(g: Any, y: Any) -> Any:
    """The adjoint of a matrix, by that of its inverse."""
    yt = transposed(y)
    return -product(product(yt, g), yt)


def _solve(a: Any, b: Any, *, factors: Factors | None = None) -> Any:
    if factors is not None and not factors.singular:
        return factors.solve(b)
    if (y := solved("solve", a, b)) is not None:
        return y
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"`linalg.solve`: {singular(a)}: only matrices of full rank can be solved with; use "
            "`linalg.pinv(A) @ B` for the others"
        ) from None


@cache
def _trsm(dtype: Any) -> Any:
    from scipy.linalg.blas import get_blas_funcs

    return get_blas_funcs(("trsm",), dtype=dtype)[0]


def _triangular(a: Any, b: Any, *, upper: bool, unit: bool, strong: bool) -> Any:
    # The transpose of an array in C order is the same memory in Fortran order: `a x = b` is solved
    # as `x.T a.T = b.T`.
    trsm = _trsm(b.dtype)
    if a.ndim == b.ndim == 2 and b.size:
        out = np.ascontiguousarray(trsm(1.0, a.T, b.T, side=1, lower=upper, diag=unit).T)
    else:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.zeros((*batch, *b.shape[-2:]), b.dtype)
        if not out.size:
            return out
        aa, bb = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, out.shape)
        if math.prod(batch) > 2 * a.shape[-1]:
            quietly(_by_rows, aa, bb, out, upper, unit)
        else:
            for at in np.ndindex(*batch):
                out[at] = trsm(1.0, aa[at].T, bb[at].T, side=1, lower=upper, diag=unit).T
    if strong and not np.isfinite(out).all():
        return _substitute(a, b, upper, unit)
    return out


def _by_rows(a: Any, b: Any, out: Any, upper: bool, unit: bool) -> None:
    """Solve many small systems at once: a row of all of them after the other."""
    n = b.shape[-2]
    for i in range(n - 1, -1, -1) if upper else range(n):
        first, last = (i + 1, n) if upper else (0, i)
        left = b[..., i, :]
        if first < last:
            known = out[..., first:last, :]
            left = left - np.matmul(a[..., i, None, first:last], known)[..., 0, :]
        out[..., i, :] = left if unit else left / a[..., i, i, None]


def _substitute(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Row by row, in which a zero divided by zero is zero."""
    n = b.shape[-2]
    rows: list[Any] = [None] * n
    with np.errstate(all="ignore"):
        for i in range(n - 1, -1, -1) if upper else range(n):
            left = b[..., i, :]
            for j in range(i + 1, n) if upper else range(i):
                factor = a[..., i, j, None]
                left = left - np.where((factor == 0) | (rows[j] == 0), 0, factor * rows[j])
            rows[i] = left if unit else np.where(left == 0, 0, left / a[..., i, i, None])
    return np.stack(np.broadcast_arrays(*rows), -2).astype(b.dtype, copy=False)


def _triangular_vjp(g_b: Any, y: Any, upper: bool, unit: bool) -> Any:
    full = product(g_b, transposed(y))
    return -triu(full, diagonal=int(unit)) if upper else -tril(full, diagonal=-int(unit))


def not_converged(name: str, x: Any) -> LinAlgError:
    """The error for an iteration that found no result."""
    return LinAlgError(
        f"`linalg.{name}`: the iteration did not converge for the input of shape {x.shape}: look "
        "for NaN and inf in it"
    )


def singular_values(x: Any, name: str, full: bool = False, vectors: bool = True) -> Any:
    """NumPy's singular value decomposition, for the function of that name."""
    thin = not full or x.shape[-1] == x.shape[-2]
    loop = getattr(loops, "svd_s" if vectors else "svd", None)
    if loop is not None and (thin or not vectors) and x.size and x.dtype.char in DOUBLE:
        found = quietly(loop, x)
        sizes = found[1] if vectors else found
        if not math.isnan(np.vdot(sizes, sizes)):
            return found
    try:
        if vectors:
            return np.linalg.svd(x, full)
        found = np.linalg.svd(x, compute_uv=False)
    except np.linalg.LinAlgError:
        raise not_converged(name, x) from None
    if math.isnan(np.vdot(found, found)):  # as of infinite elements, which LAPACK lets pass
        raise not_converged(name, x)
    return found


def _pinv(x: Any, *, atol: Any, rtol: Any, hermitian: bool = False) -> Any:
    if hermitian:
        below = np.tril(x, -1)
        x = below + below.mT.conj() + np.where(np.eye(x.shape[-1], dtype=bool), x.real, 0)
    u, s, vh = singular_values(x, "pinv")
    if not s.size:
        return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    # A tolerance is a number, or tuples of numbers for a batch.
    least, relative = (np.asarray(t, s.dtype)[..., None] for t in (atol, rtol))
    kept = s > np.maximum(least, relative * s.max(-1, keepdims=True))
    inverse = np.divide(1, s, out=np.zeros_like(s), where=kept)
    return np.matmul(vh.mT.conj() * inverse[..., None, :], u.mT.conj())


def _pinv_vjp(g: Any, x: Any, y: Any) -> Any:
    # d(y) = -y dx y + y yh dxh (1 - x y) + (1 - y x) dxh yh y, where the rank stays the same
    yh, gh = adjoint(y), adjoint(g)
    inner = product(gh, y)
    left = product(inner, yh)
    right = product(product(yh, y), gh - product(inner, x))
    return left - product(product(x, y), left) + right - adjoint(product(y, inner))


def _expm(x: Any) -> Any:
    from scipy.linalg import expm

    return expm(x) if x.size else x.copy()


def _expm_vjp(g: Any, x: Any) -> Any:
    # The exponential of [[a, g], [0, a]] holds that of a, and beside it its derivative along g.
    a = transposed(x)
    n, d = a.shape[-1], len(a.shape)
    above, below = cat(a, g, dim=d - 1), cat(g * 0.0, a, dim=d - 1)
    whole = matrix_exp(cat(above, below, dim=d - 2))
    return getitem(whole, index=(..., slice(0, n), slice(n, 2 * n)))


BATCH = 256  # elements of a batch from which a loop of the library's own pays for its call

# fmt: off
inv: Op = custom("inv", large("small_systems.inverses", _inv, BATCH), complex=ANALYTIC, x=inv_vjp,
               grad_name="LinalgInvEx", lapack=True, sweep=KIND_FACTOR)
solve: Op = custom(
    "solve", large("small_systems.solutions", _solve, BATCH), complex=ANALYTIC,
    a=lambda g_b, y: -product(g_b, transposed(y)),
    b=lambda g, a, factors: solve(transposed(a), g, **kept(factors and factors.mT)),
    grad_name="LinalgSolveEx", lapack=True, sweep=KIND_SOLVE,
)
solve_triangular: Op = custom(
    "solve_triangular", _triangular, complex=ANALYTIC, a=_triangular_vjp,
    b=lambda g, a, upper, unit:
        solve_triangular(transposed(a), g, upper=not upper, unit=unit, strong=True),
    grad_name="LinalgSolveTriangular", lapack=True, sweep=KIND_FACTOR,
)
pinv = custom("pinv", _pinv, x=_pinv_vjp, complex=OWN, grad_name="LinalgPinv", lapack=True)
matrix_exp: Op = custom("matrix_exp", _expm, complex=ANALYTIC,
                        x=_expm_vjp, grad_name="LinalgMatrixExp", lapack=True)
# fmt: on
