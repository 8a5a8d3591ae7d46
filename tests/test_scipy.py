"""SciPy's own functions, given tapegrad's derivatives: what arrives is what SciPy wants."""

import numpy as np
import pytest
from scipy import integrate, optimize

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")

START = np.array([-1.2, 1.0, 0.5])


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


SECOND = {"hessp": tg.hvp(rosenbrock)}
WHOLE = {"hess": tg.hessian(rosenbrock)}
METHODS = {
    "BFGS": {},
    "CG": {},
    "L-BFGS-B": {},
    "TNC": {"options": {"maxfun": 1000}},
    "SLSQP": {"tol": 1e-10},
    "Newton-CG": SECOND,
    "trust-ncg": SECOND,
    "trust-krylov": SECOND,
    "trust-constr": SECOND,
    "trust-exact": WHOLE,
    "dogleg": WHOLE,
}


@pytest.mark.parametrize("method", METHODS)
def test_minimize(method):
    found = optimize.minimize(
        tg.value_and_grad(rosenbrock), START, jac=True, method=method, **METHODS[method]
    )
    assert found.success
    # TNC stops when the value changes by no more than 1e-8.
    np.testing.assert_allclose(found.x, 1.0, atol=1e-2 if method == "TNC" else 1e-4)
    assert type(found.fun) is float


def test_minimize_with_constraints_and_their_jacobians():
    def circle(x):
        return np.sum(x**2) - 2.0

    def above(x):
        return np.stack([x[0] - 0.1, x[1] - x[0]])

    found = optimize.minimize(
        tg.value_and_grad(lambda x: x[0] + x[1] ** 3),
        np.array([0.5, 1.0]),
        jac=True,
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": circle, "jac": tg.jacobian(circle)},
            {"type": "ineq", "fun": above, "jac": tg.jacobian(above)},
        ],
    )
    assert found.success
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-6)


def test_least_squares_and_curve_fit(rng):
    t = np.linspace(0.0, 2.0, 30)

    def model(t, a, b, c):
        return a * np.exp(-b * t) + c

    data = model(t, 2.0, 1.5, 0.5) + 0.01 * rng.standard_normal(30)

    def residuals(p):
        return model(t, p[0], p[1], p[2]) - data

    start = np.ones(3)
    exact = optimize.least_squares(residuals, start, jac=tg.jacobian(residuals))
    by_differences = optimize.least_squares(residuals, start, jac="3-point")
    np.testing.assert_allclose(exact.x, by_differences.x, rtol=1e-5)
    assert exact.jac.shape == (30, 3)

    def slopes(t, *p):
        return np.stack(tg.jacobian(model, argnums=(1, 2, 3))(t, *p), axis=1)

    values, covariance = optimize.curve_fit(model, t, data, p0=start, jac=slopes)
    np.testing.assert_allclose(values, exact.x, rtol=1e-5)
    inverse = np.linalg.inv(exact.jac.T @ exact.jac)
    np.testing.assert_allclose(covariance, inverse * 2 * exact.cost / 27, rtol=1e-4)


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method):
    def system(x):
        return np.stack([x[0] * np.cos(x[1]) - 4.0, x[0] * x[1] - x[1] - 5.0])

    found = optimize.root(system, np.ones(2), jac=tg.jacobian(system), method=method)
    assert found.success
    np.testing.assert_allclose(system(found.x), 0.0, atol=1e-9)


def test_root_scalar():
    found = optimize.root_scalar(
        lambda x: x**3 - 2.0, fprime=tg.grad(lambda x: x**3 - 2.0), x0=1.0, method="newton"
    )
    np.testing.assert_allclose(found.root, 2 ** (1 / 3), rtol=1e-12)
    halley = optimize.root_scalar(
        lambda x: x**3 - 2.0,
        fprime=tg.grad(lambda x: x**3),
        fprime2=tg.grad(tg.grad(lambda x: x**3)),
        x0=1.0,
        method="halley",
    )
    np.testing.assert_allclose(halley.root, 2 ** (1 / 3), rtol=1e-12)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_solve_ivp(method):
    def van_der_pol(t, y):
        return np.stack([y[1], 50.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    options = {"t_span": (0.0, 30.0), "y0": [2.0, 0.0], "method": method, "rtol": 1e-8}
    found = integrate.solve_ivp(van_der_pol, jac=tg.jacobian(van_der_pol, 1), **options)
    assert found.success
    other = integrate.solve_ivp(van_der_pol, **options)
    np.testing.assert_allclose(found.y[:, -1], other.y[:, -1], rtol=1e-4, atol=1e-6)


def test_what_arrives_is_numpy():
    value, gradient = tg.value_and_grad(rosenbrock)(START)
    assert type(value) is float
    for array in (
        gradient,
        tg.hessian(rosenbrock)(START),
        tg.hvp(rosenbrock)(START, np.ones(3)),
        tg.jacobian(lambda x: np.sin(x))(START),
    ):
        assert type(array) is np.ndarray
        assert array.dtype == np.float64
        assert array.flags.writeable
