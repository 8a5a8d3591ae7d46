"""Patterns of sparse matrices from those of others, and which elements go where: NumPy's indices.

What only moves elements, SciPy does with matrices of their numbers; so the indices are SciPy's.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tapegrad.ops.sparse import Pattern
from tapegrad.tape.shape_table import Shape

# As SciPy's classes: `*` of a matrix is the product of matrices, and a vector is an array of one
# dimension, whose pattern is that of a matrix of one row.
Kind = Literal["array", "matrix", "vector"]
Indices = np.ndarray


class Structure:
    """What there is of a sparse matrix besides its elements; equal if all of it is."""

    __slots__ = ("kind", "pattern")

    def __init__(self, pattern: Pattern, kind: Kind) -> None:
        self.pattern, self.kind = pattern, kind

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Structure)
            and self.kind == other.kind
            and same(self.pattern, other.pattern)
        )

    def __hash__(self) -> int:
        p = self.pattern
        return hash((self.kind, tuple(p.shape), p.by_column, p.indices.size))

    def __repr__(self) -> str:
        return f"{self.kind} of shape {tuple(self.pattern.shape)}"


def same(p: Pattern, q: Pattern) -> bool:
    """Whether the elements of two matrices stand at the same places, in the same order."""
    return p is q or (
        (tuple(p.shape), p.by_column) == (tuple(q.shape), q.by_column)
        and np.array_equal(p.indptr, q.indptr)
        and np.array_equal(p.indices, q.indices)
    )


def grouped(numbers: Indices, size: int) -> tuple[Indices, Indices]:
    """The order in which equal numbers below `size` stand together, and where each begins."""
    import scipy.sparse

    n = numbers.size
    lines = scipy.sparse.csr_array((np.zeros(n, np.int8), numbers, np.arange(n + 1)), (n, size))
    held = lines.tocsc()  # counts, where NumPy would sort
    return held.indices, held.indptr


def combined(row: Indices, column: Indices, shape: Shape, by_column: bool) -> Any:
    """The pattern of some places, and at which of its places each of them is."""
    import scipy.sparse

    (lines, size), outer, inner = tuple(shape), row, column
    if by_column:
        lines, size, outer, inner = size, lines, column, row
    sorted_lines = bool((outer[1:] >= outer[:-1]).all())
    order = np.arange(outer.size) if sorted_lines else grouped(outer, lines)[0]
    begins = starts_of(outer, lines)
    held = scipy.sparse.csr_array((order, inner[order], begins), shape=(lines, size))
    held.sort_indices()
    order, outer = held.data, outer if sorted_lines else outer[held.data]
    new = np.ones(order.size, bool)
    new[1:] = (np.diff(held.indices) != 0) | (np.diff(outer) != 0)
    which = np.empty(order.size, np.int64)
    which[order] = np.cumsum(new) - 1
    return of_places(outer[new], held.indices[new], shape, by_column), which


def starts_of(lines: Indices, count: int) -> Indices:
    """Where each of so many lines begins among elements whose lines are these, in order."""
    return np.append(0, np.cumsum(np.bincount(lines, minlength=count)))


def of_places(outer: Indices, inner: Indices, shape: Shape, by_column: bool) -> Pattern:
    """The pattern of places in order."""
    begins = starts_of(outer, shape[1 if by_column else 0])
    return Pattern(inner, begins, shape, by_column=by_column)


def ordered(p: Pattern) -> tuple[Pattern, Indices]:
    """The pattern with one element for each place, and which one each element adds to."""
    pattern, which = combined(*p.places(), p.shape, p.by_column)
    return pattern, which


def union(p: Pattern, q: Pattern) -> tuple[Pattern, Indices, Indices]:
    """The places of two patterns in order, and the numbers of their elements there; 0 is none."""
    digit = p.indices.size + 1
    one, other = numbered(p, "array"), numbered(q, "array")
    found = one + (other * digit).asformat(one.format)
    right, left = np.divmod(found.data, digit)
    pattern = Pattern(found.indices, found.indptr, p.shape, by_column=p.by_column)
    return pattern, left, right


def intersection(p: Pattern, q: Pattern) -> tuple[Pattern, Indices, Indices]:
    """The places that two patterns in order have in common, and the elements that stand there."""
    pattern, left, right = union(p, q)
    common = (left > 0) & (right > 0)
    row, column = pattern.places()
    outer, inner = (column, row) if p.by_column else (row, column)
    kept = of_places(outer[common], inner[common], p.shape, p.by_column)
    return kept, left[common] - 1, right[common] - 1


def product(p: Pattern, q: Pattern) -> tuple[Pattern, Indices, Indices, Indices]:
    """The pattern of a product of matrices, the pairs of elements that are multiplied, and where.

    An element of the first meets all in that row of the second which is its column.
    """
    (row, inner), (meets, column) = p.places(), q.places()
    order, starts = grouped(meets, q.shape[0])
    count = np.diff(starts)[inner]
    left = np.repeat(np.arange(inner.size), count)
    within = np.arange(left.size) - np.repeat(np.cumsum(count) - count, count)
    right = order[starts[inner][left] + within]
    shape = p.shape[0], q.shape[1]
    pattern, which = combined(row[left], column[right], shape, p.by_column)
    return pattern, left, right, which


def full(shape: Shape) -> Pattern:
    """The pattern of all elements, row by row."""
    rows, columns = shape
    return Pattern(np.tile(np.arange(columns), rows), np.arange(rows + 1) * columns, shape)


def eye(n: int) -> Pattern:
    """The pattern of a diagonal."""
    return Pattern(np.arange(n), np.arange(n + 1), (n, n))


def numbered(p: Pattern, kind: Kind, start: int = 1) -> Any:
    """SciPy's matrix of a pattern in order, whose elements are their numbers from `start`."""
    import scipy.sparse

    form = "csc" if p.by_column else "csr"
    made = getattr(scipy.sparse, f"{form}_{'matrix' if kind == 'matrix' else 'array'}")
    numbers = np.arange(start, start + p.indices.size)
    shape = p.shape[1:] if kind == "vector" else p.shape
    return made((numbers, p.indices, p.indptr), shape=tuple(shape))


def of_numbered(found: Any) -> tuple[Pattern, Kind, Indices]:
    """The pattern of SciPy's matrix of numbers, and the number of each element; 0 is none."""
    import scipy.sparse

    if found.ndim > 2:
        raise ValueError(
            f"a sparse matrix of Tensors has one dimension or two, got the shape {found.shape}"
        )
    if found.ndim == 1:
        coo = found.tocoo()
        at = np.argsort(coo.coords[0])
        at = at[coo.data[at] != 0]
        row = Pattern(coo.coords[0][at], np.array([0, at.size]), (1, *found.shape))
        return row, "vector", coo.data[at].astype(np.int64)
    held = found if found.format == "csc" else found.tocsr()
    if not held.data.all():
        held.eliminate_zeros()
    held.sort_indices()
    by_column = held.format == "csc"
    pattern = Pattern(held.indices, held.indptr, held.shape, by_column=by_column)
    return (
        pattern,
        "matrix" if scipy.sparse.isspmatrix(found) else "array",
        held.data.astype(np.int64),
    )
