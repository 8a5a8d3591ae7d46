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


def test_what_an_elementwise_operation_saved(tg):
    a, b = (tg.tensor(v, requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    product = (a * b).grad_fn
    assert product._saved_self is a
    assert product._saved_other is b
    y = a.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn == y.grad_fn
    found = y.grad_fn._saved_result
    with tg.no_grad():
        y += 1
    assert found._version == y._version == 1
    assert found.tolist() == y.tolist()
    assert (y * b).grad_fn._saved_self is y
    assert (a * 3.0).grad_fn._saved_other.item() == 3.0
    for node, name in ((product, "_saved_result"), (a.sum().grad_fn, "_saved_self")):
        with pytest.raises(AttributeError, match="_saved"):
            getattr(node, name)


def test_saved_values_that_were_released_or_went_through_hooks(tg):
    a = tg.tensor([1.0, 2.0], requires_grad=True)
    y = a * a
    y.sum().backward()
    with pytest.raises(RuntimeError):
        _ = y.grad_fn._saved_self
    with tg.autograd.graph.saved_tensors_hooks(lambda t: 2 * t, lambda t: t):
        y = a * a
    assert y.grad_fn._saved_other.tolist() == [2.0, 4.0]
