"""Functions of matrices that are made of their exponentials, logarithms and square roots.

>>> import numpy as np, tapegrad as tg
>>> tg.grad(lambda a: np.trace(tg.scipy.linalg.sinm(a)))(np.zeros((2, 2)))
array([[1., 0.],
       [0., 1.]])
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from tapegrad.functions.joining import cat
from tapegrad.functions.matrices import matrix_exp, matrix_power
from tapegrad.numpy_face.common import floating, promoted
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.matrix_equations import logm, sqrtm
from tapegrad.tensor import Tensor, tensor_of

_own = for_tensors("scipy.linalg")


def _matrix(A: Any, name: str) -> Tensor:
    return floating(tensor_of(A, f"scipy.linalg.{name}"))


def _on_circle(A: Any, name: str) -> tuple[Any, Any]:
    """The cosine and the sine of a matrix."""
    x = _matrix(A, name)
    ahead = matrix_exp(1j * x)
    if x._a.dtype.kind != "c":
        return ahead.real, ahead.imag
    behind = matrix_exp(-1j * x)
    return (ahead + behind) / 2, (ahead - behind) / 2j


def _on_hyperbola(A: Any, name: str) -> tuple[Any, Any]:
    """The hyperbolic cosine and sine of a matrix."""
    x = _matrix(A, name)
    ahead, behind = matrix_exp(x), matrix_exp(-x)
    return (ahead + behind) / 2, (ahead - behind) / 2


@_own
def cosm(A: Any) -> Any:
    """The cosine of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.cosm(tg.zeros(1, 1))
    tensor([[1.]])
    """
    return _on_circle(A, "cosm")[0]


@_own
def sinm(A: Any) -> Any:
    """The sine of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.sinm(tg.zeros(1, 1))
    tensor([[0.]])
    """
    return _on_circle(A, "sinm")[1]


@_own
def tanm(A: Any) -> Any:
    """The tangent of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.tanm(tg.zeros(1, 1))
    tensor([[0.]])
    """
    return np.linalg.solve(*_on_circle(A, "tanm"))


@_own
def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.coshm(tg.zeros(1, 1))
    tensor([[1.]])
    """
    return _on_hyperbola(A, "coshm")[0]


@_own
def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.sinhm(tg.zeros(1, 1))
    tensor([[0.]])
    """
    return _on_hyperbola(A, "sinhm")[1]


@_own
def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a matrix.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.tanhm(tg.zeros(1, 1))
    tensor([[0.]])
    """
    return np.linalg.solve(*_on_hyperbola(A, "tanhm"))


@_own
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A power of a matrix, which has a derivative in the exponent, too, unless that is an integer.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.fractional_matrix_power(tg.tensor([[4.0]]), 1.5)
    tensor([[8.0000]])
    """
    if isinstance(t, Integral):
        return matrix_power(_matrix(A, "fractional_matrix_power"), int(t))
    return matrix_exp(logm(A) * t)


@_own
def signm(A: Any) -> Any:
    """The matrix with the eigenvectors of `A` and the signs of its eigenvalues.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.signm(tg.tensor([[-4.0]]))
    tensor([[-1.]])
    """
    x = _matrix(A, "signm")
    return np.linalg.solve(sqrtm(x @ x), x)


@_own
def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of a matrix, unless without it, and its derivative along another.

    >>> import tapegrad as tg
    >>> tg.scipy.linalg.expm_frechet(tg.zeros(1, 1), tg.tensor([[3.0]]))
    (tensor([[1.]]), tensor([[3.0000]]))
    """
    x, along = (floating(t) for t in promoted(A, E))
    n = len(x)
    both = matrix_exp(cat([cat([x, along], 1), cat([x.new_zeros(n, n), x], 1)]))
    return (both[:n, :n], both[:n, n:]) if compute_expm else both[:n, n:]
