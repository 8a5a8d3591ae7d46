"""Distances and angles between vectors, and vectors of length one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arguments import as_input, numpy_names
from tapegrad.functions.arithmetic import clamp, result_type
from tapegrad.functions.compositions import broadcast_tensors
from tapegrad.functions.indexing import index_select
from tapegrad.functions.norms import vector_norm
from tapegrad.functions.reductions import sum
from tapegrad.tensor import Tensor, wrap


@numpy_names
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension; lengths are at least `eps`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.cosine_similarity(tg.ones(2), tg.tensor([1.0, 0.0]), dim=0)
    tensor(0.7071)
    """
    a, b = as_input(x1, "cosine_similarity"), as_input(x2, "cosine_similarity")
    kind = result_type(a, b)
    if not kind.is_floating_point:
        raise RuntimeError(f"`cosine_similarity` takes floating-point numbers, got {kind}")
    a, b = broadcast_tensors(a.to(kind), b.to(kind))  # `dim` is one of the result
    return sum((a / _length(a, dim, eps)) * (b / _length(b, dim, eps)), dim)


def _length(x: Tensor, dim: int, eps: float) -> Tensor:
    """The length of vectors, at least `eps`; the derivative is that of the length everywhere."""
    length = vector_norm(x, 2, dim, True)
    return length + clamp(eps - length.detach(), min=0.0)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The length of the differences of vectors, to whose elements `eps` is added.

    >>> import tapegrad as tg
    >>> tg.nn.functional.pairwise_distance(tg.tensor([[3.0, 4.0]]), tg.zeros(1, 2))
    tensor([5.0000])
    """
    a = as_input(x1, "pairwise_distance")
    return vector_norm(a - x2 + eps, p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances between each two of the rows of a matrix.

    >>> import tapegrad as tg
    >>> tg.nn.functional.pdist(tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = as_input(input, "pdist")
    if x._a.ndim != 2:
        raise RuntimeError(f"`pdist` takes a matrix, got the shape {x._a.shape}")
    if p < 0:
        raise RuntimeError(f"`pdist`: p must not be negative, got {p}")
    one, two = np.triu_indices(x._a.shape[0], 1)
    return vector_norm(index_select(x, 0, wrap(one)) - index_select(x, 0, wrap(two)), p, -1)


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None
) -> Tensor:
    """Vectors along a dimension divided by their length, which is taken to be at least `eps`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.normalize(tg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    if out is not None:
        raise TypeError("`normalize` does not take `out`: use `out.copy_(normalize(x))`")
    x = as_input(input, "normalize")
    return x / clamp(vector_norm(x, p, dim, True), min=eps)
