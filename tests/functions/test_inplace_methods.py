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


WRITES = {
    "mul_": lambda v: v.mul_(2.0),
    "slice": lambda v: v.__setitem__(slice(1, None), 2.0),
    "array": lambda v: v.__setitem__([0, 1], 2.0),
    "mask": lambda v: v.__setitem__(v > 2, 2.0),
}


@pytest.mark.tapegrad_only("PyTorch writes them, in an order that it does not tell")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_windows_that_overlap_may_not_be_written(tg, write, requires_grad):
    x = tg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=requires_grad)
    y = x * 1.5
    for windows in (y.unfold(0, 2, 1), y.as_strided((3, 2), (1, 1))):
        with pytest.raises(RuntimeError, match="memory location"):
            write(windows)
        assert y.tolist() == [1.5, 3.0, 4.5, 6.0]


def test_one_of_several_windows_may_be_written(tg):
    x = tg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 1.5
    y.unfold(0, 2, 1)[0] = 2.0
    assert y.tolist() == [2.0, 2.0, 4.5, 6.0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 13.5, 18.0]


def test_windows_that_interleave_may_be_written(tg):
    y = tg.zeros(8)
    y.as_strided((3, 2), (2, 3)).fill_(1.0)
    assert y.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("key", [0, [0]])
def test_a_window_of_a_number_may_be_written(tg, key):
    x = tg.tensor(1.5, requires_grad=True)
    y = x * 2
    y[None].unfold(0, 1, 1)[key] = 1.0
    assert y.item() == 1.0
    (y * x).backward()
    assert x.grad.item() == 1.0


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
