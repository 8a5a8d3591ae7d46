"""`t_`, `transpose_`, `squeeze_` and the like: another shape for the same Tensor object."""

import numpy as np
import pytest

M = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
W = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
WT = [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
IN_PLACE = r"(?i)in-?place"

TURNS = {
    "t_": ((2, 3), lambda x: x.t_(), lambda x: x.t()),
    "t_ of a vector": ((3,), lambda x: x.t_(), lambda x: x.t()),
    "t_ of a number": ((), lambda x: x.t_(), lambda x: x.t()),
    "transpose_": ((2, 3, 4), lambda x: x.transpose_(0, -1), lambda x: x.transpose(0, -1)),
    "transpose_, named": (
        (2, 3), lambda x: x.transpose_(dim0=0, dim1=1), lambda x: x.transpose(0, 1)
    ),
    "swapdims_": ((2, 3), lambda x: x.swapdims_(dim0=1, dim1=0), lambda x: x.swapdims(0, 1)),
    "swapaxes_": ((2, 3), lambda x: x.swapaxes_(axis0=0, axis1=1), lambda x: x.swapaxes(0, 1)),
    "squeeze_": ((1, 2, 1), lambda x: x.squeeze_(), lambda x: x.squeeze()),
    "squeeze_ of one": ((1, 2, 1), lambda x: x.squeeze_(-1), lambda x: x.squeeze(-1)),
    "squeeze_ of none": ((2, 3), lambda x: x.squeeze_(dim=0), lambda x: x.squeeze(0)),
    "squeeze_ of some": ((1, 2, 1), lambda x: x.squeeze_((0, 1)), lambda x: x.squeeze((0, 1))),
    "unsqueeze_": ((2, 3), lambda x: x.unsqueeze_(-1), lambda x: x.unsqueeze(-1)),
    "unsqueeze_, named": ((2, 3), lambda x: x.unsqueeze_(dim=1), lambda x: x.unsqueeze(1)),
    "as_strided_": (
        (2, 3), lambda x: x.as_strided_((2, 2), (1, 1)), lambda x: x.as_strided((2, 2), (1, 1))
    ),
    "as_strided_ further on": (
        (2, 3),
        lambda x: x.as_strided_(size=(2,), stride=(2,), storage_offset=1),
        lambda x: x.as_strided((2,), (2,), 1),
    ),
}  # fmt: skip
ALL = pytest.mark.parametrize(("shape", "turn", "same"), TURNS.values(), ids=TURNS)


@pytest.fixture
def nonleaf(leaf):
    """A leaf, and a Tensor computed from it that no derivative reads: twice the leaf."""

    def make(value=M):
        a = leaf(value)
        return a, a * 2

    return make


# --------------------------------------------------------------------------------------------------
# The Tensor itself
# --------------------------------------------------------------------------------------------------


@ALL
def test_shape_and_values_are_those_of_the_view(tg, rng, shape, turn, same):
    x = tg.tensor(rng.normal(size=shape))
    wanted = same(x.clone())
    assert turn(x) is x
    assert x.shape == wanted.shape
    assert x.stride() == wanted.stride()
    assert x.tolist() == wanted.tolist()
    assert x._version == 1
    assert x._base is None


@ALL
def test_gradients_are_those_of_the_view(tg, leaf, rng, shape, turn, same):
    a, b = leaf(np.ones(shape)), leaf(np.ones(shape))
    x = a * 2
    turn(x)
    y = same(b * 2)
    weights = tg.tensor(rng.normal(size=tuple(x.shape)))
    assert x.requires_grad
    assert not x.is_leaf
    (x * weights).sum().backward()
    (y * weights).sum().backward()
    assert a.grad.tolist() == b.grad.tolist()


@ALL
def test_integers_have_shapes_too(tg, shape, turn, same):
    x = tg.ones(shape, dtype=tg.int64)
    wanted = same(x.clone()).shape
    assert turn(x).shape == wanted


@pytest.mark.parametrize(
    ("turn", "error"),
    [
        (lambda x: x.unsqueeze_(0).t_(), RuntimeError),
        (lambda x: x.transpose_(0, 2), IndexError),
        (lambda x: x.swapaxes_(-3, 0), IndexError),
        (lambda x: x.swapdims_(0, 2), IndexError),
        (lambda x: x.squeeze_(2), IndexError),
        (lambda x: x.squeeze_((0, 0)), RuntimeError),
        (lambda x: x.unsqueeze_(3), IndexError),
        (lambda x: x.as_strided_((7,), (1,)), RuntimeError),
        (lambda x: x.as_strided_((2,), (-1,)), RuntimeError),
        (lambda x: x.as_strided_((2, 2), (1,)), RuntimeError),
    ],
)
def test_refused_arguments(tg, turn, error):
    with pytest.raises(error):
        turn(tg.tensor(M))


@pytest.mark.tapegrad_only("its messages name the function with the underscore")
@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (lambda x: x.unsqueeze_(0).t_(), "`t_` takes at most 2 dimensions, got the shape"),
        (lambda x: x.transpose_(0, 2), "`transpose_`: dimension 2 is out of range"),
        (lambda x: x.swapaxes_(0, 2), "`swapaxes_`: dimension 2 is out of range"),
        (lambda x: x.squeeze_(2), "`squeeze_`: dimension 2 is out of range"),
        (lambda x: x.squeeze_((0, 0)), "`squeeze_`: a dimension appears twice in"),
        (lambda x: x.squeeze((1, -1)), "`squeeze`: a dimension appears twice in"),
        (lambda x: x.unsqueeze_(3), "`unsqueeze_`: dimension 3 is out of range"),
        (lambda x: x.as_strided_((7,), (1,)), "`as_strided_`: size .* beyond the storage of 6"),
        (lambda x: type(x).t_(x.numpy()), "`t_` changes a Tensor, got ndarray"),
    ],
)
def test_messages(tg, turn, message):
    with pytest.raises((RuntimeError, IndexError, TypeError), match=message):
        turn(tg.tensor(M))


# --------------------------------------------------------------------------------------------------
# Who else sees it
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alias", [lambda x: x.detach(), lambda x: x.data, lambda x: x[:]])
def test_other_tensors_keep_their_shape(tg, alias):
    x = tg.tensor(M)
    other = alias(x)
    x.t_()
    assert other.shape == (2, 3)
    other.mul_(2)
    assert x.tolist() == [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]
    other.unsqueeze_(0)
    assert x.shape == (3, 2)
    assert other.shape == (1, 2, 3)


def test_versions_are_shared(tg):
    x = tg.tensor(M)
    row, cut, data = x[0], x.detach(), x.data
    row.unsqueeze_(0)
    x.t_()
    assert (x._version, row._version, cut._version, data._version) == (2, 2, 2, 0)


def test_an_array_keeps_its_shape(tg):
    array = np.ones((2, 3))
    x = tg.from_numpy(array)
    x.t_()[0, 1] = 7
    assert array.shape == (2, 3)
    assert array[1, 0] == 7


def test_a_saved_value_counts_as_changed(nonleaf):
    _, x = nonleaf()
    y = x * x
    x.t_()
    with pytest.raises(RuntimeError, match=IN_PLACE):
        y.sum().backward()


def test_earlier_results_keep_their_gradients(tg, nonleaf):
    a, x = nonleaf()
    y = x * 3
    x.t_()
    ((y * tg.tensor(WT)).sum() + (x * tg.tensor(W)).sum()).backward()
    assert a.grad.tolist() == (8 * np.array(WT)).tolist()


# --------------------------------------------------------------------------------------------------
# Leaves
# --------------------------------------------------------------------------------------------------


def test_a_leaf_that_requires_grad_is_refused(leaf):
    x = leaf(M)
    with pytest.raises(RuntimeError, match="leaf"):
        x.t_()
    with pytest.raises(RuntimeError, match="leaf"):
        x[0].unsqueeze_(0)
    assert x.shape == (2, 3)


def test_a_leaf_under_no_grad(tg, leaf):
    x = leaf(M)
    log = []
    x.register_hook(lambda g: log.append(tuple(g.shape)))
    with tg.no_grad():
        x.t_()
    assert x.is_leaf
    assert x.requires_grad
    (x * tg.tensor(W)).sum().backward()
    assert x.grad.tolist() == W
    assert log == [(3, 2)]


@pytest.mark.tapegrad_only("PyTorch raises: the leaf's node keeps the shape from before")
def test_a_leaf_under_no_grad_with_a_view(tg, leaf):
    x = leaf(M)
    row = x[0]
    with tg.no_grad():
        x.t_()
    (row * 2).sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0]] * 3


@pytest.mark.parametrize("again", [False, True])
def test_a_leaf_that_was_computed_with(tg, leaf, again):
    x = leaf(M)
    y = (x * 2).sum()
    with tg.no_grad():
        x.t_()
    if again:
        y = y + (x * 3).sum()
    with pytest.raises(RuntimeError, match=r"shape|size"):
        y.backward()


@pytest.mark.tapegrad_only("PyTorch gives a gradient of the shape that the leaf had")
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("unused", [False, True])
def test_the_gradient_in_a_leaf_that_was_computed_with(tg, leaf, again, unused):
    x = leaf(M)
    for _ in range(2):
        y = (x * 2).sum()
        if again:
            y = y + x.sum()
        with tg.no_grad():
            x.t_()
        if again:
            y = y + (x * 3).sum()
        with pytest.raises(RuntimeError, match=r"given the shape|appears to not have been used"):
            tg.autograd.grad(y, x, allow_unused=unused)
        del y
    assert tg.autograd.grad((x * 3).sum(), x)[0].tolist() == [[3.0] * 3] * 2


def test_a_leaf_with_a_gradient_of_another_shape(tg, leaf):
    x = leaf(M)
    (x * 2).sum().backward()
    with tg.no_grad():
        x.t_()
    with pytest.raises(RuntimeError, match=r"shape|size"):
        (x * 3).sum().backward()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.shape == (3, 2)


def test_a_view_of_a_leaf_under_no_grad(tg, leaf):
    x = leaf(M)
    v = x[:]
    with tg.no_grad():
        v.t_()
    (v * tg.tensor(W)).sum().backward()
    assert x.grad.tolist() == WT


@pytest.mark.tapegrad_only("PyTorch's graph ends up with a record of another shape, and raises")
def test_a_nonleaf_under_no_grad_has_a_record_all_the_same(tg, nonleaf):
    a, x = nonleaf()
    with tg.no_grad():
        x.t_()
    (x * tg.tensor(W)).sum().backward()
    assert a.grad.tolist() == (2 * np.array(WT)).tolist()


# --------------------------------------------------------------------------------------------------
# Views, and bases of views
# --------------------------------------------------------------------------------------------------


def test_a_view_is_reshaped_and_then_written_to(nonleaf):
    a, x = nonleaf()
    row = x[0]
    row.unsqueeze_(0)
    assert row._base is x
    assert x.shape == (2, 3)
    row.mul_(5)
    x.sum().backward()
    assert a.grad.tolist() == [[10.0] * 3, [2.0] * 3]


def test_a_view_of_a_view(tg, nonleaf):
    a, x = nonleaf()
    row = x[0]
    part = row[1:]
    row.unsqueeze_(1)
    part.mul_(3)
    row.mul_(5)
    x.t_()
    part.add_(1)
    (x * tg.tensor(W)).sum().backward()
    assert a.grad.tolist() == [[10.0, 90.0, 150.0], [4.0, 8.0, 12.0]]
    assert row.tolist() == [[10.0], [61.0], [91.0]]
    assert part.tolist() == [61.0, 91.0]


def test_the_base_is_reshaped_and_an_older_view_written_to(tg, nonleaf):
    a, x = nonleaf()
    row = x[0]
    x.t_()
    row.mul_(5)
    (x * tg.tensor(W)).sum().backward()
    assert a.grad.tolist() == [[10.0, 30.0, 50.0], [4.0, 8.0, 12.0]]


def test_the_base_is_reshaped_and_written_to(tg, nonleaf):
    a, x = nonleaf()
    row, flat = x[0], x.view(6)
    x.t_()
    x.unsqueeze_(1)
    x.mul_(tg.tensor(W).unsqueeze(1))
    newer = x[0]
    assert newer.tolist() == [[2.0, 16.0]]
    (row * tg.tensor([1.0, 10.0, 100.0])).sum().backward(retain_graph=True)
    assert a.grad.tolist() == [[2.0, 60.0, 1000.0], [0.0, 0.0, 0.0]]
    a.grad = None
    flat.sum().backward()
    assert a.grad.tolist() == (2 * np.array(WT)).tolist()


def test_an_older_view_brings_a_history(tg, leaf):
    b = leaf([1.0, 2.0, 3.0])
    x = tg.ones((2, 3))
    row = x[0]
    x.t_()
    row.mul_(b)
    x.mul_(tg.tensor(W))
    x.sum().backward()
    assert b.grad.tolist() == [1.0, 3.0, 5.0]
    assert row.tolist() == [1.0, 6.0, 15.0]


def test_second_derivatives(tg, leaf):
    a = leaf(M)
    x = a * a * a
    row = x[0]
    x.t_()
    row.mul_(a[1].clone())
    (g,) = tg.autograd.grad((x * tg.tensor(W)).sum(), a, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), a)
    u, v, w = np.array(M[0]), np.array(M[1]), np.array(WT)
    np.testing.assert_allclose(
        g.tolist(), np.stack([3 * u**2 * v * w[0], u**3 * w[0] + 3 * v**2 * w[1]])
    )
    np.testing.assert_allclose(
        h.tolist(), np.stack([6 * u * v * w[0] + 3 * u**2 * w[0], 3 * u**2 * w[0] + 6 * v * w[1]])
    )


def test_nothing_is_left_of_many_turns(tg, nonleaf):
    a, x = nonleaf()
    row = x[0]
    for _ in range(500):
        x.t_().unsqueeze_(0).squeeze_(0)
    row.mul_(3)
    x.sum().backward()
    assert a.grad.tolist() == [[6.0] * 3, [2.0] * 3]


def test_no_elements(leaf):
    a = leaf(np.ones((0, 3)))
    x = a * 2
    column = x[:, 1]
    x.t_().unsqueeze_(1)
    column.mul_(3)
    x.mul_(2)
    (x.sum() + column.sum()).backward()
    assert x.shape == (3, 1, 0)
    assert a.grad.shape == (0, 3)


@pytest.mark.parametrize("flat", [lambda y: y.t().view(-1), lambda y: y.as_strided((6,), (1,))])
def test_views_of_a_base_in_fortran_order(tg, leaf, flat):
    a = leaf(M)
    y = a.t() * 1  # lies as `a.t()` does
    v = flat(y)
    v.mul_(tg.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    (y * tg.tensor(W)).sum().backward(retain_graph=True)
    assert a.grad.tolist() == [[1.0, 6.0, 15.0], [8.0, 20.0, 36.0]]
    a.grad = None
    y.mul_(2)
    (v * tg.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])).sum().backward()
    assert a.grad.tolist() == [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]


# --------------------------------------------------------------------------------------------------
# Views that cannot be changed in place
# --------------------------------------------------------------------------------------------------


def test_one_of_several_views(tg, nonleaf):
    _, x = nonleaf()
    with pytest.raises(RuntimeError, match="view"):
        x.unbind()[0].unsqueeze_(0)
    assert tg.tensor(M).unbind()[0].unsqueeze_(0).shape == (1, 3)


def test_a_view_made_under_no_grad(tg, nonleaf):
    _, x = nonleaf()
    with tg.no_grad():
        row = x[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        row.unsqueeze_(0)


def test_inference_mode(tg):
    with tg.inference_mode():
        x = tg.ones((2, 3))
        x.unsqueeze_(0)
    assert x.shape == (1, 2, 3)
    with pytest.raises(RuntimeError, match=r"(?i)inference"):
        x.squeeze_()
    y = tg.ones((2, 3))
    with tg.inference_mode():
        y.t_()
    assert y.shape == (3, 2)


def test_what_a_function_made(tg, leaf):
    class Same(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    y = Same.apply(leaf(M) * 2)
    with pytest.raises(RuntimeError, match="Function"):
        y.t_()


def test_an_expanded_tensor_may_be_reshaped(tg, leaf):
    a = leaf([[1.0], [2.0]])
    v = (a * 2).expand(2, 3)
    v.t_()
    (v * tg.tensor(W)).sum().backward()
    assert a.grad.tolist() == [[18.0], [24.0]]


# --------------------------------------------------------------------------------------------------
# Hooks
# --------------------------------------------------------------------------------------------------


@pytest.mark.tapegrad_only("in PyTorch later hooks and `retain_grad` stay with the old shape")
def test_hooks_and_retained_gradients(tg, nonleaf):
    _, x = nonleaf()
    log = []
    x.register_hook(lambda g: log.append(("before", tuple(g.shape))))
    x.retain_grad()
    x.t_()
    x.register_hook(lambda g: log.append(("after", tuple(g.shape))))
    (x * tg.tensor(W)).sum().backward()
    assert log == [("after", (3, 2)), ("before", (2, 3))]
    assert x.grad.tolist() == W


def test_hooks_on_a_view(nonleaf):
    _, x = nonleaf()
    row = x[0]
    log = []
    row.unsqueeze_(0)
    row.register_hook(lambda g: log.append(tuple(g.shape)))
    row.sum().backward()
    assert log == [(1, 3)]


# --------------------------------------------------------------------------------------------------
# Windows into the storage
# --------------------------------------------------------------------------------------------------


@pytest.mark.tapegrad_only("PyTorch drops the gradient of what the operand does not show")
@pytest.mark.parametrize("turn", [False, True])
def test_a_window_beyond_a_view_is_one_of_its_base(nonleaf, turn):
    a, x = nonleaf()
    v = x[1]
    v = v.as_strided_((2,), (1,), 0) if turn else v.as_strided((2,), (1,), 0)
    assert v.tolist() == [2.0, 4.0]
    v.mul_(3)
    v.sum().backward(retain_graph=True)
    assert a.grad.tolist() == [[6.0, 6.0, 0.0], [0.0, 0.0, 0.0]]
    x.sum().backward()
    assert a.grad.tolist() == [[12.0, 12.0, 2.0], [2.0, 2.0, 2.0]]


@pytest.mark.tapegrad_only("PyTorch drops the gradient of what the base does not show any more")
def test_a_base_that_shows_less_than_its_older_view(nonleaf):
    a, x = nonleaf()
    row, last = x[0], x[1]
    x.as_strided_((3,), (1,))
    (last * 3).sum().backward(retain_graph=True)
    assert a.grad.tolist() == [[0.0] * 3, [6.0] * 3]
    row.mul_(2)
    assert x.tolist() == [4.0, 8.0, 12.0]
    with pytest.raises(RuntimeError, match=r"shape \(3,\) is a view of one that was given the"):
        (last * 3).sum()
    with pytest.raises(RuntimeError, match=r"shape \(3,\) is a view of one that was given the"):
        last.mul_(2)


@pytest.mark.tapegrad_only("PyTorch computes a wrong gradient")
def test_a_base_that_shows_elements_twice_is_not_written_to_through_a_view(nonleaf):
    _, x = nonleaf()
    x.as_strided_((2, 2), (1, 1))
    with pytest.raises(RuntimeError, match="shows one element in several places"):
        x[0].mul_(2)
    assert x.tolist() == [[2.0, 4.0], [4.0, 6.0]]
