"""Inverses, systems of equations, determinants, powers and exponentials of matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.dispatch import resolve, run
from tapegrad.dispatch.one_operand import run_one
from tapegrad.functions import solve_fast
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.complex_parts import adjoint, real
from tapegrad.functions.elementwise import log, lt
from tapegrad.functions.factor_fast import Index, decomposed
from tapegrad.functions.method_decorators import method
from tapegrad.functions.products import matmul
from tapegrad.functions.shapes import matrix_transpose
from tapegrad.ops import determinant, factorizations
from tapegrad.ops import solve as ops
from tapegrad.ops.large import COMPILED
from tapegrad.ops.lu_factors import kept
from tapegrad.ops.shape import squeeze, unsqueeze
from tapegrad.tape.record_format import DTYPE_BITS
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, wrap


class SignLog(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def matrices(
    x: Any, name: str, square: bool = False, floating: bool = True, real: bool = False
) -> Tensor:
    """An operand that is a matrix or a batch of them; `real`: complex numbers are refused."""
    t = as_input(x, name)
    a = t._a
    if floating and (a.dtype not in DTYPE_BITS or (a.dtype.kind == "c" and real)):
        more = "" if real else ", or of a complex type"
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


def known(x: Tensor) -> bool:
    """Whether its values are there: not under a transform, and not traced."""
    return type(x) is Tensor and type(x._a) is not AbstractArray


def with_factors(x: Tensor, *others: Tensor) -> dict[str, Any]:
    """The parameters of an operation for whose adjoint the factors of a large x are kept."""
    if not all(map(known, (x, *others))):
        return {}
    tape = current.tape
    if x._home is not None and x._home is not tape and not resolve(x, tape):
        return {}
    factors = ops.factors_of(x._a, COMPILED)
    if factors is not None and x._pos:
        tape.add_debt(factors.nbytes)
    return kept(factors)


def same_dtype(a: Any, b: Any, name: str) -> tuple[Tensor, Tensor]:
    """A square matrix and what is solved for with it, of one type."""
    x, y = matrices(a, name, square=True), as_input(b, name)
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(
            f"`{name}`: expected A and B of one dtype, got {x.dtype} and {y.dtype}: convert one "
            "with `.to`"
        )
    return x, y


def check_system(x: Tensor, y: Tensor, left: bool, name: str) -> None:
    """The shapes of ``A X = B``, or of ``X A = B``."""
    n, k = x._a.shape[-1], y._a.shape[-2 if left else -1]
    if n != k:
        raise RuntimeError(
            f"`{name}`: the shapes {x._a.shape} of A and {y._a.shape} of B do not fit for "
            f"{'A X' if left else 'X A'} = B: B needs {n} {'rows' if left else 'columns'}, got {k}"
        )
    if x._a.ndim == 2 or y._a.ndim == 2:
        return
    try:
        np.broadcast_shapes(x._a.shape[:-2], y._a.shape[:-2])
    except ValueError:
        raise RuntimeError(
            f"`{name}`: the batch dimensions of {x._a.shape} and {y._a.shape} do not broadcast"
        ) from None


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
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
    x, y = same_dtype(A, B, "linalg.solve")
    shape = y._a.shape
    vector = len(shape) == 1 or (len(shape) == x._a.ndim - 1 and shape == x._a.shape[:-1])
    if not shape:
        raise RuntimeError("`linalg.solve`: B needs at least one dimension, got a number")
    if vector:
        y = run(unsqueeze, (y,), {"dims": (len(shape),)})
    check_system(x, y, left, "linalg.solve")
    if not left:
        x, y = matrix_transpose(x), matrix_transpose(y)
    found = run(ops.solve, (x, y), with_factors(x, y))
    if not left:
        return matrix_transpose(found)
    return run(squeeze, (found,), {"dims": (found._a.ndim - 1,)}) if vector else found


def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
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
    x, y = same_dtype(A, B, name)
    y = matrices(y, name)
    check_system(x, y, left, name)
    if left:
        return triangular(x, y, upper, unitriangular)
    found = triangular(matrix_transpose(x), matrix_transpose(y), not upper, unitriangular)
    return matrix_transpose(found)


def triangular(x: Tensor, y: Tensor, upper: bool, unit: bool) -> Tensor:
    """`solve_triangular` of operands that fit."""
    params = {"upper": bool(upper), "unit": bool(unit), "strong": False}
    return run(ops.solve_triangular, (x, y), params)


@method
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """The X for which ``L @ L.mH @ X`` is B, where L is a factor from `linalg.cholesky`.

    >>> import tapegrad as tg
    >>> tg.cholesky_solve(tg.tensor([[4.0]]), tg.tensor([[2.0]]))
    tensor([[1.]])
    """
    y, x = matrices(B, "cholesky_solve"), matrices(L, "cholesky_solve", square=True)
    x, y = same_dtype(x, y, "cholesky_solve")
    check_system(x, y, True, "cholesky_solve")
    half = triangular(adjoint(x) if upper else x, y, False, False)
    return triangular(x if upper else adjoint(x), half, True, False)


def inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix.

    >>> import tapegrad as tg
    >>> tg.linalg.inv(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return run_one(ops.inv, matrices(A, "linalg.inv", square=True), {})


@method
def inverse(input: Tensor) -> Tensor:
    """The inverse of a square matrix: `linalg.inv`.

    >>> import tapegrad as tg
    >>> tg.inverse(tg.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(input)


def pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of Moore and Penrose.

    Singular values up to ``max(atol, rtol * the largest)`` count as zero; `rtol` is the larger side
    times the rounding error if there is no `atol` either.  For a batch both may be Tensors of
    numbers.  The derivative is that at constant rank.  `hermitian` says that the matrix is
    symmetric; of it the lower triangle is read.

    >>> import tapegrad as tg
    >>> tg.linalg.pinv(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    x = matrices(A, "linalg.pinv", square=hermitian)
    least, part_of = tolerances(x, atol, rtol, "linalg.pinv")
    return run_one(ops.pinv, x, {"atol": least, "rtol": part_of, "hermitian": hermitian})


def tolerances(x: Tensor, atol: Any, rtol: Any, name: str) -> tuple[Any, Any]:
    """What counts as zero, absolutely and relatively: numbers, or (of a batch) tuples of them.

    PyTorch's default of `rtol` serves wherever `atol` is not given or zero.
    """
    least = _numbers(0.0 if atol is None else atol, name)
    if rtol is not None:
        return least, _numbers(rtol, name)
    unit = float(max(x._a.shape[-2:]) * np.finfo(x._a.dtype).eps)
    return least, _as_numbers(np.where(np.asarray(least) > 0, 0.0, unit))


def _numbers(x: Any, name: str) -> Any:
    if isinstance(x, Tensor):
        if not known(x):
            raise RuntimeError(
                f"`{name}`: under a transform or `jit` a tolerance is a number, or a Tensor from "
                "outside"
            )
        return _as_numbers(x._a)
    return float(x)


def _as_numbers(x: np.ndarray) -> Any:
    return float(x) if not x.ndim else tuple(_as_numbers(part) for part in x)


@method
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse: `linalg.pinv` with ``rtol=rcond``.

    >>> import tapegrad as tg
    >>> tg.pinverse(tg.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv(input, rtol=rcond)


@method
def matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix.

    >>> import tapegrad as tg
    >>> tg.linalg.matrix_exp(tg.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return run(ops.matrix_exp, (matrices(A, "linalg.matrix_exp", square=True),), {})


@method
def det(A: Tensor) -> Tensor:
    """The determinant of a square matrix; it can be differentiated at singular ones too.

    >>> import tapegrad as tg
    >>> tg.linalg.det(tg.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    x = matrices(A, "linalg.det", square=True)
    params = with_factors(x)
    return run(determinant.det, (x,), params) if params else run_one(determinant.det, x, params)


@method
def slogdet(A: Tensor) -> SignLog:
    """The sign of the determinant and the logarithm of its absolute value.

    >>> import tapegrad as tg
    >>> tg.linalg.slogdet(tg.tensor([[-1.0]]))
    SignLog(sign=tensor(-1.), logabsdet=tensor(0.))
    """
    x = matrices(A, "linalg.slogdet", square=True)
    if params := with_factors(x):
        whole = run(determinant.slogdet, (x,), params)
        sign, size = part(whole, 0), part(whole, 1)
    else:
        sign, size = decomposed(determinant.slogdet, x, {}, _sign_and_size)
    return SignLog(sign, without_imaginary(size))


def _sign_and_size(rows: int) -> tuple[Index, ...]:
    return (..., 0), (..., 1)


@method
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where it is negative, -inf where it is zero.

    >>> import tapegrad as tg
    >>> tg.logdet(tg.eye(2))
    tensor(0.)
    """
    sign, value = slogdet(input)
    if sign._a.dtype.kind == "c":
        return log(sign) + value
    if type(sign._a) is AbstractArray:
        return where(lt(sign, 0), float("nan"), value)
    negative = np.asarray(sign._a < 0)
    return where(wrap(negative), float("nan"), value) if negative.any() else value


def part(whole: Tensor, *index: Any) -> Tensor:
    """One result of a row that has several."""
    return run(factorizations.part, (whole,), {"index": (..., *index)})


def without_imaginary(x: Tensor) -> Tensor:
    """Real numbers, of complex ones whose imaginary parts are zero."""
    return real(x) if x._a.dtype.kind == "c" else x


@method
def matrix_power(A: Tensor, n: int) -> Tensor:
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
