"""Users' rules within a compiled sweep do what they do where the sweep is done in Python."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compat.autograd import defvjp, primitive
from tapegrad.dispatch.native_calls import native_calls
from tapegrad.native import install
from tapegrad.tape.tape import Tape, current

pytestmark = pytest.mark.tapegrad_only("about two ways to the same results")


@pytest.fixture(params=["compiled", "python"], autouse=True)
def way(request):
    if not install.install():
        pytest.skip("this machine has no native path")
    if request.param == "python":
        install.installed.close()
    yield request.param
    install.installed.open()


@pytest.fixture(autouse=True)
def fresh_tape(monkeypatch):
    monkeypatch.setattr(current, "tape", Tape())


def function(forward, rule):
    class Own(tg.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.args = args[1:]
            ctx.save_for_backward(args[0])
            return forward(*args)

        @staticmethod
        def backward(ctx, g):
            return rule(g, ctx.saved_tensors[0], *ctx.args)

    return Own.apply


def custom(forward, rule):
    f = tg.custom_vjp(forward)

    def back(args, g):
        found = rule(g, *args)
        return found if isinstance(found, tuple) else (found,)

    f.defvjp(lambda *args: (forward(*args), args), back)
    return f


def own(forward, rule):
    f = primitive(forward)

    def back(k, g, args):
        found = rule(g, *args)
        return found[k] if isinstance(found, tuple) else found

    defvjp(f, *[lambda ans, *args, k=k: lambda g: back(k, g, args) for k in range(5)])
    return f


KINDS = pytest.mark.parametrize("kind", [function, custom, own])
SHAPES = [(), (1,), (3,), (2, 3), (0,), (2, 0, 3), (1, 1, 2, 1, 2, 1), (600,), (32767,), (40000,)]


def threefold(x):
    return 3.0 * x


@KINDS
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_between_operations_and_rules(kind, dtype, shape):
    f = kind(threefold, lambda g, x: g * x)
    x = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape).astype(dtype)
    t = tg.tensor(x, requires_grad=True)
    u = 2.0 * t
    y = f(f(u)) * u + f(t)
    assert (y.shape, y._a.dtype, y._s) == (t.shape, t._a.dtype, t._s)
    y.sum().backward()
    expected = 2.0 * 9.0 * 2.0 * x + 2.0 * x * 2.0 * (6.0 * x) * (2.0 * x) + x
    np.testing.assert_allclose(t.grad._a, expected, rtol=1e-5 if dtype == "f4" else 1e-12)
    assert t.grad._a.dtype == dtype


@KINDS
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_several_arguments_some_of_which_are_wanted(kind, count):
    f = kind(lambda *xs: sum(xs[1:], xs[0]), lambda g, *xs: tuple(k * g for k in range(count)))
    xs = [tg.tensor([1.0, 2.0], requires_grad=k != 1) for k in range(count)]
    y = f(*[x if k % 2 else 1.0 * x for k, x in enumerate(xs)])
    found = tg.autograd.grad((y * y).sum(), xs[:1], retain_graph=True)
    np.testing.assert_array_equal(found[0]._a, 0.0)
    (2.0 * y).sum().backward()
    for k, x in enumerate(xs):
        assert (x.grad is None) if k == 1 else (x.grad.tolist() == [2.0 * k] * 2)


@KINDS
def test_one_argument_twice_and_no_gradient(kind):
    f = kind(lambda a, b: a + b, lambda g, a, b: (g, 10.0 * g))
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    u = 1.0 * t
    (f(u, u) + f(t, t)).sum().backward()
    assert t.grad.tolist() == [22.0, 22.0]
    f = kind(lambda a, b: a + b, lambda g, a, b: (None, 10.0 * g))
    v, w = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    f(1.0 * v, w).sum().backward()
    assert v.grad is None or v.grad.tolist() == [0.0, 0.0]
    assert w.grad.tolist() == [10.0, 10.0]


@KINDS
@pytest.mark.parametrize(
    "changed",
    [
        lambda g: (g + 0.0 * g.reshape(3, 2).T) if g.shape == (2, 3) else g,
        lambda g: g.T.reshape(3, 2).T if g.shape == (2, 3) else g,
        lambda g: np.asfortranarray(g) if isinstance(g, np.ndarray) else g.T.contiguous().T,
        lambda g: np.zeros(g.shape) + g if isinstance(g, np.ndarray) else g.to(tg.float64),
        lambda g: g,
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_gradients_that_lie_elsehow(kind, changed, dtype):
    f = kind(threefold, lambda g, x: changed(3.0 * g))
    x = np.arange(6.0).reshape(2, 3).astype(dtype)
    weights = np.arange(6.0, 12.0).reshape(2, 3).astype(dtype)
    expected = 3.0 * np.asarray(changed(3.0 * weights)) * 2.0
    t = tg.tensor(x, requires_grad=True)
    (f(3.0 * t) * (2.0 * tg.tensor(weights))).sum().backward()
    np.testing.assert_allclose(t.grad._a, expected.astype(dtype), rtol=1e-6)


@KINDS
@pytest.mark.parametrize("records", [10, 10_000])
def test_a_rule_that_records_and_sweeps(kind, records):
    """The tape moves under the sweep, and back."""

    def inner(x):
        for _ in range(records):
            x = x * 1.0
        return (x * x).sum()

    def rule(g, x):
        outside = tg.tensor([5.0], requires_grad=True)
        y = outside
        with tg.enable_grad():
            for _ in range(records):
                y = y * 1.0
            kept.append(y)
            y.sum().backward()
        assert outside.grad.tolist() == [1.0]
        return g * np.asarray(tg.grad(inner)(np.array([1.0, 2.0])))

    kept = []
    f = kind(threefold, rule)
    t = tg.tensor([1.0, 1.0], requires_grad=True)
    u = t * 1.0
    (f(f(u) * u)).sum().backward()
    np.testing.assert_allclose(t.grad._a, [2.0 * (3.0 + 2.0), 4.0 * (3.0 + 4.0)])


@KINDS
def test_an_error_in_a_rule_comes_out_and_leaves_the_tape_in_order(kind):
    def rule(g, x):
        raise ZeroDivisionError("mine")

    bad, good = kind(threefold, rule), kind(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="mine"):
            good(bad(good(t))).sum().backward()
        assert tg.is_grad_enabled()
        assert not current.tape.sweeping
        assert t.grad is None
    good(good(t)).sum().backward()
    assert t.grad.tolist() == [9.0, 9.0]


@KINDS
def test_what_was_saved_goes_after_the_rule_and_stays_with_retain_graph(kind):
    f = kind(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    u = t * 1.0
    y = f(u)
    saved, z = weakref.ref(u._a), y.sum()
    del u
    z.backward(retain_graph=True)
    gc.collect()
    assert saved() is not None
    z.backward()
    assert t.grad.tolist() == [6.0, 6.0]
    gc.collect()
    assert saved() is None
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


@KINDS
def test_adjoints_that_are_asked_for_or_listened_to(kind):
    f = kind(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    u = f(t)
    v = f(u)
    heard = []
    u.register_hook(lambda g: heard.append(g.tolist()))
    w = f(v).sum()
    found = tg.autograd.grad(w, [v, u, t], retain_graph=True)
    assert [g.tolist() for g in found] == [[3.0, 3.0], [9.0, 9.0], [27.0, 27.0]]
    v.retain_grad()
    w.backward()
    assert v.grad.tolist() == [3.0, 3.0]
    assert t.grad.tolist() == [27.0, 27.0]
    assert heard == [[9.0, 9.0]] * 2


@KINDS
def test_no_rule_runs_that_leads_to_nothing_asked_for(kind):
    def rule(g, x):
        raise AssertionError("nobody asked for this")

    x, y, z = (tg.tensor([1.0, 2.0], requires_grad=True) for _ in range(3))
    u = kind(threefold, rule)(x * 2.0)
    weight = tg.ones(2)
    assert tg.autograd.grad(u, [y], weight, allow_unused=True) == (None,)
    found = tg.autograd.grad(u + z, [y, z], weight, allow_unused=True)
    assert found[0] is None
    assert found[1].tolist() == [1.0, 1.0]
    tg.autograd.backward(kind(threefold, rule)(x * 2.0), weight, inputs=(y,))
    assert y.grad is None


@KINDS
def test_a_full_arena_gets_more_room(kind):
    f = kind(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor(np.ones(4000), requires_grad=True)
    ys = [f(t * float(k)) for k in range(200)]
    y = ys[0]
    for other in ys[1:]:
        y = y + f(other)
    y.sum().backward()
    np.testing.assert_allclose(t.grad._a, 9.0 * sum(range(200)))


@KINDS
def test_abandoned_calls_on_large_arrays_are_reclaimed(kind, monkeypatch):
    monkeypatch.setattr("tapegrad.tape.debts.DEBT_FLOOR", 1 << 17)
    current.tape.debt_limit = 1 << 17
    f = kind(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor(np.ones(4000), requires_grad=True)
    for _ in range(50):
        f(t)
    assert len(current.tape) < 25


@KINDS
def test_a_long_chain_fills_the_tape_several_times(kind):
    f = kind(lambda x: 1.0 * x, lambda g, x: g + 0.0)
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    y = t
    for _ in range(9000):
        y = f(y)
    y.sum().backward()
    assert t.grad.tolist() == [1.0, 1.0]
    assert y.grad_fn.record.state == "released"


@KINDS
def test_no_references_are_lost_or_leaked(kind, references_kept):
    f = kind(threefold, lambda g, x: 3.0 * g)
    several = kind(lambda a, b: a * b, lambda g, a, b: (g * b, None))
    bad = kind(threefold, lambda g, x: {}[0])
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    c, narrow = tg.tensor([3.0, 4.0]), tg.tensor(np.ones(3, "f4"), requires_grad=True)

    def work():
        tg.autograd.grad((f(several(f(t), c)) * f(t)).sum(), t)
        tg.autograd.grad(f(f(narrow)).sum(), narrow)
        f(t)
        with pytest.raises(KeyError):
            bad(f(t)).sum().backward()

    shared = (t, c, narrow, t._a, c._a, narrow._a, current.tape, None, 0, False, np.dtype("f8"))
    assert references_kept(work, shared)


def test_the_compiled_way_is_taken(way, monkeypatch):
    called = []
    resume = native_calls.resume
    if way == "compiled":
        monkeypatch.setattr(
            native_calls, "resume", lambda *args: called.append(args) or resume(*args)
        )
    f = function(threefold, lambda g, x: 3.0 * g)
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    f(f(f(t))).sum().backward()
    assert len(called) == (way == "compiled")


@KINDS
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_is_recorded_both_ways(kind, dtype, shape):
    f = kind(lambda a, b, c: 3.0 * a, lambda g, a, b, c: (3.0 * g, None, g))
    t = tg.tensor(np.ones(shape, dtype), requires_grad=True)
    u, found = 2.0 * t, []
    for change in (install.installed.open, install.installed.close):
        change()
        y = f(t, 2.0, u)
        tape = current.tape
        entry = tape.keep[tape.used - 1]
        found.append((tape.words()[-1].tolist(), y._s, y._a.dtype, y.tolist(), type(entry)))
        assert tape.tokens[tape.used - 1] is y._pos
        assert y._home is tape
        # A Function's has no places for what is no Tensor.
        assert len(y.grad_fn.next_functions) == (3 if hasattr(entry, "arity") else 2)
    assert found[0] == found[1]
