"""Elementwise operations by native code on operands that lie anyhow in memory."""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tapegrad
from tapegrad.dispatch import op_functions
from tapegrad.native import install
from tapegrad.native.abi import LargeRow
from tapegrad.ops.core import table
from tapegrad.tape.shape_table import shapes
from tests.native.test_install import (
    BINARY,
    PLACES,
    TERNARY,
    UNARY,
    assert_alike,
    loaded,
    placed,
    values,
)

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]

LOOKS = {
    "transposed": lambda x: x.t(),
    "every other row": lambda x: x[::2],
    "without a column": lambda x: x[:, 1:],
    "backwards": lambda x: x.flip(0) if isinstance(x, tapegrad.Tensor) else x[::-1],
    "a column": lambda x: x[:, 1],
    "spread": lambda x: x[:, 0].expand(3, 4),
    "with a dimension": lambda x: x.t()[:, None, ::3],
}


@pytest.fixture
def natively(taken_natively):
    """A call that fails where native code refuses it."""

    def call(function, *args):
        function(*args)  # what is asked of Python at first
        with taken_natively():
            return function(*args)

    return call


def operand(op, look, how, dtype, seed=0):
    whole = tapegrad.tensor(values(op, (4, 4), seed, dtype), requires_grad=how != "constant")
    return LOOKS[look](whole.clone() if how == "result" else whole)


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary_operations(op, dtype):
    op.entry_point(tapegrad.tensor(0.5))
    loaded(op, dtype)
    for look, how in zip(LOOKS, itertools.cycle(PLACES)):
        assert_alike(op, (operand(op, look, how, dtype),))


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary_operations(op, dtype):
    op.entry_point(tapegrad.tensor(0.5), tapegrad.tensor(0.5))
    loaded(op, dtype)
    for look, how in zip(LOOKS, itertools.cycle(PLACES)):
        x, y = operand(op, look, how, dtype), operand(op, look, "constant", dtype, 1)
        assert_alike(op, (x, y))
        assert_alike(op, (x, y.contiguous()))
        assert_alike(op, (y.contiguous(), x))
        assert_alike(op, (x, 0.5))
        assert_alike(op, (x, y[..., :1]))


@pytest.mark.parametrize("op", TERNARY, ids=lambda op: op.name)
def test_ternary_operations(op, dtype):
    loaded(op, dtype)
    for look in LOOKS:
        x, y, z = [operand(op, look, how, dtype, k) for k, how in enumerate(PLACES)]
        if op.inputs[0] == "condition":
            x = x > 0.5
        assert_alike(op, (x, y, z))


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["mul", "exp", "lt", "relu", "sigmoid"])
def test_they_are_taken_and_lie_as_numpy_lays_them(name, look, natively):
    op = table[name]
    loaded(op)
    array = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4))
    x = LOOKS[look](tapegrad.tensor(array, requires_grad=True))
    other = LOOKS[look](tapegrad.tensor(array.T.copy()))
    found = natively(op.entry_point, *(x, other)[: len(op.inputs)])
    like = np.exp(x.detach().numpy())
    assert [s // found._a.itemsize for s in found._a.strides] == [s // 8 for s in like.strides]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_layouts(data):
    """Results lie as on the general path, whatever the order, steps and signs of strides are."""

    def drawn(shape, seed):
        order = data.draw(st.permutations(range(len(shape))))
        steps = [data.draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
        lengths = [n * abs(step) for n, step in zip(shape, steps)]
        whole = np.random.default_rng(seed).random([lengths[d] for d in order])
        seen = whole.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
        return tapegrad.from_numpy(np.asarray(seen))

    shape = data.draw(st.lists(st.integers(1, 4), max_size=4).map(tuple))
    drop = data.draw(st.integers(0, len(shape)))
    ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    narrow = tuple(1 if one else n for n, one in zip(shape, ones))[drop:]
    x, y = drawn(shape, 0), drawn(narrow, 1)
    x.requires_grad_()
    for op, args in itertools.product([table["sub"], table["hypot"]], [(x, y), (y, x)]):
        assert_alike(op, args)
        found, general = op.entry_point(*args)._a, op_functions.general(op, *args)._a
        for n, step, expected in zip(general.shape, found.strides, general.strides):
            assert n == 1 or step == expected
    assert_alike(table["exp"], (x,))


def test_broadcasts_that_no_word_tells(natively):
    x = tapegrad.tensor(np.random.default_rng(0).random((2, 3, 4)), requires_grad=True)
    y = tapegrad.tensor([[1.0], [2.0], [3.0]])
    z = tapegrad.ones(2, 1, 1)
    for args in ((x, y), (y, x), (y, z), (x[:, :1], y)):
        assert_alike(table["mul"], args)
        assert natively(table["mul"].entry_point, *args).shape == np.broadcast_shapes(
            *[arg.shape for arg in args]
        )
    (grad,) = tapegrad.autograd.grad((x * y).sum(), x)
    np.testing.assert_array_equal(grad, np.broadcast_to(y.numpy(), (2, 3, 4)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # setting `.shape`
def test_arrays(natively):
    x = tapegrad.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    for array in (
        np.arange(4.0),
        np.arange(12.0).reshape(4, 3).T,
        np.array(2.0),
        np.ones((2, 1, 4)),
    ):
        shapes.number(array.shape)
        for op in (table["mul"], table["sub"]):
            assert_alike(op, (x, array))
            assert_alike(op, (array, x))
            natively(op.entry_point, x, array)
    assert_alike(table["matmul"], (x, np.arange(4.0)))
    assert_alike(table["mul"], (x, np.arange(4.0, dtype="f")))
    assert_alike(table["mul"], (x, np.arange(4)))
    kept = np.arange(4.0)
    y = natively(table["mul"].entry_point, x, kept)
    kept.shape = (2, 2)  # of the caller's header; the record has one of its own
    (grad,) = tapegrad.autograd.grad(y.sum(), x)
    assert grad.tolist() == [[0.0, 1.0, 2.0, 3.0]] * 3


def test_views_in_place():
    x = tapegrad.zeros(4, 3)
    rows, column = x[1:3], tapegrad.tensor([[1.0], [2.0]])
    rows.add_(column)
    rows += column.expand(2, 3)
    assert x.tolist() == [[0.0] * 3, [2.0] * 3, [4.0] * 3, [0.0] * 3]
    assert x._version == rows._version == 2
    weights = tapegrad.ones(4, requires_grad=True)
    before = weights._version
    with tapegrad.no_grad():
        weights[1:].sub_(0.5)
    assert weights.tolist() == [1.0, 0.5, 0.5, 0.5]
    assert weights._version == before + 1
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        weights[1:].sub_(0.5)
    y = weights * 1.0
    y[1:].mul_(tapegrad.tensor([2.0, 3.0, 4.0]))
    (grad,) = tapegrad.autograd.grad(y.sum(), weights)
    assert grad.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_more_elements_are_changed_at_once():
    for n in (1500, 5000):
        x, y = tapegrad.ones(n, 2), tapegrad.tensor(np.arange(2.0 * n).reshape(2, n)).t()
        x += y
        x.mul_(y)
        x -= 1.0
        np.testing.assert_array_equal(x, (1.0 + y.numpy()) * y.numpy() - 1.0)


def test_views_that_were_made_under_no_grad(natively):
    x = tapegrad.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    with tapegrad.no_grad():
        turned = x.t()
        assert natively(table["mul"].entry_point, turned, 2.0).tolist() == [[0, 6], [2, 8], [4, 10]]
    assert not natively(table["mul"].entry_point, turned, 2.0).requires_grad


ROWS = [
    ((300, 64), (64,)), ((64,), (300, 64)), ((300, 64), (300, 1)), ((300, 64), (1, 1)),
    ((200, 1), (1, 200)), ((130,), (130, 1)), ((60, 5, 8, 8), (5, 1, 1)),
    ((5, 1, 1), (60, 5, 8, 8)), ((130, 1, 130), (1, 2, 1)),
]  # fmt: skip


@pytest.fixture
def one_thread():
    """One thread computes what is large, in native code."""
    before = tapegrad.get_num_threads()
    tapegrad.set_num_threads(1)
    yield
    tapegrad.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_operands_that_are_broadcast(op, dtype):
    hows = itertools.cycle(itertools.product(PLACES, repeat=2))
    for (first, second), (how, other) in zip(ROWS, hows, strict=False):
        a = placed(values(op, first, dtype=dtype), how)
        b = placed(values(op, second, 1, dtype=dtype), other)
        for _ in range(2):
            assert_alike(op, (a, b))
        assert_alike(op, (a, b.detach().numpy()))
        if b.ndim == 2:  # which lies the other way round
            assert_alike(op, (a, b.t().clone().t()))


@pytest.mark.usefixtures("one_thread")
def test_operands_that_are_broadcast_are_taken(taken_natively):
    for first, second in ROWS:
        a, b = tapegrad.ones(*first).requires_grad_(), tapegrad.ones(*second)
        for _ in range(3):
            a * b * 2.0  # its shapes are known from here on
        with taken_natively():
            y = a * b * 2.0
        assert (y == 2.0).all()
        (found,) = tapegrad.autograd.grad(y.sum(), a)
        assert (found == y.numel() / a.numel() * 2.0).all()


@pytest.mark.usefixtures("one_thread")
def test_exceptions_where_operands_are_broadcast():
    x, zeros = tapegrad.ones(300, 64), tapegrad.zeros(64)
    row = install.installed.bindings.large_rows[table["div"].code]
    for _ in range(3):
        assert (x / zeros)[0, 0].item() == np.inf
    assert row[LargeRow.python_calls] > 0
    row[LargeRow.python_calls] = 0
    assert (x / (zeros + 2.0))[-1, -1].item() == 0.5
    with pytest.raises(RuntimeError, match="do not broadcast"):
        x * tapegrad.ones(63)
