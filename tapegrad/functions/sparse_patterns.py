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


def keys(row: Indices, column: Indices, shape: Shape, by_column: bool) -> Indices:
    """The number of each place, row by row or column by column."""
    outer, inner, size = (column, row, shape[0]) if by_column else (row, column, shape[1])
    found: Indices = np.asarray(outer, np.int64) * size + inner
    return found


def keys_of(p: Pattern, by_column: bool) -> Indices:
    """The number of each element's place."""
    return keys(*p.places(), p.shape, by_column)


def of_keys(places: Indices, shape: Shape, by_column: bool) -> Pattern:
    """The pattern of increasing numbers of places."""
    lines, size = shape[::-1] if by_column else shape
    outer, inner = np.divmod(places, max(size, 1))
    return Pattern(inner, np.searchsorted(outer, np.arange(lines + 1)), shape, by_column=by_column)


def in_order(p: Pattern) -> bool:
    """Whether the elements of each line are in order, and none stands where another does."""
    return bool((np.diff(keys_of(p, p.by_column)) > 0).all())


def ordered(p: Pattern) -> tuple[Pattern, Indices]:
    """The pattern with one element for each place, and which one each element adds to."""
    return combined(keys_of(p, p.by_column), p.shape, p.by_column)


def combined(places: Indices, shape: Shape, by_column: bool) -> tuple[Pattern, Indices]:
    """The pattern of some numbers of places, and at which of its places each of them is."""
    found, which = np.unique(places, return_inverse=True)
    return of_keys(found, shape, by_column), which


def union(p: Pattern, q: Pattern) -> tuple[Pattern, Indices]:
    """The places of two matrices, and which of them each element of both stands at."""
    both = [keys_of(x, p.by_column) for x in (p, q)]
    return combined(np.concatenate(both), p.shape, p.by_column)


def intersection(p: Pattern, q: Pattern) -> tuple[Pattern, Indices, Indices]:
    """The places that two matrices have in common, and the elements of both that stand there."""
    one, other = (keys_of(x, p.by_column) for x in (p, q))
    found, left, right = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return of_keys(found, p.shape, p.by_column), left, right


def product(p: Pattern, q: Pattern) -> tuple[Pattern, Indices, Indices, Indices]:
    """The pattern of a product of matrices, the pairs of elements that are multiplied, and where.

    An element of the first meets all in that row of the second which is its column.
    """
    (row, inner), (meets, column) = p.places(), q.places()
    order = np.argsort(meets, kind="stable")
    first = np.searchsorted(meets[order], inner)
    count = np.searchsorted(meets[order], inner, side="right") - first
    left = np.repeat(np.arange(inner.size), count)
    within = np.arange(left.size) - np.repeat(np.cumsum(count) - count, count)
    right = order[first[left] + within]
    shape = p.shape[0], q.shape[1]
    places = keys(row[left], column[right], shape, p.by_column)
    pattern, which = combined(places, shape, p.by_column)
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
    return made((numbers, p.indices.copy(), p.indptr.copy()), shape=tuple(shape))


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
    held.eliminate_zeros()
    held.sort_indices()
    by_column = held.format == "csc"
    pattern = Pattern(held.indices, held.indptr, held.shape, by_column=by_column)
    return (
        pattern,
        "matrix" if scipy.sparse.isspmatrix(found) else "array",
        held.data.astype(np.int64),
    )
