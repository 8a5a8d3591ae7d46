"""What is not supported names what is nearest to it and works."""

import functools

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats

import tapegrad as tg
from tapegrad.base.nearest import NEAREST

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

A = np.array([[2.0, 0.5], [0.5, 3.0]])
SPARSE = scipy.sparse.csr_array(np.diag([1.0, 2.0]))
V = np.array([0.25, 0.5, 0.75, 0.5])
special = scipy.special
KNOTS = np.arange(4.0)
EXACT = {"rtol": 1e-11, "atol": 1e-13}


def decay(s, y):
    return -2.0 * y


# name: (the call, what is to be written instead, on arrays that both take)
INSTEAD = {
    "np.hypot.reduce": (np.hypot.reduce, lambda t: np.linalg.norm(t, axis=0)),
    "np.subtract.reduce": (np.subtract.reduce, lambda t: t[0] - np.sum(t[1:], axis=0)),
    "scipy.special.factorial": (special.factorial, lambda t: special.gamma(t + 1)),
    "scipy.special.logsumexp": (special.logsumexp, tg.scipy.special.logsumexp),
    "scipy.special.softmax": (special.softmax, tg.scipy.special.softmax),
    "scipy.special.log_softmax": (special.log_softmax, tg.scipy.special.log_softmax),
    "scipy.special.polygamma": (
        lambda t: special.polygamma(1, t), lambda t: tg.scipy.special.polygamma(1, t),
    ),
    "scipy.linalg.cosm": (
        lambda t: scipy.linalg.cosm(np.outer(t, t)),
        lambda t: tg.scipy.linalg.expm(1j * np.outer(t, t)).real,
    ),
    "scipy.linalg.sinm": (
        lambda t: scipy.linalg.sinm(np.outer(t, t)),
        lambda t: tg.scipy.linalg.expm(1j * np.outer(t, t)).imag,
    ),
    "scipy.linalg.fractional_matrix_power": (
        lambda t: scipy.linalg.fractional_matrix_power(A * t[0], 0.3),
        lambda t: tg.scipy.linalg.expm(0.3 * tg.scipy.linalg.logm(A * t[0])),
    ),
    "scipy.linalg.signm": (
        lambda t: scipy.linalg.signm(A - 8 * t[0] * np.eye(2)),
        lambda t: (A - 8 * t[0] * np.eye(2)) @ np.linalg.inv(
            tg.scipy.linalg.sqrtm((A - 8 * t[0] * np.eye(2)) @ (A - 8 * t[0] * np.eye(2)))
        ),
    ),
    "scipy.linalg.eigh_tridiagonal": (
        lambda t: scipy.linalg.eigh_tridiagonal(t, np.ones(3))[0],
        lambda t: np.linalg.eigh(np.diag(t) + np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))[0],
    ),
    "scipy.linalg.matmul_toeplitz": (
        lambda t: scipy.linalg.matmul_toeplitz(t, KNOTS),
        lambda t: tg.scipy.linalg.toeplitz(t) @ KNOTS,
    ),
    "scipy.sparse.linalg.cg": (
        lambda t: scipy.sparse.linalg.cg(SPARSE, t[:2], rtol=1e-13)[0],
        lambda t: tg.scipy.sparse.linalg.cg(SPARSE, t[:2], rtol=1e-13)[0],
    ),
    "np.polynomial.polynomial.polyval": (
        lambda t: np.polynomial.polynomial.polyval(KNOTS, t), lambda t: np.polyval(t[::-1], KNOTS),
    ),
    **{
        f"np.polynomial.{module}.{short}val": (
            lambda t, home=home, short=short: getattr(home, f"{short}val")(KNOTS, t),
            lambda t, home=home, short=short: getattr(home, f"{short}vander")(KNOTS, 3) @ t,
        )
        for module, short in (
            ("chebyshev", "cheb"), ("legendre", "leg"), ("hermite", "herm"), ("laguerre", "lag"),
            ("hermite_e", "herme"),
        )
        for home in (getattr(np.polynomial, module),)
    },
    "scipy.integrate.trapezoid": (scipy.integrate.trapezoid, tg.scipy.integrate.trapezoid),
    "np.copyto": (
        lambda t: np.full_like(np.ones((2, 4)), t), lambda t: np.broadcast_to(t, (2, 4)),
    ),
    "np.full": (lambda t: np.full((2, 4), t), lambda t: np.full((2, 4), t, like=t)),
    "scipy.signal.convolve": (
        lambda t: scipy.signal.convolve(t, t), lambda t: tg.scipy.signal.convolve(t, t),
    ),
    "scipy.signal.fftconvolve": (
        lambda t: scipy.signal.fftconvolve(t, t), lambda t: tg.scipy.signal.fftconvolve(t, t),
    ),
    "scipy.fft": (lambda t: scipy.fft.rfft(t).real, lambda t: tg.scipy.fft.rfft(t).real),
    "scipy.interpolate.interp1d": (
        lambda t: scipy.interpolate.interp1d([0, 1], [1, 3])(t),
        lambda t: np.interp(t, [0, 1], [1, 3]),
    ),
    "scipy.interpolate.CubicSpline": (
        lambda t: scipy.interpolate.CubicSpline(KNOTS, t)([0.5, 2.2]),
        lambda t: tg.scipy.interpolate.CubicSpline(KNOTS, t)([0.5, 2.2]),
    ),
    "scipy.interpolate.make_interp_spline": (
        lambda t: scipy.interpolate.make_interp_spline(KNOTS, t)([0.5, 2.2]),
        lambda t: tg.scipy.interpolate.make_interp_spline(KNOTS, t)([0.5, 2.2]),
    ),
    "scipy.integrate.solve_ivp": (
        lambda t: scipy.integrate.solve_ivp(decay, (0, 1), t, **EXACT).y[:, -1],
        lambda t: tg.scipy.integrate.solve_ivp(decay, (0, 1), t, **EXACT).y[:, -1],
    ),
    "scipy.integrate.odeint": (
        lambda t: scipy.integrate.odeint(lambda y, s: -t[0] * y, 1.0, KNOTS, **EXACT)[-1],
        lambda t: tg.scipy.integrate.odeint(lambda y, s: -t[0] * y, 1.0, KNOTS, **EXACT)[-1],
    ),
    "scipy.integrate.simpson": (
        lambda t: scipy.integrate.simpson(t, x=KNOTS),
        lambda t: tg.scipy.integrate.simpson(t, x=KNOTS),
    ),
    "scipy.integrate.cumulative_trapezoid": (
        lambda t: scipy.integrate.cumulative_trapezoid(t, KNOTS),
        lambda t: tg.scipy.integrate.cumulative_trapezoid(t, KNOTS),
    ),
    "scipy.optimize.newton": (
        lambda t: scipy.optimize.newton(lambda x: x**3 - t, np.ones(4)),
        lambda t: tg.scipy.optimize.newton(lambda x: x**3 - t, np.ones(4)),
    ),
    "scipy.optimize.curve_fit": (
        lambda t: scipy.optimize.curve_fit(lambda x, a: a * x, KNOTS, t)[0],
        lambda t: tg.scipy.optimize.curve_fit(lambda x, a: a * x, KNOTS, t)[0],
    ),
    "scipy.stats": (scipy.stats.norm.logpdf, tg.scipy.stats.norm.logpdf),
    "scipy.stats.linregress": (
        lambda t: scipy.stats.linregress(KNOTS, t)[:2], lambda t: np.polyfit(KNOTS, t, 1),
    ),
    "scipy.stats.wasserstein_distance": (
        lambda t: scipy.stats.wasserstein_distance(t, KNOTS),
        lambda t: np.mean(np.abs(np.sort(t) - np.sort(KNOTS))),
    ),
    "scipy.stats.boxcox": (
        lambda t: scipy.stats.boxcox(t, 0.3), lambda t: special.boxcox(t, 0.3),
    ),
}  # fmt: skip
OF_MATRICES = {
    "scipy.spatial.distance.cdist": (
        lambda t: scipy.spatial.distance.cdist(t, t),
        lambda t: tg.scipy.spatial.distance.cdist(t, t),
    ),
    "scipy.spatial.distance.pdist": (
        scipy.spatial.distance.pdist, tg.scipy.spatial.distance.pdist,
    ),
    "np.linalg.eig": (lambda t: np.sort(np.linalg.eig(t)[0]), lambda t: np.linalg.eigh(t)[0]),
    "np.linalg.eigvals": (lambda t: np.sort(np.linalg.eigvals(t)), np.linalg.eigvalsh),
    "scipy.linalg.expm": (scipy.linalg.expm, tg.scipy.linalg.expm),
    "scipy.linalg.inv": (scipy.linalg.inv, tg.scipy.linalg.inv),
    "scipy.linalg.det": (scipy.linalg.det, tg.scipy.linalg.det),
    "scipy.linalg.eigvals": (
        lambda t: np.sort(scipy.linalg.eigvals(t).real), np.linalg.eigvalsh,
    ),
    "scipy.linalg.cho_factor": (
        lambda t: np.tril(scipy.linalg.cho_factor(t, lower=True)[0]),
        lambda t: tg.scipy.linalg.cho_factor(t, lower=True)[0],
    ),
    "scipy.linalg.lu_factor": (
        lambda t: scipy.linalg.lu_factor(t)[0], lambda t: tg.scipy.linalg.lu_factor(t)[0],
    ),
    "scipy.sparse": (lambda t: scipy.sparse.coo_array(SPARSE).dot(t), lambda t: SPARSE @ t),
    "scipy.sparse.linalg.spsolve": (
        lambda t: scipy.sparse.linalg.spsolve(scipy.sparse.csc_array(SPARSE), t),
        lambda t: tg.scipy.sparse.linalg.spsolve(SPARSE, t),
    ),
    "scipy.linalg.solve": (
        lambda t: scipy.linalg.solve(t, np.ones(2)),
        lambda t: tg.scipy.linalg.solve(t, np.ones(2)),
    ),
    "scipy.linalg.expm_frechet": (
        lambda t: scipy.linalg.expm_frechet(t, A, compute_expm=False),
        lambda t: tg.jvp(tg.scipy.linalg.expm, (t,), (tg.tensor(A),))[1],
    ),
}  # fmt: skip


def raised(call, x):
    with pytest.raises((TypeError, RuntimeError)) as info:
        call(tg.tensor(x, requires_grad=True))
    return str(info.value)


@pytest.mark.parametrize("name", [*INSTEAD, *OF_MATRICES])
def test_what_is_named_instead_is_the_same(name):
    call, instead = (INSTEAD | OF_MATRICES)[name]
    x = V if name in INSTEAD else A
    message = raised(call, x)
    assert f"`{name}` " in message
    assert " instead" in message or "Use " in message
    t = tg.tensor(x, requires_grad=True)
    found = instead(t)
    assert found.requires_grad
    np.testing.assert_allclose(found.detach().numpy(), call(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NEAREST)
def test_names_are_those_of_functions(name):
    thing = {"np": np, "scipy": scipy}[name.split(".")[0]]
    for step in name.split(".")[1:]:
        thing = getattr(thing, step)


def test_who_made_an_array_is_named():
    assert "`np.vectorize` makes an array" in raised(np.vectorize(lambda x: 2 * x), V)
    assert "`np.frompyfunc` is not" in raised(np.frompyfunc(lambda x: 2 * x, 1, 1), V)
    assert "`np.ndenumerate` makes an array of what it is given: use `np.ndind" in raised(
        lambda t: list(np.ndenumerate(t)), V
    )
    assert "`scipy.stats` makes an array" in raised(scipy.stats.norm.logpdf, V)
    assert "makes an array" not in raised(np.asarray, V)
    assert "`scipy.special.logsumexp` makes an array of what it is given: use" in raised(
        lambda t: tg.jvp(scipy.special.logsumexp, (V,), (V,)), V
    )
    assert "makes an array" not in raised(  # SciPy called the function, and that made the array
        lambda t: scipy.integrate.quad(lambda s: float(np.asarray(t)[0]) * s, 0, 1), V
    )


ADDED = [
    ([0, 1, 0], [1.0, 2.0, 3.0]), (np.array([0, 0, 2]), 2.0), ([-1, -1], 1), (1, 1.0),
    ((np.array([0, 0]), np.array([1, 1])), [5.0, 7.0]), (np.array([True, False, True]), 1.0),
    (slice(0, 2), 1.0), ((slice(None), [0, 0]), 1.0), ((Ellipsis, [1, 1]), np.ones((3, 2))),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), ADDED)
@pytest.mark.parametrize("ufunc", [np.add, np.subtract])
def test_adding_into_a_tensor(ufunc, key, value):
    array, t = np.ones((3, 3)), tg.ones(3, 3)
    ufunc.at(array, key, value)
    ufunc.at(t, key, value)
    assert t.tolist() == array.tolist()


def test_adding_has_a_gradient():
    def f(t):
        y = np.zeros_like(t)
        np.add.at(y, [0, 0, 1], t**2)
        np.subtract.at(y, np.array([2]), t[0])
        return y

    x = np.array([1.0, 2.0, 3.0])
    expected = [[2.0, 4.0, 0.0], [0.0, 0.0, 6.0], [-1.0, 0.0, 0.0]]
    for transform in (tg.jacrev, tg.jacfwd, lambda f: tg.jit(tg.jacobian(f))):
        np.testing.assert_array_equal(transform(f)(x), expected)
    np.testing.assert_array_equal(tg.vmap(f)(x[None]), [[5.0, 9.0, -1.0]])


OF_SCIPY = {
    "signal.lfilter": lambda x: scipy.signal.lfilter([1.0, 0.5], [1.0, 0.2], x),
    "signal.correlate": lambda x: scipy.signal.correlate(x, x),
    "linalg.sqrtm": scipy.linalg.sqrtm,
    "linalg.toeplitz": scipy.linalg.toeplitz,
    "special.logsumexp": special.logsumexp,
    "special.softmax": special.softmax,
    **{
        f"{kind} {how}": functools.partial(product, scipy.sparse.dia_array(SPARSE).asformat(kind))
        for kind in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
        for how, product in {
            "A.multiply(x)": lambda A, x: A.multiply(x),
            "A**x": lambda A, x: A**x,
        }.items()
    },
}
TRANSFORMS = {
    "grad": tg.grad,
    "jacfwd": tg.jacfwd,
    "vmap": lambda f: lambda x: tg.vmap(f)(np.stack([x, x])),
    "jit": tg.jit,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", OF_SCIPY)
def test_scipys_functions_never_lose_a_derivative(name, transform):
    """What makes arrays raises in every mode; nothing comes out as a constant."""
    with pytest.raises((RuntimeError, TypeError)):
        TRANSFORMS[transform](lambda x: OF_SCIPY[name](x).sum())(A)


@pytest.mark.parametrize("transform", [tg.grad, lambda f: tg.jit(tg.grad(f))])
def test_functions_that_ask_for_numbers_are_named(transform):
    area = lambda a: scipy.integrate.quad(lambda x: a * x, 0.0, 1.0)[0]
    with pytest.raises(RuntimeError, match=r"`scipy.integrate.quad` .*`tapegrad.scipy.integrate"):
        transform(area)(2.0)
