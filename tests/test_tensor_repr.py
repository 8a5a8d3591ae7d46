"""How Tensors are printed."""

import math
import re

import pytest

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


def test_repr_names_a_change_of_elements(leaf):
    y = leaf([1.0, 2.0]) * 1.0
    y[0] = 3.0
    assert repr(y) == "tensor([3., 2.], grad_fn=<CopySlices>)"
