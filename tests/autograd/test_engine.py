"""`backward`: what it adds to which leaves, what it releases, and what it refuses."""

import numpy as np
import pytest

# --------------------------------------------------------------------------------------------------
# Roots and weights
# --------------------------------------------------------------------------------------------------


def test_scalar_root_is_seeded_with_one(leaf):
    x = leaf(3.0)
    (x * x).backward()
    assert x.grad.item() == 6.0


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_root_of_one_element_needs_no_weights(tg, shape):
    x = tg.ones(shape, requires_grad=True)
    (x * 2).backward()
    assert x.grad.tolist() == (tg.ones(shape) * 2).tolist()
    assert tuple(x.grad.shape) == shape


def test_gradient_weighs_a_vector_root(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    (x * x).backward(tg.tensor([1.0, 10.0, 100.0]))
    assert x.grad.tolist() == [2.0, 40.0, 600.0]


def test_gradient_may_be_given_for_a_scalar_root(tg, leaf):
    x = leaf(3.0)
    (x * x).backward(gradient=tg.tensor(0.5))
    assert x.grad.item() == 3.0


def test_several_roots_add_up(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    tg.autograd.backward([x * y, x + y])
    assert (x.grad.item(), y.grad.item()) == (4.0, 3.0)


def test_several_roots_each_with_its_weight(tg, leaf):
    x = leaf([1.0, 2.0])
    roots = [x * x, (x * 3).sum()]
    tg.autograd.backward(roots, grad_tensors=[tg.tensor([1.0, -1.0]), tg.tensor(10.0)])
    assert x.grad.tolist() == [32.0, 26.0]


def test_none_among_the_weights_means_one(tg, leaf):
    x = leaf([1.0, 2.0])
    tg.autograd.backward((x.sum(), x * 2), (None, tg.tensor([1.0, 1.0])))
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_duplicated_root_counts_twice(tg, leaf):
    x = leaf(3.0)
    y = x * x
    tg.autograd.backward([y, y])
    assert x.grad.item() == 12.0


def test_a_duplicated_root_adds_its_weights(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    tg.autograd.backward([y, y], [tg.tensor([1.0, 0.0]), tg.tensor([2.0, 5.0])])
    assert x.grad.tolist() == [6.0, 20.0]


def test_one_root_may_lie_below_another(tg, leaf):
    x = leaf(3.0)
    y = x * x
    z = y * y
    tg.autograd.backward([z, y])
    assert x.grad.item() == 4 * 27.0 + 6.0


def test_a_leaf_among_the_roots_gets_its_own_seed(tg, leaf):
    x = leaf(3.0)
    tg.autograd.backward([x * x, x])
    assert x.grad.item() == 7.0


def test_a_leaf_is_a_root_that_releases_nothing(leaf):
    x = leaf(3.0)
    x.backward()
    x.backward()
    assert x.grad.item() == 2.0


def test_weights_of_another_dtype_are_cast(tg, leaf):
    x = leaf([1.0, 2.0])
    (x * x).backward(tg.tensor([1.0, 2.0], dtype=tg.float32))
    assert x.grad.dtype == tg.float64
    assert x.grad.tolist() == [2.0, 8.0]


def test_weights_are_not_changed_by_the_sweep(tg, leaf):
    x = leaf([1.0, 2.0])
    weight = tg.tensor([1.0, 2.0])
    y = x + x
    y.backward(weight)
    x.grad.add_(100)
    assert weight.tolist() == [1.0, 2.0]


def test_grad_of_a_leaf_root_is_not_the_weight_itself(tg, leaf):
    x = leaf([1.0, 2.0])
    weight = tg.tensor([3.0, 4.0])
    x.backward(weight)
    x.backward(weight)
    assert x.grad.tolist() == [6.0, 8.0]
    assert weight.tolist() == [3.0, 4.0]


def test_the_root_of_a_tuple_or_list_or_alone(tg, leaf):
    for wrap in (lambda t: t, lambda t: [t], lambda t: (t,)):
        x = leaf(3.0)
        tg.autograd.backward(wrap(x * x))
        assert x.grad.item() == 6.0


# --------------------------------------------------------------------------------------------------
# What lands in .grad
# --------------------------------------------------------------------------------------------------


def test_grad_is_none_before_the_first_backward(leaf):
    assert leaf(1.0).grad is None


def test_grad_accumulates(leaf):
    x = leaf([1.0, 2.0])
    (x * 3).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_grad_accumulates_in_place_into_the_same_tensor(leaf):
    x = leaf([1.0, 2.0])
    x.sum().backward()
    kept = x.grad
    x.sum().backward()
    assert x.grad is kept
    assert kept.tolist() == [2.0, 2.0]


def test_grad_may_be_cleared_set_and_zeroed(tg, leaf):
    x = leaf([1.0, 2.0])
    x.sum().backward()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = tg.tensor([10.0, 20.0])
    (x * 2).sum().backward()
    assert x.grad.tolist() == [12.0, 22.0]
    x.grad.zero_()
    assert x.grad.tolist() == [0.0, 0.0]


def test_grad_of_the_wrong_shape_or_type_is_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"(?i)size|shape"):
        x.grad = tg.ones(3)
    with pytest.raises(TypeError):
        x.grad = 1.0
    assert x.grad is None


def test_grad_has_the_dtype_and_shape_of_the_leaf(tg):
    x = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    y = tg.tensor([[3.0], [4.0]], dtype=tg.float64, requires_grad=True)
    (x * y).sum().backward()
    assert x.grad.dtype == tg.float32
    assert x.grad.tolist() == [7.0, 7.0]
    assert y.grad.dtype == tg.float64
    assert y.grad.tolist() == [[3.0], [3.0]]


def test_grad_is_a_plain_tensor(leaf):
    x = leaf(3.0)
    (x * x).backward()
    assert not x.grad.requires_grad
    assert x.grad.is_leaf
    assert x.grad.grad_fn is None


def test_leaves_that_were_not_used_keep_grad_none(tg, leaf):
    x, unused = leaf(3.0), leaf(4.0)
    (x * x).backward()
    assert unused.grad is None


def test_leaves_that_do_not_require_grad_get_none(tg, leaf):
    x, c = leaf(3.0), tg.tensor(2.0)
    (x * c).backward()
    assert x.grad.item() == 2.0
    assert c.grad is None


def test_grads_of_two_leaves_do_not_share_memory(leaf):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x + y).sum().backward()
    x.grad.add_(10)
    assert y.grad.tolist() == [1.0, 1.0]


def test_grad_survives_the_leaf_stopping_to_require_grad(leaf):
    x = leaf(3.0)
    (x * x).backward()
    x.requires_grad_(False)
    assert x.grad.item() == 6.0


def test_one_tensor_used_many_times_sums_its_uses(leaf):
    x = leaf(2.0)
    y = x * x * x + x * 5 + x
    y.backward()
    assert x.grad.item() == 18.0


def test_diamond(leaf):
    x = leaf(3.0)
    a = x * 2
    b = a + 1
    c = a * a
    (b * c).backward()
    assert x.grad.item() == 2 * 36.0 + 7.0 * 2 * 6.0 * 2


def test_branches_that_do_not_reach_the_root_contribute_nothing(tg, leaf):
    x = leaf(3.0)
    y = x * x
    tg.exp(y)  # dropped
    kept = tg.sin(y)
    (y * 2).backward(retain_graph=True)
    assert x.grad.item() == 12.0
    assert kept.requires_grad


# --------------------------------------------------------------------------------------------------
# inputs=
# --------------------------------------------------------------------------------------------------


def test_inputs_limits_the_leaves(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    (x * y).backward(inputs=[x])
    assert x.grad.item() == 3.0
    assert y.grad is None


def test_inputs_may_be_one_tensor(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    tg.autograd.backward(x * y, inputs=y)
    assert x.grad is None
    assert y.grad.item() == 2.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_inputs_may_be_an_intermediate_which_then_gets_a_grad(tg, leaf):
    x = leaf(3.0)
    y = x * 2
    z = y * y
    z.backward(inputs=[y])
    assert y.grad.item() == 12.0
    assert x.grad is None


@pytest.mark.tapegrad_only("PyTorch also releases the operation that made the input")
def test_inputs_leaves_the_records_below_them_alone(tg, leaf):
    x = leaf(3.0)
    y = tg.exp(x)
    z = y * y
    z.backward(inputs=[y])
    y.backward()
    assert x.grad.item() == pytest.approx(np.exp(3.0), rel=1e-15)


def test_inputs_does_not_release_records_that_lead_elsewhere(tg, leaf):
    x, w = leaf(3.0), leaf(2.0)
    side = w * w
    z = x * x + side
    z.backward(inputs=[x])
    side.backward()
    assert (x.grad.item(), w.grad.item()) == (6.0, 4.0)


def test_inputs_that_the_root_does_not_depend_on_get_nothing(tg, leaf):
    x, other = leaf(3.0), leaf(1.0)
    (x * x).backward(inputs=[x, other])
    assert x.grad.item() == 6.0
    assert other.grad is None


def test_inputs_that_do_not_require_grad_are_refused(tg, leaf):
    x, c = leaf(3.0), tg.tensor(1.0)
    with pytest.raises(RuntimeError, match="require"):
        (x * c).backward(inputs=[c])
    assert x.grad is None


def test_empty_inputs_are_refused(leaf):
    x = leaf(3.0)
    with pytest.raises(RuntimeError, match=r"(?i)inputs.*empty"):
        (x * x).backward(inputs=[])
    assert x.grad is None


# --------------------------------------------------------------------------------------------------
# Release
# --------------------------------------------------------------------------------------------------


def test_second_backward_is_an_error_and_adds_nothing(leaf):
    x = leaf(3.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    assert x.grad.item() == 6.0


def test_second_backward_is_fine_where_nothing_was_saved(leaf):
    """Addition keeps no values, so there is nothing to miss the second time."""
    x = leaf(3.0)
    y = x + x
    y.backward()
    y.backward()
    assert x.grad.item() == 4.0


def test_retain_graph_many_times(leaf):
    x = leaf(3.0)
    y = x * x
    for _ in range(3):
        y.backward(retain_graph=True)
    assert x.grad.item() == 18.0
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_partial_release_leaves_what_is_above(tg, leaf):
    x = leaf(2.0)
    y = x * x
    z = tg.exp(y)
    y.backward()
    (dz_dy,) = tg.autograd.grad(z, y, retain_graph=True)
    assert dz_dy.item() == z.item()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
    assert x.grad.item() == 4.0


def test_partial_release_leaves_what_is_beside(leaf):
    x, w = leaf(2.0), leaf(5.0)
    y = x * x
    v = w * w
    total = y + v
    y.backward()
    v.backward()
    assert (x.grad.item(), w.grad.item()) == (4.0, 10.0)
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()
    assert (x.grad.item(), w.grad.item()) == (4.0, 10.0)


def test_a_shared_prefix_is_released_by_the_first_of_two_roots(leaf):
    x = leaf(2.0)
    shared = x * x
    a, b = shared * 3, shared * shared
    a.backward()
    with pytest.raises(RuntimeError, match="second time"):
        b.backward()
    assert x.grad.item() == 12.0


def test_two_roots_with_a_shared_prefix_in_one_call(tg, leaf):
    x = leaf(2.0)
    shared = x * x
    tg.autograd.backward([shared * 3, shared * shared])
    assert x.grad.item() == 12.0 + 2 * 4.0 * 4.0


def test_disjoint_graphs_do_not_touch_each_other(leaf):
    x, y = leaf(2.0), leaf(3.0)
    a, b = x * x, y * y
    a.backward()
    b.backward()
    assert (x.grad.item(), y.grad.item()) == (4.0, 6.0)


def test_new_operations_may_follow_a_released_part(tg, leaf):
    x = leaf(2.0)
    y = x * x
    y.backward()
    z = y * 3
    assert z.item() == 12.0
    (dz_dy,) = tg.autograd.grad(z, y)
    assert dz_dy.item() == 3.0


def test_the_graph_below_a_dropped_handle_still_serves_the_handle_above(leaf):
    x = leaf(2.0)
    y = x * x
    z = y * y
    del y
    z.backward()
    assert x.grad.item() == 32.0


def test_dropping_the_root_frees_the_rest_for_use(leaf):
    x = leaf(2.0)
    y = x * x
    z = y * y
    del z
    y.backward()
    assert x.grad.item() == 4.0


def test_a_long_lived_intermediate_serves_many_short_graphs(leaf):
    x = leaf(2.0)
    base = x * x
    for k in range(1, 100):
        (base * k).backward(retain_graph=True)
    assert x.grad.item() == 4.0 * sum(range(1, 100))


# --------------------------------------------------------------------------------------------------
# create_graph
# --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_makes_grad_differentiable(tg, leaf):
    x = leaf(3.0)
    (x * x * x).backward(create_graph=True)
    assert x.grad.item() == 27.0
    assert x.grad.requires_grad
    (second,) = tg.autograd.grad(x.grad, x)
    assert second.item() == 18.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_retains_the_graph(leaf):
    x = leaf(3.0)
    y = x * x
    y.backward(create_graph=True)
    x.grad = None
    y.backward()
    assert x.grad.item() == 6.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_with_retain_graph_false_releases(leaf):
    x = leaf(3.0)
    y = x * x
    y.backward(create_graph=True, retain_graph=False)
    assert x.grad.requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_accumulates_out_of_place(tg, leaf):
    """A grad with history is replaced by a sum, so whoever holds the old one keeps its value."""
    x = leaf(3.0)
    (x * x).backward()
    first = x.grad
    (x * x).backward(create_graph=True)
    assert first.item() == 6.0
    assert x.grad.item() == 12.0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_differentiates_the_weight_too(tg, leaf):
    x, weight = leaf([2.0, 3.0]), leaf([5.0, 7.0])
    (x * x).backward(weight, create_graph=True)
    assert x.grad.tolist() == [20.0, 42.0]
    (by_weight,) = tg.autograd.grad(x.grad.sum(), weight)
    assert by_weight.tolist() == [4.0, 6.0]


def test_four_derivatives_in_a_row(tg, leaf):
    x = leaf(2.0)
    y = x**4
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(expected, rel=1e-15)


def test_without_create_graph_the_gradient_has_no_history(tg, leaf):
    x = leaf(3.0)
    (g,) = tg.autograd.grad(x * x, x)
    assert not g.requires_grad
    with pytest.raises(RuntimeError):
        g.backward()


def test_gradient_penalty(tg, leaf):
    """A loss that contains a gradient: d/dw of |d(w x^2)/dx|^2 = 8 w x^2."""
    w, x = leaf(3.0), leaf(2.0)
    (g,) = tg.autograd.grad(w * x * x, x, create_graph=True)
    (g * g).backward()
    assert w.grad.item() == 96.0


# --------------------------------------------------------------------------------------------------
# Errors
# --------------------------------------------------------------------------------------------------


def test_a_vector_root_without_weights_is_refused(leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    with pytest.raises(RuntimeError, match="scalar"):
        y.backward()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_weights_of_another_shape_are_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    for wrong in (tg.ones(3), tg.ones(1), tg.ones((1, 2)), tg.tensor(1.0)):
        with pytest.raises(RuntimeError, match=r"(?i)shape"):
            y.backward(wrong)
    assert x.grad is None
    y.backward(tg.ones(2))
    assert x.grad.tolist() == [2.0, 4.0]


def test_as_many_weights_as_roots(tg, leaf):
    x = leaf(3.0)
    y = x * x
    with pytest.raises(RuntimeError):
        tg.autograd.backward([y, y], [tg.tensor(1.0)])
    assert x.grad is None


def test_weights_must_be_tensors(leaf):
    x = leaf([1.0, 2.0])
    with pytest.raises(TypeError):
        (x * x).backward([1.0, 1.0])
    with pytest.raises(TypeError):
        (x * x).backward("ones")
    assert x.grad is None


def test_a_root_that_needs_no_grad_is_refused(tg):
    with pytest.raises(RuntimeError, match="require"):
        tg.tensor(1.0).backward()
    with pytest.raises(RuntimeError, match="require"):
        (tg.tensor(1.0) * 2).backward()


def test_one_bad_root_among_several_adds_nothing(tg, leaf):
    x = leaf(3.0)
    y = x * x
    with pytest.raises(RuntimeError, match="require"):
        tg.autograd.backward([y, tg.tensor(1.0)])
    assert x.grad is None
    y.backward()
    assert x.grad.item() == 6.0


def test_an_integer_root_is_refused(tg, leaf):
    x = leaf(3.0)
    with pytest.raises(RuntimeError, match="require"):
        (x > 1).backward()
    assert x.grad is None


def test_arguments_by_position(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    y.backward(tg.tensor([1.0, 10.0]), True, False, [x])
    assert x.grad.tolist() == [2.0, 40.0]
    tg.autograd.backward([y], [tg.tensor([1.0, 1.0])], True, False)
    tg.autograd.backward((y,), (tg.tensor([1.0, 1.0]),))
    assert x.grad.tolist() == [6.0, 48.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_backward_returns_none(leaf):
    x = leaf(3.0)
    assert (x * x).backward() is None


def test_backward_works_under_no_grad(tg, leaf):
    x = leaf(3.0)
    y = x * x
    with tg.no_grad():
        y.backward()
    assert x.grad.item() == 6.0
