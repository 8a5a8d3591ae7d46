"""`grad_fn` of a Function: what `forward` left in its context."""

import pytest


def function(tg, several=False):
    class Own(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a, scale):
            y = a * scale
            ctx.save_for_backward(a, y, None)
            ctx.scale = scale
            return (y, y + 1) if several else y

        @staticmethod
        def backward(ctx, g, *more):
            return g * ctx.scale, None

    return Own.apply


def test_it_has_the_saved_tensors(tg, leaf):
    x = leaf([1.0, 2.0])
    y = function(tg)(x, 3.0)
    a, saved, none = y.grad_fn.saved_tensors
    assert a.tolist() == [1.0, 2.0]
    assert a.requires_grad
    assert saved.tolist() == [3.0, 6.0]
    assert none is None
    (a * saved.detach()).sum().backward()
    assert x.grad.tolist() == [3.0, 6.0]


def test_it_has_the_attributes_of_the_context(tg, leaf):
    y = function(tg)(leaf([1.0]), 3.0)
    assert y.grad_fn.scale == 3.0
    assert y.grad_fn.needs_input_grad == (True, False)
    assert not hasattr(y.grad_fn, "other")


def test_so_has_that_of_one_of_several_outputs(tg, leaf):
    _, z = function(tg, several=True)(leaf([1.0]), 3.0)
    assert z.grad_fn.scale == 3.0
    assert z.grad_fn.saved_tensors[1].tolist() == [3.0]


def test_that_of_an_operation_has_none(leaf):
    x = leaf([1.0])
    assert not hasattr((x * x).grad_fn, "saved_tensors")


def test_a_released_one_keeps_nothing(tg, leaf):
    y = function(tg)(leaf([1.0]), 3.0)
    y.backward(tg.ones(1))
    with pytest.raises((RuntimeError, AttributeError), match=r"second time|released"):
        _ = y.grad_fn.saved_tensors
