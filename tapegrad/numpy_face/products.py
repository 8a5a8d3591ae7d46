"""Products of vectors, matrices and arrays of any rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import elementwise as ew
from tapegrad.functions.complex_parts import conj
from tapegrad.functions.contractions import cross, dims_of_both, einsum, kron, tensordot
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import flip, movedim, reshape
from tapegrad.numpy_face.common import handles, promoted, tensor
from tapegrad.numpy_face.shapes import convolve_
from tapegrad.tensor import Tensor


@handles(np.dot)
def _dot(a: Any, b: Any) -> Tensor:
    """Over the last axis of the first and the last but one of the second."""
    x, y = promoted(a, b)
    if not x._a.ndim or not y._a.ndim:
        return ew.mul(x, y)
    if y._a.ndim <= 2 and (y._a.ndim == 1 or x._a.ndim <= 2):
        return matmul(x, y)
    return _contracted(x, movedim(y, -2, 0))


@handles(np.inner)
def _inner(a: Any, b: Any) -> Tensor:
    x, y = promoted(a, b)
    if not x._a.ndim or not y._a.ndim:
        return ew.mul(x, y)
    if x._a.ndim == y._a.ndim == 1:
        return matmul(x, y)
    return _contracted(x, movedim(y, -1, 0))


def _contracted(x: Tensor, y: Tensor) -> Tensor:
    """Over the last axis of one and the first of the other."""
    before, after = x._a.shape[:-1], y._a.shape[1:]
    rows, cols = int(np.prod(before)), int(np.prod(after))
    flat = matmul(reshape(x, (rows, x._a.shape[-1])), reshape(y, (y._a.shape[0], cols)))
    return reshape(flat, (*before, *after))


@handles(np.vdot)
def _vdot(a: Any, b: Any) -> Tensor:
    x, y = promoted(a, b)
    return matmul(conj(reshape(x, (x._a.size,))), reshape(y, (y._a.size,)))


def vecdot_(a: Any, b: Any, axis: int = -1) -> Tensor:
    """`np.vecdot`: vectors of one length, of which the first is conjugated."""
    x, y = promoted(a, b)
    check_lengths("np.vecdot", x, y, axis, axis)
    product = ew.mul(conj(x), y)
    return sum_(product, axis, dtype=product.dtype)


def check_lengths(name: str, x: Tensor, y: Tensor, i: int, j: int) -> None:
    """Refuse dimensions to sum over that differ: one of one element goes with no other."""
    sx, sy = x._a.shape, y._a.shape
    if not -len(sx) <= i < len(sx) or not -len(sy) <= j < len(sy) or sx[i] != sy[j]:
        raise ValueError(
            f"`{name}` sums over axis {i} of the shape {sx} and axis {j} of {sy}: both must be "
            "there and have one size"
        )


@handles(np.outer)
def outer_(a: Any, b: Any) -> Tensor:
    """`np.outer`."""
    x, y = tensor(a), tensor(b)
    return ew.mul(reshape(x, (x._a.size, 1)), reshape(y, (y._a.size,)))


@handles(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    x, y = promoted(a, v)
    if x._a.ndim != 1 or y._a.ndim != 1:
        raise ValueError(f"`np.correlate` takes vectors, got {x._a.shape} and {y._a.shape}")
    y = conj(y)
    if y._a.size > x._a.size:
        return flip(convolve_(y, flip(x, (0,)), mode), (0,))
    return convolve_(x, flip(y, (0,)), mode)


@handles(np.einsum)
def _einsum(*operands: Any, optimize: Any = False) -> Tensor:
    given = list(operands)
    lists = not isinstance(given[0], str)  # of numbers, one after each operand
    places = slice(0, len(given) // 2 * 2, 2) if lists else slice(1, None)
    given[places] = promoted(*given[places])
    return einsum(*given)


@handles(np.tensordot)
def tensordot_(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """`np.tensordot`, for which an axis of one element goes with no other."""
    x, y = promoted(a, b)
    sx, sy = x._a.shape, y._a.shape
    left, right = dims_of_both(sx, sy, axes)
    if [sx[i] for i in left] != [sy[j] for j in right]:
        raise ValueError(
            f"`np.tensordot`: the axes {left} of the shape {sx} and {right} of {sy} are summed "
            "over together, their sizes must agree"
        )
    return tensordot(x, y, (left, right))


handles(np.kron)(lambda a, b: kron(tensor(a), tensor(b)))


@handles(np.cross)
def cross_(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """`np.cross`, of vectors in space."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = movedim(tensor(a), axisa, -1), movedim(tensor(b), axisb, -1)
    if x._a.shape[-1] != 3 or y._a.shape[-1] != 3:
        raise ValueError(
            f"`np.cross` takes vectors of 3 components, got the shapes {x._a.shape} and "
            f"{y._a.shape} (the axis last)"
        )
    n = max(x._a.ndim, y._a.ndim)
    x, y = (reshape(t, (1,) * (n - t._a.ndim) + t._a.shape) for t in (x, y))
    return movedim(cross(x, y, -1), -1, axisc)
