"""Linear least squares with bounds, differentiated with the unknowns at a bound held there.

SciPy finds out which these are; of the others the solution is that of a least squares problem
without bounds, which has the derivatives.

>>> import numpy as np, tapegrad as tg
>>> A = np.array([[1.0, 1.0], [0.0, 1.0]])
>>> tg.jacobian(lambda b: tg.scipy.optimize.nnls(A, b)[0])(np.array([2.0, -1.0])).round(9) + 0.0
array([[1., 0.],
       [0., 0.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.pure_callback import pure_callback
from tapegrad.numpy_face.common import floating, promoted, tensor
from tapegrad.numpy_face.mapped import varies
from tapegrad.scipy.either import for_tensors, stack_lists, theirs
from tapegrad.tensor import Tensor
from tapegrad.transforms.custom import stop_gradient


def _problem(name: str, A: Any, b: Any) -> tuple[Tensor, Tensor]:
    matrix, right = map(floating, promoted(A, b))
    shapes = matrix._a.shape, right._a.shape
    if [len(shape) for shape in shapes] != [2, 1] or shapes[0][0] != shapes[1][0]:
        raise ValueError(
            f"`scipy.optimize.{name}` takes a matrix and a vector of as many rows, got the shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    return matrix, right


def _free_solution(matrix: Tensor, right: Tensor, free: Any) -> Any:
    """The solution in the unknowns that are free, and zeros for the others.

    An equation more for each unknown keeps the rank that the free columns have.
    """
    share = free.to(matrix.dtype)
    whole = np.concatenate([matrix * share, np.diag(1.0 - share)])
    zeros = np.zeros(matrix._a.shape[1], matrix._a.dtype)
    found = np.linalg.lstsq(whole, np.concatenate([right, zeros]), rcond=None)[0]
    return np.where(free, found, 0.0)


@for_tensors("scipy.optimize")
def nnls(A: Any, b: Any, *, maxiter: int | None = None) -> tuple[Any, Any]:
    """The vector without negative elements at which ``|A x - b|`` is least, and that norm.

    It is differentiated with the elements that are zero held there.

    >>> import tapegrad as tg
    >>> b = tg.tensor([2.0, -1.0], requires_grad=True)
    >>> x, norm = tg.scipy.optimize.nnls([[1.0, 1.0], [0.0, 1.0]], b)
    >>> norm.backward(); b.grad
    tensor([ 0., -1.])
    """
    matrix, right = _problem("nnls", A, b)
    solve = theirs("scipy.optimize", "nnls")

    def positive(A: np.ndarray, b: np.ndarray) -> Any:
        return solve(A, b, maxiter=maxiter)[0] > 0

    free = pure_callback(positive, matrix._a.shape[1:], *stop_gradient((matrix, right)), dtype=bool)
    x = _free_solution(matrix, right, free)
    return x, np.linalg.norm(matrix @ x - right)


@for_tensors("scipy.optimize", "bounds")
def lsq_linear(
    A: Any, b: Any, bounds: Any = (-np.inf, np.inf), method: str = "trf", tol: float = 1e-10,
    **options: Any,
) -> Any:  # fmt: skip
    """The vector within bounds at which the squares of ``A x - b`` have the least sum; see SciPy's.

    The fields `x`, `fun` and `cost` of the result are differentiated, also in the bounds.  Where
    values are not known, under `vmap` and `jit`, there are no others but `active_mask`.

    >>> import numpy as np, tapegrad as tg
    >>> def nearest(b, high):
    ...     return tg.scipy.optimize.lsq_linear(np.eye(2), b, (0.0, high)).x
    >>> tg.jacobian(nearest, (0, 1))(np.array([0.5, 3.0]), 1.0)[0].round(9)
    array([[1., 0.],
           [0., 0.]])
    """
    matrix, right = _problem("lsq_linear", A, b)
    n = matrix._a.shape[1]
    pair = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    low, high = (tensor(stack_lists(end)).to(matrix.dtype).expand(n) for end in pair)
    solve = theirs("scipy.optimize", "lsq_linear")

    def result(A: Any, b: Any, *ends: Any) -> Any:
        return solve(A, b, ends, method, tol, **options)

    def active(*args: Any) -> Any:
        return result(*args).active_mask.astype(int)  # some are floats

    given = stop_gradient((matrix, right, low, high))
    if varies(given):
        found = theirs("scipy.optimize", "OptimizeResult")()
        sides = pure_callback(active, (n,), *given, dtype=int)
    else:
        found = result(*[t.numpy() for t in given])
        sides = tensor(found.active_mask)
    fixed = np.where(sides == 0, 0.0, np.where(sides < 0, low, high))
    found.x = fixed + _free_solution(matrix, right - matrix @ fixed, sides == 0)
    found.fun, found.active_mask = matrix @ found.x - right, sides
    found.cost = 0.5 * np.sum(found.fun**2)
    return found
