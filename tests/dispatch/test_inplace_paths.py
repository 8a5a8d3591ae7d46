"""In-place operations by native code leave behind what the general path would."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.call_plans import MANY
from tapegrad.dispatch.inplace import run_inplace
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.dispatch.op_functions import as_operand
from tapegrad.native import install
from tapegrad.ops.families import table
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import SHORT

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")

OTHERS = {
    "alike": lambda x: tg.tensor([[3.0, 4.0], [5.0, 6.0]]),
    "a number": lambda x: 2.5,
    "a whole number": lambda x: 3,
    "zero": lambda x: 0.0,
    "0-d": lambda x: tg.tensor(2.5),
    "tracked": lambda x: x,
    "a row": lambda x: tg.tensor([1.0, 2.0]),
    "itself, as a constant": lambda x: None,
    "a mask": lambda x: tg.tensor([[True, False], [True, True]]),
    "counts": lambda x: tg.tensor([1, 2]),
    "shorter": lambda x: tg.tensor([[3.0, 4.0], [5.0, 6.0]], dtype=tg.float32),
    "true": lambda x: True,
}


def outcome(change, name, other, monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())
    op = table[name]
    leaf = tg.tensor([[1.0, -2.0], [0.5, 4.0]], requires_grad=True)
    target = leaf * 1.5
    given = OTHERS[other](leaf)
    given = target.detach() if given is None else given
    with np.errstate(all="ignore"):
        found = change(op, target, given)
    assert found is target
    tape = current.tape
    record, entry = tape.words()[-1].tolist(), tape.keep[len(tape) - 1]
    kept = entry and [None if v is None else np.asarray(v).tolist() for v in entry[:3]]
    (target * target).sum().backward()
    return target.tolist(), target._version, record, kept, leaf.grad.tolist(), len(tape)


def generally(op, target, *others):
    held, native_calls.change = native_calls.change, None
    try:
        return run_inplace(op, (target, *map(as_operand, others)), {}, target)
    finally:
        native_calls.change = held


@pytest.fixture(params=["in Python", "compiled"])
def native(request, monkeypatch):
    if request.param == "in Python":
        monkeypatch.setattr(native_calls, "change", None)
    elif not install.install():
        pytest.skip("this machine has no native path")


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "remainder", "hypot"])
def test_records(name, other, native, monkeypatch):
    def shortly(op, target, given):
        return getattr(target, op.name + "_")(given)

    with np.errstate(all="ignore"):
        expected = outcome(generally, name, other, monkeypatch)
        np.testing.assert_equal(outcome(shortly, name, other, monkeypatch), expected)


@pytest.mark.parametrize("name", ["exp", "neg", "sqrt", "tanh", "relu", "reciprocal", "cube"])
def test_records_of_one_operand(name, native, monkeypatch):
    def with_none(change):
        return lambda op, target, given: change(op, target)

    def shortly(op, target):
        return target.pow_(3) if name == "cube" else getattr(target, name + "_")()

    with np.errstate(all="ignore"):
        expected = outcome(with_none(generally), name, "alike", monkeypatch)
        found = outcome(with_none(shortly), name, "alike", monkeypatch)
    np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("others", [(-0.5, 1), (0.1, None), (None, None), ("x", 2.0)])
@pytest.mark.parametrize("name", ["clamp", "lerp", "addcmul", "addcdiv"])
def test_records_of_three_operands(name, others, native, monkeypatch):
    def given(target):
        row = [tg.tensor([0.5, 0.25]) if other is None else other for other in others]
        return [target.detach().clone() if other == "x" else other for other in row]

    def shortly(op, target, other):
        return run_inplace(op, (target, *given(target)), {}, target)

    def in_general(op, target, other):
        return generally(op, target, *given(target))

    with np.errstate(all="ignore"):
        found = outcome(shortly, name, "alike", monkeypatch)
        np.testing.assert_equal(found, outcome(in_general, name, "alike", monkeypatch))


def test_clamping_in_place(native):
    x = tg.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    y = (x * 1.0).clamp_(-1.0, 1.0)
    (grad,) = tg.autograd.grad((y * y).sum(), x)
    assert grad.tolist() == [0.0, 1.0, 0.0]
    with tg.no_grad():
        x.clamp_(-1, 1)
    assert (x.tolist(), x._version, x.is_leaf) == ([-1.0, 0.5, 1.0], 1, True)
    y = x * 1.0
    y.lerp_(y, 0.5)
    y[1:].clamp_(0.0, 0.25)
    assert y.tolist() == [-1.0, 0.25, 0.25]


def test_a_constant_takes_the_place_of_what_is_recorded(native):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = tg.zeros(2)
    y += x
    y *= x
    y.mul_(x).exp_()
    (grad,) = tg.autograd.grad(y.sum(), x)
    expected = 3 * x.detach() ** 2 * y.detach()
    np.testing.assert_allclose(grad.numpy(), expected.numpy(), rtol=1e-14)


def test_what_is_not_for_native_code(native):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf that requires grad"):
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="a view of a leaf"):
        x[:1].add_(1.0)
    with tg.no_grad():
        x -= 0.5
    assert x.tolist() == [0.5, 1.5]
    assert x._version == 1
    assert x.is_leaf
    y = x * 2.0
    y[:1].add_(x[1])
    y.mul_(y)
    y.sub_(y.detach()[0])
    y.add_(y[1])
    (grad,) = tg.autograd.grad(y.sum(), x, retain_graph=True)
    assert grad.tolist() == [10.0, 41.0]
    frozen = np.ones(2)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        tg.from_numpy(frozen).add_(1.0)
    with pytest.raises(RuntimeError, match="cannot be"):
        tg.zeros(2).add_(tg.zeros(3, 2))


def test_exceptions_of_arithmetic(native):
    x = tg.tensor([1.0, 4.0])
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        x.div_(tg.tensor([1.0, 0.0]))
    x.div_(tg.tensor([2.0, 0.0]))
    assert x.tolist() == [0.5, float("inf")]


def test_no_references_are_lost_or_leaked(native, references_kept, monkeypatch):
    tape = Tape()
    monkeypatch.setattr(current, "tape", tape)
    leaf = tg.tensor([1.0, 2.0], requires_grad=True)
    factor, row = tg.tensor([3.0, 4.0]), tg.ones(3, 2)

    def work():
        y = leaf * 2.0
        y.add_(factor)
        y.mul_(leaf)
        y.sub_(0.5)
        y.exp_()
        z = row.clone()
        z += y
        z.add_(tg.ones(2, 2)[0])
        with tg.no_grad():
            factor.mul_(1.0)
        tg.autograd.grad(z.sum(), leaf)

    assert references_kept(work, [leaf, factor, row, leaf._a, factor._a, tape, 0.5])


def test_many_changes_of_one_tensor(monkeypatch):
    """The tape may run full on the way."""
    monkeypatch.setattr(current, "tape", Tape())
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    for _ in range(10_000):
        y.add_(1.0)
        y.mul_(1.0)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert y.tolist() == [10001.0, 10002.0]


def test_retained_gradients_follow():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    y.retain_grad()
    y.mul_(3.0)
    (y * 2.0).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("size", [3, SHORT], ids=["small", "large"])
def test_tensors_that_share_the_memory_of_an_array(size, native):
    memory = np.arange(size + 1.0)
    whole, part = tg.from_numpy(memory), tg.from_numpy(memory[1:])
    whole.mul_(2.0).add_(1.0)
    assert memory.tolist() == [2.0 * k + 1.0 for k in range(size + 1)]
    part.sub_(tg.from_numpy(memory[:-1]))  # which overlaps it
    assert memory.tolist() == [1.0] + [2.0] * size
    assert whole._version == part._version == 3
    y = tg.ones(size, requires_grad=True) * part
    whole.data.zero_()  # which nobody counts, as in PyTorch
    assert y.sum().item() == 2.0 * size
    whole.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_memory_of_an_array_is_changed_natively(monkeypatch):
    if not install.install():
        pytest.skip("this machine has no native path")
    monkeypatch.setattr(current, "tape", Tape())  # none that has handed out arrays
    code, memory = table["mul"].code, np.ones(4)
    tracked = tg.ones(2, requires_grad=True) * 1.0
    # Until Python has found the kernel, for which it looks now and then, calls are refused.
    change, calls = native_calls.change, range(10 * MANY)
    assert any(change(tg.ones(4), 1.0, None, code) is not None for _ in calls)
    for target in (tg.from_numpy(memory), tg.from_numpy(memory[2:]), tracked.data):
        assert native_calls.change(target, 2.0, None, code) is target
    assert memory.tolist() == [2.0, 2.0, 4.0, 4.0]


def test_a_kept_value_that_changes_is_noticed():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    factor = tg.tensor([3.0, 4.0])
    y = (x * 1.0).mul_(factor)
    factor.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
