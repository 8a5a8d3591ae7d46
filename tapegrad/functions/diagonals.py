"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.index_plans import run_and_plan, run_planned
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions.arguments import as_input, one_dim
from tapegrad.functions.method_decorators import method
from tapegrad.ops import shape as s
from tapegrad.tensor import Tensor


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
