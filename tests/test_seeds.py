"""The rules and samples that people learn autograd from, each with the value that is printed there.

The order follows five introductions to PyTorch's autograd; `tests/nn` has their conv2d.
"""

import math

import pytest

# --------------------------------------------------------------------------------------------------
# The graph and its tensors
# --------------------------------------------------------------------------------------------------


def test_backward_on_the_result_fills_grad_of_the_leaf(tg):
    """`e.backward()` changes `a`: a.grad is d(e)/d(a)."""
    a = tg.tensor(2.0, requires_grad=True)
    b = tg.tensor(3.0, requires_grad=True)
    c = a + b
    d = tg.tensor(4.0, requires_grad=True)
    e = c * d
    e.backward()
    assert repr(a.grad) == "tensor(4.)"
    assert repr(b.grad) == "tensor(4.)"
    assert repr(d.grad) == "tensor(5.)"


def test_attribute_requires_grad_is_false_by_default(tg):
    assert tg.tensor(1.0).requires_grad is False
    assert tg.tensor(1.0, requires_grad=True).requires_grad is True


def test_attribute_requires_grad_is_for_floating_point_only(tg):
    with pytest.raises(RuntimeError, match=r"(?i)float"):
        tg.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"(?i)float"):
        tg.tensor([1, 2]).requires_grad_()


def test_attribute_requires_grad_of_an_intermediate_cannot_be_turned_off(tg, leaf):
    y = leaf(1.0) * 2
    assert y.requires_grad is True
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    assert y.requires_grad is True


def test_attribute_grad_fn_is_set_only_on_results_of_operations(tg, leaf):
    x = leaf(1.0)
    assert x.grad_fn is None
    assert (x * 2).grad_fn is not None
    assert (tg.tensor(1.0) * 2).grad_fn is None


def test_attribute_version_counts_in_place_operations(tg):
    x = tg.zeros(3)
    assert x._version == 0
    x.add_(1)
    x.mul_(2)
    assert x._version == 2


def test_attribute_version_must_not_move_once_a_value_is_needed_for_backward(tg, leaf):
    x = leaf(1.0)
    y = x * 1.0
    z = y * y
    y.add_(1)
    assert y._version == 1
    with pytest.raises(RuntimeError, match=r"(?i)in-?place"):
        z.backward()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attribute_retains_grad_is_set_by_retain_grad(tg, leaf):
    x = leaf(3.0)
    y = x * 2
    z = y * y
    assert y.retains_grad is False
    y.retain_grad()
    assert y.retains_grad is True
    z.backward()
    assert repr(y.grad) == "tensor(12.)"
    assert z.grad is None


def test_attribute_data_is_the_value_without_history(tg, leaf):
    y = leaf(3.0) * 2
    assert repr(y.data) == "tensor(6.)"
    assert y.data.requires_grad is False


# --------------------------------------------------------------------------------------------------
# Leaves and intermediates: the table of (requires_grad, grad_fn)
# --------------------------------------------------------------------------------------------------


def test_leaf_table_no_grad_no_grad_fn_makes_leaves_and_no_graph(tg):
    x = tg.tensor(1.0)
    y = x * 2
    for t in (x, y):
        assert (t.is_leaf, t.requires_grad, t.grad_fn) == (True, False, None)


def test_leaf_table_a_grad_fn_never_goes_without_requires_grad(tg, leaf):
    x = leaf(1.0)
    with tg.no_grad():
        y = x * 2
    assert (y.is_leaf, y.requires_grad, y.grad_fn) == (True, False, None)


def test_leaf_table_a_leaf_that_requires_grad_makes_intermediates(tg, leaf):
    x = leaf(1.0)
    assert (x.is_leaf, x.requires_grad, x.grad_fn) == (True, True, None)
    y = x * 2
    assert (y.is_leaf, y.requires_grad) == (False, True)
    assert y.grad_fn is not None


def test_leaf_table_weights_are_leaves_and_hidden_states_are_not(tg, leaf):
    w, x = leaf([[1.0, 2.0], [3.0, 4.0]]), tg.tensor([1.0, 1.0])
    h = w @ x
    assert w.is_leaf
    assert x.is_leaf
    assert not h.is_leaf


@pytest.mark.parametrize("a_needs", [False, True])
@pytest.mark.parametrize("b_needs", [False, True])
def test_requires_grad_is_false_only_if_it_is_false_for_every_input(tg, a_needs, b_needs):
    a = tg.tensor(1.0, requires_grad=a_needs)
    b = tg.tensor(2.0, requires_grad=b_needs)
    assert (a * b).requires_grad is (a_needs or b_needs)
    assert (a * b).is_leaf is not (a_needs or b_needs)


# --------------------------------------------------------------------------------------------------
# Building and releasing the graph: input -> x = 2*input -> y = 3 + x -> z = exp(y)
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(tg):
    source = tg.tensor(math.log(11), requires_grad=True)
    x = 2 * source
    y = 3 + x
    z = tg.exp(y)
    return source, x, y, z


def test_chain_names_the_operation_that_made_each_tensor(chain):
    _, x, y, z = chain
    assert x.grad_fn.name().startswith("MulBackward")
    assert y.grad_fn.name().startswith("AddBackward")
    assert z.grad_fn.name().startswith("ExpBackward")


def test_chain_any_scalar_on_the_graph_can_be_a_root(tg):
    """Rule 2: backward works from every scalar of the graph, leaves included."""
    for pick, expected in ((0, 1.0), (1, 2.0), (2, 2.0), (3, 2 * 121 * math.exp(3))):
        source = tg.tensor(math.log(11), requires_grad=True)
        x = 2 * source
        y = 3 + x
        z = tg.exp(y)
        (source, x, y, z)[pick].backward()
        assert source.grad.item() == pytest.approx(expected, rel=1e-14)


def test_chain_backward_releases_what_lies_below_and_not_what_lies_above(tg, chain):
    """Rule 3: y.backward() releases Add and Mul; Exp stays."""
    source, _, y, z = chain
    y.backward()
    (dz_dy,) = tg.autograd.grad(z, y)
    assert dz_dy.item() == pytest.approx(121 * math.exp(3), rel=1e-14)
    assert source.grad.item() == 2.0


def test_chain_a_leaf_may_be_the_root_any_number_of_times(chain):
    """Corollary of rule 3: backward from a leaf releases nothing."""
    source, _, _, z = chain
    for _ in range(3):
        source.backward()
    assert source.grad.item() == 3.0
    z.backward()


def test_chain_meeting_a_released_record_is_an_error(chain):
    """Rule 4: after y.backward(), z.backward() fails."""
    source, _, y, z = chain
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()
    assert source.grad.item() == 2.0


def test_chain_roots_that_share_no_records_do_not_disturb_each_other(tg, leaf):
    """Corollary of rule 4."""
    x = leaf(3.0)
    y = x * x
    z = tg.exp(x)
    y.backward()
    z.backward()
    assert x.grad.item() == 6.0 + math.exp(3.0)


def test_chain_retain_graph_releases_nothing(chain):
    """Rule 5: retain_graph=True lets the same records be used many times."""
    source, _, y, z = chain
    for _ in range(3):
        y.backward(retain_graph=True)
    z.backward()
    assert source.grad.item() == pytest.approx(6 + 2 * 121 * math.exp(3), rel=1e-14)


def test_chain_gradients_accumulate_over_backwards(tg, leaf):
    """Rule 6."""
    x = leaf(3.0)
    for k in range(1, 4):
        (x * x).backward()
        assert x.grad.item() == 6.0 * k


def test_chain_only_scalars_can_be_roots_without_weights(leaf):
    """Rule 7."""
    x = leaf([1.0, 2.0])
    y = x * x
    with pytest.raises(RuntimeError, match="scalar"):
        y.backward()
    assert x.grad is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_grad_of_intermediates_is_not_kept(chain):
    source, x, y, z = chain
    z.backward()
    assert source.grad is not None
    assert x.grad is None
    assert y.grad is None
    assert z.grad is None


# --------------------------------------------------------------------------------------------------
# In-place operations, .data, detach() and detach_()
# --------------------------------------------------------------------------------------------------


def test_in_place_is_forbidden_on_a_leaf_that_requires_grad(leaf):
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    assert x.tolist() == [1.0]


def test_in_place_is_allowed_on_a_leaf_that_does_not_require_grad(tg):
    x = tg.tensor([1.0])
    x.add_(1)
    assert repr(x) == "tensor([2.])"


def test_in_place_is_forbidden_only_when_backward_needs_the_value(tg, leaf):
    """Two conditions at once: the value is needed by backward, and it was already used."""
    x = leaf(2.0)

    y = x * 1.0
    z = y * y  # saves y
    y.add_(1)
    with pytest.raises(RuntimeError):
        z.backward()

    y = x * 1.0
    z = y + y  # saves nothing
    y.add_(1)
    z.backward()
    assert x.grad.item() == 2.0

    y = x * 1.0
    y.add_(1)  # before y is used
    z = y * y
    z.backward()
    assert x.grad.item() == 2.0 + 6.0


def test_data_and_detach_share_memory_and_carry_no_history(leaf):
    for cut in (lambda t: t.data, lambda t: t.detach()):
        x = leaf([1.0, 2.0])
        y = x * 1
        part = cut(y)
        assert part.requires_grad is False
        assert part.grad_fn is None
        part[0] = 7.0
        assert y.tolist() == [7.0, 2.0]


def test_detach_shares_the_version_counter_and_data_does_not(leaf):
    x = leaf([1.0])
    x.detach().add_(1)
    assert x._version == 1
    x.data.add_(1)
    assert x._version == 1
    assert x.tolist() == [3.0]


def test_in_place_through_detach_is_noticed_at_backward(leaf):
    x = leaf(3.0)
    y = x * x
    x.detach().mul_(10)
    with pytest.raises(RuntimeError, match=r"(?i)in-?place"):
        y.backward()
    assert x.grad is None


def test_in_place_through_data_is_not_noticed(leaf):
    """The hidden danger of .data: the gradient uses the changed value."""
    x = leaf(3.0)
    y = x * x
    x.data.mul_(10)
    y.backward()
    assert x.grad.item() == 60.0


def test_detach_returns_a_tensor_without_history(leaf):
    y = leaf(2.0) * 3
    d = y.detach()
    assert (d.grad_fn, d.requires_grad, d.is_leaf) == (None, False, True)
    assert y.grad_fn is not None


@pytest.mark.tapegrad_only("PyTorch has since forbidden detach_() on a value that was saved")
def test_detach_in_place_does_not_disturb_a_graph_that_is_already_built(tg):
    x = tg.tensor(math.log(3), requires_grad=True)
    y = tg.exp(x)
    z = y * y
    y.detach_()
    assert (y.grad_fn, y.requires_grad, y.is_leaf) == (None, False, True)
    z.backward()
    assert x.grad.item() == pytest.approx(18, rel=1e-15)


def test_detach_in_place_leaves_records_that_need_no_value_as_they_were(tg, leaf):
    x = leaf(3.0)
    y = x * 4
    z = y + y
    y.detach_()
    z.backward()
    assert repr(x.grad) == "tensor(8.)"


# --------------------------------------------------------------------------------------------------
# backward and grad: their arguments
# --------------------------------------------------------------------------------------------------


def weights_sample(tg):
    w = tg.tensor([1.0], requires_grad=True)
    x = tg.tensor([2.0], requires_grad=True)
    a = tg.add(w, x)
    b = tg.add(w, 1)
    return w, x, a, b


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_create_graph_gives_gradients_that_have_a_grad_fn(tg):
    w, _, a, b = weights_sample(tg)
    loss = tg.cat([tg.mul(a, b), a])  # dloss/dw = (2w + x + 1, 1)
    loss.backward(gradient=tg.tensor([1.0, 1.0]), create_graph=True)
    assert repr(w.grad).startswith("tensor([6.], grad_fn=<")
    assert w.grad.requires_grad

    w.grad = None
    loss.backward(gradient=tg.tensor([1.0, 1.0]), retain_graph=True)
    assert repr(w.grad) == "tensor([6.])"
    assert w.grad.grad_fn is None


def test_grad_tensors_weigh_the_rows_of_the_jacobian(tg, rng):
    """A vector root multiplies the Jacobian from the left; all ones is the plain sum of rows."""
    jacobian = rng.standard_normal((4, 5))
    x = tg.tensor(rng.standard_normal(5), requires_grad=True)
    y = tg.tensor(jacobian) @ x
    y.backward(tg.ones(4), retain_graph=True)
    assert x.grad.numpy() == pytest.approx(jacobian.sum(axis=0), rel=1e-14)
    x.grad = None
    y.backward(tg.tensor([1.0, 2.0, 0.0, -1.0]))
    assert x.grad.numpy() == pytest.approx(jacobian.T @ [1, 2, 0, -1], rel=1e-14)


def test_retain_graph_sample(tg):
    w, _, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    y.backward(retain_graph=True)
    assert repr(w.grad) == "tensor([5.])"
    y.backward()
    assert repr(w.grad) == "tensor([10.])"


def test_without_retain_graph_the_second_backward_is_an_error(tg):
    w, _, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    y.backward()
    assert repr(w.grad) == "tensor([5.])"
    with pytest.raises(RuntimeError, match=r"second time.*retain_graph=True"):
        y.backward()
    assert repr(w.grad) == "tensor([5.])"


def test_grad_tensors_sample(tg):
    w, _, a, b = weights_sample(tg)
    y0 = tg.mul(a, b)  # dy0/dw = 2w + x + 1
    y1 = tg.add(a, b)  # dy1/dw = 2
    loss = tg.cat([y0, y1], dim=0)
    loss.backward(gradient=tg.tensor([1.0, 2.0]))
    assert repr(w.grad) == "tensor([9.])"


def test_tensor_backward_is_autograd_backward(tg):
    """Every argument of `autograd.backward` by its name."""
    w, x, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    tg.autograd.backward(
        tensors=y, grad_tensors=tg.tensor([2.0]), retain_graph=None, create_graph=False, inputs=[w]
    )
    assert repr(w.grad) == "tensor([10.])"
    assert x.grad is None


def test_autograd_grad_sample_with_second_derivative(tg):
    x = tg.tensor([3.0], requires_grad=True)
    y = tg.pow(x, 2)
    grad_1 = tg.autograd.grad(y, x, create_graph=True)
    assert repr(grad_1) == "(tensor([6.], grad_fn=<MulBackward0>),)"
    grad_2 = tg.autograd.grad(grad_1[0], x)
    assert repr(grad_2) == "(tensor([2.]),)"
    assert x.grad is None


def test_autograd_grad_takes_its_arguments_by_name(tg):
    x = tg.tensor([3.0], requires_grad=True)
    other = tg.tensor([1.0], requires_grad=True)
    grads = tg.autograd.grad(
        outputs=[x * x],
        inputs=[x, other],
        grad_outputs=[tg.tensor([0.5])],
        retain_graph=None,
        create_graph=False,
        only_inputs=True,
        allow_unused=True,
    )
    assert repr(grads) == "(tensor([3.]), None)"


# --------------------------------------------------------------------------------------------------
# Five points to know
# --------------------------------------------------------------------------------------------------


def test_point_1_gradients_are_not_cleared_by_themselves(tg):
    w = tg.tensor([1.0], requires_grad=True)
    x = tg.tensor([2.0], requires_grad=True)
    printed = []
    for _ in range(4):
        a = tg.add(w, x)
        b = tg.add(w, 1)
        y = tg.mul(a, b)
        y.backward()
        printed.append(repr(w.grad))
    assert printed == ["tensor([5.])", "tensor([10.])", "tensor([15.])", "tensor([20.])"]
    w.grad.zero_()
    assert repr(w.grad) == "tensor([0.])"
    tg.mul(tg.add(w, x), tg.add(w, 1)).backward()
    assert repr(w.grad) == "tensor([5.])"


def test_point_2_whatever_depends_on_a_leaf_requires_grad(tg):
    _, _, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    assert (a.requires_grad, b.requires_grad, y.requires_grad) == (True, True, True)
    assert (a.is_leaf, b.is_leaf, y.is_leaf) == (False, False, False)


def test_point_3_in_place_keeps_the_object_and_out_of_place_makes_a_new_one(tg):
    a = tg.ones((1,))
    first = a
    assert repr(a) == "tensor([1.])"
    a = a + tg.ones((1,))
    second = a
    assert repr(a) == "tensor([2.])"
    assert second is not first
    a += tg.ones((1,))
    assert repr(a) == "tensor([3.])"
    assert a is second


def test_point_3_in_place_on_a_leaf_is_an_error(tg):
    w, _, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    with pytest.raises(RuntimeError, match="leaf"):
        w.add_(1)
    y.backward()
    assert repr(w.grad) == "tensor([5.])"


def test_point_3_data_is_the_way_round_it(tg):
    w, _, _, _ = weights_sample(tg)
    w.data.add_(1)
    assert repr(w) == "tensor([2.], requires_grad=True)"
    assert w.is_leaf
    with tg.no_grad():
        w.add_(1)
    assert repr(w) == "tensor([3.], requires_grad=True)"


def test_point_4_detach_is_another_name_for_the_same_memory(tg):
    w, _, a, b = weights_sample(tg)
    y = tg.mul(a, b)
    y.backward()
    w_detach = w.detach()
    w_detach.data[0] = 999
    assert repr(w) == "tensor([999.], requires_grad=True)"


def test_point_5_no_grad_records_nothing(tg):
    w, x, _, _ = weights_sample(tg)
    with tg.no_grad():
        y = tg.mul(tg.add(w, x), w)
    assert (y.requires_grad, y.grad_fn, y.is_leaf) == (False, None, True)
    assert repr(y) == "tensor([3.])"
    with pytest.raises(RuntimeError):
        y.backward()
