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


def test_the_gradient_of_what_is_no_leaf_is_none_with_a_warning(tg):
    x = tg.ones(2, requires_grad=True)
    assert x.grad is None
    y = x * 2
    with pytest.warns(UserWarning, match="leaf"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    z = x * 2
    z.grad = tg.ones(2)
    assert z.grad.tolist() == [1.0, 1.0]


def test_what_cannot_be_deleted(tg):
    x = tg.ones(2, requires_grad=True)
    x.sum().backward()
    del x.grad
    assert x.grad is None
    for name in ("data", "requires_grad"):
        with pytest.raises(RuntimeError):
            delattr(x, name)


def test_every_name_that_dir_gives_is_there(tg):
    for x in (tg.ones(2, 2), tg.ones(2, 2, requires_grad=True), tg.ones(2, 2, dtype=tg.complex64)):
        names = dir(x)
        assert "shape" in names
        if not x.is_complex():
            names.remove("imag")
        assert all(hasattr(x, name) for name in names)
