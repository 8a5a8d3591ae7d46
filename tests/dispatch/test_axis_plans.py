"""Operations along dimensions by compiled code, beside the general path."""

import warnings

import numpy as np
import pytest

import tapegrad
from tapegrad.dispatch import call_plans
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.kernels.codegen import kernel_table
from tapegrad.tape.tape import Tape, current
from tests.kernels.sweep.test_axis_adjoints import CALLS

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Plans are made at the first call, on a tape of the test's own."""
    if native_calls.planned is None:
        pytest.skip("this machine has no native path")
    monkeypatch.setattr(call_plans, "TIMES", 1)
    call_plans.plans.clear()
    call_plans._calls.clear()
    monkeypatch.setattr(
        kernel_table, "small_axis_loop", lambda op, asking: kernel_table._load_small_axis_loop(op)
    )
    monkeypatch.setattr(current, "tape", Tape())


def outcome(call, x):
    tape = current.tape
    before = len(tape)
    y = call(x)
    made = len(tape) - before
    entry = tape.keep[len(tape) - 1] if made else None
    return y, tape.words()[-1].tolist() if made else None, entry


def assert_alike(call, x, planned=True):
    y, record, entry = outcome(call, x)
    assert bool(call_plans.plans) == planned
    y_, record_, entry_ = outcome(call, x)
    near = 20 * np.finfo(y._a.dtype).eps
    np.testing.assert_allclose(y_._a, y._a, rtol=near, atol=near)
    assert type(y_) is type(y)
    assert (y_.shape, y_.dtype, y_._s, y_.requires_grad) == (
        y.shape,
        y.dtype,
        y._s,
        y.requires_grad,
    )
    assert record_ == record
    assert (entry is None) == (entry_ is None)
    for kept, kept_ in zip(entry or (), entry_ or (), strict=True):
        if kept is y._a:
            assert kept_ is y_._a
        else:
            assert kept_ is kept or kept_ == kept


LOOPS = CALLS | {
    "clone": lambda x, d: tapegrad.clone(x), "sum": tapegrad.sum, "mean": tapegrad.mean,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(LOOPS))
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (4, 1, 2), (30, 40)])
@pytest.mark.parametrize("how", ["constant", "leaf", "result"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_is_computed_and_recorded(name, shape, how, dtype):
    values = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(dtype)
    for d in range(-1, len(shape)):
        call_plans.plans.clear()
        call_plans._calls.clear()
        x = tapegrad.tensor(values, requires_grad=how != "constant")
        if shape[d] > 1 or name not in ("std", "var"):
            assert_alike(lambda x, d=d: LOOPS[name](x, d), x * 1.0 if how == "result" else x)


@pytest.mark.parametrize(
    ("dim", "planned"), [((0, 1), True), ((), True), ((1, 2), True), ((0, 2), False), ([1], False)]
)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_along_several_dimensions(name, dim, planned, keepdim):
    x = tapegrad.tensor(np.arange(24.0).reshape(2, 3, 4), requires_grad=True)
    assert_alike(lambda x: getattr(tapegrad, name)(x, dim, keepdim), x, planned)


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 1), ()])
@pytest.mark.parametrize("how", ["constant", "leaf", "result"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_complex_numbers(name, how, dim):
    values = np.random.default_rng(0).standard_normal((2, 3, 5, 2)).view(complex)[..., 0]
    x = tapegrad.tensor(values, requires_grad=how != "constant")
    assert_alike(lambda x: getattr(tapegrad, name)(x, dim), x * 1.0 if how == "result" else x)
    call_plans.plans.clear()
    assert_alike(lambda x: getattr(tapegrad, name)(x, dim), x.mT, planned=False)


def test_a_copy_is_one():
    x = tapegrad.tensor([[1.0, 2.0]])
    for _ in range(3):
        y = x.clone()
        y[0, 0] = 5.0
        assert x.tolist() == [[1.0, 2.0]]
    assert tapegrad.tensor(2.0).clone().item() == 2.0


def test_no_record_where_none_is_asked_for():
    x = tapegrad.tensor([[1.0, 2.0]], requires_grad=True)
    with tapegrad.no_grad():
        assert_alike(lambda x: tapegrad.softmax(x, 1), x)
    with tapegrad.inference_mode():
        assert tapegrad.softmax(x, 1).is_inference()


def test_other_operands_take_the_general_path():
    x = tapegrad.tensor(np.ones((3, 4)), requires_grad=True)
    for operand in (x.t(), x.cfloat().real, x[:, ::2]):
        call_plans.plans.clear()
        assert_alike(lambda x: tapegrad.amax(x, 1), operand, planned=False)
    tapegrad.amax(x, 1)
    assert call_plans.plans
    view = x.t()[:3].t()[:, :3].t()  # of a shape that is known, in another order
    np.testing.assert_array_equal(tapegrad.amax(view.contiguous().t(), 1)._a, 1.0)


def test_arguments_that_equal_known_ones_are_refused_as_before():
    x = tapegrad.ones(2, 3)
    for _ in range(3):
        tapegrad.amax(x, 1)
        tapegrad.amax(x, (0, 1))
    with pytest.raises(TypeError):
        tapegrad.amax(x, True)
    with pytest.raises(TypeError):
        tapegrad.softmax(x, 1.0)
    with pytest.raises(IndexError):
        tapegrad.amax(x, 2)
    assert tapegrad.amax(x, 1, keepdim=True).shape == (2, 1)
    assert tapegrad.amax(x, [1]).shape == (2,)


def test_exceptions_of_arithmetic_warn_as_before():
    x = tapegrad.tensor([1e200, 1e200])
    tapegrad.prod(x * 1e-200, 0)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert tapegrad.prod(x, 0).item() == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tapegrad.prod(x * 1e-200, 0).item() == 1.0
    narrow = (x * 1e-180).float()  # of which doubles hold the product
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert tapegrad.prod(narrow, 0).item() == np.inf


def test_a_plan_is_made_when_calls_have_come_often_enough(monkeypatch):
    monkeypatch.setattr(call_plans, "TIMES", 3)
    x = tapegrad.ones(7)
    for times in range(1, 5):
        tapegrad.logsumexp(x, 0)
        assert bool(call_plans.plans) == (times >= 3)


def test_few_are_remembered(monkeypatch):
    monkeypatch.setattr(call_plans, "KNOWN", 4)
    for n in range(1, 12):
        assert tapegrad.cumsum(tapegrad.ones(n), 0)[-1].item() == n
    assert len(call_plans.plans) <= 4
    assert len(call_plans._calls) <= 4


def test_no_native_path(monkeypatch):
    monkeypatch.setattr(native_calls, "planned", None)
    assert_alike(lambda x: tapegrad.softmax(x, 0), tapegrad.ones(3), planned=False)
