"""The functions of `tapegrad.linalg` that solve with matrices and take them apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import run
from tapegrad.functions import solve_fast
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.elementwise import lt
from tapegrad.functions.joining import cat
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import matrix_transpose, narrow, select
from tapegrad.ops import determinant, factorizations
from tapegrad.ops import solve as ops
from tapegrad.ops.shape import squeeze, unsqueeze
from tapegrad.tape.tape import DTYPE_BITS, current
from tapegrad.tensor import Tensor, wrap


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SignLog(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


# Whose rows give several results in one array, which is real.
OF_REAL = {
    "linalg.eigh", "linalg.eigvalsh", "linalg.svd", "linalg.svdvals", "linalg.slogdet",
    "linalg.pinv", "linalg.qr", "linalg.cholesky", "logdet", "linalg.cond",
}  # fmt: skip


class QR(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matrices(x: Any, name: str, square: bool = False, floating: bool = True) -> Tensor:
    """An operand that is a matrix or a batch of them."""
    t = as_input(x, name)
    a = t._a
    if floating and (a.dtype not in DTYPE_BITS or (a.dtype.kind == "c" and name in OF_REAL)):
        more = "" if name in OF_REAL else ", or of a complex type"
        raise RuntimeError(
            f"`{name}` takes Tensors of float32 or float64{more}, got {t.dtype}: convert with `.to`"
        )
    if a.ndim < 2:
        raise RuntimeError(
            f"`{name}` takes a matrix or a batch of matrices: at least 2 dimensions, got the shape "
            f"{a.shape}"
        )
    if square and a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"`{name}` takes square matrices, got the shape {a.shape}: {a.shape[-2]} rows and "
            f"{a.shape[-1]} columns"
        )
    return t


def _pair(a: Any, b: Any, name: str) -> tuple[Tensor, Tensor]:
    """A square matrix and what is solved for with it, of one type."""
    x, y = matrices(a, name, square=True), as_input(b, name)
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(
            f"`{name}`: expected A and B of one dtype, got {x.dtype} and {y.dtype}: convert one "
            "with `.to`"
        )
    return x, y


def _check_system(x: Tensor, y: Tensor, left: bool, name: str) -> None:
    """The shapes of ``A X = B``, or of ``X A = B``."""
    n, k = x._a.shape[-1], y._a.shape[-2 if left else -1]
    if n != k:
        raise RuntimeError(
            f"`{name}`: the shapes {x._a.shape} of A and {y._a.shape} of B do not fit for "
            f"{'A X' if left else 'X A'} = B: B needs {n} {'rows' if left else 'columns'}, got {k}"
        )
    try:
        np.broadcast_shapes(x._a.shape[:-2], y._a.shape[:-2])
    except ValueError:
        raise RuntimeError(
            f"`{name}`: the batch dimensions of {x._a.shape} and {y._a.shape} do not broadcast"
        ) from None


def solve(A: Any, B: Any, *, left: bool = True) -> Tensor:
    """The X for which ``A @ X`` is B (or ``X @ A`` with ``left=False``).

    B is one vector, a batch of vectors (when its shape is that of A without the last dimension), or
    matrices.

    >>> import tapegrad as tg
    >>> tg.linalg.solve(tg.tensor([[2.0, 0.0], [0.0, 4.0]]), tg.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    found = solve_fast.solve(A, B) if left else None
    if found is not None:
        return found
    x, y = _pair(A, B, "linalg.solve")
    shape = y._a.shape
    vector = len(shape) == 1 or (len(shape) == x._a.ndim - 1 and shape == x._a.shape[:-1])
    if not shape:
        raise RuntimeError("`linalg.solve`: B needs at least one dimension, got a number")
    if vector:
        y = run(unsqueeze, (y,), {"dims": (len(shape),)})
    _check_system(x, y, left, "linalg.solve")
    if not left:
        return matrix_transpose(run(ops.solve, (matrix_transpose(x), matrix_transpose(y)), {}))
    found = run(ops.solve, (x, y), {})
    return run(squeeze, (found,), {"dims": (found._a.ndim - 1,)}) if vector else found


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """`solve` with a triangular matrix; what is on its other side is not looked at.

    With ``unitriangular=True`` the diagonal is not looked at either, it counts as ones.  A zero on
    the diagonal is no error: the result has inf and NaN.

    >>> import tapegrad as tg
    >>> a, b = tg.tensor([[1.0, 0.0], [1.0, 2.0]]), tg.tensor([[1.0], [2.0]])
    >>> tg.linalg.solve_triangular(a, b, upper=False)
    tensor([[1.0000],
            [0.5000]])
    """
    name = "linalg.solve_triangular"
    x, y = _pair(A, B, name)
    y = matrices(y, name)
    _check_system(x, y, left, name)
    if left:
        return _triangular(x, y, upper, unitriangular)
    found = _triangular(matrix_transpose(x), matrix_transpose(y), not upper, unitriangular)
    return matrix_transpose(found)


def _triangular(x: Tensor, y: Tensor, upper: bool, unit: bool) -> Tensor:
    params = {"upper": bool(upper), "unit": bool(unit), "strong": False}
    return run(ops.solve_triangular, (x, y), params)


@method
def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Tensor:
    """The X for which ``L @ L.mT @ X`` is B, where L is a factor from `linalg.cholesky`.

    >>> import tapegrad as tg
    >>> tg.cholesky_solve(tg.tensor([[4.0]]), tg.tensor([[2.0]]))
    tensor([[1.]])
    """
    y, x = matrices(B, "cholesky_solve"), matrices(L, "cholesky_solve", square=True)
    x, y = _pair(x, y, "cholesky_solve")
    _check_system(x, y, True, "cholesky_solve")
    lower = matrix_transpose(x) if upper else x
    half = _triangular(lower, y, False, False)
    return _triangular(matrix_transpose(lower), half, True, False)


def inv(A: Any) -> Tensor:
    """The inverse of a square matrix.

    >>> import tapegrad as tg
    >>> tg.linalg.inv(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return run(ops.inv, (matrices(A, "linalg.inv", square=True),), {})


@method
def inverse(input: Any) -> Tensor:
    """The inverse of a square matrix: `linalg.inv`.

    >>> import tapegrad as tg
    >>> tg.inverse(tg.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(input)


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of Moore and Penrose.

    Singular values up to ``max(atol, rtol * the largest)`` count as zero; `rtol` is the larger side
    times the rounding error if neither is given.  The derivative is that at constant rank.
    `hermitian` says that the matrix is symmetric; the result is the same.

    >>> import tapegrad as tg
    >>> tg.linalg.pinv(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    x = matrices(A, "linalg.pinv", square=hermitian)
    if rtol is None:
        rtol = 0.0 if atol is not None else max(x._a.shape[-2:]) * np.finfo(x._a.dtype).eps
    return run(ops.pinv, (x,), {"atol": float(atol or 0.0), "rtol": float(rtol)})


@method
def pinverse(input: Any, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse: `linalg.pinv` with ``rtol=rcond``.

    >>> import tapegrad as tg
    >>> tg.pinverse(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


@method
def matrix_exp(A: Any) -> Tensor:
    """The exponential of a square matrix.

    >>> import tapegrad as tg
    >>> tg.linalg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return run(ops.matrix_exp, (matrices(A, "linalg.matrix_exp", square=True),), {})


@method
def det(A: Any) -> Tensor:
    """The determinant of a square matrix; it can be differentiated at singular ones too.

    >>> import tapegrad as tg
    >>> tg.linalg.det(tg.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    return run(determinant.det, (matrices(A, "linalg.det", square=True),), {})


@method
def slogdet(A: Any) -> SignLog:
    """The sign of the determinant and the logarithm of its absolute value.

    >>> import tapegrad as tg
    >>> tg.linalg.slogdet(tg.tensor([[-1.0]]))
    SignLog(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    found = solve_fast.slogdet(A)
    if found is not None:
        return SignLog(*found)
    whole = run(determinant.slogdet, (matrices(A, "linalg.slogdet", square=True),), {})
    return SignLog(_part(whole, 0), _part(whole, 1))


@method
def logdet(input: Any) -> Tensor:
    """The logarithm of the determinant: NaN where it is negative, -inf where it is zero.

    >>> import tapegrad as tg
    >>> tg.logdet(tg.eye(2))
    tensor(0.)
    """
    sign, value = slogdet(input)
    if type(sign._a) is AbstractArray:
        return where(lt(sign, 0), float("nan"), value)
    negative = np.asarray(sign._a < 0)
    return where(wrap(negative), float("nan"), value) if negative.any() else value


def cholesky(A: Any, *, upper: bool = False) -> Tensor:
    """The lower triangular L for which ``L @ L.mT`` is A, symmetric and positive definite.

    With ``upper=True`` it is L transposed.  Only the triangle of that side is read; the gradient is
    symmetric.

    >>> import tapegrad as tg
    >>> tg.linalg.cholesky(tg.tensor([[4.0]]))
    tensor([[2.]])
    """
    x = matrices(A, "linalg.cholesky", square=True)
    if not upper:
        return run(factorizations.cholesky, (x,), {})
    return matrix_transpose(run(factorizations.cholesky, (matrix_transpose(x),), {}))


def _part(whole: Tensor, *index: Any) -> Tensor:
    return run(factorizations.part, (whole,), {"index": (..., *index)})


def _recorded(x: Tensor) -> bool:
    return x.requires_grad and current.tape.enabled


def _upper(UPLO: Any, name: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"`{name}`: UPLO is 'L' or 'U', the triangle that is read, got {UPLO!r}")
    return str(UPLO) in "Uu"


def eigh(A: Any, UPLO: str = "L") -> Eigh:
    """Eigenvalues and eigenvectors of a symmetric matrix, of which one triangle is read.

    The gradient is symmetric.  The sign of an eigenvector is arbitrary, and where eigenvalues are
    equal the gradient of their eigenvectors is not defined.

    >>> import tapegrad as tg
    >>> tg.linalg.eigh(tg.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    x, upper = matrices(A, "linalg.eigh", square=True), _upper(UPLO, "linalg.eigh")
    whole = run(factorizations.eigh, (x,), {"upper": upper})
    return Eigh(_part(whole, -1), _part(whole, slice(None, -1)))


def eigvalsh(A: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, in ascending order.

    >>> import tapegrad as tg
    >>> tg.linalg.eigvalsh(tg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    x, upper = matrices(A, "linalg.eigvalsh", square=True), _upper(UPLO, "linalg.eigvalsh")
    return _part(run(factorizations.eigh, (x,), {"upper": upper}), -1)


def qr(A: Any, mode: str = "reduced") -> QR:
    """A matrix with orthonormal columns times an upper triangular one.

    ``mode="r"`` gives R alone (and an empty Q).  ``mode="complete"`` completes Q to a square
    matrix; of more rows than columns that cannot be differentiated.

    >>> import tapegrad as tg
    >>> tg.linalg.qr(tg.tensor([[-2.0, 1.0], [0.0, 1.0]])).R
    tensor([[-2.,  1.],
            [ 0.,  1.]])
    """
    x = matrices(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"`linalg.qr`: mode is 'reduced', 'complete' or 'r', got {mode!r}")
    m, n = x._a.shape[-2:]
    if mode == "r" and _recorded(x):
        raise RuntimeError(
            "`linalg.qr`: mode='r' cannot be differentiated, for Q is needed: use mode='reduced'"
        )
    if mode == "complete" and m > n:
        if _recorded(x):
            raise RuntimeError(
                f"`linalg.qr`: mode='complete' cannot be differentiated for the shape "
                f"{x._a.shape}, which has more rows than columns: use mode='reduced'"
            )
        return QR(*map(wrap, np.linalg.qr(x._a, "complete")))
    # The first m columns of a wide matrix determine Q.
    whole = run(factorizations.qr, (narrow(x, -1, 0, m) if m < n else x,), {})
    q, r = _part(whole, slice(None, m), slice(None)), _part(whole, slice(m, None), slice(None))
    if m < n:
        r = cat([r, matmul(matrix_transpose(q), narrow(x, -1, m, n - m))], dim=-1)
    return QR(wrap(np.zeros(0, x._a.dtype)) if mode == "r" else q, r)


def svd(A: Any, full_matrices: bool = True) -> SVD:
    """The singular value decomposition: A is ``U @ diag(S) @ Vh``.

    As in PyTorch U and Vh are square unless ``full_matrices=False``.  Only the reduced form can be
    differentiated, where they differ: the vectors that complete a basis are arbitrary.

    >>> import tapegrad as tg
    >>> tg.linalg.svd(tg.tensor([[3.0], [4.0]]), full_matrices=False).S
    tensor([5.])
    """
    x = matrices(A, "linalg.svd")
    m, n = x._a.shape[-2:]
    if full_matrices and m != n:
        if _recorded(x):
            raise RuntimeError(
                f"`linalg.svd`: full_matrices=True cannot be differentiated for the shape "
                f"{x._a.shape}, for which the additional vectors are arbitrary: pass "
                "full_matrices=False"
            )
        return SVD(*map(wrap, ops.singular_values(x._a, "svd", full=True)))
    whole = run(factorizations.svd, (x,), {})
    every = slice(None)
    u, v = _part(whole, slice(None, m), every), _part(whole, slice(m + 1, None), every)
    return SVD(u, _part(whole, m, every), matrix_transpose(v))


def svdvals(A: Any) -> Tensor:
    """The singular values, in descending order.

    >>> import tapegrad as tg
    >>> tg.linalg.svdvals(tg.tensor([[3.0], [4.0]]))
    tensor([5.])
    """
    x = matrices(A, "linalg.svdvals")
    return _part(run(factorizations.svd, (x,), {}), x._a.shape[-2], slice(None))


@method
def matrix_power(A: Any, n: Any) -> Tensor:
    """A square matrix multiplied by itself n times; of its inverse if n is negative.

    >>> import tapegrad as tg
    >>> tg.linalg.matrix_power(tg.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    x = matrices(A, "linalg.matrix_power", square=True, floating=False)
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"`linalg.matrix_power`: n is an int, got {type(n).__name__}")
    if n == 0:  # constant, but connected, as in PyTorch
        one = np.broadcast_to(np.eye(x._a.shape[-1], dtype=x._a.dtype), x._a.shape)
        return where(wrap(np.zeros(x._a.shape, bool)), x, one)
    square, left = (inv(x) if n < 0 else x), abs(int(n))
    out: Tensor | None = None
    while True:
        if left & 1:
            out = square if out is None else matmul(out, square)
        left >>= 1
        if not left:
            assert out is not None
            return out
        square = matmul(square, square)


def multi_dot(tensors: Any) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications.

    The first and the last may be vectors: a row and a column.

    >>> import tapegrad as tg
    >>> tg.linalg.multi_dot([tg.ones(2, 3), tg.ones(3, 4), tg.ones(4)])
    tensor([12., 12.])
    """
    parts = [as_input(x, "linalg.multi_dot") for x in tensors]
    if len(parts) < 2:
        raise RuntimeError(f"`linalg.multi_dot` needs at least 2 Tensors, got {len(parts)}")
    for k, x in enumerate(parts):
        ranks = (1, 2) if k in (0, len(parts) - 1) else (2,)
        if x._a.ndim not in ranks:
            raise RuntimeError(
                "`linalg.multi_dot` takes matrices (the first and the last may be vectors), got "
                f"the shape {x._a.shape} at place {k}"
            )
    row, column = parts[0]._a.ndim == 1, parts[-1]._a.ndim == 1
    if row:
        parts[0] = run(unsqueeze, (parts[0],), {"dims": (0,)})
    if column:
        parts[-1] = run(unsqueeze, (parts[-1],), {"dims": (1,)})
    for k in range(len(parts) - 1):
        a, b = parts[k]._a.shape, parts[k + 1]._a.shape
        if a[1] != b[0]:
            raise RuntimeError(
                f"`linalg.multi_dot`: the shapes {a} and {b} at places {k} and {k + 1} cannot be "
                f"multiplied: the inner dimensions {a[1]} and {b[0]} differ"
            )
    out = _chain(parts, _splits([x._a.shape[0] for x in parts] + [parts[-1]._a.shape[1]]))
    out = select(out, 1, 0) if column else out
    return select(out, 0, 0) if row else out


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices, for the fewest multiplications."""
    n = len(sizes) - 1
    cost = {(i, i + 1): 0 for i in range(n)}
    best = {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            cost[i, j], best[i, j] = min(
                (cost[i, k] + cost[k, j] + sizes[i] * sizes[k] * sizes[j], k)
                for k in range(i + 1, j)
            )
    return best


def _chain(parts: list[Tensor], best: dict[tuple[int, int], int]) -> Tensor:
    def product(i: int, j: int) -> Tensor:
        if j - i == 1:
            return parts[i]
        k = best[i, j]
        found: Tensor = matmul(product(i, k), product(k, j))
        return found

    return product(0, len(parts))
