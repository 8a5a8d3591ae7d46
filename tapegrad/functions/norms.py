"""The norms of `tapegrad.linalg`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.dtypes import of_numpy, to_numpy
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import all_dims, as_input, numpy_names, one_dim
from tapegrad.functions.elementwise import abs as abs_
from tapegrad.functions.factorizations import svdvals
from tapegrad.functions.reductions import Given, amax, amin, norm_of
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import permute, to
from tapegrad.ops.core import Op
from tapegrad.ops.shape import unsqueeze
from tapegrad.tensor import Tensor

inf = float("inf")


def _typed(x: Any, dtype: Any, name: str) -> Tensor:
    t = as_input(x, name)
    if t._a.dtype.kind not in "fc":
        raise RuntimeError(
            f"`{name}` takes Tensors of a floating-point or complex type, got {t.dtype}: convert "
            "with `.to`"
        )
    if dtype is None:
        return t
    kind = to_numpy(dtype)
    if kind.kind != t._a.dtype.kind or kind.itemsize < t._a.dtype.itemsize:
        raise RuntimeError(
            f"`{name}`: dtype is a type of that kind that holds {t.dtype}, got {of_numpy(kind)}"
        )
    return to(t, kind)


@numpy_names
def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of the elements, as of one vector: ``sum(abs(x) ** ord) ** (1 / ord)``.

    `ord` may be inf, -inf and 0 too; `dim` is one dimension, several, or None for all.

    >>> import tapegrad as tg
    >>> tg.linalg.vector_norm(tg.tensor([3.0, 4.0]))
    tensor(5.)
    """
    name = "linalg.vector_norm"
    t = _typed(x, dtype, name)
    if not isinstance(ord, (int, float)):
        raise TypeError(f"`{name}`: ord is a number, got {ord!r}")
    t = abs_(t) if t._a.dtype.kind == "c" else t
    return norm_of(t, _given, dim, keepdim, ord)


def _given(op: Op, t: Tensor, dim: Any, keepdim: bool, ord: Any) -> Given:
    name = "linalg.vector_norm"
    dims = all_dims(dim, t._a.ndim, name)
    empty = not all(t._a.shape[d] for d in dims)
    if empty and (ord < 0 or ord == inf):
        raise RuntimeError(
            f"`{name}`: ord={ord} is not defined for no elements, got the shape {t._a.shape}"
        )
    return t, {"p": float(ord), "dim": dims, "keepdim": keepdim}


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices.

    `ord` is "fro" (the norm of the elements), "nuc" (the sum of the singular values), 2 or -2 (the
    largest or smallest of them), 1 or -1 (the largest or smallest sum of a column's absolute
    values), inf or -inf (of a row's).

    >>> import tapegrad as tg
    >>> a = tg.tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> tg.linalg.matrix_norm(a, 1), tg.linalg.matrix_norm(a, float("inf"))
    (tensor(6.), tensor(7.))
    """
    name = "linalg.matrix_norm"
    t = _typed(A, dtype, name)
    if t._a.ndim < 2:
        raise RuntimeError(f"`{name}` takes at least 2 dimensions, got the shape {t._a.shape}")
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        raise RuntimeError(f"`{name}`: dim is a tuple of two dimensions, got {dim!r}")
    rows, cols = (one_dim(d, t._a.ndim, name) for d in dim)
    if rows == cols:
        raise RuntimeError(f"`{name}`: dim is a tuple of two different dimensions, got {dim!r}")
    if ord == "fro":
        return vector_norm(t, 2, (min(rows, cols), max(rows, cols)), keepdim)
    if ord in ("nuc", 2, -2):
        return _spectral(t, ord, rows, cols, keepdim)
    if ord in (1, -1, inf, -inf):
        summed, compared = (rows, cols) if ord in (1, -1) else (cols, rows)
        sums = sum_(abs_(t), summed, keepdim=True)
        found = _extreme(sums, ord, compared, True)
        return found if keepdim else found.squeeze((rows, cols))
    raise RuntimeError(
        f"`{name}`: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}; for other norms "
        "of the elements use `vector_norm`"
    )


def _extreme(x: Tensor, ord: Any, dim: int, keepdim: bool) -> Tensor:
    """The largest or smallest of numbers that are not negative; the largest of none is 0."""
    if ord > 0 and not x._a.shape[dim]:
        return sum_(x.detach(), dim, keepdim=keepdim)
    return (amax if ord > 0 else amin)(x, dim, keepdim=keepdim)


def _spectral(t: Tensor, ord: Any, rows: int, cols: int, keepdim: bool) -> Tensor:
    rest = [d for d in range(t._a.ndim) if d not in (rows, cols)]
    values = svdvals(permute(t, [*rest, rows, cols]))
    found = sum_(values, -1) if ord == "nuc" else _extreme(values, ord, -1, False)
    if not keepdim:
        return found
    return run(unsqueeze, (found,), {"dims": (min(rows, cols), max(rows, cols))})


@numpy_names
def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`vector_norm` or `matrix_norm`, by PyTorch's rule.

    Without `ord` it is the 2-norm of the elements.  With it, it is the norm of vectors if `dim` is
    one dimension (or `A` a vector), and of matrices if `dim` is two (or `A` a matrix).

    >>> import tapegrad as tg
    >>> tg.linalg.norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]])), tg.linalg.norm(tg.eye(2), 1)
    (tensor(5.), tensor(1.))
    """
    name = "linalg.norm"
    t = _typed(A, dtype, name)
    one = isinstance(dim, (int, np.integer))
    if dim is not None and not one and len(dim) not in (1, 2):
        raise RuntimeError(f"`{name}`: dim is one dimension or two, got {dim!r}")
    if ord is None:
        return vector_norm(t, 2, dim, keepdim)
    if dim is None:
        if t._a.ndim not in (1, 2):
            raise RuntimeError(
                f"`{name}`: with `ord` and without `dim` it takes a vector or a matrix, got the "
                f"shape {t._a.shape}: pass `dim`"
            )
        dim = tuple(range(t._a.ndim))
    if isinstance(ord, str) or (not one and len(dim) == 2):
        return matrix_norm(t, ord, (dim,) if one else dim, keepdim)
    return vector_norm(t, ord, dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix, or of the matrices of two dimensions.

    >>> import tapegrad as tg
    >>> tg.nuclear_norm(tg.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(7.)
    """
    return matrix_norm(input, "nuc", (-2, -1) if dim is None else tuple(dim), keepdim)


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The 2-norm of the elements along one dimension or two.

    >>> import tapegrad as tg
    >>> tg.frobenius_norm(tg.tensor([[3.0], [4.0]]), (0, 1))
    tensor(5.)
    """
    return vector_norm(input, 2, dim, keepdim)
