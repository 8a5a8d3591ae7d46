"""`scipy.sparse.linalg` for Tensors.

>>> import numpy as np, scipy.sparse, tapegrad as tg
>>> b = tg.tensor([2.0, 8.0], requires_grad=True)
>>> tg.scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(np.diag([2.0, 4.0])), b)
tensor([1., 2.], grad_fn=<SparseSolveBackward0>)
"""

from typing import Any as _Any

import numpy as _np

from tapegrad.dispatch.dispatch import run as _run
from tapegrad.functions.shapes import squeeze as _squeeze
from tapegrad.functions.sparse import SparseTensor as _SparseTensor
from tapegrad.functions.sparse import alike as _alike
from tapegrad.functions.sparse import is_sparse as _is_sparse
from tapegrad.functions.sparse import matrix_of as _matrix_of
from tapegrad.functions.sparse import matrix_power as _power
from tapegrad.functions.sparse import parts as _parts
from tapegrad.ops.sparse import sparse_solve as _sparse_solve
from tapegrad.scipy.either import among as _among
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.linalg import expm as _dense_expm
from tapegrad.scipy.sparse.construction import diags as _diags
from tapegrad.scipy.sparse.construction import of_tensor as _of_tensor
from tapegrad.scipy.sparse.construction import tril as _tril
from tapegrad.scipy.sparse.construction import triu as _triu
from tapegrad.scipy.sparse.exponentials import expm_multiply
from tapegrad.scipy.sparse.iterative_solvers import krylov as _krylov
from tapegrad.tensor import tensor_of as _tensor_of

__all__ = [
    "bicg", "bicgstab", "cg", "cgs", "expm", "expm_multiply", "factorized", "gmres", "inv",
    "lgmres", "matrix_power", "minres", "norm", "splu", "spsolve", "spsolve_triangular", "tfqmr",
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
def spsolve(A: _Any, b: _Any, permc_spec: str | None = None, use_umfpack: bool = True) -> _Any:
    """The solution x of ``A x = b`` for a sparse matrix, by its LU factors; the adjoint uses them.

    It is differentiated in `b`, and in the elements of `A` where these are a Tensor
    (`tapegrad.scipy.sparse.csr_array`). `permc_spec` and `use_umfpack` are SciPy's, without effect.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([2.0, 1.0, 4.0]), [0, 0, 1], [0, 1, 3]))
    >>> tg.scipy.sparse.linalg.spsolve(A, tg.tensor([2.0, 9.0]))
    tensor([1., 2.])
    """
    if _is_sparse(b) and b.ndim == 2 and b.shape[1] != 1:
        dense = _matrix_of(b, "sparse.linalg.spsolve").toarray()
        return _of_tensor(spsolve(A, dense), _matrix_of(A, "sparse.linalg.spsolve").kind)
    values, pattern = _parts(A, "sparse.linalg.spsolve")
    y = b.toarray() if _is_sparse(b) else b
    y = _tensor_of(y, "sparse.linalg.spsolve")
    rows, columns = pattern.shape
    if rows != columns or y._a.ndim not in (1, 2) or y._a.shape[0] != rows:
        raise ValueError(
            f"`sparse.linalg.spsolve`: a matrix of shape {tuple(pattern.shape)} and "
            f"a right side of shape {y._a.shape} do not fit together"
        )
    if y._a.shape[1:] == (1,):  # a vector to SciPy
        y = _squeeze(y, 1)
    return _run(_sparse_solve, _alike(values, y), {"pattern": pattern})


@_for_tensors("scipy.sparse.linalg")
def spsolve_triangular(
    A: _Any, b: _Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> _Any:  # fmt: skip
    """The solution of a triangular system; elements on the other side of the diagonal are not read.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array(tg.tensor([[2.0, 7.0], [1.0, 4.0]]))
    >>> tg.scipy.sparse.linalg.spsolve_triangular(A, tg.tensor([2.0, 9.0]))
    tensor([1., 2.])
    """
    side = int(unit_diagonal)
    half = _tril(A, -side) if lower else _triu(A, side)
    if unit_diagonal:
        half = half + _diags(_np.ones(A.shape[0]))
    b = _tensor_of(b, "sparse.linalg.spsolve_triangular")
    return spsolve(half, b).reshape(b.shape)


@_for_tensors("scipy.sparse.linalg")
def inv(A: _Any) -> _Any:
    """The inverse, all of whose elements are stored.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([2.0, 4.0]))
    >>> tg.scipy.sparse.linalg.inv(A).diagonal()
    tensor([0.5000, 0.2500])
    """
    return _of_tensor(spsolve(A, _np.eye(A.shape[0])), A.kind)


@_for_tensors("scipy.sparse.linalg")
def expm(A: _Any) -> _Any:
    """The exponential of a square matrix, all of whose elements are stored.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([2.0]), ([0], [1])), shape=(2, 2))
    >>> tg.scipy.sparse.linalg.expm(A).toarray()
    tensor([[1., 2.],
            [0., 1.]])
    """
    return _of_tensor(_dense_expm(A.toarray()), A.kind)


@_for_tensors("scipy.sparse.linalg")
def matrix_power(A: _Any, power: int) -> _Any:
    """The product of a square matrix with itself, `power` times.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.diags_array(tg.tensor([2.0, 4.0]))
    >>> tg.scipy.sparse.linalg.matrix_power(A, 3).data
    tensor([ 8., 64.])
    """
    return _power(A, power)


@_for_tensors("scipy.sparse.linalg")
def norm(x: _Any, ord: _Any = None, axis: _Any = None) -> _Any:
    """The norm of a sparse matrix, as Frobenius has it, or of its rows (`axis` 1) or columns.

    Without a matrix of all elements it is that of Frobenius, or with `ord` 1, -1 or infinity; of
    rows and columns with `ord` 1 and 2.

    >>> import tapegrad as tg
    >>> A = tg.scipy.sparse.csr_array((tg.tensor([3.0, -4.0]), ([0, 0], [0, 2])))
    >>> tg.scipy.sparse.linalg.norm(A), tg.scipy.sparse.linalg.norm(A, 1)
    (tensor(5.), tensor(4.))
    """
    a = x.ordered()
    if isinstance(axis, tuple):
        axis = axis[0] if len(axis) == 1 else None
    if axis is None:
        if ord in (None, "fro", "f"):
            return _np.linalg.norm(a.data)
        if ord in (1, -1, _np.inf, -_np.inf):
            totals = abs(_SparseTensor(a.data, a.pattern)).sum(int(abs(ord) != 1))
            return totals.max() if ord > 0 else totals.min()
    elif ord == 1:
        return abs(_SparseTensor(a.data, a.pattern)).sum(axis)
    elif ord in (None, 2):
        squares = _SparseTensor(abs(a.data) ** 2, a.pattern).sum(axis)
        some = squares > 0  # the root of zero has no slope
        return _np.where(some, _np.sqrt(_np.where(some, squares, 1.0)), 0.0)
    return _np.linalg.norm(a.toarray(), ord, axis)


class _Factors:
    """The LU factors of a sparse matrix, which solve systems of Tensors, too."""

    def __init__(self, A: _Any, how: dict[str, _Any]) -> None:
        self._matrix, self._own = A, None
        if not _among(A):
            A = A.tocsc()
            self._own = _theirs("scipy.sparse.linalg", "splu")(A, **how)
            values, pattern = _parts(A, "sparse.linalg.splu")
            pattern.hold_factors(values._a, self._own)
            self._matrix = _SparseTensor(values, pattern)
        self.shape = A.shape

    def solve(self, rhs: _Any, trans: str = "N") -> _Any:
        """The solution of a system of the matrix, or of its transposed (`"T"`, `"H"`)."""
        if self._own is not None and not _among(rhs):
            return self._own.solve(rhs, trans)
        if trans not in ("N", "T", "H"):
            raise ValueError(f"`solve`: trans is 'N', 'T' or 'H', got {trans!r}")
        if trans == "N":
            return spsolve(self._matrix, rhs)
        if trans == "T":
            return spsolve(self._matrix.T, rhs)
        return _np.conj(spsolve(self._matrix.T, _np.conj(rhs)))

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
