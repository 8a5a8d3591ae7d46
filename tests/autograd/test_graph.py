"""`autograd.graph`: hooks on several Tensors, on what is saved, and versions counted by hand."""

import pytest


def test_a_hook_on_several_tensors_gets_all_gradients_once(tg, leaf):
    x, y, z = leaf([1.0]), leaf([2.0]), leaf([3.0])
    w = x * y
    seen = []
    handle = tg.autograd.graph.register_multi_grad_hook((x, w, z), seen.append)
    (w * 3).sum().backward(retain_graph=True)
    (given,) = seen
    assert [None if g is None else g.item() for g in given] == [6.0, 3.0, None]
    (w.sum() + z.sum()).backward(retain_graph=True)
    assert [g.item() for g in seen[1]] == [2.0, 1.0, 1.0]
    handle.remove()
    w.sum().backward()
    assert len(seen) == 2


def test_in_the_mode_any_it_gets_the_first(tg, leaf):
    x, y = leaf([1.0]), leaf([2.0])
    w = x * y
    seen = []
    tg.autograd.graph.register_multi_grad_hook((x, y, w), seen.append, mode="any")
    for count in (1, 2):
        (w * 3).sum().backward(retain_graph=True)
        assert [g.item() for g in seen] == [3.0] * count
    with pytest.raises(ValueError, match="some"):
        tg.autograd.graph.register_multi_grad_hook((x,), seen.append, mode="some")


def test_a_sweep_that_fails_leaves_nothing_behind(tg, leaf):
    x, y = leaf([1.0]), leaf([2.0])
    w = x * y
    seen = []
    tg.autograd.graph.register_multi_grad_hook((x, w), seen.append)
    failing = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        w.sum().backward(retain_graph=True)
    failing.remove()
    before = len(seen)
    w.sum().backward()
    assert len(seen) == before + 1
    assert [g.item() for g in seen[-1]] == [2.0, 1.0]


def test_saved_values_may_be_changed_where_that_is_allowed(tg, leaf):
    x = leaf([1.0, 2.0])
    with tg.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y.sin() * y
        y.zero_()
        z.sum().backward()
    assert tg.allclose(x.grad, x.cos() * x + x.sin())
    y = x.clone()
    z = y.sin()
    y.zero_()
    with pytest.raises(RuntimeError):
        z.sum().backward()


def test_it_is_not_entered_twice(tg):
    allow = tg.autograd.graph.allow_mutation_on_saved_tensors
    with allow(), pytest.raises(RuntimeError), allow():
        pass


def test_save_on_cpu_changes_nothing(tg, leaf):
    x = leaf([1.0, 2.0])
    with tg.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    assert tg.allclose(x.grad, (x * x).exp() * 2 * x)


def test_hooks_on_saved_values_can_be_forbidden(tg, leaf):
    forbid = tg.autograd.graph.disable_saved_tensors_hooks
    with forbid("not here"):
        with pytest.raises(RuntimeError, match="not here"), tg.autograd.graph.save_on_cpu():
            pass
        (leaf(1.0) * 2).backward()
        with (
            forbid("nor there"),
            pytest.raises(RuntimeError, match="nor there"),
            tg.autograd.graph.save_on_cpu(),
        ):
            pass
    with tg.autograd.graph.save_on_cpu(), pytest.raises(RuntimeError, match="too late"), forbid("too late"):  # noqa: E501  # fmt: skip
        pass
    with tg.autograd.graph.save_on_cpu():
        pass


def test_versions_are_counted_by_hand(tg, leaf):
    x = leaf([1.0, 2.0]) * 1
    y = x * x
    tg.autograd.graph.increment_version(x)
    assert x._version == 1
    with pytest.raises(RuntimeError):
        y.sum().backward()
    a, b = tg.zeros(1), tg.zeros(1)
    tg.autograd.graph.increment_version([a, b])
    assert (a._version, b._version) == (1, 1)


def test_a_mode_on_a_class_warns_and_holds_while_an_instance_is_made(tg, leaf):
    with pytest.warns(FutureWarning):

        @tg.no_grad()
        class Made:
            def __init__(self):
                self.mode = tg.is_grad_enabled()

            def later(self):
                return tg.is_grad_enabled()

    made = Made()
    assert not made.mode
    assert made.later()


def test_increment_version_takes_what_inference_made(tg):
    with tg.inference_mode():
        x = tg.ones(2)
    y = tg.ones(2)
    tg.autograd.graph.increment_version([x, y])
    assert y._version == 1
