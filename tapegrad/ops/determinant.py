"""Determinants.

The determinant is a polynomial, and so are its derivatives: they exist at singular matrices too.
The first is the matrix of cofactors, which is ``det(x) * inv(x).mT`` where there is an inverse, and
comes from the singular values where there is none.  The second, `cofactor_slope`, always comes from
them: near a singular matrix the formula with the inverse would lose all its digits.  The third and
higher ones are that formula's, and are refused where a matrix is singular.  The logarithm has the
derivative inf (or NaN, where the cofactor is zero) there, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_DET, KIND_SLOGDET
from tapegrad.ops.complex_parts import complex_, conjugate, imag, real
from tapegrad.ops.core import ANALYTIC, OWN, Op, custom
from tapegrad.ops.elementwise import is_complex, strong
from tapegrad.ops.large import large
from tapegrad.ops.linalg import adjoint, as_columns, product, transposed
from tapegrad.ops.lu_factors import Factors, kept
from tapegrad.ops.quiet_errstate import quietly
from tapegrad.ops.reduce import others_prod
from tapegrad.ops.reduce import sum as sum_
from tapegrad.ops.shape import getitem
from tapegrad.ops.solve import BATCH, DOUBLE, LinAlgError, inv, loops, singular_values


def _times(scalar: Any, matrix: Any) -> Any:
    """Each matrix times its number; a number that is exactly zero gives zero."""
    return strong(as_columns(as_columns(scalar)), matrix)


def _inner(a: Any, b: Any) -> Any:
    """The sum over all products of two elements at one place."""
    n = len(a.shape)
    return sum_(strong(a, b), dim=(n - 2, n - 1), keepdim=False)


def _singular_basis(x: Any) -> Any:
    """The singular values, the cofactors of both bases, and the determinant of these bases."""
    # In double precision: what is nearly zero counts.
    found = singular_values(x.astype(DOUBLE[x.dtype.char]), "det", full=True)
    u, s, vh = (y.astype(k.dtype) for y, k in zip(found, (x, x.real, x), strict=True))
    sign = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return np.conjugate(u), s, np.conjugate(vh), sign


def _det(x: Any, *, factors: Factors | None = None) -> Any:
    with np.errstate(all="ignore"):  # it may overflow, and be NaN, without a warning
        if factors is None:
            return np.linalg.det(x)
        sign, size = factors.slogdet()
        return sign * np.exp(size)


def _inverse(x: Any, factors: Factors | None) -> Any:
    """The inverse; `LinAlgError` where there is none."""
    if factors is None or factors.singular:
        return np.linalg.inv(x)
    return factors.inverse()


def _cofactor(x: Any, *, factors: Factors | None = None) -> Any:
    try:
        return _det(x, factors=factors)[..., None, None] * _inverse(x, factors).mT
    except np.linalg.LinAlgError:
        u, s, vh, sign = _singular_basis(x)
        return sign * np.matmul(u * others_prod(s, dim=s.ndim - 1)[..., None, :], vh)


def _cofactor_slope(w: Any, x: Any) -> Any:
    """The derivative of <w, cofactor(x)>, linear in w."""
    # In the singular basis, for i != j: the cofactor (i, i) moves with (j, j) by the product of all
    # other singular values, the cofactor (i, j) with (j, i) by minus that product.
    u, s, vh, sign = _singular_basis(x)
    n = s.shape[-1]
    eye = np.eye(n, dtype=bool)
    others = np.where(eye, s.dtype.type(1), s[..., None, :])
    pairs = np.where(eye, s.dtype.type(0), others_prod(others, dim=s.ndim))
    turned = np.matmul(np.matmul(u.mT, w), vh.mT)
    inner = -pairs * turned.mT
    inner += np.where(eye, np.matmul(pairs, turned.diagonal(0, -2, -1)[..., None]), 0)
    return sign * np.matmul(np.matmul(u, inner), vh)


def _third(g: Any, w: Any, x: Any) -> Any:
    # With t = inv(x).mT the slope is det(x) * (t <w, t> - t wt t), and dt = -t dxt t.
    try:
        t = transposed(inv(x))
    except LinAlgError:
        raise LinAlgError(
            f"the third derivative of `linalg.det` at matrices of shape {x.shape}, one of them "
            "singular, is not implemented: write the determinant as a sum of products"
        ) from None
    gt, wt = transposed(g), transposed(w)
    tgt, twt = product(product(t, gt), t), product(product(t, wt), t)
    on_g, on_w = _inner(g, t), _inner(w, t)
    whole = (
        _times(on_g * on_w - _inner(g, twt), t) - _times(on_g, twt) - _times(on_w, tgt)
        + product(product(twt, gt), t) + product(product(tgt, wt), t)
    )  # fmt: skip
    return _times(det(x), whole)


def _slogdet(x: Any, *, factors: Factors | None = None) -> Any:
    if factors is not None:
        return np.array(quietly(factors.slogdet))
    found = quietly(np.linalg.slogdet if loops is None or not x.size else loops.slogdet, x)
    return np.array(found) if x.ndim == 2 else np.stack(found, -1)


def _slogdet_vjp(g: Any, x: Any, factors: Factors | None) -> Any:
    weight = getitem(g, index=(..., 1))
    if is_complex(x):  # the sign turns by the imaginary part of what the logarithm changes by
        sign = getitem(slogdet(x, **kept(factors)), index=(..., 0))
        weight = complex_(real(weight), imag(conjugate(sign) * getitem(g, index=(..., 0))))
    return _times(weight, logdet_slope(x, **kept(factors)))


def _logdet_slope(x: Any, *, factors: Factors | None = None) -> Any:
    try:
        return np.ascontiguousarray(_inverse(x, factors).mT.conj())
    except np.linalg.LinAlgError:
        with np.errstate(all="ignore"):
            return np.conjugate(_cofactor(x) / _det(x)[..., None, None])


# fmt: off
det: Op = custom("det", large("small_systems.determinants", _det, BATCH), complex=ANALYTIC,
                 x=lambda g, x, factors: _times(g, cofactor(x, **kept(factors))),
                 grad_name="LinalgDet", lapack=True, sweep=KIND_DET)
cofactor: Op = custom("cofactor", _cofactor, complex=ANALYTIC, x=lambda g, x: cofactor_slope(g, x),
                      grad_name="LinalgDetBackward", lapack=True)
cofactor_slope: Op = custom("cofactor_slope", _cofactor_slope, complex=ANALYTIC,
                            grad_name="LinalgDetBackward",
                            w=lambda g, x: cofactor_slope(g, x), x=_third)
# Two numbers per matrix: the sign, which of real ones is constant where it is smooth, and the
# logarithm of the absolute value.
slogdet: Op = custom(
    "slogdet", _slogdet, grad_name="LinalgSlogdet", lapack=True, sweep=KIND_SLOGDET,
    x=_slogdet_vjp, complex=OWN,
)
logdet_slope: Op = custom(
    "logdet_slope", _logdet_slope, grad_name="LinalgSlogdetBackward", lapack=True, complex=OWN,
    x=lambda g, y: -product(product(y, adjoint(g)), y),
)
# fmt: on
