"""`autograd.Function`: operations with a derivative written by the user."""

import numpy as np
import pytest


@pytest.fixture
def Mul(Function):
    class Mul(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    return Mul


# --------------------------------------------------------------------------------------------------
# Forward
# --------------------------------------------------------------------------------------------------


def test_apply_records_one_operation_named_after_the_class(leaf, Square):
    y = Square.apply(leaf(3.0))
    assert y.item() == 9.0
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn.name().startswith("SquareBackward")


def test_forward_runs_without_recording(tg, leaf, Function):
    modes = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(tg.is_grad_enabled())
            y = x * 2
            modes.append(y.requires_grad)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Look.apply(leaf(3.0))
    assert modes == [False, False]
    assert tg.is_grad_enabled()


def test_apply_on_plain_inputs_records_nothing(tg, Square):
    y = Square.apply(tg.tensor(3.0))
    assert (y.item(), y.requires_grad, y.grad_fn) == (9.0, False, None)


def test_apply_under_no_grad_records_nothing(tg, leaf, Square):
    with tg.no_grad():
        y = Square.apply(leaf(3.0))
    assert (y.requires_grad, y.grad_fn) == (False, None)


def test_backward_is_called_once_with_the_gradient(leaf, Square):
    x = leaf([1.0, 2.0])
    (Square.apply(x) * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_it_takes_its_place_among_ordinary_operations(tg, leaf, Square):
    x = leaf(0.5)
    y = tg.sin(Square.apply(tg.exp(x)) * 2)
    y.backward()
    u = np.exp(0.5) ** 2 * 2
    assert x.grad.item() == pytest.approx(np.cos(u) * 2 * u, rel=1e-14)


def test_apply_may_be_bound_to_a_name(leaf, Square):
    square = Square.apply
    x = leaf(3.0)
    square(square(x)).backward()
    assert x.grad.item() == 4 * 27.0


def test_arguments_that_are_not_tensors_get_none(leaf, Function):
    class Affine(Function):
        @staticmethod
        def forward(ctx, x, scale, how, shift=0.0):
            ctx.scale = scale
            assert how == "now"
            return x * scale + shift

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None, None, None

    x = leaf(3.0)
    y = Affine.apply(x, 5.0, "now", 1.0)
    assert y.item() == 16.0
    y.backward()
    assert x.grad.item() == 5.0


def test_trailing_none_for_arguments_left_at_their_default(leaf, Function):
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, scale=2.0):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    x = leaf(3.0)
    Scale.apply(x).backward()
    assert x.grad.item() == 2.0


def test_keyword_arguments(leaf, Function):
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, scale=2.0):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    x = leaf(3.0)
    Scale.apply(x, scale=7.0).backward()
    assert x.grad.item() == 7.0


def test_tensors_inside_a_list_are_not_tracked(leaf, Function):
    class First(Function):
        @staticmethod
        def forward(ctx, items):
            return items[0] * 2

        @staticmethod
        def backward(ctx, g):
            return None

    y = First.apply([leaf(3.0)])
    assert (y.item(), y.requires_grad) == (6.0, False)


def test_results_that_are_not_tensors_are_passed_through(leaf, Function):
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, 7, None

        @staticmethod
        def backward(ctx, g, *rest):
            assert rest == (None, None)
            return g * 2

    x = leaf(3.0)
    y, number, nothing = Split.apply(x)
    assert (number, nothing) == (7, None)
    y.backward()
    assert x.grad.item() == 2.0


def test_returning_an_input_unchanged_gives_a_tensor_with_history(leaf, Function):
    class Reverse(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = leaf(3.0)
    y = Reverse.apply(x)
    assert y is not x
    assert not y.is_leaf
    assert x.is_leaf
    (y * 2).backward()
    assert x.grad.item() == -2.0


def test_setup_context_style(leaf, Function):
    class Mul(Function):
        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    a, b = leaf(3.0), leaf(4.0)
    Mul.apply(a, b).backward()
    assert (a.grad.item(), b.grad.item()) == (4.0, 3.0)


def test_vjp_is_another_name_for_backward(leaf, Function):
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf(3.0)
    Double.apply(x).backward()
    assert x.grad.item() == 2.0


# --------------------------------------------------------------------------------------------------
# Several inputs and outputs
# --------------------------------------------------------------------------------------------------


def test_one_gradient_per_input(leaf, Mul):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    Mul.apply(a, b).sum().backward()
    assert a.grad.tolist() == [3.0, 4.0]
    assert b.grad.tolist() == [1.0, 2.0]


def test_the_same_tensor_twice_gets_the_sum(leaf, Mul):
    x = leaf(3.0)
    Mul.apply(x, x).backward()
    assert x.grad.item() == 6.0


@pytest.fixture
def TwoOutputs(Function):
    class TwoOutputs(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            ctx.seen = (g, h)
            return 2 * g + 3 * h

    return TwoOutputs


def test_several_outputs_each_bring_their_gradient(leaf, TwoOutputs):
    x = leaf(1.0)
    a, b = TwoOutputs.apply(x)
    (a * 10 + b * 100).backward()
    assert x.grad.item() == 320.0


def test_several_outputs_come_as_a_tuple(leaf, TwoOutputs):
    outputs = TwoOutputs.apply(leaf(1.0))
    assert isinstance(outputs, tuple)
    assert len(outputs) == 2


def test_an_unused_output_brings_zeros(leaf, TwoOutputs):
    x = leaf(1.0)
    a, _ = TwoOutputs.apply(x)
    a.backward()
    assert x.grad.item() == 2.0
    x.grad = None
    _, b = TwoOutputs.apply(x)
    b.backward()
    assert x.grad.item() == 3.0


def test_both_outputs_as_roots(tg, leaf, TwoOutputs):
    x = leaf(1.0)
    tg.autograd.backward(TwoOutputs.apply(x))
    assert x.grad.item() == 5.0


def test_set_materialize_grads_false_brings_none(leaf, Function):
    seen = []

    class TwoOutputs(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g is None, h is None))
            return 2 * g

    x = leaf(1.0)
    a, _ = TwoOutputs.apply(x)
    a.backward()
    assert seen == [(False, True)]
    assert x.grad.item() == 2.0


def test_a_gradient_of_none_means_no_contribution(leaf, Function):
    class First(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g * 7, None

    a, b = leaf(1.0), leaf(2.0)
    First.apply(a, b).backward()
    assert a.grad.item() == 7.0
    assert b.grad is None


def test_none_for_every_input(leaf, Function):
    class Cut(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(1.0)
    (Cut.apply(x) + x).backward()
    assert x.grad.item() == 1.0


def test_needs_input_grad(tg, leaf, Function):
    seen = []

    class Mul(Function):
        @staticmethod
        def forward(ctx, a, k, b):
            ctx.save_for_backward(a, b)
            return a * b * k

        @staticmethod
        def backward(ctx, g):
            seen.append(tuple(ctx.needs_input_grad))
            a, b = ctx.saved_tensors
            return g * b, None, g * a

    x, c = leaf(3.0), tg.tensor(4.0)
    Mul.apply(x, 2, c).backward()
    Mul.apply(c, 2, x).backward()
    Mul.apply(x, 2, x).backward()
    assert seen == [(True, False, False), (False, False, True), (True, False, True)]


def test_gradients_for_inputs_that_need_none_are_ignored(tg, leaf, Mul):
    x, c = leaf(3.0), tg.tensor(4.0)
    Mul.apply(x, c).backward()
    assert x.grad.item() == 4.0
    assert c.grad is None


def test_mark_non_differentiable(tg, leaf, Function):
    class SortPair(Function):
        @staticmethod
        def forward(ctx, x):
            order = x.argmax()
            ctx.mark_non_differentiable(order)
            return x * 2, order

        @staticmethod
        def backward(ctx, g, g_order):
            return g * 2

    x = leaf([1.0, 5.0])
    y, order = SortPair.apply(x)
    assert order.item() == 1
    assert y.requires_grad
    assert not order.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_mark_non_differentiable_float_output(leaf, Function):
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            floor = x - x % 1
            ctx.mark_non_differentiable(floor)
            return x * 2, floor

        @staticmethod
        def backward(ctx, g, g_floor):
            assert g_floor is None or not g_floor.any()
            return g * 2

    x = leaf(1.5)
    y, floor = Both.apply(x)
    assert (floor.item(), floor.requires_grad) == (1.0, False)
    (y + floor).backward()
    assert x.grad.item() == 2.0


def test_integer_outputs_never_require_grad(tg, leaf, Function):
    class Count(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.argmax()

        @staticmethod
        def backward(ctx, g, h):
            return g * 2

    _, index = Count.apply(leaf([1.0, 2.0]))
    assert index.dtype == tg.int64
    assert not index.requires_grad


# --------------------------------------------------------------------------------------------------
# Higher derivatives
# --------------------------------------------------------------------------------------------------


def test_double_backward_through_backward(tg, leaf, Square):
    x = leaf(3.0)
    y = Square.apply(x) * x
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    assert g.item() == 27.0
    (h,) = tg.autograd.grad(g, x)
    assert h.item() == 18.0


def test_backward_built_from_the_function_itself(tg, leaf, Function):
    """exp' = exp: backward may apply the Function again, to any order."""

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * Exp.apply(ctx.saved_tensors[0])

    x = leaf(0.5)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(np.exp(0.5), rel=1e-15)


def test_double_backward_through_a_saved_output(tg, leaf, Function):
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(0.5)
    (g,) = tg.autograd.grad(Exp.apply(x), x, create_graph=True)
    (h,) = tg.autograd.grad(g, x)
    assert h.item() == pytest.approx(np.exp(0.5), rel=1e-15)
    assert tg.autograd.gradgradcheck(Exp.apply, (leaf([0.1, 0.2]),))


def test_grad_mode_in_backward_follows_create_graph(tg, leaf, Function):
    modes = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            modes.append(tg.is_grad_enabled())
            return g * 2

    x = leaf(3.0)
    tg.autograd.grad(Look.apply(x), x)
    tg.autograd.grad(Look.apply(x), x, create_graph=True)
    assert modes == [False, True]


def test_once_differentiable_gives_a_first_derivative(tg, leaf, Function):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @tg.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(3.0)
    Square.apply(x).backward()
    assert x.grad.item() == 6.0
    (g,) = tg.autograd.grad(Square.apply(x) * x, x, create_graph=True)
    assert g.item() == 27.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()
