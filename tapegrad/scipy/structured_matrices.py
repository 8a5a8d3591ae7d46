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
from tapegrad.functions.diagonals import diag
from tapegrad.functions.indexing import getitem
from tapegrad.functions.joining import cat
from tapegrad.functions.matrices import solve
from tapegrad.functions.products import matmul
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


def _given(c_or_cr: Any) -> Tensor:
    """The Toeplitz matrix of a column, or of a column and a row."""
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


@for_tensors("scipy.linalg", "c_or_cr")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Tensor:
    """The solution of a system with a Toeplitz matrix, which is formed.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.solve_toeplitz(tg.tensor([2.0, 0.0]), tg.tensor([2.0, 4.0]))
    tensor([1., 2.])
    """
    found: Tensor = solve(*(floating(t) for t in promoted(_given(c_or_cr), b)))
    return found


@for_tensors("scipy.linalg", "c_or_cr")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """The product of a Toeplitz matrix, which is formed.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.matmul_toeplitz(tg.tensor([2.0, 1.0]), tg.tensor([1.0, 2.0]))
    tensor([4., 5.])
    """
    return matmul(*promoted(_given(c_or_cr), x))


@_own
def solve_circulant(
    c: Any, b: Any, singular: str = "raise", tol: Any = None, caxis: int = -1, baxis: int = 0,
    outaxis: int = 0,
) -> Any:  # fmt: skip
    """The solution of systems with circulant matrices, by Fourier transforms.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.solve_circulant(tg.tensor([2.0, 0.0]), tg.tensor([2.0, 4.0]))
    tensor([1., 2.])
    """
    if singular != "raise" or tol is not None:
        raise TypeError(
            "`scipy.linalg.solve_circulant` of Tensors takes neither `singular` nor `tol`: a "
            "matrix without an inverse gives infinities"
        )
    column, right = np.moveaxis(c, caxis, -1), np.moveaxis(b, baxis, -1)
    found = np.fft.ifft(np.fft.fft(right) / np.fft.fft(column))
    whole = found if "c" in (column.dtype.kind, right.dtype.kind) else found.real
    return np.moveaxis(whole, -1, outaxis)


@_own
def companion(a: Any) -> Tensor:
    """The matrix whose eigenvalues are the roots of a polynomial, the highest power first.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.companion(tg.tensor([2.0, 4.0, 6.0]))
    tensor([[-2., -3.],
            [ 1.,  0.]])
    """
    t = floating(_vector(a, "companion"))
    n = t._a.size
    if n < 2:
        raise ValueError(f"`scipy.linalg.companion`: two coefficients or more, got {n}")
    return _below(-t[1:] / t[0], t.new_ones(n - 2))


@_own
def leslie(f: Any, s: Any) -> Tensor:
    """The matrix of a population's next generation: births in its first row, survival below.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.leslie(tg.tensor([0.5, 2.0]), tg.tensor([0.25]))
    tensor([[0.5000, 2.0000],
            [0.2500, 0.0000]])
    """
    births, survival = promoted(_vector(f, "leslie"), _vector(s, "leslie"))
    if births._a.size != survival._a.size + 1 or not survival._a.size:
        raise ValueError(
            "`scipy.linalg.leslie`: the second vector has one element less than the first, got "
            f"{births._a.size} and {survival._a.size}"
        )
    return _below(births, survival)


def _below(row: Tensor, beside: Tensor) -> Tensor:
    """The matrix of a first row, and of what stands just below its diagonal."""
    return cat([row[None], cat([diag(beside), zeros_like(row[1:, None])], 1)])


@_own
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Tensor:
    """The matrix whose product with a vector of `n` elements is the convolution with `a`.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.convolution_matrix(tg.tensor([1.0, 2.0]), 2, "valid")
    tensor([[2., 1.]])
    """
    t = _vector(a, "convolution_matrix")
    m = t._a.size
    if n < 1 or not m:
        raise ValueError("`scipy.linalg.convolution_matrix`: vectors of one element or more")
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"`scipy.linalg.convolution_matrix`: mode is 'full', 'same' or 'valid', got {mode!r}"
        )
    beyond = t.new_zeros(n - 1)
    whole = toeplitz(cat([t, beyond]), cat([t[:1], beyond]))
    first = {"full": 0, "same": (min(n, m) - 1) // 2, "valid": min(n, m) - 1}[mode]
    rows = {"full": n + m - 1, "same": max(n, m), "valid": max(n, m) - min(n, m) + 1}[mode]
    return narrow(whole, 0, first, rows)


@_own
def khatri_rao(a: Any, b: Any) -> Tensor:
    """The Kronecker product of each column of a matrix with that of another.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.khatri_rao(tg.tensor([[1.0, 2.0]]), tg.tensor([[3.0, 4.0], [5.0, 6.0]]))
    tensor([[ 3.,  8.],
            [ 5., 12.]])
    """
    x, y = promoted(a, b)
    if x._a.ndim != 2 or y._a.ndim != 2 or x._a.shape[1] != y._a.shape[1]:
        raise ValueError(
            "`scipy.linalg.khatri_rao`: matrices of as many columns, got the shapes "
            f"{x._a.shape} and {y._a.shape}"
        )
    return reshape(x[:, None] * y, (-1, x._a.shape[1]))
