"""In-place operations: values that were saved, bases of views, and indexed assignment."""

import pytest

# --------------------------------------------------------------------------------------------------
# Saved values that changed
# --------------------------------------------------------------------------------------------------


def test_a_changed_saved_value_is_an_error_at_backward(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = tg.sin(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()
    assert x.grad is None


def test_a_changed_saved_result_is_an_error_at_backward(tg, leaf):
    """exp saves what it returned."""
    x = leaf([1.0, 2.0])
    y = tg.exp(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.tapegrad_only("the words of the message")
def test_the_error_names_the_operation_that_saved_the_value(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = tg.sin(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"\bsin\b"):
        z.sum().backward()


def test_nothing_is_half_accumulated_by_that_error(tg, leaf):
    """The bad record is below a good one that reaches another leaf first."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        (z + w).sum().backward()
    assert x.grad is None


@pytest.mark.tapegrad_only("PyTorch has by then added to the leaves that it met on the way")
def test_no_leaf_at_all_is_touched_by_that_error(tg, leaf):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        (z + w).sum().backward()
    assert x.grad is None
    assert w.grad is None


def test_a_change_through_a_view_is_noticed(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y * y
    y[0].zero_()
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()


def test_a_change_of_the_base_is_noticed_by_a_saved_view(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y[1] * y[1]
    y.zero_()
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.backward()


def test_a_change_under_no_grad_is_noticed(tg, leaf):
    x = leaf([1.0, 2.0])
    z = x * x
    with tg.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()
    assert x.grad is None


def test_a_change_of_a_plain_operand_is_noticed(tg, leaf):
    x, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    z = x * c
    c.add_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()


def test_a_change_of_a_value_that_was_not_needed_is_fine(tg, leaf):
    """x * c needs c for the gradient of x, and x only for the gradient of c."""
    x, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    y = x * 1
    z = y * c
    y.add_(1)
    z.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]


def test_after_the_value_is_restored_the_version_still_tells(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y * y
    y.add_(1)
    y.sub_(1)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()


def test_a_write_to_an_index_is_noticed(tg, leaf):
    x, index = leaf([1.0, 2.0, 3.0]), tg.tensor([0, 2])
    z = x[index]
    index.add_(0)
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        z.sum().backward()


# --------------------------------------------------------------------------------------------------
# Views: the history of the base is rewritten
# --------------------------------------------------------------------------------------------------


def test_mul_on_a_slice_changes_the_history_of_the_base(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[:2].mul_(10)
    assert y.tolist() == [10.0, 20.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0, 1.0]


def test_the_view_itself_carries_the_new_history(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    v = y[:2]
    v.mul_(10)
    (g,) = tg.autograd.grad(v.sum(), x)
    assert g.tolist() == [10.0, 10.0, 0.0]


def test_a_write_to_the_base_is_seen_through_a_view(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    v = y[1:]
    y.mul_(10)
    assert v.tolist() == [20.0, 30.0]
    (g,) = tg.autograd.grad(v.sum(), x)
    assert g.tolist() == [0.0, 10.0, 10.0]


def test_a_write_to_one_view_is_seen_through_another(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    head, tail = y[:2], y[1:]
    head.mul_(10)
    assert tail.tolist() == [20.0, 3.0]
    (g,) = tg.autograd.grad(tail.sum(), x)
    assert g.tolist() == [0.0, 10.0, 1.0]


def test_a_view_of_a_view(tg, leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    corner = y[1][1:]
    corner.mul_(10)
    assert y.tolist() == [[1.0, 2.0], [3.0, 40.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 10.0]]


def test_a_chain_of_views_of_several_kinds(tg, leaf):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x * 1
    v = y.t()[1:].view(2, 2, 1).squeeze(2).select(1, 0)
    assert v.tolist() == [2.0, 3.0]
    v.mul_(tg.tensor([10.0, 100.0]))
    assert y.tolist() == [[1.0, 20.0, 300.0], [4.0, 5.0, 6.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 10.0, 100.0], [1.0, 1.0, 1.0]]


def test_several_writes_through_several_views(leaf):
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 1
    y[0].mul_(2)
    y[1:3].mul_(3)
    y.mul_(10)
    y[2].add_(y[0].clone())
    assert y.tolist() == [20.0, 60.0, 110.0, 40.0]
    y.sum().backward()
    assert x.grad.tolist() == [40.0, 30.0, 30.0, 10.0]


def test_views_of_a_plain_base_bring_history_into_it(tg, leaf):
    x = leaf([1.0, 2.0])
    base = tg.zeros((2, 2))
    view = base[0]
    assert not base.requires_grad
    view.copy_(x * 3)
    assert base.requires_grad
    assert view.requires_grad
    assert not base.is_leaf
    assert not view.is_leaf
    (base * 5).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]


def test_old_views_of_that_base_are_seen_to_require_grad(tg, leaf):
    x = leaf(2.0)
    base = tg.zeros(2)
    first, second = base[0], base[1]
    base.mul_(0).add_(x)
    assert second.requires_grad
    (g,) = tg.autograd.grad(second * first.detach(), x)
    assert g.item() == 2.0


def test_diagonal_and_transpose_views(tg, leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    y.diagonal().mul_(10)
    y.t()[0].mul_(2)
    assert y.tolist() == [[20.0, 2.0], [6.0, 40.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[20.0, 1.0], [2.0, 10.0]]


def test_zero_on_a_view_cuts_only_that_part(leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 2
    y[1:].zero_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]


def test_the_rewritten_history_may_be_differentiated_twice(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    y[0].mul_(x[0])
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 4.0]
    (h,) = tg.autograd.grad(g.sum(), x)
    assert h.tolist() == [6.0, 2.0]


def test_a_view_made_under_no_grad_refuses_a_recorded_write(tg, leaf):
    y = leaf([1.0, 2.0]) * 1
    with tg.no_grad():
        view = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        view.mul_(2)


def test_a_view_that_is_one_of_several_outputs_refuses_a_write(tg, leaf):
    y = leaf([1.0, 2.0]) * 1
    for parts in (y.unbind(0), y.split(1), y.chunk(2)):
        with pytest.raises(RuntimeError, match=r"(?i)view"):
            parts[0].mul_(2)


def test_an_expanded_tensor_refuses_a_write(tg):
    x = tg.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match=r"(?i)memory"):
        x.add_(1)


def test_a_write_to_detach_does_not_enter_the_history(leaf):
    x = leaf([1.0, 2.0])
    y = x + 1
    y.detach().mul_(10)
    assert y.tolist() == [20.0, 30.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


# --------------------------------------------------------------------------------------------------
# Indexed assignment
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (0, [[9.0, 9.0, 9.0], [4.0, 5.0, 6.0]]),
        (-1, [[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]]),
        ((0, 1), [[1.0, 9.0, 3.0], [4.0, 5.0, 6.0]]),
        ((slice(None), 1), [[1.0, 9.0, 3.0], [4.0, 9.0, 6.0]]),
        ((slice(None), slice(0, None, 2)), [[9.0, 2.0, 9.0], [9.0, 5.0, 9.0]]),
        ((Ellipsis, 0), [[9.0, 2.0, 3.0], [9.0, 5.0, 6.0]]),
        (Ellipsis, [[9.0, 9.0, 9.0], [9.0, 9.0, 9.0]]),
        (slice(None), [[9.0, 9.0, 9.0], [9.0, 9.0, 9.0]]),
        ([1], [[1.0, 2.0, 3.0], [9.0, 9.0, 9.0]]),
        (([0, 1], [2, 0]), [[1.0, 2.0, 9.0], [9.0, 5.0, 6.0]]),
        ((None, 0), [[9.0, 9.0, 9.0], [4.0, 5.0, 6.0]]),
    ],
    ids=str,
)
def test_a_number_is_written_to_each_kind_of_index(tg, leaf, key, expected):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = x * 1
    y[key] = 9
    assert y.tolist() == expected
    y.sum().backward()
    kept = [[float(v != 9.0) for v in row] for row in expected]
    assert x.grad.tolist() == kept


def test_a_mask_selects_where_a_number_is_written(leaf):
    x = leaf([[1.0, -2.0], [-3.0, 4.0]])
    y = x * 2
    y[y < 0] = 0
    assert y.tolist() == [[2.0, 0.0], [0.0, 8.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_value_that_requires_grad_gets_its_gradient(tg, leaf):
    x, v = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    y = x * 1
    y[1:] = v
    assert y.tolist() == [1.0, 10.0, 20.0]
    (y * tg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    assert v.grad.tolist() == [2.0, 3.0]


def test_a_value_that_is_broadcast_gets_the_sum(tg, leaf):
    x, v = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(10.0)
    y = x * 1
    y[:, 0] = v
    (y * tg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0], [0.0, 4.0]]
    assert v.grad.item() == 4.0


def test_a_value_behind_a_mask(tg, leaf):
    x, v = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    y = x * 1
    y[tg.tensor([True, False, True])] = v
    assert y.tolist() == [10.0, 2.0, 20.0]
    (y * tg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    assert v.grad.tolist() == [1.0, 3.0]


def test_a_value_behind_an_index_tensor(tg, leaf):
    x, v = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), leaf([[10.0, 20.0], [30.0, 40.0]])
    y = x * 1
    y[tg.tensor([2, 0])] = v
    assert y.tolist() == [[30.0, 40.0], [3.0, 4.0], [10.0, 20.0]]
    (y * tg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    assert v.grad.tolist() == [[5.0, 6.0], [1.0, 2.0]]


def test_leading_ones_of_the_value_are_dropped(tg):
    y = tg.zeros(3)
    y[:] = tg.ones((1, 3))
    assert y.tolist() == [1.0, 1.0, 1.0]


def test_a_value_of_another_dtype_is_cast(tg):
    y = tg.zeros(2, dtype=tg.float32)
    y[0] = tg.tensor(1.5, dtype=tg.float64)
    y[1] = tg.tensor(2)
    assert y.dtype == tg.float32
    assert y.tolist() == [1.5, 2.0]


def test_a_value_of_the_wrong_shape_is_refused(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    with pytest.raises(RuntimeError, match=r"(?i)shape|size|expand"):
        y[:2] = tg.ones(3)
    assert y.tolist() == [1.0, 2.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_an_index_out_of_range_is_an_index_error(tg):
    y = tg.zeros(3)
    with pytest.raises(IndexError):
        y[3] = 1
    with pytest.raises(IndexError):
        y[0, 0] = 1


def test_writing_a_part_of_a_tensor_to_itself(tg, leaf):
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1
    y[0] = y[2]
    y.sum().backward()
    assert y.tolist() == [3.0, 2.0, 3.0]
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_setitem_inside_a_loop_over_rows(tg, leaf):
    x = leaf([1.0, 2.0])
    rows = tg.zeros((3, 2))
    for i in range(3):
        rows[i] = x * (rows[i - 1] if i else 1)
    assert rows.tolist() == [[1.0, 2.0], [1.0, 4.0], [1.0, 8.0]]
    with pytest.raises(RuntimeError, match=r"(?i)modified"):
        rows.sum().backward()


def test_setitem_inside_a_loop_over_rows_with_clones(tg, leaf):
    x = leaf([1.0, 2.0])
    rows = tg.zeros((3, 2))
    for i in range(3):
        rows[i] = x * (rows[i - 1].clone() if i else 1)
    rows[2].sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
