"""`y[i] += x` on a small Tensor: the same results and gradients as by the general way."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import inplace
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.tape.tape import Tape, current

INDICES = {
    "a row": 1,
    "an element": (1, 2),
    "a slice": (slice(None), slice(1, 3)),
    "a column": (slice(None), 0),
    "backwards": (slice(2, 0, -1), ...),
    "with a new dimension": (None, 0),
    "nothing": slice(3, 3),
}
CHANGES = {
    "add_": lambda y, v: y.add_(v),
    "mul_": lambda y, v: y.mul_(v),
    "div_": lambda y, v: y.div_(v),
    "sub_ of a number": lambda y, v: y.sub_(1.5),
    "mul_ by itself": lambda y, v: y.mul_(y),
    "exp_": lambda y, v: y.exp_(),
    "sqrt_ of a square": lambda y, v: y.square_().sqrt_(),
    "clamp_": lambda y, v: y.clamp_(-0.5, 0.5),
    "addcmul_": lambda y, v: y.addcmul_(v, v, value=2.0),
    "lerp_": lambda y, v: y.lerp_(v, 0.25),
    "atan2_": lambda y, v: y.atan2_(v),
}


def outcome(index, change, dtype, other=None):
    values = np.random.default_rng(3).standard_normal((3, 4))
    x = tg.tensor(values, dtype=dtype, requires_grad=True)
    y = x * 3.0
    before = y.sum()
    part = y[index]
    version = y._version
    change(part, x[index] * 2.0 if other is None else other(y, x))
    versions = y._version - version
    after = (part * part).sum()
    total = (y * y[0]).sum() + after + before
    (g,) = tg.autograd.grad(total, x, create_graph=dtype is tg.float64)
    found = [y.tolist(), part.tolist(), g.tolist(), versions, y.grad_fn.name(), part.grad_fn.name()]
    if dtype is tg.float64:
        found.append(tg.autograd.grad(g.sum(), x)[0].tolist())
    return found


def generally(monkeypatch, *args, **named):
    with monkeypatch.context() as patch:
        patch.setattr(inplace, "changed_part", lambda *_: None)
        return outcome(*args, **named)


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.tapegrad_only("about two ways to the same results")
def test_of_any_index(index, change, dtype, monkeypatch):
    args = INDICES[index], CHANGES[change], dtype
    expected = generally(monkeypatch, *args)
    rtol = 1e-12 if dtype is tg.float64 else 1e-5
    for _ in range(3):
        for a, b in zip(outcome(*args), expected, strict=True):
            if isinstance(b, list):
                np.testing.assert_allclose(a, b, rtol, 1e-12)
            else:
                assert a == b


OTHERS = {
    "another part": lambda y, x: y[2],
    "itself": lambda y, x: y[1],
    "overlapping": lambda y, x: y.detach()[1],
    "a part of the leaf": lambda y, x: x[0],
    "a constant": lambda y, x: tg.ones(4, dtype=x.dtype),
    "an integer Tensor": lambda y, x: tg.tensor([1, 2, 3, 4]),
    "a number without dimensions": lambda y, x: x.sum(),
    "an array": lambda y, x: np.array([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("change", ["add_", "mul_", "div_", "addcmul_"])
@pytest.mark.tapegrad_only("about two ways to the same results")
def test_of_any_operand(change, other, monkeypatch):
    args = 1, CHANGES[change], tg.float64, OTHERS[other]
    assert outcome(*args) == generally(monkeypatch, *args)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y[0].add_(tg.ones(3)),
        lambda y: y[0].add_(tg.ones(2, 4)),
        lambda y: y.unbind()[0].mul_(2.0),
    ],
)
def test_what_does_not_fit_changes_nothing(change):
    x = tg.ones(3, 4, requires_grad=True)
    y = x * 2.0
    before, version = y.tolist(), y._version
    with pytest.raises(RuntimeError):
        change(y)
    assert (y.tolist(), y._version) == (before, version)


def test_a_part_of_a_base_that_is_detached_later_keeps_its_history():
    x = tg.ones(4, requires_grad=True)
    y = x * 2.0
    part = y[1:]
    part += 3 * x[1:]
    total = part.sum() + y.sum()
    total.backward()
    assert x.grad.tolist() == [2.0, 10.0, 10.0, 10.0]


@pytest.mark.tapegrad_only("PyTorch's base has no history then")
def test_a_base_detached_at_once():
    x = tg.ones(4, requires_grad=True)
    y = x * 2.0
    part = y[1:]
    part += 3 * x[1:]
    y.detach_()
    part.sum().backward()
    assert x.grad.tolist() == [0.0, 5.0, 5.0, 5.0]


def test_a_value_that_was_kept_before_the_change_is_missed():
    x = tg.ones(4, requires_grad=True)
    y = x * 2.0
    squares = y * y
    y[0] += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()


@pytest.mark.tapegrad_only("about the tape")
def test_a_loop_over_elements_appends_five_records_a_step(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())
    x = tg.ones(6, requires_grad=True)
    y = x * 1.0
    lengths = []
    for _ in range(20):
        for i in range(1, 6):
            y[i] += 0.5 * y[i - 1]
        lengths.append(len(current.tape))
    each = 5 if native_calls.change is not None else 6  # the part anew, too
    assert lengths[-1] - lengths[9] == 10 * 5 * each
