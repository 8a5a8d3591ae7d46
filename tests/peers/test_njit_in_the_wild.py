"""Functions of published packages that Numba compiles, differentiated as they are installed."""

import importlib

import numpy as np
import pytest
from numba import njit

import tapegrad as tg
from tests.njit.checking import check


@pytest.fixture
def optimize():
    """Root finding and linear programming of quantecon."""
    return pytest.importorskip("quantecon.optimize", reason="`make peers` installs it")


@njit
def kepler(anomaly, mean, eccentricity):
    return anomaly - eccentricity * np.sin(anomaly) - mean


@pytest.mark.parametrize("jacobian", [tg.jacfwd, tg.jacrev], ids=["forward", "reverse"])
def test_roots_move_as_the_implicit_function_theorem_says(optimize, jacobian):
    given = 0.7, 0.4
    found = optimize.brentq(kepler, 0.0, 3.0, given)
    slope = 1 - given[1] * np.cos(found.root)
    moved = jacobian(optimize.brentq, 3)(kepler, 0.0, 3.0, given).root
    np.testing.assert_allclose(moved, [1 / slope, np.sin(found.root) / slope], rtol=1e-6)


def test_roots_agree_with_differences(optimize):
    brentq = optimize.brentq

    @njit
    def root(mean, eccentricity):
        return brentq(kepler, 0.0, 3.0, (mean, eccentricity), 1e-14).root

    check(root, (0.7, 0.4), compiled=True)


def test_the_optimum_of_a_linear_program_moves_by_its_prices(optimize):
    solve = optimize.linprog_simplex
    gain = np.array([4.0, 3.0, 2.0])
    uses, stock = np.array([[1.0, 1.0, 2.0], [1.0, 3.0, 1.0]]), np.array([10.0, 16.0])
    found, pullback = tg.vjp(solve, gain, uses, stock)
    weights = [np.zeros_like(part) for part in found]
    weights[found._fields.index("fun")] = 1.0
    by_gain, by_use, by_stock = pullback(type(found)(*weights))
    np.testing.assert_allclose(by_gain, found.x, atol=1e-12)
    np.testing.assert_allclose(by_stock, found.lambd, atol=1e-12)
    np.testing.assert_allclose(by_use, -np.outer(found.lambd, found.x), atol=1e-12)

    @njit
    def best(gain, uses, stock):
        return solve(gain, uses, stock).fun

    check(best, (gain, uses, stock), compiled=True)


def test_splines_agree_with_differences_and_with_their_own_gradient():
    numba_code = pytest.importorskip(
        "interpolation.splines.eval_cubic_numba", reason="`make peers` installs it"
    )
    rng = np.random.default_rng(3)
    low, high, orders = np.zeros(3), np.array([1.0, 2.0, 1.5]), np.array([5, 6, 4])
    coefficients, point = rng.normal(size=(7, 8, 6)), np.array([0.33, 0.71, 0.4])
    spline = numba_code.eval_cubic_spline_3
    check(spline, (low, high, orders, coefficients, point))
    value, slope = np.empty((1, 1)), np.empty((1, 3, 1))
    numba_code.vec_eval_cubic_splines_G_3(
        low, high, orders, coefficients[..., None], point[None], value, slope
    )
    gradient = tg.grad(spline, 4)(low, high, orders, coefficients, point)
    np.testing.assert_allclose(gradient, slope[0, :, 0], rtol=1e-12)


def test_the_position_of_the_sun_agrees_with_differences(monkeypatch):
    pytest.importorskip("pvlib", reason="`make peers` installs it")
    monkeypatch.setenv("PVLIB_USE_NUMBA", "1")
    spa = importlib.reload(importlib.import_module("pvlib.spa"))
    positions = spa.solar_position_loop

    @njit
    def weighted(hours, shift, place, weights):
        times = np.empty(len(hours))
        for k in range(len(hours)):
            times[k] = 1.6e9 + 3600.0 * hours[k]
        out = np.zeros((6, len(times)))
        positions(times, shift, place, out)
        return np.sum(out * weights)

    hours, shift = np.array([1.0, 4.5, 9.0]), np.array([67.0, 68.0, 69.0])
    place = np.array([40.0, -105.0, 1830.0, 820.0, 11.0, 0.5667, 0.0, 0.0])
    args = hours, shift, place, np.random.default_rng(1).normal(size=(6, 3))
    check(weighted, args, differences=False, compiled=True)
    gradients = tg.grad(weighted, (0, 1, 2))(*args)
    steps = np.full(3, 0.05), np.full(3, 200.0), np.array([1e-2, 1e-2, 10, 1, 1e-1, 1e-3])
    for k, step in enumerate(steps):
        for j, h in enumerate(step):

            def at(by, k=k, j=j):
                moved = [x.copy() for x in args]
                moved[k][j] += by
                return weighted(*moved)

            slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
            assert abs(gradients[k][j] - slope) <= 1e-5 * (abs(slope) + 1e-3)
