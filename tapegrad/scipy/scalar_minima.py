"""Minima of functions of one number, whose derivatives are those of roots of the slope.

>>> import numpy as np, tapegrad as tg
>>> dose = lambda a: tg.scipy.optimize.minimize_scalar(lambda x: x**2 - a * np.sin(x)).x
>>> round(tg.grad(dose)(1.0), 6)
0.369741
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.scipy.either import theirs
from tapegrad.scipy.implicit_functions import Equation, Function, numbers
from tapegrad.scipy.implicit_minima import searched, stationary
from tapegrad.scipy.root_searches import bounded_minimum
from tapegrad.tensor import Tensor

TOLERANCE = 1e-5  # SciPy's, of a search between bounds


def _at_end(equation: Equation, cost: Function, x: Tensor, ends: Any, tolerance: float) -> Any:
    """Whether a minimum lies at an end: near it, and Newton's step leads beyond.

    Searches end within their tolerance of it.
    """
    slope, curvature = (f(x) for f in stationary(equation, cost).search())
    low, high = ends
    out = 4.0 * (tolerance + 1e-8 * np.abs(x))
    step = np.where(curvature > 0.0, -slope / curvature, -np.sign(slope) * np.inf)
    below, above = (x - low < out) & (x + step < low), (high - x < out) & (x + step > high)
    return below | above


def minimize_scalar(
    fun: Function, bracket: Any = None, bounds: Any = None, args: Any = (), method: Any = None,
    tol: float | None = None, options: Any = None,
) -> Any:  # fmt: skip
    """A minimum of a function of one number, in the fields `x` and `fun` of SciPy's result.

    One at an end of `bounds` has no derivative, and there is none in the ends.

    >>> import tapegrad as tg
    >>> def nearest(a):
    ...     return tg.scipy.optimize.minimize_scalar(lambda x: (x**2 - a) ** 2, bounds=(0, 3)).x
    >>> [round(v, 4) for v in tg.value_and_grad(nearest)(4.0)]
    [2.0, 0.25]
    """
    equation = Equation("minimize_scalar", fun, args, (bracket, bounds))
    near, ends = equation.start
    start = ends[0] if ends is not None else near[1] if near is not None else 1.0
    if equation.known(start):
        found = theirs("scipy.optimize", "minimize_scalar")(
            equation.plain(fun), numbers(near), numbers(ends), (), method, tol, options
        )
        tolerance = (options or {}).get("xatol", TOLERANCE if tol is None else tol)
    else:
        found, tolerance = _found(equation, fun, start, ends), TOLERANCE
    if equation.tensors:
        x: Any = equation.real(found.x, equation.dtype)
        free: Any = ()
        if ends is not None:
            free = ~_at_end(equation, fun, x, [equation.real(end) for end in ends], tolerance), x
        found.x = stationary(equation, fun, *free).root(x, refined=True)
        found.fun = fun(found.x, *equation.args)
    return found


def _found(equation: Equation, fun: Function, start: Any, ends: Any) -> Any:
    """SciPy's result, of a search that is made of operations."""
    if ends is None:
        first = np.reshape(equation.real(start), (1,))
        found = searched(equation, lambda x, *args: fun(x[0], *args), first)
        found.x = found.x[0]
        return found
    low, high = (equation.real(end) for end in ends)
    x, trips = bounded_minimum(equation.search()[0], low, high, 1e-9, 200)
    return theirs("scipy.optimize", "OptimizeResult")(x=x, nit=trips)
