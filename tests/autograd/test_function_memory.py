"""A Function whose outputs are memory of its arguments: returned as they are, as views, changed."""

import pytest

REFUSED = "is a view"


def function(tg, forward, backward=None):
    """A Function of one argument whose gradient is that of the first output."""

    class Own(tg.autograd.Function):
        pass

    Own.forward = staticmethod(forward)
    Own.backward = staticmethod(backward or (lambda ctx, *grads: grads[0].reshape(2)))
    return lambda *args: (lambda y: y[0] if isinstance(y, tuple) else y)(Own.apply(*args))


RETURNED = {
    "itself": lambda ctx, a: a,
    "view": lambda ctx, a: a.view(2, 1),
    "slice": lambda ctx, a: a[:],
    "view of detach": lambda ctx, a: a.detach().view(-1),
    "among several": lambda ctx, a: (a.view(-1), a * 2),
    "twice": lambda ctx, a: (a, a),
}
GIVEN = {"result": lambda x: x * 1, "leaf": lambda x: x, "view": lambda x: (x * 1)[:]}


@pytest.fixture(params=RETURNED)
def apply(request, tg):
    return function(tg, RETURNED[request.param])


@pytest.mark.parametrize("given", GIVEN)
def test_it_is_a_view_with_the_functions_gradient(leaf, apply, given):
    x = leaf([1.0, 2.0])
    b = GIVEN[given](x)
    y = apply(b)
    assert y._is_view()
    assert not y.is_leaf
    (3 * y).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("seen", [lambda y: y, lambda y: y.view(-1)], ids=["itself", "view"])
def test_it_cannot_be_changed_in_place(leaf, apply, given, seen):
    b = GIVEN[given](leaf([1.0, 2.0]))
    y = apply(b)
    with pytest.raises(RuntimeError, match=REFUSED):
        seen(y).mul_(2)
    assert b.tolist() == [1.0, 2.0]


def test_it_can_be_changed_where_nothing_is_recorded(tg, leaf, apply):
    b = leaf([1.0, 2.0]) * 1
    y = apply(b)
    with tg.no_grad():
        y.mul_(2)
    assert b.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("given", ["result", "view"])
@pytest.mark.parametrize("before", [False, True], ids=["itself", "a view made before"])
def test_it_cannot_be_used_after_its_argument_was_changed(leaf, apply, given, before):
    b = GIVEN[given](leaf([1.0, 2.0]))
    y = apply(b)
    seen = y[:1] if before else y
    b.mul_(2)
    with pytest.raises(RuntimeError, match=r"(?i)in-?place"):
        seen.sum()
    assert y.detach().flatten().tolist() == [2.0, 4.0]


def test_a_clone_of_it_can_be_changed(leaf, apply):
    x = leaf([1.0, 2.0])
    y = apply(x).clone()
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.tolist() == [1.0, 2.0]


def test_a_view_of_new_memory_belongs_to_nobody_else(tg, leaf):
    x = leaf([1.0, 2.0])
    b = x * 1
    y = function(tg, lambda ctx, a: (a * 2).view(2, 1))(b)
    b.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.tapegrad_only("PyTorch refuses, though no argument is concerned")
def test_a_view_of_new_memory_can_be_changed(tg, leaf):
    x = leaf([1.0, 2.0])
    y = function(tg, lambda ctx, a: (a * 2).view(2, 1))(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert y.flatten().tolist() == [6.0, 12.0]


def test_a_constant_can_be_changed_through_it(tg, apply):
    c = tg.ones(2)
    apply(c).mul_(2)
    assert c.tolist() == [2.0, 2.0]


@pytest.mark.tapegrad_only("the transforms are tapegrad's")
def test_under_forward_mode_it_cannot_be_changed_either(tg, leaf):
    y = function(tg, lambda ctx, a: a)(leaf([1.0, 2.0]) * 1)

    def f(t):
        y.mul_(t)
        return y.sum()

    with pytest.raises(RuntimeError, match=REFUSED):
        tg.jvp(f, (tg.ones(2),), (tg.ones(2),))


NOT_RETURNED = {
    "another": lambda a: a * 1,
    "view": lambda a: a[:],
    "none": lambda a: None,
}


@pytest.mark.parametrize("returned", NOT_RETURNED)
@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_marked_dirty_must_be_returned(tg, leaf, returned, recorded):
    def forward(ctx, a):
        a.mul_(2)
        ctx.mark_dirty(a)
        return NOT_RETURNED[returned](a)

    b = leaf([1.0, 2.0]) * 1 if recorded else tg.ones(2)
    with pytest.raises(RuntimeError, match="dirty"):
        function(tg, forward)(b)


def test_what_is_marked_dirty_may_be_one_of_several_outputs(tg, leaf):
    def forward(ctx, a):
        a.mul_(2)
        ctx.mark_dirty(a)
        return a, a + 1

    x = leaf([1.0, 2.0])
    b = x * 1
    y = function(tg, forward)(b)
    assert y is b
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
