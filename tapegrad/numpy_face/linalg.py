"""`np.linalg` on Tensors: the functions of `tapegrad.linalg`, with NumPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import matrices, solve_fast
from tapegrad.functions import reductions as r
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import reshape
from tapegrad.numpy_face import products, shapes
from tapegrad.numpy_face.common import (
    PAIRS,
    SHORT,
    floating,
    handles,
    named,
    promoted,
    tensor,
    title,
)
from tapegrad.tensor import Tensor

PAIRS[np.linalg.solve] = solve_fast.solve
SHORT[np.linalg.slogdet] = matrices.slogdet


def _matrix(x: Any) -> Tensor:
    return floating(tensor(x))


def _same(func: Any, name: str) -> None:
    """A function of one argument that is the same here."""

    def handler(a: Any) -> Any:
        return named(name, title(func))(_matrix(a))

    handles(func)(handler)


_same(np.linalg.inv, "linalg.inv")
_same(np.linalg.det, "linalg.det")
_same(np.linalg.slogdet, "linalg.slogdet")


@handles(np.linalg.svdvals)
def _svdvals(x: Any) -> Any:
    return named("linalg.svdvals", "np.linalg.svdvals")(_matrix(x))


@handles(np.linalg.cholesky)
def _cholesky(a: Any, *, upper: bool = False) -> Any:
    return named("linalg.cholesky", "np.linalg.cholesky")(_matrix(a), upper=upper)


@handles(np.linalg.solve)
def _solve(a: Any, b: Any) -> Tensor:
    """A vector is what has one dimension; anything else is matrices, whatever its shape."""
    solve = named("linalg.solve", "np.linalg.solve")
    x, y = (floating(t) for t in promoted(a, b))
    shape = y._a.shape
    if not shape:
        raise np.linalg.LinAlgError(
            "`np.linalg.solve` takes a vector or matrices beside the matrices, got a number"
        )
    rows = (*shape, 1) if len(shape) == 1 else shape
    found = tensor(solve(x, reshape(y, (1,) * (x._a.ndim - len(rows)) + rows)))
    return reshape(found, found._a.shape[:-1]) if len(shape) == 1 else found


@handles(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:
    return named("linalg.eigh", "np.linalg.eigh")(_matrix(a), UPLO)


@handles(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return named("linalg.eigvalsh", "np.linalg.eigvalsh")(_matrix(a), UPLO)


@handles(np.linalg.svd)
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return _svdvals(a)
    return named("linalg.svd", "np.linalg.svd")(_matrix(a), full_matrices)


@handles(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise TypeError(
            f"`np.linalg.qr` of a Tensor has the modes 'reduced', 'complete', 'r', got {mode!r}"
        )
    qr = named("linalg.qr", "np.linalg.qr")
    return qr(_matrix(a), "reduced")[1] if mode == "r" else qr(_matrix(a), mode)


@handles(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """NumPy's cutoff is 1e-15 of the largest singular value, unless `rtol` is given."""
    if rcond is None and rtol is None:
        rcond = 1e-15
    pinv = named("linalg.pinv", "np.linalg.pinv")
    return pinv(_matrix(a), rtol=rtol if rcond is None else rcond, hermitian=hermitian)


@handles(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    return named("linalg.matrix_power", "np.linalg.matrix_power")(tensor(a), n)


@handles(np.linalg.multi_dot)
def _multi_dot(arrays: Any) -> Any:
    return named("linalg.multi_dot", "np.linalg.multi_dot")(promoted(*arrays))


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
    norm = named("linalg.matrix_norm", "np.linalg.norm")
    return tensor(norm(t, ord, axes, bool(keepdims)))


@handles(np.linalg.vector_norm)
def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    return r.norm(_matrix(x), float(ord), axis, bool(keepdims))


@handles(np.linalg.matrix_norm)
def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    return _matrices(_matrix(x), "fro" if ord is None else ord, (-2, -1), keepdims)


@handles(np.linalg.diagonal)
def _diagonal(x: Any, *, offset: int = 0) -> Tensor:
    return shapes.diagonal_(x, offset, -2, -1)


@handles(np.linalg.trace)
def _trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Tensor:
    return shapes.trace_(x, offset, -2, -1, dtype)


@handles(np.linalg.outer)
def _outer(x1: Any, x2: Any) -> Tensor:
    a, b = tensor(x1), tensor(x2)
    if a._a.ndim != 1 or b._a.ndim != 1:
        raise ValueError(
            f"`np.linalg.outer` takes two vectors, got the shapes {a._a.shape} and {b._a.shape}"
        )
    return products.outer_(a, b)


@handles(np.linalg.cross)
def _cross(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    named("linalg.cross", "np.linalg.cross")
    return products.cross_(x1, x2, axis=axis)


@handles(np.linalg.tensordot)
def _tensordot(x1: Any, x2: Any, *, axes: Any = 2) -> Tensor:
    return products.tensordot_(x1, x2, axes)


@handles(np.linalg.matmul)
def _matmul(x1: Any, x2: Any) -> Tensor:
    return matmul(*promoted(x1, x2))


@handles(np.linalg.vecdot)
def _vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Tensor:
    return products.vecdot_(x1, x2, axis)
