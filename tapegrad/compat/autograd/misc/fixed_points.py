"""Fixed points, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.compat.autograd.core import make_vjp
from tapegrad.compat.autograd.extend import defvjp, primitive


@primitive
def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any,
    distance: Callable[[Any, Any], Any], tol: float,
) -> Any:  # fmt: skip
    """The x with ``f(a)(x) = x`` that steps from `x0` lead to; differentiable in `a`.

    The steps end when ``distance(x, f(a)(x))`` is not above `tol`.

    >>> from tapegrad.compat.autograd import grad
    >>> from tapegrad.compat.autograd.misc.fixed_points import fixed_point
    >>> root = lambda a: fixed_point(
    ...     lambda a: lambda x: (x + a / x) / 2, a, 1.0, lambda x, y: abs(x - y), 1e-12
    ... )
    >>> round(root(4.0), 6), round(grad(root)(4.0), 6)
    (2.0, 0.25)
    """
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


def _vjp(x: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    """Of ``x = f(a)(x)``: the weights u with ``u = g + u df/dx``, handed on to `a`."""

    def turned(given: Any) -> Callable[[Any], Any]:
        """The steps that lead to the weights, as a function of all that they read."""
        a, x, g = given
        return lambda u: g + make_vjp(f(a), x)[0](u)

    def pull(g: Any) -> Any:
        weights = fixed_point(turned, (a, x, g), g, distance, tol)
        return make_vjp(lambda a: f(a)(x), a)[0](weights)

    return pull


defvjp(fixed_point, _vjp, None, argnums=(1, 2))

__all__ = ["fixed_point"]
