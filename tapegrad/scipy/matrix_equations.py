"""Equations in matrices and roots of them: SciPy's solutions, with rules for both directions.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(lambda a: np.trace(tg.scipy.linalg.sqrtm(a)))(4.0 * np.eye(2))
array([[0.25, 0.  ],
       [0.  , 0.25]])
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tapegrad.functions.pure_callback import pure_callback
from tapegrad.numpy_face.common import tensor
from tapegrad.scipy.either import among, for_tensors, theirs
from tapegrad.transforms.primitives import defjvp, defvjp, primitive


def scipy_call(function: Any, *args: Any) -> Any:
    """What SciPy finds, in the shape of the last argument; compiled programs call it, too."""
    if not among(args):
        return function(*args)
    kind = np.result_type(*args, np.float32)
    return pure_callback(function, np.shape(args[-1]), *args, dtype=kind)


@primitive
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x of ``a x + x b = q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_sylvester
    >>> solve_sylvester(np.eye(1), np.eye(1), 4.0 * np.eye(1))
    array([[2.]])
    """
    return scipy_call(theirs("scipy.linalg", "solve_sylvester"), a, b, q)


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


def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution x of ``a x + x a^H = q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_continuous_lyapunov
    >>> solve_continuous_lyapunov(np.eye(1), 4.0 * np.eye(1))
    array([[2.]])
    """
    return solve_sylvester(a, np.conj(np.transpose(a)), q)


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """The solution x of ``a x a^H - x + q = 0``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_discrete_lyapunov
    >>> solve_discrete_lyapunov(0.5 * np.eye(1), 3.0 * np.eye(1))
    array([[4.]])
    """
    n = np.shape(a)[0]
    kind = np.result_type(a, q, np.float32)
    one, adjoint = np.eye(n, dtype=kind), np.conj(np.transpose(a))
    if method is None:
        method = "direct" if n < 10 else "bilinear"
    if method == "direct":
        equations = np.eye(n * n, dtype=kind) - np.kron(a, np.conj(a))
        return np.reshape(np.linalg.solve(equations, np.reshape(q, -1)), (n, n))
    if method != "bilinear":
        raise ValueError(
            f"`solve_discrete_lyapunov`: method is 'direct' or 'bilinear', got {method!r}"
        )
    right = np.linalg.inv(adjoint + one)
    b = np.conj(np.transpose((adjoint - one) @ right))
    return solve_continuous_lyapunov(b, -2 * np.linalg.inv(a + one) @ q @ right)


def _real(found: Any, name: str) -> Any:
    if np.iscomplexobj(found):
        raise NotImplementedError(
            f"`{name}` of this matrix is complex, and gradients in complex numbers are not "
            "supported"
        )
    return found


@for_tensors("scipy.linalg")
def sqrtm(A: Any) -> Any:
    """The matrix whose square is `A`.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import sqrtm
    >>> sqrtm(np.array([[4.0]]))
    array([[2.]])
    """
    return tensor(_root(A))


@primitive
def _root(A: Any) -> Any:
    return _real(scipy_call(theirs("scipy.linalg", "sqrtm"), A), "sqrtm")


defvjp(_root, lambda y, A: lambda g: _adjoint(y, y, g))
defjvp(_root, lambda dA, y, A: solve_sylvester(y, y, dA))


@for_tensors("scipy.linalg")
def logm(A: Any) -> Any:
    """The matrix whose exponential is `A`.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import logm
    >>> logm(np.eye(1))
    array([[0.]])
    """
    return tensor(_logarithm(A))


@primitive
def _logarithm(A: Any) -> Any:
    return _real(scipy_call(_in_double_precision, A), "logm")


def _in_double_precision(A: np.ndarray) -> Any:
    """SciPy's logarithm, of which the imaginary part is rounding only with so many digits.

    It estimates norms along random directions: the user's numbers stay the same.
    """
    state = np.random.get_state()  # noqa: NPY002 - which SciPy draws from
    try:
        found = theirs("scipy.linalg", "logm")(A.astype(np.result_type(A, np.float64)))
        return found if np.iscomplexobj(found) else found.astype(A.dtype)
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _slope(A: Any, E: Any) -> Any:
    """The derivative of the logarithm along `E`, which is a block of that of a larger matrix."""
    n = np.shape(A)[0]
    return _logarithm(np.block([[A, E], [np.zeros((n, n)), A]]))[:n, n:]


defvjp(_logarithm, lambda y, A: lambda g: _slope(A.T, g))
defjvp(_logarithm, lambda dA, y, A: _slope(A, dA))


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


@for_tensors("scipy.linalg")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """The solution x of ``a x = b`` with a matrix in banded form.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_banded
    >>> solve_banded((0, 0), np.array([[2.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return tensor(_banded_solution(l_and_u, ab, b))


@primitive
def _banded_solution(l_and_u: Any, ab: Any, b: Any) -> Any:
    return scipy_call(partial(theirs("scipy.linalg", "solve_banded"), l_and_u), ab, b)


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


def _banded_adjoint(l_and_u: Any, ab: Any, g: Any) -> Any:
    """The solution with the transpose."""
    return _banded_solution(*_transposed(l_and_u, ab), g)


defvjp(
    _banded_solution,
    lambda x, lu, ab, b: lambda g: -_banded_product(lu, _banded_adjoint(lu, ab, g), x),
    lambda x, lu, ab, b: lambda g: _banded_adjoint(lu, ab, g),
    argnums=(1, 2),
)
defjvp(
    _banded_solution,
    lambda dab, x, lu, ab, b: _banded_solution(lu, ab, -_banded_matmul(lu, dab, x)),
    lambda db, x, lu, ab, b: _banded_solution(lu, ab, db),
    argnums=(1, 2),
)


def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """The solution x of ``a x = b`` with a Hermitian matrix, of which `ab` has the bands of a half.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solveh_banded
    >>> solveh_banded(np.array([[2.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    bands = np.shape(ab)[0]
    rows = [ab[k] for k in range(bands)]
    diagonal, *half = rows if lower else rows[::-1]
    other = [_mirrored(row, k, lower) for k, row in enumerate(half, 1)]
    above, below = (other, half) if lower else (half, other)
    return solve_banded((bands - 1, bands - 1), np.stack([*above[::-1], diagonal, *below]), b)


def _mirrored(band: Any, k: int, lower: bool) -> Any:
    """The band as far from the diagonal on its other side."""
    end, band = np.zeros(k), np.conj(band)
    return np.concatenate([end, band[:-k]] if lower else [band[k:], end])
