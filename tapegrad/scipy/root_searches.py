"""Searches for roots and minima made of operations, for values that `vmap` and `jit` bring.

What does not converge is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions.unchecked_solves import solve_ex
from tapegrad.transforms.control import while_loop

Function = Callable[[Any], Any]


def bracketed_root(
    f: Function, a: Any, b: Any, xtol: float, rtol: float, maxiter: int
) -> tuple[Any, Any]:
    """A root between `a` and `b` by Chandrupatla's method, and the number of iterations."""

    def best(x1: Any, f1: Any, x2: Any, f2: Any) -> tuple[Any, Any]:
        nearer = np.abs(f1) < np.abs(f2)
        return np.where(nearer, x1, x2), np.where(nearer, f1, f2)

    def open_(x1: Any, f1: Any, x2: Any, f2: Any, *_: Any) -> Any:
        x, y = best(x1, f1, x2, f2)
        return (y != 0) & (np.abs(x2 - x1) > xtol + rtol * np.abs(x))

    def trip(carry: Any) -> Any:
        x1, f1, x2, f2, x3, f3, n = carry
        # Inverse quadratic interpolation where it is safe, else bisection.
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        t = f1 / (f2 - f1) * f3 / (f2 - f3)
        t = t + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        t = np.where((phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi), t, 0.5)
        least = 0.5 * (xtol + rtol * np.abs(best(x1, f1, x2, f2)[0])) / np.abs(x2 - x1)
        x = x1 + np.minimum(np.maximum(t, least), 1 - least) * (x2 - x1)
        y = f(x)
        same = np.sign(y) == np.sign(f1)
        return (
            x, y, np.where(same, x2, x1), np.where(same, f2, f1), np.where(same, x1, x2),
            np.where(same, f1, f2), n + 1,
        )  # fmt: skip

    fa, fb = f(a), f(b)
    rtol = max(rtol, 4 * float(np.finfo(fa._a.dtype).eps))
    valid = np.sign(fa) * np.sign(fb) <= 0
    going = lambda c: valid & (c[-1] < maxiter) & open_(*c)
    found = while_loop(going, trip, (b, fb, a, fa, a, fa, 0))
    return np.where(valid & ~open_(*found), best(*found[:4])[0], np.nan), found[-1]


def newton_root(
    f: Function, slope: Function, x: Any, xtol: float, maxiter: int, elementwise: bool
) -> tuple[Any, Any]:
    """A root by Newton's method with backtracking, and the number of iterations.

    Elementwise each element is an equation of its own, and has a derivative in place of a Jacobian.
    """

    def size(v: Any) -> Any:
        return np.abs(v) if elementwise else np.sqrt(np.sum(v * v))

    def trip(carry: Any) -> Any:
        x, y, share, _, n = carry
        change = y / slope(x) if elementwise else solve_ex(slope(x).double(), y.double()).result
        small = size(change) <= xtol * size(x) + xtol**2
        there = x - share * change
        value = f(there)
        better = size(value) < size(y)
        share = np.where(better, np.minimum(2.0 * share, 1.0), share / 4)
        done = np.all(small | (np.where(better, size(value), size(y)) == 0))
        return np.where(better, there, x), np.where(better, value, y), share, done, n + 1

    y = f(x)
    # Convergence is quadratic: what is as near as this is a root after the step.
    xtol = max(xtol, float(np.sqrt(np.finfo(y._a.dtype).eps)))
    # The start may be a root.
    carry = (x, y, np.ones_like(size(y)), np.all(size(y) == 0), 0)
    found = while_loop(lambda c: ~c[3] & (c[4] < maxiter), trip, carry)
    return np.where(found[3], found[0], np.nan), found[4]


def bounded_minimum(f: Function, a: Any, b: Any, xtol: float, maxiter: int) -> tuple[Any, Any]:
    """A minimum between `a` and `b` by golden section, and the number of iterations."""
    share = (3.0 - 5.0**0.5) / 2.0

    def open_(carry: Any) -> Any:
        a, b, x, _, _, _, n = carry
        return (b - a > xtol * (1.0 + np.abs(x))) & (n < maxiter)

    def trip(carry: Any) -> Any:
        a, b, x1, f1, x2, f2, n = carry
        left = f1 <= f2
        a, b = np.where(left, a, x1), np.where(left, x2, b)
        x = np.where(left, a + share * (b - a), b - share * (b - a))
        y = f(x)
        return (
            a, b, np.where(left, x, x2), np.where(left, y, f2), np.where(left, x1, x),
            np.where(left, f1, y), n + 1,
        )  # fmt: skip

    x1, x2 = a + share * (b - a), b - share * (b - a)
    found = while_loop(open_, trip, (a, b, x1, f(x1), x2, f(x2), 0))
    return np.where(found[3] <= found[5], found[2], found[4]), found[-1]


def minimum(
    f: Function, gradient: Function, curvature: Function, x: Any, maxiter: int
) -> tuple[Any, Any, Any]:
    """A minimum by Newton's method damped as by Levenberg, whether it is one, and the iterations.

    `curvature` is the Hessian, or what is near it.
    """
    eps = float(np.finfo(float).eps)

    def trip(carry: Any) -> Any:
        x, y, damping, _, n = carry
        matrix = curvature(x)
        scale = np.max(np.abs(matrix)) * damping
        change = solve_ex(matrix + scale * np.eye(len(x)), gradient(x)).result
        value = f(x - change)
        share = np.sqrt(np.sum(change**2)) / (np.sqrt(np.sum(x**2)) + eps**0.5)
        level = np.abs(value - y) <= 10 * eps * np.abs(y)  # but for rounding
        better = (value < y) | level
        done = (damping <= 1e-2) & ((share <= eps**0.5) | (level & (share <= eps**0.25)))
        damping = np.where(better, damping / 10, np.maximum(damping, 1e-9) * 10)
        return np.where(better, x - change, x), np.where(better, value, y), damping, done, n + 1

    carry = (x, f(x), 1e-3, np.array(False), 0)
    x, _, _, done, trips = while_loop(lambda c: ~c[3] & (c[4] < maxiter), trip, carry)
    return x, done, trips
