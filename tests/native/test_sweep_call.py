"""A sweep done in one native call leaves behind what the sweep from Python leaves."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.native import install
from tapegrad.tape.tape import Tape, current
from tapegrad.tensor import former

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")


@pytest.fixture(autouse=True)
def opened_again(native):
    yield
    install.installed.open()


def leaves(dtype="float64"):
    rng = np.random.default_rng(0)
    shapes = (3,), (2, 3), ()
    return [tg.tensor(rng.uniform(0.5, 2, s), dtype=getattr(tg, dtype), requires_grad=True)
            for s in shapes]  # fmt: skip


def weight(y):
    return tg.tensor(np.cos(np.arange(y.numel())).reshape(y.shape), dtype=y.dtype)


def backward(y, given, **how):
    y.backward(None if y.ndim == 0 else weight(y), **how)
    return [x.grad for x in given]


def again(y, given):
    backward(y, given, retain_graph=True)
    return backward(y, given)


def grad(y, given, **how):
    return tg.autograd.grad(y, given, None if y.ndim == 0 else weight(y), **how)


def grad_of_one(y, given):
    return [*grad(y, given[1], retain_graph=True), *grad(y, [given[0], given[0]])]


def outdated(base, factor):
    """A view whose base was changed in place since."""
    view = base[0]
    base.mul_(factor)
    return view


PROGRAMS = {
    "number": lambda a, b, c: (a * b).sum() * c,
    "array": lambda a, b, c: (a * b).exp() + c,
    "shared": lambda a, b, c: (a * a + a * b) * b * c,
    "views": lambda a, b, c: b[1] * a + b.T[:, 0] * c,
    "products": lambda a, b, c: (b @ a) * c + b.sum(1) * a.mean(),
    "in Python on the way": lambda a, b, c: (tg.complex(a, b).abs() * c).sum(),
    "joined": lambda a, b, c: tg.cat([a, b[0], b[1] * c]),
    "of many": lambda a, b, c: tg.cat([a, b[0], b[1] * c, a * c, a]).exp() * c,
    "view": lambda a, b, c: (a * b * c).T[0],
    "outdated view": lambda a, b, c: outdated(a * b, c),
}
WAYS = {"backward": backward, "twice": again, "grad": grad, "of one": grad_of_one}


def outcome(program, way, dtype, before=False):
    """The gradients, and what has become of the tape."""
    current.tape = tape = Tape()
    given = leaves(dtype)
    if before:
        for x in given:
            x.grad = tg.ones_like(x)
    made = PROGRAMS[program](*given)
    gradients = [np.array(g.detach()) for g in WAYS[way](made, given)]
    kept = [entry is None for entry in tape.keep[: tape.used]]
    return gradients, tape.words()[:, 0].tolist(), kept, tape.floor, tape.sweeping


@pytest.fixture(autouse=True)
def own_tape(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())


@pytest.mark.parametrize("before", [False, True], ids=["no gradients", "gradients"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_both_ways_leave_the_same(program, way, dtype, before):
    outcome(program, way, dtype)  # the first makes the workspace
    ours = outcome(program, way, dtype, before)
    native_calls.sweep = None
    theirs = outcome(program, way, dtype, before)
    for a, b in zip(ours[0], theirs[0], strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert ours[1:] == theirs[1:]


@pytest.fixture
def calls(monkeypatch):
    """How many sweeps the native call has done as a whole."""
    (tg.ones(2, requires_grad=True) + 1.0).sum().backward()  # which loads kernels
    done, call = [], native_calls.sweep

    def counting(*args):
        found = call(*args)
        if found is not False and not current.tape.sweeping:
            done.append(args)
        return found

    monkeypatch.setattr(native_calls, "sweep", counting)
    return done


def test_it_is_the_way_of_small_sweeps(calls):
    a, b, c = leaves()
    for _ in range(3):
        ((a * b).sum() * c).backward()
        (a * b).backward(tg.ones(2, 3))
        (a * b)[0].backward(tg.ones(3))
        tg.autograd.grad((a * b).sum(), [a, b])
        tg.stack([a, a * c, b[0], b[1], a]).sum().backward()
    assert len(calls) == 15


def test_what_others_have_recorded_is_no_obstacle(calls):
    a, b, c = leaves()
    kept = [a * 2.0 for _ in range(3000)]  # which nobody sweeps
    for _ in range(3):
        ((a * b).sum() * c).backward()
    assert len(calls) == 3
    for _ in range(2):  # the first makes room
        y = a
        for _ in range(200):  # more than are looked at first
            y = y * b[0]
        y.sum().backward()
    assert len(calls) == 4
    del kept


def test_lists_of_inputs_that_grow_during_a_sweep():
    """A hook records what makes them move; below it a record of many inputs is yet to come."""
    a, _, c = leaves()
    many = tg.stack([a, a * c, a, a + c, a])
    y = many * 2.0
    y.register_hook(lambda g: tg.stack([a] * 20_000)[:5] * 0.0 + g)
    y.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 2.0 * (4.0 + c.item()))
    assert c.grad.item() == pytest.approx(2.0 * (a.sum().item() + 3.0))


def test_records_of_many_inputs_after_the_tape_was_compacted():
    a, _, c = leaves()
    kept = [tg.stack([a, a * k, a, a + c, a]) for k in range(3)]
    for _ in range(5000):
        tg.stack([a, a, a, a])
    current.tape.reclaim()
    tg.autograd.backward([y.sum() for y in kept])
    np.testing.assert_allclose(a.grad.numpy(), 3.0 * 4.0 + 3.0)
    assert c.grad.item() == 9.0


@pytest.mark.parametrize(
    "refused",
    [
        lambda a, b: outdated(a * b, 2.0).backward(weight(a)),
        lambda a, b: (a * 2.0).backward(tg.ones(3, 2)[:, 0]),
        lambda a, b: (a * 2.0).sum().backward(create_graph=True),
        lambda a, b: tg.autograd.grad((a * b).sum(), [a], create_graph=True),
        lambda a, b: sum((a * 2.0 for _ in range(2000)), a).sum().backward(),
    ],
)
@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_is_not_plain_goes_another_way(refused, calls):
    a, b, _ = leaves()
    refused(a, b)
    assert not calls
    assert not current.tape.sweeping


def test_a_second_sweep_says_that_values_were_released(calls):
    a, b, _ = leaves()
    y = (a * b).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="not have been used"):
        tg.autograd.grad((a * a).sum(), [b])
    assert len(calls) == 1
    assert not current.tape.sweeping


def test_hooks_are_called(calls):
    a, b, _ = leaves()
    seen = []
    a.register_hook(lambda g: seen.append("leaf"))
    y = a * b
    y.register_hook(lambda g: seen.append("record"))
    y.sum().backward()
    assert seen == ["record", "leaf"]
    assert not current.tape.sweeping
    np.testing.assert_array_equal(b.grad, a.detach().expand(2, 3))


def test_a_sweep_inside_of_what_a_freed_value_runs(calls):
    a, b, _ = leaves()
    found = []

    def nested():
        x = tg.ones(3, requires_grad=True)
        (x * x).sum().backward()
        found.append(x.grad)

    y = tg.exp(a * b)
    middle = y * y
    weakref.finalize(middle._a, nested)
    z = (middle * middle).sum()
    del middle
    z.backward()
    gc.collect()
    assert [g.tolist() for g in found] == [[2.0, 2.0, 2.0]]
    expected = 4 * np.exp(4 * a.detach().numpy() * b.detach().numpy())
    np.testing.assert_allclose(b.grad, expected * a.detach().numpy(), 1e-12)


def test_the_weight_and_the_gradient_share_nothing(calls):
    a, _, _ = leaves()
    g = tg.ones(3)
    (a + 1.0).backward(g)
    a.grad += 1.0
    assert g.tolist() == [1.0, 1.0, 1.0]
    assert len(calls) == 1


@pytest.mark.parametrize("root", [lambda a: a * 2.0, lambda a: a.to(tg.float32), lambda a: a * 1j])
def test_a_weight_that_does_not_fit_is_refused(root, calls):
    a, _, _ = leaves()
    for other in (tg.ones(2), tg.ones(()), tg.ones(2, dtype=tg.complex64)):
        with pytest.raises(RuntimeError):
            root(a).backward(other)
    assert a.grad is None
    assert not calls


@pytest.mark.parametrize("shape", [(), (3,), (5000,)])
def test_complex_roots_and_large_ones(shape):
    x = tg.tensor(np.full(shape, 2.0 + 1j), requires_grad=True)
    y = x * x
    y.backward(tg.ones_like(y), retain_graph=True)
    y.backward(tg.ones_like(y))
    np.testing.assert_array_equal(x.grad, np.full(shape, 8.0 - 4j))
    r = tg.tensor(np.full(shape, 2.0), requires_grad=True)
    (r * r).backward(tg.ones(shape))
    np.testing.assert_array_equal(r.grad, np.full(shape, 4.0))


def test_a_leaf_that_got_another_shape_slows_no_other_down(calls):
    a, b, _ = leaves()
    reshaped = tg.ones(2, requires_grad=True)
    y = (reshaped * 2).sum()
    with tg.no_grad():
        reshaped.unsqueeze_(0)
    assert former
    tg.autograd.grad((a * b).sum(), [a, b])
    assert len(calls) == 1
    assert y.item() == 4.0


def address(t):
    return t._a.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
def test_weights_that_reach_a_leaf_are_not_copied_before_they_are_used(dtype):
    x = tg.ones(40_000, dtype=dtype, requires_grad=True)
    (x * x).reshape(200, 200).backward(tg.ones(200, 200, dtype=dtype))  # its kernels are loaded
    x.grad, w = None, tg.ones(200, 200, dtype=dtype)
    x.reshape(200, 200).backward(w)
    at = address(w)
    assert address(x.grad) == at
    tg.optim.SGD([x], 0.1).step()
    assert address(x.grad) == at
    x.grad.zero_()
    assert address(x.grad) != at == address(w)
    (found,) = tg.autograd.grad(x.view(200, 200), x, w)
    assert address(found) == at
    w.zero_()
    assert address(found) == at != address(w)
    del w, found
    (found,) = tg.autograd.grad(x.view(200, 200), x, tg.ones(200, 200, dtype=dtype))
    at = address(found)
    found.zero_()  # nobody else has it
    assert address(found) == at
