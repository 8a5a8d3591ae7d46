"""Inverses, solutions and Cholesky factors with a code that says where there is none.

Where there is none the code is positive and the result has no meaning; nothing is raised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.factorizations import cholesky
from tapegrad.functions.matrices import inv, known, matrices, solve
from tapegrad.functions.shapes import matrix_transpose, squeeze, unsqueeze
from tapegrad.ops import unchecked as ops
from tapegrad.ops.solve import LinAlgError
from tapegrad.tensor import Tensor, wrap


class InvEx(NamedTuple):
    """An inverse, and for each matrix the place of its first zero pivot (0: there is none)."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """A solution, and for each matrix the place of its first zero pivot (0: there is none)."""

    result: Tensor
    info: Tensor


class CholeskyEx(NamedTuple):
    """A factor, and for each matrix the order of the first leading minor that is not positive."""

    L: Tensor
    info: Tensor


def _fine(x: Tensor) -> Tensor:
    return wrap(np.zeros(x._a.shape[:-2], np.int32))


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """`linalg.inv` that tells of a singular matrix by `info`.

    >>> import tapegrad as tg
    >>> tg.linalg.inv_ex(tg.zeros(2, 2)).info
    tensor(1, dtype=tapegrad.int32)
    """
    x = matrices(A, "linalg.inv_ex", square=True)
    if known(x) or check_errors:
        try:
            return InvEx(inv(x), _fine(x))
        except LinAlgError:
            if check_errors:
                raise
    return InvEx(run(ops.inv_ex, (x,), {}), run(ops.pivot_code, (x.detach(),), {}))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`linalg.solve` that tells of a singular matrix by `info`.

    >>> import tapegrad as tg
    >>> tg.linalg.solve_ex(tg.zeros(2, 2), tg.ones(2)).info
    tensor(1, dtype=tapegrad.int32)
    """
    x = matrices(A, "linalg.solve_ex", square=True)
    if known(x) or check_errors:
        try:
            return SolveEx(solve(x, B, left=left), _fine(x))
        except LinAlgError:
            if check_errors:
                raise
    shape = B._a.shape
    vector = len(shape) == 1 or (len(shape) == x._a.ndim - 1 and shape == x._a.shape[:-1])
    y = unsqueeze(B, -1) if vector else B
    if left:
        found = run(ops.solve_ex, (x, y), {})
    else:
        turned = (matrix_transpose(x), matrix_transpose(y))
        found = matrix_transpose(run(ops.solve_ex, turned, {}))
    code = run(ops.pivot_code, (x.detach(),), {})
    return SolveEx(squeeze(found, -1) if vector else found, code)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`linalg.cholesky` that tells of a matrix that is not positive definite by `info`.

    >>> import tapegrad as tg
    >>> tg.linalg.cholesky_ex(-tg.eye(2)).info
    tensor(1, dtype=tapegrad.int32)
    """
    x = matrices(A, "linalg.cholesky_ex", square=True)
    if known(x) or check_errors:
        try:
            return CholeskyEx(cholesky(x, upper=upper), _fine(x))
        except LinAlgError:
            if check_errors:
                raise
    lower = matrix_transpose(x) if upper else x
    found = run(ops.cholesky_ex, (lower,), {})
    code = run(ops.cholesky_code, (lower.detach(),), {})
    return CholeskyEx(matrix_transpose(found) if upper else found, code)
