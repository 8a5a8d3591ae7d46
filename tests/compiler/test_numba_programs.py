"""Whole numerical programs in nopython code that call compiled functions and their derivatives."""

import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no other library has this")


# Loops: Numba compiles each array expression anew, and slowly.


@numba.njit
def moved(x, size, direction):
    found = np.empty_like(x)
    for k in range(len(x)):
        found[k] = x[k] + size * direction[k]
    return found


@numba.njit
def dot(x, y):
    total = 0.0
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


PRECISION = np.array([[2.0, 0.6], [0.6, 1.0]])
CENTRE = np.array([1.0, -2.0])


def log_density(x):
    return -0.5 * (x - CENTRE) @ PRECISION @ (x - CENTRE)


density = tg.jit(tg.value_and_grad(log_density))


@numba.njit
def hamiltonian_monte_carlo(x, steps, size, count, seed):
    np.random.seed(seed)
    value, gradient = density.njit(x)
    samples = np.empty((count, len(x)))
    accepted = 0
    momentum = np.empty_like(x)
    for k in range(count):
        for i in range(len(x)):
            momentum[i] = np.random.normal()
        y, y_value, p = x, value, moved(momentum, 0.5 * size, gradient)
        for step in range(steps):
            y = moved(y, size, p)
            y_value, y_gradient = density.njit(y)
            p = moved(p, size if step < steps - 1 else 0.5 * size, y_gradient)
        gain = y_value - value + 0.5 * (dot(momentum, momentum) - dot(p, p))
        if np.log(np.random.random()) < gain:
            x, value, gradient = y, y_value, y_gradient
            accepted += 1
        for i in range(len(x)):
            samples[k, i] = x[i]
    return samples, accepted / count


def test_a_hamiltonian_monte_carlo_sampler():
    samples, rate = hamiltonian_monte_carlo(np.zeros(2), 8, 0.3, 20_000, 1)
    assert rate > 0.9
    np.testing.assert_allclose(samples.mean(0), CENTRE, atol=0.05)
    np.testing.assert_allclose(np.cov(samples.T), np.linalg.inv(PRECISION), atol=0.08)


def equations(x):
    return np.stack([x[0] ** 2 + x[1] ** 2 - 4.0, np.exp(x[0]) + x[1] - 1.0])


residual, slope = tg.jit(equations), tg.jit(tg.jacobian(equations))


@numba.njit
def newton(x):
    for k in range(50):
        r, j = residual.njit(x), slope.njit(x)
        if dot(r, r) < 1e-26:
            return x, k
        scale = -1.0 / (j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0])
        x = moved(
            x, scale, np.array([j[1, 1] * r[0] - j[0, 1] * r[1], j[0, 0] * r[1] - j[1, 0] * r[0]])
        )
    return x, 50


def test_a_newton_solver():
    x, steps = newton(np.array([1.0, -1.5]))
    np.testing.assert_allclose(equations(x), 0.0, atol=1e-12)
    assert steps < 10


def predator_and_prey(y, p):
    return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def adjoint_of(y, p, weights):
    """The right-hand side, and its derivatives in both arguments, weighted."""
    value, pull = tg.vjp(predator_and_prey, y, p)
    return (value, *pull(weights))


rate, backward_rate = tg.jit(predator_and_prey), tg.jit(adjoint_of)
A = np.array([
    [0, 0, 0, 0, 0, 0],
    [1 / 5, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
])  # fmt: skip
A_T = np.ascontiguousarray(A.T)
B = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])


@numba.njit
def stage(y, weights, slopes, h):
    for k in range(len(weights)):
        if weights[k] != 0.0:
            y = moved(y, h * weights[k], slopes[k])
    return y


@numba.njit
def points(y, p, h):
    """Where the stages of one step are, and their slopes."""
    places, slopes = np.empty((6, len(y))), np.zeros((6, len(y)))
    for i in range(6):
        places[i] = stage(y, A[i], slopes, h)
        slopes[i] = rate.njit(places[i], p)
    return places, slopes


@numba.njit
def dormand_prince(y, p, span, count):
    """The end point, from steps of the fifth order; and the gradients of its sum, backwards."""
    h = span / count
    path = np.empty((count + 1, len(y)))
    path[0] = y
    for k in range(count):
        path[k + 1] = stage(path[k], B, points(path[k], p, h)[1], h)
    in_y, in_p = np.ones(len(y)), np.zeros(len(p))
    for k in range(count - 1, -1, -1):
        places, _ = points(path[k], p, h)
        pulled = np.zeros((6, len(y)))
        start = in_y
        for i in range(5, -1, -1):
            weights = stage(moved(np.zeros(len(y)), h * B[i], start), A_T[i], pulled, h)
            _, pulled[i], more = backward_rate.njit(places[i], p, weights)
            in_y, in_p = moved(in_y, 1.0, pulled[i]), moved(in_p, 1.0, more)
    return path[-1], in_y, in_p


def test_an_adjoint_of_a_runge_kutta_method():
    y, p = np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.1, 0.4])
    backward_rate(y, p, y)  # no made-up shapes fit
    end, in_y, in_p = dormand_prince(y, p, 5.0, 100)
    wanted = solve_ivp(lambda t, y: predator_and_prey(y, p), (0, 5), y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(end, wanted.y[:, -1], rtol=1e-7)
    for x, gradient, run in (
        (y, in_y, lambda z: dormand_prince(z, p, 5.0, 100)[0].sum()),
        (p, in_p, lambda z: dormand_prince(y, z, 5.0, 100)[0].sum()),
    ):
        steps = 1e-6 * np.eye(len(x))
        differences = [(run(x + s) - run(x - s)) / 2e-6 for s in steps]
        np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def wavy(x):
    return np.sum(x**2 + 3.0 * (1 - np.cos(3.0 * x)))


objective = tg.jit(tg.value_and_grad(wavy))


@numba.njit(parallel=True)
def many_starts(starts, steps, size):
    values, ends = np.empty(len(starts)), np.empty_like(starts)
    for k in numba.prange(len(starts)):
        x = starts[k]
        for _ in range(steps):
            values[k], gradient = objective.njit(x)
            x = moved(x, -size, gradient)
        for i in range(len(x)):
            ends[k, i] = x[i]
    return values, ends


def test_an_optimiser_from_many_starts_at_once():
    starts = np.random.default_rng(0).uniform(-4, 4, size=(200, 3))
    values, ends = many_starts(starts, 200, 0.03)
    best = ends[np.argmin(values)]
    np.testing.assert_allclose(best, 0.0, atol=1e-8)
    gradients = np.array([tg.grad(wavy)(x) for x in ends[:20]])
    np.testing.assert_allclose(gradients, 0.0, atol=1e-8)
