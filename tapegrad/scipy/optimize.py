"""Roots and minima of `scipy.optimize`, differentiated by the implicit function theorem.

They depend on all that the function reads: `args`, and Tensors from around it.  SciPy searches,
where there are numbers.  Under `vmap` and `jit` operations do, whatever method is named: between
two ends Chandrupatla's method, else Newton's, damped.  What they do not find is NaN, not an error.
Searches are in double precision.  The function is given Tensors, if there are any.

>>> import numpy as np, tapegrad as tg
>>> def root(a):
...     return tg.scipy.optimize.brentq(lambda x: x**2 - a, 0.0, 3.0)
>>> round(root(2.0), 6), round(tg.grad(root)(2.0), 6), round(tg.jit(tg.grad(tg.grad(root)))(2.0), 6)
(1.414214, 0.353553, -0.088388)
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import numpy as _np

from tapegrad.functions.elementwise import isnan as _isnan
from tapegrad.scipy.bounded_least_squares import lsq_linear, nnls
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.implicit_functions import Equation as _Equation
from tapegrad.scipy.implicit_functions import numbers as _numbers
from tapegrad.scipy.implicit_minima import curve_fit, least_squares, minimize
from tapegrad.scipy.root_searches import bracketed_root as _bracketed_root
from tapegrad.scipy.root_searches import newton_root as _newton_root
from tapegrad.scipy.scalar_minima import minimize_scalar

__all__ = [
    "bisect", "brenth", "brentq", "curve_fit", "fixed_point", "fsolve", "least_squares",
    "lsq_linear", "minimize", "minimize_scalar", "newton", "nnls", "ridder", "root", "root_scalar",
    "toms748",
]  # fmt: skip

_Function = _Callable[..., _Any]
_XTOL, _RTOL = 2e-12, 4 * float(_np.finfo(float).eps)


def root_scalar(
    f: _Function, args: _Any = (), method: str | None = None, bracket: _Any = None,
    fprime: _Any = None, fprime2: _Any = None, x0: _Any = None, x1: _Any = None,
    xtol: float | None = None, rtol: float | None = None, maxiter: int | None = None,
    options: dict[str, _Any] | None = None,
) -> _Any:  # fmt: skip
    """A root of a function of one number, between two ends or near a point; see SciPy's.

    Newton's method takes the exact derivative, unless `fprime` is given.

    >>> import numpy as np, tapegrad as tg
    >>> kepler = lambda x, m, e: x - e * np.sin(x) - m
    >>> anomaly = lambda m, e: tg.scipy.optimize.root_scalar(kepler, (m, e), x0=m).root
    >>> [round(slope, 4) for slope in tg.grad(anomaly, (0, 1))(1.0, 0.5)]
    [1.0374, 1.0347]
    """
    pair = any(not callable(d) and bool(d) for d in (fprime, fprime2))
    equation = _Equation("root_scalar", f, args, (bracket, x0, x1), pair)
    ends, first, second = equation.start
    if not equation.known(first if ends is None else ends[0]):
        how = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, **(options or {})}
        how = {name: value for name, value in how.items() if value is not None}
        if ends is not None:
            return _bracketed(equation, "root_scalar", *ends[:2], **how)
        return _near(equation, "root_scalar", first, **how)
    if fprime is None and bracket is None and x1 is None and method in (None, "newton"):
        fprime = equation.derivative(first)
    result = _theirs("scipy.optimize", "root_scalar")(
        equation.plain(f), (), method, _numbers(ends), equation.plain(fprime),
        equation.plain(fprime2), _numbers(first), _numbers(second), xtol, rtol, maxiter, options,
    )  # fmt: skip
    result.root = equation.root(result.root)
    return result


def _result(equation: _Equation, method: str, x: _Any, trips: _Any) -> _Any:
    """SciPy's, of a search that is made of operations."""
    found = _theirs("scipy.optimize", "RootResults")(
        equation.root(x, elementwise=True), trips, trips, "", method
    )
    found.converged = ~_isnan(x)
    return found


def _bracketed(
    equation: _Equation, method: str, a: _Any, b: _Any, xtol: float = _XTOL, rtol: float = _RTOL,
    maxiter: int = 100, **_: _Any,
) -> _Any:  # fmt: skip
    a, b, value = equation.real(a), equation.real(b), equation.search()[0]
    found = _bracketed_root(value, a, b, xtol, rtol, maxiter)
    return _result(equation, method, *found)


def _near(
    equation: _Equation, method: str, x0: _Any, xtol: float = 1.48e-8, maxiter: int = 50,
    **_: _Any,
) -> _Any:  # fmt: skip
    x0, functions = equation.real(x0), equation.search()
    return _result(equation, method, *_newton_root(*functions, x0, xtol, maxiter, True))


def _solved(
    equation: _Equation, xtol: float, maxiter: int = 0, flat: bool = True
) -> tuple[_Any, _Any, _Any]:
    """The root of a system, the number of iterations, and whether it is one."""
    x0 = equation.real(equation.start)
    shape = (x0.numel(),) if flat else tuple(x0.shape)
    functions = equation.search(shape)
    x, trips = _newton_root(*functions, x0.reshape(-1), xtol, maxiter or 200, False)
    return equation.root(x.reshape(shape)), trips, ~_isnan(x).any()


def _bracketing(method: str, about: str) -> _Function:
    def solve(
        f: _Function, a: _Any, b: _Any, args: _Any = (), xtol: float = _XTOL, rtol: float = _RTOL,
        maxiter: int = 100, full_output: bool = False, disp: bool = True,
    ) -> _Any:  # fmt: skip
        return _between(method, f, a, b, args, full_output, disp, (xtol, rtol, maxiter))

    solve.__name__ = solve.__qualname__ = method
    solve.__doc__ = f"""A root between `a` and `b`, where `f` has opposite signs: {about}.

    >>> import numpy as np, tapegrad as tg
    >>> shift = lambda a: tg.scipy.optimize.{method}(lambda x: np.cos(x) - a, 0.0, 3.0)
    >>> round(tg.grad(shift)(0.0), 6)
    -1.0
    """
    return solve


bisect = _bracketing("bisect", "bisection")
brenth = _bracketing("brenth", "Brent's method with hyperbolic extrapolation")
brentq = _bracketing("brentq", "Brent's method")
ridder = _bracketing("ridder", "Ridder's method")


def toms748(
    f: _Function, a: _Any, b: _Any, args: _Any = (), k: int = 1, xtol: float = _XTOL,
    rtol: float = _RTOL, maxiter: int = 100, full_output: bool = False, disp: bool = True,
) -> _Any:  # fmt: skip
    """A root between `a` and `b`, where `f` has opposite signs: algorithm 748 of the ACM.

    >>> import numpy as np, tapegrad as tg
    >>> shift = lambda a: tg.scipy.optimize.toms748(lambda x: np.cos(x) - a, 0.0, 3.0)
    >>> round(tg.grad(shift)(0.0), 6)
    -1.0
    """
    return _between("toms748", f, a, b, args, full_output, disp, (xtol, rtol, maxiter), k=k)


def _between(
    method: str, f: _Function, a: _Any, b: _Any, args: _Any, full_output: bool, disp: bool,
    limits: tuple[float, float, int], **more: int,
) -> _Any:  # fmt: skip
    equation = _Equation(method, f, args, (a, b))
    low, high = equation.start
    xtol, rtol, maxiter = limits
    if equation.known(low):
        _, result = _theirs("scipy.optimize", method)(
            equation.plain(f), _numbers(low), _numbers(high), xtol=xtol, rtol=rtol,
            maxiter=maxiter, full_output=True, disp=disp, **more,
        )  # fmt: skip
        result.root = equation.root(result.root)
    else:
        result = _bracketed(equation, method, low, high, xtol, rtol, maxiter)
    return (result.root, result) if full_output else result.root


def newton(
    func: _Function, x0: _Any, fprime: _Any = None, args: _Any = (), tol: float = 1.48e-8,
    maxiter: int = 50, fprime2: _Any = None, x1: _Any = None, rtol: float = 0.0,
    full_output: bool = False, disp: bool = True,
) -> _Any:  # fmt: skip
    """A root near a number, or for each element near that of an array; see SciPy's.

    >>> import numpy as np, tapegrad as tg
    >>> cubes = np.array([8.0, 27.0])
    >>> third = lambda a: tg.scipy.optimize.newton(lambda x: x**3 - a, np.array([1.0, 2.0]))
    >>> tg.grad(lambda a: np.sum(third(a)))(cubes)
    array([0.08333333, 0.03703704])
    """
    equation = _Equation("newton", func, args, (x0, x1))
    near, other = equation.start
    if not equation.known(near):
        result = _near(equation, "newton", near, tol, maxiter)
        return (result.root, result) if full_output else result.root
    found = _theirs("scipy.optimize", "newton")(
        equation.plain(func), _numbers(near), equation.plain(fprime), (), tol, maxiter,
        equation.plain(fprime2), _numbers(other), rtol, full_output, disp,
    )  # fmt: skip
    x = equation.root(found[0] if full_output else found, elementwise=True)
    if not full_output:
        return x
    if hasattr(found, "_replace"):  # of arrays
        return found._replace(root=x)
    found[1].root = x
    return x, found[1]


def fixed_point(
    func: _Function, x0: _Any, args: _Any = (), xtol: float = 1e-8, maxiter: int = 500,
    method: str = "del2",
) -> _Any:  # fmt: skip
    """Where ``func(x) == x``, of a number or an array; see SciPy's.

    >>> import numpy as np, tapegrad as tg
    >>> point = lambda a: tg.scipy.optimize.fixed_point(lambda x: np.cos(a * x), 0.5)
    >>> round(float(point(1.0)), 6), round(tg.grad(point)(1.0), 6)
    (0.739085, -0.297474)
    """
    excess = lambda x, *args: _np.subtract(func(x, *args), x)
    equation = _Equation("fixed_point", excess, args, x0)
    if not equation.known(equation.start):
        return _solved(equation, xtol, maxiter, flat=False)[0]
    found = _theirs("scipy.optimize", "fixed_point")(
        equation.plain(func), _numbers(equation.start), (), xtol, maxiter, method
    )
    return equation.root(found)


def fsolve(
    func: _Function, x0: _Any, args: _Any = (), fprime: _Any = None, full_output: _Any = 0,
    col_deriv: _Any = 0, xtol: float = 1.49012e-8, maxfev: int = 0, band: _Any = None,
    epsfcn: _Any = None, factor: float = 100, diag: _Any = None,
) -> _Any:  # fmt: skip
    """A root of n functions of n unknowns, which are a vector; see SciPy's.

    >>> import numpy as np, tapegrad as tg
    >>> circle_and_line = lambda x, r, a: [x[0] ** 2 + x[1] ** 2 - r**2, x[1] - a * x[0]]
    >>> met = lambda a: tg.scipy.optimize.fsolve(circle_and_line, [1.0, 1.0], (2.0, a))
    >>> tg.jacobian(met)(1.0).round(6)
    array([-0.707107,  0.707107])
    """
    equation = _Equation("fsolve", func, args, x0)
    if not equation.known(equation.start):
        x, trips, success = _solved(equation, xtol, maxfev)
        return (x, {"nfev": trips}, _np.where(success, 1, 2), "") if full_output else x
    found = _theirs("scipy.optimize", "fsolve")(
        equation.plain(func), _numbers(equation.start), (), equation.plain(fprime), full_output,
        col_deriv, xtol, maxfev, band, epsfcn, factor, diag,
    )  # fmt: skip
    return (equation.root(found[0]), *found[1:]) if full_output else equation.root(found)


def root(
    fun: _Function, x0: _Any, args: _Any = (), method: str = "hybr", jac: _Any = None,
    tol: float | None = None, callback: _Any = None, options: _Any = None,
) -> _Any:  # fmt: skip
    """A root of n functions of n unknowns, in the field `x` of SciPy's result.

    >>> import numpy as np, tapegrad as tg
    >>> def concentrations(k):
    ...     equations = lambda x: np.stack([x[0] * x[1] - k, x[0] + x[1] - 1.0])
    ...     return tg.scipy.optimize.root(equations, np.array([0.1, 0.9])).x
    >>> tg.jacobian(concentrations)(0.16)
    array([ 1.66666667, -1.66666667])
    """
    equation = _Equation("root", fun, args, x0, pair=not callable(jac) and bool(jac))
    if not equation.known(equation.start):
        x, trips, success = _solved(equation, tol or 1.49012e-8, flat=method in ("hybr", "lm"))
        kind = _theirs("scipy.optimize", "OptimizeResult")
        return kind(x=x, success=success, nit=trips, method="newton")
    found = _theirs("scipy.optimize", "root")(
        equation.plain(fun), _numbers(equation.start), (), method, equation.plain(jac), tol,
        callback, options,
    )  # fmt: skip
    # Levenberg and Marquardt may end where there is no root.
    found.x = equation.root(found.x, refined=found.success and method != "lm")
    return found


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.optimize", name)
