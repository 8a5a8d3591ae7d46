"""A join in compiled code, or a copy, leaves behind what one in Python does."""

import itertools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import call_plans
from tapegrad.dispatch.index_plans import run_planned
from tapegrad.functions import joining
from tapegrad.native.abi import MOST_OPERANDS
from tapegrad.ops.complex_parts import complex_
from tapegrad.ops.families import table
from tapegrad.ops.shape import contiguous
from tapegrad.tape.tape import Tape, current
from tests.native.test_install import outcome, placed

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]

SAME = [[(2, 3)], [(2, 3), (2, 3)], [(3, 2, 2)] * 3, [(0, 2)] * 2]
CALLS = [("stack", shapes, dim) for shapes in [*SAME, [(), ()]] for dim in (0, -1)]
CALLS += [("cat", shapes, dim) for shapes in SAME for dim in (0, 1, -1)]
CALLS += [("cat", [(2,), (5,)], 0), ("cat", [(4, 1, 3), (4, 0, 3), (4, 2, 3)], 1)]


def tensors_of(shapes, dtype, turned):
    """A leaf, a result and a constant, or views of these whose elements lie the other way round."""
    rng = np.random.default_rng(0)
    hows = ("leaf", "result", "constant")
    arrays = [rng.standard_normal(s[::-1] if turned else s).astype(dtype) for s in shapes]
    tensors = [placed(array, how) for array, how in zip(arrays, hows, strict=False)]
    return [t.permute(*range(t.ndim)[::-1]) for t in tensors] if turned else tensors


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("name", "shapes", "dim"), CALLS)
def test_joins(name, shapes, dim, turned, dtype, native, monkeypatch):
    tensors, join = tensors_of(shapes, dtype, turned), getattr(tg, name)
    join(tensors, dim)  # which makes the plan
    assert joining._joined_natively(table[name], tensors, dim) is not None
    ours = outcome(join, (tensors, dim))
    monkeypatch.setattr(joining, "_joined_natively", lambda *_: None)
    theirs = outcome(join, (tensors, dim))
    assert ours[0]._a.tobytes() == theirs[0]._a.tobytes()
    assert (ours[0].shape, ours[0].dtype, ours[0]._s) == (
        theirs[0].shape, theirs[0].dtype, theirs[0]._s,
    )  # fmt: skip
    assert ours[1].tolist() == theirs[1].tolist()
    assert ours[2:] == theirs[2:]


def many(n):
    """Leaves, constants and results, in turn."""
    hows = itertools.islice(itertools.cycle(("leaf", "constant", "result")), n)
    return [placed(np.arange(2.0) + k, how) for k, how in enumerate(hows)]


@pytest.mark.parametrize("n", [4, 9, MOST_OPERANDS])
@pytest.mark.parametrize("name", ["cat", "stack"])
def test_inputs_that_a_record_has_no_room_for(name, n, native, monkeypatch):
    parts, join, tape = many(n), getattr(tg, name), current.tape
    join(parts)
    found = [joining._joined_natively(table[name], parts, 0)]
    monkeypatch.setattr(joining, "_joined_natively", lambda *_: None)
    found.append(join(parts))
    ours, theirs = (tape.inputs(tape.index(y._pos)) for y in found)
    assert ours == theirs
    assert len(ours) == n
    assert found[0].tolist() == found[1].tolist()
    leaves = [p for p in parts if p.is_leaf and p.requires_grad]
    weights = tg.arange(2.0 * n).reshape(found[0].shape)
    for y in found:
        gradients = tg.autograd.grad(y, leaves, weights)
        expected = [[6.0 * k, 6.0 * k + 1] for k in range(len(leaves))]
        assert [g.tolist() for g in gradients] == expected


def test_what_is_recorded_while_inputs_are_listed(native):
    parts = many(5)
    tg.cat(parts)
    others = []

    def recording_more(tape, codes):
        others.append(parts[0] * 2.0)
        return Tape.list_inputs(tape, codes)

    native.bindings.put(list_inputs=id(recording_more))
    try:
        assert joining._joined_natively(table["cat"], parts, 0) is None
        y = tg.cat(parts)
    finally:
        native.bindings.put(list_inputs=id(Tape.list_inputs))
    assert len(others) == 2
    assert tg.autograd.grad(y.sum() + others[0].sum(), parts[0])[0].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 3)])
def test_complex_numbers_of_parts(shape, turned, dtype, native):
    a, b = tensors_of([shape, shape], dtype, turned)
    theirs = outcome(tg.complex, (a, b))
    key = complex_, a._s, b._s
    assert native.planned(call_plans.plans[key], a, b) is not None
    ours = outcome(tg.complex, (a, b))
    assert ours[0]._a.tobytes() == theirs[0]._a.tobytes()
    assert (ours[0].shape, ours[0].dtype, ours[0]._s) == (theirs[0].shape, theirs[0].dtype, -1)
    assert ours[1].tolist() == theirs[1].tolist()
    assert ours[2:] == theirs[2:]


VIEWS = {
    "turned": lambda t: t.permute(2, 1, 0),
    "every second": lambda t: t[:, ::2, 1:],
    "backwards": lambda t: t.flip(1)[:, :, :2].permute(1, 0, 2),
    "broadcast": lambda t: t[:, :1].expand(3, 4, 5),
    "numbers": lambda t: t[:, 1, 2],
}


@pytest.mark.parametrize("how", ["leaf", "constant"])
@pytest.mark.parametrize("view", VIEWS)
def test_copies_in_c_order(view, how, dtype, native, monkeypatch):
    monkeypatch.setattr(call_plans, "TIMES", 1)
    call_plans._calls.clear()
    x = VIEWS[view](placed(np.random.default_rng(0).standard_normal((3, 4, 5)).astype(dtype), how))
    theirs = outcome(x.contiguous, ())
    assert run_planned(contiguous, x, None, None) is not None
    ours = outcome(x.contiguous, ())
    assert ours[0].is_contiguous()
    assert ours[0]._a.tobytes() == theirs[0]._a.tobytes() == x._a.tobytes()
    assert (ours[0].shape, ours[0]._s) == (theirs[0].shape, theirs[0]._s)
    assert np.array_equal(ours[1], theirs[1])
    assert ours[2:] == theirs[2:]


def test_what_is_refused_is_joined_in_python(native):
    x = tg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    tg.cat((x, x))
    tg.stack([x, x])
    complex_ = x * (1 + 0j)
    for other in (x.float(), complex_, x.long(), x.numpy(force=True)):
        for name in ("cat", "stack"):
            assert joining._joined_natively(table[name], [x, other], 0) is None
        assert tg.cat([x, other]).real.tolist() == 2 * x.tolist()
    assert tg.cat(iter([x, x])).shape == (4, 3)
    with tg.no_grad():
        assert not tg.cat((x, x)).requires_grad
    with pytest.raises(TypeError, match="takes a Tensor, got float"):
        tg.cat([x, 1.0])
    base = x * 1.0
    view = base.view(2, 3)
    base.mul_(2.0)
    tg.cat([x, view]).sum().backward()  # what the view sees is on the tape by now
    assert x.grad.tolist() == [[3.0] * 3] * 2


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_complex_numbers_in_any_order(name, native):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    t = tg.tensor(z, requires_grad=True)
    w = tg.tensor([[2 + 1j], [3j], [4.0]])
    wide = np.broadcast_to(w.numpy(), (3, 4))
    theirs = {"cat": np.concatenate, "stack": np.stack}[name]
    for _ in range(3):  # by a plan, once it recurs
        found = getattr(tg, name)([t.T, w.expand(3, 4).T, (t * 1).T])
        np.testing.assert_array_equal(found.detach().numpy(), theirs([z.T, wide.T, z.T]))
    assert joining._joined_natively(table[name], [t.T, w.expand(3, 4).T, (t * 1).T], 0) is not None
