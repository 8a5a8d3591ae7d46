"""`scipy.sparse.linalg` for Tensors.

>>> import numpy as np, scipy.sparse, tapegrad as tg
>>> b = tg.tensor([2.0, 8.0], requires_grad=True)
>>> tg.scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(np.diag([2.0, 4.0])), b)
tensor([1., 2.], grad_fn=<SparseSolveBackward0>)
"""

from typing import Any as _Any

from tapegrad.functions import sparse as _sparse
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.sparse.iterative_solvers import krylov as _krylov
from tapegrad.tensor import Tensor

__all__ = ["bicg", "bicgstab", "cg", "cgs", "gmres", "lgmres", "minres", "spsolve", "tfqmr"]

cg = _krylov("cg", "conjugate gradients, `A` being positive definite")
cgs = _krylov("cgs", "conjugate gradients squared")
bicg = _krylov("bicg", "biconjugate gradients")
bicgstab = _krylov("bicgstab", "stabilized biconjugate gradients")
gmres = _krylov("gmres", "the generalized minimal residual method")
lgmres = _krylov("lgmres", "the generalized minimal residual method with loose restarts")
minres = _krylov("minres", "the minimal residual method, `A` being symmetric")
tfqmr = _krylov("tfqmr", "the transpose-free quasi-minimal residual method")


@_for_tensors("scipy.sparse.linalg")
def spsolve(A: _Any, b: _Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Tensor:
    """The solution x of ``A x = b`` for a sparse matrix, by its LU factors; the adjoint uses them.

    It is differentiated in `b`, and in the elements of `A` where these are a Tensor
    (`tapegrad.scipy.sparse.csr_array`). `permc_spec` and `use_umfpack` are SciPy's, without effect.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([2.0, 1.0, 4.0]), [0, 0, 1], [0, 1, 3]))
    >>> tg.scipy.sparse.linalg.spsolve(A, tg.tensor([2.0, 9.0]))
    tensor([1., 2.])
    """
    return _sparse.spsolve(A, b)


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.sparse.linalg", name)
