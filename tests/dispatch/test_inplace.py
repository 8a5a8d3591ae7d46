"""In-place operations: what they do to versions, values, leaves and intermediates."""

import pytest

# --------------------------------------------------------------------------------------------------
# Version counters
# --------------------------------------------------------------------------------------------------


def test_version_starts_at_zero_and_counts_writes(tg):
    x = tg.zeros(3)
    assert x._version == 0
    x.add_(1)
    assert x._version == 1
    x[0] = 5
    assert x._version == 2
    x += 1
    assert x._version == 3


def test_version_of_results_starts_at_zero(tg):
    x = tg.zeros(3)
    x.add_(1)
    assert (x + 1)._version == 0
    assert x.clone()._version == 0


def test_version_is_shared_by_views_and_base(tg):
    x = tg.zeros((2, 3))
    row, flat = x[0], x.view(6)
    row.add_(1)
    assert (x._version, row._version, flat._version) == (1, 1, 1)
    flat[0] = 1
    x.mul_(2)
    assert (x._version, row._version, flat._version) == (3, 3, 3)


def test_version_is_shared_by_detach_and_not_by_data(tg, leaf):
    y = leaf([1.0]) * 1
    cut, data = y.detach(), y.data
    cut.add_(1)
    assert (y._version, cut._version, data._version) == (1, 1, 0)
    data.add_(1)
    assert (y._version, cut._version, data._version) == (1, 1, 1)
    assert y.tolist() == [3.0]


def test_version_moves_under_no_grad_too(tg, leaf):
    x = leaf([1.0])
    with tg.no_grad():
        x.add_(1)
    assert x._version == 1


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.zero_(),
        lambda t: t.fill_(2),
        lambda t: t.copy_(t.clone()),
        lambda t: t.mul_(2),
        lambda t: t.exp_(),
        lambda t: t.clamp_(0, 1),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.__setitem__(slice(None), 1.0),
    ],
    ids=["zero_", "fill_", "copy_", "mul_", "exp_", "clamp_", "setitem", "setslice"],
)
def test_each_write_counts_once(tg, write):
    x = tg.ones(3)
    write(x)
    assert x._version == 1


def test_in_place_methods_return_the_tensor_itself(tg):
    x = tg.ones(3)
    for result in (x.add_(1), x.mul_(2), x.zero_(), x.fill_(3), x.exp_(), x.copy_(tg.ones(3))):
        assert result is x


# --------------------------------------------------------------------------------------------------
# Values
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add_", (1,), [2.0, 3.0, 5.0]),
        ("sub_", (1,), [0.0, 1.0, 3.0]),
        ("mul_", (3,), [3.0, 6.0, 12.0]),
        ("div_", (2,), [0.5, 1.0, 2.0]),
        ("pow_", (2,), [1.0, 4.0, 16.0]),
        ("neg_", (), [-1.0, -2.0, -4.0]),
        ("abs_", (), [1.0, 2.0, 4.0]),
        ("sqrt_", (), [1.0, 2.0**0.5, 2.0]),
        ("clamp_", (1.5, 3), [1.5, 2.0, 3.0]),
        ("relu_", (), [1.0, 2.0, 4.0]),
        ("zero_", (), [0.0, 0.0, 0.0]),
        ("fill_", (7,), [7.0, 7.0, 7.0]),
        ("remainder_", (3,), [1.0, 2.0, 1.0]),
        ("floor_divide_", (2,), [0.0, 1.0, 2.0]),
    ],
)
def test_in_place_value_equals_the_out_of_place_one(tg, name, args, expected):
    x = tg.tensor([1.0, 2.0, 4.0])
    getattr(x, name)(*args)
    assert x.tolist() == pytest.approx(expected, rel=1e-15)  # PyTorch's root of 2 is an ulp off


def test_augmented_assignment_is_in_place(tg):
    x = tg.tensor([1.0, 2.0])
    same = x
    x += 1
    x -= 3
    x *= 4
    x /= 2
    x **= 2
    assert x is same
    assert x.tolist() == [4.0, 0.0]


def test_add_and_sub_take_alpha(tg):
    x = tg.tensor([1.0, 2.0])
    x.add_(tg.tensor([10.0, 10.0]), alpha=2)
    assert x.tolist() == [21.0, 22.0]
    x.sub_(tg.tensor([1.0, 1.0]), alpha=3)
    assert x.tolist() == [18.0, 19.0]


def test_an_operand_is_broadcast_but_the_target_is_not(tg):
    x = tg.zeros((2, 3))
    x.add_(tg.tensor([1.0, 2.0, 3.0]))
    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(RuntimeError, match=r"(?i)shape|broadcast"):
        tg.zeros(3).add_(tg.zeros((2, 3)))


def test_the_target_keeps_its_dtype(tg):
    x = tg.tensor([1.0, 2.0], dtype=tg.float32)
    x.add_(tg.tensor([0.5, 0.5], dtype=tg.float64))
    assert x.dtype == tg.float32
    assert x.tolist() == [1.5, 2.5]


def test_a_float_result_is_not_put_into_an_integer_tensor(tg):
    x = tg.tensor([1, 2])
    with pytest.raises(RuntimeError, match=r"(?i)cast|dtype|type"):
        x.mul_(1.5)
    with pytest.raises(RuntimeError, match=r"(?i)cast|dtype|type"):
        x.div_(2)
    assert x.tolist() == [1, 2]


# --------------------------------------------------------------------------------------------------
# Leaves
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.zero_(),
        lambda t: t.copy_(t.detach()),
        lambda t: t.__setitem__(0, 1.0),
        lambda t: t.__imul__(2),
        lambda t: t.__setitem__(t.detach() > 0, 9.0),
    ],
    ids=["add_", "zero_", "copy_", "setitem", "imul", "masked_setitem"],
)
def test_a_leaf_that_requires_grad_refuses_every_write(leaf, write):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf"):
        write(x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_a_view_of_such_a_leaf_refuses_too(leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    for view in (x[0], x.view(4), x.t(), x[0][1:]):
        with pytest.raises(RuntimeError, match="leaf"):
            view.add_(1)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_no_grad_allows_it_and_the_leaf_stays_a_leaf(tg, leaf):
    x = leaf([1.0, 2.0])
    with tg.no_grad():
        x.mul_(3)
        x[0] = 10
    assert x.tolist() == [10.0, 6.0]
    assert x.is_leaf
    assert x.requires_grad
    assert x.grad_fn is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [20.0, 12.0]


def test_gradient_descent_in_place(tg, leaf):
    x = leaf([4.0])
    for _ in range(50):
        x.grad = None
        (x * x).sum().backward()
        with tg.no_grad():
            x -= 0.25 * x.grad
    assert x.tolist() == [4.0 * 0.5**50]


def test_a_leaf_without_grad_takes_on_the_history_of_what_is_written(tg, leaf):
    """Writing a tensor that requires grad into a plain one makes it an intermediate."""
    x = leaf([1.0, 2.0])
    buffer = tg.zeros(2)
    buffer.add_(x * 3)
    assert buffer.requires_grad
    assert not buffer.is_leaf
    (buffer * buffer).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


def test_a_buffer_filled_piece_by_piece(tg, leaf):
    x = leaf(2.0)
    buffer = tg.zeros(3)
    for i in range(3):
        buffer[i] = x ** (i + 1)
    assert buffer.tolist() == [2.0, 4.0, 8.0]
    buffer.sum().backward()
    assert x.grad.item() == 1.0 + 4.0 + 12.0


# --------------------------------------------------------------------------------------------------
# Intermediates
# --------------------------------------------------------------------------------------------------


def test_in_place_on_an_intermediate_becomes_part_of_its_history(leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    y.mul_(5)
    y.add_(1)
    assert y.tolist() == [11.0, 21.0]
    assert y.grad_fn.name().startswith("AddBackward")
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def test_augmented_assignment_on_an_intermediate(leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    same = y
    y *= x
    assert y is same
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_exp_in_place_uses_its_own_result(leaf):
    x = leaf([0.0, 1.0])
    y = x * 2
    y.exp_()
    value = y.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [2 * v for v in value]


def test_tensor_times_itself_in_place(leaf):
    """`y.mul_(y)` overwrites the very value that its derivative needs."""
    x = leaf([3.0])
    y = x * 1
    y.mul_(y.clone())
    y.sum().backward()
    assert x.grad.tolist() == [6.0]


def test_out_of_place_results_are_unaffected_by_later_writes(leaf):
    x = leaf([1.0, 2.0])
    y = x + 1
    z = y + 0
    y.mul_(10)
    assert z.tolist() == [2.0, 3.0]
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_old_results_keep_the_old_history(leaf):
    """z was made from y before the write: its gradient does not go through it."""
    x = leaf([1.0, 2.0])
    y = x * 1
    z = y + y
    y.mul_(10)
    (z + y).sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]


def test_fill_and_zero_cut_the_gradient(tg, leaf):
    x = leaf([1.0, 2.0])
    for write in (lambda t: t.zero_(), lambda t: t.fill_(3.0)):
        y = x * 2
        write(y)
        assert y.requires_grad
        (g,) = tg.autograd.grad(y.sum(), x)
        assert g.tolist() == [0.0, 0.0]


def test_fill_with_a_tensor_that_requires_grad(leaf):
    x, v = leaf([1.0, 2.0]), leaf(5.0)
    y = x * 2
    y.fill_(v)
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert v.grad.item() == 20.0


def test_copy_moves_the_gradient_to_the_source(tg, leaf):
    x, source = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([10.0, 20.0])
    y = x * 2
    y.copy_(source)
    assert y.tolist() == [[10.0, 20.0]] * 2
    (y * tg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert source.grad.tolist() == [4.0, 6.0]


def test_copy_between_dtypes_gives_the_gradient_in_the_dtype_of_the_source(tg):
    source = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    target = tg.zeros(2, dtype=tg.float64)
    target.copy_(source)
    (target * 3).sum().backward()
    assert source.grad.dtype == tg.float32
    assert source.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_"])
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
@pytest.mark.parametrize(
    "dtypes", [("float32", "float64"), ("float64", "float32"), ("complex128", "float64")]
)
def test_an_operand_of_another_dtype_gets_its_gradient_in_its_own(tg, name, shape, dtypes):
    to, own = (getattr(tg, dtype) for dtype in dtypes)
    other = tg.full(shape, 2.0, dtype=own, requires_grad=True)
    target = tg.full((3,), 4.0, dtype=to)
    getattr(target, name)(other)
    tg.real(target).sum().backward()
    each = {"add_": 1.0, "sub_": -1.0, "mul_": 4.0, "div_": -1.0}[name]
    assert other.grad.dtype == own
    assert other.grad.tolist() == tg.full(shape, each * 3 / max(1, other.numel())).tolist()


def test_a_target_that_is_read_by_the_derivative_of_another_dtype(tg):
    x = tg.tensor([1.0, 2.0, 3.0], dtype=tg.float32, requires_grad=True)
    y = x * 2
    y *= y.detach().double()  # its memory is another, its elements are those before
    y *= tg.tensor(3.0, requires_grad=True)
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 24.0, 36.0]


def test_masked_fill(tg, leaf):
    x, value = leaf([1.0, 2.0, 3.0]), leaf(7.0)
    y = x * 2
    y.masked_fill_(tg.tensor([True, False, True]), value)
    assert y.tolist() == [7.0, 4.0, 7.0]
    (y * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 0.0]
    assert value.grad.item() == 101.0


def test_index_put(tg, leaf):
    x, values = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0])
    y = x * 2
    y.index_put_((tg.tensor([2, 0]),), values)
    assert y.tolist() == [20.0, 4.0, 10.0]
    (y * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 0.0]
    assert values.grad.tolist() == [100.0, 1.0]


def test_index_put_accumulate(tg, leaf):
    x, values = leaf([1.0, 2.0, 3.0]), leaf([10.0, 20.0, 30.0])
    y = x * 2
    y.index_put_((tg.tensor([1, 1, 0]),), values, accumulate=True)
    assert y.tolist() == [32.0, 34.0, 6.0]
    (y * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 20.0, 200.0]
    assert values.grad.tolist() == [10.0, 10.0, 1.0]


def test_index_add(tg, leaf):
    x, source = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    y = x * 1
    y.index_add_(0, tg.tensor([0, 1, 0]), source, alpha=2)
    assert y.tolist() == [[9.0, 10.0], [7.0, 8.0]]
    (y * tg.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert source.grad.tolist() == [[2.0, 4.0], [6.0, 8.0], [2.0, 4.0]]


def test_scatter_and_scatter_add(tg, leaf):
    x, source = leaf([[1.0, 2.0, 3.0]]), leaf([[10.0, 20.0]])
    y = x * 2
    y.scatter_(1, tg.tensor([[2, 0]]), source)
    assert y.tolist() == [[20.0, 4.0, 10.0]]
    y.scatter_add_(1, tg.tensor([[1, 1]]), source)
    assert y.tolist() == [[20.0, 34.0, 10.0]]
    (y * tg.tensor([[1.0, 10.0, 100.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 20.0, 0.0]]
    assert source.grad.tolist() == [[110.0, 11.0]]


def test_an_in_place_operation_may_be_differentiated_twice(tg, leaf):
    x = leaf([2.0])
    y = x * x
    y.mul_(x)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    assert (g.tolist(), h.tolist()) == ([12.0], [12.0])


def test_requires_grad_in_place_makes_a_leaf(tg):
    x = tg.tensor([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.is_leaf
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


# --------------------------------------------------------------------------------------------------
# What is written over all of a Tensor
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4,), (3, 4), (3, 1), (1,), ()])
@pytest.mark.parametrize("kind", ["float64", "float32", "int64"])
def test_copies_are_broadcast_and_cast(tg, shape, kind):
    x, source = tg.zeros(3, 4), tg.ones(shape, dtype=getattr(tg, kind)) * 2
    assert x.copy_(source) is x
    assert x.tolist() == [[2.0] * 4] * 3
    assert x._version == 1
    with pytest.raises(RuntimeError):
        tg.zeros(3, 4).copy_(tg.ones(4, 3))


def test_views_and_their_bases_are_overwritten_together(tg):
    x = tg.zeros(2, 3)
    x[0].fill_(2.0)
    x[:, 1].copy_(tg.tensor([5.0, 6.0]))
    assert x.tolist() == [[2.0, 5.0, 2.0], [0.0, 6.0, 0.0]]
    assert x.view(6)[1:].copy_(x.view(6)[:-1].clone()).tolist() == [2.0, 5.0, 2.0, 0.0, 6.0]
    assert x.zero_().tolist() == [[0.0] * 3] * 2
    assert x._version == 4


def test_an_overwritten_value_that_is_needed_is_noticed(tg, leaf):
    x, factor = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    for change in (factor.zero_, lambda: factor.fill_(2.0), lambda: factor.copy_(tg.ones(2))):
        y = x * factor
        change()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_what_may_not_be_overwritten(tg, leaf):
    x = leaf([1.0, 2.0])
    for t in (x, x[:1]):
        for change in (t.zero_, lambda t=t: t.fill_(2.0), lambda t=t: t.copy_(tg.ones(1))):
            with pytest.raises(RuntimeError):
                change()
    with pytest.raises(RuntimeError):
        tg.ones(1).expand(3).copy_(tg.ones(3))
    assert x.tolist() == [1.0, 2.0]


def test_a_history_is_overwritten(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 3.0
    y.zero_()
    z = tg.zeros(2)
    z.copy_(x)
    (y + z).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with tg.no_grad():
        x.copy_(tg.tensor([7.0, 8.0]))
        x.grad.zero_()
    assert (x.tolist(), x.grad.tolist()) == ([7.0, 8.0], [0.0, 0.0])
