"""`autograd.Function`: gradients that do not fit, and errors of the user's."""

import pytest

# --------------------------------------------------------------------------------------------------
# Mistakes
# --------------------------------------------------------------------------------------------------


def returning(Function, gradients):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return gradients(g)

    return Wrong


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_wrong_number_of_gradients(leaf, Function, count):
    a, b = leaf(1.0), leaf(2.0)
    wrong = returning(Function, lambda g: (g,) * count)
    with pytest.raises(RuntimeError, match=f"(?i)Wrong.*number of gradients.*2.*{count}"):
        wrong.apply(a, b).backward()
    assert a.grad is None
    assert b.grad is None
    (a * b).backward()
    assert (a.grad.item(), b.grad.item()) == (2.0, 1.0)


def test_arguments_by_keyword_alone_are_refused(leaf, Function):
    class Scaled(Function):
        @staticmethod
        def forward(ctx, a, *, factor):
            return factor * a

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(TypeError):
        Scaled.apply(leaf(1.0), factor=2.0)


def test_extra_none_gradients_are_forgiven(leaf, Function):
    a, b = leaf(1.0), leaf(2.0)
    returning(Function, lambda g: (g, g, None, None)).apply(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (1.0, 1.0)


def test_a_gradient_of_the_wrong_shape(tg, leaf, Function):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    wrong = returning(Function, lambda g: (tg.ones(3), g))
    with pytest.raises(RuntimeError, match=r"(?i)shape"):
        wrong.apply(a, b).sum().backward()
    assert a.grad is None


def test_a_gradient_that_was_broadcast_is_summed(tg, leaf, Function):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    returning(Function, lambda g: (tg.ones((3, 2)), g)).apply(a, b).sum().backward()
    assert a.grad.tolist() == [3.0, 3.0]


def test_a_gradient_of_another_dtype_is_cast(tg, leaf, Function):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    wrong = returning(Function, lambda g: (tg.ones(2, dtype=tg.float32), g))
    wrong.apply(a, b).sum().backward()
    assert a.grad.dtype == tg.float64
    assert a.grad.tolist() == [1.0, 1.0]


def test_a_gradient_that_is_not_a_tensor(leaf, Function):
    a, b = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="float"):
        returning(Function, lambda g: (3.0, g)).apply(a, b).backward()
    assert a.grad is None


def test_an_error_in_backward_comes_through(leaf, Function):
    def broken(g):
        raise ZeroDivisionError("in backward")

    a, b = leaf(1.0), leaf(2.0)
    with pytest.raises(ZeroDivisionError, match="in backward"):
        returning(Function, broken).apply(a, b).backward()
    assert a.grad is None
    (a * b).backward()
    assert a.grad.item() == 2.0


def test_an_error_in_forward_leaves_the_grad_mode_alone(tg, leaf, Function):
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            raise ZeroDivisionError("in forward")

    with pytest.raises(ZeroDivisionError, match="in forward"):
        Broken.apply(leaf(1.0))
    assert tg.is_grad_enabled()
    assert (leaf(1.0) * 2).requires_grad


def test_without_forward(leaf, Function):
    class Empty(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Empty.apply(leaf(1.0))


def test_without_backward(leaf, Function):
    class OneWay(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    y = OneWay.apply(leaf(1.0))
    assert y.item() == 2.0
    with pytest.raises(NotImplementedError, match="backward"):
        y.backward()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_calling_an_instance_is_refused(leaf, Square):
    with pytest.raises((RuntimeError, TypeError)):
        Square()(leaf(1.0))


def test_backward_may_change_the_gradient_it_was_given_a_copy_of(leaf, Function):
    class Relu(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            gx = g.clone()
            gx[ctx.saved_tensors[0] < 0] = 0
            return gx

    x = leaf([-1.0, 2.0])
    y = Relu.apply(x)
    (y * 3 + x).sum().backward()
    assert x.grad.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("several", [False, True])
def test_dimensions_of_vmap_that_are_not_like_the_results(tg, Function, several):
    class Doubled(Function):
        @staticmethod
        def forward(x):
            return [2 * x] if several else 2 * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return ([2 * x] if several else 2 * x), (0,)

    with pytest.raises(RuntimeError, match="returned an incompatible"):
        tg.vmap(Doubled.apply)(tg.ones(2, 3))
