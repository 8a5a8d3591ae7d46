"""Linear algebra under PyTorch's names: `tg.linalg.solve`, `tg.linalg.eigh` and so on.

All functions take a matrix, or a batch of matrices in the last two dimensions, of real or complex
numbers, and can be differentiated any number of times.  What has no result (the inverse of a
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

import numpy as np

from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.functions import diagonals
from tapegrad.functions.arguments import as_input, numpy_names
from tapegrad.functions.contractions import crossed
from tapegrad.functions.factorizations import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from tapegrad.functions.householder import householder_product
from tapegrad.functions.joining import cat
from tapegrad.functions.least_squares import cond, lstsq, matrix_rank, tensorinv, tensorsolve
from tapegrad.functions.lu import (
    ldl_factor,
    ldl_factor_ex,
    ldl_solve,
    lu,
    lu_factor,
    lu_factor_ex,
    lu_solve,
)
from tapegrad.functions.matrices import (
    det,
    inv,
    matrix_exp,
    matrix_power,
    pinv,
    slogdet,
    solve,
    solve_triangular,
)
from tapegrad.functions.matrix_chains import multi_dot
from tapegrad.functions.norms import matrix_norm, norm, vector_norm
from tapegrad.functions.products import matmul as _matmul
from tapegrad.functions.products import vecdot
from tapegrad.functions.scans import cumprod
from tapegrad.functions.shapes import expand, reshape, unsqueeze
from tapegrad.functions.unchecked_solves import cholesky_ex, inv_ex, solve_ex
from tapegrad.ops.solve import LinAlgError
from tapegrad.tensor import Tensor, wrap

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh",
    "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex",
    "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet",
    "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = dir_of(globals())


@numpy_names
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The product of vectors in space; `dim` is the dimension of their three components.

    >>> import tapegrad as tg
    >>> tg.linalg.cross(tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    return crossed(as_input(input, "linalg.cross"), as_input(other, "linalg.cross"), dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as the last dimension; a view.

    >>> import tapegrad as tg
    >>> tg.linalg.diagonal(tg.eye(2).expand(3, 2, 2)).shape
    tapegrad.Size([3, 2])
    """
    return diagonals.diagonal(A, offset, dim1, dim2)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """`tapegrad.matmul`.

    >>> import tapegrad as tg
    >>> tg.linalg.matmul(tg.eye(2), tg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _matmul(input, other)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Powers of each element from 0 to N - 1 in a new dimension; without N as many as elements.

    >>> import tapegrad as tg
    >>> tg.linalg.vander(tg.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    t = as_input(x, "linalg.vander")
    if not t._a.ndim:
        t = reshape(t, (1,))
    n = t._a.shape[-1] if N is None else int(N)
    if n <= 1:
        raise RuntimeError(f"`linalg.vander`: N is greater than 1, got {n}")
    whole = wrap(np.ones((*t._a.shape, 1), np.int64 if t._a.dtype.kind in "biu" else t._a.dtype))
    powers = cumprod(expand(unsqueeze(t, -1), (*t._a.shape, n - 1)), -1)
    return cat([whole, powers], -1)


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.linalg'", name, __all__)
