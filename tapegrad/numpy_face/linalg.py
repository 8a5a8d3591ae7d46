"""`np.linalg` on Tensors: the functions of `tapegrad.linalg`, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import factorizations as factors
from tapegrad.functions import matrices, solve_fast
from tapegrad.functions import reductions as r
from tapegrad.functions.matrix_chains import multi_dot
from tapegrad.functions.norms import matrix_norm
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import reshape
from tapegrad.numpy_face import products, shapes
from tapegrad.numpy_face.common import PAIRS, SHORT, floating, handles, promoted, tensor
from tapegrad.tensor import Tensor

PAIRS[np.linalg.solve] = solve_fast.solve
SHORT[np.linalg.slogdet] = matrices.slogdet


def _matrix(x: Any) -> Tensor:
    return floating(tensor(x))


handles(np.linalg.inv)(lambda a: matrices.inv(_matrix(a)))
handles(np.linalg.det)(lambda a: matrices.det(_matrix(a)))
handles(np.linalg.slogdet)(lambda a: matrices.slogdet(_matrix(a)))
handles(np.linalg.svdvals)(lambda x: factors.svdvals(_matrix(x)))
handles(np.linalg.cholesky)(lambda a, *, upper=False: factors.cholesky(_matrix(a), upper=upper))
handles(np.linalg.eigh)(lambda a, UPLO="L": factors.eigh(_matrix(a), UPLO))
handles(np.linalg.eigvalsh)(lambda a, UPLO="L": factors.eigvalsh(_matrix(a), UPLO))
handles(np.linalg.matrix_power)(lambda a, n: matrices.matrix_power(tensor(a), n))
handles(np.linalg.multi_dot)(lambda arrays: multi_dot(promoted(*arrays)))
handles(np.linalg.diagonal)(lambda x, *, offset=0: shapes.diagonal_(x, offset, -2, -1))
handles(np.linalg.trace)(lambda x, *, offset=0, dtype=None: shapes.trace_(x, offset, -2, -1, dtype))
handles(np.linalg.cross)(lambda x1, x2, *, axis=-1: products.cross_(x1, x2, axis=axis))
handles(np.linalg.tensordot)(lambda x1, x2, *, axes=2: products.tensordot_(x1, x2, axes))
handles(np.linalg.matmul)(lambda x1, x2: matmul(*promoted(x1, x2)))
handles(np.linalg.vecdot)(lambda x1, x2, *, axis=-1: products.vecdot_(x1, x2, axis))


@handles(np.linalg.solve)
def _solve(a: Any, b: Any) -> Tensor:
    """A vector is what has one dimension; anything else is matrices, whatever its shape."""
    x, y = (floating(t) for t in promoted(a, b))
    shape = y._a.shape
    if not shape:
        raise np.linalg.LinAlgError(
            "`np.linalg.solve` takes a vector or matrices beside the matrices, got a number"
        )
    rows = (*shape, 1) if len(shape) == 1 else shape
    found = matrices.solve(x, reshape(y, (1,) * (x._a.ndim - len(rows)) + rows))
    return reshape(found, found._a.shape[:-1]) if len(shape) == 1 else found


@handles(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return factors.svdvals(_matrix(a))
    return factors.svd(_matrix(a), full_matrices)


@handles(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(
            f"`np.linalg.qr` of a Tensor has the modes 'reduced', 'complete', 'r', got {mode!r}"
        )
    found = factors.qr(_matrix(a), "reduced" if mode == "r" else mode)
    return found.R if mode == "r" else found


@handles(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """NumPy's cutoff is 1e-15 of the largest singular value, unless `rtol` is given."""
    if rcond is None and rtol is None:
        rcond = 1e-15
    rtol = rtol if rcond is None else rcond
    return matrices.pinv(_matrix(a), rtol=rtol, hermitian=hermitian)


@handles(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    t = _matrix(x)
    if ord is None:
        return r.norm(t, 2, axis, bool(keepdims))
    axes = tuple(range(t._a.ndim)) if axis is None else axis
    axes = (axes,) if isinstance(axes, (int, np.integer)) else tuple(axes)
    if len(axes) == 2:
        return _matrices(t, ord, axes, keepdims)
    if len(axes) != 1 or isinstance(ord, str):
        raise ValueError(
            f"`np.linalg.norm`: the norm {ord!r} is not one of {len(axes)} axes: 1 for vectors, "
            "2 for matrices"
        )
    return r.norm(t, float(ord), axes, bool(keepdims))


def _matrices(t: Tensor, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Tensor:
    if ord == "fro":
        return r.norm(t, 2, axes, bool(keepdims))
    return matrix_norm(t, ord, axes, bool(keepdims))


@handles(np.linalg.vector_norm)
def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    return r.norm(_matrix(x), float(ord), axis, bool(keepdims))


@handles(np.linalg.matrix_norm)
def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    return _matrices(_matrix(x), "fro" if ord is None else ord, (-2, -1), keepdims)


@handles(np.linalg.outer)
def _outer(x1: Any, x2: Any) -> Tensor:
    a, b = tensor(x1), tensor(x2)
    if a._a.ndim != 1 or b._a.ndim != 1:
        raise ValueError(
            f"`np.linalg.outer` takes two vectors, got the shapes {a._a.shape} and {b._a.shape}"
        )
    return products.outer_(a, b)
