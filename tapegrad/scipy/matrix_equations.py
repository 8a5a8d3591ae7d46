"""Equations in matrices and roots of them: SciPy's solutions, with rules for both directions.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(lambda a: np.trace(tg.scipy.linalg.sqrtm(a)))(4.0 * np.eye(2))
array([[0.25, 0.  ],
       [0.  , 0.25]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.dispatch.dispatch import run
from tapegrad.functions.pure_callback import pure_callback
from tapegrad.numpy_face.common import floating, promoted, tensor
from tapegrad.ops.banded import banded_solve
from tapegrad.ops.shape import squeeze, unsqueeze
from tapegrad.ops.sylvester import sylvester
from tapegrad.scipy.either import among, for_tensors, theirs
from tapegrad.transforms.primitives import defjvp, defvjp, primitive


def scipy_call(function: Any, *args: Any) -> Any:
    """What SciPy finds, in the shape of the last argument; compiled programs call it, too."""
    if not among(args):
        return function(*args)
    kind = np.result_type(*args, np.float32)
    return pure_callback(function, np.shape(args[-1]), *args, dtype=kind)


@for_tensors("scipy.linalg")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x of ``a x + x b = q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_sylvester
    >>> solve_sylvester(np.eye(1), np.eye(1), 4.0 * np.eye(1))
    array([[2.]])
    """
    x, y, right = map(floating, promoted(a, b, q))
    shapes = [t._a.shape for t in (x, y, right)]
    if any(len(shape) < 2 for shape in shapes):
        raise ValueError(f"`linalg.solve_sylvester` takes three matrices, got the shapes {shapes}")
    (m, n) = shapes[2][-2:]
    if [shape[-2:] for shape in shapes[:2]] != [(m, m), (n, n)]:
        raise ValueError(
            f"`linalg.solve_sylvester`: beside `q` of shape {shapes[2]}, `a` is a matrix of shape "
            f"{(m, m)} and `b` one of {(n, n)}, got {shapes[0]} and {shapes[1]}"
        )
    return run(sylvester, (x, y, right), {})


@for_tensors("scipy.linalg")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The solution x of ``a x + x a^H = q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_continuous_lyapunov
    >>> solve_continuous_lyapunov(np.eye(1), 4.0 * np.eye(1))
    array([[2.]])
    """
    return solve_sylvester(a, np.conj(np.transpose(a)), q)


@for_tensors("scipy.linalg")
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


defvjp(_root, lambda y, A: lambda g: solve_sylvester(y.T, y.T, g))
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
    below, above = map(int, l_and_u)
    matrix, right = map(floating, promoted(ab, b))
    bands, n = matrix._a.shape[-2:] if matrix._a.ndim > 1 else (0, 0)
    if bands != below + above + 1:
        raise ValueError(
            f"`linalg.solve_banded`: {below} diagonals below and {above} above need as many rows "
            f"of `ab` and one more, got the shape {matrix._a.shape}"
        )
    vector = right._a.ndim == 1
    if n not in (right._a.shape[:1] if vector else right._a.shape[-2:-1]):
        raise ValueError(
            f"`linalg.solve_banded`: `ab` of shape {matrix._a.shape} is a matrix of {n} rows, and "
            f"`b` has the shape {right._a.shape}"
        )
    if vector:
        right = run(unsqueeze, (right,), {"dims": (1,)})
    found = run(banded_solve, (matrix, right), {"below": below, "above": above})
    return run(squeeze, (found,), {"dims": (found._a.ndim - 1,)}) if vector else found


@for_tensors("scipy.linalg")
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
