"""Products of matrices and vectors that are scaled and added to another Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import add, where
from tapegrad.functions.elementwise import mul
from tapegrad.functions.inplace_methods import copy_
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import bmm, mm, mv, outer
from tapegrad.functions.shapes import expand, permute, reshape
from tapegrad.tensor import Tensor, wrap


def _sum(input: Any, product: Tensor, beta: Any, alpha: Any, name: str) -> Tensor:
    x = as_input(input, name)
    if x._a.dtype != product._a.dtype and name != "addr":
        raise RuntimeError(
            f"`{name}`: expected operands of one dtype, got {x.dtype} and {product.dtype}: convert "
            "one with `.to`"
        )
    if x._a.shape != product._a.shape:
        try:
            x = expand(x, product._a.shape)
        except RuntimeError:
            raise RuntimeError(
                f"`{name}`: the input of shape {x._a.shape} does not expand to the shape "
                f"{product._a.shape} of the product"
            ) from None
    number: Any = {"b": bool, "i": int, "u": int}.get(product._a.dtype.kind, lambda x: x)
    # A factor that is a Tensor has a gradient, whatever it is equal to.
    plain = not isinstance(alpha, Tensor), not isinstance(beta, Tensor)
    scaled = product if plain[0] and alpha == 1 else mul(product, number(alpha))
    if plain[1] and beta == 0:  # what is in the input does not count, not even NaN
        return add(where(wrap(np.ones((), bool)), number(0), x), scaled)
    return add(x if plain[1] and beta == 1 else mul(x, number(beta)), scaled)


@method
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * mat1 @ mat2``.

    >>> import tapegrad as tg
    >>> tg.addmm(tg.ones(2), tg.eye(2), tg.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    return _sum(input, mm(mat1, mat2), beta, alpha, "addmm")


@method
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * mat @ vec``.

    >>> import tapegrad as tg
    >>> tg.addmv(tg.ones(2), tg.eye(2), tg.tensor([1.0, 2.0]))
    tensor([2., 3.])
    """
    return _sum(input, mv(mat, vec), beta, alpha, "addmv")


@method
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``.

    >>> import tapegrad as tg
    >>> tg.addr(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    return _sum(input, outer(vec1, vec2), beta, alpha, "addr")


@method
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input + alpha * batch1 @ batch2``, of batches of matrices.

    >>> import tapegrad as tg
    >>> tg.baddbmm(tg.ones(1), tg.ones(2, 1, 3), tg.ones(2, 3, 1)).flatten()
    tensor([4., 4.])
    """
    return _sum(input, bmm(batch1, batch2), beta, alpha, "baddbmm")


@method
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """``beta * input`` and the sum of ``alpha * batch1 @ batch2`` over the batch.

    >>> import tapegrad as tg
    >>> tg.addbmm(tg.ones(1), tg.ones(2, 1, 3), tg.ones(2, 3, 1))
    tensor([[7.]])
    """
    x, y = as_input(batch1, "addbmm"), as_input(batch2, "addbmm")
    if (x._a.ndim, y._a.ndim) != (3, 3) or x._a.shape[0] != y._a.shape[0]:
        raise RuntimeError(
            f"`addbmm` takes two batches of as many matrices, got the shapes {x._a.shape} and "
            f"{y._a.shape}"
        )
    # One product of what stands side by side sums over the batch as well.
    n, rows, inner = x._a.shape
    beside = reshape(permute(x, (1, 0, 2)), (rows, n * inner))
    return _sum(input, mm(beside, reshape(y, (n * inner, y._a.shape[-1]))), beta, alpha, "addbmm")


@method
def addmm_(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`addmm` in place."""
    return copy_(self, addmm(self, mat1, mat2, beta=beta, alpha=alpha))


@method
def addmv_(self: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`addmv` in place."""
    return copy_(self, addmv(self, mat, vec, beta=beta, alpha=alpha))


@method
def addr_(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`addr` in place."""
    return copy_(self, addr(self, vec1, vec2, beta=beta, alpha=alpha))


@method
def baddbmm_(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`baddbmm` in place."""
    return copy_(self, baddbmm(self, batch1, batch2, beta=beta, alpha=alpha))


@method
def addbmm_(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`addbmm` in place."""
    return copy_(self, addbmm(self, batch1, batch2, beta=beta, alpha=alpha))
