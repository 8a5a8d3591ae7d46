"""What a sparse matrix of Tensors is, its forms, its parts and its sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Self

import numpy as np

from tapegrad.functions.creation import zeros
from tapegrad.functions.indexing import index_add
from tapegrad.functions.joining import cat
from tapegrad.functions.shapes import reshape
from tapegrad.functions.sparse_patterns import Kind, numbered, of_numbered, ordered
from tapegrad.ops.sparse import Pattern
from tapegrad.tensor import Tensor, tensor_of


def added(values: Any, places: Any, size: int) -> Tensor:
    """A vector in which each element stands at its place; those of one place add up."""
    return index_add(zeros(size, dtype=values.dtype), 0, places, values)


def or_zero(values: Tensor, numbers: np.ndarray) -> Tensor:
    """The elements with these numbers, from 1; 0 is a zero."""
    if numbers.all():
        return values[numbers - 1]
    return cat([zeros(1, dtype=values.dtype), values])[numbers]


def _without_tensors(key: Any) -> Any:
    """An index of SciPy's."""
    if isinstance(key, tuple):
        return tuple(map(_without_tensors, key))
    return key.detach().numpy() if isinstance(key, Tensor) else key


class SparseBase:
    """A Tensor of stored elements, and the pattern of where they stand."""

    __slots__ = ("data", "kind", "pattern")

    def __init__(self, data: Tensor, pattern: Pattern, kind: Kind = "array") -> None:
        self.data, self.pattern, self.kind = data, pattern, kind

    @classmethod
    def arranged(cls, values: Tensor, found: Any) -> Any:
        """These elements where SciPy has put their numbers, from 1: in a matrix, or a Tensor."""
        if hasattr(found, "tocsr"):
            pattern, kind, numbers = of_numbered(found)
            return cls(values[numbers - 1], pattern, kind)
        return or_zero(values, np.asarray(found))

    def with_data(self, data: Tensor) -> Self:
        """A matrix of other elements at the same places."""
        return type(self)(data, self.pattern, self.kind)

    def ordered(self) -> Self:
        """The matrix with one element for each place, and these in order."""
        if self.pattern.in_order:
            return self
        pattern, which = ordered(self.pattern)
        return type(self)(added(self.data, which, pattern.indices.size), pattern, self.kind)

    def _moved(self, function: Callable[[Any], Any]) -> Any:
        """What a function of SciPy's matrices gives that moves elements, or leaves some out."""
        one = self.ordered()
        return self.arranged(one.data, function(numbered(one.pattern, one.kind)))

    # -- what it is --------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return tuple(self.pattern.shape)[1 if self.kind == "vector" else 0 :]

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def format(self) -> str:
        """How the elements are stored: "csr" row by row, "csc" column by column."""
        return "csc" if self.pattern.by_column else "csr"

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return int(self.pattern.indices.size)

    size = nnz

    def getnnz(self, axis: int | None = None) -> Any:
        """The number of stored elements, in all, or of each column (`axis` 0) or row."""
        kept = self._axis(axis, "getnnz")
        if kept is None:
            return self.nnz
        return np.bincount(self.pattern.places()[kept], minlength=self.pattern.shape[kept])

    @property
    def indices(self) -> np.ndarray:
        """The column of each element (the row, column by column)."""
        return np.asarray(self.pattern.indices)

    @property
    def indptr(self) -> np.ndarray:
        """Where each row begins among the elements."""
        return np.asarray(self.pattern.indptr)

    @property
    def coords(self) -> tuple[np.ndarray, ...]:
        """The row and the column of each element."""
        return self.pattern.places()[1 if self.kind == "vector" else 0 :]

    @property
    def row(self) -> np.ndarray:
        """The row of each element."""
        return self.pattern.places()[0]

    @property
    def col(self) -> np.ndarray:
        """The column of each element."""
        return self.pattern.places()[1]

    def __len__(self) -> NoReturn:
        raise TypeError("the length of a sparse matrix is ambiguous: use `shape[0]`, or `nnz`")

    def _compared(self, other: object) -> bool:
        raise TypeError(
            f"a sparse matrix of Tensors of shape {self.shape} is not compared, as where the "
            "result has elements depended on what they are: compare its `data`, or `toarray()`"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        order = "column by column" if self.pattern.by_column else "row by row"
        return f"<SparseTensor of {self.dtype}, shape {self.shape}, {self.nnz} elements {order}>"

    # -- in other forms ----------------------------------------------------------------------------

    def toarray(self) -> Tensor:
        """The matrix with all of its elements."""
        rows, columns = self.pattern.shape
        row, column = self.pattern.places()
        places = np.asarray(row, np.int64) * columns + column
        return reshape(added(self.data, places, rows * columns), self.shape)

    todense = toarray

    def tocsr(self, copy: bool = False) -> Self:
        """The matrix row by row."""
        return self if self.format == "csr" else self._moved(lambda a: a.tocsr())

    def tocsc(self, copy: bool = False) -> Self:
        """The matrix column by column."""
        return self if self.format == "csc" else self._moved(lambda a: a.tocsc())

    def tocoo(self, copy: bool = False) -> Self:
        """The matrix, which has `row`, `col` and `data` as it is."""
        return self.with_data(self.data)

    def tolil(self, copy: bool = False) -> Self:
        """The matrix, which can be written in as it is."""
        return self.with_data(self.data)

    def asformat(self, format: str | None, copy: bool = False) -> Self:
        """The matrix as "csr" or "csc"; as "coo" and "lil" it is what it was."""
        if format not in (None, "csr", "csc", "coo", "lil"):
            raise ValueError(
                f"`asformat`: a sparse matrix of Tensors is held as 'csr' or 'csc', got {format!r}"
            )
        return self if format is None else getattr(self, f"to{format}")()

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Self:
        """The matrix with elements of another type."""
        return self.with_data(self.data.to(dtype))

    def copy(self) -> Self:
        """The matrix with elements of its own."""
        return self.with_data(self.data.clone())

    def conj(self, copy: bool = True) -> Self:
        """The complex conjugate."""
        return self.with_data(self.data.conj())

    conjugate = conj

    @property
    def real(self) -> Self:
        """The real parts."""
        return self.with_data(self.data.real)

    @property
    def imag(self) -> Self:
        """The imaginary parts."""
        return self.with_data(self.data.imag)

    @property
    def T(self) -> Self:
        """The matrix transposed."""
        if self.kind == "vector":
            return self
        return type(self)(self.data, self.pattern.transposed, self.kind)

    def transpose(self, axes: Any = None, copy: bool = False) -> Self:
        """The matrix transposed."""
        return self.T

    def getH(self) -> Self:
        """The complex conjugate of the matrix transposed."""
        return self.T.conj()

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Self:
        """The elements in another shape."""
        return self._moved(lambda a: a.reshape(*shape, order=order))  # type: ignore[no-any-return]

    # -- parts and sums ----------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """What SciPy gives for an index: a matrix, a vector, or a Tensor of elements."""
        return self._moved(lambda a: a[_without_tensors(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(value, lambda a, numbers: a.__setitem__(_without_tensors(key), numbers))

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write a diagonal."""
        self._write(values, lambda a, numbers: a.setdiag(numbers, k))

    def _write(self, values: Any, write: Callable[[Any, Any], None]) -> None:
        """Have SciPy write numbers of new elements between those of the present ones."""
        one = self.ordered()
        new = values.toarray() if hasattr(values, "toarray") else tensor_of(values, "setitem")
        new = tensor_of(new, "setitem").to(one.data._a.dtype)
        matrix = numbered(one.pattern, one.kind).copy()
        write(matrix, np.arange(new._a.size).reshape(new._a.shape) + one.nnz + 1)
        made = self.arranged(cat([one.data, reshape(new, (-1,))]), matrix)
        self.data, self.pattern = made.data, made.pattern

    def sum_duplicates(self) -> None:
        """Add up elements of the same place, and put them in order."""
        one = self.ordered()
        self.data, self.pattern = one.data, one.pattern

    sort_indices = sum_duplicates

    def eliminate_zeros(self) -> NoReturn:
        """An error: which elements are zero is not known where a pattern is."""
        raise TypeError(
            f"`eliminate_zeros`: where the {self.nnz} elements of a sparse matrix of Tensors of "
            f"shape {self.shape} stand does not depend on what they are"
        )

    def getrow(self, i: int) -> Self:
        """A row, as a matrix."""
        return self._moved(lambda a: a[[i], :])  # type: ignore[no-any-return]

    def getcol(self, j: int) -> Self:
        """A column, as a matrix."""
        return self._moved(lambda a: a[:, [j]])  # type: ignore[no-any-return]

    def diagonal(self, k: int = 0) -> Tensor:
        """The elements of a diagonal."""
        return self._moved(lambda a: a.diagonal(k))  # type: ignore[no-any-return]

    def trace(self, offset: int = 0) -> Tensor:
        """The sum of a diagonal."""
        return self.diagonal(offset).sum()

    def sum(self, axis: Any = None, dtype: Any = None) -> Tensor:
        """The sum of all elements, of each column (`axis` 0), or of each row."""
        kind = np.zeros(0, self.data._a.dtype).sum(dtype=dtype).dtype  # small integers are widened
        values, kept = self.data.to(kind), self._axis(axis, "sum")
        if kept is None:
            return values.sum()
        found = added(values, self.pattern.places()[kept], self.pattern.shape[kept])
        if self.kind != "matrix":
            return found
        return reshape(found, (1, -1) if kept else (-1, 1))

    def mean(self, axis: Any = None, dtype: Any = None) -> Tensor:
        """The mean of all elements, of each column (`axis` 0), or of each row."""
        kept = self._axis(axis, "mean")
        rows, columns = self.pattern.shape
        count = rows * columns if kept is None else self.pattern.shape[1 - kept]
        if dtype is None and self.data._a.dtype.kind in "biu":
            dtype = np.float64
        return self.sum(axis, dtype) / count

    def max(self, axis: Any = None) -> Tensor:
        """The largest element, also if that is a zero which is not stored."""
        return self._extreme("max", axis)

    def min(self, axis: Any = None) -> Tensor:
        """The smallest element, also if that is a zero which is not stored."""
        return self._extreme("min", axis)

    def _extreme(self, name: str, axis: Any) -> Tensor:
        if axis is not None:
            raise NotImplementedError(
                f"`{name}`: of rows and columns of a sparse matrix of shape {self.shape}, take "
                f"`toarray().{name}(axis)`"
            )
        values = self.ordered().data
        if values._a.size < np.prod(self.shape):
            values = cat([values, zeros(1, dtype=values.dtype)])
        found: Tensor = getattr(values, name)()
        return found

    def _axis(self, axis: Any, name: str) -> int | None:
        """The dimension that is left, if one is."""
        given = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        dims = {d + self.ndim if d < 0 else d for d in given}
        if not dims <= set(range(self.ndim)):
            raise ValueError(f"`{name}`: no axis {axis} of a sparse matrix of shape {self.shape}")
        return None if len(dims) in (0, self.ndim) else 1 - dims.pop()
