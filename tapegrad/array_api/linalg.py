"""The standard's extension of linear algebra: NumPy's own functions, which take Tensors.

>>> from tapegrad import array_api as xp
>>> xp.linalg.solve(xp.eye(2) * 2.0, xp.ones(2))
tensor([0.5000, 0.5000])
"""

from __future__ import annotations

import numpy as np

from tapegrad.array_api.arrays import matmul, matrix_transpose, tensordot, vecdot
from tapegrad.array_api.promotion import of_two, on_tensors, same_type
from tapegrad.tensor import Tensor

cholesky, det = on_tensors(np.linalg.cholesky), on_tensors(np.linalg.det)
diagonal, eigh = on_tensors(np.linalg.diagonal), on_tensors(np.linalg.eigh)
eigvalsh, inv, matrix_norm = map(
    on_tensors, (np.linalg.eigvalsh, np.linalg.inv, np.linalg.matrix_norm)
)
matrix_power, matrix_rank = on_tensors(np.linalg.matrix_power), on_tensors(np.linalg.matrix_rank)
outer, solve = of_two(np.linalg.outer, "outer"), of_two(np.linalg.solve, "solve")
pinv, qr, slogdet = map(on_tensors, (np.linalg.pinv, np.linalg.qr, np.linalg.slogdet))
svd, svdvals = on_tensors(np.linalg.svd), on_tensors(np.linalg.svdvals)
trace, vector_norm = on_tensors(np.linalg.trace), on_tensors(np.linalg.vector_norm)
_cross = on_tensors(np.linalg.cross)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The vector product of vectors of three elements.

    >>> from tapegrad import array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    found: Tensor = _cross(*same_type(x1, x2), axis=axis)
    return found


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
