"""Decompositions of matrices: cholesky, eigh, qr, svd.

A record has one result, a decomposition several.  They are computed as one array, in which they lie
side by side; `part` takes each out as an array of its own.  It is linear, so the adjoints of all
results are together when the rule of the decomposition runs, and what they share is computed once.
The adjoint of a result that nobody used is exactly zero, and by the strong product it stays out of
everything: eigenvalues can be differentiated where eigenvectors cannot.

===========  ===============================  ==========================================
row          its one array                    parts
===========  ===============================  ==========================================
``eigh``     n × (n + 1)                      eigenvectors | eigenvalues as a column
``qr``       (m + n) × n, with m >= n         Q over R
``svd``      (m + 1 + n) × k, k = min(m, n)   U over the singular values over V
===========  ===============================  ==========================================

Conventions are PyTorch's.  `cholesky` and `eigh` read one triangle, and their gradient is that of
a function of symmetric matrices: it is symmetric.  Equal eigenvalues (or singular values) give an
infinite or undefined gradient if their vectors were used, and a right one if not.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_VIEW
from tapegrad.ops.core import Op, custom, linear
from tapegrad.ops.elementwise import strong, where
from tapegrad.ops.linalg import as_columns, as_rows, diagonal_matrix, product, transposed
from tapegrad.ops.shape import clone, embed, getitem, tril
from tapegrad.ops.solve import LinAlgError, not_converged, singular_values, solve_triangular


def columns(x: Any, start: int | None, stop: int | None) -> Any:
    """Some columns of matrices."""
    return getitem(x, index=(..., slice(start, stop)))


def rows(x: Any, start: int | None, stop: int | None) -> Any:
    """Some rows of matrices."""
    return getitem(x, index=(..., slice(start, stop), slice(None)))


def _skew(x: Any) -> Any:
    return x - transposed(x)


def _mirrored(x: Any) -> Any:
    """The lower triangle, and its mirror image in the upper one."""
    return tril(x, diagonal=0) + transposed(tril(x, diagonal=-1))


def _right_solve(x: Any, upper: Any) -> Any:
    """``x @ inv(upper).mT``."""
    found = solve_triangular(upper, transposed(x), upper=True, unit=False, strong=True)
    return transposed(found)


def _cholesky(x: Any) -> Any:
    with suppress(np.linalg.LinAlgError):
        y = np.linalg.cholesky(x)
        if not np.isnan(y.diagonal(0, -2, -1)).any():
            return y
    raise LinAlgError(
        f"`linalg.cholesky`: the input of shape {x.shape} is not positive definite: only symmetric "
        "matrices with positive eigenvalues have this decomposition; add a multiple of the "
        "identity if rounding is the cause"
    )


def _cholesky_vjp(g: Any, y: Any) -> Any:
    yt = transposed(y)
    inner = _mirrored(product(yt, g)) * 0.5
    half = solve_triangular(yt, inner, upper=True, unit=False, strong=True)
    return _right_solve(half, yt)


def _eigh(x: Any, *, upper: bool) -> Any:
    try:
        values, vectors = np.linalg.eigh(x, "U" if upper else "L")
    except np.linalg.LinAlgError:
        raise not_converged("eigh", x) from None
    return np.concatenate((vectors, values[..., None]), -1)


def _gaps(values: Any) -> Any:
    """For each two of several numbers the second minus the first; 1 on the diagonal."""
    eye = np.eye(values.shape[-1], dtype=bool)
    return where(eye, 1.0, as_rows(values) - as_columns(values))


def _eigh_vjp(g: Any, y: Any) -> Any:
    n = y.shape[-2]
    v, values = columns(y, 0, n), getitem(y, index=(..., n))
    gv, gvalues = columns(g, 0, n), getitem(g, index=(..., n))
    turned = strong(_skew(product(transposed(v), gv)), 0.5 / _gaps(values))
    return product(product(v, turned + diagonal_matrix(gvalues)), transposed(v))


def _qr(x: Any) -> Any:
    q, r = np.linalg.qr(x)
    return np.concatenate((q, r), -2)


def _qr_vjp(g: Any, y: Any) -> Any:
    m = y.shape[-2] - y.shape[-1]
    q, r, gq, gr = rows(y, 0, m), rows(y, m, None), rows(g, 0, m), rows(g, m, None)
    inner = product(r, transposed(gr)) - product(transposed(gq), q)
    return _right_solve(gq + product(q, _mirrored(inner)), r)


def _svd(x: Any) -> Any:
    u, s, vh = singular_values(x, "svd")
    return np.concatenate((u, s[..., None, :], vh.mT), -2)


def _svd_vjp(g: Any, y: Any, x_spec: Any) -> Any:
    m, n = x_spec.shape[-2:]
    u, s, v = rows(y, 0, m), getitem(y, index=(..., m, slice(None))), rows(y, m + 1, None)
    gu, gs, gv = rows(g, 0, m), getitem(g, index=(..., m, slice(None))), rows(g, m + 1, None)
    ut, vt = transposed(u), transposed(v)
    down, across = as_columns(s), as_rows(s)
    inverse = 1.0 / (_gaps(s) * where(np.eye(s.shape[-1], dtype=bool), 1.0, down + across))
    ugu, vgv = product(ut, gu), product(vt, gv)
    core = strong(strong(_skew(ugu), inverse), across) + strong(strong(_skew(vgv), inverse), down)
    out = product(product(u, core + diagonal_matrix(gs)), vt)
    if m > n:  # what leaves the space that the columns of u span
        out = out + product(strong(gu - product(u, ugu), 1.0 / across), vt)
    if n > m:
        out = out + product(u, transposed(strong(gv - product(v, vgv), 1.0 / across)))
    return out


# fmt: off
part = linear(
    "part", lambda x, *, index: np.array(x[index]),
    x=lambda g, x_spec, index: embed(g, shape=x_spec.shape, index=index), grad_name="Slice",
    decomposition=lambda x, index: clone(getitem(x, index=index)), kinds="fib",
    sweep=KIND_VIEW, window=lambda x, index: x[index],
)
cholesky: Op = custom("cholesky", _cholesky, x=_cholesky_vjp, grad_name="LinalgCholeskyEx",
                      lapack=True)
eigh = custom("eigh", _eigh, x=_eigh_vjp, grad_name="LinalgEigh")
qr = custom("qr", _qr, x=_qr_vjp, grad_name="LinalgQr")
svd = custom("svd", _svd, x=_svd_vjp, grad_name="LinalgSvd")
# fmt: on
