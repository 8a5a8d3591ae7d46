"""Losses and activations of `nn.functional`: values, gradients, refusals."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import functional as F

LOSSES = {
    "bce": lambda F, x, t: F.binary_cross_entropy_with_logits(x, t),
    "bce, sum": lambda F, x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum"),
    "bce, weights": lambda F, x, t: F.binary_cross_entropy_with_logits(
        x, t, weight=t + 1, pos_weight=t * 0 + 3, reduction="none"
    ),
    "cross_entropy of probabilities": lambda F, x, t: F.cross_entropy(x, F.softmax(t, 1)),
    "mse": lambda F, x, t: F.mse_loss(x, t),
    "relu": lambda F, x, t: F.relu(x),
    "relu in place": lambda F, x, t: F.relu(x * 1, inplace=True),
    "threshold": lambda F, x, t: F.threshold(x, 0.3, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(tg, leaf, rng, name):
    x, t = leaf(rng.standard_normal((3, 4)).tolist()), tg.tensor(rng.random((3, 4)).tolist())
    F = tg.nn.functional
    assert tg.autograd.gradcheck(lambda x: LOSSES[name](F, x, t), (x,))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_classes(tg, leaf, rng, reduction):
    x = leaf(rng.standard_normal((5, 3)).tolist())
    classes = tg.tensor([0, 2, 1, 1, 0])
    F = tg.nn.functional
    found = F.cross_entropy(x, classes, reduction=reduction)
    plain = x.detach().numpy()
    logs = plain - np.log(np.exp(plain).sum(1, keepdims=True))
    expected = -logs[np.arange(5), classes.numpy()]
    expected = {"mean": expected.mean(), "sum": expected.sum(), "none": expected}[reduction]
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
    found.sum().backward()
    softmax = np.exp(logs) - np.eye(3)[classes.numpy()]
    np.testing.assert_allclose(x.grad.numpy(), softmax / (5 if reduction == "mean" else 1))


def test_large_logits_give_no_infinity(tg, leaf):
    x = leaf([1000.0, -1000.0, 0.0])
    loss = tg.nn.functional.binary_cross_entropy_with_logits(x, tg.tensor([0.0, 1.0, 0.5]))
    loss.backward()
    assert loss.item() == pytest.approx((2000 + np.log(2)) / 3)
    np.testing.assert_allclose(x.grad.numpy(), np.array([1.0, -1.0, 0.0]) / 3)


def test_relu_in_place_writes_into_its_input(tg):
    x = tg.tensor([-1.0, 2.0])
    assert tg.nn.functional.relu(x, inplace=True) is x
    assert x.tolist() == [0.0, 2.0]


def test_bad_targets_are_refused(tg):
    F = tg.nn.functional
    with pytest.raises(ValueError, match=r"size|shape"):
        F.binary_cross_entropy_with_logits(tg.zeros(3), tg.zeros(2))
    with pytest.raises((RuntimeError, ValueError)):
        F.nll_loss(tg.zeros(2, 3), tg.zeros(2))
    with pytest.raises(ValueError, match="some"):
        F.cross_entropy(tg.zeros(2, 3), tg.tensor([0, 1]), reduction="some")


def test_one_hot(tg):
    one_hot = tg.nn.functional.one_hot
    k = tg.tensor([[2, 0]])
    assert one_hot(k, 4).tolist() == [[[0, 0, 1, 0], [1, 0, 0, 0]]]
    assert one_hot(k).shape == (1, 2, 3)
    assert one_hot(k).dtype == tg.int64
    assert one_hot(tg.tensor(1), 2).tolist() == [0, 1]
    vmap = getattr(tg, "vmap", None) or tg.func.vmap
    assert vmap(lambda k: one_hot(k, 3))(k[0]).tolist() == one_hot(k[0], 3).tolist()


def test_one_hot_refuses_other_classes(tg):
    one_hot = tg.nn.functional.one_hot
    for classes, count in (([3, -1], 4), ([3, 1], 3), ([], -1)):
        with pytest.raises(RuntimeError, match=r"(?i)class"):
            one_hot(tg.tensor(classes, dtype=tg.int64), count)
    with pytest.raises(RuntimeError):
        one_hot(tg.tensor([1.0]), 2)


def test_attention_of_queries_without_features_takes_the_mean():
    y = F.scaled_dot_product_attention(tg.zeros(4, 0), tg.zeros(3, 0), tg.ones(3, 2))
    assert y.tolist() == [[1.0, 1.0]] * 4


def test_attention_refuses_heads_that_cannot_be_shared():
    x = tg.ones(2, 3)
    with pytest.raises(RuntimeError, match="heads are the dimension -3"):
        F.scaled_dot_product_attention(x, x, x, enable_gqa=True)
    none = tg.ones(0, 2, 3)
    with pytest.raises(RuntimeError, match="2 heads of queries cannot share 0"):
        F.scaled_dot_product_attention(tg.ones(2, 2, 3), none, none, enable_gqa=True)
