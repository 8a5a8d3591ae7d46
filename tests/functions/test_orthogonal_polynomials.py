"""Orthogonal polynomials and their derivatives against NumPy's polynomials of the same families."""

from functools import partial

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch has no derivatives of them")

NUMPYS = {
    "chebyshev_polynomial_t": np.polynomial.Chebyshev,
    "hermite_polynomial_h": np.polynomial.Hermite,
    "hermite_polynomial_he": np.polynomial.HermiteE,
    "laguerre_polynomial_l": np.polynomial.Laguerre,
    "legendre_polynomial_p": np.polynomial.Legendre,
}
X = np.array([-1.5, -1.0, -0.3, 0.0, 0.8, 1.0, 2.0])
MORE = [f"{shift}chebyshev_polynomial_{k}" for k in "uvw" for shift in ("", "shifted_")]


@pytest.mark.parametrize("name", NUMPYS)
def test_derivatives_of_every_order(name):
    for degree in range(7):
        exact = NUMPYS[name].basis(degree)
        x = tg.tensor(X, requires_grad=True)
        value = getattr(tg.special, name)(x, degree)
        for order in range(4):
            wanted = exact.deriv(order)(X) if order else exact(X)
            np.testing.assert_allclose(value.detach().numpy(), wanted, rtol=1e-12, atol=1e-11)
            (value,) = tg.autograd.grad(value.sum(), x, create_graph=True)


@pytest.mark.parametrize("name", MORE)
def test_other_chebyshev_polynomials_are_differentiated(name):
    """They are polynomials: those that fit their values have the derivatives."""
    for degree in range(6):
        function = partial(getattr(tg.special, name), n=degree)
        exact = np.polynomial.Polynomial.fit(X, function(tg.tensor(X)).numpy(), degree)
        slopes, bends = (tg.vmap(g(function))(X) for g in (tg.grad, tg.hessian))
        np.testing.assert_allclose(slopes, exact.deriv()(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(bends, exact.deriv(2)(X), rtol=1e-7, atol=1e-7)


def test_degrees_differ_by_element_and_have_no_derivative():
    x, n = tg.tensor([0.5, 0.5, 0.5]), tg.tensor([2.0, -1.0, 3.9], requires_grad=True)
    found = tg.special.legendre_polynomial_p(x, n)
    assert not found.requires_grad
    np.testing.assert_allclose(found.numpy(), [-0.125, 0.0, -0.4375])


def test_float32_stays_float32_under_jit():
    x = np.array([0.5, 2.0], np.float32)
    for name in NUMPYS:
        f = getattr(tg.special, name)
        for g in (f, tg.jit(f, static_argnums=1)):
            found = g(tg.tensor(x), 4)
            assert found.dtype is tg.float32
            np.testing.assert_allclose(found.numpy(), f(tg.tensor(x).double(), 4), rtol=1e-5)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"`legendre_polynomial_p` takes a Tensor as `input`, or"):
        tg.special.legendre_polynomial_p(0.5, 2)
