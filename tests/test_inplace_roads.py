"""In-place operations by their short road leave behind what the general one would."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.fast import as_operand
from tapegrad.inplace import run_inplace
from tapegrad.ops.core import table
from tapegrad.tape import Tape, current

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
    record, entry = tape.words()[-1].tolist(), tape.keep[-1]
    kept = entry and [None if v is None else np.asarray(v).tolist() for v in entry[:3]]
    (target * target).sum().backward()
    return target.tolist(), target._version, record, kept, leaf.grad.tolist(), len(tape)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_records(name, other, monkeypatch):
    def shortly(op, target, given):
        return getattr(target, op.name + "_")(given)

    def generally(op, target, given):
        return run_inplace(op, (target, as_operand(given)), {}, target)

    with np.errstate(all="ignore"):
        expected = outcome(generally, name, other, monkeypatch)
        np.testing.assert_equal(outcome(shortly, name, other, monkeypatch), expected)


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


def test_a_kept_value_that_changes_is_noticed():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    factor = tg.tensor([3.0, 4.0])
    y = (x * 1.0).mul_(factor)
    factor.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
