"""The `grad` of a Tensor: what can be assigned to it, and what copies keep of it."""

import copy

import pytest


def test_a_tensor_is_not_its_own_gradient(leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"its own grad"):
        x.grad = x
    assert x.grad is None


@pytest.mark.parametrize("other", [lambda x: x.detach(), lambda x: x.data, lambda x: x[:]])
def test_what_shares_its_memory_may_be_its_gradient(leaf, other):
    x = leaf([1.0, 2.0])
    g = other(x)
    x.grad = g
    assert x.grad is g


def test_deepcopy_copies_the_gradient(leaf):
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [2.0, 4.0]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [5.0, 7.0]
    assert x.grad.tolist() == [2.0, 4.0]


def test_deepcopy_copies_the_gradient_of_a_constant(tg):
    x = tg.ones(2)
    x.grad = tg.ones(2)
    y = copy.deepcopy(x)
    assert not y.requires_grad
    assert y.grad.tolist() == [1.0, 1.0]


def test_deepcopy_keeps_who_is_whose_gradient(leaf):
    x = leaf([1.0])
    x.sum().backward()
    first, second, g = copy.deepcopy([x, x, x.grad])
    assert first is second
    assert g is first.grad
    assert g is not x.grad
