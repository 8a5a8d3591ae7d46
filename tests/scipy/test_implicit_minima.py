"""Minima and fits: values are SciPy's, derivatives those of a root of the gradient."""

import numpy as np
import pytest
import scipy.optimize

import tapegrad as tg
from tests.scipy.test_implicit_functions import A, V

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

T = np.linspace(0.0, 2.0, 7)
Y = 2.0 * np.exp(-1.3 * T) + 0.05 * np.cos(9.0 * T)
EXACT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def valley(x, a):
    return 20.0 * a[0] * (x[1] - x[0] ** 2) ** 2 + (a[1] - x[0]) ** 2 + a[0] * x[0]


def decay(t, size, rate):
    return size * np.exp(-rate * t)


def misfit(p, a):
    return decay(T, p[0], p[1]) - Y * (1.0 + a[0] * T) + a[1]


def with_slope(x, a):
    x, y = x
    steep = 40.0 * a[0] * (y - x**2)
    return valley([x, y], a), np.stack([-2.0 * x * steep - 2.0 * (a[1] - x) + a[0], steep])


# Each of the module, SciPy's or ours, and of two numbers; they are found precisely.
MINIMA = {
    "minimize": lambda lib, a: lib.minimize(valley, [0.1, 0.3], (a,), tol=1e-9).x,
    "value": lambda lib, a: lib.minimize(lambda x: valley(x, a), [0.1, 0.3], tol=1e-9).fun,
    "pair": lambda lib, a: lib.minimize(with_slope, [0.1, 0.3], (a,), jac=True, tol=1e-9).x,
    "simplex": lambda lib, a: lib.minimize(valley, [0.1, 0.3], (a,), "Nelder-Mead", tol=1e-10).x,
    "Newton": lambda lib, a: lib.minimize(
        valley, [0.1, 0.3], (a,), "Newton-CG", tol=1e-10, jac=lambda x, a: with_slope(x, a)[1],
        hessp=lambda x, p, a: tg.hvp(lambda x: valley(x, tg.stop_gradient(a)))(x, p),
    ).x,
    "squares": lambda lib, a: lib.least_squares(misfit, [1.0, 1.0], args=(a,), **EXACT).x,
    "cost": lambda lib, a: lib.least_squares(
        lambda p, shift: misfit(p, a) + shift, [1.0, 1.0], kwargs={"shift": a[0]}, **EXACT
    ).cost,
    "residuals": lambda lib, a: lib.least_squares(misfit, [1.0, 1.0], args=(a,), **EXACT).fun,
    **{
        loss: lambda lib, a, loss=loss: lib.least_squares(
            misfit, [1.0, 1.0], args=(a,), loss=loss, f_scale=0.15, **EXACT
        ).x
        for loss in ("soft_l1", "huber", "cauchy", "arctan")
    },
    "curve_fit": lambda lib, a: lib.curve_fit(decay, T, Y * (1.0 + a[0] * T) + a[1], **EXACT)[0],
    "covariance": lambda lib, a: lib.curve_fit(
        decay, T * a[1], Y * (1.0 + a[0] * T), (1.0, 1.0), **EXACT
    )[1],
    "sigma": lambda lib, a: lib.curve_fit(
        decay, T, Y, sigma=0.1 + a[0] * T, absolute_sigma=True, jac=slopes, **EXACT
    )[1],
    "covariances": lambda lib, a: lib.curve_fit(
        decay, T, Y, [1.0, 1.0], a[0] * np.eye(7) + 0.1 * a[1], full_output=True, **EXACT
    )[0],
}  # fmt: skip


def slopes(t, size, rate):
    return np.stack([np.exp(-rate * t), -t * decay(t, size, rate)], 1)


def near(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=1e-7, atol=1e-9)


def total(name):
    return lambda a: np.sum(np.sin(MINIMA[name](tg.scipy.optimize, a)))


@pytest.mark.parametrize("name", MINIMA)
def test_values_and_derivatives(name):
    found = MINIMA[name](tg.scipy.optimize, tg.tensor(A, requires_grad=True))
    assert found.requires_grad
    np.testing.assert_allclose(found.detach(), MINIMA[name](scipy.optimize, A), rtol=1e-5)
    refined, h = tg.value_and_grad(total(name)), 1e-5
    differences = [(refined(A + h * e)[0] - refined(A - h * e)[0]) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(refined(A)[1], differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["minimize", "huber", "covariance"])
def test_derivatives_in_all_modes(name):
    f = total(name)
    slope, second, both = tg.grad(f), tg.hessian(f), np.stack([A, 1.1 * A])
    g, h = slope(A), second(A)
    near(tg.jit(f)(A), tg.value_and_grad(f)(A)[0])
    near(tg.jit(slope)(A), g)
    near(tg.grad(tg.jit(f))(A), g)
    near(tg.jit(second)(A), h)
    near(tg.jvp(slope, (A,), (V,))[1], h @ V)
    near(tg.vmap(slope)(both), [g, slope(both[1])])
    np.testing.assert_allclose(h, tg.jacobian(lambda a: slope(a))(A), rtol=1e-7)
    d = [(slope(A + 1e-5 * e) - slope(A - 1e-5 * e)) / 2e-5 for e in np.eye(2)]
    np.testing.assert_allclose(h, d, rtol=1e-4, atol=1e-5)


def test_fits_from_far_off_under_jit():
    """As good as those of SciPy, from its start, also where residuals are large."""
    rng = np.random.default_rng(0)
    fit = tg.jit(lambda y: tg.scipy.optimize.curve_fit(decay, T, y)[0])
    for _ in range(20):
        y = decay(T, *rng.uniform([2.0, 0.3], [4.0, 2.0])) + 0.2 * rng.standard_normal(7)
        near = np.sum((decay(T, *scipy.optimize.curve_fit(decay, T, y)[0]) - y) ** 2)
        assert np.sum((decay(T, *fit(y)) - y) ** 2) <= near * (1 + 1e-9)


@pytest.mark.parametrize(
    "fit",
    [
        lambda lib, a: (
            lib.minimize(
                lambda x: valley(x, a) + x[1],
                [0.1, 0.3],
                bounds=[(None, 0.2), (-1, None)],
                tol=1e-10,
            ).x
        ),
        lambda lib, a: (
            lib.minimize(
                lambda x: valley(x, a) + x[1],
                [0.1, 0.3],
                bounds=scipy.optimize.Bounds(-1.0, [0.2, 1.0]),
                tol=1e-10,
            ).x
        ),
        lambda lib, a: (
            lib.least_squares(
                misfit, [0.8, 1.0], args=(a,), bounds=([0.0, 0.0], [0.9, np.inf]), **EXACT
            ).x
        ),
        lambda lib, a: lib.curve_fit(
            decay, T, Y + a[0] * a[1], [1.0, 1.0], bounds=(0.0, [1.5, 9.0]), **EXACT
        )[0],
    ],
    ids=["minimize", "Bounds", "least_squares", "curve_fit"],
)
def test_unknowns_at_their_bounds_stay_there(fit):
    slope = tg.jacobian(lambda a: fit(tg.scipy.optimize, a))(A)
    np.testing.assert_allclose(slope[0], 0.0, atol=1e-12)
    h = 1e-4
    by_differences = [
        (fit(tg.scipy.optimize, A + h * e) - fit(tg.scipy.optimize, A - h * e)) / (2 * h)
        for e in np.eye(2)
    ]
    np.testing.assert_allclose(slope, np.transpose(by_differences), rtol=1e-3, atol=1e-3)
    assert slope[1].any()
    wide = lambda a: tg.scipy.optimize.minimize(valley, [0.1, 0.3], (a,), bounds=[(-9, 9)] * 2).x
    free = lambda a: tg.scipy.optimize.minimize(valley, [0.1, 0.3], (a,)).x
    np.testing.assert_allclose(tg.jacobian(wide)(A), tg.jacobian(free)(A), rtol=1e-8)


def test_single_precision():
    a = tg.tensor(A, dtype=tg.float32, requires_grad=True)
    for name in ("minimize", "squares", "curve_fit", "covariance"):
        f = lambda a, name=name: np.sum(MINIMA[name](tg.scipy.optimize, a))
        (slope,) = tg.autograd.grad(f(a), a)
        assert slope.dtype is tg.float32
        np.testing.assert_allclose(slope, tg.grad(f)(A), rtol=1e-4)


def test_without_tensors_they_are_scipys():
    for name, call in MINIMA.items():
        if name != "Newton":
            np.testing.assert_array_equal(call(tg.scipy.optimize, A), call(scipy.optimize, A))
    with_gaps = np.where(T[2] == T, np.nan, Y)
    how = {"nan_policy": "omit", "check_finite": False}
    np.testing.assert_array_equal(
        tg.scipy.optimize.curve_fit(decay, T.tolist(), with_gaps, **how)[1],
        scipy.optimize.curve_fit(decay, T, with_gaps, **how)[1],
    )


def test_what_is_refused_and_what_is_not_found():
    lib, t = tg.scipy.optimize, tg.tensor(A, requires_grad=True)
    ring = {"type": "eq", "fun": lambda x: np.sum(x**2) - 1.0}
    valleys = lambda a, **how: lib.minimize(valley, [0.1, 0.3], (a,), **how).x
    fits = lambda y, **how: lib.curve_fit(decay, T, y, [1.0, 1.0], **how)[0]
    own, absent = lambda z: np.stack([z, 1.0 + 0.0 * z, 0.0 * z]), NotImplementedError
    for call, error, words in [
        (lambda: valleys(t, constraints=ring), absent, "`minimize` with Tensors takes no constr"),
        (lambda: tg.jit(lambda a: valleys(a, bounds=[(0, 1)] * 2))(A), absent, "no bounds under"),
        (lambda: tg.jit(lambda y: fits(y, bounds=(0, 9)))(Y), absent, "no bounds under `vmap`"),
        (lambda: fits(tg.tensor(Y), nan_policy="omit"), absent, "no `nan_policy`"),
        (lambda: lib.least_squares(misfit, [1.0, 1.0], args=(t,), loss=own), absent,
         "no loss .* there are linear, soft_l1"),
        (lambda: fits(tg.tensor(Y), maxfev=3), RuntimeError, "Optimal parameters not found"),
        (lambda: lib.minimize(None, [1.0]), TypeError, "`minimize` takes a function"),
        (lambda: lib.minimize(lambda x: x[0] * t, [1.0]), ValueError, "must return a scalar"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
    slope = tg.grad(
        lambda a: lib.minimize(lambda x: np.sum((x[0] + x[1] - a[0]) ** 2), [0.0, 1.0]).fun
    )
    assert np.isnan(slope(A)).any()  # the Hessian is singular
    endless = lambda a: lib.minimize(lambda x: a[0] * x[0] ** 3, [-1.0])
    assert np.isnan(tg.jit(lambda a: endless(a).x)(A)).all()
    assert not tg.jit(lambda a: endless(a).success)(A)
