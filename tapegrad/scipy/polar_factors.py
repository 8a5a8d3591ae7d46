"""The polar decomposition, whose derivative is that of a rotation, and needs no singular values.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(lambda a: tg.scipy.linalg.polar(a)[0][0, 1])(np.eye(2))
array([[ 0. ,  0.5],
       [-0.5,  0. ]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.matrix_equations import scipy_call, solve_sylvester
from tapegrad.transforms.primitives import defjvp, defvjp, primitive


@primitive
def _orthogonal(a: Any) -> Any:
    """The nearest matrix with orthonormal columns."""

    def factor(a: np.ndarray) -> Any:
        return theirs("scipy.linalg", "polar")(a)[0]

    return scipy_call(factor, a)


def _twist(p: Any, half: Any) -> Any:
    """The antisymmetric z of ``p z + z p = half - half^T``."""
    return solve_sylvester(p, p, half - half.T)


def _off_the_columns(u: Any, p: Any, g: Any) -> Any:
    """What is not in the span of the columns, over the symmetric factor."""
    rest = g - u @ (u.T @ g)
    return np.linalg.solve(p.T, rest.T).T


defvjp(
    _orthogonal,
    lambda u, a: lambda g: u @ _twist(u.T @ a, u.T @ g) + _off_the_columns(u, u.T @ a, g),
)
defjvp(
    _orthogonal, lambda da, u, a: u @ _twist(u.T @ a, u.T @ da) + _off_the_columns(u, u.T @ a, da)
)


@for_tensors("scipy.linalg")
def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """Factors of a matrix: one with orthonormal columns (or rows), and one that is symmetric.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import polar
    >>> u, p = polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> p
    array([[3., 0.],
           [0., 2.]])
    """
    if side not in ("right", "left"):
        raise ValueError(f"`scipy.linalg.polar`: side is 'right' or 'left', got {side!r}")
    if np.iscomplexobj(a):
        raise NotImplementedError("`scipy.linalg.polar` of Tensors takes real matrices")
    rows, columns = np.shape(a)
    u = _orthogonal(a) if rows >= columns else _orthogonal(a.T).T
    return u, (u.T @ a if side == "right" else a @ u.T)
