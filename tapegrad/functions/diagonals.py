"""Diagonals and triangles of matrices, and matrices along a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.devices import check_device
from tapegrad.base.dtypes import get_default_dtype, result_type, to_numpy
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions.arguments import TypeLike, as_input, one_dim
from tapegrad.functions.joining import cat
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import reshape, to
from tapegrad.ops import shape as s
from tapegrad.ops import tiling
from tapegrad.tensor import Tensor, wrap


@method
@view_of
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> ViewRequest:
    """The diagonal of two dimensions, as the last one; a view.

    >>> import tapegrad as tg
    >>> tg.diagonal(tg.eye(2))
    tensor([1., 1.])
    """
    x = as_input(input, "diagonal")
    a, b = one_dim(dim1, x._a.ndim, "diagonal"), one_dim(dim2, x._a.ndim, "diagonal")
    if a == b:
        raise RuntimeError(f"`diagonal` needs two different dimensions, got {dim1} and {dim2}")
    r = s.diagonal_of(x._a, offset, a, b)
    return ViewRequest(s.diagonal, x, {"offset": offset, "dim1": a, "dim2": b}, r, (offset, a, b))


@method
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix (a copy).

    >>> import tapegrad as tg
    >>> tg.diag(tg.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = as_input(input, "diag")
    if x._a.ndim == 1:
        n = x._a.shape[0] + abs(diagonal)
        found = run_planned(s.diagonal_embed, x, None, None, diagonal)
        if found is not None:
            return found
        params = {"shape": (n, n), "offset": diagonal, "dim1": 0, "dim2": 1}
        return run_and_plan(s.diagonal_embed, (x,), params, how=diagonal)
    if x._a.ndim == 2:
        found = run(s.diagonal, (x,), {"offset": diagonal, "dim1": 0, "dim2": 1})
        return run(s.clone, (found,), {})
    raise RuntimeError(f"`diag` takes a vector or a matrix, got the shape {x._a.shape}")


@method
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle; zeros above.

    >>> import tapegrad as tg
    >>> tg.tril(tg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    found = run_planned(s.tril, input, None, None, diagonal)
    if found is not None:
        return found
    return run_and_plan(s.tril, (_matrix(input, "tril"),), {"diagonal": diagonal}, how=diagonal)


@method
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle; zeros below.

    >>> import tapegrad as tg
    >>> tg.triu(tg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    found = run_planned(s.triu, input, None, None, diagonal)
    if found is not None:
        return found
    return run_and_plan(s.triu, (_matrix(input, "triu"),), {"diagonal": diagonal}, how=diagonal)


def _matrix(input: Any, name: str) -> Tensor:
    x = as_input(input, name)
    if x._a.ndim < 2:
        raise RuntimeError(f"`{name}` takes at least 2 dimensions, got the shape {x._a.shape}")
    return x


def _triangle(row: int, col: int, offset: int, dtype: TypeLike | None, lower: bool) -> Tensor:
    if row < 0 or col < 0:
        raise RuntimeError(f"a triangle of a matrix of {row} rows and {col} columns has no places")
    kind = np.dtype(np.int64) if dtype is None else to_numpy(dtype)
    if kind.kind not in "iu":
        raise NotImplementedError(f"places are integers: the dtype {dtype} does not hold them")
    inside = np.tri(row, col, offset if lower else offset - 1, dtype=bool)
    return wrap(np.stack(np.nonzero(inside if lower else ~inside)).astype(kind, copy=False))


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: TypeLike | None = None, device: Any = None
) -> Tensor:
    """The places on a diagonal of a matrix and below it: rows, and columns.

    >>> import tapegrad as tg
    >>> tg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    check_device(device)
    return _triangle(row, col, offset, dtype, lower=True)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: TypeLike | None = None, device: Any = None
) -> Tensor:
    """The places on a diagonal of a matrix and above it: rows, and columns.

    >>> import tapegrad as tg
    >>> tg.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    check_device(device)
    return _triangle(row, col, offset, dtype, lower=False)


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with matrices along its diagonal; a vector is a row, a number one element.

    >>> import tapegrad as tg
    >>> tg.block_diag(tg.tensor([[1, 2]]), tg.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    blocks = [as_input(x, "block_diag") for x in tensors]
    if not blocks:
        return wrap(np.zeros((1, 0), get_default_dtype().numpy))
    for x in blocks:
        if x._a.ndim > 2:
            raise RuntimeError(
                f"`block_diag` takes at most 2 dimensions, got the shape {x._a.shape}"
            )
    kind = result_type([x._a for x in blocks])
    blocks = [to(x if x._a.ndim == 2 else reshape(x, (1, x._a.size)), dtype=kind) for x in blocks]
    width, before, rows = sum([x._a.shape[1] for x in blocks]), 0, []
    for x in blocks:
        after = width - before - x._a.shape[1]
        rows.append(run(tiling.pad, (x,), {"widths": ((0, 0), (before, after)), "value": 0.0}))
        before += x._a.shape[1]
    return cat(rows)
