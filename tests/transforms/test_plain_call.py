"""Calls of functions with rules of the user's own: what the rules are given, and what is kept."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compat.autograd import defvjp, primitive
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1])


def function(rule):
    class Threefold(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 3.0 * x

        @staticmethod
        def backward(ctx, g):
            return rule(ctx.saved_tensors[0], g)

    return Threefold.apply


def custom(rule):
    f = tg.custom_vjp(lambda x: 3.0 * x)
    f.defvjp(lambda x: (3.0 * x, x), lambda x, g: (rule(x, g),))
    return f


def own(rule):
    f = primitive(lambda x: 3.0 * x)
    defvjp(f, lambda ans, x: lambda g: rule(x, g))
    return f


def along(rule):
    f = tg.custom_jvp(lambda x: 3.0 * x)
    f.defjvp(lambda primals, tangents: (3.0 * primals[0], rule(primals[0], tangents[0])))
    return f


KINDS = pytest.mark.parametrize("kind", [function, custom, own])


def numbers(x):
    return np.array(x.detach() if isinstance(x, tg.Tensor) else x)


def pull(f, x, other):
    """The gradient in `x` of a sum in which an operation follows, and one goes beside."""
    t = tg.tensor(x, requires_grad=True)
    u = 2.0 * t
    (f(u) * other + u).sum().backward()
    return t.grad.numpy()


@KINDS
@pytest.mark.parametrize("size", [1, 3, 5000])
def test_a_rule_may_keep_what_it_is_given(kind, size):
    kept = []

    def rule(x, g):
        kept.append((g, numbers(g)))
        return 3.0 * g

    f = kind(rule)
    for k in range(1, 5):
        x = np.linspace(0.1, 1.0, size) * k
        np.testing.assert_allclose(pull(f, x, float(k)), 6.0 * k + 2.0)
    for given, then in kept:
        np.testing.assert_array_equal(numbers(given), then)


@KINDS
def test_a_rule_may_return_what_it_keeps(kind):
    held = np.ones(3)
    mine = tg.ones(3)
    f = kind(lambda x, g: mine if isinstance(g, tg.Tensor) else held)
    for _ in range(3):
        t = tg.tensor(X, requires_grad=True)
        u = 2.0 * t
        (f(u) + f(u) + 5.0 * u).sum().backward()
        np.testing.assert_array_equal(t.grad.numpy(), 14.0)
    assert held.tolist() == mine.tolist() == [1.0, 1.0, 1.0]


@KINDS
def test_a_rule_may_hand_on_and_change_what_it_is_given(kind):
    f = kind(lambda x, g: g)
    np.testing.assert_allclose(pull(f, X, 4.0), 10.0)

    def changed(x, g):
        g *= 5.0
        return g

    np.testing.assert_allclose(pull(kind(changed), X, 4.0), 42.0)


@KINDS
def test_nothing_is_recorded_while_a_rule_runs_in_a_plain_sweep(kind):
    counts = []

    def rule(x, g):
        before = current.tape.next
        found = 3.0 * g + 0.0 * x
        counts.append(current.tape.next - before)
        return found

    f = kind(rule)
    for transform in (tg.grad, lambda f: lambda x: tg.vjp(f, x)[1](1.0)[0]):
        found = transform(lambda x: np.sum(f(f(2.0 * x))))(X)
        np.testing.assert_allclose(found, 18.0)
    assert counts == [0] * 4


@pytest.mark.parametrize("kind", [function, custom, own, along])
def test_derivatives_of_every_order(kind):
    f = kind(lambda x, g: g * x * x)  # said to be x^2, whose derivative is 2 x
    total = lambda x: np.sum(f(x))
    np.testing.assert_allclose(tg.grad(total)(X), X**2)
    np.testing.assert_allclose(tg.grad(lambda x: np.sum(tg.grad(total)(x)))(X), 2.0 * X)
    np.testing.assert_allclose(tg.hessian(total)(X), np.diag(2.0 * X))
    t = tg.tensor(X, requires_grad=True)
    (g,) = tg.autograd.grad(f(t).sum(), t, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), t)
    np.testing.assert_allclose(h.numpy(), 2.0 * X)


@pytest.mark.parametrize("kind", [custom, own, along])
def test_what_is_differentiated_and_no_argument_is_refused(kind):
    w = tg.tensor(2.0, requires_grad=True)
    f = kind(lambda x, g: w * g)
    t = tg.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="is not among its arguments"):
        f(t).sum().backward()


@KINDS
def test_an_argument_that_was_changed_in_place_is_refused(kind):
    f = kind(lambda x, g: g * x)
    t = tg.tensor(X, requires_grad=True)
    u = 2.0 * t
    y = f(u)
    u += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@KINDS
def test_a_result_may_be_changed_in_place(kind):
    f = kind(lambda x, g: g * x)
    t = tg.tensor(X, requires_grad=True)
    y = f(t)
    y *= 2.0
    y.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), 2.0 * X)
    np.testing.assert_allclose(t.detach().numpy(), X)


@KINDS
def test_abandoned_chains_are_reclaimed_at_once(kind):
    current.tape.reclaim()
    before = len(current.tape)
    f = kind(lambda x, g: g)
    t = tg.tensor(X, requires_grad=True)
    y = t * 1.0
    for _ in range(200):
        y = f(y)
    del y
    current.tape.reclaim()
    assert len(current.tape) <= before + 2


@pytest.mark.parametrize("kind", [custom, own])
def test_arguments_of_all_kinds_and_results_of_several(kind):
    def two(x, k, name, y):
        return {"a": x * y, "b": k * x}

    def rule(x, k, name, y, g):
        return g["a"] * y + k * g["b"], None, None, g["a"] * x

    if kind is custom:
        f = tg.custom_vjp(two)
        f.defvjp(lambda *a: (two(*a), a), lambda a, g: rule(*a, g))
    else:
        f = primitive(two)
        defvjp(f, *[lambda ans, *a, k=k: lambda g: rule(*a, g)[k] for k in range(4)])
    total = lambda x, y: np.sum(f(x, 2, "name", y)["a"]) + 3.0 * np.sum(f(x, 2, "name", y)["b"])
    gx, gy = tg.grad(total, (0, 1))(X, X**2)
    np.testing.assert_allclose(gx, X**2 + 6.0)
    np.testing.assert_allclose(gy, X)
    assert tg.grad(lambda x: total(x, 5.0))(2.0) == 11.0
