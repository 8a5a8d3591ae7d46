"""Least squares, the condition and the rank of matrices, and equations of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.arguments import as_input, one_dim
from tapegrad.functions.arithmetic import where
from tapegrad.functions.complex_parts import real
from tapegrad.functions.elementwise import abs as abs_
from tapegrad.functions.elementwise import gt, maximum, mul, ne, square
from tapegrad.functions.factorizations import eigvalsh, svdvals
from tapegrad.functions.matrices import inv, known, matrices, part, solve
from tapegrad.functions.norms import matrix_norm
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import amax
from tapegrad.functions.reductions import sum as sum_
from tapegrad.functions.shapes import movedim, narrow, reshape, select, squeeze, to, unsqueeze
from tapegrad.functions.unchecked_solves import inv_ex
from tapegrad.ops.factorizations import part as _part
from tapegrad.ops.least_squares import WITH_VALUES
from tapegrad.ops.least_squares import lstsq as _lstsq
from tapegrad.tensor import Tensor, wrap

DRIVERS = ("gelsy", "gels", "gelsd", "gelss")
inf = float("inf")


class LeastSquares(NamedTuple):
    """What solves a system best; the squares that are left; the rank; the singular values."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """The X for which the squares of ``A @ X - B`` have the smallest sum, the smallest such X.

    `driver` is LAPACK's: "gelsy" (the default), "gelsd" and "gelss" find the rank, counting as zero
    what is at most `rcond` (by default the rounding error times the larger side) times the largest;
    "gels" is quicker and takes the rank for full.  The residuals are there for more rows than
    columns of full rank, and of no "gelsy"; the rank not of "gels", the singular values of "gelsd"
    and "gelss".  The derivative is that at constant rank.

    >>> import tapegrad as tg
    >>> a = tg.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> tg.linalg.lstsq(a, tg.tensor([[1.0], [3.0], [5.0]])).solution.round()
    tensor([[1.],
            [2.]])
    """
    name = "linalg.lstsq"
    x, y = matrices(A, name), as_input(B, name)
    if x._a.dtype != y._a.dtype:
        raise RuntimeError(
            f"`{name}`: expected A and B of one dtype, got {x.dtype} and {y.dtype}: convert one "
            "with `.to`"
        )
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(f"`{name}`: driver is one of {', '.join(DRIVERS)}, got {driver!r}")
    kind = driver or "gelsy"
    vector = y._a.ndim == x._a.ndim - 1
    right = unsqueeze(y, -1) if vector else y
    _check_fit(x, y, right)
    m, n, k = *x._a.shape[-2:], right._a.shape[-1]
    least = float(np.finfo(x._a.dtype).eps) * max(m, n) if rcond is None else float(rcond)
    whole = run(_lstsq, (x, right), {"rcond": least, "driver": kind})
    found = part(whole, slice(0, n), slice(0, k))
    # There are as many numbers as matrices A: B may be a larger batch.
    own = [slice(0, size) for size in x._a.shape[:-2]]
    numbers = run(_part, (whole.detach(),), {"index": (*own, slice(n, None), 0)})
    nothing = wrap(np.zeros(0, x._a.real.dtype))
    if numbers._a.dtype.kind == "c":
        numbers = real(numbers)
    rank = to(select(numbers, -1, 0), np.dtype(np.int64))
    left = nothing
    full = not known(rank) or bool((rank._a == min(m, n)).all())
    if m > n and full and kind != "gelsy":
        left = sum_(square(abs_(right - matmul(x, found))), -2)
    return LeastSquares(
        squeeze(found, -1) if vector else found,
        left,
        rank if kind != "gels" else wrap(np.zeros(0, np.int64)),
        narrow(numbers, -1, 1, min(m, n)) if kind in WITH_VALUES else nothing,
    )


def _check_fit(x: Tensor, y: Tensor, right: Tensor) -> None:
    a, b = x._a.shape, right._a.shape
    fits = len(a) == len(b) and a[-2] == b[-2]
    for m, n in zip(a[:-2], b[:-2], strict=False):
        fits = fits and (m == n or 1 in (m, n))
    if not fits:
        raise RuntimeError(
            f"`linalg.lstsq`: the shapes {a} of A and {y._a.shape} of B do not fit: B has as many "
            f"dimensions and {a[-2]} rows, or one dimension less if it is vectors of that length"
        )


def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above ``max(atol, rtol * the largest)``.

    The tolerances are numbers or Tensors of them; `rtol` is by default the rounding error times the
    larger side where `atol` is not given or zero; `tol` is `atol` with ``rtol=0``.  With
    ``hermitian=True`` the absolute eigenvalues of a triangle count.

    >>> import tapegrad as tg
    >>> tg.linalg.matrix_rank(tg.ones(3, 3))
    tensor(1)
    """
    x = matrices(A, "linalg.matrix_rank", square=hermitian).detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    sizes = abs_(eigvalsh(x)) if hermitian else svdvals(x)
    if not sizes._a.shape[-1]:
        return wrap(np.zeros(x._a.shape[:-2], np.int64))
    unit = float(max(x._a.shape[-2:]) * np.finfo(x._a.dtype).eps)
    least = 0.0 if atol is None else _threshold(atol)
    if rtol is None:
        given = isinstance(least, Tensor)
        rtol = where(gt(least, 0.0), 0.0, unit) if given else 0.0 if least > 0.0 else unit
    else:
        rtol = _threshold(rtol)
    bound = mul(amax(sizes, -1, keepdim=True), rtol)
    bound = maximum(bound, least) if isinstance(least, Tensor) else bound.clamp(min=least)
    return sum_(gt(sizes, bound), -1)


def _threshold(x: Any) -> Any:
    """A number, or numbers as a column beside singular values."""
    return unsqueeze(x.detach(), -1) if isinstance(x, Tensor) else float(x)


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: the norm of A times that of its inverse, inf for a singular matrix.

    `p` is the norm, as in `linalg.matrix_norm`; for None, 2 and -2 it is the quotient of the
    extreme singular values, and A need not be square.

    >>> import tapegrad as tg
    >>> tg.linalg.cond(tg.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    name = "linalg.cond"
    x = matrices(A, name)
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf):
        raise RuntimeError(
            f"`{name}`: p is None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {p!r}"
        )
    if not x._a.size:
        return wrap(np.zeros(x._a.shape[:-2], x._a.real.dtype))
    if p in (None, 2, -2):
        sizes = svdvals(x)
        first, last = select(sizes, -1, 0), select(sizes, -1, -1)
        return last / first if p == -2 else first / last
    if x._a.shape[-1] != x._a.shape[-2]:
        raise RuntimeError(
            f"`{name}`: for p={p!r} it takes square matrices, got the shape {x._a.shape}"
        )
    found = inv_ex(x)
    inverse, singular = found.inverse, ne(found.info, 0)
    if known(x) and not singular._a.any():
        return mul(matrix_norm(x, p), matrix_norm(inverse, p))
    inverse = where(unsqueeze(unsqueeze(singular, -1), -1), 0.0, inverse)
    size, other = matrix_norm(x, p), matrix_norm(inverse, p)
    if p == "nuc":
        return mul(size, where(singular, inf, other))
    return where(singular, inf, mul(size, other))


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a matrix whose rows are `ind` dimensions, and whose columns are the others.

    >>> import tapegrad as tg
    >>> tg.linalg.tensorinv(tg.eye(4).reshape(2, 2, 4)).shape
    tapegrad.Size([4, 2, 2])
    """
    name = "linalg.tensorinv"
    x = as_input(A, name)
    if ind <= 0:
        raise RuntimeError(f"`{name}`: ind is a positive number of dimensions, got {ind}")
    first, last = x._a.shape[:ind], x._a.shape[ind:]
    if prod(first) != prod(last):
        raise RuntimeError(
            f"`{name}`: as many elements before the dimension {ind} as from it on are needed, got "
            f"the shape {x._a.shape}: {prod(first)} and {prod(last)}"
        )
    return reshape(inv(reshape(x, (prod(first), prod(last)))), (*last, *first))


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X for which ``tensordot(A, X, dims=X.ndim)`` is B.

    The dimensions `dims` of A are moved to its end first.

    >>> import tapegrad as tg
    >>> tg.linalg.tensorsolve(tg.eye(4).reshape(2, 2, 4), tg.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    name = "linalg.tensorsolve"
    x, y = as_input(A, name), as_input(B, name)
    if dims is not None:
        moved = [one_dim(d, x._a.ndim, name) for d in dims]
        x = movedim(x, moved, list(range(x._a.ndim - len(moved), x._a.ndim)))
    first, last = x._a.shape[: y._a.ndim], x._a.shape[y._a.ndim :]
    if prod(first) != prod(last) or prod(first) != y._a.size:
        raise RuntimeError(
            f"`{name}`: as many equations as unknowns are needed, got the shapes {x._a.shape} of A "
            f"and {y._a.shape} of B"
        )
    matrix = reshape(x, (prod(first), prod(last)))
    return reshape(solve(matrix, reshape(y, (prod(first),))), last)
