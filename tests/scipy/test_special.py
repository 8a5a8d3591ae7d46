"""Functions of `tapegrad.scipy.special` against SciPy's, and against differences."""

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

X = np.array([0.3, 1.2, 2.7])
ORDERS = np.array([0, 1, 4])
CALLS = {
    "comb": lambda lib, x: lib.comb(x + 3, 2),
    "comb in k": lambda lib, x: lib.comb([5, 6, 7], x),
    "comb with repetition": lambda lib, x: lib.comb(x + 3, 2, repetition=True),
    "perm": lambda lib, x: lib.perm(x + 3, 2),
    "factorial": lambda lib, x: lib.factorial(x),
    "spherical_jn": lambda lib, x: lib.spherical_jn(ORDERS, x),
    "spherical_yn": lambda lib, x: lib.spherical_yn(ORDERS, x),
    "spherical_in": lambda lib, x: lib.spherical_in(ORDERS, x),
    "spherical_kn": lambda lib, x: lib.spherical_kn(ORDERS, x),
    "slope of spherical_jn": lambda lib, x: lib.spherical_jn(ORDERS, x, True),
    "slope of spherical_yn": lambda lib, x: lib.spherical_yn(ORDERS, x, True),
    "slope of spherical_in": lambda lib, x: lib.spherical_in(ORDERS, x, True),
    "slope of spherical_kn": lambda lib, x: lib.spherical_kn(ORDERS, x, True),
    "below zero": lambda lib, x: lib.spherical_jn(ORDERS, -x) + lib.spherical_yn(2, -1 - x),
    "ellipj": lambda lib, x: sum(lib.ellipj(x, 0.3)),
    "airy": lambda lib, x: sum(lib.airy(x)),
    "shichi": lambda lib, x: sum(lib.shichi(x)),
    "bdtr": lambda lib, x: lib.bdtr(2, 5, x / 3) * lib.bdtrc(ORDERS, 5, x / 3),
    "nbdtr": lambda lib, x: lib.nbdtr(2, 5, x / 3) * lib.nbdtrc(ORDERS, 5, x / 3),
    "bdtri": lambda lib, x: lib.bdtri(2, 5, x / 3),
    "nbdtri": lambda lib, x: lib.nbdtri(2, 5, x / 3),
    "pdtri": lambda lib, x: lib.pdtri(2, x / 3),
    "gdtrix": lambda lib, x: lib.gdtrix(0.7, 1.4, x / 3),
    "hankel1": lambda lib, x: lib.hankel1(1.5, x).real + lib.hankel1(2, x).imag,
    "hankel2": lambda lib, x: lib.hankel2(1, x).real + lib.h2vp(2, x).imag,
    "wofz": lambda lib, x: lib.wofz(x).real + lib.wofz(x - 0.4j * x).imag,
    "jvp": lambda lib, x: lib.jvp(2.5, x, 2) + lib.kvp(1, x),
    "softplus": lambda lib, x: lib.softplus(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_scipy(name):
    call = lambda x: CALLS[name](tg.scipy.special, x)
    t = tg.tensor(X, requires_grad=True)
    np.testing.assert_allclose(call(t).detach(), CALLS[name](scipy.special, X), rtol=1e-12)
    assert gradcheck(call, (t,))
    assert gradgradcheck(call, (t,))
    slope = tg.grad(lambda x: np.sum(np.sin(call(x))))
    np.testing.assert_allclose(tg.jit(slope)(X), slope(X), rtol=1e-10)
    np.testing.assert_allclose(tg.vmap(slope)(np.stack([X, X]))[1], slope(X), rtol=1e-10)
    assert call(tg.tensor(X, dtype=tg.float32)).dtype == tg.float32


def test_numbers_of_choices_that_there_are_not():
    n, k = [-1.0, 2.0, 3.0, 3.0], [1.0, 3.0, -1.0, 2.0]
    for name in ("comb", "perm"):
        f = getattr(tg.scipy.special, name)
        t = tg.tensor(n, requires_grad=True)
        np.testing.assert_allclose(f(t, k).detach(), getattr(scipy.special, name)(n, k), rtol=1e-14)
        f(t, k).sum().backward()
        assert t.grad[:3].tolist() == [0.0, 0.0, 0.0]
    t = tg.tensor([-2.0, -0.5, 0.0, 3.0], requires_grad=True)
    tg.scipy.special.factorial(t).sum().backward()
    assert t.grad[:2].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(t.grad[2], scipy.special.digamma(1.0), rtol=1e-14)


def test_counts_are_not_exact():
    t = tg.tensor(4)
    for call, option in [
        (lambda: tg.scipy.special.comb(t, 2, exact=True), "exact"),
        (lambda: tg.scipy.special.perm(t, 2, exact=True), "exact"),
        (lambda: tg.scipy.special.factorial(t, exact=True), "exact"),
        (lambda: tg.scipy.special.factorial(t, extend="complex"), "extend"),
    ]:
        with pytest.raises(TypeError, match=f"`{option}=` is not supported"):
            call()
    assert tg.scipy.special.comb(50, 25, exact=True) == 126410606437752  # SciPy's own


@pytest.mark.parametrize("m", [0.2, 0.9, 1 - 1e-9])
def test_elliptic_functions_of_jacobi_in_their_parameter(m):
    """Where m is near 1 sn and cn are nearly hyperbolic, and nothing may cancel."""
    u = np.array([-1.3, 0.0, 0.7, 2.0])
    found, wanted = tg.scipy.special.ellipj(tg.tensor(u), m), scipy.special.ellipj(u, m)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-14)
    if m < 0.95:
        given = [tg.tensor(v, requires_grad=True) for v in (u, m)]
        assert gradcheck(lambda u, m: sum(scipy.special.ellipj(u, m)), given)


def test_faddeevas_function_of_complex_numbers():
    z = np.array([0.3 + 1j, -2 - 0.5j, 5 + 0.001j, 0.1 - 2j])
    t = tg.tensor(z, requires_grad=True)
    found = scipy.special.wofz(t)
    np.testing.assert_allclose(found.detach(), scipy.special.wofz(z), rtol=1e-13)
    assert gradcheck(scipy.special.wofz, (t,))
    assert gradgradcheck(scipy.special.wofz, (t,))
    slope = tg.grad(lambda x: np.sum(scipy.special.wofz(x).imag))(np.zeros(1))
    np.testing.assert_allclose(slope, 2 / np.sqrt(np.pi), rtol=1e-14)


def test_slopes_at_zero():
    slopes = [tg.grad(lambda x, n=n: tg.scipy.special.spherical_jn(n, x))(0.0) for n in range(3)]
    assert slopes == [0.0, 1 / 3, 0.0]
    assert tg.grad(lambda x: scipy.special.shichi(x)[0])(0.0) == 1.0
    assert tg.grad(lambda r: scipy.special.huber(1.0, r))(0.0) == 0.0


def test_distributions_far_out():
    """Where a distribution function is rounded to 0 or 1, its density is not."""
    for f, x, density in [
        (lambda x: scipy.special.chdtrc(2.0, x), 300.0, -0.5 * np.exp(-150.0)),
        (lambda x: scipy.special.gdtr(1.0, 1.0, x), 100.0, np.exp(-100.0)),
        (lambda m: scipy.special.pdtr(0, m), 200.0, -np.exp(-200.0)),
        (lambda p: scipy.special.bdtr(5, 5, p), 0.3, 0.0),
        (lambda p: scipy.special.bdtrc(0, 20, p), 0.75, 20 * 0.25**19),
    ]:
        np.testing.assert_allclose(tg.grad(f)(x), density, rtol=1e-12)
