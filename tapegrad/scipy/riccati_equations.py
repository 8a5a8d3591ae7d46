"""Riccati equations, whose derivatives are solutions of Lyapunov equations.

>>> import numpy as np, tapegrad as tg
>>> one = np.eye(1)
>>> tg.grad(lambda q: tg.scipy.linalg.solve_continuous_are(0 * one, one, q, one)[0, 0])(4.0 * one)
array([[0.25]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.matrix_equations import scipy_call, solve_discrete_lyapunov, solve_sylvester
from tapegrad.transforms.primitives import defjvp, defvjp, primitive


def _solution(name: str, a: Any, b: Any, q: Any, r: Any) -> Any:
    def of_the_costs_last(b: Any, r: Any, a: Any, q: Any) -> Any:
        kind = np.result_type(a, b, q, r, np.float32)  # SciPy's is in double precision
        return theirs("scipy.linalg", name)(a, b, q, r).astype(kind)

    return scipy_call(of_the_costs_last, b, r, a, q)


@primitive
def _continuous(a: Any, b: Any, q: Any, r: Any) -> Any:
    return _solution("solve_continuous_are", a, b, q, r)


@primitive
def _discrete(a: Any, b: Any, q: Any, r: Any) -> Any:
    return _solution("solve_discrete_are", a, b, q, r)


# With the gain k, at which the cost is least, the equations are those of a closed loop a - b k in
# which a change of k changes nothing: Lyapunov equations for the derivative.
def _continuous_loop(x: Any, a: Any, b: Any, r: Any) -> tuple[Any, Any, Any]:
    """The gain, the matrix of the closed loop, and what a change of `a` is multiplied by."""
    gain = np.linalg.solve(r, b.T @ x)
    return gain, a - b @ gain, x


def _discrete_loop(x: Any, a: Any, b: Any, r: Any) -> tuple[Any, Any, Any]:
    gain = np.linalg.solve(r + b.T @ x @ b, b.T @ x @ a)
    loop = a - b @ gain
    return gain, loop, x @ loop


def _continuous_lyapunov(loop: Any, q: Any) -> Any:
    return solve_sylvester(loop, loop.T, -q)


def _define(solve: Any, loop_of: Any, lyapunov: Any) -> None:
    """The rules of an equation."""

    def adjoint(g: Any, x: Any, a: Any, b: Any, r: Any) -> tuple[Any, Any, Any]:
        """The gain, and the adjoints of q and of a."""
        gain, loop, weight = loop_of(x, a, b, r)
        w = lyapunov(loop, g)
        return gain, w, weight @ (w + w.T)

    def tangent(x: Any, a: Any, b: Any, r: Any, change_of: Any) -> Any:
        """Of x, where the equation changes by this of the gain and the weight."""
        gain, loop, weight = loop_of(x, a, b, r)
        return lyapunov(loop.T, change_of(gain, weight))

    def of_b(g: Any, x: Any, a: Any, b: Any, r: Any) -> Any:
        gain, _, of_a = adjoint(g, x, a, b, r)
        return -of_a @ gain.T

    def of_r(g: Any, x: Any, a: Any, b: Any, r: Any) -> Any:
        gain, of_q, _ = adjoint(g, x, a, b, r)
        return gain @ of_q @ gain.T

    def both(half: Any) -> Any:
        return half + half.T

    defvjp(
        solve,
        lambda x, a, b, q, r: lambda g: adjoint(g, x, a, b, r)[2],
        lambda x, a, b, q, r: lambda g: of_b(g, x, a, b, r),
        lambda x, a, b, q, r: lambda g: adjoint(g, x, a, b, r)[1],
        lambda x, a, b, q, r: lambda g: of_r(g, x, a, b, r),
    )
    defjvp(
        solve,
        lambda da, x, a, b, q, r: tangent(x, a, b, r, lambda k, w: both(da.T @ w)),
        lambda db, x, a, b, q, r: tangent(x, a, b, r, lambda k, w: -both((db @ k).T @ w)),
        lambda dq, x, a, b, q, r: tangent(x, a, b, r, lambda k, w: dq),
        lambda dr, x, a, b, q, r: tangent(x, a, b, r, lambda k, w: k.T @ dr @ k),
    )


_define(_continuous, _continuous_loop, _continuous_lyapunov)
_define(_discrete, _discrete_loop, solve_discrete_lyapunov)


def _plain(name: str, e: Any, s: Any) -> None:
    if e is not None or s is not None:
        raise TypeError(f"`scipy.linalg.{name}` of Tensors has no `e` and no `s`")


@for_tensors("scipy.linalg")
def solve_continuous_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The solution x of ``a^T x + x a - x b r^-1 b^T x + q = 0`` that makes ``a - b k`` stable.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_continuous_are
    >>> one = np.eye(1)
    >>> solve_continuous_are(0 * one, one, 4 * one, one)
    array([[2.]])
    """
    _plain("solve_continuous_are", e, s)
    return _continuous(a, b, q, r)


@for_tensors("scipy.linalg")
def solve_discrete_are(
    a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True
) -> Any:
    """The solution x of ``x = a^T x a - a^T x b (r + b^T x b)^-1 b^T x a + q``.

    >>> import numpy as np
    >>> from tapegrad.scipy.linalg import solve_discrete_are
    >>> one = np.eye(1)
    >>> solve_discrete_are(one, one, one, 2 * one).round(6)
    array([[2.]])
    """
    _plain("solve_discrete_are", e, s)
    return _discrete(a, b, q, r)
