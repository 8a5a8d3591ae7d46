"""Functions that are made of others: values, gradients, views and refusals."""

import numpy as np
import pytest

GRADIENTS = {
    "clamp_min": lambda tg, x: tg.clamp_min(x, 0.5),
    "clamp_max": lambda tg, x: tg.clamp_max(x, 0.5),
    "threshold": lambda tg, x: tg.threshold(x, 0.5, 3.0),
    "positive": lambda tg, x: tg.positive(x),
    "broadcast_tensors": lambda tg, x: tg.broadcast_tensors(x, tg.zeros(4, 1, 3))[0],
    "atleast_1d": lambda tg, x: tg.atleast_1d(x[0, 0]),
    "atleast_2d": lambda tg, x: tg.atleast_2d(x[0]),
    "atleast_3d": lambda tg, x: tg.atleast_3d(x),
    "hsplit": lambda tg, x: tg.hsplit(x, [1])[1],
    "vsplit": lambda tg, x: tg.vsplit(x, 2)[1],
    "dsplit": lambda tg, x: tg.dsplit(x[None], 3)[1],
    "diagflat": lambda tg, x: tg.diagflat(x, 1),
    "adjoint": lambda tg, x: tg.adjoint(x),
    "var_mean": lambda tg, x: sum(tg.var_mean(x, 1)),
    "std_mean": lambda tg, x: sum(tg.std_mean(x, dim=0, correction=0)),
    "index_copy": lambda tg, x: tg.index_copy(x, 1, tg.tensor([2, 0]), x[:, :2] ** 2),
    "index_fill": lambda tg, x: tg.index_fill(x, 0, tg.tensor([1]), 2.0),
    "index_fill by a Tensor": lambda tg, x: tg.index_fill(x, 1, tg.tensor([0, 2, 0]), x[1, 1]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(tg, leaf, name):
    x = leaf([[0.1, 0.7, -0.4], [0.9, -1.2, 0.2]])
    assert tg.autograd.gradcheck(lambda x: GRADIENTS[name](tg, x), (x,))


def test_in_place_forms(tg, leaf):
    x = leaf([-1.0, 0.5, 2.0])
    y = x * 1
    assert y.clamp_min_(0.0) is y
    tg.clamp_max_(y, 1.0)
    assert y.tolist() == [0.0, 0.5, 1.0]
    y.index_copy_(0, tg.tensor([0]), tg.ones(1)).index_fill_(0, tg.tensor([2]), 5.0)
    assert y.tolist() == [1.0, 0.5, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


def test_views_share_memory(tg):
    x = tg.zeros(2, 4)
    for view in (*tg.hsplit(x, 2), *x.vsplit(2), tg.broadcast_tensors(x, tg.zeros(3, 1, 1))[0]):
        assert view._is_view()
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.untyped_storage().nbytes() == 8 * x.element_size()


def test_shapes(tg):
    assert tg.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert [t.shape for t in tg.atleast_3d([tg.tensor(1.0), tg.ones(2), tg.ones(2, 3)])] == [
        (1, 1, 1), (1, 2, 1), (2, 3, 1),
    ]  # fmt: skip
    one, two = tg.atleast_2d(tg.tensor(1.0), tg.ones(2))
    assert (one.shape, two.shape) == ((1, 1), (1, 2))
    with pytest.raises(RuntimeError):
        tg.broadcast_shapes((2,), (3,))
    with pytest.raises(RuntimeError):
        tg.broadcast_tensors(tg.zeros(2), tg.zeros(3))


def test_bad_splits_are_refused(tg):
    for bad in (lambda: tg.hsplit(tg.tensor(1.0), 1), lambda: tg.vsplit(tg.ones(2), 2),
                lambda: tg.dsplit(tg.ones(2, 2), 2), lambda: tg.hsplit(tg.ones(5), 2)):  # fmt: skip
        with pytest.raises(RuntimeError):
            bad()


def test_bad_places_are_refused(tg):
    x = tg.zeros(3)
    with pytest.raises((IndexError, RuntimeError)):
        x.index_copy_(0, tg.tensor([0.5]), tg.ones(1))
    with pytest.raises((IndexError, RuntimeError)):
        x.index_copy_(1, tg.tensor([0]), tg.ones(1))
    with pytest.raises(RuntimeError):
        x.index_copy_(0, tg.tensor([0]), tg.ones(1, dtype=tg.int64))
    with pytest.raises(RuntimeError):
        x.index_fill_(0, tg.tensor([0]), tg.ones(2))


def test_unravel_index(tg):
    rows, columns = tg.unravel_index(tg.tensor([[0, 5], [3, 2]]), (2, 3))
    assert rows.tolist() == [[0, 1], [1, 0]]
    assert columns.tolist() == [[0, 2], [0, 2]]
    with pytest.raises(TypeError):
        tg.unravel_index(tg.tensor([1.5]), (2, 3))
    with pytest.raises((ValueError, RuntimeError)):
        tg.unravel_index(tg.tensor([1]), (-2, 3))


def test_ravel_lies_side_by_side(tg, leaf):
    whole, gaps = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([1.0, 2.0, 3.0, 4.0])
    assert whole.detach().ravel().data_ptr() == whole.data_ptr()
    found = gaps[::2].ravel()
    assert found.stride() == (1,)
    (found * tg.tensor([10.0, 20.0])).sum().backward()
    assert gaps.grad.tolist() == [10.0, 0.0, 20.0, 0.0]


def test_questions(tg, leaf):
    x = leaf([1.0])
    assert tg.is_tensor(x)
    assert not tg.is_tensor(np.ones(1))
    assert tg.numel(tg.zeros(2, 3)) == 6
    assert tg.is_floating_point(x)
    assert not tg.is_complex(x)
    assert not tg.is_inference(x)
    assert not tg.detach(x).requires_grad
    assert tg.detach(x).data_ptr() == x.data_ptr()
    assert tg.finfo(tg.float32).eps == np.finfo(np.float32).eps
    assert tg.iinfo(tg.int16).max == 32767
    with pytest.raises(TypeError):
        tg.finfo(tg.int32)
    with pytest.raises(TypeError):
        tg.iinfo(tg.float32)
    assert (tg.inf, tg.pi, tg.e) == (np.inf, np.pi, np.e)
    assert tg.nan != tg.nan
