"""Operations along dimensions: the compiled sweep hands on what their rules would."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad as tg
from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.ops.families import by_code
from tapegrad.ops.reduce import standardize
from tapegrad.tape.record_format import GENERAL
from tests.kernels.sweep.test_compiled_sweep import both

pytestmark = pytest.mark.tapegrad_only("compares paths through the library")

ALONG = sorted(op.name for op in by_code if op.axis)


def normalized(x, d, eps=1e-5):
    """`layer_norm` over any dimensions."""
    dims = (d,) if isinstance(d, int) else d
    return run_axis(standardize, parameters, x, tuple(k % x.ndim for k in dims), other=eps)


def parameters(op, x, dim, keepdim, eps):
    return x, {"dim": dim, "eps": eps}


CALLS = {
    "prod": lambda x, d: tg.prod(x, d),
    "amax": lambda x, d: tg.amax(x, d),
    "amin": lambda x, d: tg.amin(x, d, keepdim=True),
    "norm": lambda x, d: tg.norm(x, dim=d),
    "var": lambda x, d: tg.var(x, d, correction=0),
    "std": lambda x, d: tg.std(x, d, keepdim=True),
    "logsumexp": lambda x, d: tg.logsumexp(x, d),
    "softmax": lambda x, d: tg.softmax(x, d),
    "log_softmax": lambda x, d: tg.log_softmax(x, d),
    "cumprod": lambda x, d: tg.cumprod(x, d),
    "cumsum": lambda x, d: tg.cumsum(x, d),
    "logcumsumexp": lambda x, d: tg.logcumsumexp(x, d),
    "standardize": lambda x, d: normalized(x, d),
}


def test_every_operation_is_here():
    assert CALLS.keys() == set(ALONG)


def function(name, x0, d):
    def build():
        rng = np.random.default_rng(1)
        x = tg.tensor(x0, requires_grad=True)
        y = CALLS[name](x, d)
        assert not current_word(y) & GENERAL
        again = CALLS[name](x * 2.0, d)  # whose adjoint joins another
        weights = rng.standard_normal(y.shape)
        return ((y * y * weights).sum() + (again * weights).sum() + (x * x).sum()), [x]

    return build


def current_word(y):
    return int(y.tape.whole.words()[y.tape.whole.index(y.position), 0])


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (2, 3, 4), (4, 1, 2)])
def test_each_dimension(name, shape):
    rng = np.random.default_rng(0)
    for d in range(len(shape)):
        if shape[d] > 1 or name not in ("std", "var"):
            both(function(name, rng.uniform(0.5, 1.5, shape), d))


@pytest.mark.parametrize("name", ["amax", "norm", "var", "std", "logsumexp", "standardize"])
def test_several_dimensions(name):
    x = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3, 4))
    for d in ((0, 1), (1, 2), (0, 1, 2)):
        both(function(name, x, d))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_special_values(data):
    """Ties, zeros, infinities and NaN, against adjoints of which some are zero."""
    name = data.draw(st.sampled_from(ALONG))
    shape = data.draw(st.sampled_from([(4,), (3, 2), (2, 3)]))
    numbers = st.sampled_from([0.0, -0.0, 1.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e300])
    count = int(np.prod(shape))
    x0 = np.array(data.draw(st.lists(numbers, min_size=count, max_size=count))).reshape(shape)
    d = data.draw(st.integers(0, len(shape) - 1))

    def build():
        x = tg.tensor(x0, requires_grad=True)
        y = CALLS[name](x, d)
        weights = np.resize([0.0, 1.0, -2.0], y.shape)
        return (y * weights).sum(), [x]

    with np.errstate(all="ignore"):
        both(build)


def test_what_only_the_rules_know():
    x = tg.tensor(np.ones((2, 3, 4)), requires_grad=True)
    for y in (
        tg.amax(x, (0, 2)),  # no rows
        tg.norm(x, 3, dim=1),
        tg.softmax(x.mT, 1),  # not in C order
        tg.var(x, 1, correction=0.5),
        tg.var(x, 1, correction=float("inf")),
        tg.std(x, 1, correction=float("nan")),
    ):
        assert current_word(y) & GENERAL
        y.sum().backward()


@pytest.mark.parametrize("eps", [0.0, 1e-5, 1e-12, 2.5e-3, 1.0, 1e-5 + 1e-12])
def test_what_is_added_to_a_variance(eps):
    """The loops are given the number as a decimal, or the rule is called."""

    def build():
        x = tg.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 1.25]], requires_grad=True)
        y = normalized(x, 1, eps)
        assert bool(current_word(y) & GENERAL) == (eps == 1e-5 + 1e-12)
        variance = x.detach().var(1, correction=0, keepdim=True)
        expected = (x.detach() - x.detach().mean(1, keepdim=True)) / (variance + eps).sqrt()
        np.testing.assert_allclose(y.detach(), expected, rtol=1e-14)
        return (y**3).sum(), [x]

    both(build)
