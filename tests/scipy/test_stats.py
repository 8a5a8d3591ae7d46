"""`tapegrad.scipy.stats` against SciPy: values at and beyond the support, compiled, derivatives."""

import warnings

import numpy as np
import pytest
import scipy.stats

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck
from tapegrad.scipy.stats.distribution import Discrete, Distribution

pytestmark = [
    pytest.mark.tapegrad_only("PyTorch has other names"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

stats = tg.scipy.stats
OF_ONE = [name for name in stats.__all__ if isinstance(getattr(stats, name), Distribution)]
SHAPES = {
    "truncnorm": (-1.0, 2.0), "skewnorm": (1.5,), "lognorm": (0.7,), "binom": (6.0, 0.3),
    "betabinom": (6.0, 1.5, 2.5), "nbinom": (3.5, 0.4), "bernoulli": (0.3,), "geom": (0.3,),
    "genextreme": (0.3,), "genpareto": (0.4,), "triang": (0.3,), "loguniform": (0.1, 2.6),
    "invgauss": (0.8,),
}  # fmt: skip
WHOLE = np.array([-1.0, 0.0, 1.0, 3.0, 6.0, 7.0, 2.5, np.nan])
REAL = np.array([-40.0, -1.5, -1.0, -0.2, 0.0, 0.3, 1.0, 1.2, 2.0, 9.0, np.nan]) * 1.3 + 0.2
SHARES = np.array([0.0, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0, -0.1, 1.1, np.nan])
QUANTILES = ("ppf", "isf")


def shapes_of(name):
    return SHAPES.get(name, (1.7, 2.6)[: len(getattr(stats, name).shapes)])


def parameters(name):
    """Those of shape, a location, and a scale where there is one."""
    places = (0.0,) if isinstance(getattr(stats, name), Discrete) else (0.2, 1.3)
    return (*shapes_of(name), *places)


def points(name, function):
    if function in QUANTILES:
        return SHARES
    return WHOLE if isinstance(getattr(stats, name), Discrete) else REAL


# Where SciPy's is -inf far out, as that of `halfnorm.logsf` is beyond 20: a logarithm of zero.
UNDERFLOW = {"gompertz": ["logsf"], "moyal": ["logpdf"]}


@pytest.mark.parametrize("name", OF_ONE)
def test_values_are_scipys(name):
    dist, theirs = getattr(stats, name), getattr(scipy.stats, name)
    args = parameters(name)

    def every(args):
        return [getattr(dist, f)(tg.tensor(points(name, f)), *args) for f in dist.known]

    compiled = tg.jit(every)(args)
    for f, eager, fast in zip(dist.known, every(args), compiled, strict=True):
        x = points(name, f)
        want = getattr(theirs, f)(x, *args)
        near = np.isfinite(want) | ((x < 20) & (f not in UNDERFLOW.get(name, ())))
        for found in (eager.numpy(), fast):
            np.testing.assert_allclose(found[near], want[near], rtol=1e-9, atol=1e-13, err_msg=f)


# Functions that have a first derivative alone in parameters of shape.
ONCE = {
    "t": "cdf logcdf sf logsf ppf isf", "beta": "cdf logcdf sf logsf ppf isf",
    "gamma": "cdf logcdf sf logsf ppf isf", "invgamma": "cdf logcdf sf logsf ppf isf",
    "chi2": "cdf logcdf sf logsf ppf isf", "f": "cdf logcdf sf logsf ppf isf",
    "chi": "cdf logcdf sf logsf ppf isf", "nakagami": "cdf logcdf sf logsf ppf isf",
    "loggamma": "cdf logcdf sf logsf ppf isf", "betaprime": "cdf logcdf sf logsf ppf isf",
}  # fmt: skip


INSIDE = {"pareto": [2.0, 4.0], "weibull_max": [-1.0, -0.3]}


@pytest.mark.parametrize("name", [n for n in OF_ONE if not isinstance(getattr(stats, n), Discrete)])
def test_derivatives_agree_with_differences(name):
    dist = getattr(stats, name)
    inside = np.array(INSIDE.get(name, [0.45, 1.1]))
    for f in dist.known:
        x = np.array([0.2, 0.6]) if f in QUANTILES else inside
        shapes = [tg.tensor(v, requires_grad=True) for v in shapes_of(name)]
        places = [tg.tensor(v, requires_grad=True) for v in (0.2, 1.3)]
        leaf = tg.tensor(x, requires_grad=True)
        call = getattr(dist, f)
        assert gradcheck(call, (leaf, *shapes, *places))
        if f in ONCE.get(name, "").split():
            fixed = shapes_of(name)
            call = lambda x, *places, f=f, fixed=fixed: getattr(dist, f)(x, *fixed, *places)
            shapes = []
        assert gradgradcheck(call, (leaf, *shapes, *places), atol=1e-4)


@pytest.mark.parametrize(
    ("name", "shapes", "chosen"),
    [
        ("bernoulli", (0.3,), (0,)),
        ("binom", (6.0, 0.3), (1,)),
        ("betabinom", (6.0, 1.5, 2.5), (1, 2)),
        ("geom", (0.3,), (0,)),
        ("nbinom", (3.5, 0.4), (0, 1)),
        ("poisson", (2.5,), (0,)),
    ],
)
def test_derivatives_of_discrete_ones_agree_with_differences(name, shapes, chosen):
    dist = getattr(stats, name)
    k = np.array([0, 1, 2, 3, 7])
    given = tuple(tg.tensor(shapes[i], requires_grad=True) for i in chosen)
    for f in dist.known:

        def call(*free, f=f):
            args = list(shapes)
            for i, v in zip(chosen, free, strict=True):
                args[i] = v
            found = getattr(dist, f)(k, *args)
            return found[tg.isfinite(found)]

        assert gradcheck(call, given)


@pytest.mark.parametrize("name", ["genextreme", "genpareto"])
@pytest.mark.parametrize("shape", [-0.3, 0.0, 1e-9, 1.0])
def test_extremes_of_any_shape(name, shape):
    dist, theirs = getattr(stats, name), getattr(scipy.stats, name)
    c, x = tg.tensor(shape, requires_grad=True), np.array([-7.0, 0.1, 0.6, 9.0])
    for f in dist.known:
        at = np.array([0.2, 0.9]) if f in QUANTILES else x
        found = getattr(dist, f)(at, c)
        np.testing.assert_allclose(found.detach().numpy(), getattr(theirs, f)(at, shape), rtol=1e-7)
        assert gradcheck(lambda c, f=f, at=at: getattr(dist, f)(at[-3:-1], c), (c,))
        assert gradgradcheck(lambda c, f=f, at=at: getattr(dist, f)(at[-3:-1], c), (c,), atol=1e-4)


def test_triangles_with_the_top_at_an_end():
    x = np.array([0.0, 0.25, 1.0])
    for top in (0.0, 1.0):
        for f in ("pdf", "cdf", "sf", "ppf", "isf"):
            found = getattr(stats.triang, f)(tg.tensor(x), top).numpy()
            np.testing.assert_allclose(found, getattr(scipy.stats.triang, f)(x, top), atol=1e-12)


def test_what_is_outside_of_the_support_has_no_slope():
    x = tg.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    rate = tg.tensor(1.5, requires_grad=True)
    stats.gamma.cdf(x, 2.0, scale=rate).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    assert x.grad[0] == 0
    assert np.isfinite(rate.grad.item())


def test_parameters_that_are_not_allowed_give_nan():
    assert np.isnan(stats.norm.logpdf(tg.tensor(1.0), 0.0, -1.0).item())
    assert np.isnan(stats.poisson.pmf(1, tg.tensor(-1.0)).item())
    found = stats.gamma.pdf(1.0, tg.tensor([-1.0, 1.0])).numpy()
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(np.exp(-1.0))


def test_arguments_by_name_and_by_place():
    x = tg.tensor([0.3, 0.9])
    wanted = scipy.stats.gamma.logpdf(x.numpy(), 2.0, 0.1, 3.0)
    for found in (
        stats.gamma.logpdf(x, 2.0, 0.1, 3.0),
        stats.gamma.logpdf(x, a=2.0, scale=3.0, loc=0.1),
        stats.gamma(2.0, loc=0.1, scale=3.0).logpdf(x),
    ):
        np.testing.assert_allclose(found.numpy(), wanted)
    with pytest.raises(TypeError, match=r"`scipy.stats.gamma.logpdf` needs a"):
        stats.gamma.logpdf(x)
    with pytest.raises(TypeError, match="was given rate, which it does not take"):
        stats.gamma.logpdf(x, 2.0, rate=1.0)
    with pytest.raises(TypeError, match="was given a, twice"):
        stats.gamma.logpdf(x, 2.0, a=1.0)
    with pytest.raises(TypeError, match="takes loc, scale after the value, got 3"):
        stats.norm.logpdf(x, 0.0, 1.0, 2.0)


def test_arrays_are_scipys():
    x = np.array([0.5, 1.0])
    found = stats.norm.logpdf(x, 0.0, 2.0)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, scipy.stats.norm.logpdf(x, 0.0, 2.0))
    assert stats.norm.mean(1.0, 2.0) == 1.0
    assert stats.norm(1.0, 2.0).std() == 2.0
    assert stats.rankdata is scipy.stats.rankdata


def test_single_precision_stays():
    x = tg.tensor([0.5, 1.0], dtype=tg.float32)
    for name in ("norm", "gamma", "laplace"):
        assert getattr(stats, name).logpdf(x, *shapes_of(name), 0.1, 2.0).dtype == tg.float32


def test_distributions_of_vectors():
    p = np.array([0.2, 0.3, 0.5])
    x = np.array([[1, 2, 3], [0, 0, 6], [1, 1, 1]])
    found = stats.multinomial.logpmf(x, 6, tg.tensor(p))
    np.testing.assert_allclose(found.numpy(), scipy.stats.multinomial.logpmf(x, 6, p))
    lists = stats.multinomial.logpmf([1, 2, 3], 6, tg.tensor(p)).item()
    np.testing.assert_allclose(lists, scipy.stats.multinomial.logpmf([1, 2, 3], 6, p))
    one = lambda p: stats.multinomial.logpmf(x[:2], 6, p)
    assert gradcheck(one, (tg.tensor(p, requires_grad=True),))
    cov = tg.tensor([1.0, 4.0], requires_grad=True)
    normal = stats.multivariate_normal(np.zeros(2), cov)
    np.testing.assert_allclose(
        normal.logpdf(np.ones(2)).item(),
        scipy.stats.multivariate_normal.logpdf(np.ones(2), np.zeros(2), [1.0, 4.0]),
    )
    assert normal.rvs is not None
    alpha = tg.tensor([1.5, 2.0, 3.0], requires_grad=True)
    assert gradcheck(lambda a: stats.dirichlet.pdf(p, a), (alpha,))


def test_a_posterior_is_found_by_its_gradient():
    rng = np.random.default_rng(0)
    y = rng.normal(1.0, 2.0, 200)

    def loss(v):
        return -np.sum(stats.norm.logpdf(y, v[0], np.exp(v[1]))) - stats.norm.logpdf(
            v[0], 0.0, 10.0
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scipy.optimize.minimize(loss, np.zeros(2), jac=tg.jit(tg.grad(loss)))
    np.testing.assert_allclose(found.x, [y.mean(), np.log(y.std())], rtol=1e-3)


@pytest.mark.parametrize("name", [n for n in OF_ONE if "ppf" in getattr(stats, n).known])
def test_samples_are_those_of_the_distribution_and_differentiable(name):
    """Their means, too, have the derivatives that SciPy's means have."""
    dist, theirs, shapes = getattr(stats, name), getattr(scipy.stats, name), shapes_of(name)
    leaves = [tg.tensor(v, requires_grad=True) for v in (*shapes, 0.2, 1.3)]
    x = dist.rvs(*leaves, size=4000, random_state=1)
    assert scipy.stats.kstest(x.detach().numpy(), theirs(*shapes, 0.2, 1.3).cdf).pvalue > 0.01
    q = theirs.cdf(x.detach().numpy(), *shapes, 0.2, 1.3)
    slopes = tg.autograd.grad(x.sum(), leaves)
    for k, (leaf, found) in enumerate(zip(leaves, slopes, strict=True)):
        step = np.zeros(len(leaves))
        step[k] = 1e-5
        up, down = (
            theirs.ppf(q, *(leaf.item() + d for leaf, d in zip(leaves, s * step, strict=True)))
            for s in (1, -1)
        )
        np.testing.assert_allclose(found.item(), ((up - down) / 2e-5).sum(), rtol=1e-4, atol=1e-3)


def test_samples_have_the_size_that_is_asked_for():
    a = tg.tensor([1.0, 2.0, 30.0], requires_grad=True)
    assert stats.gamma.rvs(a).shape == (3,)
    assert stats.gamma.rvs(a, size=(2, 3)).shape == (2, 3)
    assert stats.gamma.rvs(a, 0.0, 2.0, (4, 3)).shape == (4, 3)
    assert stats.gamma(a).rvs((2, 3)).shape == (2, 3)
    assert stats.norm(0.0, 1.0).rvs(5).shape == (5,)
    assert stats.gamma.rvs(a.detach().float()).dtype == tg.float32
    with pytest.raises(ValueError, match=r"the size \(2,\) does not hold samples of parameters"):
        stats.gamma.rvs(a, size=2)
    with pytest.raises(RuntimeError, match="draw them outside and pass them"):
        tg.jit(lambda a: stats.gamma.rvs(a))(2.0)
    one, two = (stats.t.rvs(a, random_state=s) for s in (7, np.random.RandomState(7)))
    np.testing.assert_array_equal(one.detach(), two.detach())
    mapped = tg.func.vmap(lambda a: stats.gamma.rvs(a, size=2), randomness="different")(a.detach())
    assert mapped.shape == (3, 2)
    tiny = tg.tensor(1e-4, requires_grad=True)
    stats.gamma.rvs(tiny, size=50, random_state=0).sum().backward()
    assert np.isfinite(tiny.grad.item())


def test_samples_of_dirichlets():
    alpha = np.array([2.0, 0.5, 1.0])
    x = stats.dirichlet.rvs(tg.tensor(alpha), size=20_000, random_state=0)
    assert x.shape == (20_000, 3)
    np.testing.assert_allclose(x.sum(-1).numpy(), 1.0)
    np.testing.assert_allclose(x.mean(0).numpy(), alpha / alpha.sum(), atol=0.01)
    mean = tg.jacrev(lambda a: stats.dirichlet.rvs(a, size=20_000, random_state=0).mean(0))(alpha)
    exact = (np.eye(3) - alpha[:, None] / alpha.sum()) / alpha.sum()
    np.testing.assert_allclose(mean, exact, atol=0.02)


INFINITE = "t", "invgamma", "f", "pareto"  # their moments, up to some shape


@pytest.mark.parametrize(
    ("name", "more"),
    [(n, 0.0) for n in OF_ONE if getattr(stats, n).summaries] + [(n, 5.0) for n in INFINITE],
)
def test_summaries(name, more):
    dist, theirs = getattr(stats, name), getattr(scipy.stats, name)
    count = len(shapes_of(name))
    args = tuple(float(x) + more * (k < count) for k, x in enumerate(parameters(name)))
    discrete = isinstance(dist, Discrete)
    free = [k for k in range(len(args)) if not (discrete and k == 0 and len(args) > 2)]
    for f in dist.summaries:
        before = (0.8,) if f == "interval" else ()

        def call(*free_ones, f=f, before=before):
            given = list(args)
            for k, x in zip(free, free_ones, strict=True):
                given[k] = x
            found = getattr(dist, f)(*before, *given)
            return tg.stack(found) if f == "interval" else found

        leaves = tuple(tg.tensor(args[k], requires_grad=True) for k in free)
        wanted = getattr(theirs, f)(*before, *args)
        found = call(*leaves)
        np.testing.assert_allclose(found.detach(), wanted, rtol=1e-9, atol=1e-13, err_msg=f)
        if found.requires_grad and np.all(np.isfinite(wanted)):
            assert gradcheck(call, leaves)
        frozen = getattr(dist(*leaves_with(args, leaves, free)), f)(*before)
        np.testing.assert_allclose(
            tg.stack(frozen).detach() if f == "interval" else frozen.detach(), wanted, rtol=1e-9,
            atol=1e-13,
        )  # fmt: skip
        assert np.array_equal(getattr(dist, f)(*before, *args), wanted, equal_nan=True)


def leaves_with(args, leaves, free):
    given = list(args)
    for k, leaf in zip(free, leaves, strict=True):
        given[k] = leaf
    return given
