"""Operators between Tensors, arrays and numbers; broadcasting against NumPy."""

import math
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

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


@pytest.mark.tapegrad_only("divmod of Tensors, of which PyTorch has none")
def test_divmod_is_that_of_numpy_in_either_order(tg):
    x = tg.tensor([7.0, -7.0, 2.5], requires_grad=True)
    values = x.detach().numpy()
    for found, expected in (
        (divmod(x, 3.0), np.divmod(values, np.float32(3.0))),
        (divmod(20.0, x), np.divmod(np.float32(20.0), values)),
    ):
        for result, value in zip(found, expected, strict=True):
            assert np.array_equal(result.detach().numpy(), value)
    divmod(20.0, x)[1].sum().backward()
    assert np.array_equal(x.grad.numpy(), -np.floor(20.0 / values))
