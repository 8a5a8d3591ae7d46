"""Products with sparse matrices and their solutions: SciPy computes, on the stored elements.

A matrix is an array of its stored elements and a `Pattern`, which says where they stand.  The
adjoint of a matrix has the same elements under the transposed pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, Op, custom
from tapegrad.ops.elementwise import neg
from tapegrad.ops.solve import LinAlgError
from tapegrad.tape.shape_table import Shape


class Pattern:
    """Where the elements of a matrix stand: row by row, or column by column (`by_column`).

    Systems are solved by the LU factors, or by a `solver`, which has that of the adjoint system as
    `transposed`.
    """

    __slots__ = (
        "_factors", "_held", "_other", "_sorted", "by_column", "indices", "indptr", "shape",
        "solver",
    )  # fmt: skip

    def __init__(
        self, indices: Any, indptr: Any, shape: Shape, *, by_column: bool = False,
        solver: Any = None,
    ) -> None:  # fmt: skip
        self.indices, self.indptr, self.shape, self.by_column = indices, indptr, shape, by_column
        self.solver = solver
        self._other: Pattern | None = None
        self._held: tuple[Any, Any] = None, None  # an array of elements, and SciPy's matrix of them
        self._sorted: bool | None = None
        self._factors: list[Any] = []  # of the last matrix, shared with the transposed pattern

    @property
    def transposed(self) -> Pattern:
        """That of the transposed matrix."""
        if self._other is None:
            shape = self.shape[::-1]
            other = Pattern(
                self.indices, self.indptr, shape, by_column=not self.by_column,
                solver=self.solver and self.solver.transposed,
            )  # fmt: skip
            other._other, other._factors, self._other = self, self._factors, other
        return self._other

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The row and the column of each element."""
        along = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return (self.indices, along) if self.by_column else (along, self.indices)

    @property
    def in_order(self) -> bool:
        """Whether those of each line are in order, and no two stand in one place."""
        if self._sorted is None:
            rising = self.indices[1:] > self.indices[:-1]
            begins = self.indptr[(self.indptr > 0) & (self.indptr < len(self.indices))]
            rising[begins - 1] = True  # another line
            self._sorted = bool(rising.all())
        return self._sorted

    def hold(self, values: Any, matrix: Any) -> None:
        """Take a matrix of SciPy's for that of its own elements."""
        self._held = values, matrix

    def hold_factors(self, values: Any, factors: Any) -> None:
        """Take SciPy's factors of the matrix of these elements for those of the last one."""
        self._factors[:] = [(np.array(values), factors)]

    def matrix(self, values: Any) -> Any:
        """SciPy's matrix of these elements."""
        stored, matrix = self._held
        if values is stored and matrix.indices is self.indices and matrix.indptr is self.indptr:
            return matrix  # nobody has moved its elements since
        import scipy.sparse

        kind = scipy.sparse.csc_array if self.by_column else scipy.sparse.csr_array
        stored = np.ascontiguousarray(values)
        return kind((stored, self.indices, self.indptr), shape=self.shape)

    def solved(self, values: Any, b: Any) -> Any:
        """The solution of the system; the last matrix's factors serve its adjoint, too."""
        if self.solver is not None:
            return self.solver(self.matrix(values), b)
        import scipy.sparse.linalg

        matrix: Any
        factors: Any
        matrix, factors = self._factors[0] if self._factors else (None, None)
        if matrix is None or matrix.dtype != values.dtype or not np.array_equal(matrix, values):
            base = self if self.by_column else self.transposed
            try:
                factors = scipy.sparse.linalg.splu(base.matrix(values))
            except RuntimeError:
                raise LinAlgError(
                    f"`sparse.linalg.spsolve`: the matrix of shape {self.shape} is singular"
                ) from None
            self.hold_factors(values, factors)
        return factors.solve(np.asfortranarray(b), "N" if self.by_column else "T")


def _product(values: Any, x: Any, *, pattern: Pattern) -> Any:
    return np.asarray(pattern.matrix(values) @ x)


def _sampled(a: Any, b: Any, *, pattern: Pattern) -> Any:
    row, column = pattern.places()
    if a.ndim == 1:
        return a[row] * b[column]
    return np.einsum("nk,nk->n", a[row], b[column])


sparse_product: Op = custom(
    "sparse_product", _product, complex=ANALYTIC, multilinear=True,
    values=lambda g, x, pattern: sampled_product(g, x, pattern=pattern),
    x=lambda g, values, pattern: sparse_product(values, g, pattern=pattern.transposed),
)  # fmt: skip
# Those elements of ``a b^T`` that the pattern names.
sampled_product: Op = custom(
    "sampled_product", _sampled, complex=ANALYTIC, multilinear=True,
    a=lambda g, b, pattern: sparse_product(g, b, pattern=pattern),
    b=lambda g, a, pattern: sparse_product(g, a, pattern=pattern.transposed),
)  # fmt: skip
sparse_solve: Op = custom(
    "sparse_solve",
    lambda values, b, *, pattern: pattern.solved(values, b) if b.size else np.zeros_like(b),
    complex=ANALYTIC,
    values=lambda g, y, values, pattern: neg(sampled_product(
        sparse_solve(values, g, pattern=pattern.transposed), y, pattern=pattern
    )),
    b=lambda g, values, pattern: sparse_solve(values, g, pattern=pattern.transposed),
)  # fmt: skip
