"""Derivatives of incomplete integrals in their parameters, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from tapegrad.ops.incomplete import beta_logit_slope_a, beta_logit_slope_b, gamma_log_slope

pytestmark = pytest.mark.tapegrad_only("PyTorch has no derivative in a parameter")

RNG = np.random.default_rng(3)


def between(low, high, n):
    return 10 ** RNG.uniform(low, high, n)


def spread(median, width, n):
    """Numbers around the median, some far from it."""
    return median * np.exp(RNG.normal(size=n) * np.minimum(width, 3.0))


def exact(f, parameter):
    with mp.workdps(40):
        return float(mp.diff(f, mp.mpf(parameter)))


def student(df, t):
    low = mp.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
    return low if t < 0 else 1 - low


N = 12
A, B = between(-1.5, 2.0, N), between(-1.5, 2.0, N)
X = spread(A, 2 / np.sqrt(A), N)
Z = 1 / (1 + spread(B / A, 2 / np.sqrt(A), N))
M, PHI = RNG.uniform(-3.0, 0.99, N), RNG.normal(size=N) * 3
T = RNG.standard_t(3, N)
# name: (function, mpmath's, the parameter, what else it takes)
CASES = {
    "igamma": (tg.igamma, lambda a, x: mp.gammainc(a, 0, x, regularized=True), A, (X,)),
    "igammac": (tg.igammac, lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), A, (X,)),
    "betainc, a": (
        scipy.special.betainc, lambda a, b, z: mp.betainc(a, b, 0, z, regularized=True), A, (B, Z)),
    "betainc, b": (
        lambda b, a, z: scipy.special.betainc(a, b, z),
        lambda b, a, z: mp.betainc(a, b, 0, z, regularized=True), B, (A, Z)),
    "betaincc, a": (
        scipy.special.betaincc, lambda a, b, z: mp.betainc(a, b, z, 1, regularized=True), A, (B, Z)
    ),
    "stdtr": (scipy.special.stdtr, student, A + 0.5, (T,)),
    "ellipkinc": (lambda m, p: scipy.special.ellipkinc(p, m), lambda m, p: mp.ellipf(p, m), M,
                  (PHI,)),
    "ellipeinc": (lambda m, p: scipy.special.ellipeinc(p, m), lambda m, p: mp.ellipe(p, m), M,
                  (PHI,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_in_a_parameter_are_exact(name):
    function, reference, parameter, rest = CASES[name]
    found = tg.grad(lambda p: function(p, *rest).sum())(parameter)
    points = zip(parameter, *rest, strict=True)
    expected = [exact(lambda v, r=r: reference(v, *r), p) for p, *r in points]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_they_are_the_same_in_every_mode(name):
    function, _, parameter, rest = CASES[name]

    def value(p):
        return function(p, *rest)

    expected = tg.grad(lambda p: value(p).sum())(parameter)
    (tangent,) = tg.jvp(lambda p: (value(p),), (parameter,), (np.ones(N),))[1]
    one = tg.vmap(tg.grad(function))(parameter, *rest)
    jitted = tg.jit(tg.grad(lambda p: value(p).sum()))(parameter)
    for found in (tangent, one, jitted):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


# (a, x) and (a, b, x), and how the quantile moves: large, small and far apart parameters.
# Computed by mpmath with 40 digits, as the integrals of the module's docstring.
GAMMA = [
    (0.004146201837058969, 1.1104030134584526, 134.73124528905137),
    (0.008244615538660864, 0.0006789892192331178, 817.0633518978848),
    (0.05037739832375957, 0.00142028521639881, 120.47304770354796),
    (0.2076159659358375, 0.023030852440883924, 17.218459631869724),
    (0.6417556715331241, 0.0007767377251076807, 11.414706767646933),
    (2.6356112094047974, 0.003547846324257298, 2.5782646114936543),
    (40.00090214170552, 47.159594697820985, 0.023093972308094894),
    (85.64933934425085, 81.46620900164186, 0.011993585361170862),
    (394.1790137740127, 390.26437833081906, 0.002550677945044055),
    (2270.1239222830654, 2222.388535369084, 0.00044523462909611323),
    (7423.251287800845, 6040.364649026972, 0.00014907757002002511),
    (17003.496521503737, 17046.156298642676, 5.873835662739e-05),
    (90464.355382633, 90543.04911498938, 1.1049292796917058e-05),
    (288916.29829767614, 288756.33272564, 3.4621706091823654e-06),
]
BETA = [
    (0.025634257346629545, 522.6676425897367, 0.3950917083579676, 0.21671162167984875),
    (0.05394967415955094, 4.417338741055694, 0.744380726347399, 5.800670178034115),
    (0.11778425475926614, 5012.6087357276065, 5.509464653097066e-05, 11.965192558983645),
    (0.19429257336598574, 136.72368290563077, 0.0002710371948243109, 16.07149687558576),
    (1.1314439509112049, 0.15403891928825247, 0.9483728203590144, 1.2866631875230339),
    (2.496547643986297, 55.2323590486693, 0.01574103797733257, 0.6807522334610842),
    (10.200953299344476, 0.7311350858576671, 0.6953021060918184, 0.11834012326229063),
    (42.204551264415834, 0.01199367896081906, 0.9996007779424375, 0.023978370684300455),
    (68.35083937177701, 335.27269828366065, 0.31259564710117127, 0.010637323861017161),
    (239.4789499569084, 1.1671133076522304, 0.9996991253199197, 0.004174906270223653),
    (1062.2332394748403, 2177.574085468547, 0.2940763601682844, 0.0009937975306116885),
    (1790.1477903797213, 15.04870867450102, 0.9902997618818167, 0.0005591528577081385),
    (4117.281559255559, 363.24168315547297, 0.7676522699834736, 0.00026540629081953137),
    (8596.698370210066, 2229.69964710223, 0.7482242750812449, 0.00011982126965794263),
    (16970.264313811807, 10402.66832684257, 0.6289777674999042, 5.850368049972482e-05),
    (27532.184332726065, 0.5254341967941621, 0.9999151810510257, 3.632298180225021e-05),
]


@pytest.mark.parametrize(("a", "x", "expected"), GAMMA)
def test_quantiles_of_the_gamma_distribution(a, x, expected):
    assert float(gamma_log_slope.forward(a, x)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("a", "b", "x", "expected"), BETA)
def test_quantiles_of_the_beta_distribution(a, b, x, expected):
    assert float(beta_logit_slope_a.forward(a, b, x)) == pytest.approx(expected, rel=1e-12)
    mirrored = beta_logit_slope_b.forward(b, a, 1 - x)
    assert float(mirrored) == pytest.approx(-expected, rel=1e-9)  # 1 - x is rounded


@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv", "betaincinv", "betainccinv"])
def test_inverses_undo_their_functions(name):
    """The derivative of f(a, f's inverse(a, q)) in a is 0."""
    inverse = getattr(scipy.special, name)
    f = getattr(scipy.special, name.removesuffix("inv"))
    shapes = (A[:4], B[:4])[: 1 + ("beta" in name)]
    q = tg.tensor(RNG.uniform(0.1, 0.9, 4))
    for k in range(len(shapes)):
        slopes = tg.grad(lambda *s: f(*s, inverse(*s, q)).sum(), argnums=k)(*shapes)
        np.testing.assert_allclose(slopes, np.zeros(4), atol=1e-12)


def test_mixed_second_derivatives():
    slope = tg.grad(lambda x: tg.grad(lambda a: tg.igamma(a, x))(2.5))(1.5)
    other = tg.grad(lambda a: tg.grad(lambda x: tg.igamma(a, x))(1.5))(2.5)
    assert slope == pytest.approx(other, rel=1e-13)
    for k in range(2):
        slope = tg.grad(lambda x, k=k: tg.grad(scipy.special.betainc, argnums=k)(2.5, 0.7, x))(0.3)
        other = tg.grad(
            lambda *ab: tg.grad(lambda x: scipy.special.betainc(*ab, x))(0.3), argnums=k
        )(2.5, 0.7)
        assert slope == pytest.approx(other, rel=1e-12)
    slope = tg.grad(lambda t: tg.grad(lambda n: scipy.special.stdtr(n, t))(2.5))(0.3)
    other = tg.grad(lambda n: tg.grad(lambda t: scipy.special.stdtr(n, t))(0.3))(2.5)
    assert slope == pytest.approx(other, rel=1e-12)


def test_the_second_derivative_in_a_parameter_is_missing():
    for f in (
        lambda a: tg.igamma(a, 1.5),
        lambda a: scipy.special.betainc(a, 2.0, 0.5),
        lambda m: scipy.special.ellipkinc(0.5, m),
    ):
        with pytest.raises(NotImplementedError, match="second derivative of"):
            tg.hessian(f)(0.5)


def test_at_the_ends_a_distribution_does_not_move():
    slopes = tg.grad(lambda a: tg.igamma(a, tg.tensor([0.0, np.inf])).sum())
    assert slopes(0.5) == 0.0
    slopes = tg.grad(lambda a: scipy.special.betainc(a, 0.5, tg.tensor([0.0, 1.0])).sum())
    assert slopes(0.5) == 0.0
    assert tg.grad(lambda df: scipy.special.stdtr(df, 0.0))(3.0) == 0.0
