"""Activations and dropout of `nn.functional`: in place, by chance, refusals."""

import numpy as np
import pytest

IN_PLACE = {
    "relu": (lambda F, x: F.relu(x, inplace=True), lambda F, x: F.relu_(x)),
    "relu6": (lambda F, x: F.relu6(x, inplace=True),),
    "hardtanh": (lambda F, x: F.hardtanh(x, inplace=True), lambda F, x: F.hardtanh_(x)),
    "leaky_relu": (lambda F, x: F.leaky_relu(x, inplace=True), lambda F, x: F.leaky_relu_(x)),
    "rrelu": (lambda F, x: F.rrelu(x, inplace=True), lambda F, x: F.rrelu_(x)),
    "elu": (lambda F, x: F.elu(x, inplace=True), lambda F, x: F.elu_(x)),
    "celu": (lambda F, x: F.celu(x, inplace=True), lambda F, x: F.celu_(x)),
    "selu": (lambda F, x: F.selu(x, inplace=True), lambda F, x: F.selu_(x)),
    "silu": (lambda F, x: F.silu(x, inplace=True),),
    "mish": (lambda F, x: F.mish(x, inplace=True),),
    "hardsigmoid": (lambda F, x: F.hardsigmoid(x, inplace=True),),
    "hardswish": (lambda F, x: F.hardswish(x, inplace=True),),
}
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script")


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(tg, leaf, name):
    F = tg.nn.functional
    at = [-4.0, -1.5, -0.3, 0.4, 1.3, 7.0]
    for change in IN_PLACE[name]:
        plain, changed = leaf(at), leaf(at)
        expected = getattr(F, name)(plain)
        x = changed * 1
        assert change(F, x) is x
        # The loop of one may have been compiled in between.
        np.testing.assert_allclose(x.detach(), expected.detach(), rtol=1e-15)
        expected.sum().backward()
        x.sum().backward()
        np.testing.assert_allclose(changed.grad.numpy(), plain.grad.numpy(), rtol=1e-14)


def test_threshold_in_place(tg, leaf):
    F = tg.nn.functional
    for change in (lambda x: F.threshold(x, 0.5, 9.0, True), lambda x: F.threshold_(x, 0.5, 9.0)):
        start = leaf([0.5, 2.0])
        x = start * 1
        assert change(x) is x
        x.sum().backward()
        assert (x.tolist(), start.grad.tolist()) == ([9.0, 2.0], [0.0, 1.0])


def test_far_out_nothing_overflows(tg, leaf):
    F = tg.nn.functional
    for function in (F.elu, F.selu, F.celu, F.logsigmoid, F.hardsigmoid, F.softsign, F.tanhshrink):
        x = leaf([-1e300, -800.0, 800.0, 1e300])
        y = function(x)
        y.sum().backward()
        assert np.isfinite(y.detach().numpy()).all(), function
        assert np.isfinite(x.grad.numpy()).all(), function
    for function in (F.silu, F.mish, F.gelu, lambda x: F.gelu(x, approximate="tanh")):
        x = leaf([-800.0, 800.0])
        y = function(x)
        y.sum().backward()
        assert y.tolist() == [0.0, 800.0]
        np.testing.assert_allclose(x.grad.numpy(), [0.0, 1.0], atol=1e-300)


def test_dropout(tg):
    F = tg.nn.functional
    tg.manual_seed(3)
    x = tg.ones(100, 50, requires_grad=True)
    y = F.dropout(x, 0.2)
    share = (y == 0).double().mean().item()
    assert 0.15 < share < 0.25
    assert set(y.detach().numpy().ravel().tolist()) == {0.0, 1.25}
    y.sum().backward()
    assert (x.grad == y).all()
    tg.manual_seed(3)
    assert (F.dropout(x, 0.2) == y).all()
    assert (F.dropout(x, training=False) == x).all()
    assert (F.dropout(x, 0.0) == x).all()
    assert not F.dropout(x, 1.0).any()
    z = x * 1
    assert F.dropout(z, 0.5, inplace=True) is z
    assert (z == 0).any()


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dropout_of_channels(tg, dims):
    dropout = getattr(tg.nn.functional, f"dropout{dims}d")
    tg.manual_seed(1)
    y = dropout(tg.ones(20, 10, *[3] * dims)).numpy().reshape(200, -1)
    assert ((y == y[:, :1]).all(), set(y[:, 0].tolist())) == (True, {0.0, 2.0})


@pytest.mark.parametrize("dims", [1, 3])
def test_dropout_of_the_channels_of_one_example(tg, dims):
    dropout = getattr(tg.nn.functional, f"dropout{dims}d")
    tg.manual_seed(1)
    y = dropout(tg.ones(40, *[2] * dims)).numpy().reshape(40, -1)
    assert ((y == y[:, :1]).all(), set(y[:, 0].tolist())) == (True, {0.0, 2.0})


def test_dropout_that_keeps_mean_and_variance(tg):
    F = tg.nn.functional
    tg.manual_seed(1)
    x = tg.randn(200, 100)
    y = F.alpha_dropout(x, 0.3, training=True)
    assert abs(y.mean().item()) < 0.05
    assert abs(y.var().item() - 1) < 0.05
    assert (F.alpha_dropout(x) == x).all()
    whole = F.feature_alpha_dropout(x[:, :, None].expand(200, 100, 4) * 0, 0.5, training=True)
    assert len(set(whole.numpy().round(9).ravel().tolist())) == 2
    assert (whole == whole[:, :, :1]).all()


def test_random_slopes(tg):
    F = tg.nn.functional
    x = tg.full((1000,), -1.0, requires_grad=True)
    y = F.rrelu(x, 0.2, 0.4, training=True)
    assert -0.4 <= y.min().item() < -0.35 < -0.25 < y.max().item() <= -0.2
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), -y.detach().numpy())


def test_gumbel_softmax(tg, leaf):
    F = tg.nn.functional
    tg.manual_seed(0)
    x = leaf([[0.0, 1.0, 2.0]] * 500)
    soft = F.gumbel_softmax(x, 0.5)
    np.testing.assert_allclose(soft.sum(-1).detach().numpy(), 1, rtol=1e-12)
    hard = F.gumbel_softmax(x, hard=True)
    np.testing.assert_allclose(hard.detach().numpy().max(1), 1)
    chosen = hard.detach().numpy().mean(0)
    np.testing.assert_allclose(chosen, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), atol=0.07)
    hard[:, 0].sum().backward()
    assert x.grad.abs().sum() > 0


def test_a_dimension_is_chosen_with_a_warning(tg):
    F = tg.nn.functional
    x = tg.tensor([[0.0, 1.0], [2.0, 5.0]])
    for name in ("softmax", "log_softmax", "softmin"):
        with pytest.warns(UserWarning, match="dim"):
            found = getattr(F, name)(x)
        assert (found == getattr(F, name)(x, 1)).all()


def test_refusals(tg):
    F, x = tg.nn.functional, tg.ones(2, 3)
    for problem, words, call in (
        (RuntimeError, "(?i)alpha", lambda: F.celu(x, 0.0)),
        (RuntimeError, "lambd", lambda: F.softshrink(x, -1.0)),
        (ValueError, "max_val", lambda: F.hardtanh(x, 2.0, 1.0)),
        (RuntimeError, "approximate", lambda: F.gelu(x, approximate="x")),
        (RuntimeError, "(?i)dimension", lambda: F.glu(x)),
        (RuntimeError, "(?i)lower", lambda: F.rrelu(x, 0.5, 0.3)),
        (RuntimeError, "shape|parameter numbers", lambda: F.prelu(x, tg.ones(2))),
        (RuntimeError, "convert|Type promoting", lambda: F.prelu(x, tg.ones(3).float())),
        (ValueError, "probability", lambda: F.dropout(x, 1.5)),
        (RuntimeError, "dimensions", lambda: F.feature_alpha_dropout(x[0], 0.5, True)),
    ):
        with pytest.raises(problem, match=words):
            call()
