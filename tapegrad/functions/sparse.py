"""Sparse matrices of SciPy times Tensors, and sparse matrices whose elements are Tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.creation import ones
from tapegrad.functions.shapes import reshape, transpose
from tapegrad.functions.sparse_matrices import SparseBase, added, or_zero
from tapegrad.functions.sparse_patterns import (
    Kind,
    eye,
    intersection,
    of_places,
    product,
    same,
    union,
)
from tapegrad.ops import sparse as s
from tapegrad.ops.sparse import Pattern
from tapegrad.tensor import Tensor, tensor_of

_OPERATORS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
    np.divide: operator.truediv, np.power: operator.pow, np.matmul: operator.matmul,
}  # fmt: skip


def is_sparse(x: Any) -> bool:
    """Whether something is a sparse matrix, of SciPy's or of Tensors."""
    return isinstance(x, SparseTensor) or type(x).__module__.startswith("scipy.sparse")


def _is_number(x: Any) -> bool:
    if isinstance(x, (Tensor, np.ndarray)):
        return not x.ndim
    return isinstance(x, (int, float, complex, np.generic))


def _mapped(ufunc: np.ufunc) -> Callable[[SparseTensor], SparseTensor]:
    """The method that maps elements by a function under which zero stays zero."""

    def method(self: SparseTensor) -> SparseTensor:
        one = self.ordered()
        return one.with_data(ufunc(one.data))

    method.__name__ = ufunc.__name__
    method.__doc__ = f"`np.{ufunc.__name__}` of each element."
    return method


class SparseTensor(SparseBase):
    """A sparse matrix whose stored elements are a Tensor: row by row, or column by column.

    `tapegrad.scipy.sparse.csr_array` and the functions beside it make one, and it has the operators
    and methods of SciPy's.  Where its elements stand follows from where those of its operands do,
    whatever their values are.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([5.0, 7.0]), [1, 0], [0, 1, 2]))
    >>> (A @ A.T + 2 * A[::-1]).toarray()
    tensor([[39.,  0.],
            [ 0., 59.]])
    """

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Operators of arrays with a matrix, and functions under which zero stays zero."""
        if method != "__call__" or kwargs:
            return NotImplemented
        if len(inputs) == 1:
            mapped = getattr(self, ufunc.__name__, None)
            return NotImplemented if mapped is None else mapped()
        return self._operator(ufunc, inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """`np.dot`, and functions that are methods or properties, too."""
        if func is np.dot:
            a, b = args
            return a.dot(b) if isinstance(a, SparseTensor) else b.__rmatmul__(a)
        found = getattr(self, func.__name__, None) if args and args[0] is self else None
        if found is None:
            return NotImplemented
        return found(*args[1:], **kwargs) if callable(found) else found

    def elementwise_op(self, op: Any, args: Any) -> Any:
        """An operation of Tensors of which this is an operand."""
        found = self._operator(op.forward, args)
        if found is NotImplemented:
            raise TypeError(
                f"`{op.name}` takes no sparse matrix (of shape {self.shape}): use its methods, or "
                "`toarray()`"
            )
        return found

    def _operator(self, ufunc: Any, operands: Any) -> Any:
        if ufunc not in _OPERATORS:
            return NotImplemented
        left = operands[0] is self
        name = f"__{'' if left else 'r'}{_OPERATORS[ufunc].__name__}__"
        method = getattr(self, name, None)
        return NotImplemented if method is None else method(operands[left])

    def __neg__(self) -> SparseTensor:
        return self.with_data(-self.data)

    def __pos__(self) -> SparseTensor:
        return self

    def __abs__(self) -> SparseTensor:
        return self.absolute()

    def __add__(self, other: Any) -> Any:
        if not is_sparse(other):
            return self if _is_zero(other, "add") else self.toarray() + other
        b = matrix_of(other, "add")
        if self.shape != b.shape:
            raise ValueError(
                f"`add`: sparse matrices of shapes {self.shape} and {b.shape} are not added"
            )
        if same(self.pattern, b.pattern):
            return SparseTensor(self.data + b.data, self.pattern, _kind(self, b))
        one, other = self.ordered(), b.ordered()
        pattern, left, right = union(one.pattern, other.pattern)
        values = or_zero(one.data, left) + or_zero(other.data, right)
        return SparseTensor(values, pattern, _kind(self, b))

    def __radd__(self, other: Any) -> Any:
        return matrix_of(other, "add") + self if is_sparse(other) else self + other

    def __sub__(self, other: Any) -> Any:
        if not is_sparse(other):
            return self if _is_zero(other, "sub") else self.toarray() - other
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return other + (-self)

    def __mul__(self, other: Any) -> Any:
        matrices = self.kind == "matrix" and not _is_number(other)
        return self @ other if matrices else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return matrix_of(other, "mul") * self
        matrices = self.kind == "matrix" and not _is_number(other)
        return sparse_product(other, self) if matrices else self.multiply(other)

    def multiply(self, other: Any) -> SparseTensor:
        """The product with a number, and that element by element with what is broadcast."""
        if _is_number(other):
            return self.with_data(self.data * other)
        if not is_sparse(other):
            a, x = self._beside(other, "multiply")
            return a.with_data(a.data * x)
        shape = _broadcast(self.shape, other.shape, "multiply")
        a, b = self._spread(shape), matrix_of(other, "multiply")._spread(shape)
        if same(a.pattern, b.pattern):
            return SparseTensor(a.data * b.data, a.pattern, _kind(a, b))
        pattern, left, right = intersection(a.pattern, b.pattern)
        return SparseTensor(a.data[left] * b.data[right], pattern, _kind(a, b))

    def maximum(self, other: Any) -> SparseTensor:
        """The larger one of each two elements, also of what is zero in one matrix."""
        return self._extreme_of_two(np.maximum, other)

    def minimum(self, other: Any) -> SparseTensor:
        """The smaller one of each two elements, also of what is zero in one matrix."""
        return self._extreme_of_two(np.minimum, other)

    def _extreme_of_two(self, ufunc: np.ufunc, other: Any) -> SparseTensor:
        name, one = ufunc.__name__, self.ordered()
        if is_sparse(other) and other.shape == self.shape:
            two = matrix_of(other, name).ordered()
            pattern, left, right = union(one.pattern, two.pattern)
            values = ufunc(or_zero(one.data, left), or_zero(two.data, right))
            return SparseTensor(values, pattern, one.kind)
        if not _is_number(other) or isinstance(other, Tensor) or ufunc(0, other) != 0:
            raise ValueError(
                f"`{name}` of a sparse matrix of shape {self.shape} takes a sparse one of that "
                "shape, or a number beside which zeros stay zeros"
            )
        return one.with_data(ufunc(one.data, other))

    def __truediv__(self, other: Any) -> SparseTensor:
        if _is_number(other):
            return self.with_data(self.data / other)
        if is_sparse(other):
            raise TypeError(
                f"`div`: sparse matrices of shapes {self.shape} and {other.shape} are not divided, "
                "as most elements would be NaN: take `toarray()` of both"
            )
        a, x = self._beside(other, "div")
        return a.with_data(a.data / x)

    def _beside(self, other: Any, name: str) -> tuple[SparseTensor, Tensor]:
        """The matrix broadcast with an array, and the elements of that where its own stand."""
        x = tensor_of(other, name)
        shape = _broadcast(self.shape, x._a.shape, name)
        a = self._spread(shape)
        x = reshape(x, (1,) * (2 - x._a.ndim) + tuple(x._a.shape))
        row, column = (np.asarray(at, np.int64) for at in a.pattern.places())
        rows, columns = x._a.shape
        places = (rows > 1) * row * columns + (columns > 1) * column
        return a, reshape(x, (-1,))[places]

    def _spread(self, shape: tuple[int, ...]) -> SparseTensor:
        """The matrix with its one row, or column, repeated."""
        one = self.ordered()
        if one.shape == shape:
            return one
        if len(shape) > len(one.shape):
            one = SparseTensor(one.data, one.pattern)
        for d, size in enumerate(shape):
            if one.shape[d] != size:
                index = [slice(None)] * len(shape)
                index[d] = np.zeros(size, np.int64)  # type: ignore[call-overload]
                one = one[tuple(index)] if len(shape) > 1 else one[index[0]]
        return one

    def __pow__(self, other: Any) -> SparseTensor:
        if self.kind != "matrix":
            return self.power(other)
        return matrix_power(self, other)

    def power(self, n: Any, dtype: Any = None) -> SparseTensor:
        """Each element to a power, which is a number and not zero."""
        if not _is_number(n) or (not isinstance(n, Tensor) and not n):
            raise NotImplementedError(
                "`power` of a sparse matrix takes a number that is not zero, to which all elements "
                "would be one"
            )
        one = self.ordered() if dtype is None else self.ordered().astype(dtype)
        return one.with_data(one.data**n)

    def __matmul__(self, other: Any) -> Any:
        return sparse_product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return sparse_product(other, self)

    def dot(self, other: Any) -> Any:
        """The product with a number, a vector, or a matrix."""
        return self.multiply(other) if _is_number(other) else sparse_product(self, other)

    absolute, arcsin, arcsinh = _mapped(np.absolute), _mapped(np.arcsin), _mapped(np.arcsinh)
    arctan, arctanh, ceil = _mapped(np.arctan), _mapped(np.arctanh), _mapped(np.ceil)
    deg2rad = _mapped(np.deg2rad)
    expm1, floor, log1p = _mapped(np.expm1), _mapped(np.floor), _mapped(np.log1p)
    rad2deg, rint, sign = _mapped(np.rad2deg), _mapped(np.rint), _mapped(np.sign)
    sin, sinh, sqrt = _mapped(np.sin), _mapped(np.sinh), _mapped(np.sqrt)
    tan, tanh, trunc = _mapped(np.tan), _mapped(np.tanh), _mapped(np.trunc)


def _broadcast(one: tuple[int, ...], other: tuple[int, ...], name: str) -> tuple[int, ...]:
    try:
        shape = np.broadcast_shapes(one, other)
    except ValueError:
        shape = (0, 0, 0)
    if len(shape) > 2:
        raise ValueError(
            f"`{name}`: a sparse matrix of shape {one} and an operand of shape {tuple(other)} are "
            "not broadcast to a matrix"
        )
    return shape


def _is_zero(x: Any, name: str) -> bool:
    """Whether something is the one number that can be added to a sparse matrix."""
    if not _is_number(x):
        return False
    if isinstance(x, Tensor) or x != 0:
        raise NotImplementedError(
            f"`{name}`: a number and a sparse matrix make one with all elements: take `toarray()`"
        )
    return True


def _kind(a: SparseTensor, b: SparseTensor) -> Kind:
    """That of the first, unless a vector has been broadcast."""
    return b.kind if a.kind == "vector" else a.kind


def matrix_of(x: Any, name: str) -> SparseTensor:
    """A sparse matrix as one of Tensors."""
    if isinstance(x, SparseTensor):
        return x
    if is_sparse(x) and x.ndim == 1:
        return SparseTensor(*parts(x.reshape(1, -1), name), "vector")
    import scipy.sparse

    return SparseTensor(*parts(x, name), "matrix" if scipy.sparse.isspmatrix(x) else "array")


def with_scipys_matrix(op: Any, operands: Any) -> Any:
    """An operator of a Tensor and a sparse matrix of SciPy's."""
    given = [matrix_of(x, op.name) if is_sparse(x) else x for x in operands]
    return next(x for x in given if is_sparse(x)).elementwise_op(op, given)


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


def sparse_product(a: Any, b: Any) -> Any:
    """``a @ b``, one of them being a sparse matrix and the other a Tensor, or a sparse one, too."""
    if not is_sparse(a):
        return _tensor_times(a, b)
    if is_sparse(b):
        if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
            raise TypeError("`matmul` of two sparse matrices without Tensors is `a @ b`, SciPy's")
        return _sparse_times_sparse(matrix_of(a, "matmul"), matrix_of(b, "matmul"))
    values, pattern = parts(a, "matmul")
    x = tensor_of(b, "matmul")
    if x._a.ndim not in (1, 2) or x._a.shape[0] != pattern.shape[1]:
        raise ValueError(
            f"`matmul`: a sparse matrix of shape {tuple(a.shape)} and a Tensor of shape "
            f"{x._a.shape} cannot be multiplied"
        )
    found: Tensor = run(s.sparse_product, alike(values, x), {"pattern": pattern})
    return found[0] if len(a.shape) == 1 else found


def _tensor_times(a: Any, b: Any) -> Any:
    x = tensor_of(a, "matmul")
    if x._a.ndim not in (1, 2):
        raise ValueError(f"`matmul` with a sparse matrix: got the shape {x._a.shape}")
    if x._a.ndim == 1:
        return sparse_product(b.T, x)
    found = sparse_product(b.T, transpose(x, 0, 1))
    return transpose(found, 0, 1) if len(b.shape) == 2 else found


def _sparse_times_sparse(a: SparseTensor, b: SparseTensor) -> Any:
    p, q = a.pattern, b.pattern if b.kind != "vector" else b.pattern.transposed
    if p.shape[1] != q.shape[0]:
        raise ValueError(
            f"`matmul`: sparse matrices of shapes {a.shape} and {b.shape} cannot be multiplied"
        )
    pattern, left, right, which = product(p, q)
    values = added(a.data[left] * b.data[right], which, pattern.indices.size)
    if a.kind == b.kind == "vector":
        return values.sum()
    if b.kind == "vector":
        pattern = of_places(
            np.zeros_like(pattern.indices), pattern.places()[0], (1, p.shape[0]), False
        )
    vector = "vector" in (a.kind, b.kind)
    return SparseTensor(values, pattern, "vector" if vector else _kind(a, b))


def matrix_power(a: SparseTensor, n: Any) -> SparseTensor:
    """The product of a matrix with itself, `n` times."""
    rows, columns = a.shape
    if rows != columns or not isinstance(n, int) or n < 0:
        raise ValueError(
            f"`matrix_power` takes a square matrix and an integer that is not negative, got the "
            f"shape {a.shape} and {n!r}; `power` is that of each element"
        )
    if n < 2:
        return a if n else SparseTensor(ones(rows, dtype=a.dtype), eye(rows), a.kind)
    half = matrix_power(a, n // 2)
    square: SparseTensor = half @ half
    return square @ a if n % 2 else square
