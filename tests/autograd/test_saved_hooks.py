"""`graph.saved_tensors_hooks`: a say in how values are kept for backward."""

import numpy as np
import pytest


@pytest.fixture
def hooks(tg):
    return tg.autograd.graph.saved_tensors_hooks


def test_pack_sees_what_is_saved_and_unpack_gives_it_back(leaf, hooks):
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t

    def unpack(t):
        unpacked.append(t.tolist())
        return t

    x, y = leaf([2.0, 3.0]), leaf([5.0, 7.0])
    with hooks(pack, unpack):
        z = x * y
    assert sorted(packed) == [[2.0, 3.0], [5.0, 7.0]]
    assert unpacked == []
    z.sum().backward()
    assert sorted(unpacked) == sorted(packed)
    assert x.grad.tolist() == [5.0, 7.0]
    assert y.grad.tolist() == [2.0, 3.0]


def test_pack_may_return_anything(tg, leaf, hooks):
    """Values moved to a store of one's own and fetched when they are needed."""
    store = []

    def pack(t):
        store.append(t.detach().numpy().copy())
        return len(store) - 1

    x = leaf([1.0, 2.0])
    with hooks(pack, lambda key: tg.from_numpy(store[key])):
        y = tg.sin(x * x)
    y.sum().backward()
    v = np.array([1.0, 2.0])
    assert x.grad.numpy() == pytest.approx(np.cos(v * v) * 2 * v, rel=1e-15)


def test_what_unpack_returns_is_what_backward_uses(leaf, hooks):
    x = leaf([1.0, 2.0])
    with hooks(lambda t: t, lambda t: t * 10):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 40.0]


def test_hooks_hold_for_operations_recorded_inside_only(leaf, hooks):
    seen = []
    x = leaf(3.0)
    with hooks(lambda t: (seen.append("pack"), t)[1], lambda t: t):
        pass
    (x * x).backward()
    assert seen == []
    assert x.grad.item() == 6.0


def test_operations_that_save_nothing_call_nothing(leaf, hooks):
    x = leaf(3.0)
    with hooks(lambda t: pytest.fail("nothing to save"), lambda t: t):
        y = x + x
    y.backward()


def test_nothing_is_packed_when_nothing_is_recorded(tg, leaf, hooks):
    x = leaf(3.0)
    with hooks(lambda t: pytest.fail("nothing to save"), lambda t: t):
        with tg.no_grad():
            x * x
        tg.tensor(1.0) * tg.tensor(2.0)


def test_the_innermost_hooks_are_used(leaf, hooks):
    seen = []

    def named(name):
        return hooks(lambda t: (seen.append(name), t)[1], lambda t: t)

    x = leaf(3.0)
    with named("outer"):
        with named("inner"):
            x.exp()
        x.exp()
    assert seen == ["inner", "outer"]


def test_unpack_runs_at_every_backward(leaf, hooks):
    count = []
    x = leaf(3.0)
    with hooks(lambda t: t, lambda t: (count.append(1), t)[1]):
        y = x.exp()
    y.backward(retain_graph=True)
    y.backward()
    assert len(count) == 2


def test_values_saved_by_a_function_go_through_the_hooks(tg, leaf, hooks):
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    packed = []
    x = leaf(3.0)
    with hooks(lambda t: packed.append(t.item()), lambda _: tg.tensor(100.0)):
        y = Square.apply(x)
    y.backward()
    assert packed == [3.0]
    assert x.grad.item() == 200.0


def test_double_backward_through_hooks(tg, leaf, hooks):
    x = leaf(3.0)
    with hooks(lambda t: t, lambda t: t):
        y = x * x * x
        (g,) = tg.autograd.grad(y, x, create_graph=True)
    (h,) = tg.autograd.grad(g, x)
    assert (g.item(), h.item()) == (27.0, 18.0)


def test_an_error_in_unpack_comes_through_and_touches_no_grad(leaf, hooks):
    def broken(t):
        raise KeyError("unpack")

    x = leaf(3.0)
    with hooks(lambda t: t, broken):
        y = x * x
    with pytest.raises(KeyError, match="unpack"):
        y.backward()
    assert x.grad is None


def test_an_error_in_pack_comes_through(leaf, hooks):
    def broken(t):
        raise KeyError("pack")

    x = leaf(3.0)
    with pytest.raises(KeyError, match="pack"), hooks(broken, lambda t: t):
        x * x
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_unpack_must_return_a_tensor(leaf, hooks):
    x = leaf(3.0)
    with hooks(lambda t: t, lambda t: 3.0):
        y = x * x
    with pytest.raises(TypeError, match=r"(?i)tensor"):
        y.backward()
    assert x.grad is None


def test_pack_must_not_change_its_tensor_in_place(leaf, hooks):
    x = leaf([1.0, 2.0])

    def record_and_sweep():
        with hooks(lambda t: t.mul_(2), lambda t: t):
            y = (x * 1).exp()
        y.sum().backward()

    with pytest.raises(RuntimeError, match=r"(?i)in-?place"):
        record_and_sweep()


def test_a_function_finds_its_saved_leaf_when_leaves_are_numbered_anew(tg):
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    first, x, later = (tg.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    dropped = first * 2
    y, other = Square.apply(x), later * 2
    del dropped
    for _ in range(20000):  # so many records that the tape is reclaimed
        first * 2
    (g,) = tg.autograd.grad(y, x, create_graph=True)
    assert tg.autograd.grad(g, x)[0].item() == 2.0
    other.backward()
    assert later.grad.item() == 2.0


def test_numbers_do_not_go_through_the_hooks(tg, leaf):
    seen = []

    def seeing(t):
        seen.append(t.shape)
        return t

    x = leaf([1.0, 2.0])
    with tg.autograd.graph.saved_tensors_hooks(seeing, seeing):
        (3.0 * (x * 2) / 4).sum().backward()
        assert seen == []
        (x * tg.tensor(2.0)).sum().backward()
    assert len(seen) == 2
    assert x.grad.tolist() == [3.5, 3.5]


def test_hooks_that_are_entered_or_left_in_a_sweep_are_so_until_its_end(tg, leaf):
    hooks = tg.autograd.graph.saved_tensors_hooks
    seen = []
    outer = hooks(lambda t: seen.append(t) or t, lambda t: t)

    def entering(t):
        outer.__enter__()
        return t

    def leaving(t):
        outer.__exit__()
        return t

    x = leaf([1.0])
    with hooks(lambda t: t, entering):
        x.sin().sum().backward()
    x.sin()
    assert not seen
    with outer:
        with hooks(lambda t: t, leaving):
            y = x.sin().sum()
        y.backward()
        x.sin()
    assert len(seen) == 1
    x.sin()
    assert len(seen) == 1
