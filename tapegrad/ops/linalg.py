"""Matrix products, and how matrices are built of rows, columns and diagonals."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.kernels.sweep.sweep_abi import KIND_MATMUL
from tapegrad.ops.complex_parts import conjugate
from tapegrad.ops.core import ANALYTIC, custom
from tapegrad.ops.large import large
from tapegrad.ops.shape import diagonal_embed, permute, reshape, sum_to, unsqueeze


def transposed(x: Any) -> Any:
    """The matrix transposed: the last two dimensions swapped."""
    n = len(x.shape)
    return permute(x, dims=(*range(n - 2), n - 1, n - 2))


def adjoint(x: Any) -> Any:
    """The conjugate of the transposed matrix."""
    return conjugate(transposed(x))


def as_rows(x: Any) -> Any:
    """Vectors as matrices of one row."""
    return unsqueeze(x, dims=(len(x.shape) - 1,))


def as_columns(x: Any) -> Any:
    """Vectors as matrices of one column."""
    return unsqueeze(x, dims=(len(x.shape),))


def diagonal_matrix(x: Any) -> Any:
    """Vectors as the diagonals of matrices."""
    n = len(x.shape)
    return diagonal_embed(x, shape=(*x.shape, x.shape[-1]), offset=0, dim1=n - 1, dim2=n)


def matrix_products(a: Any, b: Any) -> Any:
    """``a @ b``; of matrices with one other all rows are multiplied by one call of BLAS.

    >>> import numpy as np
    >>> from tapegrad.ops.linalg import matrix_products
    >>> matrix_products(np.ones((2, 3, 4)), np.ones((4, 5))).shape
    (2, 3, 5)
    """
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        *outer, inner = a.shape
        return np.matmul(a.reshape(prod(outer), inner), b).reshape(*outer, b.shape[1])
    return np.matmul(a, b)


def _strong_matmul(a: Any, b: Any) -> Any:
    """A matrix product in which a factor that is exactly zero gives zero, even against infinity."""
    with np.errstate(all="ignore"):
        if a.shape[-1] == 1 and a.ndim == b.ndim == 2:
            out = a * b  # NumPy's matmul does not see that this is a product of two vectors
        else:
            out = matrix_products(a, b)
        if out.size > a.size + b.size and _finite(a) and _finite(b):
            return out
        if np.isnan(np.add.reduce(out, axis=None)) and not (_finite(a) and _finite(b)):
            if min(a.ndim, b.ndim) == 1:  # as a matrix of one row, or of one column
                columns = b[:, None] if b.ndim == 1 else b
                return _strong_matmul(np.atleast_2d(a), columns).reshape(out.shape)
            terms = a[..., :, :, None] * b[..., None, :, :]
            zero = (a == 0)[..., :, :, None] | (b == 0)[..., None, :, :]
            out = np.add.reduce(np.where(zero, a.dtype.type(0), terms), axis=-2)
    return out


def _finite(x: Any) -> bool:
    return bool(np.isfinite(x).all())


def _left(g: Any, b: Any, a_spec: Any, b_spec: Any) -> Any:
    """The adjoint of `a` in ``a @ b``."""
    a1, b1 = len(a_spec.shape) == 1, len(b_spec.shape) == 1
    gm = unsqueeze(g, dims=(len(g.shape),)) if b1 else g
    gm = unsqueeze(gm, dims=(len(gm.shape) - 1,)) if a1 else gm
    bm = unsqueeze(b, dims=(1,)) if b1 else b
    out = product(gm, transposed(bm))
    return _fit(out, a_spec.shape, vector_axis=-2 if a1 else None)


def _right(g: Any, a: Any, a_spec: Any, b_spec: Any) -> Any:
    """The adjoint of `b` in ``a @ b``."""
    a1, b1 = len(a_spec.shape) == 1, len(b_spec.shape) == 1
    gm = unsqueeze(g, dims=(len(g.shape),)) if b1 else g
    gm = unsqueeze(gm, dims=(len(gm.shape) - 1,)) if a1 else gm
    am = unsqueeze(a, dims=(0,)) if a1 else a
    if len(am.shape) > 2 and len(b_spec.shape) < 3:  # one product, not a batch that is added up
        rows = prod(am.shape[:-1])
        am = reshape(am, shape=(rows, am.shape[-1]))
        gm = reshape(gm, shape=(rows, gm.shape[-1]))
    out = product(transposed(am), gm)
    return _fit(out, b_spec.shape, vector_axis=-1 if b1 else None)


def _fit(out: Any, shape: Any, vector_axis: int | None) -> Any:
    if vector_axis is not None:
        full = (shape[0], 1) if vector_axis == -1 else (1, shape[0])
        return reshape(sum_to(out, shape=full), shape=shape)
    return sum_to(out, shape=shape) if out.shape != shape else out


# fmt: off
matmul = custom("matmul", matrix_products, complex=ANALYTIC,
                a=lambda g, b, a_spec, b_spec: _left(g, b, a_spec, b_spec),
                b=lambda g, a, a_spec, b_spec: _right(g, a, a_spec, b_spec), grad_name="Mm",
                multilinear=True, sweep=KIND_MATMUL)
# The product that derivatives use: an adjoint that is exactly zero contributes exactly zero.
product = custom(
    "product", large("indexed_loops.outer", _strong_matmul, 1), complex=ANALYTIC,
     # of any two vectors
    a=lambda g, b, a_spec, b_spec: _left(g, b, a_spec, b_spec),
    b=lambda g, a, a_spec, b_spec: _right(g, a, a_spec, b_spec), grad_name="Mm",
    multilinear=True,
)
# fmt: on
