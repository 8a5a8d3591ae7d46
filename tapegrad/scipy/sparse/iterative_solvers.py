"""Krylov methods for linear systems: SciPy solves, and the adjoint is a system with the adjoint.

>>> import numpy as np, tapegrad as tg
>>> A = np.array([[2.0, 0.0], [0.0, 4.0]])
>>> tg.grad(lambda b: np.sum(tg.scipy.sparse.linalg.cg(A, b)[0]))(np.ones(2))
array([0.5 , 0.25])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.dispatch.dispatch import run
from tapegrad.functions.shapes import reshape
from tapegrad.functions.sparse import alike, is_sparse, parts
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.mapped import varies
from tapegrad.ops.sparse import Pattern, sparse_solve
from tapegrad.scipy.either import among, theirs
from tapegrad.tape.tape import current
from tapegrad.tensor import Tensor, tensor_of
from tapegrad.transforms.custom import stop_gradient
from tapegrad.transforms.reverse import vjp

Operator = Callable[[Any], Any]
ORDERS = 2  # of derivatives in what an operator reads, and more under transforms of transforms
RESTARTS = 3  # of a method that broke down, as it does for many a unit vector
ONCE = ("x0", "callback", "callback_type", "show", "outer_v")  # not of the adjoint system


class Solver:
    """A Krylov method with its arguments, and that of the adjoint system.

    The first answer is what SciPy gives, with its `info`, if it is to be reported.  An answer that
    nobody sees the `info` of is NaN where the method did not converge, with a warning.
    """

    def __init__(self, name: str, how: dict[str, Any], reported: bool = False) -> None:
        self.name, self.how, self.reported = name, how, reported
        self.info = 0

    @property
    def transposed(self) -> Solver:
        """That of the adjoint system, from a start of zeros."""
        how = {key: x for key, x in self.how.items() if key not in ONCE}
        return Solver(self.name, {**how, "M": how["M"].T} if "M" in how else how)

    def __call__(self, matrix: Any, b: Any) -> Any:
        if b.ndim == 2:
            return np.stack([self(matrix, column) for column in b.T], 1)
        method = theirs("scipy.sparse.linalg", self.name)
        if self.reported:
            self.reported = False
            found, self.info = method(matrix, b, **self.how)
            return found.astype(b.dtype, copy=False)
        size = np.linalg.norm(b) or 1.0  # of length 1, as methods take tiny numbers for a breakdown
        found, info = method(matrix, b / size, **self.how)
        for _ in range(RESTARTS if info < 0 else 0):
            found, info = method(matrix, b / size, **{**self.how, "x0": found})
        if info and not self._near(matrix, found, b / size):
            warnings.warn(
                f"`scipy.sparse.linalg.{self.name}`: a system of a derivative, or under a "
                f"transform, did not converge (info {info}), and what depends on it is NaN: raise "
                "`maxiter`, or `rtol`",
                stacklevel=2,
            )
            return np.full_like(b, np.nan)
        return (found * size).astype(b.dtype, copy=False)

    def _near(self, matrix: Any, x: Any, b: Any) -> bool:
        """Whether a method that broke down had its solution, to half of the digits at least."""
        least = max(self.how.get("rtol", 1e-5), float(np.sqrt(np.finfo(b.dtype).eps)))
        left = np.linalg.norm(matrix @ x - b)
        return bool(left <= max(self.how.get("atol", 0.0), least * np.linalg.norm(b)))


class _Whole(Pattern):
    """Where the elements of a matrix with all of its elements stand."""

    __slots__ = ()

    def __init__(self, n: int, solver: Solver) -> None:
        super().__init__(np.tile(np.arange(n), n), np.arange(n + 1) * n, (n, n), solver=solver)

    def solved(self, values: Any, b: Any) -> Any:
        return self.solver(values.reshape(self.shape), b)


class _Operator:
    """A pattern without elements: what the matrix does is known to an operator of SciPy's."""

    def __init__(self, operator: Any, solver: Solver) -> None:
        self.operator, self.solver = operator, solver

    @property
    def transposed(self) -> _Operator:
        return _Operator(self.operator.T, self.solver.transposed)

    def solved(self, values: Any, b: Any) -> Any:
        return self.solver(self.operator, b)


def _checked(shape: Any, b: Tensor, name: str) -> None:
    rows, columns = shape
    if rows != columns or b._a.shape not in ((rows,), (rows, 1)):
        raise ValueError(
            f"`scipy.sparse.linalg.{name}`: a matrix of shape {tuple(shape)} and a right side of "
            f"shape {b._a.shape} do not fit together"
        )


def solve(name: str, A: Any, b: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """The solution by the method of that name, and whether it converged, as SciPy says it."""
    how = {key: x for key, x in how.items() if x is not None}
    function = callable(A) and not is_sparse(A) and not hasattr(A, "matvec")
    if not function and not among((A, b)):
        found: tuple[Any, Any] = theirs("scipy.sparse.linalg", name)(A, b, **how)
        return found
    for key in ("x0", "M"):
        if isinstance(how.get(key), Tensor):  # the solution does not depend on it
            how[key] = how[key].detach().numpy()
    y, solver = tensor_of(b, f"scipy.sparse.linalg.{name}"), Solver(name, how)
    if function:
        return _of_function(A, y, solver), 0
    pattern: Any
    if hasattr(A, "matvec"):
        values, shape = tensor(np.zeros(0, A.dtype)), A.shape
        pattern = _Operator(A, solver)
    elif is_sparse(A):
        values, held = parts(A, f"scipy.sparse.linalg.{name}")
        shape = held.shape
        pattern = Pattern(held.indices, held.indptr, shape, by_column=held.by_column, solver=solver)
    else:
        whole = tensor_of(A, f"scipy.sparse.linalg.{name}")
        shape = whole._a.shape
        _checked(shape if len(shape) == 2 else (*shape, None)[:2], y, name)
        values, pattern = reshape(whole, (-1,)), _Whole(shape[0], solver)
    _checked(shape, y, name)
    solver.reported = not (varies(values) or varies(y))
    x: Tensor = run(sparse_solve, alike(values, reshape(y, (-1,))), {"pattern": pattern})
    return x, solver.info


def _of_function(f: Operator, b: Tensor, solver: Solver) -> Any:
    """The solution of ``f(x) = b`` for a linear function of Tensors, as JAX's solvers take it.

    It is refined by steps that change nothing in its value, and have its derivatives.
    """
    fixed = stop_gradient(b)
    if varies(fixed) or varies(stop_gradient(f(fixed))):
        raise TypeError(
            f"`scipy.sparse.linalg.{solver.name}` of a function is not supported under `vmap` and "
            "`jit`: give the matrix, or `tapegrad.scipy.sparse.csr_array` of its elements"
        )
    shape, kind = fixed._a.shape, alike(fixed, fixed)[0]._a.dtype

    def vector(function: Operator) -> Operator:
        def of(v: np.ndarray) -> Any:
            with no_grad():
                found = function(tensor(v.reshape(shape).astype(kind)))
            return tensor(found)._a.reshape(-1)

        return of

    back = vjp(f, tensor(np.zeros(shape, kind)))[1]  # to a tuple
    size = fixed._a.size
    operator = theirs("scipy.sparse.linalg", "LinearOperator")(
        (size, size), matvec=vector(f), rmatvec=vector(lambda v: back(v)[0]), dtype=kind
    )
    none, pattern = tensor(np.zeros(0, kind)), _Operator(operator, solver)

    def solved(y: Any) -> Any:
        flat = reshape(tensor(y).to(kind), (-1,))
        return reshape(run(sparse_solve, (none, flat), {"pattern": pattern}), shape)

    x = stop_gradient(solved(fixed))
    for _ in range(max(ORDERS, 2 * current.tape.depth)):
        left = b - f(x)
        x = x + solved(left - stop_gradient(left))
    return x


def krylov(name: str, about: str) -> Callable[..., tuple[Any, Any]]:
    """The public function of a method."""

    def solver(A: Any, b: Any, x0: Any = None, **kwargs: Any) -> tuple[Any, Any]:
        return solve(name, A, b, {"x0": x0, **kwargs})

    solver.__name__ = solver.__qualname__ = name
    solver.__doc__ = f"""The solution of ``A x = b`` by {about}, and 0 if it converged.

    `A` is a matrix, a sparse one, a `LinearOperator`, or a linear function of Tensors; it is
    differentiated in the elements, in `b`, and in what the function reads. Derivatives are
    solutions by the same method with the same `rtol`, `atol`, `maxiter` and `M`, and as exact:
    SciPy's `rtol` is 1e-5.

    >>> import tapegrad as tg
    >>> A = tg.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> x, info = tg.scipy.sparse.linalg.{name}(A, tg.tensor([5.0, 4.0]), rtol=1e-10)
    >>> x.sum().backward(); A.grad.numpy().round(4) + 0.0, info
    (array([[-0.1818, -0.1818],
           [-0.2727, -0.2727]]), 0)
    """
    return solver
