"""Sparse matrices: SciPy's times Tensors, and those whose stored elements are a Tensor.

``A @ t`` and ``t @ A`` are Tensors for every sparse matrix of SciPy's. `csr_array` and what stands
beside it takes Tensors for elements, and gives matrices with SciPy's operators and methods, under
transforms, too; `linalg.spsolve` solves.

>>> import numpy as np, tapegrad as tg
>>> t = tg.tensor([2.0, 4.0], requires_grad=True)
>>> A = tg.scipy.sparse.csr_array((t, [0, 1], [0, 1, 2]))
>>> (A @ np.array([1.0, 10.0])).sum().backward(); t.grad
tensor([ 1., 10.])
>>> tg.grad(lambda t: (tg.scipy.sparse.diags_array(t) @ A @ A).sum())(np.array([1.0, 1.0]))
array([ 4., 16.])
"""

from typing import Any as _Any

from tapegrad.functions.sparse import SparseTensor
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.sparse import linalg
from tapegrad.scipy.sparse.construction import (
    block_array,
    block_diag,
    bmat,
    coo_array,
    coo_matrix,
    csc_array,
    csc_matrix,
    csr_array,
    csr_matrix,
    dia_array,
    dia_matrix,
    diags,
    diags_array,
    hstack,
    issparse,
    isspmatrix,
    kron,
    kronsum,
    spdiags,
    tril,
    triu,
    vstack,
)

__all__ = [
    "SparseTensor", "block_array", "block_diag", "bmat", "coo_array", "coo_matrix", "csc_array",
    "csc_matrix", "csr_array", "csr_matrix", "dia_array", "dia_matrix", "diags", "diags_array",
    "hstack", "issparse", "isspmatrix", "kron", "kronsum", "linalg", "spdiags", "tril", "triu",
    "vstack",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.sparse", name)
