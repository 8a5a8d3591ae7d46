"""`tg.autograd.forward_ad`: dual Tensors, and a Function's own tangents and maps."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


@pytest.fixture
def ad(tg):
    return tg.autograd.forward_ad


@pytest.fixture
def x(tg):
    return tg.tensor([1.0, 2.0, 3.0])


def same(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def test_tangents_of_operations(tg, ad, x):
    with ad.dual_level():
        d = ad.make_dual(x, tg.ones(3))
        value, tangent = ad.unpack_dual(d * d)
        same(value, [1.0, 4.0, 9.0])
        same(tangent, [2.0, 4.0, 6.0])
        assert ad.unpack_dual(x).tangent is None
        assert ad.unpack_dual(tg.ones(2)).primal.tolist() == [1.0, 1.0]


def test_forward_over_reverse(tg, ad, x):
    w = x.clone().requires_grad_()
    with ad.dual_level():
        d = ad.make_dual(w, tg.ones(3))
        (gradient,) = tg.autograd.grad((d**3).sum(), d)
        value, slope = ad.unpack_dual(gradient)
        same(value, [3.0, 12.0, 27.0])
        same(slope, [6.0, 12.0, 18.0])
        _, tangent = ad.unpack_dual((d**3).sum())
        same(tg.autograd.grad(tangent, w)[0], [6.0, 12.0, 18.0])
        (d**3).sum().backward()
    same(w.grad, [3.0, 12.0, 27.0])


def test_unused_inputs_of_a_dual_gradient(tg, ad, x):
    w, other = x.clone().requires_grad_(), tg.ones(2, requires_grad=True)
    with ad.dual_level():
        root = (ad.make_dual(w, tg.ones(3)) ** 3).sum()
        found = tg.autograd.grad(root, (w, other), allow_unused=True, retain_graph=True)
        assert found[1] is None
        with pytest.raises(RuntimeError, match=r"used"):
            tg.autograd.grad(root, (w, other))


def test_in_place(tg, ad, x):
    with ad.dual_level():
        d = ad.make_dual(x.clone(), tg.ones(3))
        view = d[1:]
        d.mul_(x)
        same(ad.unpack_dual(d).tangent, [1.0, 2.0, 3.0])
        same(ad.unpack_dual(view).tangent, [2.0, 3.0])
        view.mul_(10.0)
        same(ad.unpack_dual(d).tangent, [1.0, 20.0, 30.0])


@pytest.mark.tapegrad_only("PyTorch 2.13 reads the tangent after it has overwritten it")
def test_in_place_with_itself(tg, ad, x):
    with ad.dual_level():
        d = ad.make_dual(x.clone(), tg.ones(3))
        d.mul_(d)
        same(ad.unpack_dual(d).tangent, [2.0, 4.0, 6.0])


def test_levels(tg, ad, x):
    with pytest.raises(RuntimeError, match=r"level"):
        ad.make_dual(x, x)
    with pytest.raises(RuntimeError, match=r"level|Dual"):
        ad.exit_dual_level()
    assert ad.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match=r"[Nn]ested"):
        ad.enter_dual_level()
    d = ad.make_dual(x, x)
    with pytest.raises(RuntimeError):
        ad.make_dual(d, x)
    ad.exit_dual_level()
    assert ad.unpack_dual(d).tangent is None
    same(d * 2, [2.0, 4.0, 6.0])


def test_duals_that_are_left_over_are_ordinary_and_views_of_them_still_views(tg, ad, x):
    w = x.clone().requires_grad_()
    with ad.dual_level():
        z = ad.make_dual(w, x) ** 2
        view = z[1:]
    z.mul_(2.0)
    same(view, [8.0, 18.0])
    same(tg.autograd.grad(view.sum(), w)[0], [0.0, 8.0, 12.0])


def test_a_level_ends_with_an_exception(tg, ad, x):
    with pytest.raises(ZeroDivisionError), ad.dual_level():
        raise ZeroDivisionError
    with ad.dual_level():
        same(ad.unpack_dual(ad.make_dual(x, x) + 1).tangent, [1.0, 2.0, 3.0])


def test_tangents_are_checked(tg, ad, x):
    with ad.dual_level():
        with pytest.raises(RuntimeError, match=r"size|shape"):
            ad.make_dual(x, x[:2])
        with pytest.raises(ValueError, match=r"floating"):
            ad.make_dual(x, tg.arange(3))
        with pytest.raises(ValueError, match=r"floating"):
            ad.make_dual(tg.arange(3), x)


@pytest.mark.tapegrad_only("the NumPy face")
def test_transforms_inside_a_level_keep_tangents(tg, ad):
    with ad.dual_level():
        d = ad.make_dual(tg.tensor(3.0), tg.tensor(1.0))
        found = tg.grad(lambda a: a * d * d)(2.0)
        same(ad.unpack_dual(found).primal, 9.0)
        same(ad.unpack_dual(found).tangent, 6.0)


# -- Functions ---------------------------------------------------------------------------------


@pytest.fixture
def square(tg):
    class Square(tg.autograd.Function):
        @staticmethod
        def forward(a, k):
            return a * a * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            a, ctx.k = inputs
            ctx.save_for_backward(a)
            ctx.save_for_forward(a)

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 2 * a * ctx.k * g, None

    return Square


@pytest.fixture
def complete(square):
    class Complete(square):
        generate_vmap_rule = True

        @staticmethod
        def jvp(ctx, t, k):
            assert k is None
            (a,) = ctx.saved_tensors
            return 2 * a * ctx.k * t

    return Complete


def test_a_function_without_rules_says_what_to_define(tg, ad, square, x):
    with pytest.raises(NotImplementedError, match=r"jvp"):
        tg.func.jvp(lambda a: square.apply(a, 2.0), (x,), (x,))
    with ad.dual_level(), pytest.raises(NotImplementedError, match=r"jvp"):
        square.apply(ad.make_dual(x, x), 2.0)
    with pytest.raises(RuntimeError, match=r"generate_vmap_rule"):
        tg.func.vmap(lambda a: square.apply(a, 2.0))(x)


def test_a_function_under_transforms_in_any_order(tg, complete, x):
    def f(a):
        return complete.apply(a, 2.0).sum()

    m = tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    same(tg.func.jvp(f, (x,), (tg.ones(3),))[1], 24.0)
    same(tg.func.vmap(f)(m), [28.0, 154.0])
    same(tg.func.vmap(tg.func.grad(f))(m), 4 * m.numpy())
    same(tg.func.grad(lambda m: tg.func.vmap(f)(m).sum())(m), 4 * m.numpy())
    same(tg.func.vmap(lambda a: tg.func.jvp(f, (a,), (x,))[1])(m), [56.0, 128.0])
    same(tg.func.jvp(tg.func.vmap(f), (m,), (m,))[1], [56.0, 308.0])
    same(tg.func.hessian(f)(x), 4 * np.eye(3))
    same(tg.func.vmap(tg.func.hessian(f))(m)[1], 4 * np.eye(3))
    same(tg.func.vmap(tg.func.vmap(f))(m.reshape(1, 2, 3)), [[28.0, 154.0]])


def test_forward_over_reverse_through_a_function(tg, ad, complete, x):
    w = x.clone().requires_grad_()
    with ad.dual_level():
        value, tangent = ad.unpack_dual(complete.apply(ad.make_dual(w, x), 1.0))
        same(tg.autograd.grad(tangent.sum(), w)[0], [2.0, 4.0, 6.0])
        same(tg.autograd.grad(value.sum(), w)[0], [2.0, 4.0, 6.0])


def test_an_argument_that_is_the_same_for_all_examples(tg):
    class Product(tg.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(a, b):
            return a * b, a + b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g, h):
            a, b = ctx.saved_tensors
            return g * b + h, g * a + h

    m, b = tg.ones(4, 3), tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    product, total = tg.func.vmap(lambda a: Product.apply(a, b))(m)
    same(tg.autograd.grad(product.sum() + total.sum(), b)[0], [8.0, 8.0, 8.0])


def test_a_rule_of_its_own_for_maps(tg, square):
    seen = []

    class Mapped(square):
        @staticmethod
        def vmap(info, in_dims, a, k):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(a.shape)))
            return square.apply(a.movedim(in_dims[0], 0), k).T, 1

    m = tg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = tg.func.vmap(lambda a: Mapped.apply(a, 2.0), in_dims=1)(m.T)
    same(found, 2 * m.numpy() ** 2)
    ((size, randomness, in_dims, shape),) = seen
    assert (size, randomness, in_dims[1]) == (2, "error", None)
    assert shape[in_dims[0]] == 2


def test_wrong_rules(tg, square, complete, x):
    class Shape(square):
        @staticmethod
        def jvp(ctx, t, k):
            return tg.ones(2)

    class Count(square):
        @staticmethod
        def jvp(ctx, t, k):
            return t, t

    class Both(complete):
        @staticmethod
        def vmap(info, in_dims, a, k):
            return a, 0

    class Pair(square):
        @staticmethod
        def vmap(info, in_dims, a, k):
            return a

    for wrong in (Shape, Count):
        with pytest.raises(RuntimeError, match=r"jvp|forward grad"):
            tg.func.jvp(lambda a, w=wrong: w.apply(a, 1.0), (x,), (x,))
    for wrong in (Both, Pair):
        with pytest.raises(RuntimeError, match=r"vmap"):
            tg.func.vmap(lambda a, w=wrong: w.apply(a, 1.0))(x)


def test_a_tangent_without_a_tangent_of_its_own_is_taken(tg):
    ad = tg.autograd.forward_ad
    with ad.dual_level():
        d = ad.make_dual(tg.ones(2), tg.zeros(2))
        with pytest.raises(RuntimeError, match="same level"):
            ad.make_dual(tg.ones(2), d)
        primal = ad.unpack_dual(d).primal
        assert ad.unpack_dual(ad.make_dual(tg.zeros(2), primal)).tangent.tolist() == [1.0, 1.0]


def test_every_unpacking_gives_a_new_view_and_the_tangent_itself(tg):
    forward_ad = tg.autograd.forward_ad
    value, slope = tg.ones(2), tg.ones(2)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(value, slope)
        first, second = forward_ad.unpack_dual(x), forward_ad.unpack_dual(x)
        assert first.primal is not second.primal
        assert first.tangent is second.tangent is slope
        first.primal.mul_(3)
        assert forward_ad.unpack_dual(x).primal.tolist() == value.tolist() == [3.0, 3.0]
        slope.mul_(5)
        assert forward_ad.unpack_dual(x * 1).tangent.tolist() == [5.0, 5.0]


def test_a_change_in_place_changes_the_tangent_that_was_given(tg):
    forward_ad = tg.autograd.forward_ad
    value, slope = tg.ones(2), tg.ones(2)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(value, slope)
        x *= 2
        assert forward_ad.unpack_dual(x).tangent is slope
        y = x * 1.0
        y *= 2  # which is another value
        assert forward_ad.unpack_dual(y).tangent.tolist() == [4.0, 4.0]
    assert value.tolist() == slope.tolist() == [2.0, 2.0]


def test_a_tangent_that_lies_in_another_way_stays_as_it_is(tg):
    forward_ad = tg.autograd.forward_ad
    slope = tg.ones(1).expand(3)
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(3), slope)
        x *= 2
        assert forward_ad.unpack_dual(x).tangent.tolist() == [2.0, 2.0, 2.0]
    assert slope.tolist() == [1.0, 1.0, 1.0]


def of_tangent(tg, forward, jvp):
    """What a Function of one argument makes of a dual Tensor."""
    body = {"forward": staticmethod(forward), "jvp": staticmethod(jvp)}
    function = type("Tried", (tg.autograd.Function,), body)
    forward_ad = tg.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(3), tg.ones(3))
        return forward_ad.unpack_dual(function.apply(x)).tangent.tolist()


@pytest.mark.parametrize(
    ("jvp", "right"),
    [
        (lambda ctx, t: t[:2], True),
        (lambda ctx, t: t[:2].clone(), False),
        (lambda ctx, t: t.clone()[:2], False),
    ],
)
def test_the_tangent_of_a_view_is_a_view_of_the_tangent(tg, jvp, right):
    def forward(ctx, x):
        return x[:2]

    if right:
        assert of_tangent(tg, forward, jvp) == [1.0, 1.0]
    else:
        with pytest.raises(RuntimeError, match="view"):
            of_tangent(tg, forward, jvp)


@pytest.mark.parametrize(
    ("jvp", "right"),
    [(lambda ctx, t: t.view_as(t), True), (lambda ctx, t: t, False), (lambda ctx, t: t * 2, False)],
)
def test_the_tangent_of_an_argument_as_it_is_is_a_view_of_the_tangent(tg, jvp, right):
    if right:
        assert of_tangent(tg, lambda ctx, x: x, jvp) == [1.0, 1.0, 1.0]
    else:
        with pytest.raises(RuntimeError, match="view"):
            of_tangent(tg, lambda ctx, x: x, jvp)


@pytest.mark.parametrize(
    ("jvp", "right"),
    [(lambda ctx, t: t.mul_(2), True), (lambda ctx, t: t, False), (lambda ctx, t: t * 2, False)],
)
def test_what_is_changed_in_place_has_its_tangent_changed_in_place(tg, jvp, right):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    if right:
        assert of_tangent(tg, forward, jvp) == [2.0, 2.0, 2.0]
    else:
        with pytest.raises(RuntimeError, match=r"in ?place"):
            of_tangent(tg, forward, jvp)


def test_jvp_sees_what_was_saved_for_forward_alone(tg):
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def jvp(ctx, t):
        seen.append(len(ctx.saved_tensors))
        return t

    def forward_too(ctx, x):
        ctx.save_for_forward(x, None)
        return forward(ctx, x)

    of_tangent(tg, forward, jvp)
    of_tangent(tg, forward_too, jvp)
    assert seen == [0, 2]


def test_a_dual_tensor_prints_its_tangent(tg):
    forward_ad = tg.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(tg.ones(2), tg.zeros(2))
        assert repr(x) == "tensor([1., 1.], tangent=tensor([0., 0.]))"
        assert repr(forward_ad.unpack_dual(x).primal) == "tensor([1., 1.])"
