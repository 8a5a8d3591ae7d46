"""A Function whose outputs are memory of its arguments: returned as they are, as views, changed."""

import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
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


NOT_RETURNED = {"another": lambda a: a * 1, "view": lambda a: a[:], "none": lambda a: None}


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


@pytest.mark.parametrize("saved", ["nothing", "the argument", "the output"])
def test_what_is_marked_dirty_takes_its_tangent_in_place(tg, saved):
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(a, b):
            a.mul_(2)
            return a, a + b

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.mark_dirty(inputs[0])
            if saved != "nothing":
                ctx.save_for_forward(inputs[1] if saved == "the argument" else outputs[1])

        @staticmethod
        def jvp(ctx, da, db):
            da.mul_(2)
            return da, da + db

    def f(a, b):
        c = a.clone()
        y, z = Double.apply(c, b)
        assert y is c
        return c * 3, z

    values = tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])
    tangents = tg.tensor([1.0, 10.0]), tg.tensor([0.5, 0.25])
    (y, z), (dy, dz) = tg.func.jvp(f, values, tangents)
    assert y.tolist() == [6.0, 12.0]
    assert z.tolist() == [5.0, 8.0]
    assert dy.tolist() == [6.0, 60.0]
    assert dz.tolist() == [2.5, 20.25]


@pytest.mark.parametrize("slope", ["none", "given"])
def test_an_output_without_derivative_has_no_tangent(tg, slope):
    class Both(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            index = a.clone()
            ctx.mark_non_differentiable(index)
            return a * 2, index

        @staticmethod
        def jvp(ctx, da):
            return da * 2, (None if slope == "none" else da.clone())

    forward_ad = tg.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(2), tg.ones(2))
        if slope == "given":
            with pytest.raises(RuntimeError, match="return None"):
                Both.apply(x)
        else:
            y, index = Both.apply(x)
            assert forward_ad.unpack_dual(y).tangent.tolist() == [2.0, 2.0]
            assert forward_ad.unpack_dual(index).tangent is None


def test_a_saved_argument_may_be_returned_as_it_is(tg, leaf):
    seen = []

    class Same(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            seen.append(a.tolist())
            return g * a

    x = leaf([2.0, 3.0])
    Same.apply(x * 1).sum().backward()
    assert seen == [[2.0, 3.0]]
    assert x.grad.tolist() == [2.0, 3.0]


def test_both_backward_and_vjp_are_refused(tg, leaf):
    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        vjp = backward

    y = Double.apply(leaf(3.0))
    with pytest.raises(RuntimeError, match=r"vjp"):
        y.backward()


@pytest.mark.parametrize("forward", [lambda ctx, a: a, lambda ctx, a: a.view_as(a)])
def test_a_view_of_what_needs_no_gradient_is_not_written_with_one(tg, forward):
    """Nothing is recorded of the call, so nobody would know of the gradient in the argument."""
    b = tg.ones(2, requires_grad=True)
    for write in (lambda y: y.add_(b), lambda y: y.copy_(b)):
        a = tg.zeros(2)
        y = function(tg, forward)(a)
        with pytest.raises(RuntimeError, match="created inside a"):
            write(y)
        y += 1
        assert a.tolist() == [1.0, 1.0]
        with tg.no_grad():
            write(y)


def test_an_output_that_is_returned_twice_is_one_tensor(tg):
    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, x * 3, y

        @staticmethod
        def backward(ctx, first, second, third):
            return (first + third) * 2 + second * 3

    x = tg.tensor([1.0, 2.0], requires_grad=True)
    first, second, third = Twice.apply(x)
    assert first is third
    (first + second + 10 * third).sum().backward()
    assert x.grad.tolist() == [25.0, 25.0]


def test_what_is_no_argument_is_not_marked_as_changed(tg):
    class Marked(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = tg.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="mark_dirty"):
        y = Marked.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "method", [staticmethod(lambda x, n=3: x**n), classmethod(lambda cls, x, n=3: x**n)]
)
def test_setup_context_is_given_defaults_too(tg, method):
    class Power(tg.autograd.Function):
        forward = method

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = tg.tensor(2.0, requires_grad=True)
    for args, slope in (((x,), 12.0), ((x, 2), 4.0)):
        y = Power.apply(*args)
        assert tg.autograd.grad(y, x)[0].item() == slope


def test_a_gradient_that_is_handed_on_is_not_copied(tg):
    seen = []

    class Add(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            seen.append(g.data_ptr())
            return g, g

    a, b = (tg.ones(3, 2, requires_grad=True) for _ in range(2))
    Add.apply(a, b)[1][0].backward()
    assert a.grad.data_ptr() != b.grad.data_ptr()
    assert seen[0] in (a.grad.data_ptr(), b.grad.data_ptr())
    assert a.grad.tolist() == b.grad.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]


def test_a_gradient_that_somebody_keeps_is_copied(tg):
    kept = []

    class Id(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            kept.append(g)
            return g

    a = tg.ones(2, requires_grad=True)
    (Id.apply(a) + a * 2).sum().backward()
    assert kept[0].tolist() == [1.0, 1.0]
    assert a.grad.tolist() == [3.0, 3.0]
    (Id.apply(a)).sum().backward()
    a.grad.zero_()
    assert kept[1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("n", [2, 100_000])
def test_other_gradients_are_not_added_to_one_that_somebody_keeps(tg, n):
    kept = []

    class Sevens(tg.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            kept.append(g * 7)
            return kept[-1]

    x = tg.ones(n, requires_grad=True)
    y = x * 2
    ((y * 3).sum() + Sevens.apply(y).sum() + Sevens.apply(y).sum()).backward()
    assert [(g == 7).all().item() for g in kept] == [True, True]
    assert (x.grad == 34).all()
