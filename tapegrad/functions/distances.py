"""Distances between points, and norms that are kept below a bound."""

from __future__ import annotations

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions import reductions as r
from tapegrad.functions.arguments import as_input, one_dim
from tapegrad.functions.inplace_methods import copy_
from tapegrad.functions.joining import cat
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import transpose, unsqueeze
from tapegrad.ops.index import select_rows
from tapegrad.tensor import Tensor, wrap

# How many points are so many that the products of matrices pay; PyTorch's number.
MANY = 25
MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


@method
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference.

    >>> import tapegrad as tg
    >>> tg.dist(tg.tensor([1.0, 2.0]), tg.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return r.norm(ar.sub(as_input(input, "dist"), as_input(other, "dist")), p)


def _points(x: Tensor, p: float, name: str) -> Tensor:
    t = as_input(x, name)
    if t._a.dtype.kind != "f":
        raise RuntimeError(f"`{name}` takes floating-point numbers, got {t.dtype}")
    if p < 0:
        raise RuntimeError(f"`{name}`: p must not be negative, got {p}")
    return t


def _lengths(differences: Tensor, p: float) -> Tensor:
    """The norms along the last dimension; what has no elements has the length 0."""
    return r.norm(differences, p if differences._a.shape[-1] else 2, -1)


def _euclidean(a: Tensor, b: Tensor) -> Tensor:
    """Distances by one product of matrices, ``sqrt(a·a - 2 a·b + b·b)``.

    That of equal points is the root of the smallest number, and has the derivative 0.
    """
    kind = a._a.dtype
    ones_a, ones_b = (wrap(np.ones((*x._a.shape[:-1], 1), kind)) for x in (a, b))
    lengths_a, lengths_b = (r.sum(ew.square(x), -1, keepdim=True) for x in (a, b))
    left = cat([ew.mul(a, -2.0), lengths_a, ones_a], -1)
    right = cat([b, ones_b, lengths_b], -1)
    squares = matmul(left, transpose(right, -2, -1))
    return ew.sqrt(ar.clamp(squares, min=float(np.finfo(kind).tiny)))


def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:  # fmt: skip
    """The distances in the p-norm of each row of one matrix from each row of another.

    Euclidean ones of many points are made of products of matrices, which is quick and less exact
    for points that are near to each other; `compute_mode` may forbid it.

    >>> import tapegrad as tg
    >>> tg.cdist(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0], [1.0, 0.0]]))
    tensor([[5., 1.]])
    """
    a, b = _points(x1, p, "cdist"), _points(x2, p, "cdist")
    if a._a.ndim < 2 or b._a.ndim < 2 or a._a.shape[-1] != b._a.shape[-1]:
        raise RuntimeError(
            "`cdist` takes matrices with as many columns as each other, got the shapes "
            f"{a._a.shape} and {b._a.shape}"
        )
    if a._a.dtype != b._a.dtype:
        raise RuntimeError(f"`cdist` takes points of one dtype, got {a.dtype} and {b.dtype}")
    if compute_mode not in MODES:
        raise ValueError(f"`cdist`: compute_mode is one of {MODES}, got {compute_mode!r}")
    many = max(a._a.shape[-2], b._a.shape[-2]) > MANY
    if p == 2 and (compute_mode == MODES[1] or (compute_mode == MODES[0] and many)):
        return _euclidean(a, b)
    return _lengths(ar.sub(unsqueeze(a, -2), unsqueeze(b, -3)), p)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The distances in the p-norm of each row from each that comes after it.

    >>> import tapegrad as tg
    >>> tg.pdist(tg.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    x = _points(input, p, "pdist")
    if x._a.ndim != 2:
        raise RuntimeError(f"`pdist` takes a matrix, got the shape {x._a.shape}")
    i, j = (wrap(k) for k in np.triu_indices(x._a.shape[0], 1))
    one, other = (run(select_rows, (x, k), {"dim": 0}) for k in (i, j))
    return _lengths(ar.sub(one, other), p)


@method
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along a dimension, each scaled down if its p-norm is above a bound.

    >>> import tapegrad as tg
    >>> tg.renorm(tg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = as_input(input, "renorm")
    if x._a.ndim < 2:
        raise RuntimeError(f"`renorm` takes at least 2 dimensions, got the shape {x._a.shape}")
    if p <= 0 or maxnorm < 0:
        raise RuntimeError(
            f"`renorm`: p must be positive and maxnorm not negative, got p={p} and "
            f"maxnorm={maxnorm}"
        )
    d = one_dim(dim, x._a.ndim, "renorm")
    size = r.norm(x, p, tuple(k for k in range(x._a.ndim) if k != d), keepdim=True)
    factor = ar.where(ew.gt(size, maxnorm), ar.div(maxnorm, ar.add(size, 1e-7)), 1.0)
    return ew.mul(x, factor)


@method
def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`renorm` in place."""
    return copy_(self, renorm(self.clone(), p, dim, maxnorm))
