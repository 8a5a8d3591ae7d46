"""`compat.autograd.scipy` against autograd, against SciPy's own values and against differences."""

import importlib

import numpy as np
import pytest
import scipy

import tapegrad as tg
import tapegrad.compat.autograd as ours

peer = pytest.importorskip("autograd", reason="compares with HIPS autograd: `make peers`")

pytestmark = [
    pytest.mark.peer,
    pytest.mark.tapegrad_only("runs both libraries itself"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Output seems independent"),
]

PARTS = ("special", "linalg", "signal", "integrate", "stats")


def library(name):
    return {part: importlib.import_module(f"{name}.scipy.{part}") for part in PARTS}


anp = importlib.import_module("autograd.numpy")
PEER, OURS = library("autograd"), library("tapegrad.compat.autograd")
rng = np.random.RandomState(0)
P, Q, U, Z = np.abs(rng.randn(4)) + 0.5, np.abs(rng.randn(4)) + 1.1, rng.rand(4), rng.randn(4)
COV = np.eye(3) * 2.0 + 0.1
M = rng.randn(4, 4)
SPD = M @ M.T + 4.0 * np.eye(4)
BANDED = rng.randn(4, 6) + np.array([0.0, 0.0, 6.0, 0.0])[:, None]

# The part, the name, the arguments, those that are differentiated in.
CASES = [
    *[("special", name, (P,), (0,)) for name in (
        "gamma", "rgamma", "gammaln", "psi", "digamma", "j0", "j1", "y0", "y1", "i0", "i1", "erf",
        "erfc", "expit",
    )],
    *[("special", name, (0.9 * U + 0.05,), (0,)) for name in ("erfinv", "erfcinv", "logit")],
    *[("special", name, (P, Q), (0, 1)) for name in ("beta", "betaln")],
    *[("special", name, (P, Q), (1,)) for name in ("gammainc", "gammaincc")],
    *[("special", name, (2, P), (1,)) for name in ("jn", "yn", "iv", "ive", "polygamma")],
    ("special", "betainc", (P, Q, U), (2,)), ("special", "multigammaln", (Q + 3.0, 3), (0,)),
    *[("stats", "beta." + name, (U, P, Q), (0, 1, 2)) for name in ("pdf", "logpdf")],
    *[("stats", "gamma." + name, (P, Q), (0, 1)) for name in ("pdf", "logpdf")],
    *[("stats", "chi2." + name, (P, np.arange(1.0, 5.0)), (0,))
      for name in ("pdf", "logpdf", "cdf")],
    *[("stats", "t." + name, (Z, Q, -Z, P), (0, 1, 2, 3)) for name in ("pdf", "logpdf")],
    *[("stats", "t." + name, (Z, Q, -Z, P), (0, 2)) for name in ("cdf", "logcdf")],
    *[("stats", "poisson." + name, (np.round(Q**3), P[:, None]), (1,))
      for name in ("cdf", "pmf", "logpmf")],
    *[("stats", "dirichlet." + name, (np.array([0.2, 0.3, 0.5]), np.array([1.2, 2.0, 3.0])), (0, 1))
      for name in ("pdf", "logpdf")],
    *[("stats", "multivariate_normal." + name, (x, Z[:3], COV), (0, 1, 2))
      for name in ("pdf", "logpdf") for x in (P[:3], rng.randn(5, 3))],
    ("stats", "multivariate_normal.entropy", (Z[:3], COV), (1,)),
    ("stats", "beta.cdf", (U, P, Q), (0,)), ("stats", "gamma.cdf", (P, Q), (0,)),
    ("linalg", "sqrtm", (SPD,), (0,)),
    ("linalg", "solve_sylvester", (SPD, M[:3, :3] + 5.0 * np.eye(3), M[:, :3]), (0, 1, 2)),
    *[("linalg", "solve_triangular", (half(M) + 4.0 * np.eye(4), b, trans, half is np.tril), (0, 1))
      for half in (np.triu, np.tril) for b in (Z, M[:, :2]) for trans in (0, "T")],
    ("linalg", "solve_banded", ((1, 2), BANDED, rng.randn(6)), (1, 2)),
    *[("signal", "convolve", (a, b, None, ((), ()), mode), (0, 1))
      for mode in ("full", "valid", "same") for a, b in ((rng.randn(6), Z[:3]), (M, M[:2, :3]))],
    ("signal", "convolve", (Z[:2], rng.randn(5), None, ((), ()), "valid"), (0, 1)),
    *[("signal", "convolve",
       (rng.randn(2, 6, 3, 7), rng.randn(2, 3, 4, 5), ((1, 3), (1, 2)), ((0,), (0,)), mode), (0, 1))
      for mode in ("full", "valid", "same")],
]  # fmt: skip


def found_in(parts, part, name):
    f = parts[part]
    for step in name.split("."):
        f = getattr(f, step)
    return f


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{c[0]}.{c[1]}" for c in CASES])
def test_values_and_gradients_are_autograds(case):
    part, name, args, chosen = CASES[case]
    f, theirs = found_in(OURS, part, name), found_in(PEER, part, name)
    np.testing.assert_allclose(f(*args), theirs(*args), rtol=1e-11, atol=1e-14)
    if name == "convolve" and np.ndim(args[0]) == 2 and args[-1] == "valid":
        chosen = ()  # autograd recurses without end
    for k in chosen:
        value, g = ours.value_and_grad(lambda *a: np.sum(np.sin(f(*a))), k)(*args)
        expected = peer.grad(lambda *a: anp.sum(anp.sin(theirs(*a))), k)(*args)
        np.testing.assert_allclose(value, np.sum(np.sin(theirs(*args))), rtol=1e-9)
        np.testing.assert_allclose(g, expected, rtol=1e-7, atol=1e-9)


# SciPy refuses what does not sum up to 1, and reads one half of a covariance: see below.
FREE = [c for c in CASES if not c[1].startswith(("multivariate_normal", "dirichlet"))]


@pytest.mark.parametrize("case", FREE, ids=[f"{c[0]}.{c[1]}" for c in FREE])
def test_derivatives_of_both_orders_agree_with_differences(case):
    part, name, args, chosen = case
    f = found_in(OURS, part, name)
    for k in chosen:
        of_one = lambda x, k=k: f(*args[:k], x, *args[k + 1 :])
        tg.check_grads(of_one, (np.array(args[k]),), order=2, modes=("rev",), atol=1e-5)
        tg.check_grads(of_one, (np.array(args[k]),), order=1, modes=("fwd",), atol=1e-5)


def test_a_covariance_gets_the_gradient_of_a_symmetric_matrix():
    mvn = OURS["stats"].multivariate_normal
    half = lambda c: mvn.logpdf(P[:3], Z[:3], 0.5 * (c + c.T))
    tg.check_grads(half, (COV,), order=2)
    with pytest.raises(NotImplementedError, match="no derivative in the covariance"):
        tg.grad(lambda c: mvn.logpdf(P[:3], Z[:3], c, allow_singular=True))(COV)


def test_a_singular_covariance():
    cov = np.diag([1.0, 2.0, 0.0])
    x, mean = np.array([0.5, 0.2, 0.0]), np.array([0.1, -0.3, 0.0])
    mvn = OURS["stats"].multivariate_normal
    f = lambda x: mvn.logpdf(x, mean, cov, allow_singular=True)
    value, g = tg.value_and_grad(f)(x)
    assert value == pytest.approx(scipy.stats.multivariate_normal(mean, cov, True).logpdf(x))
    np.testing.assert_allclose(g, -(x - mean) / np.array([1.0, 2.0, np.inf]))


FUNCTIONS = ("pdf", "logpdf", "cdf", "logcdf")


@pytest.mark.parametrize("name", ["beta", "gamma", "chi2", "t"])
def test_distributions_with_a_location_and_a_scale(name):
    shapes = {"beta": (2.5, 3.5), "gamma": (2.5,), "chi2": (5.0,), "t": (4.0,)}[name]
    d, scipys = getattr(OURS["stats"], name), getattr(scipy.stats, name)
    x = np.array([-3.0, 0.1, 0.4, 0.9, 8.0])
    for mine, theirs in [(getattr(d, f), getattr(scipys, f)) for f in FUNCTIONS]:
        values = tg.vjp(lambda x, mine=mine: mine(x, *shapes, 0.05, scale=1.5), x)[0]
        np.testing.assert_allclose(values, theirs(x, *shapes, 0.05, scale=1.5), rtol=1e-10)
        inside = x[1:4]
        for along in (inside, 0.05, 1.5):
            given = [inside, 0.05, 1.5]
            k = next(i for i, v in enumerate(given) if v is along)

            def f_along(v, k=k, mine=mine, given=given):
                now = [v if i == k else g for i, g in enumerate(given)]
                return mine(now[0], *shapes, now[1], now[2])

            tg.check_grads(f_along, (along,), order=2, modes=("rev",), atol=1e-5)
    in_shape = lambda a: np.sum(d.cdf(x, a, *shapes[1:]))
    tg.check_grads(in_shape, (shapes[0],), order=1, modes=("rev",), atol=1e-5)


def test_odeint():
    integrate = OURS["integrate"]
    options = {"rtol": 1e-10, "atol": 1e-10}

    def field(y, t, w, more):
        return -w * np.sin(y) + t * y[::-1] * more["a"]

    def f(y0, t, w, a):
        y = integrate.odeint(field, y0, t, (w, {"a": a}), **options)
        return np.sum(np.sin(y) * np.arange(8.0).reshape(4, 2))

    args = Z[:2], np.linspace(0.1, 1.0, 4), np.array([0.5, 1.5]), 0.3
    for k in range(4):
        of_one = lambda x, k=k: f(*args[:k], x, *args[k + 1 :])
        tg.check_grads(of_one, (args[k],), order=1, modes=("rev",), atol=1e-5)
    second = lambda w: np.sum(tg.grad(f, 2)(args[0], args[1], w, 0.3))
    tg.check_grads(second, (args[2],), order=1, modes=("rev",), atol=1e-5)


def test_fixed_points():
    fixed_point = importlib.import_module("tapegrad.compat.autograd.misc.fixed_points").fixed_point
    newton = lambda a: lambda x: (x + a / x) / 2.0
    distance = lambda x, y: np.max(np.abs(x - y))
    root = lambda a: fixed_point(newton, a, np.ones(2), distance, 1e-13)
    a = np.array([2.0, 9.0])
    np.testing.assert_allclose(root(a), np.sqrt(a))
    np.testing.assert_allclose(ours.jacobian(root)(a), np.diag(0.5 / np.sqrt(a)), atol=1e-12)


def test_what_a_wrong_call_of_convolve_says():
    convolve = OURS["signal"].convolve
    with pytest.raises(ValueError, match="the mode is one of full, same, valid, got 'half'"):
        convolve(Z, Z, mode="half")
    with pytest.raises(ValueError, match=r"at least as long as the other.* \(4, 4\) and \(2, 5\)"):
        convolve(M, np.ones((2, 5)), mode="valid")
