"""`minimize`: SciPy's methods for the minimum of a scalar function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from tapegrad.optimize.objective import Constraint, Objective
from tapegrad.optimize.points import Points, arguments, limits
from tapegrad.optimize.progress import Progress, observer
from tapegrad.transforms.call_arguments import name_of, require_function

# What a method wants besides values: gradients, products with the Hessian, or the Hessian; and
# whether it can keep to bounds and to constraints.
FREE, FIRST, PRODUCTS, MATRIX = "free", "first", "products", "matrix"
METHODS = {
    "nelder-mead": ("Nelder-Mead", FREE, True, False),
    "powell": ("Powell", FREE, True, False),
    "cobyla": ("COBYLA", FREE, True, True),
    "cobyqa": ("COBYQA", FREE, True, True),
    "cg": ("CG", FIRST, False, False),
    "bfgs": ("BFGS", FIRST, False, False),
    "l-bfgs-b": ("L-BFGS-B", FIRST, True, False),
    "tnc": ("TNC", FIRST, True, False),
    "slsqp": ("SLSQP", FIRST, True, True),
    "newton-cg": ("Newton-CG", PRODUCTS, False, False),
    "trust-ncg": ("trust-ncg", PRODUCTS, False, False),
    "trust-krylov": ("trust-krylov", PRODUCTS, False, False),
    "trust-constr": ("trust-constr", PRODUCTS, True, True),
    "dogleg": ("dogleg", MATRIX, False, False),
    "trust-exact": ("trust-exact", MATRIX, False, False),
}


def minimize(
    f: Callable[..., Any], x0: Any, args: Any = (), method: str | None = None, *,
    bounds: Any = None, constraints: Any = (), tol: float | None = None,
    callback: Callable[..., Any] | None = None, options: dict[str, Any] | None = None,
    progress: bool | Literal["always"] = False,
) -> Any:  # fmt: skip
    """The minimum of a scalar function of arrays, by a method of `scipy.optimize.minimize`.

    The derivatives that the method uses are computed here: gradients (one run of `f` and one sweep
    give value and gradient), products with the Hessian for Newton-CG, trust-ncg, trust-krylov and
    trust-constr, the Hessian itself for trust-exact and dogleg, Jacobians of constraints.

    Parameters
    ----------
    f : called as ``f(x, *args)``, where `x` is a pytree like `x0`.
    x0 : where to start: an array, a number, or a pytree of them. A list is a pytree too: write
        ``np.array([1.0, 2.0])`` for a vector.
    method : a method of SciPy; if none is named, SLSQP with constraints, L-BFGS-B with bounds, else
        BFGS.
    bounds : a SciPy `Bounds`, or for each leaf of `x0` a pair (low, high) of numbers, arrays or
        None. Where `x0` has a vector, a sequence of pairs will do, one for each element.
    constraints : one or several of: SciPy's dict (``{"type": "eq", "fun": g}``, or "ineq" for
        ``g(x) >= 0``), a `NonlinearConstraint`, a `LinearConstraint`. Their functions are called
        with pytrees like `x0`. Jacobians need not be given; a function that does so must return a
        matrix.
    tol, options : SciPy's.
    callback : called after each iteration as ``callback(x)``, or with SciPy's result so far if its
        argument is named `intermediate_result`. It may raise StopIteration.
    progress : whether to show a line about the state (iteration, value, gradient) on the standard
        error stream, if that is a terminal; "always" writes the last state to a file, too.

    Returns
    -------
    OptimizeResult
        SciPy's, where `x` and the gradient (`jac`, of trust-constr `grad`) are pytrees like `x0`.

    >>> import numpy as np, tapegrad as tg
    >>> found = tg.optimize.minimize(lambda x: np.sum((x - np.array([1.0, 3.0])) ** 2), np.zeros(2))
    >>> found.x.round(6), found.success
    (array([1., 3.]), True)
    """
    from scipy import optimize

    require_function(f, "minimize")
    points = Points(x0, "minimize")
    args = arguments(args, "minimize")
    given = _listed(constraints)
    chosen = "slsqp" if given else "bfgs" if bounds is None else "l-bfgs-b"
    title, wants, bounded, constrained = METHODS[chosen if method is None else _known(method)]
    if given and not constrained:
        raise ValueError(
            f"`minimize`: the method {title} cannot keep to constraints: use {_those(3)}"
        )
    if bounds is not None and not bounded:
        raise ValueError(f"`minimize`: the method {title} cannot keep to bounds: use {_those(2)}")
    if not isinstance(bounds, optimize.Bounds):
        pair = limits(bounds, points, rows=True)
        bounds = None if pair is None else optimize.Bounds(*pair)

    line = Progress(f"minimize {name_of(f)} by {title}", progress)
    objective = Objective(f, points, args, line)
    given = [_translated(c, points, title, optimize) for c in given]
    fields = lambda found: _as_pytrees(optimize.OptimizeResult(found), points)
    watch: Any = None
    if progress or callback is not None:
        seen = observer(callback, line, points.result, fields)
        alone = lambda x: seen(optimize.OptimizeResult(x=x))  # TNC gives the point alone
        watch = alone if title == "TNC" else seen
    more: dict[str, Any] = {}
    if wants == PRODUCTS:
        more["hessp"] = objective.product
    elif wants == MATRIX:
        more["hess"] = objective.matrix
    found = optimize.minimize(
        objective.value if wants == FREE else objective.value_and_gradient, points.start,
        method=title, jac=None if wants == FREE else True, bounds=bounds, constraints=given,
        tol=tol, callback=watch, options=options, **more,
    )  # fmt: skip
    objective.products.forget()
    line.finished(found.get("nit"))
    found.fun = float(found.fun)
    return _as_pytrees(found, points)


def _known(method: Any) -> str:
    if isinstance(method, str) and method.lower() in METHODS:
        return method.lower()
    if callable(method):
        raise TypeError(
            "`minimize` knows what SciPy's own methods want, not what a function wants: call "
            "`scipy.optimize.minimize(tapegrad.value_and_grad(f), x0, jac=True, method=...)`"
        )
    import difflib

    names = [title for title, *_ in METHODS.values()]
    plain = {title.lower().replace("-", ""): title for title in names}
    near = difflib.get_close_matches(str(method).lower().replace("-", ""), plain, 1)
    hint = f"did you mean {plain[near[0]]}?" if near else f"there are {', '.join(names)}"
    raise ValueError(f"`minimize`: there is no method {method!r}: {hint}")


def _those(able: int) -> str:
    titles = [row[0] for row in METHODS.values() if row[able]]
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


def _listed(constraints: Any) -> list[Any]:
    return list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]


def _translated(given: Any, points: Points, title: str, optimize: Any) -> Any:
    """A constraint as SciPy wants it for a method: of vectors, with derivatives."""
    if isinstance(given, optimize.LinearConstraint):
        return given
    second = title == "trust-constr"  # the others warn that they do not use it
    if isinstance(given, optimize.NonlinearConstraint):
        made = Constraint(given.fun, points)
        own = given.jac if callable(given.jac) else None
        return optimize.NonlinearConstraint(
            made.value, given.lb, given.ub, jac=_rows(own, points) or made.jacobian,
            keep_feasible=given.keep_feasible, **({"hess": made.hessian} if second else {}),
        )  # fmt: skip
    if not isinstance(given, dict):
        raise TypeError(
            "`minimize`: a constraint is a dict with the keys 'type' and 'fun', a "
            f"`NonlinearConstraint` or a `LinearConstraint`, got {type(given).__name__}"
        )
    kind = given.get("type")
    if kind not in ("eq", "ineq"):
        raise ValueError(f"`minimize`: the 'type' of a constraint is 'eq' or 'ineq', got {kind!r}")
    if not callable(given.get("fun")):
        raise ValueError("`minimize`: a constraint needs a function under the key 'fun'")
    strays = given.keys() - {"type", "fun", "jac", "args"}
    if strays:
        raise ValueError(f"`minimize`: a constraint has no entry {sorted(map(str, strays))}")
    args = arguments(given.get("args", ()), "minimize")
    made = Constraint(given["fun"], points, args)
    rows = _rows(given.get("jac"), points, args) or made.jacobian
    if second:
        above = 0.0 if kind == "eq" else np.inf
        return optimize.NonlinearConstraint(made.value, 0.0, above, jac=rows, hess=made.hessian)
    return {"type": kind, "fun": made.value, "jac": rows}


def _rows(own: Any, points: Points, args: tuple[Any, ...] = ()) -> Any:
    """A Jacobian of the user's own, called with a pytree."""
    return (lambda flat: own(points.given(flat), *args)) if callable(own) else None


def _as_pytrees(found: Any, points: Points) -> Any:
    """SciPy's result with points and gradients in the form of the start."""
    for key in ("x", "jac", "grad"):
        value = found.get(key)
        if isinstance(value, np.ndarray) and value.shape == points.start.shape:
            found[key] = points.result(value)
    if "allvecs" in found:
        found["allvecs"] = [points.result(x) for x in found["allvecs"]]
    return found


__all__ = ["minimize"]
