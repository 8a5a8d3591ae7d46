"""`ctc_loss`: `tests/peers` compares it with PyTorch; here with a sum over all alignments."""

import itertools

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tests/peers compares the libraries")
F = tg.nn.functional
TARGETS = [[1, 2, 2], [2, 1, 9]]


def probabilities(steps=5, batch=2, classes=3, dtype=tg.float64):
    logits = np.random.default_rng(0).standard_normal((steps, batch, classes))
    return tg.tensor(logits).log_softmax(2).to(dtype)


def by_alignments(logs, target, blank=0):
    """Minus the log-probability, by every alignment there is."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        merged = [c for c, _ in itertools.groupby(path)]
        if [c for c in merged if c != blank] == target:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return -np.log(total)


@pytest.mark.parametrize("blank", [0, 2])
def test_it_is_the_sum_over_alignments(blank):
    x = probabilities()
    targets = [[1, 1], [1, 0]] if blank == 2 else [[1, 2], [2, 1]]
    found = F.ctc_loss(x, tg.tensor(targets), (5, 4), (2, 1), blank, "none")
    expected = [
        by_alignments(x[:5, 0].numpy(), targets[0], blank),
        by_alignments(x[:4, 1].numpy(), targets[1][:1], blank),
    ]
    np.testing.assert_allclose(found.tolist(), expected, rtol=1e-12)


def test_gradients_by_log_probabilities():
    def losses(x, reduction="none"):
        return F.ctc_loss(x, tg.tensor(TARGETS), (5, 4), (3, 2), reduction=reduction)

    x = probabilities().requires_grad_()
    for reduction in ("none", "mean", "sum"):
        assert tg.autograd.gradcheck(lambda x, r=reduction: losses(x, r), (x,))
    as_blank = lambda x: F.ctc_loss(x, tg.tensor([[1, 0], [0, 1]]), (5, 4), (2, 2))
    assert tg.autograd.gradcheck(as_blank, (x,))
    with pytest.raises(NotImplementedError, match=r"no second derivative"):
        tg.autograd.gradgradcheck(losses, (x,))


def test_under_transforms():
    def loss(x, targets, times, lengths):
        return F.ctc_loss(x, targets, times, lengths)

    x = probabilities()
    given = tg.tensor(TARGETS), tg.tensor([5, 4]), tg.tensor([3, 2])
    expected = tg.func.grad(loss)(x, *given)
    np.testing.assert_allclose(tg.jit(tg.grad(loss))(x, *given).numpy(), expected.numpy())
    many = tg.func.vmap(tg.func.grad(loss), (0, None, None, None))(tg.stack([x, x]), *given)
    np.testing.assert_allclose(many[1].numpy(), expected.numpy())
    each = tg.func.vmap(lambda x, *rest: F.ctc_loss(x, *rest, reduction="none"), (1, 0, 0, 0))
    whole = F.ctc_loss(x, *given, reduction="none")
    np.testing.assert_allclose(each(x, *given).tolist(), whole.tolist())


def test_float32_is_rounded_once():
    x = probabilities(60, 2, 8, tg.float32)
    given = tg.tensor(TARGETS), (60, 50), (3, 2)
    found = F.ctc_loss(x, *given, reduction="none")
    assert found.dtype is tg.float32
    exact = F.ctc_loss(x.double(), *given, reduction="none")
    np.testing.assert_allclose(found.tolist(), exact.tolist(), rtol=1e-6)


def test_long_inputs_do_not_underflow():
    x = probabilities(4000, 1, 5).requires_grad_()
    loss = F.ctc_loss(x, tg.tensor([[1, 2, 3, 4]]), (4000,), (4,), reduction="sum")
    loss.backward()
    assert np.isfinite(loss.item())
    np.testing.assert_allclose(x.grad.sum(2).numpy(), -1.0, rtol=1e-9)


def test_impossible_targets():
    x = probabilities().requires_grad_()
    given = tg.tensor(TARGETS), (3, 4), (3, 2)
    assert F.ctc_loss(x, *given, reduction="none").tolist()[0] == np.inf
    loss = F.ctc_loss(x, *given, reduction="none", zero_infinity=True)
    assert loss.tolist()[0] == 0.0
    loss.sum().backward()
    assert not x.grad[:, 0].any()
    np.testing.assert_allclose(x.grad[:4, 1].sum(1).tolist(), [-1.0] * 4)


def test_refusals():
    x, targets = probabilities(), tg.tensor(TARGETS)
    for given, says in (
        ((x, tg.tensor([[1, 3], [1, 1]]), (5, 5), (2, 2)), r"a class from 0 to 2"),
        ((x, targets, (6, 5), (3, 2)), r"at most 5, the size of `log_probs`, got 5 to 6"),
        ((x, targets, (5, 5), (4, 2)), r"targets of shape \(2, 3\) for 2 examples with up to 4"),
        ((x, targets, (5,), (3, 2)), r"input_lengths has one number for each of 2 examples"),
        ((x, tg.tensor([1]), (5, 5), (1, 1)), r"add up to, 2, got 1"),
        ((x, targets, (5, 5), (3, 2), 3), r"the blank is a class from 0 to 2, got 3"),
        ((x[0, 0], targets, (5, 5), (3, 2)), r"got the shape \(3,\)"),
        ((x, targets, (5, 5), tg.tensor([1.0, 1.0])), r"target_lengths are integers"),
    ):
        with pytest.raises(RuntimeError, match=says):
            F.ctc_loss(*given)
    with pytest.raises(NotImplementedError, match=r"takes float32 or float64, got"):
        F.ctc_loss(x.half(), targets, (5, 5), (3, 2))
