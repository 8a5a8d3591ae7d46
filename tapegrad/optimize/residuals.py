"""`least_squares`: SciPy's methods for the smallest sum of squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tapegrad.optimize.objective import Constraint
from tapegrad.optimize.points import Points, arguments, limits
from tapegrad.optimize.progress import Progress, observer
from tapegrad.transforms.call_arguments import name_of, require_function
from tapegrad.transforms.pytree import flatten_up_to

METHODS = ("trf", "dogbox", "lm")


def least_squares(
    residuals: Callable[..., Any], x0: Any, args: Any = (), method: str = "trf", *,
    bounds: Any = None, x_scale: Any = None, callback: Callable[..., Any] | None = None,
    progress: bool | Literal["always"] = False, **options: Any,
) -> Any:  # fmt: skip
    """Make the sum of the squares of `residuals(x)` as small as can be, with an exact Jacobian.

    Parameters
    ----------
    residuals : called as ``residuals(x, *args)``, where `x` is a pytree like `x0`; it returns an
        array, or a pytree of arrays.
    x0 : where to start: an array, a number, or a pytree of them.
    method : "trf", "dogbox" or "lm".
    bounds : a SciPy `Bounds`, or for each leaf of `x0` a pair (low, high) of numbers, arrays or
        None.
    x_scale : SciPy's, or a pytree like `x0`.
    callback : called after each iteration as ``callback(x)``, or with SciPy's result so far if its
        argument is named `intermediate_result`.
    progress : whether to show a line about the state (iteration, value, gradient) on the standard
        error stream, if that is a terminal; "always" writes the last state to a file, too.
    **options : SciPy's further options: `ftol`, `xtol`, `gtol`, `loss`, `f_scale`, `max_nfev`, ...

    Returns
    -------
    OptimizeResult
        SciPy's, where `x` and `grad` are pytrees like `x0`; `fun` is the vector of residuals and
        `jac` its Jacobian, a matrix.

    >>> import numpy as np, tapegrad as tg
    >>> t = np.linspace(0, 1, 5)
    >>> y = 2.0 * np.exp(-3.0 * t)
    >>> model = lambda p: p["size"] * np.exp(-p["rate"] * t) - y
    >>> found = tg.optimize.least_squares(model, {"size": 1.0, "rate": 1.0})
    >>> {name: round(value, 6) for name, value in found.x.items()}
    {'size': 2.0, 'rate': 3.0}
    """
    from scipy import optimize

    require_function(residuals, "least_squares")
    if method not in METHODS:
        raise ValueError(
            f"`least_squares`: there is no method {method!r}: there are {', '.join(METHODS)}"
        )
    for name in ("jac", "jac_sparsity", "diff_step"):
        if name in options:
            raise TypeError(f"`least_squares` computes the Jacobian itself: leave out `{name}`")
    points = Points(x0, "least_squares")
    if isinstance(bounds, optimize.Bounds):
        bounds = tuple(np.broadcast_to(b, points.start.shape) for b in (bounds.lb, bounds.ub))
    else:
        bounds = limits(bounds, points, rows=False) or (-np.inf, np.inf)
    made = Constraint(residuals, points, arguments(args, "least_squares"))
    line = Progress(f"least_squares of {name_of(residuals)} by {method}", progress)

    def value(flat: np.ndarray) -> np.ndarray:
        """The residuals."""
        found = made.value(flat)
        if not (line.evaluations or np.isfinite(found).all()):
            raise ValueError(
                f"`least_squares`: {name_of(residuals)} returns nan or inf at the start `x0`: "
                "start where it is finite"
            )
        line.evaluated(0.5 * float(found @ found))
        return found

    def fields(found: Any) -> Any:
        return _as_pytrees(optimize.OptimizeResult(found), points)

    if (progress or callback is not None) and method != "lm":
        options["callback"] = observer(callback, line, points.result, fields)
    elif callback is not None:
        raise ValueError("`least_squares`: the method lm takes no `callback`: use trf or dogbox")
    if x_scale is not None:
        options["x_scale"] = _scale(x_scale, points)
    found = optimize.least_squares(
        value, points.start, jac=made.jacobian, bounds=bounds, method=method, **options
    )
    line.finished()
    return _as_pytrees(found, points)


def _scale(given: Any, points: Points) -> Any:
    if isinstance(given, (str, float, int)):
        return given
    scales = flatten_up_to(given, points.tree, "least_squares(x_scale=...)")
    return np.concatenate([
        np.broadcast_to(np.asarray(1.0 if s is None else s, float), shape).ravel()
        for s, shape in zip(scales, points.shapes)
    ])  # fmt: skip


def _as_pytrees(found: Any, points: Points) -> Any:
    for key in ("x", "grad"):
        if key in found:
            found[key] = points.result(found[key])
    return found


__all__ = ["least_squares"]
