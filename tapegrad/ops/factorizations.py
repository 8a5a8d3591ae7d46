"""Decompositions of matrices: cholesky, eigh, eig, qr, svd.

A record has one result, a decomposition several.  They are computed as one array, in which they lie
side by side; `part` takes each out as an array of its own.  It is linear, so the adjoints of all
results are together when the rule of the decomposition runs, and what they share is computed once.
The adjoint of a result that nobody used is exactly zero, and by the strong product it stays out of
everything: eigenvalues can be differentiated where eigenvectors cannot.

===========  ===============================  ==========================================
row          its one array                    parts
===========  ===============================  ==========================================
``eigh``     n × (n + 1)                      eigenvectors | eigenvalues as a column
``eig``      n × (n + 1), complex             eigenvectors | eigenvalues as a column
``qr``       (m + n) × n, with m >= n         Q over R
``svd``      (m + 1 + n) × k, k = min(m, n)   U over the singular values over V
===========  ===============================  ==========================================

Conventions are PyTorch's.  `cholesky` and `eigh` read one triangle, and their gradient is that of
a function of symmetric matrices: it is symmetric.  Equal eigenvalues (or singular values) give an
infinite or undefined gradient if their vectors were used, and a right one if not.

Of complex matrices symmetric means equal to the conjugate transpose, and what is real (eigenvalues,
singular values, the diagonals of R and of Cholesky's factor) stands there with a zero beside it.
The phases of vectors are arbitrary: `same_phase` refuses adjoints that lean to them.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_FACTOR, KIND_VIEW, SYSTEM
from tapegrad.ops.complex_parts import conjugate, real
from tapegrad.ops.core import OWN, NotDifferentiable, Op, custom, linear
from tapegrad.ops.elementwise import is_complex, strong, where
from tapegrad.ops.linalg import adjoint, as_columns, as_rows, diagonal_matrix, product, transposed
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.ops.shape import clone, diagonal, embed, getitem, tril
from tapegrad.ops.solve import (
    DOUBLE,
    LinAlgError,
    loops,
    not_converged,
    singular_values,
    solve,
    solve_triangular,
)

CHECKED = NotDifferentiable("it is looked at, and not computed with")
REFUSED = NotDifferentiable("`geqrf` refuses what is recorded")


def columns(x: Any, start: int | None, stop: int | None) -> Any:
    """Some columns of matrices."""
    return getitem(x, index=(..., slice(start, stop)))


def rows(x: Any, start: int | None, stop: int | None) -> Any:
    """Some rows of matrices."""
    return getitem(x, index=(..., slice(start, stop), slice(None)))


def _skew(x: Any) -> Any:
    return x - adjoint(x)


def _mirrored(x: Any) -> Any:
    """The lower triangle, and its mirror image in the upper one; the diagonal is made real."""
    found = tril(x, diagonal=0) + adjoint(tril(x, diagonal=-1))
    if not is_complex(found):
        return found
    return where(np.eye(found.shape[-1], dtype=bool), real(found), found)


def _diagonal(x: Any) -> Any:
    last = len(x.shape) - 1
    return diagonal(x, offset=0, dim1=last - 1, dim2=last)


def right_solve(x: Any, upper: Any) -> Any:
    """``x @ inv(upper).mT``."""
    found = solve_triangular(upper, transposed(x), upper=True, unit=False, strong=True)
    return transposed(found)


def _cholesky(x: Any) -> Any:
    if loops is not None and x.size and x.dtype.char in DOUBLE:
        y = quietly(loops.cholesky_lo, x)
        if not math.isnan(np.vdot(y, y).real):
            return y
    with suppress(np.linalg.LinAlgError):
        y = np.linalg.cholesky(x)
        if not np.isnan(y.diagonal(0, -2, -1)).any():
            return y
    raise LinAlgError(
        f"`linalg.cholesky`: the input of shape {x.shape} is not positive definite: only symmetric "
        "matrices with positive eigenvalues have this decomposition; add a multiple of the "
        "identity if rounding is the cause"
    )


def cholesky_vjp(g: Any, y: Any) -> Any:
    """The adjoint of a symmetric matrix, by that of its factor."""
    yh = adjoint(y)
    inner = _mirrored(product(yh, g)) * 0.5
    half = solve_triangular(yh, inner, upper=True, unit=False, strong=True)
    return right_solve(half, transposed(y))


def eigenpairs(x: Any, upper: bool) -> Any:
    """The eigenvalues and the eigenvectors of symmetric matrices."""
    if loops is not None and x.size and x.dtype.char in DOUBLE:
        found = quietly(loops.eigh_up if upper else loops.eigh_lo, x)
        if not math.isnan(np.vdot(found[0], found[0])):
            return found
    try:
        return np.linalg.eigh(x, "U" if upper else "L")
    except np.linalg.LinAlgError:
        raise not_converged("eigh", x) from None


def _eigh(x: Any, *, upper: bool) -> Any:
    values, vectors = eigenpairs(x, upper)
    out = np.empty((*vectors.shape[:-1], vectors.shape[-1] + 1), vectors.dtype)
    out[..., :-1], out[..., -1] = vectors, values
    return out


def eigenvalues(x: Any, upper: bool) -> Any:
    """The eigenvalues alone, which takes less time."""
    if loops is not None and x.size and x.dtype.char in DOUBLE:
        found = quietly(loops.eigvalsh_up if upper else loops.eigvalsh_lo, x)
        if not math.isnan(np.vdot(found, found)):
            return found
    try:
        return np.linalg.eigvalsh(x, "U" if upper else "L")
    except np.linalg.LinAlgError:
        raise not_converged("eigvalsh", x) from None


def unused(g: Any) -> bool:
    """Whether an adjoint is known to be zero, as that of vectors of which only values are used."""
    return type(g) is np.ndarray and not g.any()


def _gaps(values: Any) -> Any:
    """For each two of several numbers the second minus the first; 1 on the diagonal."""
    eye = np.eye(values.shape[-1], dtype=bool)
    return where(eye, 1.0, as_rows(values) - as_columns(values))


def _eigh_vjp(g: Any, y: Any) -> Any:
    n = y.shape[-2]
    if is_complex(g):
        g = same_phase(g, y, of="linalg.eigh")
    v, values = columns(y, 0, n), real(getitem(y, index=(..., n)))
    gv, gvalues = columns(g, 0, n), real(getitem(g, index=(..., n)))
    vh = adjoint(v)
    if unused(gv):
        return product(strong(v, as_rows(gvalues)), vh)
    turned = strong(_skew(product(vh, gv)), 0.5 / _gaps(values))
    if is_complex(g):  # the diagonal is what a change of the phases does
        turned = where(np.eye(n, dtype=bool), 0.0, turned)
    return product(product(v, turned + diagonal_matrix(gvalues)), vh)


QR_BLOCK = 64  # columns that LAPACK reflects at once


@lru_cache(64)
def _upper(n: int) -> Any:
    return np.tri(n, dtype=bool).T


def orthogonal_triangular(x: Any) -> Any:
    """Q and R of matrices that have no more columns than rows."""
    whole = _qr(x)
    return whole[..., : x.shape[-2], :].copy(), whole[..., x.shape[-2] :, :].copy()


def _qr(x: Any) -> Any:
    if x.dtype.char not in DOUBLE or loops is None or not x.size:
        return np.concatenate(np.linalg.qr(x), -2)
    m, n = x.shape[-2:]
    out = np.zeros((*x.shape[:-2], m + n, n), x.dtype)
    if x.ndim == 2 and x.size > SYSTEM:
        # In single precision too, for which NumPy has no loops.
        factored, scales, *_ = routine("geqrf", x.dtype)(x, lwork=QR_BLOCK * n)
        name = "ungqr" if x.dtype.kind == "c" else "orgqr"
        out[:m] = routine(name, x.dtype)(factored, scales, lwork=QR_BLOCK * n)[0]
    else:
        factored = np.array(x, DOUBLE[x.dtype.char])
        out[..., :m, :] = loops.qr_reduced(factored, loops.qr_r_raw(factored))
    np.copyto(out[..., m:, :], factored[..., :n, :], "same_kind", _upper(n))
    return out


def _qr_vjp(g: Any, y: Any) -> Any:
    m = y.shape[-2] - y.shape[-1]
    q, r, gq, gr = rows(y, 0, m), rows(y, m, None), rows(g, 0, m), rows(g, m, None)
    inner = product(r, adjoint(gr)) - product(adjoint(gq), q)
    return right_solve(gq + product(q, _mirrored(inner)), conjugate(r))


def _svd(x: Any) -> Any:
    u, s, vh = singular_values(x, "svd")
    m, n = x.shape[-2:]
    out = np.empty((*x.shape[:-2], m + 1 + n, s.shape[-1]), x.dtype)
    out[..., :m, :], out[..., m, :] = u, s
    np.conjugate(vh.mT, out=out[..., m + 1 :, :])
    return out


def _svd_vjp(g: Any, y: Any, x_spec: Any) -> Any:
    m, n = x_spec.shape[-2:]
    if is_complex(g):
        g = same_phase(g, y, of="linalg.svd")
    u, s, v = rows(y, 0, m), real(getitem(y, index=(..., m, slice(None)))), rows(y, m + 1, None)
    gu, gs, gv = rows(g, 0, m), real(getitem(g, index=(..., m, slice(None)))), rows(g, m + 1, None)
    uh, vh = adjoint(u), adjoint(v)
    if unused(gu) and unused(gv):
        return product(strong(u, as_rows(gs)), vh)
    down, across = as_columns(s), as_rows(s)
    inverse = 1.0 / (_gaps(s) * where(np.eye(s.shape[-1], dtype=bool), 1.0, down + across))
    ugu, vgv = product(uh, gu), product(vh, gv)
    left = _skew(ugu)
    core = strong(strong(left, inverse), across) + strong(strong(_skew(vgv), inverse), down)
    if is_complex(g):  # the phases of u against those of v; those of both together are arbitrary
        core = where(np.eye(s.shape[-1], dtype=bool), 0.0, core)
        core = core + diagonal_matrix(strong(_diagonal(left), 0.5 / s))
    out = product(product(u, core + diagonal_matrix(gs)), vh)
    if m > n:  # what leaves the space that the columns of u span
        out = out + product(strong(gu - product(u, ugu), 1.0 / across), vh)
    if n > m:
        out = out + product(u, adjoint(strong(gv - product(v, vgv), 1.0 / across)))
    return out


def _completed(x: Any) -> Any:
    q = np.linalg.qr(x, "complete")[0]
    return np.concatenate((x, q[..., x.shape[-1] :]), -1)


def _completed_vjp(g: Any, x: Any, y: Any, x_spec: Any) -> Any:
    # The columns that were added, v, stay orthogonal to x: dv = -x dxh v, and turn among themselves
    # in a way that is not determined.
    k = x_spec.shape[-1]
    v = columns(y, k, None)
    gv = any_basis(columns(g, k, None), v)
    return columns(g, 0, k) - product(v, product(adjoint(gv), x))


def _any_basis(x: Any, v: Any) -> Any:
    """The adjoint of columns that were added, if turning them among themselves changes nothing."""
    turned = np.matmul(v.mT.conj(), x)
    limit = 1e3 * x.shape[-2] * np.finfo(x.dtype).eps * np.abs(x).max(initial=0.0)
    if np.abs(turned - turned.mT.conj()).max(initial=0.0) > limit:
        raise RuntimeError(
            "`linalg.svd`: what is differentiated depends on the vectors by which "
            f"full_matrices=True completes a basis of {x.shape[-2]} dimensions, and these are "
            "arbitrary: pass full_matrices=False"
        )
    return x.copy()


def _eig(x: Any) -> Any:
    if not np.isfinite(x).all():
        raise RuntimeError("`linalg.eig`: the input has inf or NaN in it")
    try:
        values, vectors = np.linalg.eig(x)
    except np.linalg.LinAlgError:
        raise not_converged("eig", x) from None
    kind = np.result_type(x.dtype, np.complex64)
    return np.concatenate((vectors, values[..., None]), -1).astype(kind, copy=False)


def _eig_vjp(g: Any, y: Any) -> Any:
    # dv = v c with c = e * inv(v) dx v, where e holds the inverses of the gaps, and a multiple of v
    # that keeps its length: its phase is arbitrary, and stays (Boeddeker et al. 2017).
    n = y.shape[-2]
    v, values = columns(y, 0, n), getitem(y, index=(..., n))
    gv, gvalues = columns(g, 0, n), getitem(g, index=(..., n))
    gv = same_phase(gv, v, of="linalg.eig")
    vh = adjoint(v)
    inner = product(vh, gv)
    lengths = real(_diagonal(inner))
    inner = inner - strong(product(vh, v), as_rows(lengths))
    inner = strong(inner, conjugate(1.0 / _gaps(values)))
    inner = where(np.eye(n, dtype=bool), 0.0, inner)
    return solve(vh, product(inner + diagonal_matrix(gvalues), vh))


def _same_phase(x: Any, v: Any, *, of: str) -> Any:
    """The adjoint of vectors, if a change of their phases changes nothing.

    It may stand beside that of numbers, which have none.
    """
    slopes = np.add.reduce(np.conjugate(v) * x, axis=-2).imag
    limit = 1e3 * x.shape[-1] * np.finfo(x.dtype).eps * np.abs(x).max(initial=0.0)
    if np.abs(slopes).max(initial=0.0) > limit:
        raise RuntimeError(
            f"`{of}`: what is differentiated depends on the phases of complex vectors, and these "
            "are arbitrary: use what does not, as absolute values or projectors"
        )
    return np.array(x)


def _geqrf(x: Any) -> Any:
    """LAPACK's R over reflections, and beside it their numbers as a column."""
    m, n = x.shape[-2:]
    out = np.zeros((*x.shape[:-1], n + 1), x.dtype)
    if x.size:
        factored, tau = np.linalg.qr(x, "raw")
        out[..., :n] = factored.mT
        out[..., : min(m, n), n] = tau
    return out


# fmt: off
part = linear(
    "part", lambda x, *, index: np.array(x[index]),
    x=lambda g, x_spec, index: embed(g, shape=x_spec.shape, index=index), grad_name="Slice",
    decomposition=lambda x, index: clone(getitem(x, index=index)), kinds="fib",
    sweep=KIND_VIEW, window=lambda x, index: x[index],
)
cholesky: Op = custom("cholesky", _cholesky, x=cholesky_vjp, grad_name="LinalgCholeskyEx",
                      complex=OWN, lapack=True, sweep=KIND_FACTOR)
eigh = custom("eigh", _eigh, x=_eigh_vjp, complex=OWN, grad_name="LinalgEigh", lapack=True,
              sweep=KIND_FACTOR)
qr = custom("qr", _qr, x=_qr_vjp, complex=OWN, grad_name="LinalgQr", lapack=True,
            sweep=KIND_FACTOR)
svd = custom("svd", _svd, x=_svd_vjp, complex=OWN, grad_name="LinalgSvd", lapack=True,
             sweep=KIND_FACTOR)
# To a matrix of orthonormal columns those that make it square.
completed: Op = custom("completed", _completed, x=_completed_vjp, complex=OWN,
                       grad_name="LinalgSvd", lapack=True)
any_basis = custom("any_basis", _any_basis, x=lambda g: g, v=CHECKED, complex=OWN,
                   grad_name="LinalgSvd", lapack=True)
eig = custom("eig", _eig, x=_eig_vjp, complex=OWN, grad_name="LinalgEig", lapack=True)
same_phase: Op = custom(
    "same_phase", _same_phase, x=lambda g, v: g, v=CHECKED, complex=OWN, grad_name="LinalgEig",
    lapack=True)
geqrf = custom("geqrf", _geqrf, x=REFUSED, lapack=True)
# fmt: on
