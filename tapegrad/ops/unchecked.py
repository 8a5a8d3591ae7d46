"""Solutions and factors that a matrix may not have: NaN, or what LAPACK leaves, and no error.

Beside each stands a code that says what failed, which PyTorch's functions ending in `_ex` return.
The derivatives are those of the rows that raise, and as meaningless as the results.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, OWN, NotDifferentiable, Op, custom
from tapegrad.ops.factorizations import cholesky_vjp
from tapegrad.ops.linalg import product, transposed
from tapegrad.ops.lu_factors import routine
from tapegrad.ops.solve import inv_vjp

CODE = NotDifferentiable("it says whether there is a result")


def _inv_ex(x: Any) -> Any:
    out = np.full_like(x, np.nan, order="C")
    for at in np.ndindex(*x.shape[:-2]):
        with suppress(np.linalg.LinAlgError):
            out[at] = np.linalg.inv(x[at])
    return out


def _solve_ex(a: Any, b: Any) -> Any:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.full((*batch, *b.shape[-2:]), np.nan, b.dtype)
    aa, bb = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, out.shape)
    for at in np.ndindex(*batch):
        with suppress(np.linalg.LinAlgError):
            out[at] = np.linalg.solve(aa[at], bb[at])
    return out


def _cholesky_ex(x: Any) -> Any:
    out = np.zeros_like(x, order="C")
    if x.size:
        potrf = routine("potrf", x.dtype)
        for at in np.ndindex(*x.shape[:-2]):
            out[at] = potrf(x[at], lower=1, clean=1)[0]
    return out


def _cholesky_code(x: Any) -> Any:
    """The order of the first leading minor that is not positive; 0: there is a factor."""
    out = np.zeros(x.shape[:-2], np.int32)
    if x.size:
        potrf = routine("potrf", x.dtype)
        for at in np.ndindex(*x.shape[:-2]):
            out[at] = potrf(x[at], lower=1)[1]
    return out


def _pivot_code(x: Any) -> Any:
    """The place, from 1, of the first zero on the diagonal of U in an elimination; 0: none."""
    out = np.zeros(x.shape[:-2], np.int32)
    if x.size:
        getrf = routine("getrf", x.dtype)
        for at in np.ndindex(*x.shape[:-2]):
            out[at] = getrf(x[at])[2]
    return out


def _block_code(x: Any, *, hermitian: bool) -> Any:
    """The same for the blocks of D in the factorization of a symmetric matrix."""
    out = np.zeros(x.shape[:-2], np.int32)
    if x.size:
        trf = routine("hetrf" if hermitian else "sytrf", x.dtype)
        for at in np.ndindex(*x.shape[:-2]):
            out[at] = trf(x[at], lower=1)[2]
    return out


# fmt: off
inv_ex = custom("inv_ex", _inv_ex, complex=ANALYTIC, x=inv_vjp, grad_name="LinalgInvEx",
                lapack=True)
solve_ex: Op = custom(
    "solve_ex", _solve_ex, complex=ANALYTIC,
    a=lambda g, a, y: -product(solve_ex(transposed(a), g), transposed(y)),
    b=lambda g, a: solve_ex(transposed(a), g), grad_name="LinalgSolveEx",
    lapack=True,
)
cholesky_ex = custom("cholesky_ex", _cholesky_ex, x=cholesky_vjp, complex=OWN,
                     grad_name="LinalgCholeskyEx", lapack=True)
cholesky_code = custom("cholesky_code", _cholesky_code, x=CODE, lapack=True)
pivot_code = custom("pivot_code", _pivot_code, x=CODE, lapack=True)
block_code = custom("block_code", _block_code, x=CODE, lapack=True)
# fmt: on
