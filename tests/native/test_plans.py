"""What the native path plans of calls on complex numbers and on integers."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.native.bindings import is_native, loops_of
from tapegrad.ops.core import ELEMENTWISE
from tapegrad.ops.families import by_code, table
from tests.native.test_install import PAIRS, PLACES, assert_alike, outcome, placed

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native"),
]

OPS = [
    op
    for op in by_code
    if op.kind == ELEMENTWISE and len(op.inputs) < 3 and is_native(op)
    if (loops_of(op, "D") or loops_of(op, "D", "d")) and op.complex and not op.ordered
]

INTEGER_OPS = [
    op
    for op in by_code
    if op.kind == ELEMENTWISE and len(op.inputs) < 3 and "i" in op.kinds and op.entry_point
    if loops_of(op, "q")
]
DIVISIONS = [table[name] for name in ("floor_divide", "remainder", "fmod")]


def values(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, shape) + 1j * rng.uniform(0.5, 1.5, shape)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_elementwise_operations(op):
    for (first, second), hows in zip(PAIRS, itertools.cycle(itertools.product(PLACES, PLACES))):
        a, b = placed(values(first), hows[0]), placed(values(second, 1), hows[1])
        assert_alike(op, (a, b)[: len(op.inputs)])
        if len(op.inputs) == 2:
            for number in (2, 0.5, 0.0, -0.0, 1 - 2j, 0j, True, 2**70):
                assert_alike(op, (a, number))
                assert_alike(op, (number, a))
            assert_alike(op, (a, a.real.detach()))


@pytest.mark.parametrize("shapes", [((3, 2), (2, 4)), ((2,), (2, 3)), ((3, 2), 2), (2, 2)])
def test_products_of_matrices(shapes):
    for hows in itertools.product(PLACES, PLACES):
        operands = [placed(values(shape), how) for shape, how in zip(shapes, hows)]
        assert_alike(table["matmul"], operands)
    a = placed(values((3, 2)), "leaf")
    assert_alike(table["matmul"], (a.t(), a))


def test_it_is_taken_and_differentiated():
    z, w = tg.tensor(values(3), requires_grad=True), tg.tensor(values(3, 1))
    with tg.autograd.detect_anomaly():
        (slow,) = tg.autograd.grad((z * w + 2j * z).abs().sum(), z)
    (fast,) = tg.autograd.grad((z * w + 2j * z).abs().sum(), z)
    np.testing.assert_allclose(fast, slow, rtol=1e-15)
    from tapegrad.dispatch import dispatch

    before, dispatch.run = dispatch.run, None
    try:
        assert outcome(table["mul"].entry_point, (z, w))[0].requires_grad
        assert (z.exp() / w - 1j).abs().shape == (3,)
    finally:
        dispatch.run = before


def test_what_overflows_is_numpys():
    big = tg.tensor(np.array([1e200 + 1e200j]))
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert not np.isfinite((big * big).numpy()).all()


def integers(shape, seed, least=-4):
    return np.random.default_rng(seed).integers(least, 5, shape)


@pytest.mark.parametrize("op", INTEGER_OPS, ids=lambda op: op.name)
def test_operations_on_integers(op):
    for k, (first, second) in enumerate(PAIRS):
        a, b = tg.tensor(integers(first, k)), tg.tensor(integers(second, k + 1, 1))
        assert_alike(op, (a, b)[: len(op.inputs)])
        if a.ndim == b.ndim == 2:
            assert_alike(op, (a.t(), b.t())[: len(op.inputs)])
        if len(op.inputs) == 2:
            for number in (2, -3, 2**40, 0.5, True, np.int64(3), np.float64(2.0), np.float32(2.0)):
                assert_alike(op, (a, number))
            assert_alike(op, (7, b))
            for other in (b.double(), b.int(), b > 0, b.numpy()):
                assert_alike(op, (a, other))


def test_operations_on_integers_are_taken(taken_natively):
    i, j = tg.tensor([5, 6, 7]), tg.tensor([[2], [3]])
    i + j  # its shapes are known from here on
    with taken_natively():
        assert ((i * 2 + j) // 3 % 4).tolist() == [[0, 0, 1], [0, 1, 1]]
        assert (-i < j).tolist() == [[True] * 3] * 2
        assert (i == 6).dtype is tg.bool


@pytest.mark.parametrize("op", DIVISIONS, ids=lambda op: op.name)
def test_integers_are_not_divided_by_zero(op):
    i, zeros = tg.tensor([5, 6, 7]), tg.tensor([1, 0, 2])
    for divisor in (0, zeros, zeros[1:2], tg.tensor(0)):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                op.entry_point(i, divisor)


def test_integers_wrap_around():
    most = tg.tensor([2**63 - 1])
    assert (most + 1).tolist() == [-(2**63)]
    assert (most * most).tolist() == [1]
    assert_alike(table["add"], (most, 2**63))  # which is Python's


MIXED_OPS = [
    op
    for op in by_code
    if op.kind == ELEMENTWISE
    and len(op.inputs) == 2
    and is_native(op)
    and "condition" not in op.inputs
]


@pytest.mark.parametrize("op", MIXED_OPS, ids=lambda op: op.name)
def test_integers_and_truth_values_beside_floats(op, dtype):
    for k, ((first, second), how) in enumerate(zip(PAIRS, itertools.cycle(PLACES))):
        x = placed(np.random.default_rng(k).uniform(0.5, 1.5, first).astype(dtype), how)
        i = tg.tensor(integers(second, k, 1))
        for other in (i, i > 2):
            assert_alike(op, (x, other))
            assert_alike(op, (other, x))
        if i.ndim == 2:
            assert_alike(op, (x, i.t().clone().t()))
        assert_alike(op, (x, True))


@pytest.mark.parametrize("op", MIXED_OPS, ids=lambda op: op.name)
def test_constants_of_another_precision(op, dtype):
    other = tg.float64 if dtype == np.float32 else tg.float32
    for k, ((first, second), how) in enumerate(zip(PAIRS, itertools.cycle(PLACES))):
        rng = np.random.default_rng(k)
        x = placed(rng.uniform(0.5, 1.5, first).astype(dtype), how)
        c = tg.tensor(rng.uniform(0.5, 1.5, second), dtype=other)
        assert_alike(op, (x, c))
        assert_alike(op, (c, x))


def test_masks_and_counts_are_taken(taken_natively):
    x, n = tg.tensor([1.0, -2.0, 3.0], requires_grad=True), tg.tensor([1, 2, 3])
    x * (x > 0)  # its shape is known from here on
    with taken_natively():
        assert (x * (x > 0) + x / n).tolist() == [2.0, -1.0, 4.0]
        assert (np.float64(2.0) * x + np.int64(1) - x * np.int64(3)).tolist() == [0.0, 3.0, -2.0]
        assert (n * np.int64(3) + True).tolist() == [4, 7, 10]
        assert (x * x.detach().float() - True).tolist() == [0.0, 3.0, 8.0]
        assert (n.t() < x).tolist() == [False, False, False]


def test_what_is_written_into_a_mask_does_not_change_the_gradient():
    x, mask = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([True, False])
    y = (x * mask).sum()
    mask.logical_not_()
    y.backward()
    assert x.grad.tolist() == [1.0, 0.0]
