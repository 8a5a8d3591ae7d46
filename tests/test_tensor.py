"""Tensors: how they are made, their attributes, conversions, and what dtypes give together."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

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
# Promotion of dtypes
# --------------------------------------------------------------------------------------------------


def test_names_of_dtypes(tg):
    for name in DTYPES:
        assert str(getattr(tg, name)) == f"{tg.__name__}.{name}"


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
