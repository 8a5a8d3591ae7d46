"""`autograd.grad`: gradients as return values."""

import numpy as np
import pytest


def values(grads):
    return [None if g is None else g.tolist() for g in grads]


def test_returns_a_tuple_even_for_one_input(tg, leaf):
    x = leaf(3.0)
    grads = tg.autograd.grad(x * x, x)
    assert isinstance(grads, tuple)
    assert values(grads) == [6.0]


def test_one_gradient_per_input_in_the_order_of_the_inputs(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    z = x * y * y
    assert values(tg.autograd.grad(z, [x, y], retain_graph=True)) == [9.0, 12.0]
    assert values(tg.autograd.grad(z, (y, x))) == [12.0, 9.0]


def test_arguments_by_position(tg, leaf):
    x, unused = leaf([1.0, 2.0]), leaf(1.0)
    y = x * x
    grads = tg.autograd.grad(y, (x, unused), tg.ones(2), True, False, True, True)
    assert values(grads) == [[2.0, 4.0], None]
    y.sum().backward()


def test_grad_of_the_leaves_is_not_touched(tg, leaf):
    x = leaf(3.0)
    x.grad = tg.tensor(100.0)
    tg.autograd.grad(x * x, x)
    assert x.grad.item() == 100.0
    y = leaf(1.0)
    tg.autograd.grad(y * 2, y)
    assert y.grad is None


def test_intermediates_may_be_inputs(tg, leaf):
    x = leaf(3.0)
    y = x * 2
    z = y * y
    assert values(tg.autograd.grad(z, y)) == [12.0]


def test_leaf_and_intermediate_together(tg, leaf):
    x = leaf(3.0)
    y = x * 2
    z = y * y + x
    assert values(tg.autograd.grad(z, [x, y])) == [25.0, 12.0]


def test_the_gradient_of_an_input_counts_all_paths(tg, leaf):
    """dz/dx holds the other inputs free only where z uses x beside them."""
    x = leaf(3.0)
    y = x * x
    z = y * x
    gx, gy = tg.autograd.grad(z, [x, y])
    assert (gx.item(), gy.item()) == (27.0, 3.0)


def test_the_output_itself_as_an_input(tg, leaf):
    x = leaf(3.0)
    y = x * x
    assert values(tg.autograd.grad(y, y)) == [1.0]
    x = leaf([1.0, 2.0])
    y = x * x
    weight = tg.tensor([5.0, 7.0])
    assert values(tg.autograd.grad(y, [y, x], weight)) == [[5.0, 7.0], [10.0, 28.0]]


def test_a_leaf_as_output_and_input(tg, leaf):
    x = leaf(3.0)
    assert values(tg.autograd.grad(x, x)) == [1.0]


def test_the_same_input_twice(tg, leaf):
    x = leaf(3.0)
    first, second = tg.autograd.grad(x * x, [x, x])
    assert (first.item(), second.item()) == (6.0, 6.0)


def test_several_outputs_add_up(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    assert values(tg.autograd.grad([x * y, x * x], [x, y])) == [7.0, 2.0]


def test_the_same_output_twice(tg, leaf):
    x = leaf(3.0)
    y = x * x
    assert values(tg.autograd.grad([y, y], x)) == [12.0]


def test_grad_outputs_weigh_the_outputs(tg, leaf):
    x = leaf([1.0, 2.0])
    grads = tg.autograd.grad([x * x, x.sum()], x, [tg.tensor([1.0, 10.0]), tg.tensor(100.0)])
    assert values(grads) == [[102.0, 140.0]]


def test_grad_outputs_may_be_none_for_scalars(tg, leaf):
    x = leaf([1.0, 2.0])
    grads = tg.autograd.grad([x * x, x.sum()], x, [tg.tensor([1.0, 10.0]), None])
    assert values(grads) == [[3.0, 41.0]]


def test_grad_outputs_of_a_broadcast_operation(tg, leaf):
    x, y = leaf([[1.0], [2.0]]), leaf([10.0, 20.0, 30.0])
    gx, gy = tg.autograd.grad(x * y, [x, y], tg.ones((2, 3)))
    assert gx.tolist() == [[60.0], [60.0]]
    assert gy.tolist() == [3.0, 3.0, 3.0]


def test_grad_outputs_of_another_shape_are_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    for wrong in (tg.ones(3), tg.ones((2, 1)), tg.tensor(1.0)):
        with pytest.raises(RuntimeError, match=r"(?i)shape"):
            tg.autograd.grad(y, x, wrong)
    assert values(tg.autograd.grad(y, x, tg.ones(2))) == [[2.0, 4.0]]


def test_as_many_grad_outputs_as_outputs(tg, leaf):
    x = leaf(3.0)
    y = x * x
    with pytest.raises(RuntimeError):
        tg.autograd.grad([y, y], x, [tg.tensor(1.0)])


def test_a_vector_output_without_grad_outputs_is_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="scalar"):
        tg.autograd.grad(x * x, x)


def test_an_unused_input_is_an_error(tg, leaf):
    x, unused = leaf(3.0), leaf(4.0)
    y = x * x
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        tg.autograd.grad(y, [x, unused])


def test_allow_unused_gives_none(tg, leaf):
    x, unused = leaf(3.0), leaf(4.0)
    assert values(tg.autograd.grad(x * x, [x, unused], allow_unused=True)) == [6.0, None]


def test_an_intermediate_that_lies_beside_the_output_is_unused(tg, leaf):
    x = leaf(3.0)
    beside = x * 5
    y = x * x
    assert values(tg.autograd.grad(y, beside, allow_unused=True)) == [None]


def test_an_intermediate_above_the_output_is_unused(tg, leaf):
    x = leaf(3.0)
    y = x * x
    above = y * 2
    assert values(tg.autograd.grad(y, above, allow_unused=True)) == [None]


def test_materialize_grads_gives_zeros(tg, leaf):
    x, unused = leaf(3.0), leaf([4.0, 5.0])
    grads = tg.autograd.grad(x * x, [x, unused], materialize_grads=True)
    assert values(grads) == [6.0, [0.0, 0.0]]
    assert not grads[1].requires_grad


def test_inputs_in_a_dict(tg, leaf):
    x, w = leaf(3.0), leaf([4.0, 5.0])
    grads = tg.autograd.grad(x * w.sum(), {"x": x, "w": w}, retain_graph=True)
    assert list(grads) == ["x", "w"]
    assert values(grads.values()) == [9.0, [3.0, 3.0]]
    tg.autograd.backward(x * w.sum(), inputs={"w": w})
    assert x.grad is None
    assert w.grad.tolist() == [3.0, 3.0]


def test_inputs_are_any_iterable(tg, leaf):
    x, w = leaf(3.0), leaf(4.0)
    assert values(tg.autograd.grad(x * w, (t for t in [x, w]))) == [4.0, 3.0]


def test_materialize_grads_zeros_may_be_differentiated_on(tg, leaf):
    x, unused = leaf(3.0), leaf([4.0, 5.0])
    gx, gu = tg.autograd.grad(x * x, [x, unused], materialize_grads=True, create_graph=True)
    assert gu.requires_grad
    (second,) = tg.autograd.grad(gx + gu.sum(), x)
    assert second.item() == 2.0


def test_materialize_grads_contradicts_allow_unused_false(tg, leaf):
    x = leaf(3.0)
    with pytest.raises(ValueError, match="materialize_grads"):
        tg.autograd.grad(x * x, x, allow_unused=False, materialize_grads=True)


def test_an_input_that_does_not_require_grad_is_refused(tg, leaf):
    x, c = leaf(3.0), tg.tensor(2.0)
    with pytest.raises(RuntimeError, match="require"):
        tg.autograd.grad(x * c, [x, c])
    with pytest.raises(RuntimeError, match="require"):
        tg.autograd.grad(x * c, c, allow_unused=True)


def test_an_output_that_does_not_require_grad_is_refused(tg, leaf):
    with pytest.raises(RuntimeError, match="require"):
        tg.autograd.grad(tg.tensor(1.0), leaf(1.0))


def test_grad_releases_what_it_swept(tg, leaf):
    x = leaf(3.0)
    y = x * x
    tg.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert x.grad is None


def test_grad_with_retain_graph_releases_nothing(tg, leaf):
    x = leaf(3.0)
    y = x * x
    for _ in range(3):
        assert values(tg.autograd.grad(y, x, retain_graph=True)) == [6.0]
    y.backward()


def test_the_sweep_stops_at_the_inputs(tg, leaf):
    """What lies below the inputs is neither run nor released."""
    x = leaf(3.0)
    y = tg.exp(x)
    z = y * y
    (gy,) = tg.autograd.grad(z, y)
    y.backward(gy)
    assert x.grad.item() == pytest.approx(2 * np.exp(6.0), rel=1e-14)


def test_records_that_do_not_lead_to_an_input_are_not_swept(tg, leaf):
    """A released part beside the path does no harm."""
    x, w = leaf(3.0), leaf(2.0)
    side = w * w
    side.backward()
    z = x * x + side
    assert values(tg.autograd.grad(z, x)) == [6.0]


def test_create_graph_allows_a_second_derivative(tg, leaf):
    x = leaf([1.0, 2.0])
    (g,) = tg.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad
    assert values(tg.autograd.grad(g.sum(), x)) == [[6.0, 12.0]]


def test_create_graph_through_an_intermediate(tg, leaf):
    x = leaf(2.0)
    y = x * x
    z = y**3
    (gy,) = tg.autograd.grad(z, y, create_graph=True)
    assert gy.item() == 48.0
    assert values(tg.autograd.grad(gy, [y, x], allow_unused=True)) == [24.0, 96.0]


def test_hessian_by_rows(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = (x[0] * x[1] * x[2]) + x[0] ** 2
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    rows = [tg.autograd.grad(g[i], x, retain_graph=True)[0].tolist() for i in range(3)]
    assert rows == [[2.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def test_mixed_second_derivative(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    (gx,) = tg.autograd.grad(x * x * y, x, create_graph=True)
    assert values(tg.autograd.grad(gx, y)) == [4.0]


def test_a_linear_function_has_no_second_derivative(tg, leaf):
    x = leaf(3.0)
    (g,) = tg.autograd.grad(x * 5, x, create_graph=True)
    assert g.item() == 5.0
    assert not g.requires_grad or values(tg.autograd.grad(g, x, allow_unused=True)) in (
        [None],
        [0.0],
    )


def test_gradients_returned_do_not_share_memory(tg, leaf):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    gx, gy = tg.autograd.grad((x + y).sum(), [x, y])
    gx.clone().add_(1)
    assert gy.tolist() == [1.0, 1.0]


def test_gradients_have_the_dtype_of_the_input(tg):
    x = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    y = tg.tensor([3.0, 4.0], dtype=tg.float64, requires_grad=True)
    gx, gy = tg.autograd.grad((x * y).sum(), [x, y])
    assert (gx.dtype, gy.dtype) == (tg.float32, tg.float64)


def test_views_and_indexing_as_inputs(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    head = x[:2]
    z = (head * head).sum() + x.sum()
    gx, gh = tg.autograd.grad(z, [x, head])
    assert gh.tolist() == [2.0, 4.0]
    assert gx.tolist() == [3.0, 5.0, 1.0]


def test_a_view_made_after_the_use_is_unused(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    z = (x * x).sum()
    assert values(tg.autograd.grad(z, x[:2], allow_unused=True)) == [None]


def test_an_input_modified_in_place_names_its_newest_value(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    old = y + 0
    y.mul_(3)
    z = (y * y).sum() + old.sum()
    (gy,) = tg.autograd.grad(z, y)
    assert gy.tolist() == [6.0, 12.0]


def test_grad_under_no_grad_without_create_graph(tg, leaf):
    x = leaf(3.0)
    y = x * x
    with tg.no_grad():
        assert values(tg.autograd.grad(y, x)) == [6.0]


def test_inputs_must_be_tensors(tg, leaf):
    x = leaf(3.0)
    with pytest.raises(TypeError):
        tg.autograd.grad(x * x, 3.0)


def test_empty_inputs_are_refused(tg, leaf):
    x = leaf(3.0)
    with pytest.raises((RuntimeError, ValueError)):
        tg.autograd.grad(x * x, [])


def test_backward_that_is_recorded_warns_of_what_it_holds(tg, leaf):
    x = leaf([1.0, 2.0])
    always = getattr(tg, "set_warn_always", lambda _: None)
    always(True)  # PyTorch's default is to warn once in a process
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x * x).sum().backward(create_graph=True)
    always(False)
    assert x.grad.requires_grad
    x.grad = None
    tg.autograd.grad((x * x).sum(), x, create_graph=True)  # without a warning


@pytest.mark.tapegrad_only("PyTorch's `.grad` shares the memory of the weights here")
@pytest.mark.parametrize("size", [3, 40000])
def test_weights_are_not_shared_by_the_gradients(tg, size):
    x, y, z = [tg.ones(size, requires_grad=True) for _ in range(3)]

    class Same(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g

    weights = tg.arange(3 * size).to(x.dtype)
    before = weights.clone()
    joined = tg.cat((x, (Same.apply(y) + y).view(1, size)[0], z + 0.0))
    joined.retain_grad()
    for k in range(2):
        joined.backward(weights, retain_graph=True)
        assert tg.equal(x.grad, (k + 1) * before[:size])
        assert tg.equal(y.grad, (k + 1) * 2 * before[size : 2 * size])
        assert tg.equal(weights, before)
    (alone,) = tg.autograd.grad(z.view(size), z, weights[:size])
    for gradient in (x.grad, y.grad, z.grad, joined.grad, alone):
        gradient.zero_()
    assert tg.equal(weights, before)
