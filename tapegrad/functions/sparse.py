"""Sparse matrices of SciPy times Tensors, and sparse matrices whose elements are Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.creation import eye, zeros
from tapegrad.functions.indexing import index_add
from tapegrad.functions.shapes import reshape, squeeze, transpose
from tapegrad.ops import sparse as s
from tapegrad.ops.sparse import Pattern
from tapegrad.tensor import Tensor, tensor_of


def is_sparse(x: Any) -> bool:
    """Whether something is a sparse matrix, of SciPy's or of Tensors."""
    return isinstance(x, SparseTensor) or type(x).__module__.startswith("scipy.sparse")


class SparseTensor:
    """A sparse matrix whose stored elements are a Tensor: row by row, or column by column.

    `tapegrad.scipy.sparse.csr_array` makes one.
    """

    __slots__ = ("data", "pattern")
    __array_ufunc__ = None  # arrays leave operators to it

    def __init__(self, data: Tensor, pattern: Pattern) -> None:
        self.data, self.pattern = data, pattern

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.pattern.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return 2

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return int(self.data._a.size)

    @property
    def indices(self) -> np.ndarray:
        """The column of each element (the row, column by column)."""
        return np.asarray(self.pattern.indices)

    @property
    def indptr(self) -> np.ndarray:
        """Where each row begins among the elements."""
        return np.asarray(self.pattern.indptr)

    @property
    def T(self) -> SparseTensor:
        """The matrix transposed."""
        return SparseTensor(self.data, self.pattern.transposed)

    def transpose(self) -> SparseTensor:
        """The matrix transposed."""
        return self.T

    def __matmul__(self, other: Any) -> Tensor:
        return sparse_product(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return sparse_product(other, self)

    def dot(self, other: Any) -> Tensor:
        """The product with a vector, or a matrix."""
        return sparse_product(self, other)

    def toarray(self) -> Tensor:
        """The matrix with all of its elements."""
        return sparse_product(self, eye(self.shape[1], dtype=self.dtype))

    def __repr__(self) -> str:
        order = "column by column" if self.pattern.by_column else "row by row"
        return f"<SparseTensor of {self.dtype}, shape {self.shape}, {self.nnz} elements {order}>"


def parts(matrix: Any, name: str) -> tuple[Tensor, Pattern]:
    """The stored elements of a sparse matrix, and where they stand."""
    if isinstance(matrix, SparseTensor):
        return matrix.data, matrix.pattern
    if not is_sparse(matrix) or len(matrix.shape) != 2:
        raise TypeError(f"`{name}` takes a sparse matrix, got {type(matrix).__name__}")
    by_column = matrix.format == "csc"
    held = matrix if by_column else matrix.tocsr()
    pattern = Pattern(held.indices, held.indptr, held.shape, by_column=by_column)
    values = tensor_of(held.data, name)
    pattern.hold(values._a, held)
    return values, pattern


def alike(values: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Elements and operand in one dtype; at the least of floating-point numbers."""
    if values._a.dtype is x._a.dtype and values._a.dtype.char in "fdFD":
        return values, x
    kind = np.result_type(values._a.dtype, x._a.dtype)
    kind = kind if kind.kind in "fc" and kind.itemsize > 2 else np.result_type(kind, np.float32)
    return values.to(kind), x.to(kind)


def sparse_product(a: Any, b: Any) -> Tensor:
    """``a @ b``, one of them being a sparse matrix and the other a Tensor."""
    if not is_sparse(a):
        x = tensor_of(a, "matmul")
        if x._a.ndim not in (1, 2):
            raise ValueError(f"`matmul` with a sparse matrix: got the shape {x._a.shape}")
        if x._a.ndim == 1:
            return sparse_product(b.T, x)
        return transpose(sparse_product(b.T, transpose(x, 0, 1)), 0, 1)
    if is_sparse(b):
        raise TypeError(
            "`matmul`: the product of two sparse matrices is not recorded: take one as a Tensor, "
            "`a.toarray()`"
        )
    values, pattern = parts(a, "matmul")
    x = tensor_of(b, "matmul")
    if x._a.ndim not in (1, 2) or x._a.shape[0] != pattern.shape[1]:
        raise ValueError(
            f"`matmul`: a sparse matrix of shape {tuple(pattern.shape)} and a Tensor of shape "
            f"{x._a.shape} cannot be multiplied"
        )
    found: Tensor = run(s.sparse_product, alike(values, x), {"pattern": pattern})
    return found


def spsolve(A: Any, b: Any) -> Tensor:
    """The solution x of ``A x = b`` for a sparse square matrix."""
    values, pattern = parts(A, "sparse.linalg.spsolve")
    y = tensor_of(b, "sparse.linalg.spsolve")
    rows, columns = pattern.shape
    if rows != columns or y._a.ndim not in (1, 2) or y._a.shape[0] != rows:
        raise ValueError(
            f"`sparse.linalg.spsolve`: a matrix of shape {tuple(pattern.shape)} and "
            f"a right side of shape {y._a.shape} do not fit together"
        )
    if y._a.shape[1:] == (1,):  # a vector to SciPy
        y = squeeze(y, 1)
    found: Tensor = run(s.sparse_solve, alike(values, y), {"pattern": pattern})
    return found


def built(data: Any, indices: Any, indptr: Any, shape: Any, by_column: bool, name: str) -> Any:
    """A sparse matrix of stored elements and of where they stand."""
    values = tensor_of(data, name)
    places, starts = np.asarray(indices), np.asarray(indptr)
    if values._a.ndim != 1 or values._a.shape != places.shape or starts[-1] != places.size:
        raise ValueError(
            f"`{name}`: data of shape {values._a.shape}, indices of shape {places.shape} and "
            f"indptr of shape {starts.shape} do not fit together"
        )
    if shape is None:
        widest = int(places.max()) + 1 if places.size else 0
        shape = (widest, len(starts) - 1) if by_column else (len(starts) - 1, widest)
    rows, columns = shape
    pattern = Pattern(places, starts, (int(rows), int(columns)), by_column=by_column)
    pattern.matrix(np.zeros(places.shape))  # SciPy checks them
    return SparseTensor(reshape(values, (-1,)), pattern)


def assembled(data: Any, places: Any, shape: Any, by_column: bool, name: str) -> Any:
    """A sparse matrix of elements and of the row and column of each; those of one place add up."""
    values = tensor_of(data, name)
    outer, inner = places[::-1] if by_column else places
    found, which = np.unique(np.stack([outer, inner]), axis=1, return_inverse=True)
    starts = np.searchsorted(found[0], np.arange(shape[int(by_column)] + 1))
    stored = index_add(zeros(len(found[1]), dtype=values.dtype), 0, which, values)
    return built(stored, found[1], starts, shape, by_column, name)
