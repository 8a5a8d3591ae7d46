"""LU factors of a large matrix, kept by a record: its adjoint need not factorize again.

They are a parameter, `factors`, of the record.  A call under a transform or `tg.jit` has none, nor
have small matrices and batches: formulas read None then, and their operations factorize.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def routine(name: str, dtype: Any) -> Any:
    """A routine of LAPACK for elements of a type."""
    from scipy.linalg.lapack import get_lapack_funcs

    return get_lapack_funcs((name,), dtype=dtype)[0]


@cache
def _room(dtype: Any, n: int) -> int:
    """The length of the work array of `getri` for blocks: without it an inverse takes longer."""
    return int(routine("getri_lwork", dtype)(n)[0].real)


class Factors:
    """``P L U`` of a square matrix, or of its transpose, whichever LAPACK reads without a copy.

    >>> import numpy as np
    >>> from tapegrad.ops.lu_factors import Factors
    >>> x = np.array([[0.0, 2.0], [1.0, 0.0]])
    >>> Factors(x).solve(np.array([[2.0], [3.0]])).tolist()
    [[3.0], [1.0]]
    >>> np.abs(Factors(x).mT.inverse()).tolist()
    [[0.0, 0.5], [1.0, 0.0]]
    """

    __slots__ = ("lu", "pivots", "singular", "turned")

    def __init__(self, x: np.ndarray) -> None:
        self.turned = x.flags.c_contiguous
        self.lu, self.pivots, info = routine("getrf", x.dtype)(x.T if self.turned else x)
        self.singular = info > 0

    def __repr__(self) -> str:
        n = len(self.lu)
        return f"<LU of {n} × {n}>"

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return int(self.lu.nbytes + self.pivots.nbytes)

    @property
    def mT(self) -> Factors:
        """Those of the transposed matrix."""
        found = object.__new__(Factors)
        found.lu, found.pivots, found.singular = self.lu, self.pivots, self.singular
        found.turned = not self.turned
        return found

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solution for the columns of a matrix, or of a batch of matrices."""
        if not b.size:
            return b.copy()
        if b.ndim > 2:
            columns = np.moveaxis(b, -2, 0)
            x = self.solve(columns.reshape(len(columns), -1)).reshape(columns.shape)
            return np.ascontiguousarray(np.moveaxis(x, 0, -2))
        x = routine("getrs", self.lu.dtype)(self.lu, self.pivots, b, trans=self.turned)[0]
        return np.ascontiguousarray(x)

    def inverse(self) -> np.ndarray:
        """The inverse of a matrix that has one."""
        lu = self.lu
        found: np.ndarray = routine("getri", lu.dtype)(
            lu, self.pivots, lwork=_room(lu.dtype, len(lu))
        )[0]
        return found.T if self.turned else np.ascontiguousarray(found)

    def slogdet(self) -> tuple[Any, Any]:
        """The sign of the determinant, and the logarithm of its absolute value."""
        diagonal = self.lu.diagonal()
        sizes = np.abs(diagonal)
        exchanges = np.count_nonzero(self.pivots != np.arange(len(self.pivots)))
        if self.singular:
            return diagonal.dtype.type(0), sizes.dtype.type(-np.inf)
        return np.prod(diagonal / sizes) * (-1) ** int(exchanges), np.log(sizes).sum()


def kept(factors: Factors | None) -> dict[str, Any]:
    """The parameters of an operation that has these factors, or none."""
    return {} if factors is None else {"factors": factors}
