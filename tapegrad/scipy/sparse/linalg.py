"""`scipy.sparse.linalg` for Tensors.

>>> import numpy as np, scipy.sparse, tapegrad as tg
>>> b = tg.tensor([2.0, 8.0], requires_grad=True)
>>> tg.scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(np.diag([2.0, 4.0])), b)
tensor([1., 2.], grad_fn=<SparseSolveBackward0>)
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.functions import sparse as _sparse
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.sparse.iterative_solvers import krylov as _krylov
from tapegrad.tensor import Tensor

__all__ = [
    "bicg", "bicgstab", "cg", "cgs", "factorized", "gmres", "lgmres", "minres", "splu", "spsolve",
    "tfqmr",
]  # fmt: skip

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


class _Factors:
    """The LU factors of a sparse matrix, which solve systems of Tensors, too."""

    def __init__(self, A: _Any, how: dict[str, _Any]) -> None:
        self._matrix, self._own = A, None
        if not _among(A):
            A = A.tocsc()
            self._own = _theirs("scipy.sparse.linalg", "splu")(A, **how)
            values, pattern = _sparse.parts(A, "sparse.linalg.splu")
            pattern.hold_factors(values._a, self._own)
            self._matrix = _sparse.SparseTensor(values, pattern)
        self.shape = A.shape

    def solve(self, rhs: _Any, trans: str = "N") -> _Any:
        """The solution of a system of the matrix, or of its transposed (`"T"`, `"H"`)."""
        if self._own is not None and not _among(rhs):
            return self._own.solve(rhs, trans)
        if trans not in ("N", "T", "H"):
            raise ValueError(f"`solve`: trans is 'N', 'T' or 'H', got {trans!r}")
        if trans == "N":
            return _sparse.spsolve(self._matrix, rhs)
        if trans == "T":
            return _sparse.spsolve(self._matrix.T, rhs)
        return _np.conj(_sparse.spsolve(self._matrix.T, _np.conj(rhs)))

    def __getattr__(self, name: str) -> _Any:
        if name.startswith("_") or self._own is None:
            raise AttributeError(f"the factors of Tensors have no `{name}`")
        return getattr(self._own, name)


def splu(A: _Any, **how: _Any) -> _Any:
    """The LU factors of a sparse matrix, whose `solve` takes Tensors; options are SciPy's.

    >>> import numpy as np, scipy.sparse, tapegrad as tg
    >>> factors = tg.scipy.sparse.linalg.splu(scipy.sparse.csc_array(np.diag([2.0, 4.0])))
    >>> tg.grad(lambda b: factors.solve(b)[1])(np.array([2.0, 8.0]))
    array([0.  , 0.25])
    """
    return _Factors(A, how)


def factorized(A: _Any) -> _Any:
    """The function that solves a system of a sparse matrix, by its LU factors.

    >>> import numpy as np, scipy.sparse, tapegrad as tg
    >>> solve = tg.scipy.sparse.linalg.factorized(scipy.sparse.csc_array(np.diag([2.0, 4.0])))
    >>> solve(tg.tensor([2.0, 8.0]))
    tensor([1., 2.])
    """
    return splu(A).solve


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.sparse.linalg", name)
