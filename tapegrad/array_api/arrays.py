"""Reductions, shapes, indexing, order, sets: NumPy's own functions, which take Tensors.

Where the standard's arguments are others than NumPy's, the function is written here.

>>> from tapegrad import array_api as xp
>>> x = xp.arange(4.0).requires_grad_()
>>> xp.sum(xp.sort(x, descending=True)[:2]).backward()
>>> x.grad
tensor([0., 0., 1., 1.])
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tapegrad.array_api.promotion import of_two, on_tensors, same_type
from tapegrad.functions import arithmetic, products, scans
from tapegrad.tensor import Tensor

# reductions
all, any = on_tensors(np.all), on_tensors(np.any)
argmax, argmin = on_tensors(np.argmax), on_tensors(np.argmin)
count_nonzero = on_tensors(np.count_nonzero)
cumulative_prod, cumulative_sum = on_tensors(np.cumulative_prod), on_tensors(np.cumulative_sum)
max, min, mean = on_tensors(np.max), on_tensors(np.min), on_tensors(np.mean)
prod, std, sum, var = map(on_tensors, (np.prod, np.std, np.sum, np.var))

# shapes
broadcast_to, concat, diff = map(on_tensors, (np.broadcast_to, np.concat, np.diff))
expand_dims, flip, moveaxis = map(on_tensors, (np.expand_dims, np.flip, np.moveaxis))
permute_dims, repeat, reshape = map(on_tensors, (np.permute_dims, np.repeat, np.reshape))
roll, squeeze, stack = map(on_tensors, (np.roll, np.squeeze, np.stack))
tile, tril, triu, unstack = map(on_tensors, (np.tile, np.tril, np.triu, np.unstack))

# indexing and searching
nonzero, take, take_along_axis = map(on_tensors, (np.nonzero, np.take, np.take_along_axis))
searchsorted = on_tensors(np.searchsorted)

# sets
unique_all, unique_counts = on_tensors(np.unique_all), on_tensors(np.unique_counts)
unique_inverse, unique_values = on_tensors(np.unique_inverse), on_tensors(np.unique_values)

# products
matmul, matrix_transpose = of_two(products.matmul, "matmul"), on_tensors(np.matrix_transpose)
_tensordot, _vecdot = on_tensors(np.tensordot), on_tensors(np.vecdot)
_broadcast_arrays, _meshgrid = on_tensors(np.broadcast_arrays), on_tensors(np.meshgrid)


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The places of the elements in ascending order.

    >>> from tapegrad import array_api as xp
    >>> xp.argsort(xp.asarray([3, 1, 2]))
    tensor([1, 2, 0])
    """
    return scans.argsort(x, axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in ascending order.

    >>> from tapegrad import array_api as xp
    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True)
    tensor([3, 2, 1])
    """
    return scans.sort(x, axis, descending, stable).values


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Tensors in the shape that they have together.

    >>> from tapegrad import array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.ones(2), xp.ones((3, 1)))]
    [tapegrad.Size([3, 2]), tapegrad.Size([3, 2])]
    """
    return list(_broadcast_arrays(*arrays))


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """The coordinates of a grid, from those of its axes.

    >>> from tapegrad import array_api as xp
    >>> xp.meshgrid(xp.arange(2), xp.arange(2))[0]
    tensor([[0, 1],
            [0, 1]])
    """
    return list(_meshgrid(*arrays, indexing=indexing))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over some axes of each, or the last of one and the first of the other.

    >>> from tapegrad import array_api as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 2)), axes=1)
    tensor([[3., 3.],
            [3., 3.]])
    """
    found: Tensor = _tensordot(*same_type(x1, x2), axes=axes)
    return found


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The inner products of vectors, the first conjugated.

    >>> from tapegrad import array_api as xp
    >>> xp.vecdot(xp.ones((2, 3)), xp.ones(3))
    tensor([3., 3.])
    """
    found: Tensor = _vecdot(*same_type(x1, x2), axis=axis)
    return found


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition holds, of `x2` elsewhere.

    >>> from tapegrad import array_api as xp
    >>> xp.where(xp.arange(3) > 1, 1.0, 0.0)
    tensor([0., 0., 1.])
    """
    found: Tensor = arithmetic.where(condition, *same_type(x1, x2))
    return found


__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "broadcast_arrays", "broadcast_to", "concat",
    "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "expand_dims", "flip", "matmul",
    "matrix_transpose", "max", "mean", "meshgrid", "min", "moveaxis", "nonzero", "permute_dims",
    "prod", "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "std", "sum",
    "take", "take_along_axis", "tensordot", "tile", "tril", "triu", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unstack", "var", "vecdot", "where",
]  # fmt: skip
