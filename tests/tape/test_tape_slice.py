"""The slice of a tape under a Tensor: `Tensor.tape`."""

import gc

import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the tape")


def ops(t):
    return [record.op for record in t.tape]


def test_it_holds_what_a_tensor_was_computed_by_and_nothing_else():
    x = tg.tensor(2.0, requires_grad=True)
    y = tg.exp(x)
    other = tg.sin(x)
    z = tg.cos(y) * y
    assert ops(z) == ["exp", "cos", "mul"]
    assert ops(other) == ["sin"]
    assert (z.tape[0].position, z.tape[-1].position) == (y.position, z.position)
    assert z.tape.whole is other.tape.whole
    assert {r.position for r in z.tape} < {r.position for r in z.tape.whole}


def test_a_leaf_and_a_constant_have_none():
    assert tg.ones(2, requires_grad=True).tape is None
    assert (tg.ones(2) * 2).tape is None


def test_it_is_a_sequence():
    y = tg.exp(tg.tensor(2.0, requires_grad=True)) * 3
    part = y.tape
    assert (len(part), part[-1].op, part[0].op) == (2, "mul", "exp")
    assert part[:1] == [part[0]]
    assert part[0] in part
    assert [*reversed(part)] == [part[1], part[0]]
    with pytest.raises(IndexError, match="there are 2 records here, and none at 2"):
        part[2]
    with pytest.raises(TypeError, match="an int or a slice, got str"):
        part["mul"]
    assert repr(part) == "<TapeSlice of 2 records>"


def test_its_records_stay_when_others_are_reclaimed():
    x = tg.tensor(2.0, requires_grad=True)
    for _ in range(50):
        y = tg.exp(x)
    part = (y * 2).tape
    before = [(r.op, r.position) for r in part]
    for _ in range(50):
        z = tg.sin(x)
    del y
    gc.collect()
    part.whole.reclaim()
    assert [(r.op, r.position) for r in part] == before
    assert (z.tape.whole is part.whole, len(part)) == (True, 2)


def test_it_says_what_a_sweep_has_released():
    y = tg.exp(tg.tensor(2.0, requires_grad=True))
    part = y.tape
    assert part[0].state == "live"
    y.backward()
    assert part[0].state == "released"


def test_a_view_whose_base_was_changed_and_a_function_of_several_results():
    x = tg.ones(3, requires_grad=True)
    base = x * 2
    view = base[:2]
    base.mul_(3)
    assert ops(view) == ["mul", "mul", "replay"]
    values, indices = tg.sort(tg.sin(x))
    assert ops(values)[0] == "sin"
    assert indices.tape is None


def test_a_long_one_prints_with_its_middle_left_out():
    y = tg.tensor(0.5, requires_grad=True)
    for _ in range(2000):
        y = tg.sin(y)
    assert len(y.tape) == 2000
    lines = str(y.tape).splitlines()
    assert len(lines) == 62
    assert "(1940 more)" in lines[31]
    assert lines[-1].split()[:2] == [str(y.position), "sin"]
