"""`Variable`, the old name of a Tensor that has a history."""

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


def test_it_gives_a_tensor_of_the_same_memory(tg):
    x = tg.ones(2)
    for wanted in (False, True):
        v = tg.autograd.Variable(x, requires_grad=wanted)
        assert type(v) is tg.Tensor
        assert v is not x
        assert v.requires_grad is wanted
        assert v.data_ptr() == x.data_ptr()
    assert not x.requires_grad


def test_it_has_no_history(tg):
    y = tg.ones(2, requires_grad=True) * 2
    v = tg.autograd.Variable(y)
    assert not v.requires_grad
    v = tg.autograd.Variable(y, True)
    assert v.is_leaf
    (v * v).sum().backward()
    assert v.grad.tolist() == [4.0, 4.0]


def test_every_tensor_is_one(tg):
    assert isinstance(tg.ones(1), tg.autograd.Variable)
    assert not isinstance(1.0, tg.autograd.Variable)
    with pytest.raises(TypeError, match="tensor"):
        tg.autograd.Variable([1.0])
