"""Random numbers whose distributions have Tensors as parameters: moments, edges, refusals, maps."""

import math

import numpy as np
import pytest

INF, NAN = math.inf, math.nan
N = 40000


def close(x, mean, std, margin=5.0):
    """Whether moments are within some standard errors of what they should be."""
    x = x.double()
    assert abs(x.mean().item() - mean) < margin * std / math.sqrt(x.numel())
    assert x.std().item() == pytest.approx(std, rel=0.05)


def test_poisson(tg):
    tg.manual_seed(0)
    for rate in (0.5, 4.0, 300.0):
        close(tg.poisson(tg.full((N,), rate)), rate, math.sqrt(rate))
    x = tg.poisson(tg.tensor([[0.0, 1e9]], dtype=tg.float32))
    assert (x.shape, x.dtype) == ((1, 2), tg.float32)
    assert x[0, 0] == 0
    assert x[0, 1].item() == pytest.approx(1e9, rel=1e-3)
    assert tg.poisson(tg.zeros(0)).shape == (0,)


def test_binomial(tg):
    tg.manual_seed(0)
    close(tg.binomial(tg.full((N,), 20.0), tg.tensor(0.3)), 6.0, math.sqrt(4.2))
    x = tg.binomial(
        tg.tensor([[3.0, 3.0], [1e10, 1e10], [2.75, 2.75]]), tg.tensor([[0.0, 1.0]] * 3)
    )
    assert x.tolist() == [[0.0, 3.0], [0.0, 1e10], [0.0, 2.75]]
    edges = tg.binomial(tg.tensor([-1.0, 5.0, 5.0]), tg.tensor([0.5, 1.5, -0.5]))
    assert edges.tolist() == [0.0, 5.0, 0.0]
    assert bool(tg.binomial(tg.tensor([5.0, INF]), tg.tensor([NAN, 0.5])).isnan().all())


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_multinomial_draws_by_weight(tg, count, replacement):
    tg.manual_seed(0)
    weights = tg.tensor([0.0, 3.0, 1.0, 0.0, 4.0])
    drawn = tg.multinomial(weights.expand(N, 5), count, replacement)
    assert (drawn.shape, drawn.dtype) == ((N, count), tg.int64)
    share = np.bincount(drawn[:, 0].numpy(), minlength=5) / N
    np.testing.assert_allclose(share, weights.numpy() / 8, atol=0.015)
    if count == 2:
        assert bool((drawn[:, 0] == drawn[:, 1]).any()) == replacement
        after = drawn[:, 1][drawn[:, 0] == 4].numpy()
        left = weights.numpy() if replacement else np.array([0.0, 3.0, 1.0, 0.0, 0.0])
        share = np.bincount(after, minlength=5) / len(after)
        np.testing.assert_allclose(share, left / left.sum(), atol=0.02)


def test_multinomial_at_its_edges(tg):
    assert tg.multinomial(tg.tensor([0.0, 1.0, 0.0]), 3)[0] == 1
    assert sorted(tg.ones(4).multinomial(4).tolist()) == [0, 1, 2, 3]
    assert tg.multinomial(tg.ones(0, 3), 2, True).shape == (0, 2)
    huge = tg.multinomial(tg.tensor([1e30, 0.0, 1e30, 0.0]), 1000, True)
    assert {*huge.tolist()} == {0, 2}
    assert not tg.multinomial(tg.ones(3, requires_grad=True), 1).requires_grad
    rows = tg.multinomial(tg.tensor([[0.0, 1.0], [1.0, 0.0]]), 3, replacement=True)
    assert rows.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_fills(tg):
    tg.manual_seed(0)
    x = tg.zeros(N, dtype=tg.float64)
    close(x.clone().log_normal_(0.5, 0.25).log(), 0.5, 0.25)
    close((x.clone().cauchy_(2.0, 3.0) - 2).div(3).atan() / math.pi, 0.0, math.sqrt(1 / 12))
    close(x.clone().geometric_(0.25), 4.0, math.sqrt(12.0))
    assert x.clone().geometric_(0.999).min() == 1
    close(x.clone().exponential_(4.0), 0.25, 0.25)
    close(x.clone().uniform_(-1.0, 3.0), 1.0, 4 / math.sqrt(12))
    close(x.clone().uniform_(**{"from": 1.0, "to": 3.0}), 2.0, 2 / math.sqrt(12))
    close(x.clone().normal_(mean=3.0, std=2.0), 3.0, 2.0)
    close(tg.zeros(N, dtype=tg.int64).geometric_(0.25), 4.0, math.sqrt(12.0))
    assert x.clone().uniform_(2.0, 2.0).unique().tolist() == [2.0]


def test_complex_numbers_are_drawn_in_both_parts(tg):
    tg.manual_seed(0)
    for kind in (tg.complex64, tg.complex128):
        z = tg.randn(N, dtype=kind)
        assert z.dtype == kind
        for part in (z.real, z.imag, tg.zeros(N, dtype=kind).normal_().imag):
            close(part, 0.0, math.sqrt(0.5))
        close(tg.rand(N, dtype=kind).imag, 0.5, math.sqrt(1 / 12))
        close(tg.zeros(N, dtype=kind).uniform_(1.0, 2.0).imag, 1.5, math.sqrt(1 / 12))


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_uniform_numbers_stay_below_one(tg, kind):
    x = tg.rand(1 << 20, dtype=getattr(tg, kind))
    assert 0.0 <= x.min().item() < x.max().item() < 1.0


def test_random_fills_a_type(tg):
    limits = {"uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 63, "float32": 24}
    for name, bits in limits.items():
        x = tg.zeros(4000, dtype=getattr(tg, name)).random_()
        assert 0 <= x.min().item() < 2**bits / 50 < 2**bits * 0.98 < x.max().item() <= 2**bits
    assert {*tg.zeros(50, dtype=tg.bool).random_().tolist()} == {False, True}
    assert tg.zeros(3).random_(**{"from": 5, "to": 6}).tolist() == [5.0] * 3
    assert tg.zeros(3).random_(to=1).tolist() == tg.zeros(3).random_(1).tolist() == [0.0] * 3


REFUSED = {
    "rate below 0": lambda t: t.poisson(t.tensor([0.0, -1.0])),
    "rate NaN": lambda t: t.poisson(t.tensor([NAN])),
    "whole rate": lambda t: t.poisson(t.tensor([1])),
    "whole count": lambda t: t.binomial(t.tensor([1]), t.tensor([0.5])),
    "whole probability": lambda t: t.binomial(t.tensor([1.0]), t.tensor([1])),
    "two dtypes": lambda t: t.binomial(t.zeros(1, dtype=t.float32), t.zeros(1, dtype=t.float64)),
    "weight below 0": lambda t: t.multinomial(t.tensor([1.0, -1.0]), 1),
    "weight infinite": lambda t: t.multinomial(t.tensor([1.0, INF]), 1),
    "weight NaN": lambda t: t.multinomial(t.tensor([1.0, NAN]), 1),
    "no weight": lambda t: t.multinomial(t.zeros(2), 1),
    "a row without weight": lambda t: t.multinomial(t.tensor([[1.0, 1.0], [0.0, 0.0]]), 1),
    "whole weights": lambda t: t.multinomial(t.tensor([1, 2]), 1),
    "weights of three dimensions": lambda t: t.multinomial(t.ones(2, 2, 2), 1),
    "one weight without dimension": lambda t: t.multinomial(t.tensor(1.0), 1),
    "too many": lambda t: t.multinomial(t.ones(3), 4),
    "none": lambda t: t.multinomial(t.ones(3), 0),
    "of nothing": lambda t: t.multinomial(t.ones(0), 1, True),
    "half of one": lambda t: t.multinomial(t.ones(3), 1.5),
    "bernoulli of integers": lambda t: t.bernoulli(t.tensor([0, 1])),
    "bernoulli of NaN": lambda t: t.bernoulli(t.tensor([NAN])),
    "bernoulli above 1": lambda t: t.bernoulli(t.zeros(2), p=1.5),
    "bernoulli of another shape": lambda t: t.zeros(2).bernoulli_(t.tensor([[1.0], [0.0]])),
    "normal of integers": lambda t: t.normal(t.tensor([0, 1]), 1.0),
    "normal of shapes that do not fit": lambda t: t.normal(t.zeros(2), t.ones(3)),
    "normal_ of integers": lambda t: t.tensor([1]).normal_(),
    "normal_ below 0": lambda t: t.zeros(2).normal_(0.0, -1.0),
    "uniform_ of integers": lambda t: t.tensor([1]).uniform_(),
    "uniform_ backwards": lambda t: t.zeros(2).uniform_(2.0, 1.0),
    "uniform_ from NaN": lambda t: t.zeros(2).uniform_(NAN, 1.0),
    "uniform_ beyond the type": lambda t: t.zeros(2, dtype=t.float32).uniform_(0.0, 1e39),
    "uniform_ with another name": lambda t: t.zeros(2).uniform_(below=1.0),
    "cauchy_ without width": lambda t: t.zeros(2).cauchy_(0.0, 0.0),
    "cauchy_ of integers": lambda t: t.tensor([1]).cauchy_(),
    "log_normal_ without width": lambda t: t.zeros(2).log_normal_(0.0, 0.0),
    "log_normal_ of integers": lambda t: t.tensor([1]).log_normal_(),
    "exponential_ without rate": lambda t: t.zeros(2).exponential_(0.0),
    "exponential_ of integers": lambda t: t.tensor([1]).exponential_(),
    "geometric_ never": lambda t: t.zeros(2).geometric_(0.0),
    "geometric_ always": lambda t: t.zeros(2).geometric_(1.0),
    "geometric_ of booleans": lambda t: t.tensor([True]).geometric_(0.5),
    "random_ of complex numbers": lambda t: t.tensor([1j]).random_(),
    "random_ of nothing": lambda t: t.zeros(2).random_(0),
    "random_ beyond the type": lambda t: t.zeros(2, dtype=t.uint8).random_(0, 300),
    "rand of integers": lambda t: t.rand(2, dtype=t.int64),
    "randn of integers": lambda t: t.randn(2, dtype=t.int64),
    "rand_like integers": lambda t: t.rand_like(t.tensor([1])),
    "randint beyond the type": lambda t: t.randint(0, 3, (2,), dtype=t.bool),
    "randint of half": lambda t: t.randint(5.5, (2,)),
    "randperm of less than nothing": lambda t: t.randperm(-1),
    "randperm of half": lambda t: t.randperm(2.5),
    "randperm beyond the type": lambda t: t.randperm(300, dtype=t.uint8),
    "randperm of booleans": lambda t: t.randperm(2, dtype=t.bool),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_distribution_has_is_refused(tg, name):
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        REFUSED[name](tg)


@pytest.mark.tapegrad_only("PyTorch's gradients of samples are zeros")
def test_samples_have_no_history(tg):
    x = tg.tensor([0.25, 0.5], requires_grad=True)
    for drawn in (tg.poisson(x), tg.binomial(x, x), tg.bernoulli(x), tg.normal(x, x)):
        assert not drawn.requires_grad


def test_under_a_map_each_example_has_its_own_parameters(tg):
    rates = tg.tensor([[0.0, 1e4], [1e6, 0.0], [1.0, 1.0]])
    draw = tg.func.vmap(tg.poisson, randomness="different")
    x = draw(rates)
    assert x.shape == (3, 2)
    assert x[0, 0] == x[1, 1] == 0
    assert x[1, 0] > x[0, 1] > 2
    weights = tg.tensor([[0.0, 1.0], [1.0, 0.0]])
    for replacement in (False, True):
        drawn = tg.func.vmap(
            lambda w, r=replacement: tg.multinomial(w, 1, r), randomness="different"
        )(weights)
        assert drawn.tolist() == [[1], [0]]


@pytest.mark.tapegrad_only("PyTorch has no rule for it")
def test_under_two_maps_and_beside_tangents(tg):
    p = tg.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    count = tg.tensor([7.0, 8.0])

    def draw(n, p):
        return tg.binomial(n, p)

    each = tg.func.vmap(
        tg.func.vmap(draw, (None, 0), randomness="different"), randomness="different"
    )
    assert each(count, p).tolist() == [[0.0, 7.0, 7.0], [8.0, 0.0, 0.0]]
    value, slope = tg.func.jvp(lambda x: x * tg.poisson(0 * x), (count,), (count,))
    assert value.tolist() == slope.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="same"):
        tg.func.vmap(tg.poisson, randomness="same")(p)
    with pytest.raises(RuntimeError, match="randomness"):
        tg.func.vmap(tg.poisson, randomness="error")(p)
    with pytest.raises(RuntimeError, match=r"inside `tapegrad\.jit`"):
        tg.jit(tg.poisson)(p)
