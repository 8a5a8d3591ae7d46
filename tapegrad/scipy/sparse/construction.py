"""Sparse matrices of Tensors: from their elements, from other matrices, from blocks and diagonals.

Functions that only move elements are SciPy's own, of the elements' numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.joining import cat
from tapegrad.functions.shapes import reshape
from tapegrad.functions.sparse import SparseTensor, is_sparse, matrix_of
from tapegrad.functions.sparse_matrices import added
from tapegrad.functions.sparse_patterns import Kind, Structure, combined, full, numbered
from tapegrad.ops.sparse import Pattern
from tapegrad.scipy.either import among, theirs
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.pytree import register_pytree_node


def _rebuilt(held: Structure, data: Any) -> SparseTensor:
    data = tensor_of(data, "SparseTensor") if isinstance(data, np.ndarray) else data
    return SparseTensor(data, held.pattern, held.kind)


register_pytree_node(
    SparseTensor,
    lambda a: ((a.data,), Structure(a.pattern, a.kind)),
    lambda held, parts: _rebuilt(held, *parts),
)


# -- of elements -----------------------------------------------------------------------------------


def csr_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """A matrix of the elements `data`, row by row: ``csr_array((data, indices, indptr))``.

    `indices` says the column of each, and `indptr` where each row begins. In ``csr_array((data,
    (rows, columns)))`` elements of the same place are added up. Of a dense Tensor all elements are
    held; of matrices without Tensors SciPy makes its own.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([5.0, 7.0]), [1, 0], [0, 1, 2]))
    >>> A.toarray()
    tensor([[0., 5.],
            [7., 0.]])
    """
    return _made("csr_array", arg1, shape, dtype, copy, kwargs)


def csc_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """A matrix of the elements `data`, column by column: `csr_array` transposed.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csc_array((tg.tensor([5.0, 7.0]), [0, 0], [0, 1, 2]))
    >>> A.toarray()
    tensor([[5., 7.]])
    """
    return _made("csc_array", arg1, shape, dtype, copy, kwargs)


def coo_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """A matrix, or a vector, of elements and their places: ``coo_array((data, (rows, columns)))``.

    It is held row by row, and elements of the same place are added up.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.coo_array((tg.tensor([5.0, 7.0]), ([1, 0], [0, 1])))
    >>> A.row, A.col, A.data
    (array([0, 1]), array([1, 0]), tensor([7., 5.]))
    """
    return _made("coo_array", arg1, shape, dtype, copy, kwargs)


def dia_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """A matrix of diagonals, which are rows of `data`: ``dia_array((data, offsets), shape)``.

    It is held row by row.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.dia_array((tg.tensor([[1.0, 2.0]]), [1]), shape=(2, 2)).toarray()
    tensor([[0., 2.],
            [0., 0.]])
    """
    return _made("dia_array", arg1, shape, dtype, copy, kwargs)


def csr_matrix(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """`csr_array` with SciPy's older operators: `*` is the product of matrices, `**` their power.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_matrix((tg.tensor([5.0, 7.0]), [1, 0], [0, 1, 2]))
    >>> A * tg.tensor([1.0, 10.0])
    tensor([50.,  7.])
    """
    return _made("csr_matrix", arg1, shape, dtype, copy, kwargs)


def csc_matrix(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """`csc_array` with SciPy's older operators.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csc_matrix((tg.tensor([5.0, 7.0]), [1, 0], [0, 1, 2]))
    >>> (A**2).toarray()
    tensor([[35.,  0.],
            [ 0., 35.]])
    """
    return _made("csc_matrix", arg1, shape, dtype, copy, kwargs)


def coo_matrix(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """`coo_array` with SciPy's older operators.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.coo_matrix((tg.tensor([5.0, 7.0]), ([0, 0], [1, 1])))
    >>> A.sum(axis=1)
    tensor([[12.]])
    """
    return _made("coo_matrix", arg1, shape, dtype, copy, kwargs)


def dia_matrix(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **kwargs: Any
) -> Any:
    """`dia_array` with SciPy's older operators.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.dia_matrix((tg.tensor([1.0, 2.0]), 0), shape=(2, 2))
    >>> A * tg.ones(2)
    tensor([1., 2.])
    """
    return _made("dia_matrix", arg1, shape, dtype, copy, kwargs)


def _made(name: str, given: Any, shape: Any, dtype: Any, copy: bool, kwargs: dict[str, Any]) -> Any:
    """What SciPy's class of that name makes; with Tensors if one is in it."""
    if not among(given):
        return theirs("scipy.sparse", name)(given, shape=shape, dtype=dtype, copy=copy, **kwargs)
    form, kind = name.split("_")
    found = _of_what(given, shape, form, kind, f"scipy.sparse.{name}")
    if shape is not None and tuple(shape) != found.shape:
        raise ValueError(
            f"`scipy.sparse.{name}`: the matrix has the shape {found.shape}, not {tuple(shape)}"
        )
    if kind == "matrix" or found.kind == "matrix":
        found = SparseTensor(found.data, found.pattern, "matrix" if kind == "matrix" else "array")
    return found if dtype is None else found.astype(dtype)


def _of_what(given: Any, shape: Any, form: str, kind: str, name: str) -> SparseTensor:
    held = "csr" if form == "dia" else form
    if isinstance(given, SparseTensor):
        return given.asformat(held)
    if isinstance(given, Tensor) and given.ndim in (1, 2):
        return of_tensor(given, "matrix" if kind == "matrix" else "array").asformat(held)
    if isinstance(given, tuple) and len(given) == 3 and form in ("csr", "csc"):
        return _of_lines(*given, shape, form == "csc", name)
    if isinstance(given, tuple) and len(given) == 2 and not among(given[1]):
        if form == "dia":
            return _of_diagonals(*given, shape)
        return _of_places(*given, shape, form == "csc", name)
    raise TypeError(
        f"`{name}` of a Tensor takes (data, indices, indptr), (data, (rows, columns)) or for "
        "diagonals (data, offsets), and a matrix, or a Tensor of one dimension or two"
    )


def of_tensor(x: Tensor, kind: Kind = "array") -> SparseTensor:
    """A matrix of a Tensor of one dimension or two, all of whose elements it holds."""
    shape = x._a.shape
    kind = "vector" if len(shape) == 1 and kind == "array" else kind
    return SparseTensor(reshape(x, (-1,)), full((1, *shape)[-2:]), kind)


def _of_lines(
    data: Any, indices: Any, indptr: Any, shape: Any, by_column: bool, name: str
) -> SparseTensor:
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
    rows, columns = (1, *shape)[-2:]
    pattern = Pattern(places, starts, (int(rows), int(columns)), by_column=by_column)
    pattern.matrix(np.zeros(places.shape))  # SciPy checks them
    return SparseTensor(values, pattern, "vector" if len(shape) == 1 else "array")


def _of_places(data: Any, places: Any, shape: Any, by_column: bool, name: str) -> SparseTensor:
    values = tensor_of(data, name)
    held = theirs("scipy.sparse", "coo_array")((np.zeros(values._a.shape), places), shape=shape)
    row, column = (0 * held.coords[0], *held.coords)[-2:]
    size = (1, *held.shape)[-2:]
    pattern, which = combined(row, column, size, by_column)
    summed = added(values, which, pattern.indices.size)
    return SparseTensor(summed, pattern, "vector" if held.ndim == 1 else "array")


def _of_diagonals(data: Any, offsets: Any, shape: Any) -> SparseTensor:
    elements = _Elements()
    found = theirs("scipy.sparse", "dia_array")((elements.numbers(data), offsets), shape=shape)
    matrix: SparseTensor = elements.arranged(found)
    return matrix


# -- of other matrices -----------------------------------------------------------------------------


class _Elements:
    """Elements of several matrices and Tensors, and their numbers."""

    def __init__(self) -> None:
        self.parts: list[Tensor] = []
        self.next = 1

    def numbers(self, x: Any) -> Any:
        """The same with numbers in place of elements; a constant that is zero has the number 0."""
        if isinstance(x, np.ndarray) and x.dtype == object:
            x = x.tolist()
        if x is None or isinstance(x, (list, tuple)):
            return x if x is None else [self.numbers(y) for y in x]
        if is_sparse(x):
            one = matrix_of(x, "scipy.sparse").ordered()
            return numbered(one.pattern, one.kind, self._start(one.data))
        t = tensor_of(x, "scipy.sparse")
        start = self._start(reshape(t, (-1,)))
        found = np.arange(start, self.next).reshape(t._a.shape)
        return found if isinstance(x, Tensor) else np.where(np.asarray(x) != 0, found, 0)

    def _start(self, values: Tensor) -> int:
        start = self.next
        self.parts.append(values)
        self.next += values._a.size
        return start

    def arranged(self, found: Any) -> Any:
        """The elements where SciPy has put their numbers."""
        kind = np.result_type(*(x._a.dtype for x in self.parts))
        return SparseTensor.arranged(cat([x.to(kind) for x in self.parts]), found)


def _placed(name: str, given: Any, *args: Any, **kwargs: Any) -> Any:
    """What a function of SciPy's makes that puts elements at other places, and computes nothing."""
    function = theirs("scipy.sparse", name)
    if not among(given):
        return function(given, *args, **kwargs)
    elements, dtype = _Elements(), kwargs.get("dtype")
    if name.startswith("diags") or dtype is not None:
        kwargs["dtype"] = np.int64  # of numbers
    found = elements.arranged(function(elements.numbers(given), *args, **kwargs))
    return found if dtype is None else found.astype(dtype)


def diags(
    diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, **kwargs: Any
) -> Any:
    """A matrix of diagonals; those of one element are repeated, if there is a shape.

    It may be given a `dtype`.

    >>> import tapegrad as tg
    >>> t = tg.tensor(3.0)
    >>> tg.scipy.sparse.diags([t, -1.0], [0, 1], shape=(2, 2)).toarray()
    tensor([[ 3., -1.],
            [ 0.,  3.]])
    """
    return _placed("diags", diagonals, offsets, shape, format, **kwargs)


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """An array of diagonals, as `diags`.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.diags_array(tg.tensor([1.0]), offsets=-1).toarray()
    tensor([[0., 0.],
            [1., 0.]])
    """
    return _placed("diags_array", diagonals, offsets=offsets, shape=shape, format=format, **kwargs)


def spdiags(data: Any, diags: Any, m: Any = None, n: Any = None, format: str | None = None) -> Any:
    """A matrix of the diagonals that are rows of `data`, each beginning at column 0.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.spdiags(tg.tensor([[1.0, 2.0]]), [1], 2, 2).toarray()
    tensor([[0., 2.],
            [0., 0.]])
    """
    return _placed("spdiags", data, diags, m, n, format)


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> Any:
    """A matrix of blocks along the diagonal.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.block_diag([tg.tensor([[1.0]]), [[2.0]]]).toarray()
    tensor([[1., 0.],
            [0., 2.]])
    """
    return _placed("block_diag", mats, format, dtype=dtype)


def block_array(blocks: Any, *, format: str | None = None, dtype: Any = None) -> Any:
    """An array of rows of blocks; None is a block of zeros.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([1.0]))
    >>> tg.scipy.sparse.block_array([[A, 2 * A], [None, A]]).toarray()
    tensor([[1., 2.],
            [0., 1.]])
    """
    return _placed("block_array", blocks, format=format, dtype=dtype)


def bmat(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """A matrix of rows of blocks, as `block_array`.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags(tg.tensor([1.0]))
    >>> tg.scipy.sparse.bmat([[None, A], [A, None]]).toarray()
    tensor([[0., 1.],
            [1., 0.]])
    """
    return _placed("bmat", blocks, format, dtype=dtype)


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices side by side.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([1.0, 2.0]))
    >>> tg.scipy.sparse.hstack([A, A]).toarray()
    tensor([[1., 0., 1., 0.],
            [0., 2., 0., 2.]])
    """
    return _placed("hstack", blocks, format, dtype=dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices below each other.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([1.0, 2.0]))
    >>> tg.scipy.sparse.vstack([A, A[1:]]).toarray()
    tensor([[1., 0.],
            [0., 2.],
            [0., 2.]])
    """
    return _placed("vstack", blocks, format, dtype=dtype)


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The elements on a diagonal and below.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.tril(tg.scipy.sparse.csr_array(tg.ones(2, 2))).toarray()
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _placed("tril", A, k, format)


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The elements on a diagonal and above.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.triu(tg.scipy.sparse.csr_array(tg.ones(2, 2)), 1).toarray()
    tensor([[0., 1.],
            [0., 0.]])
    """
    return _placed("triu", A, k, format)


def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """The Kronecker product: blocks, each an element of `A` times `B`.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([1.0, 2.0]))
    >>> tg.scipy.sparse.kron(A, tg.tensor([[1.0, 3.0]])).toarray()
    tensor([[1., 3., 0., 0.],
            [0., 0., 2., 6.]])
    """
    function = theirs("scipy.sparse", "kron")
    if not among((A, B)):
        return function(A, B, format)
    # Which element of each stands where, by products with ones.
    left, right = _Elements(), _Elements()
    a, b = left.numbers(A), right.numbers(B)
    found = left.arranged(function(a, b != 0, format))
    return found.with_data(found.data * right.arranged(function(a != 0, b, format)).data)


def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """The Kronecker sum of square matrices: ``kron(I, A) + kron(B, I)``.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([1.0, 2.0]))
    >>> tg.scipy.sparse.kronsum(A, 10 * A).diagonal()
    tensor([11., 12., 21., 22.])
    """
    if not among((A, B)):
        return theirs("scipy.sparse", "kronsum")(A, B, format)
    a, b = (x if is_sparse(x) else csr_array(tensor_of(x, "kronsum")) for x in (A, B))
    if len({*a.shape}) > 1 or len({*b.shape}) > 1:
        raise ValueError(
            f"`scipy.sparse.kronsum` takes square matrices, got shapes {a.shape} and {b.shape}"
        )
    one = theirs("scipy.sparse", "eye")
    return kron(one(b.shape[0]), a, format) + kron(b, one(a.shape[0]), format)


def issparse(x: Any) -> bool:
    """Whether something is a sparse matrix, of SciPy's or of Tensors.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.issparse(tg.scipy.sparse.csr_array(tg.ones(2, 2)))
    True
    """
    return isinstance(x, SparseTensor) or bool(theirs("scipy.sparse", "issparse")(x))


def isspmatrix(x: Any) -> bool:
    """Whether something is a sparse matrix with SciPy's older operators.

    >>> import tapegrad as tg
    >>> tg.scipy.sparse.isspmatrix(tg.scipy.sparse.csr_array(tg.ones(2, 2)))
    False
    """
    if isinstance(x, SparseTensor):
        return x.kind == "matrix"
    return bool(theirs("scipy.sparse", "isspmatrix")(x))
