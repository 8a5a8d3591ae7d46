"""Special functions and their derivatives against exact arithmetic, where formulas change over."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.ops.families import table

pytestmark = pytest.mark.tapegrad_only("PyTorch's own derivatives are less exact, or missing")

ORDERS = 4


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


# The function, where it is taken, and the error allowed at each order, in units of 1e-16 of the
# derivative: a quotient by x, or a difference of neighbours, loses a little at each.
EXACT = {
    "sinc": (mp.sincpi, [0.0, 1e-8, -0.1, 0.2499, 0.2501, 0.7, 3.3], (20, 20, 100, 1000)),
    "i0": (lambda x: mp.besseli(0, x), [0.0, 1e-8, -0.1, 0.4999, 0.5001, 2.0, 30.0],
           (20, 20, 50, 200)),
    "i1": (lambda x: mp.besseli(1, x), [0.0, 1e-8, -0.1, 0.4999, 0.5001, 2.0, 30.0],
           (20, 50, 200, 3000)),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [1e-8, -0.1, 0.4999, 0.5001, 2.0],
            (20, 50, 100, 200)),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [1e-8, -0.1, 0.4999, 0.5001, 2.0],
            (100, 200, 200, 500)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [0.0, -3.0, 1.0, 12.1, 1e3, 1e6],
              (20, 20, 20, 50)),
    "ndtr": (normal, [0.0, -5.0, 1.0, 5.0], (20, 20, 20, 20)),
    "log_ndtr": (lambda x: mp.log(normal(x)), [0.0, -0.99, -1.01, -5.0, -17.1, 2.0, 8.0],
                 (20, 50, 2e4, 2e5)),
    "erfinv": (mp.erfinv, [0.0, 0.3, -0.9999], (100, 200, 300, 500)),
    "lgamma": (mp.loggamma, [0.1, 1.5, 30.0], (20, 20, 20, 20)),
    "digamma": (mp.digamma, [0.1, 1.5, 30.0], (20, 20, 20, 20)),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [0.5, 0.3, 0.9999], (50, 100, 200, 500)),
    "bessel_j0": (mp.j0, [0.0, 1e-8, -0.1, 0.4999, 0.5001, 2.0, 30.0], (20, 20, 50, 200)),
    "bessel_j1": (mp.j1, [0.0, 1e-8, -0.1, 0.4999, 0.5001, 2.0, 30.0], (20, 50, 200, 3000)),
    "spherical_bessel_j0": (mp.sinc, [0.0, 1e-8, -0.1, 0.7499, 0.7501, 3.3], (20, 20, 100, 1000)),
    "airy_ai": (mp.airyai, [0.0, -5.0, -2.5, 0.3, 4.0], (20, 20, 50, 100)),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_derivatives_of_every_order(name):
    function, points, allowed = EXACT[name]
    for at in points:
        x = tg.tensor(at, requires_grad=True)
        value = table[name](x)
        for order in range(1, ORDERS + 1):
            (value,) = tg.autograd.grad(value, x, create_graph=True)
            with mp.workdps(120):
                exact = float(mp.diff(function, mp.mpf(at), order, h=mp.mpf(10) ** -20))
            error = abs(value.item() - exact) / max(abs(exact), 1e-10)
            assert error <= allowed[order - 1] * 1e-16, (at, order, value.item(), exact)


@pytest.mark.parametrize(
    "name", ["bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"]
)
def test_derivatives_of_bessel_functions_of_the_second_kind(name):
    derivative = scipy.special.yvp if "_y" in name else scipy.special.kvp
    x = tg.tensor([0.1, 2.0, 30.0], requires_grad=True)
    value = table[name](x)
    for order in range(1, ORDERS + 1):
        (value,) = tg.autograd.grad(value.sum(), x, create_graph=True)
        exact = derivative(int(name[-1]), x.detach().numpy(), order)
        np.testing.assert_allclose(value.detach().numpy(), exact, rtol=1e-12)


@pytest.mark.parametrize("at", [-40.0, -1e3, -1e6, -1e12])
def test_the_normal_distribution_far_to_the_left(at):
    """Its logarithm falls like -x * x / 2: the slope is -x, its own slope -1."""
    x = tg.tensor(at, requires_grad=True)
    (first,) = tg.autograd.grad(tg.special.log_ndtr(x), x, create_graph=True)
    (second,) = tg.autograd.grad(first, x)
    with mp.workdps(60):
        z = mp.mpf(at)
        series = 1 - 1 / z**2 + 3 / z**4 - 15 / z**6 + 105 / z**8 - 945 / z**10 + 10395 / z**12
        slope = -z / series
    assert first.item() == pytest.approx(float(slope), rel=1e-12)
    assert second.item() == pytest.approx(float(-slope * (z + slope)), rel=1e-9)


def test_orders_of_polygamma_follow_each_other():
    x = tg.tensor([0.3, 2.5], requires_grad=True)
    value = tg.lgamma(x)
    for n in range(6):
        (value,) = tg.autograd.grad(value.sum(), x, create_graph=True)
        expected = tg.polygamma(n, x)
        np.testing.assert_allclose(value.detach().numpy(), expected.detach().numpy(), rtol=1e-14)


def test_trigamma_is_exact():
    found = tg.polygamma(1, tg.tensor([1.0, 0.5])).numpy()
    np.testing.assert_allclose(found, [np.pi**2 / 6, np.pi**2 / 2], rtol=1e-15)


def test_orders_are_whole_numbers():
    x = tg.tensor(1.0)
    with pytest.raises(TypeError, match="`polygamma`: the order is an int, got float"):
        tg.polygamma(1.5, x)
    with pytest.raises(RuntimeError, match="order must not be negative, got -1"):
        x.polygamma(-1)


def test_float16_stays_float16():
    x = tg.tensor([0.25, 0.5], dtype=tg.float16)
    for function in (tg.erf, tg.lgamma, tg.logit, tg.special.i1e, tg.sinc):
        assert function(x).dtype is tg.float16
    found = tg.lgamma(x).to(tg.float64).numpy()
    np.testing.assert_allclose(found, tg.lgamma(x.double()).numpy(), rtol=1e-3)
    assert tg.xlogy(x, x).dtype is tg.polygamma(1, x).dtype is tg.float16


def test_large_arrays_are_split_over_threads():
    before = tg.get_num_threads()
    a = np.linspace(0.1, 3.0, (1 << 17) + 5)
    found = []
    try:
        for threads in (1, 2):
            tg.set_num_threads(threads)
            x = tg.from_numpy(a).requires_grad_()
            y = tg.lgamma(x)
            y.sum().backward()
            found.append((y.detach().numpy(), x.grad.numpy()))
    finally:
        tg.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_lgamma_of_minus_infinity_is_infinite(dtype):
    """As in PyTorch, whatever loop computes it; SciPy says -inf."""
    for x in (np.full(n, -np.inf, dtype) for n in (1, 50, 20_000)):
        assert (tg.lgamma(tg.tensor(x)).numpy() == np.inf).all()
        assert (tg.tensor(x).lgamma_().numpy() == np.inf).all()
        if dtype != np.float16:
            assert (tg.jit(tg.lgamma)(tg.tensor(x)).numpy() == np.inf).all()


def test_a_derivative_that_reads_lgamma_of_integers():
    slopes = tg.grad(lambda x: tg.igamma(tg.tensor([1, 3]), x).sum())(np.array([0.5, 2.0]))
    np.testing.assert_allclose(slopes, [np.exp(-0.5), 2 * np.exp(-2.0)], rtol=1e-14)


def test_integers_have_no_decimals():
    with pytest.raises(RuntimeError, match=r"`round`: integers have no decimals, got decimals=1"):
        tg.round(tg.tensor([1]), decimals=1)


def test_a_derivative_that_is_missing_is_an_error():
    """Asked for in any way; that in the other argument is there."""
    a, x = tg.tensor(2.5, requires_grad=True), tg.tensor(0.7, requires_grad=True)
    (found,) = tg.autograd.grad(tg.special.zeta(a, x), x)
    expected = tg.grad(lambda x: tg.special.zeta(2.5, x))(0.7)
    assert found.item() == pytest.approx(expected, rel=1e-14)
    for transform in (tg.grad, tg.jacfwd, lambda f: tg.jit(tg.grad(f))):
        with pytest.raises(NotImplementedError, match="has no derivative in its first argum"):
            transform(lambda a: tg.special.zeta(a, 0.7))(2.5)


def test_the_density_of_the_gamma_distribution_at_its_ends():
    slopes = tg.grad(lambda x: tg.igamma(tg.tensor([0.5, 1.0, 2.0, 1.0]), x).sum())
    np.testing.assert_array_equal(slopes(np.array([0.0, 0.0, 0.0, np.inf])), [np.inf, 1, 0, 0])


def test_mvlgamma_takes_a_dimension():
    x = tg.tensor([2.5, 3.0])
    with pytest.raises(RuntimeError, match="`mvlgamma` needs p of at least 1, got 0"):
        x.mvlgamma(0)
    with pytest.raises(TypeError, match="`mvlgamma`: p is an int, got float"):
        tg.mvlgamma(x, 2.0)
    with pytest.raises(RuntimeError, match=r"`mvlgamma_`: floating-point numbers do not fit into"):
        tg.tensor([3]).mvlgamma_(2)
