"""Minima of functions of one number: SciPy's values, and derivatives of a root of the slope."""

import numpy as np
import pytest
import scipy.optimize

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

A = 1.7


def wave(x, a):
    return x**2 - a * np.sin(x)


def valleys(x, a):
    return (x**2 - a) ** 2 + x


# Each of the module, SciPy's or ours, and of a number.
MINIMA = {
    "Brent": lambda lib, a: lib.minimize_scalar(wave, args=(a,)).x,
    "golden": lambda lib, a: lib.minimize_scalar(wave, (0.1, 2.0), args=(a,), method="golden").x,
    "three points": lambda lib, a: lib.minimize_scalar(lambda x: wave(x, a), (-3, 1.0, 2.0)).x,
    "bounded": lambda lib, a: lib.minimize_scalar(valleys, bounds=(0, 5.0), args=(a,)).x,
    "value": lambda lib, a: lib.minimize_scalar(lambda x: valleys(x, a), bounds=(0, 5.0)).fun,
    "ends of Tensors": lambda lib, a: lib.minimize_scalar(valleys, bounds=[0, 3 * a], args=a).x,
}


@pytest.mark.parametrize("name", MINIMA)
def test_values_and_derivatives(name):
    found = MINIMA[name](tg.scipy.optimize, tg.tensor(A, requires_grad=True))
    assert found.requires_grad
    np.testing.assert_allclose(found.detach(), MINIMA[name](scipy.optimize, A), rtol=1e-5)
    f, h = lambda a: MINIMA[name](tg.scipy.optimize, a), 1e-4
    refined = lambda a: tg.value_and_grad(f)(a)[0]
    slope, bend = tg.grad(f), tg.grad(tg.grad(f))
    wanted = (refined(A + h) - refined(A - h)) / (2 * h)
    np.testing.assert_allclose(slope(A), wanted, rtol=1e-6)
    np.testing.assert_allclose(bend(A), (slope(A + h) - slope(A - h)) / (2 * h), rtol=1e-6)
    for g in (f, slope, bend):
        both = np.array([1.1 * A, A])
        np.testing.assert_allclose(tg.jit(g)(A), tg.vmap(g)(both)[1], rtol=1e-7)
    np.testing.assert_allclose(tg.jit(slope)(A), slope(A), rtol=1e-9)
    np.testing.assert_allclose(tg.jit(bend)(A), bend(A), rtol=1e-9)


@pytest.mark.parametrize("a", [A, -A])
def test_minima_at_an_end_stay_there(a):
    """Of SciPy's search and of ours, which both end a little before the end."""
    found = lambda a: tg.scipy.optimize.minimize_scalar(lambda x: np.exp(a * x), bounds=(1.0, 5.0))
    end = 1.0 if a > 0 else 5.0
    for way in (lambda f: f, tg.jit, lambda f: lambda a: tg.vmap(f)(np.array([a, a]))[0]):
        np.testing.assert_allclose(way(lambda a: found(a).x)(a), end, atol=2e-5)
        assert way(tg.grad(lambda a: found(a).x))(a) == 0.0
        slope = way(tg.grad(lambda a: found(a).fun))(a)
        np.testing.assert_allclose(slope, end * np.exp(a * end), rtol=1e-3)


def test_minima_near_an_end_are_not_at_it():
    f = lambda a: tg.scipy.optimize.minimize_scalar(lambda x: (x - a) ** 2, bounds=(0.0, 5.0)).x
    for a in (1e-6, 1e-4, 4.9999):
        np.testing.assert_allclose(tg.grad(f)(a), 1.0, rtol=1e-9)
        np.testing.assert_allclose(tg.jit(f)(a), a, rtol=1e-9)


def test_of_numbers_it_is_scipys():
    found = tg.scipy.optimize.minimize_scalar(lambda x: (x - 2.0) ** 2, bounds=(0, 1))
    wanted = scipy.optimize.minimize_scalar(lambda x: (x - 2.0) ** 2, bounds=(0, 1))
    assert found.x == wanted.x
    assert found.message == wanted.message
    assert type(found.fun) is type(wanted.fun)
