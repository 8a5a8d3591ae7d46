"""Tensors: how they are made, printed, converted, combined and compared."""

import math
import operator
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")

# --------------------------------------------------------------------------------------------------
# Construction
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1.0, "float64", ()),
        (1, "int64", ()),
        (True, "bool", ()),
        ([1.0, 2.0], "float64", (2,)),
        ([1, 2], "int64", (2,)),
        ([1, 2.5, True], "float64", (3,)),
        ([True, False], "bool", (2,)),
        ([True, 2], "int64", (2,)),
        ([[1, 2, 3], [4, 5, 6]], "int64", (2, 3)),
        (((1.0,), (2.0,)), "float64", (2, 1)),
        ([], "float64", (0,)),
        ([[]], "float64", (1, 0)),
        (range(3), "int64", (3,)),
        (np.float32(2), "float32", ()),
        (np.arange(3), "int64", (3,)),
        (np.ones((2, 0), "float32"), "float32", (2, 0)),
        (np.array([True]), "bool", (1,)),
        ([np.float64(1), 2], "float64", (2,)),
        (2**63 - 1, "int64", ()),
    ],
    ids=repr,
)
def test_tensor_infers_dtype_and_shape(tg, value, dtype, shape):
    t = tg.tensor(value)
    assert t.dtype == getattr(tg, dtype)
    assert tuple(t.shape) == shape
    assert not t.requires_grad
    assert t.is_leaf


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensor_takes_a_dtype(tg, dtype):
    t = tg.tensor([0, 1], dtype=getattr(tg, dtype))
    assert t.dtype == getattr(tg, dtype)
    assert t.numpy().dtype == np.dtype(dtype)
    assert t.tolist() == [0, 1]


def test_tensor_of_floats_as_integers_truncates(tg):
    assert tg.tensor([1.5, -1.5], dtype=tg.int64).tolist() == [1, -1]


def test_tensor_copies(tg):
    a = np.array([1.0, 2.0])
    t = tg.tensor(a)
    a[0] = 9
    assert t.tolist() == [1.0, 2.0]


def test_tensor_from_scalar_tensors(tg):
    assert tg.tensor([tg.tensor(1.0), tg.tensor(2.0)]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([[1, 2], [3]], ValueError),
        ("text", TypeError),
        ([1, "text"], TypeError),
        (None, RuntimeError),
        (2**63, (ValueError, RuntimeError, OverflowError)),
        (np.array(["text"]), TypeError),
    ],
    ids=repr,
)
def test_tensor_refuses_what_is_no_array_of_numbers(tg, value, error):
    with pytest.raises(error):
        tg.tensor(value)


def test_as_tensor_and_from_numpy_share_memory(tg):
    a = np.array([1.0, 2.0])
    for make in (tg.as_tensor, tg.from_numpy):
        t = make(a)
        t[0] = 5
        assert a[0] == 5
        a[1] = 7
        assert t[1].item() == 7


def test_as_tensor_of_a_tensor_is_that_tensor(tg):
    t = tg.tensor([1.0])
    assert tg.as_tensor(t) is t
    assert tg.as_tensor([1, 2]).dtype == tg.int64


def test_from_numpy_takes_arrays_only(tg):
    with pytest.raises(TypeError):
        tg.from_numpy([1.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_numpy_keeps_the_dtype(tg, dtype):
    assert tg.from_numpy(np.zeros(2, dtype)).dtype == getattr(tg, dtype)


def test_factories_have_the_default_dtype(tg):
    assert tg.get_default_dtype() == tg.float64
    for t in (
        tg.zeros(2),
        tg.ones(2),
        tg.empty(2),
        tg.full((2,), 1.0),
        tg.eye(2),
        tg.rand(2),
        tg.randn(2),
        tg.linspace(0, 1, 3),
        tg.arange(3.0),
        tg.arange(0, 1, 0.5),
        tg.tensor([1.0]),
        tg.tensor([]),
    ):
        assert t.dtype == tg.float64


def test_factories_of_integers(tg):
    for t in (tg.arange(3), tg.randint(5, (2,)), tg.full((2,), 3), tg.tensor([1])):
        assert t.dtype == tg.int64
    assert tg.full((2,), True).dtype == tg.bool


def test_set_default_dtype(tg):
    try:
        tg.set_default_dtype(tg.float32)
        assert tg.get_default_dtype() == tg.float32
        assert tg.zeros(2).dtype == tg.float32
        assert tg.tensor([1.0]).dtype == tg.float32
        assert (tg.tensor([1, 2]) / 2).dtype == tg.float32
        assert tg.tensor(np.ones(2)).dtype == tg.float64
    finally:
        tg.set_default_dtype(tg.float64)
    assert tg.zeros(2).dtype == tg.float64


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda tg: tg.zeros(2, 3), [[0.0] * 3] * 2),
        (lambda tg: tg.zeros((2, 3)), [[0.0] * 3] * 2),
        (lambda tg: tg.ones([2]), [1.0, 1.0]),
        (lambda tg: tg.ones(()), 1.0),
        (lambda tg: tg.zeros(0), []),
        (lambda tg: tg.full((2, 1), 7.5), [[7.5], [7.5]]),
        (lambda tg: tg.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (lambda tg: tg.eye(2, 3), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        (lambda tg: tg.arange(4), [0, 1, 2, 3]),
        (lambda tg: tg.arange(1, 4), [1, 2, 3]),
        (lambda tg: tg.arange(5, 0, -2), [5, 3, 1]),
        (lambda tg: tg.arange(1, 2, 0.25), [1.0, 1.25, 1.5, 1.75]),
        (lambda tg: tg.linspace(0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (lambda tg: tg.zeros_like(tg.tensor([1, 2])), [0, 0]),
        (lambda tg: tg.ones_like(tg.tensor([1.5, 2.5])), [1.0, 1.0]),
        (lambda tg: tg.full_like(tg.tensor([1.5, 2.5]), 3), [3.0, 3.0]),
        (lambda tg: tg.tensor([1.0]).new_zeros(2), [0.0, 0.0]),
        (lambda tg: tg.tensor([1.0]).new_tensor([1, 2]), [1.0, 2.0]),
    ],
    ids=range(18),
)
def test_factories(tg, make, expected):
    assert make(tg).tolist() == expected


def test_factories_take_dtype_and_requires_grad(tg):
    t = tg.zeros(2, dtype=tg.float32, requires_grad=True)
    assert (t.dtype, t.requires_grad, t.is_leaf) == (tg.float32, True, True)
    assert tg.ones_like(t, requires_grad=True).requires_grad
    assert not tg.ones_like(t).requires_grad
    assert tg.zeros(2, dtype=float).dtype == tg.float64
    assert tg.zeros(2, dtype=int).dtype == tg.int64
    assert tg.zeros(2, dtype=bool).dtype == tg.bool


def test_like_factories_keep_the_dtype_unless_told(tg):
    t = tg.tensor([1, 2], dtype=tg.int32)
    for make in (tg.zeros_like, tg.ones_like, tg.empty_like):
        assert make(t).dtype == tg.int32
        assert make(t, dtype=tg.float32).dtype == tg.float32
    assert tg.rand_like(tg.zeros(2, 3)).shape == (2, 3)
    assert tg.randn_like(tg.zeros(2, 3)).shape == (2, 3)


def test_negative_sizes_are_refused(tg):
    with pytest.raises(RuntimeError, match="negative"):
        tg.zeros(-1)


def test_random_numbers_repeat_after_manual_seed(tg):
    def draw():
        tg.manual_seed(7)
        return [tg.rand(3).tolist(), tg.randn(3).tolist(), tg.randint(100, (3,)).tolist()]

    first = draw()
    assert draw() == first
    assert tg.rand(3).tolist() != first[0]


def test_random_numbers_have_the_range_they_promise(tg):
    tg.manual_seed(0)
    uniform, normal = tg.rand(10000), tg.randn(10000)
    assert 0 <= uniform.min().item() < 0.01
    assert 0.99 < uniform.max().item() < 1
    assert abs(normal.mean().item()) < 0.05
    assert abs(normal.std().item() - 1) < 0.05
    whole = tg.randint(2, 5, (1000,))
    assert sorted(set(whole.tolist())) == [2, 3, 4]
    assert tg.randint(3, (2, 2)).shape == (2, 2)


# --------------------------------------------------------------------------------------------------
# Attributes
# --------------------------------------------------------------------------------------------------


def test_shape_and_friends(tg):
    t = tg.zeros(2, 3, 4)
    assert t.shape == (2, 3, 4)
    assert t.size() == (2, 3, 4)
    assert isinstance(t.shape, tuple)
    assert (t.shape[0], t.size(1), t.size(-1)) == (2, 3, 4)
    assert (t.ndim, t.dim(), t.numel(), len(t)) == (3, 3, 24, 2)
    assert t.stride() == (12, 4, 1)
    assert t.shape.numel() == 24
    assert (t.element_size(), t.nbytes) == (8, 192)


def test_transposes(tg):
    t = tg.tensor([[1, 2, 3], [4, 5, 6]])
    assert t.T.tolist() == t.t().tolist() == t.mT.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert tg.zeros(5, 2, 3).mT.shape == (5, 3, 2)
    with pytest.raises(RuntimeError):
        _ = tg.zeros(3).mT
    with pytest.raises(RuntimeError):
        tg.zeros(2, 3, 4).t()


def test_real_of_a_real_tensor_is_the_tensor(tg):
    t = tg.tensor([1.0])
    assert t.real.tolist() == [1.0]
    with pytest.raises(RuntimeError):
        _ = t.imag


def test_conversions_of_dtype(tg):
    t = tg.tensor([0.0, 1.7])
    assert t.float().dtype == tg.float32
    assert t.double() is t
    assert t.long().tolist() == [0, 1]
    assert t.int().dtype == tg.int32
    assert t.bool().tolist() == [False, True]
    assert t.to(tg.float64) is t
    assert t.to(tg.float32).dtype == tg.float32
    assert t.type(tg.int8).dtype == tg.int8
    assert t.to(tg.tensor([1])).dtype == tg.int64


def test_conversion_of_dtype_is_differentiable(tg, leaf):
    x = leaf([1.0, 2.0])
    (x.float() * 3).sum().backward()
    assert x.grad.dtype == tg.float64
    assert x.grad.tolist() == [3.0, 3.0]


def test_conversion_to_integers_has_no_gradient(leaf):
    y = leaf([1.0, 2.0]).long()
    assert not y.requires_grad


def test_requires_grad_can_be_set_on_leaves(tg):
    t = tg.tensor([1.0])
    t.requires_grad = True
    assert t.requires_grad
    t.requires_grad_(False)
    assert not t.requires_grad


def test_is_leaf_and_requires_grad_of_results(tg, leaf):
    x, c = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    for y in (x + c, c * x, -x, x.sum(), x[0], x.view(2, 1), x.clone(), tg.cat([c, x]), x @ c):
        assert y.requires_grad
        assert not y.is_leaf
    for y in (c + c, x.detach(), x > c, x.argmax(), c.sum(), x.data, tg.zeros_like(x)):
        assert not y.requires_grad
        assert y.is_leaf


def test_grad_fn_names(tg, leaf):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    for y, name in (
        (x + x, "Add"),
        (x - x, "Sub"),
        (x * x, "Mul"),
        (x / x, "Div"),
        (x**2, "Pow"),
        (-x, "Neg"),
        (x.exp(), "Exp"),
        (x.sum(), "Sum"),
        (x.mean(), "Mean"),
        (x.clone(), "Clone"),
        (tg.tanh(x), "Tanh"),
        (tg.relu(x), "Relu"),
        (tg.where(x > 1, x, x), "Where"),
        (tg.cat([x, x]), "Cat"),
        (tg.stack([x, x]), "Stack"),
        (x.unsqueeze(0), "Unsqueeze"),
        (x.expand(2, 2, 2), "Expand"),
    ):
        assert re.fullmatch(rf"{name}Backward\d*", y.grad_fn.name())
        assert repr(y.grad_fn).startswith(f"<{name}Backward")


def test_grad_fn_next_functions_lead_to_the_leaves(tg, leaf):
    x = leaf(2.0)
    y = x * 3
    z = y + tg.exp(x)
    first, second = (node for node, _ in z.grad_fn.next_functions)
    assert first.name().startswith("MulBackward")
    assert second.name().startswith("ExpBackward")
    (accumulate, _), *_ = second.next_functions
    assert "AccumulateGrad" in accumulate.name()
    assert accumulate.variable is x


def test_grad_fn_of_the_same_tensor_is_equal(leaf):
    y = leaf(2.0) * 3
    assert y.grad_fn == y.grad_fn
    assert y.grad_fn.name() == y.grad_fn.name()


# --------------------------------------------------------------------------------------------------
# Conversion to Python
# --------------------------------------------------------------------------------------------------


def test_item_gives_a_python_number(tg):
    for value in (1.5, 3, True):
        for wrapped in (value, [value], [[value]]):
            got = tg.tensor(wrapped).item()
            assert got == value
            assert type(got) is type(value)


def test_item_needs_one_element(tg):
    for t in (tg.zeros(2), tg.zeros(0)):
        with pytest.raises(RuntimeError):
            t.item()


def test_tolist(tg):
    assert tg.tensor(3).tolist() == 3
    assert tg.tensor([[1.0, 2.0], [3.0, 4.0]]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert tg.zeros(2, 0).tolist() == [[], []]
    assert type(tg.tensor([1]).tolist()[0]) is int


def test_item_and_tolist_work_on_tensors_with_history(leaf):
    y = leaf([1.0, 2.0]) * 2
    assert y.tolist() == [2.0, 4.0]
    assert y[0].item() == 2.0


def test_float_int_bool_and_index(tg):
    assert float(tg.tensor([1.5])) == 1.5
    assert int(tg.tensor(1.7)) == 1
    assert bool(tg.tensor([0.0])) is False
    assert bool(tg.tensor(2)) is True
    assert [10, 20, 30][tg.tensor(1)] == 20
    assert list(range(tg.tensor(3))) == [0, 1, 2]
    assert complex(tg.tensor(1.5)) == 1.5
    assert math.sqrt(tg.tensor(4.0)) == 2.0


def test_float_and_bool_need_one_element(tg):
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)one"):
        float(tg.zeros(2))
    with pytest.raises(RuntimeError, match=r"(?i)ambiguous"):
        bool(tg.zeros(2))
    with pytest.raises(RuntimeError, match=r"(?i)ambiguous"):
        bool(tg.zeros(0))


def test_only_integers_are_an_index(tg):
    with pytest.raises(TypeError):
        _ = [1, 2][tg.tensor(1.0)]


def test_len_and_iteration(tg):
    t = tg.tensor([[1, 2], [3, 4], [5, 6]])
    assert len(t) == 3
    assert [row.tolist() for row in t] == [[1, 2], [3, 4], [5, 6]]
    _, second, _ = t
    assert second.tolist() == [3, 4]
    with pytest.raises(TypeError):
        len(tg.tensor(1.0))
    with pytest.raises(TypeError):
        iter(tg.tensor(1.0))


def test_iteration_is_differentiable(leaf):
    x = leaf([1.0, 2.0, 3.0])
    total = 0.0
    for k, v in enumerate(x):
        total = total + v * k
    total.backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_format(tg):
    assert f"{tg.tensor(1.23456):.2f}" == "1.23"
    assert f"{tg.tensor(7):03d}" == "007"
    assert f"{tg.tensor([1.0, 2.0])}" == "tensor([1., 2.])"
    with pytest.raises(TypeError):
        _ = f"{tg.zeros(2):.2f}"


def test_membership(tg):
    t = tg.tensor([1.0, 2.0])
    assert 2.0 in t
    assert 3.0 not in t


def test_hash_is_identity(tg):
    a, b = tg.tensor([1.0]), tg.tensor([1.0])
    assert len({a, b, a}) == 2
    assert {a: "a"}[a] == "a"


# --------------------------------------------------------------------------------------------------
# repr
# --------------------------------------------------------------------------------------------------

REPRS = [
    ("tg.tensor(4.)", "tensor(4.)"),
    ("tg.tensor(4)", "tensor(4)"),
    ("tg.tensor(True)", "tensor(True)"),
    ("tg.tensor(-0.)", "tensor(-0.)"),
    ("tg.tensor(0.1)", "tensor(0.1000)"),
    ("tg.tensor(1e-05)", "tensor(1.0000e-05)"),
    ("tg.tensor(123456.)", "tensor(123456.)"),
    ("tg.tensor(1e8)", "tensor(100000000.)"),
    ("tg.tensor(1.5e8)", "tensor(1.5000e+08)"),
    ("tg.tensor(1e9)", "tensor(1.0000e+09)"),
    ("tg.tensor(math.nan)", "tensor(nan)"),
    ("tg.tensor(math.inf)", "tensor(inf)"),
    ("tg.tensor(-math.inf)", "tensor(-inf)"),
    ("tg.tensor(3.14159265)", "tensor(3.1416)"),
    ("tg.tensor([])", "tensor([])"),
    ("tg.tensor([[]])", "tensor([], size=(1, 0))"),
    ("tg.zeros(0, 3)", "tensor([], size=(0, 3))"),
    ("tg.zeros(2, 0, dtype=tg.int64)", "tensor([], size=(2, 0), dtype=int64)"),
    ("tg.tensor([1., 2.])", "tensor([1., 2.])"),
    ("tg.tensor([1.5, 2.])", "tensor([1.5000, 2.0000])"),
    ("tg.tensor([1, -2, 30])", "tensor([ 1, -2, 30])"),
    ("tg.tensor([True, False])", "tensor([ True, False])"),
    ("tg.tensor([1., -2.])", "tensor([ 1., -2.])"),
    ("tg.tensor([0.1, 100.])", "tensor([  0.1000, 100.0000])"),
    ("tg.tensor([1e-5, 1.])", "tensor([1.0000e-05, 1.0000e+00])"),
    ("tg.tensor([1e-4, 1.])", "tensor([1.0000e-04, 1.0000e+00])"),
    ("tg.tensor([1e5, 1.5])", "tensor([1.0000e+05, 1.5000e+00])"),
    ("tg.tensor([1e8, 1.])", "tensor([1.0000e+08, 1.0000e+00])"),
    ("tg.tensor([1e8, 1.5])", "tensor([1.0000e+08, 1.5000e+00])"),
    ("tg.tensor([12345.678, 0.001])", "tensor([1.2346e+04, 1.0000e-03])"),
    ("tg.tensor([99999., 0.5])", "tensor([9.9999e+04, 5.0000e-01])"),
    ("tg.tensor([100000., 0.5])", "tensor([1.0000e+05, 5.0000e-01])"),
    ("tg.tensor([1e-8, 1e-9])", "tensor([1.0000e-08, 1.0000e-09])"),
    ("tg.tensor([1e10, 1e-10])", "tensor([1.0000e+10, 1.0000e-10])"),
    ("tg.tensor([math.nan, 1.])", "tensor([nan, 1.])"),
    ("tg.tensor([math.inf, 1.5])", "tensor([   inf, 1.5000])"),
    ("tg.tensor([math.nan, math.inf, -math.inf])", "tensor([nan, inf, -inf])"),
    ("tg.tensor([math.nan, 1.5, -math.inf])", "tensor([   nan, 1.5000,   -inf])"),
    ("tg.tensor([0.000012345, 0.00002])", "tensor([1.2345e-05, 2.0000e-05])"),
    ("tg.tensor([1234567., 2.])", "tensor([1.2346e+06, 2.0000e+00])"),
    ("tg.tensor([9999999., 1.])", "tensor([1.0000e+07, 1.0000e+00])"),
    ("tg.tensor([[1., 2.], [3., 4.]])", "tensor([[1., 2.],\n        [3., 4.]])"),
    (
        "tg.tensor([[1.5, -2.25], [10., 100.]])",
        "tensor([[  1.5000,  -2.2500],\n        [ 10.0000, 100.0000]])",
    ),
    ("tg.tensor([[1, 20], [300, -4]])", "tensor([[  1,  20],\n        [300,  -4]])"),
    ("tg.tensor([[[1, 2]], [[3, 4]]])", "tensor([[[1, 2]],\n\n        [[3, 4]]])"),
    (
        "tg.tensor([[[[1., 2.], [3., 4.]], [[5., 6.], [7., 8.]]]])",
        "tensor([[[[1., 2.],\n          [3., 4.]],\n\n         [[5., 6.],\n          [7., 8.]]]])",
    ),
    (
        "tg.tensor([[[1., 2.], [3., 4.]], [[5., 6.], [7., 8.]]])",
        "tensor([[[1., 2.],\n         [3., 4.]],\n\n        [[5., 6.],\n         [7., 8.]]])",
    ),
    ("tg.tensor([1., 2.], dtype=tg.float32)", "tensor([1., 2.], dtype=float32)"),
    ("tg.tensor(1.5, dtype=tg.float32)", "tensor(1.5000, dtype=float32)"),
    ("tg.tensor([1, 2], dtype=tg.int32)", "tensor([1, 2], dtype=int32)"),
    ("tg.tensor([1, 2], dtype=tg.uint8)", "tensor([1, 2], dtype=uint8)"),
    ("tg.tensor([], dtype=tg.float32)", "tensor([], dtype=float32)"),
    ("tg.tensor([999.], requires_grad=True)", "tensor([999.], requires_grad=True)"),
    ("tg.tensor(1., requires_grad=True)", "tensor(1., requires_grad=True)"),
    (
        "tg.tensor([[1., 2.], [3., 4.]], requires_grad=True)",
        "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)",
    ),
    (
        "tg.tensor([1.], dtype=tg.float32, requires_grad=True)",
        "tensor([1.], dtype=float32, requires_grad=True)",
    ),
    ("tg.tensor([1.], requires_grad=True) * 2", "tensor([2.], grad_fn=<MulBackward0>)"),
    ("tg.tensor([1.], requires_grad=True) + 2", "tensor([3.], grad_fn=<AddBackward0>)"),
    ("tg.tensor([1.], requires_grad=True) - 2", "tensor([-1.], grad_fn=<SubBackward0>)"),
    ("tg.tensor([4.], requires_grad=True) / 2", "tensor([2.], grad_fn=<DivBackward0>)"),
    ("tg.tensor([4.], requires_grad=True) ** 2", "tensor([16.], grad_fn=<PowBackward0>)"),
    (
        "tg.tensor([[1., 2.], [3., 4.]], requires_grad=True) * 2",
        "tensor([[2., 4.],\n        [6., 8.]], grad_fn=<MulBackward0>)",
    ),
    (
        "tg.tensor([1.], dtype=tg.float32, requires_grad=True) * 2",
        "tensor([2.], dtype=float32, grad_fn=<MulBackward0>)",
    ),
    ("tg.arange(10)", "tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])"),
    (
        "tg.arange(30)",
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    (
        "tg.arange(30) / 7",
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
        "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
        "        3.8571, 4.0000, 4.1429])",
    ),
    (
        "tg.linspace(0, 1, 30)",
        "tensor([0.0000, 0.0345, 0.0690, 0.1034, 0.1379, 0.1724, 0.2069, 0.2414, 0.2759,\n"
        "        0.3103, 0.3448, 0.3793, 0.4138, 0.4483, 0.4828, 0.5172, 0.5517, 0.5862,\n"
        "        0.6207, 0.6552, 0.6897, 0.7241, 0.7586, 0.7931, 0.8276, 0.8621, 0.8966,\n"
        "        0.9310, 0.9655, 1.0000])",
    ),
    (
        "tg.arange(40).reshape(2, 20)",
        "tensor([[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "         18, 19],\n"
        "        [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,\n"
        "         38, 39]])",
    ),
    ("tg.tensor([0.5]).expand(3)", "tensor([0.5000, 0.5000, 0.5000])"),
    ("tg.tensor([1., 2.]).detach()", "tensor([1., 2.])"),
    ("tg.tensor([[1., 2.], [3., 4.]]).t()", "tensor([[1., 3.],\n        [2., 4.]])"),
    ("tg.eye(3)", "tensor([[1., 0., 0.],\n        [0., 1., 0.],\n        [0., 0., 1.]])"),
    ("tg.zeros(2, 2, dtype=tg.bool)", "tensor([[False, False],\n        [False, False]])"),
    (
        "tg.arange(12.).reshape(3, 4) - 5",
        "tensor([[-5., -4., -3., -2.],\n"
        "        [-1.,  0.,  1.,  2.],\n"
        "        [ 3.,  4.,  5.,  6.]])",
    ),
    ("tg.tensor([0., 0.])", "tensor([0., 0.])"),
    ("tg.tensor([1/3, 2/3, 1.])", "tensor([0.3333, 0.6667, 1.0000])"),
    ("tg.tensor(1/3)", "tensor(0.3333)"),
    ("tg.tensor(100/3)", "tensor(33.3333)"),
    ("tg.tensor(1e6/3)", "tensor(333333.3333)"),
    ("tg.tensor(1e5)", "tensor(100000.)"),
    ("tg.tensor(99999.5)", "tensor(99999.5000)"),
    ("tg.tensor(1e-4)", "tensor(0.0001)"),
    ("tg.tensor(1e-3)", "tensor(0.0010)"),
    ("tg.tensor(0.00012)", "tensor(0.0001)"),
]


@pytest.mark.parametrize(("source", "expected"), REPRS, ids=[source for source, _ in REPRS])
def test_repr(tg, source, expected):
    expected = re.sub(r"dtype=(\w+)", lambda m: f"dtype={getattr(tg, m[1])}", expected)
    tensor = eval(source, {"tg": tg, "math": math})
    assert repr(tensor) == expected
    assert str(tensor) == expected


def test_repr_of_a_view_names_an_operation(leaf):
    y = leaf([[1.0, 2.0]])[0]
    assert re.fullmatch(r"tensor\(\[1\., 2\.\], grad_fn=<\w+Backward\d*>\)", repr(y))


def test_repr_of_a_function_result(tg, leaf):
    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert repr(Twice.apply(leaf([1.0]))) == "tensor([2.], grad_fn=<TwiceBackward>)"


def test_names_of_dtypes(tg):
    for name in DTYPES:
        assert str(getattr(tg, name)) == f"{tg.__name__}.{name}"


# --------------------------------------------------------------------------------------------------
# Promotion of dtypes
# --------------------------------------------------------------------------------------------------


def table(text):
    """From each row's dtype to the dtypes of its columns."""
    cells = [line.split() for line in text.strip().splitlines()]
    short = dict(zip(("b", "u8", "i8", "i16", "i32", "i64", "f32", "f64"), DTYPES))
    return {row[0]: [short[c] for c in row[1:]] for row in cells}


ARRAY_AND_ARRAY = table("""
bool    b   u8  i8  i16 i32 i64 f32 f64
uint8   u8  u8  i16 i16 i32 i64 f32 f64
int8    i8  i16 i8  i16 i32 i64 f32 f64
int16   i16 i16 i16 i16 i32 i64 f32 f64
int32   i32 i32 i32 i32 i32 i64 f32 f64
int64   i64 i64 i64 i64 i64 i64 f32 f64
float32 f32 f32 f32 f32 f32 f32 f32 f64
float64 f64 f64 f64 f64 f64 f64 f64 f64
""")

ARRAY_AND_ZERO_DIM = table("""
bool    b   u8  i8  i16 i32 i64 f32 f64
uint8   u8  u8  u8  u8  u8  u8  f32 f64
int8    i8  i8  i8  i8  i8  i8  f32 f64
int16   i16 i16 i16 i16 i16 i16 f32 f64
int32   i32 i32 i32 i32 i32 i32 f32 f64
int64   i64 i64 i64 i64 i64 i64 f32 f64
float32 f32 f32 f32 f32 f32 f32 f32 f32
float64 f64 f64 f64 f64 f64 f64 f64 f64
""")

ARRAY_AND_PYTHON_NUMBER = table("""
bool    b   i64 f64
uint8   u8  u8  f64
int8    i8  i8  f64
int16   i16 i16 f64
int32   i32 i32 f64
int64   i64 i64 f64
float32 f32 f32 f32
float64 f64 f64 f64
""")


@pytest.mark.parametrize("b", DTYPES)
@pytest.mark.parametrize("a", DTYPES)
def test_promotion_of_two_arrays(tg, a, b):
    x, y = tg.ones(2, dtype=getattr(tg, a)), tg.ones(2, dtype=getattr(tg, b))
    expected = getattr(tg, ARRAY_AND_ARRAY[a][DTYPES.index(b)])
    assert (x + y).dtype == expected
    assert (x * y).dtype == expected
    assert tg.maximum(x, y).dtype == expected
    assert tg.where(x > 0, x, y).dtype == expected
    assert tg.cat([x, y]).dtype == expected
    assert tg.promote_types(x.dtype, y.dtype) == expected


@pytest.mark.parametrize("b", DTYPES)
@pytest.mark.parametrize("a", DTYPES)
def test_promotion_with_a_zero_dimensional_tensor(tg, a, b):
    """A 0-d tensor decides only when it is of a higher kind (bool < integer < float)."""
    x, y = tg.ones(2, dtype=getattr(tg, a)), tg.ones((), dtype=getattr(tg, b))
    expected = getattr(tg, ARRAY_AND_ZERO_DIM[a][DTYPES.index(b)])
    assert (x + y).dtype == expected
    assert (y * x).dtype == expected
    assert tg.result_type(x, y) == expected


@pytest.mark.parametrize("number", [True, 1, 1.5])
@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("shape", [(2,), ()])
def test_promotion_with_a_python_number(tg, a, number, shape):
    x = tg.ones(shape, dtype=getattr(tg, a))
    kind = (bool, int, float).index(type(number))
    expected = getattr(tg, ARRAY_AND_PYTHON_NUMBER[a][kind])
    assert (x + number).dtype == expected
    assert (number * x).dtype == expected


@pytest.mark.parametrize("a", DTYPES)
def test_true_division_gives_floats(tg, a):
    x = tg.ones(2, dtype=getattr(tg, a))
    expected = tg.float32 if a == "float32" else tg.float64
    assert (x / x).dtype == expected
    assert (x / 2).dtype == expected
    assert (2 / x).dtype == expected


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "sigmoid", "erf"])
def test_functions_of_integers_give_floats(tg, name):
    y = getattr(tg, name)(tg.tensor([1, 2]))
    assert y.dtype == tg.float64
    assert y.tolist() == getattr(tg, name)(tg.tensor([1.0, 2.0])).tolist()


def test_sums_of_small_integers_are_int64(tg):
    for dtype in (tg.bool, tg.uint8, tg.int8, tg.int16, tg.int32, tg.int64):
        t = tg.ones(300, dtype=dtype)
        assert t.sum().dtype == t.prod().dtype == t.cumsum(0).dtype == tg.int64
        assert t.sum().item() == 300


def test_mean_of_integers_is_refused(tg):
    with pytest.raises(RuntimeError, match=r"(?i)float"):
        tg.tensor([1, 2]).mean()


# --------------------------------------------------------------------------------------------------
# Operators and operands
# --------------------------------------------------------------------------------------------------

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [2, 2.5, 0.5], ids=str)
def test_python_numbers_on_both_sides(tg, op, other):
    values = np.array([1.0, 2.0, 3.5])
    t = tg.tensor(values)
    assert op(t, other).tolist() == pytest.approx(op(values, other).tolist(), rel=1e-15)
    assert op(other, t).tolist() == pytest.approx(op(other, values).tolist(), rel=1e-15)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_numpy_scalars_on_both_sides(tg, op):
    values = np.array([1.0, 2.0, 3.5])
    t = tg.tensor(values)
    expected = op(np.float64(2), values).tolist()
    assert op(t, np.float64(2)).tolist() == pytest.approx(op(values, 2).tolist(), rel=1e-15)
    if tg.__name__ == "tapegrad":  # PyTorch divides and powers by way of __array__
        got = op(np.float64(2), t)
        assert type(got) is type(t)
        assert got.tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.tapegrad_only("PyTorch takes NumPy arrays on some sides of some operators")
@pytest.mark.parametrize("op", [*OPERATORS, operator.matmul], ids=lambda op: op.__name__)
def test_numpy_arrays_on_both_sides(tg, leaf, op):
    a, b = np.array([1.0, 2.0, 3.5]), np.array([2.0, 0.5, 1.25])
    for t in (tg.tensor(a), leaf(a)):
        for got, expected in ((op(t, b), op(a, b)), (op(b, t), op(b, a))):
            assert type(got) is type(t)
            assert got.requires_grad is t.requires_grad
            assert got.tolist() == pytest.approx(expected.tolist(), rel=1e-14)


@pytest.mark.tapegrad_only("PyTorch refuses NumPy arrays here")
def test_numpy_arrays_in_functions_and_in_place(tg, leaf):
    x, a = leaf([1.0, 2.0]), np.array([3.0, 4.0])
    tg.mul(x, a).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    y = tg.tensor([1.0, 2.0])
    y += a
    assert y.tolist() == [4.0, 6.0]


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        (operator.floordiv, [-7, 7], [2, 2], [-4, 3]),
        (operator.floordiv, [1, 2], [2, -3], [0, -1]),
        (operator.mod, [-7, 7], [3, 3], [2, 1]),
        (operator.mod, [-7.0, 7.0], [-3.0, -3.0], [-1.0, -2.0]),
        (operator.floordiv, [1.0, 0.0], [0.0, 1.0], [math.inf, 0.0]),
        (operator.pow, [2, 3], [3, 2], [8, 9]),
        (operator.truediv, [1, 2], [2, 4], [0.5, 0.5]),
        (operator.and_, [True, True], [True, False], [True, False]),
        (operator.or_, [1, 2], [4, 4], [5, 6]),
        (operator.xor, [True, True], [True, False], [False, True]),
        (operator.lshift, [1, 2], [2, 2], [4, 8]),
        (operator.rshift, [8, 9], [2, 2], [2, 2]),
        (operator.add, [True, False], [True, False], [True, False]),
    ],
)
def test_values_of_operators(tg, op, a, b, expected):
    assert op(tg.tensor(a), tg.tensor(b)).tolist() == expected


def test_unary_operators(tg):
    t = tg.tensor([1.0, -2.0])
    assert (-t).tolist() == [-1.0, 2.0]
    assert (+t).tolist() == [1.0, -2.0]
    assert abs(t).tolist() == [1.0, 2.0]
    assert (~tg.tensor([True, False])).tolist() == [False, True]
    assert (~tg.tensor([1])).tolist() == [-2]


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", COMPARISONS, ids=lambda op: op.__name__)
def test_comparisons(tg, op):
    a, b = np.array([1.0, 2.0, math.nan]), np.array([2.0, 2.0, math.nan])
    got = op(tg.tensor(a), tg.tensor(b))
    assert got.dtype == tg.bool
    assert got.tolist() == op(a, b).tolist()
    assert op(tg.tensor(a), 2).tolist() == op(a, 2).tolist()
    assert op(2, tg.tensor(a)).tolist() == op(2, a).tolist()


def test_comparisons_have_no_history(leaf):
    x = leaf([1.0, 2.0])
    assert not (x > 1).requires_grad
    assert (x > 1).is_leaf


def test_comparison_with_none_or_text(tg):
    t = tg.tensor([1.0])
    assert (t == None) is False  # noqa: E711
    assert (t != None) is True  # noqa: E711
    assert (t == "text") is False
    with pytest.raises(TypeError):
        _ = t < "text"


def test_functions_of_comparison(tg):
    a, b = tg.tensor([1.0, 2.0]), tg.tensor([1.0, 3.0])
    assert tg.eq(a, b).tolist() == [True, False]
    assert a.lt(b).tolist() == [False, True]
    assert tg.equal(a, a.clone()) is True
    assert tg.equal(a, b) is False
    assert tg.allclose(a, a + 1e-12) is True
    assert tg.isnan(tg.tensor([math.nan, 1.0])).tolist() == [True, False]
    assert tg.isfinite(tg.tensor([math.inf, 1.0])).tolist() == [False, True]
    assert (a > 1).any().item() is True
    assert (a > 1).all().item() is False


@pytest.mark.parametrize(
    "other", ["text", None, [1.0, 2.0], object()], ids=lambda v: type(v).__name__
)
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.truediv])
def test_operands_that_are_no_numbers_are_a_type_error(tg, op, other):
    with pytest.raises(TypeError):
        op(tg.tensor([1.0, 2.0]), other)
    with pytest.raises(TypeError):
        op(other, tg.tensor([1.0, 2.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tg: tg.tensor([1, 2]) ** -1,
        lambda tg: -tg.tensor([True]),
        lambda tg: tg.tensor([True]) - tg.tensor([True]),
        lambda tg: tg.tensor([1, 0]) // 0,
        lambda tg: tg.tensor([1, 0]) % 0,
        lambda tg: tg.zeros(2, 3) @ tg.zeros(2, 3),
        lambda tg: tg.tensor(1.0) @ tg.zeros(2),
        lambda tg: tg.zeros(2) + tg.zeros(3),
        lambda tg: tg.zeros(2, 3).view(5),
        lambda tg: tg.zeros(2, 3).expand(2, 4),
        lambda tg: tg.cat([tg.zeros(2, 2), tg.zeros(2, 3)]),
        lambda tg: tg.stack([tg.zeros(2), tg.zeros(3)]),
    ],
    ids=range(12),
)
def test_operations_that_are_a_runtime_error(tg, wrong):
    with pytest.raises(RuntimeError):
        wrong(tg)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tg: tg.zeros(3)[3],
        lambda tg: tg.zeros(3)[-4],
        lambda tg: tg.zeros(3)[0, 0],
        lambda tg: tg.tensor(1.0)[0],
        lambda tg: tg.zeros(3)[1.5],
        lambda tg: tg.zeros(3)[tg.tensor([3])],
        lambda tg: tg.zeros(3)[tg.tensor([True, False])],
        lambda tg: tg.zeros(3).sum(1),
        lambda tg: tg.zeros(3).unsqueeze(3),
        lambda tg: tg.zeros(2, 3).transpose(0, 2),
    ],
    ids=range(10),
)
def test_operations_that_are_an_index_error(tg, wrong):
    with pytest.raises(IndexError):
        wrong(tg)


# --------------------------------------------------------------------------------------------------
# Broadcasting against NumPy
# --------------------------------------------------------------------------------------------------

NUMBERS = {
    "float64": st.floats(-100, 100),
    "float32": st.floats(-100, 100, width=32),
    "int64": st.integers(-1000, 1000),
    "bool": st.booleans(),
}


@st.composite
def broadcastable_arrays(draw):
    """Two arrays that broadcast together, of any layout: plain, turned, strided."""
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))

    def array(shape):
        dtype = draw(st.sampled_from(sorted(NUMBERS)))
        layout = draw(st.sampled_from(["plain", "turned", "strided"]))
        stored = shape
        if layout == "turned":
            stored = shape[::-1]
        elif layout == "strided":
            stored = tuple(2 * n for n in shape)
        a = draw(hnp.arrays(dtype, stored, elements=NUMBERS[dtype]))
        if layout == "turned":
            return a.T
        return a[(..., *(slice(None, None, 2) for _ in shape))] if layout == "strided" else a

    return tuple(array(shape) for shape in shapes.input_shapes)


@settings(max_examples=60, deadline=None)
@given(arrays=broadcastable_arrays())
def test_broadcast_add_and_mul_equal_numpy(tg, arrays):
    a, b = arrays
    x, y = tg.from_numpy(a), tg.from_numpy(b)
    assert x.stride() == tuple(s // a.itemsize for s in a.strides)
    for op in (operator.add, operator.mul):
        got = op(x, y)
        result_dtype = getattr(np, str(got.dtype).rpartition(".")[2])
        expected = op(np.asarray(a, result_dtype), np.asarray(b, result_dtype))
        assert tuple(got.shape) == expected.shape
        assert np.array_equal(got.numpy(), expected)


@settings(max_examples=40, deadline=None)
@given(arrays=broadcastable_arrays())
def test_gradients_of_broadcasting_have_the_shape_and_dtype_of_the_input(tg, arrays):
    leaves = []
    for a in arrays:
        a = a if a.dtype.kind == "f" else np.asarray(a, "float64")
        leaves.append(tg.from_numpy(a).requires_grad_())
    x, y = leaves
    (x * y + x).sum().backward()
    ones = np.ones(np.broadcast_shapes(x.shape, y.shape))
    for t, partial in ((x, ones * y.detach().numpy() + 1), (y, ones * x.detach().numpy())):
        assert t.grad.shape == t.shape
        assert t.grad.dtype == t.dtype
        lead = partial.ndim - t.ndim
        axes = tuple(range(lead)) + tuple(
            lead + i for i, n in enumerate(t.shape) if n == 1 and partial.shape[lead + i] != 1
        )
        expected = partial.sum(axis=axes, keepdims=True).reshape(tuple(t.shape))
        assert t.grad.numpy() == pytest.approx(expected, rel=1e-5, abs=1e-3)


# --------------------------------------------------------------------------------------------------
# Import
# --------------------------------------------------------------------------------------------------


@pytest.mark.tapegrad_only("what is imported")
def test_import_brings_neither_torch_nor_numba_nor_scipy():
    code = (
        "import tapegrad, sys;"
        "print([m for m in ('torch', 'numba', 'llvmlite', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
