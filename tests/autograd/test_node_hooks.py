"""`grad_fn` as PyTorch's users know it: a type, a function, hooks, and an order of its inputs."""

import gc

import pytest


def function(tg):
    class Both(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b, a + b

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return g * b + h, g * a + h

    return Both.apply


def is_leaf_node(node):
    return type(node).__name__ == "AccumulateGrad"


# -- names and inputs --------------------------------------------------------------------------


def test_the_type_has_the_name_of_the_derivative(tg, leaf):
    x = leaf([1.0, 2.0])
    for y, name in (
        (x * x, "MulBackward0"), (x + 1, "AddBackward0"), (x.exp(), "ExpBackward0"),
        (function(tg)(x, x)[0], "BothBackward"),
    ):  # fmt: skip
        assert type(y.grad_fn).__name__ == y.grad_fn.name() == name
        assert isinstance(y.grad_fn, tg.autograd.graph.Node)
    assert type(x.exp().grad_fn) is type(x.exp().grad_fn)
    assert type(x.exp().grad_fn) is not type(x.sin().grad_fn)
    accumulate = x.exp().grad_fn.next_functions[0][0]
    assert is_leaf_node(accumulate)
    assert accumulate.variable is x
    assert accumulate.next_functions == ()


def test_a_number_comes_last_on_whichever_side_it_stood(tg, leaf):
    for b in (leaf(3.0), leaf([1.0, 2.0]), leaf([[1.0]])):
        for y in (2 * b, b * 2, 2 + b, b + 2):
            (first, _), (second, _) = y.grad_fn.next_functions
            assert is_leaf_node(first)
            assert second is None
    x = leaf([1.0, 2.0])
    (first, _), (second, _) = (tg.ones(2) * x).grad_fn.next_functions
    assert first is None
    assert is_leaf_node(second)


def test_several_results_have_one_node(tg, leaf):
    y, z = function(tg)(leaf(2.0), leaf(3.0))
    assert y.grad_fn == z.grad_fn
    assert (y.output_nr, z.output_nr, leaf(1.0).output_nr) == (0, 1, 0)
    (first, nr), _ = (z * y).grad_fn.next_functions
    assert first == z.grad_fn
    assert nr == 1
    assert len(y.grad_fn.next_functions) == 2


def test_the_graph_can_be_walked_after_its_tensors_are_gone(leaf):
    x = leaf([1.0])
    node = (x.exp().sin() * 2).cos().grad_fn
    gc.collect()
    for _ in range(3000):
        _ = x * 2
    names = []
    while node is not None:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == ["CosBackward0", "MulBackward0", "SinBackward0", "ExpBackward0",
                     "AccumulateGrad"]  # fmt: skip


# -- as a function -----------------------------------------------------------------------------


def test_it_is_called_with_the_adjoint_of_its_result(tg, leaf):
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    g = tg.tensor([1.0, 10.0])
    a, b = (x * y).grad_fn(g)
    assert (a.tolist(), b.tolist()) == ([3.0, 40.0], [1.0, 20.0])
    a, none = (x * 2).grad_fn(g)
    assert a.tolist() == [2.0, 20.0]
    assert none is None
    assert (x * y).sum().grad_fn(tg.tensor(2.0)).tolist() == [2.0, 2.0]
    assert x.grad is None


def test_what_it_gives_is_recorded_in_grad_mode(tg, leaf):
    x = leaf(3.0)
    y = x.exp()
    assert y.grad_fn(tg.tensor(1.0)).requires_grad
    with tg.no_grad():
        assert not y.grad_fn(tg.tensor(1.0)).requires_grad


@pytest.mark.tapegrad_only("PyTorch 2.13 cannot call that of a Function")
def test_that_of_a_function_takes_all_its_gradients(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    first, second = function(tg)(x, y)
    a, b = first.grad_fn(tg.tensor(1.0), tg.tensor(10.0))
    assert (a.item(), b.item()) == (13.0, 12.0)
    with pytest.raises(TypeError):
        second.grad_fn(tg.tensor(1.0))


def test_that_of_a_leaf_adds_to_its_gradient(tg, leaf):
    x = leaf([1.0, 2.0])
    accumulate = (x * 2).grad_fn.next_functions[0][0]
    accumulate(tg.ones(2))
    accumulate(tg.ones(2))
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.tapegrad_only("PyTorch's check less, and may crash")
def test_wrong_calls_are_refused(tg, leaf):
    y = leaf([1.0, 2.0]) * 2
    with pytest.raises(TypeError, match="takes 1 gradients, got 2"):
        y.grad_fn(tg.ones(2), tg.ones(2))
    with pytest.raises(TypeError, match="takes Tensors or None, got float"):
        y.grad_fn(1.0)
    with pytest.raises(RuntimeError, match=r"of shape \(2,\), got \(3,\)"):
        y.grad_fn(tg.ones(3))
    z = y.exp()
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.grad_fn(tg.ones(2))


# -- hooks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 40000])
def test_hooks_see_what_goes_in_and_comes_out(tg, leaf, size):
    x = leaf([1.0] * size)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda out: seen.append(("before", out[0][0].item())))
    y.grad_fn.register_hook(
        lambda into, out: seen.append(("after", into[0][0].item(), into[1], out[0][0].item()))
    )
    (y * 3).sum().backward()
    assert seen == [("before", 3.0), ("after", 6.0, None, 3.0)]
    assert x.grad[0].item() == 6.0


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_replace_gradients(tg, leaf, create_graph):
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * w
    y.grad_fn.register_prehook(lambda out: (out[0] * 10,))
    y.grad_fn.register_hook(lambda into, out: (into[0] + 1, into[1]))
    found = tg.autograd.grad(y.sum(), (x, w), create_graph=create_graph)
    assert [g.tolist() for g in found] == [[31.0, 41.0], [10.0, 20.0]]


def test_hooks_of_a_function_with_several_results(tg, leaf):
    x, y = leaf(2.0), leaf(3.0)
    first, _ = function(tg)(x, y)
    seen = []
    first.grad_fn.register_prehook(lambda out: seen.append([g and g.item() for g in out]))
    first.grad_fn.register_hook(lambda into, out: seen.append([g.item() for g in into]))
    first.backward()
    assert seen == [[1.0, None], [3.0, 2.0]]
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)


def test_hooks_on_what_adds_gradients_to_a_leaf(leaf):
    x = leaf([1.0])
    y = x * 2
    accumulate = y.grad_fn.next_functions[0][0]
    seen = []
    x.register_hook(lambda g: seen.append("tensor"))
    accumulate.register_prehook(lambda out: seen.append(("before", x.grad, out[0].item())))
    accumulate.register_hook(lambda into, out: seen.append(("after", into, x.grad.item())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("post"))
    y.backward(gradient=x.detach())
    assert seen == ["tensor", ("before", None, 2.0), "post", ("after", (), 2.0)]


def test_a_handle_removes_its_hook(leaf):
    x = leaf([1.0])
    y = x * 2
    calls = []
    handles = [
        y.grad_fn.register_hook(lambda into, out: calls.append(1)),
        y.grad_fn.register_prehook(lambda out: calls.append(2)),
        y.grad_fn.next_functions[0][0].register_hook(lambda into, out: calls.append(3)),
    ]
    for handle in handles:
        handle.remove()
    y.sum().backward()
    assert calls == []


def test_arguments_of_a_function_that_are_no_tensors_have_no_place(tg, leaf):
    class ScaledSum(tg.autograd.Function):
        @staticmethod
        def forward(ctx, scale, x, more, y):
            return x * scale + y

        @staticmethod
        def backward(ctx, g):
            return None, g * 2, None, g

    x, y = leaf(1.0), leaf(2.0)
    z = ScaledSum.apply(2.0, x * 1, [3], y)
    assert [node.name().split("::")[-1] for node, _ in z.grad_fn.next_functions] == [
        "MulBackward0", "AccumulateGrad",
    ]  # fmt: skip
    seen = []
    z.grad_fn.register_hook(lambda into, out: seen.append([g.item() for g in into]))
    z.grad_fn.register_hook(lambda into, out: (into[0] * 10, into[1] * 100))
    z.backward()
    assert seen == [[2.0, 1.0]]
    assert [x.grad.item(), y.grad.item()] == [20.0, 100.0]


def test_no_hook_of_a_node_runs_that_the_sweep_does_not_enter(tg, leaf):
    x = leaf([1.0])
    y = x * 2
    z = y * 3
    y.grad_fn.register_prehook(lambda out: pytest.fail("not entered"))
    assert tg.autograd.grad(z.sum(), y)[0].tolist() == [3.0]


@pytest.mark.tapegrad_only("the messages are ours")
def test_what_a_hook_returns_is_checked(leaf):
    for answer, problem, match in (
        ((1.0, None), TypeError, "returns None or a Tensor, got float"),
        ((None,), RuntimeError, "was given 2 gradients and returned 1"),
    ):
        y = leaf([1.0]) * 2
        y.grad_fn.register_hook(lambda into, out, answer=answer: answer)
        with pytest.raises(problem, match=match):
            y.sum().backward()


# -- what was saved ----------------------------------------------------------------------------


def test_saved_inputs_are_the_tensors_themselves(tg, leaf):
    x = leaf(2.0)
    z = x * 3
    first, _ = function(tg)(x, z)
    a, b = first.grad_fn.saved_tensors
    assert a is x
    assert b is z
    assert isinstance(first.grad_fn.saved_tensors, tuple)


def test_saved_tensors_that_were_released_are_an_error(tg, leaf):
    first, _ = function(tg)(leaf(2.0), leaf(3.0))
    first.backward()
    with pytest.raises(RuntimeError):
        _ = first.grad_fn.saved_tensors


# -- places on the graph -----------------------------------------------------------------------


def test_gradients_are_asked_for_at_a_place(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 2
    first, second = function(tg)(y, x)
    z = (first * second).sum()
    edges = [tg.autograd.graph.get_gradient_edge(t) for t in (x, y, first, second)]
    expected = tg.autograd.grad(z, (x, y, first, second), retain_graph=True)
    found = tg.autograd.grad(z, edges, retain_graph=True)
    assert [g.tolist() for g in found] == [g.tolist() for g in expected]
    assert tg.autograd.grad(z, edges[1], retain_graph=True)[0].tolist() == expected[1].tolist()
    assert isinstance(edges[3], tg.autograd.graph.GradientEdge)
    assert edges[3].output_nr == 1
    z.backward(inputs=[edges[0]])
    assert x.grad.tolist() == expected[0].tolist()
    with pytest.raises((RuntimeError, ValueError)):
        tg.autograd.graph.get_gradient_edge(tg.ones(1))


def test_an_edge_takes_gradients_of_its_own_shape_and_kind(tg):
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    edge = tg.autograd.graph.get_gradient_edge(x.sin())
    with pytest.raises(RuntimeError, match="shape"):
        tg.autograd.grad(edge, (x,), grad_outputs=tg.ones(3))
    with pytest.raises(RuntimeError, match="same dtype"):
        tg.autograd.grad(edge, (x,), grad_outputs=tg.ones(2, dtype=tg.complex64))


def test_no_zeros_are_made_for_an_edge(tg):
    x, y = (tg.ones(2, requires_grad=True).clone() for _ in range(2))
    edge = tg.autograd.graph.get_gradient_edge(y)
    out = x.sum()
    used, unused = tg.autograd.grad(
        out, (tg.autograd.graph.get_gradient_edge(x), y), materialize_grads=True, retain_graph=True
    )
    assert used.tolist() == [1.0, 1.0]
    assert unused.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="GradientEdge"):
        tg.autograd.grad(out, (x, edge), materialize_grads=True)


def test_prehooks_hear_of_what_backward_accumulates(tg):
    x = tg.tensor(1.0, requires_grad=True)
    y = x.clone()
    told = []
    y.grad_fn.register_prehook(lambda gs: told.append("record") or tuple(2 * g for g in gs))
    y.register_hook(lambda g: told.append("tensor") or 3 * g)
    (y * 1).backward(inputs=(y,), retain_graph=True)
    assert told == ["tensor", "record"]
    assert y.grad.item() == 3.0
    told.clear()
    (g,) = tg.autograd.grad(y * 1, y, retain_graph=True)
    assert told == ["tensor"]
    assert g.item() == 3.0
    told.clear()
    (y * 1).backward()
    assert told == ["tensor", "record"]
    assert x.grad.item() == 6.0


def test_what_is_accumulated_by_hand_stays_the_callers(tg, leaf):
    x, given = leaf([1.0, 2.0]), tg.ones(2)
    node = (x * 1).grad_fn.next_functions[0][0]
    with tg.no_grad():
        node(given)
    x.grad.mul_(5)
    assert given.tolist() == [1.0, 1.0]


def test_sums_of_weights_of_scalars_are_gradients_like_others(tg, leaf):
    x = leaf(3.0)
    for _ in range(2):  # the second adds in place
        tg.autograd.backward([x, x, x * 2])
    x.grad.mul_(2)
    assert x.grad.item() == 16.0
    (g,) = tg.autograd.grad([x, x * 2], [x])
    assert g.add_(1.0).item() == 4.0


def test_sums_at_a_scalar_under_detect_anomaly_are_gradients_like_others(tg, leaf):
    x = leaf(3.0)
    with tg.autograd.detect_anomaly():
        (x * x + x).backward()
    (x * x + x).backward()
    assert x.grad.item() == 14.0


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_create_graph_share_no_memory(tg, leaf):
    x, y, weight = leaf([1.0, 2.0]), leaf([3.0, 4.0]), tg.ones(2)
    (x + y).backward(weight, create_graph=True)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert y.grad.tolist() == weight.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_create_graph_may_be_changed_in_place(tg, leaf):
    x = leaf([1.0, 2.0])
    y = x * 1
    y.retain_grad()
    (x.sum() + y.sum()).backward(create_graph=True)  # an expanded number
    (x * tg.tensor([10.0, 20.0])).sum().backward()
    assert x.grad.tolist() == [12.0, 22.0]
    assert x.grad.mul_(0.5).tolist() == [6.0, 11.0]
    assert y.grad.mul_(3.0).tolist() == [3.0, 3.0]
