"""Minima and least squares of SciPy's, whose derivatives are those of roots of a gradient."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from tapegrad.numpy_face.common import tensor
from tapegrad.scipy.either import among, stack_lists, theirs
from tapegrad.scipy.implicit_functions import Equation, Function, numbers
from tapegrad.scipy.root_searches import minimum
from tapegrad.transforms.jacobians import jacobian
from tapegrad.transforms.reverse import grad

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
ANYWHERE = (-np.inf, np.inf)
LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(z) - 1.0),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


def stationary(equation: Equation, cost: Function, free: Any = None, at: Any = None) -> Equation:
    """Where the gradient of a cost is zero; unknowns that are not free stay where they are."""

    def slope(x: Any, *args: Any) -> Any:
        found = grad(lambda x: cost(x, *args))(x)
        return found if free is None else np.where(free, found, x - at)

    return equation.with_function(slope)


def _minimum(
    equation: Equation, cost: Function, x: Any, bounds: Any = None, refined: bool = True
) -> Any:
    """A minimum that was found, as it depends on what the cost reads."""
    if not equation.tensors:
        return x
    fixed = [
        np.isfinite(end) & (np.abs(x - end) <= 1e-8 * np.maximum(1.0, np.abs(end)))
        for end in _ends(bounds)
    ]
    at_end = bool(fixed) and fixed[0] | fixed[1]
    free = (~at_end, x) if np.any(at_end) else ()
    return stationary(equation, cost, *free).root(x, refined=refined)


def _ends(bounds: Any) -> Any:
    """Lower and upper bounds, if there are any."""
    if isinstance(bounds, theirs("scipy.optimize", "Bounds")):
        return bounds.lb, bounds.ub
    ends = () if bounds is None else [np.array(end, float) for end in bounds]  # of None: nan
    return [np.where(np.isnan(end), np.inf, end) for end in ends]


def _refused(name: str, what: Any, words: str) -> None:
    if what:
        raise NotImplementedError(f"`{name}` with Tensors takes no {words}")


def searched(equation: Equation, cost: Function, start: Any, weight: Any = None) -> Any:
    """SciPy's result, of a search that is made of operations.

    With a weight the equation is of residuals, and the search begins as Levenberg's and Marquardt's
    does, which comes from far off; where residuals are large it alone would take long to end.
    """
    x, functions = equation.real(start), equation.with_function(cost).search()
    if weight is not None:
        residual, slope = equation.search(start.shape)

        def products(x: Any) -> Any:
            rows = slope(x)
            return (rows.T * weight(residual(x))) @ rows

        x, _, _ = minimum(*functions, products, x, 30)
    hessian = stationary(equation, cost).search(start.shape)[1]
    x, success, trips = minimum(*functions, hessian, x, 200)
    x = _minimum(equation, cost, np.where(success, x, np.nan))
    return theirs("scipy.optimize", "OptimizeResult")(x=x, success=success, nit=trips)


def minimize(
    fun: Function, x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None,
    callback: Any = None, options: Any = None,
) -> Any:  # fmt: skip
    """The minimum of a function of a vector, in the fields `x` and `fun` of SciPy's result.

    Gradients are exact, unless `jac` is given. Unknowns at their bounds have no derivative.

    >>> import numpy as np, tapegrad as tg
    >>> def nearest(a):
    ...     return tg.scipy.optimize.minimize(lambda x: np.sum((x**2 - a) ** 2), [1.0]).x[0]
    >>> [round(v, 4) for v in tg.value_and_grad(nearest)(4.0)]
    [2.0, 0.25]
    """
    pair = not callable(jac) and jac is True
    cost: Function = (lambda x, *args: fun(x, *args)[0]) if pair else fun
    equation = Equation("minimize", fun, args, stack_lists(x0), pair)
    start = np.atleast_1d(equation.start)
    if not equation.known(start):
        _refused("minimize", bounds is not None, "bounds under `vmap` and `jit`")
        found = searched(equation, cost, start)
    else:
        if jac is None and str(method).lower() not in WITHOUT_GRADIENT:
            jac = equation.derivative(start)
        found = theirs("scipy.optimize", "minimize")(
            equation.plain(fun), numbers(start), (), method, equation.plain(jac),
            equation.plain(hess), equation.plain(hessp), bounds, constraints, tol, callback,
            options,
        )  # fmt: skip
        if equation.tensors:
            _refused("minimize", constraints, "constraints: there are no derivatives under them")
            pairs = isinstance(bounds, (list, tuple, np.ndarray))
            ends = np.transpose(bounds) if pairs else bounds
            found.x = _minimum(equation, cost, found.x, ends, found.success)
    if equation.tensors:
        found.fun = cost(found.x, *equation.args)
    return found


def least_squares(
    fun: Function, x0: Any, jac: Any = "2-point", bounds: Any = ANYWHERE, method: str = "trf", *,
    loss: Any = "linear", f_scale: float = 1.0, args: Any = (), kwargs: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """The vector at which the sum of the squares of some residuals is least; see SciPy's.

    The fields `x`, `fun` and `cost` of the result are differentiated.  Jacobians are exact, unless
    `jac` is given. Unknowns at their bounds have no derivative.

    >>> import numpy as np, tapegrad as tg
    >>> def rate(y):
    ...     residuals = lambda p: np.exp(-p[0] * np.arange(3.0)) - y
    ...     return tg.scipy.optimize.least_squares(residuals, [1.0]).x[0]
    >>> tg.grad(rate)(np.array([1.0, 0.5, 0.25])).round(4)
    array([-0., -1., -1.])
    """
    residual = functools.partial(fun, **kwargs) if kwargs else fun
    rho: Any = LOSSES.get(loss) if isinstance(loss, str) else None

    def cost(x: Any, *args: Any) -> Any:
        return 0.5 * f_scale**2 * np.sum(rho((tensor(residual(x, *args)) / f_scale) ** 2))

    equation = Equation("least_squares", residual, args, stack_lists(x0))
    start = np.atleast_1d(equation.start)
    known = equation.known(start)
    if known:
        if isinstance(jac, str) and jac == "2-point":
            jac = equation.derivative(start, elementwise=False) or jac
        found = theirs("scipy.optimize", "least_squares")(
            equation.plain(residual), numbers(start), equation.plain(jac), bounds, method,
            loss=loss, f_scale=f_scale, **options,
        )  # fmt: skip
    if equation.tensors:
        _refused("least_squares", rho is None, f"loss {loss!r}: there are {', '.join(LOSSES)}")
        if known:
            found.x = _minimum(equation, cost, found.x, bounds, found.success)
        else:
            _refused("least_squares", bounds is not ANYWHERE, "bounds under `vmap` and `jit`")
            slope = grad(lambda z: np.sum(rho(z)))
            weight = lambda r: slope((r / f_scale) ** 2)
            found = searched(equation, cost, start, weight)
        found.fun, found.cost = residual(found.x, *equation.args), cost(found.x, *equation.args)
    return found


def curve_fit(
    f: Function, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None,
    absolute_sigma: bool = False, check_finite: bool | None = None, bounds: Any = ANYWHERE,
    method: str | None = None, jac: Any = None, *, full_output: bool = False,
    nan_policy: str | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """Fit the parameters of ``f(x, *parameters)`` to data; parameters and covariance, as SciPy's.

    Both depend on the data, on `sigma`, and on what `f` reads.  Parameters at their bounds have no
    derivative.

    >>> import numpy as np, tapegrad as tg
    >>> t = np.arange(4.0)
    >>> line = lambda t, slope, offset: slope * t + offset
    >>> tg.grad(lambda y: tg.scipy.optimize.curve_fit(line, t, y)[0][0])(2.0 * t).round(6)
    array([-0.3, -0.1,  0.1,  0.3])
    """
    _refused("curve_fit", among((xdata, ydata)) and nan_policy, "`nan_policy`")

    def residual(p: Any, x: Any, y: Any, sigma: Any) -> Any:
        found = tensor(f(x, *p) - y)
        if sigma is None:
            return found
        if np.ndim(sigma) < 2:
            return found / sigma
        return np.linalg.solve(np.linalg.cholesky(sigma), found)

    def cost(p: Any, *args: Any) -> Any:
        return 0.5 * np.sum(residual(p, *args) ** 2)

    if p0 is None:
        p0 = np.ones(len(inspect.signature(f).parameters) - 1) if bounds is ANYWHERE else None
    data = [
        tensor(v) if among(v) else np.asarray(v, float) if isinstance(v, (list, tuple)) else v
        for v in (xdata, ydata, sigma)
    ]
    equation = Equation("curve_fit", residual, tuple(data), stack_lists(p0))

    def of_parameters(f: Any) -> Any:
        """A function for SciPy, which may have left out some data."""
        model = equation.plain(lambda p, x, at, *_: f(at if among(xdata) else x, *p))
        return functools.wraps(f)(lambda x, *p: model(np.array(p), x)) if callable(f) else f

    start = np.atleast_1d(equation.start)
    if equation.known(start):
        popt, pcov, *more = theirs("scipy.optimize", "curve_fit")(
            of_parameters(f), *numbers(data[:2]), numbers(equation.start), numbers(data[2]),
            absolute_sigma, check_finite, bounds, method, of_parameters(jac),
            full_output=full_output, nan_policy=nan_policy, **kwargs,
        )  # fmt: skip
        if not equation.tensors:
            return popt, pcov, *more
        popt, definite = _minimum(equation, cost, popt, bounds), np.isfinite(pcov).all()
    else:
        _refused("curve_fit", bounds is not ANYWHERE, "bounds under `vmap` and `jit`")
        found = searched(equation, cost, start, np.ones_like)
        popt, definite = found.x, True
        more = [{"nfev": found.nit}, "", found.success][: 3 * full_output]
    if definite:
        slope = jacobian(lambda p: residual(p, *equation.args))(popt)
        pcov = np.linalg.inv(slope.T @ slope)
        if not absolute_sigma:
            pcov = pcov * (2.0 * cost(popt, *equation.args) / (len(slope) - len(popt)))
    return popt, pcov, *more
