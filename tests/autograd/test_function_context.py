"""`autograd.Function`: attributes of `ctx`, saved tensors, inputs that are changed."""

import pytest

# --------------------------------------------------------------------------------------------------
# ctx: attributes, saved tensors, dirty inputs
# --------------------------------------------------------------------------------------------------


def test_ctx_carries_any_attribute_from_forward_to_backward(leaf, Function):
    class Power(Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            ctx.note = {"made": "here"}
            ctx.save_for_backward(x)
            return x**n

        @staticmethod
        def backward(ctx, g):
            assert ctx.note == {"made": "here"}
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = leaf(2.0)
    Power.apply(x, 3).backward()
    assert x.grad.item() == 12.0


def test_saved_tensors_include_none_and_intermediates(leaf, Function):
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            factor = x * 10
            ctx.save_for_backward(x, None, factor)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            x, nothing, factor = ctx.saved_tensors
            assert nothing is None
            return g * factor + x

    x = leaf(3.0)
    Save.apply(x).backward()
    assert x.grad.item() == 33.0


def test_saving_what_is_not_a_tensor_is_refused(leaf, Function):
    class Save(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3.0)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(TypeError, match="float"):
        Save.apply(leaf(3.0))


def test_a_saved_input_that_was_changed_is_an_error(leaf, Square):
    x = leaf([1.0, 2.0])
    u = x * 1
    y = Square.apply(u)
    u.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        y.sum().backward()
    assert x.grad is None


def test_a_saved_output_that_was_changed_is_an_error(tg, leaf, Function):
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = tg.exp(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf([1.0, 2.0])
    y = Exp.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        y.sum().backward()
    assert x.grad is None


def test_saved_tensors_are_released_after_backward(leaf, Square):
    x = leaf(3.0)
    y = Square.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert x.grad.item() == 6.0


def test_saved_tensors_survive_with_retain_graph(leaf, Square):
    x = leaf(3.0)
    y = Square.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12.0


def test_a_saved_input_is_the_input_with_its_history(leaf, Function):
    """That is what makes backward itself differentiable."""
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            seen.append((x.requires_grad, x.is_leaf))
            return g * 2

    x = leaf(3.0)
    Look.apply(x).backward()
    Look.apply(x * 1).backward()
    assert seen == [(True, True), (True, False)]


def test_mark_dirty_makes_an_in_place_operation(leaf, Function):
    class Double_(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf([1.0, 2.0])
    y = x * 5
    z = Double_.apply(y)
    assert z is y
    assert y.tolist() == [10.0, 20.0]
    assert y._version > 0
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def test_mark_dirty_on_a_leaf_that_requires_grad_is_refused(leaf, Function):
    class Double_(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="leaf"):
        Double_.apply(leaf([1.0]))
