"""The problems of the transforms: functions of arrays, written once with NumPy's names.

`xp` is NumPy itself for tapegrad, whose Tensors NumPy's functions take, and for SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.problem import SEED, Problem


def _product(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    (x,) = inputs
    return x * x


def product() -> Problem:
    """Return a function that does almost nothing: its gradient costs what a call costs."""
    return Problem("x * x of a number", _product, (np.array(3.0),), transform="grad")


def _rosenbrock(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    (x,) = inputs
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock(n: int, transform: str = "grad") -> Problem:
    """Return Rosenbrock's valley in n dimensions."""
    x = np.random.default_rng(SEED).uniform(-1.0, 1.0, n)
    return Problem(f"Rosenbrock, n = {n}", _rosenbrock, (x,), transform=transform)


def _logistic(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    (w,) = inputs
    x, sign = data
    return xp.mean(xp.log1p(xp.exp(-sign * (x @ w)))) + 0.05 * xp.sum(w * w)


def logistic(n: int, d: int, transform: str = "grad") -> Problem:
    """Return the loss of a logistic regression, n examples of d features."""
    rng = np.random.default_rng(SEED)
    x, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    sign = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    name = f"logistic regression, {n} × {d}"
    return Problem(name, _logistic, (w,), (x, sign), transform=transform)


def _kalman(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    a, process, noise = inputs
    h, start, *measured = data
    q, r = xp.diag(xp.exp(process)), xp.diag(xp.exp(noise))
    state, p = start[0], xp.diag(xp.exp(start[1]))
    total = 0.0
    for y in measured:
        state = a @ state
        p = a @ p @ a.T + q
        s = h @ p @ h.T + r
        gain = xp.linalg.solve(s, h @ p).T
        off = y - h @ state
        total = total - 0.5 * (off @ xp.linalg.solve(s, off) + xp.linalg.slogdet(s)[1])
        state = state + gain @ off
        p = p - gain @ h @ p
    return total


def kalman(steps: int, state: int = 4, seen: int = 2) -> Problem:
    """Return the log-likelihood of a Kalman filter in its dynamics and its noise."""
    rng = np.random.default_rng(SEED)
    a = 0.9 * np.linalg.qr(rng.standard_normal((state, state)))[0]
    inputs = (a, rng.uniform(-1.0, 0.0, state), rng.uniform(-1.0, 0.0, seen))
    data = (rng.standard_normal((seen, state)), np.zeros((2, state)))
    name = f"Kalman filter, {steps} steps, state {state}"
    measured = tuple(rng.standard_normal((steps, seen)))
    return Problem(name, _kalman, inputs, (*data, *measured), transform="grad")


def _pendulum(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    state, constants = inputs
    (steps,) = data
    stiffness, damping = constants[0], constants[1]
    dt = 0.01

    def slope(s: Any) -> Any:
        return xp.stack([s[1], -stiffness * xp.sin(s[0]) - damping * s[1]])

    for _ in range(len(steps)):
        k1 = slope(state)
        k2 = slope(state + 0.5 * dt * k1)
        k3 = slope(state + 0.5 * dt * k2)
        k4 = slope(state + dt * k3)
        state = state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return xp.sum(state**2)


def pendulum(steps: int) -> Problem:
    """Return where a damped pendulum is after some steps of Runge and Kutta's fourth order."""
    inputs = (np.array([1.2, -0.3]), np.array([9.81, 0.15]))
    name = f"RK4 pendulum, {steps} steps"
    return Problem(name, _pendulum, inputs, (np.zeros(steps),), transform="grad")


def _gmm(xp: Any, inputs: list[Any], data: list[Any]) -> Any:
    alphas, means, diagonals, lower = inputs
    x, eye = data
    # The Cholesky factors of the inverse covariances: what is exponentiated is on the diagonal.
    factors = xp.exp(diagonals)[:, :, None] * eye + xp.tril(lower, -1)
    moved = (x[None, :, :] - means[:, None, :]) @ xp.swapaxes(factors, 1, 2)
    inner = (alphas + xp.sum(diagonals, axis=1))[:, None] - 0.5 * xp.sum(moved * moved, axis=2)
    total = xp.sum(_logsumexp(xp, inner, 0)) - len(x) * _logsumexp(xp, alphas, 0)
    return total - 0.5 * (xp.sum(xp.exp(2.0 * diagonals)) + xp.sum(xp.tril(lower, -1) ** 2))


def _logsumexp(xp: Any, x: Any, axis: int) -> Any:
    most = xp.max(x, axis=axis, keepdims=True)
    return xp.sum(xp.log(xp.sum(xp.exp(x - most), axis=axis, keepdims=True)) + most, axis=axis)


def gmm(d: int, k: int, n: int) -> Problem:
    """Return the log-likelihood of a mixture of k Gaussians at n points in d dimensions.

    The full form: weights, means and a lower triangular factor of each inverse covariance, with
    the prior on the factors that GradBench's `gmm` has (up to constants).
    """
    rng = np.random.default_rng(SEED)
    means, diagonals = rng.standard_normal((k, d)), 0.1 * rng.standard_normal((k, d))
    inputs = (rng.standard_normal(k), means, diagonals, 0.1 * rng.standard_normal((k, d, d)))
    data = (rng.standard_normal((n, d)), np.eye(d))
    name = f"GMM log-likelihood, d = {d}, k = {k}, n = {n}"
    return Problem(name, _gmm, inputs, data, transform="grad")
