"""Linear algebra under PyTorch's names: `tg.linalg.solve`, `tg.linalg.eigh` and so on.

All functions take a matrix, or a batch of matrices in the last two dimensions, in float32 or
float64, and can be differentiated any number of times.  What has no result (the inverse of a
singular matrix) raises `LinAlgError`, which is a RuntimeError and NumPy's error of that name too.

>>> import tapegrad as tg
>>> a = tg.tensor([[2.0, 1.0], [2.0, 4.0]], requires_grad=True)
>>> tg.linalg.det(a).backward()
>>> a.grad
tensor([[ 4., -2.],
        [-1.,  2.]])
"""

from __future__ import annotations

from typing import Any

from tapegrad.base.missing_names import missing
from tapegrad.functions.arguments import as_input
from tapegrad.functions.contractions import crossed
from tapegrad.functions.matrices import (
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    matrix_exp,
    matrix_power,
    multi_dot,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from tapegrad.functions.norms import matrix_norm, norm, vector_norm
from tapegrad.ops.solve import LinAlgError
from tapegrad.tensor import Tensor

__all__ = [
    "LinAlgError", "cholesky", "cross", "det", "eigh", "eigvalsh", "inv", "matrix_exp",
    "matrix_norm", "matrix_power", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve",
    "solve_triangular", "svd", "svdvals", "vector_norm",
]  # fmt: skip


def cross(input: Any, other: Any, *, dim: int = -1) -> Tensor:
    """The product of vectors in space; `dim` is the dimension of their three components.

    >>> import tapegrad as tg
    >>> tg.linalg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return crossed(as_input(input, "linalg.cross"), as_input(other, "linalg.cross"), dim)


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.linalg'", name, __all__)
