"""Tensor hooks: who is called, in which order, with what, and what a returned value does."""

import importlib

import pytest

# --------------------------------------------------------------------------------------------------
# register_hook
# --------------------------------------------------------------------------------------------------


def test_a_hook_on_an_intermediate_sees_its_gradient(leaf):
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * y).backward()
    assert seen == [12.0]
    assert x.grad.item() == 24.0


def test_a_hook_on_a_leaf_sees_the_gradient_of_this_backward_only(leaf):
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x).backward()
    (x * 5).backward()
    assert seen == [6.0, 5.0]
    assert x.grad.item() == 11.0


def test_a_hook_sees_the_sum_of_all_contributions_once(leaf):
    x = leaf(2.0)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    (y * y + y * 3 + y).backward()
    assert seen == [8.0]


def test_a_hook_on_a_leaf_sees_the_sum_too(leaf):
    x = leaf(2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x + x * 3 + x).backward()
    assert seen == [8.0]


def test_a_hook_on_the_root_sees_the_seed(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.backward(tg.tensor([5.0, 7.0]))
    assert seen == [[5.0, 7.0]]


def test_a_hook_on_a_duplicated_root_sees_the_sum_of_the_seeds(tg, leaf):
    x = leaf(3.0)
    y = x * x
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    tg.autograd.backward([y, y])
    assert seen == [2.0]


def test_the_gradient_has_the_shape_of_the_tensor(tg, leaf):
    x = leaf([[1.0], [2.0]])
    y = x * 1
    shapes = []
    y.register_hook(lambda g: shapes.append(tuple(g.shape)))
    (y + tg.zeros((3, 2, 4))).sum().backward()
    assert shapes == [(2, 1)]
    assert x.grad.tolist() == [[12.0], [12.0]]


def test_a_returned_tensor_replaces_the_gradient(leaf):
    x = leaf(3.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (y * y).backward()
    assert x.grad.item() == 240.0


def test_a_returned_tensor_replaces_the_gradient_of_a_leaf(leaf):
    x = leaf(3.0)
    x.register_hook(lambda g: -g)
    (x * x).backward()
    assert x.grad.item() == -6.0


def test_a_replaced_gradient_reaches_autograd_grad_too(tg, leaf):
    x = leaf(3.0)
    x.register_hook(lambda g: g * 10)
    assert tg.autograd.grad(x * x, x)[0].item() == 60.0
    y = leaf(3.0) * 2
    y.register_hook(lambda g: g * 10)
    assert tg.autograd.grad(y * y, y)[0].item() == 120.0


def test_replacing_affects_only_what_lies_below(leaf):
    x, w = leaf(3.0), leaf(5.0)
    y = x * 1
    y.register_hook(lambda g: g * 0)
    (y * w).backward()
    assert (x.grad.item(), w.grad.item()) == (0.0, 3.0)


def test_hooks_run_in_the_order_of_registration_each_on_the_result_of_the_last(leaf):
    x = leaf(1.0)
    y = x * 1
    seen = []

    def hook(factor):
        def run(g):
            seen.append((factor, g.item()))
            return g * factor

        return run

    for factor in (2.0, 3.0, 5.0):
        y.register_hook(hook(factor))
    y.backward()
    assert seen == [(2.0, 1.0), (3.0, 2.0), (5.0, 6.0)]
    assert x.grad.item() == 30.0


def test_hooks_of_several_tensors_run_from_the_root_down(tg, leaf):
    x = leaf(1.0)
    order = []
    a = x * 2
    b = tg.exp(a)
    c = b * 3
    for name, t in (("x", x), ("a", a), ("b", b), ("c", c)):
        t.register_hook(lambda g, name=name: order.append(name))
    c.backward()
    assert order == ["c", "b", "a", "x"]


def test_a_handle_removes_its_hook_and_no_other(leaf):
    x = leaf(3.0)
    seen = []
    first = x.register_hook(lambda g: seen.append("first"))
    x.register_hook(lambda g: seen.append("second"))
    first.remove()
    (x * x).backward()
    assert seen == ["second"]


def test_a_handle_may_be_removed_twice(leaf):
    x = leaf(3.0)
    handle = x.register_hook(lambda g: g * 10)
    handle.remove()
    handle.remove()
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_a_handle_is_a_context_manager(leaf):
    x = leaf(3.0)
    with x.register_hook(lambda g: g * 10):
        (x * x).backward()
    (x * x).backward()
    assert x.grad.item() == 66.0


def test_a_hook_may_remove_itself(leaf):
    x = leaf(3.0)
    seen = []

    def once(g):
        seen.append(g.item())
        handle.remove()

    handle = x.register_hook(once)
    (x * x).backward()
    (x * x).backward()
    assert seen == [6.0]


def test_a_hook_may_be_registered_after_the_tensor_was_used(leaf):
    x = leaf(3.0)
    y = x * 2
    z = y * y
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    z.backward()
    assert seen == [12.0]


def test_a_hook_runs_at_every_backward_of_a_retained_graph(leaf):
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    z = y * y
    z.backward(retain_graph=True)
    z.backward()
    assert seen == [12.0, 12.0]


def test_a_hook_outlives_the_name_of_its_tensor(leaf):
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    z = y * y
    del y
    z.backward()
    assert seen == [12.0]


def test_a_hook_does_not_run_when_the_gradient_does_not_pass(leaf):
    x = leaf(3.0)
    y, other = x * 2, x * 3
    other.register_hook(lambda g: pytest.fail("other is not below the root"))
    (y * y).backward()


def test_a_hook_does_not_run_below_the_inputs(tg, leaf):
    x = leaf(3.0)
    y = x * 2
    x.register_hook(lambda g: pytest.fail("x lies below the input"))
    tg.autograd.grad(y * y, y)


def test_a_hook_on_an_intermediate_after_an_in_place_operation(leaf):
    """A hook belongs to the value that the tensor had when it was registered."""
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 7).backward()
    assert seen == [("after", 7.0), ("before", 35.0)]


def test_hooks_see_gradients_without_history(leaf):
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.requires_grad))
    (x * x).backward()
    assert seen == [False]


def test_hooks_under_create_graph_see_history_and_enter_it(tg, leaf):
    x = leaf(3.0)
    seen = []
    x.register_hook(lambda g: (seen.append(g.requires_grad), g * x)[1])
    (g,) = tg.autograd.grad(x * x, x, create_graph=True)
    assert seen == [True]
    assert g.item() == 18.0  # 2x * x
    x2 = tg.autograd.grad(g, x)[0]
    assert x2.item() == 12.0 * 3.0  # d(2x^2)/dx = 4x = 12, which the hook multiplies by x = 3


def test_a_hook_may_raise_and_the_error_comes_through(leaf):
    x = leaf(3.0)
    y = x * 2

    def broken(g):
        raise KeyError("broken hook")

    handle = y.register_hook(broken)
    z = y * y
    with pytest.raises(KeyError, match="broken hook"):
        z.backward()
    assert x.grad is None
    handle.remove()
    (y * 1).backward()
    assert x.grad.item() == 2.0


def test_a_hook_result_of_the_wrong_shape_is_refused(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: tg.ones(3))
    with pytest.raises(RuntimeError, match=r"(?i)size|shape"):
        (y * y).sum().backward()
    assert x.grad is None


def test_a_hook_result_that_is_not_a_tensor_is_refused(leaf):
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: 3.0)
    with pytest.raises(TypeError, match=r"hook.*float"):
        (x * x).sum().backward()
    assert x.grad is None


def test_a_tensor_that_needs_no_grad_takes_no_hook(tg):
    with pytest.raises(RuntimeError, match="require"):
        tg.tensor(1.0).register_hook(lambda g: g)


def test_a_hook_must_be_callable(leaf):
    x = leaf(1.0)

    def register_and_call():
        x.register_hook(3)
        (x * x).backward()

    with pytest.raises(TypeError):
        register_and_call()


def test_hooks_run_in_no_grad_unless_the_sweep_is_recorded(tg, leaf):
    x = leaf(3.0)
    modes = []
    x.register_hook(lambda g: modes.append(tg.is_grad_enabled()))
    tg.autograd.grad(x * x, x)
    tg.autograd.grad(x * x, x, create_graph=True)
    assert modes == [False, True]
    assert tg.is_grad_enabled()


def test_backward_inside_a_hook(tg, leaf):
    x, w = leaf(3.0), leaf(2.0)
    y = x * 2

    def inner(g):
        with tg.enable_grad():
            (w * w).backward()

    y.register_hook(inner)
    (y * y).backward()
    assert (x.grad.item(), w.grad.item()) == (24.0, 4.0)


# --------------------------------------------------------------------------------------------------
# retain_grad
# --------------------------------------------------------------------------------------------------


def test_retain_grad_keeps_the_gradient_of_an_intermediate(leaf):
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    (y * y).backward()
    assert y.grad.item() == 12.0


def test_retain_grad_accumulates_like_a_leaf(leaf):
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    z = y * y
    z.backward(retain_graph=True)
    z.backward()
    assert y.grad.item() == 24.0


def test_retain_grad_may_be_asked_for_twice(leaf):
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * y).backward()
    assert y.grad.item() == 12.0


def test_retain_grad_on_a_leaf_changes_nothing(leaf):
    x = leaf(3.0)
    x.retain_grad()
    assert x.retains_grad is False
    (x * x).backward()
    assert x.grad.item() == 6.0


def test_retain_grad_needs_a_tensor_that_requires_grad(tg):
    with pytest.raises(RuntimeError, match="require"):
        tg.tensor(1.0).retain_grad()


def test_retain_grad_sees_what_the_hooks_made_whatever_the_order(leaf):
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * y).backward()
    assert y.grad.item() == 120.0


def test_retain_grad_follows_the_tensor_through_an_in_place_operation(leaf):
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 7).backward()
    assert y.grad.item() == 7.0
    assert x.grad.item() == 70.0


def test_retain_grad_of_the_root(leaf):
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 1.0


# --------------------------------------------------------------------------------------------------
# register_post_accumulate_grad_hook
# --------------------------------------------------------------------------------------------------


def test_post_accumulate_hook_gets_the_leaf_with_its_new_grad(leaf):
    x = leaf(3.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.item())))
    (x * x).backward()
    (x * x).backward()
    assert seen == [(True, 6.0), (True, 12.0)]


def test_post_accumulate_hook_runs_after_tensor_hooks(leaf):
    x = leaf(3.0)
    order = []
    x.register_post_accumulate_grad_hook(lambda t: order.append(("post", t.grad.item())))
    x.register_hook(lambda g: (order.append(("hook", g.item())), g * 2)[1])
    (x * x).backward()
    assert order == [("hook", 6.0), ("post", 12.0)]


def test_post_accumulate_hook_may_step_and_clear(tg, leaf):
    """The optimiser step inside the sweep."""
    x = leaf([4.0])

    def step(t):
        with tg.no_grad():
            t -= 0.25 * t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    assert x.tolist() == [2.0]
    assert x.grad is None


def test_post_accumulate_hooks_run_in_order_and_can_be_removed(leaf):
    x = leaf(3.0)
    order = []
    first = x.register_post_accumulate_grad_hook(lambda t: order.append(1))
    x.register_post_accumulate_grad_hook(lambda t: order.append(2))
    (x * x).backward()
    first.remove()
    (x * x).backward()
    assert order == [1, 2, 2]


def test_post_accumulate_hook_does_not_run_for_autograd_grad(tg, leaf):
    x = leaf(3.0)
    x.register_post_accumulate_grad_hook(lambda t: pytest.fail("nothing was accumulated"))
    tg.autograd.grad(x * x, x)


def test_post_accumulate_hook_is_for_leaves_only(leaf):
    with pytest.raises(RuntimeError, match="leaf"):
        (leaf(3.0) * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_post_accumulate_hook_needs_requires_grad(tg):
    with pytest.raises(RuntimeError, match="require"):
        tg.tensor(1.0).register_post_accumulate_grad_hook(lambda t: None)


@pytest.mark.tapegrad_only("looks at the tape")
@pytest.mark.parametrize("how", ["kept", "removed", "retained"])
def test_hooks_hold_no_record(tg, leaf, how, monkeypatch):
    tape = importlib.import_module("tapegrad.tape.tape")
    monkeypatch.setattr(tape.current, "tape", tape.Tape())
    x = leaf([1.0, 2.0])
    for _ in range(6000):
        y = x * 1.0
        if how == "retained":
            y.retain_grad()
        else:
            handle = y.register_hook(lambda g: g)
            if how == "removed":
                handle.remove()
    tape = (x * 1.0).tape.whole
    assert len(tape) < 5000
    assert len(tape.hooks) < 5000


def test_what_a_hook_returns_stays_the_callers(tg, leaf):
    x, given = leaf([1.0, 2.0]), tg.ones(2)
    y = x * 1
    y.retain_grad()
    for t in (x, y):
        t.register_hook(lambda g: given)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    y.grad.mul_(5)
    assert x.grad.tolist() == [2.0, 2.0]
    assert given.tolist() == [1.0, 1.0]


def test_inputs_of_backward_that_are_no_leaves_retain_their_gradient_once(leaf):
    x = leaf([1.0, 2.0])
    for retained in (False, True):
        y = x * 2
        if retained:
            y.retain_grad()
        z = (y * y).sum()
        z.backward(inputs=[y, x], retain_graph=True)
        assert y.retains_grad
        assert y.grad.tolist() == [4.0, 8.0]
        assert x.grad.tolist() == [8.0, 16.0]
        z.backward()
        assert y.grad.tolist() == [8.0, 16.0]
        x.grad = None


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_root_that_leads_to_no_input_is_not_heard_of(tg, leaf, create_graph):
    x, w = leaf([1.0, 2.0]), leaf(3.0)
    y, z = x.sum() * 2, w * 3
    y.retain_grad()
    y.register_hook(lambda g: 1 / 0)
    assert tg.autograd.grad([y, z], [w], create_graph=create_graph, retain_graph=True)[0] == 3.0
    tg.autograd.backward([y, z], inputs=[w], create_graph=create_graph)
    assert y.grad is None
    assert w.grad.item() == 3.0


def test_retain_grad_of_a_view_follows_a_change_of_its_base(tg, leaf):
    """What is retained is the gradient of the view as it is now."""
    changes = {
        "mul_": lambda b: b.mul_(2),
        "assignment": lambda b: b.__setitem__(0, b[1] * 3),
        "zero_": lambda b: b.zero_(),
        "another view": lambda b: b[1:].mul_(2),
    }
    for change in changes.values():
        x = leaf([1.0, 3.0])
        b = x.clone()
        v = b[:1]
        v.retain_grad()
        early = v * 7
        change(b)
        assert v.retains_grad
        ((v * 5).sum() + early.sum()).backward()
        assert v.grad.tolist() == [5.0]


def test_retain_grad_of_a_view_that_is_changed_itself(tg, leaf):
    x = leaf([1.0, 3.0])
    b = x * 1
    v, w = b[:1], b[:]
    for t in (b, v, w):
        t.retain_grad()
    v.mul_(4)
    (v * 5 + w.sum() * 2).sum().backward()
    assert v.grad.tolist() == [5.0]
    assert w.grad.tolist() == [2.0, 2.0]
    assert b.grad.tolist() == [7.0, 2.0]
    assert x.grad.tolist() == [28.0, 2.0]


def test_post_accumulate_hook_may_be_a_change_in_place(leaf):
    x = leaf(2.0)
    x.register_post_accumulate_grad_hook(lambda t: t.sub_(t.grad))
    (x * 3).backward()
    assert x.item() == -1.0


def test_post_accumulate_hook_must_return_none(leaf):
    x = leaf(2.0)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="None"):
        (x * 3).backward()
