"""In-place forms of logic and bits, and the operators `&=` and its kin."""

import operator

import numpy as np
import pytest

WORDS = {
    "logical_and_": np.logical_and, "logical_or_": np.logical_or, "logical_xor_": np.logical_xor,
    "bitwise_and_": np.bitwise_and, "bitwise_or_": np.bitwise_or, "bitwise_xor_": np.bitwise_xor,
    "bitwise_left_shift_": np.left_shift, "bitwise_right_shift_": np.right_shift,
}  # fmt: skip
A, B = np.array([0, 1, 6, 12]), np.array([3, 0, 1, 2])


@pytest.mark.parametrize("name", WORDS)
def test_logic_and_bits(tg, name):
    x = tg.tensor(A)
    row = x[1:]
    assert getattr(x, name)(tg.tensor(B)) is x
    np.testing.assert_array_equal(x.numpy(), WORDS[name](A, B).astype(A.dtype))
    np.testing.assert_array_equal(row.numpy(), x.numpy()[1:])
    assert x._version == 1


def test_not(tg):
    x = tg.tensor(A)
    assert x.bitwise_not_().tolist() == [-1, -2, -7, -13]
    assert x.logical_not_().tolist() == [0, 0, 0, 0]


OPERATORS = {
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift,
    ">>=": operator.irshift,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_change_the_tensor(tg, name):
    x = tg.tensor(A)
    same = OPERATORS[name](x, tg.tensor(B))
    assert same is x
    expected = A.copy()
    np.testing.assert_array_equal(x.numpy(), OPERATORS[name](expected, B))


def test_a_mask_is_changed_in_place(tg):
    mask = tg.tensor([True, True, False])
    row = mask[:2]
    mask &= tg.tensor([False, True, True])
    assert row.tolist() == [False, True]
    mask |= True
    assert row.tolist() == [True, True]


@pytest.mark.parametrize(("change", "match"), [
    (lambda tg: tg.tensor([True]).bitwise_or_(tg.tensor([2])), "cast"),
    (lambda tg: tg.tensor([1.0]).bitwise_and_(tg.tensor([2.0])), "not"),
    (lambda tg: tg.tensor([1, 2]).bitwise_and_(tg.tensor([1, 2, 3])), "broadcast|must match"),
], ids=["bool", "float", "shapes"])  # fmt: skip
def test_what_does_not_fit_is_refused(tg, change, match):
    with pytest.raises(RuntimeError, match=match):
        change(tg)


@pytest.mark.parametrize(("name", "own"), [
    ("absolute_", "abs_"), ("negative_", "neg_"), ("arcsin_", "asin_"), ("arctan_", "atan_"),
    ("arccos_", "acos_"),
])  # fmt: skip
def test_other_names(tg, leaf, name, own):
    x = leaf([0.3, -0.5])
    y, z = x * 1, x * 1
    getattr(y, name)()
    getattr(z, own)()
    assert y.tolist() == z.tolist()
    y.sum().backward()
    assert x.grad is not None
    a = tg.tensor([1.0, 4.0])
    a.true_divide_(2).arctan2_(tg.tensor([0.5, 2.0]))
    np.testing.assert_allclose(a.numpy(), np.full(2, np.pi / 4))


@pytest.mark.parametrize("key", [(0, 1), (slice(None), 0), (slice(None), slice(0, 1))])
def test_one_element_of_an_expanded_tensor_may_be_written(tg, key):
    base = tg.ones(2, 1)
    whole = base.expand(2, 3)
    whole[key] = 5.0
    assert bool((whole == base).all())
    assert bool((whole[key] == 5.0).all())


@pytest.mark.parametrize("key", [0, (1, ...), slice(0, 1), ..., (0, slice(1, 3))])
def test_several_that_are_one_in_memory_may_not(tg, key):
    whole = tg.ones(2, 1).expand(2, 3)
    with pytest.raises(RuntimeError, match="memory location"):
        whole[key] = 5.0


def test_the_gradient_of_a_write_into_an_expanded_tensor(tg):
    x = tg.tensor([[1.0], [2.0]], requires_grad=True)
    value = tg.tensor(7.0, requires_grad=True)
    base = x * 1
    whole = base.expand(2, 3)
    whole[1, 0] = value
    assert base.tolist() == [[1.0], [7.0]]
    (whole * tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    assert x.grad.tolist() == [[6.0], [0.0]]
    assert value.grad.item() == 15.0
