"""Equations in matrices and roots of them: SciPy's solutions, with rules for both directions.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(lambda a: np.trace(tg.scipy.linalg.sqrtm(a)))(4.0 * np.eye(2))
array([[0.25, 0.  ],
       [0.  , 0.25]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.scipy.either import theirs
from tapegrad.transforms.primitives import defjvp, defvjp, primitive


@primitive
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x of ``a x + x b = q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_sylvester
    >>> solve_sylvester(np.eye(1), np.eye(1), 4.0 * np.eye(1))
    array([[2.]])
    """
    return theirs("scipy.linalg", "solve_sylvester")(a, b, q)


def _adjoint(a: Any, b: Any, g: Any) -> Any:
    return solve_sylvester(a.T, b.T, g)


defvjp(
    solve_sylvester,
    lambda x, a, b, q: lambda g: -_adjoint(a, b, g) @ x.T,
    lambda x, a, b, q: lambda g: -x.T @ _adjoint(a, b, g),
    lambda x, a, b, q: lambda g: _adjoint(a, b, g),
)
defjvp(
    solve_sylvester,
    lambda da, x, a, b, q: solve_sylvester(a, b, -da @ x),
    lambda db, x, a, b, q: solve_sylvester(a, b, -x @ db),
    lambda dq, x, a, b, q: solve_sylvester(a, b, dq),
)


@primitive
def sqrtm(A: Any) -> Any:
    """The matrix whose square is `A`.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import sqrtm
    >>> sqrtm(np.array([[4.0]]))
    array([[2.]])
    """
    found = theirs("scipy.linalg", "sqrtm")(A)
    if np.iscomplexobj(found):
        raise NotImplementedError(
            "`sqrtm`: the root of this matrix is complex, and gradients in complex numbers are "
            "not supported"
        )
    return found


defvjp(sqrtm, lambda y, A: lambda g: _adjoint(y, y, g))
defjvp(sqrtm, lambda dA, y, A: solve_sylvester(y, y, dA))


def _rows_and_columns(lower: int, upper: int, size: int) -> tuple[Any, Any, Any]:
    """Of each element of a matrix in banded form its row and its column, and whether it is one."""
    row = np.arange(size) + np.arange(-upper, lower + 1)[:, None]
    column = np.broadcast_to(np.arange(size), row.shape)
    return np.clip(row, 0, size - 1), column, (row >= 0) & (row < size)


def _transposed(l_and_u: Any, ab: Any) -> tuple[tuple[int, int], Any]:
    """A banded matrix's transpose in banded form."""
    lower, upper = l_and_u
    row, column, inside = _rows_and_columns(upper, lower, np.shape(ab)[-1])
    return (upper, lower), ab[upper + column - row, row] * inside


@primitive
def solve_banded(l_and_u: Any, ab: Any, b: Any, **kwargs: Any) -> Any:
    """The solution x of ``a x = b`` with a matrix in banded form.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_banded
    >>> solve_banded((0, 0), np.array([[2.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return theirs("scipy.linalg", "solve_banded")(l_and_u, ab, b, **kwargs)


def _banded_product(l_and_u: Any, v: Any, x: Any) -> Any:
    """The elements of ``v x^T`` that stand in the bands."""
    lower, upper = l_and_u
    row, column, inside = _rows_and_columns(lower, upper, np.shape(x)[0])
    each = v[row] * x[column]
    return (each if np.ndim(x) == 1 else np.sum(each, axis=-1)) * inside


def _banded_matmul(l_and_u: Any, ab: Any, x: Any) -> Any:
    """The product of a matrix in banded form."""
    other, flipped = _transposed(l_and_u, ab)
    row, _, inside = _rows_and_columns(other[0], other[1], np.shape(x)[0])
    flipped = flipped * inside
    return np.sum((flipped if np.ndim(x) == 1 else flipped[:, :, None]) * x[row], axis=0)


defvjp(
    solve_banded,
    lambda x, lu, ab, b: lambda g: -_banded_product(lu, solve_banded(*_transposed(lu, ab), g), x),
    lambda x, lu, ab, b: lambda g: solve_banded(*_transposed(lu, ab), g),
    argnums=(1, 2),
)
defjvp(
    solve_banded,
    lambda dab, x, lu, ab, b: solve_banded(lu, ab, -_banded_matmul(lu, dab, x)),
    lambda db, x, lu, ab, b: solve_banded(lu, ab, db),
    argnums=(1, 2),
)
