"""Matrices whose elements are those of a vector or two, with SciPy's arguments.

>>> import tapegrad as tg
>>> tg.scipy.linalg.toeplitz(tg.tensor([1.0, 2.0, 3.0]))
tensor([[1., 2., 3.],
        [2., 1., 2.],
        [3., 2., 1.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.complex_parts import conj
from tapegrad.functions.creation import zeros_like
from tapegrad.functions.indexing import getitem
from tapegrad.functions.joining import cat
from tapegrad.functions.matrices import solve
from tapegrad.functions.shapes import flip, narrow, reshape
from tapegrad.numpy_face.common import floating, promoted
from tapegrad.scipy.either import for_tensors
from tapegrad.tensor import Tensor, tensor_of

_own = for_tensors("scipy.linalg")


def _vector(x: Any, name: str) -> Tensor:
    t = tensor_of(x, f"scipy.linalg.{name}")
    if t._a.ndim > 1:
        raise ValueError(f"`scipy.linalg.{name}` of Tensors takes vectors, got {t._a.shape}")
    return reshape(t, (-1,))


def _row_after(c: Tensor, r: Tensor) -> Tensor:
    """A column and a row that begins at its end, without the element that the column has."""
    return cat(promoted(c, narrow(r, 0, 1, r._a.size - 1)))


@_own
def toeplitz(c: Any, r: Any = None) -> Tensor:
    """The matrix of constant diagonals with a first column and a first row.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.toeplitz(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 5.0, 6.0]))
    tensor([[1., 5., 6.],
            [2., 1., 5.]])
    """
    column = _vector(c, "toeplitz")
    row = conj(column) if r is None else _vector(r, "toeplitz")
    m, n = column._a.size, row._a.size
    places = np.arange(n) - np.arange(m)[:, None] + (m - 1)
    return getitem(_row_after(flip(column, (0,)), row), (places,))


@_own
def circulant(c: Any) -> Tensor:
    """The square matrix with a first column, each next one of which is turned by one.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.circulant(tg.tensor([1.0, 2.0]))
    tensor([[1., 2.],
            [2., 1.]])
    """
    column = _vector(c, "circulant")
    n = column._a.size
    return getitem(column, ((np.arange(n)[:, None] - np.arange(n)) % max(n, 1),))


@_own
def hankel(c: Any, r: Any = None) -> Tensor:
    """The matrix of constant antidiagonals with a first column and a last row, or zeros there.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.hankel(tg.tensor([1.0, 2.0]))
    tensor([[1., 2.],
            [2., 0.]])
    """
    column = _vector(c, "hankel")
    row = zeros_like(column) if r is None else _vector(r, "hankel")
    places = np.arange(column._a.size)[:, None] + np.arange(row._a.size)
    return getitem(_row_after(column, row), (places,))


@_own
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Tensor:
    """The solution of a system with a Toeplitz matrix, which is formed.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.solve_toeplitz(tg.tensor([2.0, 0.0]), tg.tensor([2.0, 4.0]))
    tensor([1., 2.])
    """
    pair = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    found: Tensor = solve(*(floating(t) for t in promoted(toeplitz(*pair), b)))
    return found
