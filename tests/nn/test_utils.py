"""`nn.utils`. Runs on PyTorch itself with --library=torch."""

import math

import pytest


def with_gradients(tg, *gradients):
    leaves = []
    for gradient in gradients:
        g = None if gradient is None else tg.tensor(gradient)
        leaves.append(tg.zeros(1 if g is None else g.shape, requires_grad=True))
        leaves[-1].grad = g
    return leaves


def test_a_vector_of_parameters_and_back(tg):
    weight, bias = tg.tensor([[1.0, 2.0]], requires_grad=True), tg.zeros(1, requires_grad=True)
    vector = tg.nn.utils.parameters_to_vector([weight, bias])
    assert vector.tolist() == [1.0, 2.0, 0.0]
    vector.sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0]]
    new = tg.tensor([4.0, 5.0, 6.0])
    tg.nn.utils.vector_to_parameters(new, [weight, bias])
    assert weight.is_leaf
    assert weight.tolist() == [[4.0, 5.0]]
    assert bias.tolist() == [6.0]
    new[2] = 7.0
    assert bias.tolist() == [7.0]


def test_vectors_that_do_not_fit(tg):
    with pytest.raises(TypeError, match="float"):
        tg.nn.utils.vector_to_parameters(1.0, [tg.zeros(1)])
    with pytest.raises(RuntimeError, match=r"shape"):
        tg.nn.utils.vector_to_parameters(tg.zeros(2), [tg.zeros(3)])
    with pytest.raises(ValueError, match="cat"):
        tg.nn.utils.parameters_to_vector([])


@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, math.inf, "inf"])
def test_a_norm_is_bounded(tg, order):
    leaves = with_gradients(tg, [[3.0, -4.0]], None, [12.0])
    expected = max(3, 4, 12) if float(order) == math.inf else (3**order + 4**order + 12**order)
    expected = expected if float(order) == math.inf else expected ** (1 / order)
    total = tg.nn.utils.clip_grad_norm_(iter(leaves), 1.0, order)
    assert total.item() == pytest.approx(expected)
    assert leaves[2].grad.item() == pytest.approx(12 / expected, rel=1e-5)
    assert leaves[0].grad.tolist()[0] == pytest.approx([3 / expected, -4 / expected], rel=1e-5)
    before = leaves[2].grad.item()
    tg.nn.utils.clip_grad_norm_(leaves, 5.0, order, foreach=False)
    assert leaves[2].grad.item() == before


def test_one_tensor_and_none(tg):
    (leaf,) = with_gradients(tg, [3.0, 4.0])
    assert tg.nn.utils.clip_grad_norm_(leaf, 1.0).item() == 5.0
    assert tg.nn.utils.get_total_norm(tg.tensor([3.0, 4.0])).item() == 5.0
    assert tg.nn.utils.get_total_norm([]).item() == 0.0
    with pytest.warns(UserWarning, match="empty"):
        tg.nn.utils.clip_grad_norm_((x for x in ()), 1.0)


def test_a_norm_that_is_not_finite(tg):
    (leaf,) = with_gradients(tg, [math.inf])
    with pytest.raises(RuntimeError, match=r"norm of order 2\.0"):
        tg.nn.utils.clip_grad_norm_(leaf, 1.0, error_if_nonfinite=True)
    assert leaf.grad.item() == math.inf
    assert tg.nn.utils.clip_grad_norm_(leaf, 1.0).item() == math.inf


def test_elements_are_bounded(tg):
    leaves = with_gradients(tg, [[3.0, -4.0]], None, [0.5])
    tg.nn.utils.clip_grad_value_(leaves, 1)
    assert leaves[0].grad.tolist() == [[1.0, -1.0]]
    assert leaves[2].grad.tolist() == [0.5]


def test_float32_stays(tg):
    leaf = tg.zeros(2, dtype=tg.float32, requires_grad=True)
    leaf.grad = tg.tensor([3.0, 4.0], dtype=tg.float32)
    assert tg.nn.utils.clip_grad_norm_(leaf, 1.0).dtype is tg.float32
    assert leaf.grad.dtype is tg.float32
