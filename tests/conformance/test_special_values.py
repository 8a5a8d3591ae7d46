"""The conventions at singular points hold in kernels, by the rules, and in recorded sweeps."""

import contextlib
import math

import numpy as np
import pytest

import tapegrad as tg
from tests.conformance.checks import rules_only
from tests.conformance.conventions import CONVENTIONS, OURS, STRONG

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, where the value is infinite
    pytest.mark.tapegrad_only(
        "compares ways of sweeping; tests/peers holds the table against PyTorch"
    ),
]

ALL = CONVENTIONS | OURS | STRONG
WAYS = {
    "kernels": (contextlib.nullcontext, {}),
    "rules": (rules_only, {}),
    "recorded": (contextlib.nullcontext, {"create_graph": True}),
    "recorded without kernels": (rules_only, {"create_graph": True}),
}


def gradients(at, dtype=np.float64, **options):
    leaves = [tg.from_numpy(np.array(v, dtype)).requires_grad_() for v in at.leaves]
    return tg.autograd.grad(at.function(tg, *leaves).sum(), leaves, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALL)
def test_convention(name, way):
    at = ALL[name]
    context, options = WAYS[way]
    with context():
        for g, expected in zip(gradients(at, **options), at.gradients, strict=True):
            np.testing.assert_allclose(g.detach().numpy(), expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", ALL)
def test_convention_in_float32(name):
    at = ALL[name]
    for g, expected in zip(gradients(at, np.float32), at.gradients, strict=True):
        assert g.dtype is tg.float32
        np.testing.assert_allclose(g.numpy(), np.float32(expected), rtol=1e-6)


WHOLE = (
    "norm",
    "product,",
    "products",
    "amax",
    "amin",
    "max of",
    "deviation",
    "softmax",
    "logsumexp",
    "so far",
    "sorting",
    "logcumsumexp",
)
ELEMENTWISE = [
    name
    for name, at in ALL.items()
    if all(np.ndim(v) == 1 for v in at.leaves)
    and not any(word in name for word in (*WHOLE, "variance", "index", "einsum"))
]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_convention_in_large_arrays(name):
    """The same values many times over: what is large goes another way through the engine."""
    at = ALL[name]
    times = 3000 // len(at.leaves[0])
    leaves = [tg.from_numpy(np.tile(v, times)).requires_grad_() for v in at.leaves]
    at.function(tg, *leaves).sum().backward()
    for x, expected in zip(leaves, at.gradients, strict=True):
        expected = np.tile(expected, times)
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("way", ["kernels", "rules"])
@pytest.mark.parametrize("name", STRONG)
def test_a_masked_nan_does_not_poison_the_second_order(name, way):
    """Where the gradient is finite everywhere, so is its derivative; at every order."""
    at = STRONG[name]
    if not all(np.isfinite(g).all() for g in at.gradients):
        pytest.skip("the gradient itself is infinite")
    with WAYS[way][0]():
        leaves = [tg.tensor(v, requires_grad=True) for v in at.leaves]
        first = tg.autograd.grad(at.function(tg, *leaves).sum(), leaves, create_graph=True)
        total = sum((g * g).sum() for g in first)
        second = tg.autograd.grad(
            total, leaves, create_graph=True, allow_unused=True, materialize_grads=True
        )
        for h in second:
            assert np.isfinite(h.detach().numpy()).all()
        if any(h.requires_grad for h in second) and "product of" not in name:  # says: no third one
            total = sum((h * h).sum() for h in second)
            third = tg.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
            for h in third:
                assert np.isfinite(h.numpy()).all()


SECOND = {
    "sqrt beside a mask": (
        lambda x: tg.where(x > 0, tg.sqrt(x), x * x),
        [0.0, 4.0],
        [2.0, -0.03125],
    ),
    "log beside a mask": (lambda x: tg.where(x > 0, tg.log(x), x * x), [-1.0, 2.0], [2.0, -0.25]),
    "square": (lambda x: x**2, [0.0, 1.0], [2.0, 2.0]),
    "cube": (lambda x: x**3, [0.0, 1.0], [0.0, 6.0]),
    "abs": (lambda x: tg.abs(x), [0.0, 1.0], [0.0, 0.0]),
    "relu": (lambda x: tg.relu(x) ** 2, [-1.0, 0.0, 1.0], [0.0, 0.0, 2.0]),
    "sinc": (lambda x: tg.sinc(x), [0.0], [-(math.pi**2) / 3]),
    "i0": (lambda x: tg.i0(x), [0.0], [0.5]),
    "i1": (lambda x: tg.special.i1(x), [0.0], [0.0]),
    "log_ndtr far to the left": (lambda x: tg.special.log_ndtr(x), [-1e9], [-1.0]),
    "products so far": (lambda x: tg.cumprod(x, 0), [0.0, 3.0], [1.0, 1.0]),
    "product with a zero": (lambda x: tg.prod(x, 0, keepdim=True), [0.0, 3.0], [1.0, 1.0]),
}


@pytest.mark.parametrize("way", ["kernels", "rules"])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_at_singular_points(name, way):
    function, at, expected = SECOND[name]
    with WAYS[way][0]():
        x = tg.tensor(at, requires_grad=True)
        (g,) = tg.autograd.grad(function(x).sum(), x, create_graph=True)
        (h,) = tg.autograd.grad(g.sum(), x, allow_unused=True, materialize_grads=True)
    np.testing.assert_allclose(h.numpy(), expected)


def test_what_is_seeded_with_zero_gives_zero():
    """A weight of zero, in each way, for a matrix product that the sweep does not do itself."""
    a, b = np.full((40, 40), np.inf), np.full((40, 40), np.nan)
    x, y = (tg.from_numpy(v).requires_grad_() for v in (a, b))
    (x @ y).backward(tg.zeros(40, 40))
    assert not x.grad.numpy().any()
    assert not y.grad.numpy().any()


def test_a_matrix_product_keeps_infinities_that_meet_no_zero():
    for n in (2, 40):
        a, b = np.ones((n, n)), np.ones((n, n))
        b[0, 0] = np.inf
        x, y = (tg.from_numpy(v).requires_grad_() for v in (a, b))
        z = x @ y
        weight = np.ones((n, n))
        weight[1] = 0
        z.backward(tg.from_numpy(weight))
        expected = np.full((n, n), float(n))
        expected[:, 0] = np.inf
        expected[1] = 0
        np.testing.assert_array_equal(x.grad.numpy(), expected)
        np.testing.assert_array_equal(y.grad.numpy(), np.full((n, n), n - 1.0))
