"""Transforms of compiled functions, compiled transforms, and records of compiled functions."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([0.5, 1.0, -2.0])


def wave(x):
    return np.sum(np.sin(x) ** 2 * x)


def waves(x):
    return np.sin(x) * x[0]


def close(found, wanted):
    a, tree = tg.transforms.pytree.flatten(found)
    b, other = tg.transforms.pytree.flatten(wanted)
    assert tree == other
    for x, y in zip(a, b, strict=True):
        assert type(x) is type(y)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-14)


# -- transforms --------------------------------------------------------------------------------

TRANSFORMED = {
    "grad": tg.grad(wave),
    "value_and_grad": tg.value_and_grad(wave),
    "grad of grad": lambda x: tg.grad(lambda y: tg.grad(wave)(y).sum())(x),
    "strict grad": tg.grad(wave, strict=True),
    "vjp": lambda x: tg.vjp(waves, x)[1](x),
    "jvp": lambda x: tg.jvp(waves, (x,), (x,)),
    "linearize": lambda x: tg.linearize(waves, x)[1](x),
    "jacobian": tg.jacobian(waves),
    "jacfwd": tg.jacfwd(waves),
    "jacrev": tg.jacrev(waves),
    "hessian": tg.hessian(wave),
    "hvp": lambda x: tg.hvp(wave)(x, x),
    "vhp": lambda x: tg.vhp(wave)(x, x),
    "vmap": lambda x: tg.vmap(lambda v: v * np.sum(x))(x),
    "vmap of grad": lambda x: tg.vmap(tg.grad(lambda v: np.sum(np.sin(v * x))))(x),
    "grad of vmap": tg.grad(lambda x: np.sum(tg.vmap(lambda v: v * wave(x))(x))),
    "jvp of grad": lambda x: tg.jvp(tg.grad(wave), (x,), (x,))[1],
    "vmap of hessian": lambda x: tg.vmap(tg.hessian(wave))(np.stack([x, x * 2]) + x),
    "checkpoint": tg.grad(lambda x: tg.checkpoint(wave)(np.cos(x))),
    "hessian of checkpoint": tg.hessian(lambda x: tg.checkpoint(wave)(np.cos(x))),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_compiled_transforms(name):
    f = TRANSFORMED[name]
    jitted = tg.jit(f)
    for scale in (1.0, -0.5):
        close(jitted(scale * X), f(scale * X))
    assert jitted.cache_info().traces == 1


COMPILED = tg.jit(wave), tg.jit(waves)
OF_COMPILED = {
    "grad": lambda f, g, x: tg.grad(f)(x),
    "value_and_grad": lambda f, g, x: tg.value_and_grad(f)(x),
    "vjp": lambda f, g, x: tg.vjp(g, x)[1](x),
    "jvp": lambda f, g, x: tg.jvp(g, (x,), (x,)),
    "linearize": lambda f, g, x: tg.linearize(g, x)[1](x),
    "jacobian": lambda f, g, x: tg.jacobian(g)(x),
    "jacfwd": lambda f, g, x: tg.jacfwd(g)(x),
    "jacrev": lambda f, g, x: tg.jacrev(g)(x),
    "hessian": lambda f, g, x: tg.hessian(f)(x),
    "hvp": lambda f, g, x: tg.hvp(f)(x, x),
    "vmap": lambda f, g, x: tg.vmap(f)(np.stack([x, 2 * x])),
    "vmap of grad": lambda f, g, x: tg.vmap(tg.grad(f))(np.stack([x, 2 * x])),
    "grad of vmap": lambda f, g, x: tg.grad(lambda x: np.sum(tg.vmap(f)(tg.stack([x, x * 2]))))(x),
    "checkpoint": lambda f, g, x: tg.grad(tg.checkpoint(f))(x),
    "jit": lambda f, g, x: tg.jit(lambda x: f(x) + g(x))(x),
    "jit of grad of jit": lambda f, g, x: tg.jit(tg.grad(lambda x: f(g(x))))(x),
    "grad of jit of grad": lambda f, g, x: tg.grad(lambda x: tg.jit(tg.grad(f))(x).sum())(x),
}


@pytest.mark.parametrize("name", OF_COMPILED)
def test_transforms_of_compiled_functions(name):
    transform = OF_COMPILED[name]
    close(transform(*COMPILED, X), transform(wave, waves, X))


def test_argnums_pytrees_and_aux_under_jit():
    def f(p, x, scale):
        return np.sum(p["w"] * x) * scale + p["b"][0], {"kept": x * scale, "n": 3}

    derivative = tg.value_and_grad(f, argnums=(0, 2), has_aux=True)
    given = {"w": X, "b": (2.0,)}, X + 1, 0.5
    close(tg.jit(derivative)(*given), derivative(*given))


def test_strict_under_jit():
    f = tg.jit(tg.grad(lambda x, y: np.sum(x), argnums=(0, 1), strict=True))
    with pytest.raises(RuntimeError, match=r"does not depend on leaf 1 of its arguments"):
        f(X, X)
    g = tg.jit(tg.grad(lambda x, y: np.sum(tg.stop_gradient(x) * y), strict=True))
    with pytest.raises(RuntimeError, match=r"does not depend on leaf 0 of its arguments"):
        g(X, X)


def test_stopped_gradients_under_jit():
    def without(x):
        with tg.no_grad():
            y = x * x
        return np.sum(y * x)

    stopped = {
        "stop_gradient": lambda x: np.sum(tg.stop_gradient(x * x) * x),
        "detach": lambda x: np.sum((x * x).detach() * x),
        "no_grad": without,
    }
    for f in stopped.values():
        for transform in (tg.grad, tg.hessian, lambda f: lambda x: tg.jvp(f, (x,), (x,))):
            if f is without and transform is not tg.grad:
                continue
            close(tg.jit(transform(f))(X), transform(f)(X))
    close(tg.jit(tg.grad(stopped["stop_gradient"]))(X), X * X)


def test_numbers_of_values_that_gradients_pass_are_refused():
    f = tg.jit(tg.grad(lambda x: x * x.item()))
    with pytest.raises(RuntimeError, match=r"would lose its gradient"):
        f(2.0)
    assert tg.jit(tg.grad(lambda x: x * tg.stop_gradient(x).item()))(2.0) == 2.0


# -- derivatives of the user's own -------------------------------------------------------------


@tg.custom_vjp
def clipped(x):
    return x * 2


clipped.defvjp(lambda x: (x * 2, x), lambda kept, g: (tg.clamp(g, -1.0, 1.0) * kept,))


@tg.custom_jvp
def steep(x):
    return 2.0 * x


@steep.defjvp
def _(primals, tangents):
    return steep(*primals), 20.0 * tangents[0] * primals[0]


class Tripled(tg.autograd.Function):
    """exp, with three times its derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return tg.exp(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return 3 * g * y

    @staticmethod
    def jvp(ctx, t):
        (y,) = ctx.saved_tensors
        return 3 * t * y


@pytest.mark.parametrize("own", [clipped, steep, Tripled.apply], ids=["vjp", "jvp", "Function"])
@pytest.mark.parametrize("count", [1, 2])
def test_derivatives_of_the_users_own(own, count):
    def scalar(x):
        return np.sum(own(x * 0.3) ** 2)

    # A rule that clips is not linear: there are no tangents by it.
    by_weights = lambda f, x: tg.vjp(f, x)[1](1.0)
    along = by_weights if own is clipped else lambda f, x: tg.jvp(f, (x,), (x,))
    makers = (
        lambda f: tg.grad(f),
        lambda f: tg.hessian(f),
        lambda f: lambda x: along(f, x),
        lambda f: lambda x: tg.vmap(f)(np.stack([x, -x])),
        lambda f: lambda x: tg.vmap(tg.grad(f))(np.stack([x, -x])),
        lambda f: lambda x: tg.grad(lambda x: np.sum(tg.vmap(f)(tg.stack([x, -x]))))(x),
    )
    for make in makers[:: 1 if count == 1 else 2]:
        f = scalar if count == 1 else lambda x: scalar(x) * scalar(x)
        jitted = tg.jit(make(f))
        for scale in (1.0, 0.5):
            close(jitted(scale * X), make(f)(scale * X))
        assert jitted.cache_info().traces == 1


class Both(tg.autograd.Function):
    """Two outputs, a number, and a third output without a gradient."""

    @staticmethod
    def forward(ctx, x, factor, y):
        ctx.factor = factor
        product, kept = x * factor * y, x + y
        ctx.save_for_backward(x, y, kept)
        places = (x > 0).to(tg.float64)
        ctx.mark_non_differentiable(places)
        return product, kept, places

    @staticmethod
    def backward(ctx, g, h, _):
        x, y, kept = ctx.saved_tensors
        assert ctx.needs_input_grad[1] is False
        return g * ctx.factor * y + h, None, g * ctx.factor * x + h * kept


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1), (0, 1, 2), (2,)])
def test_a_function_of_several_outputs(used):
    def f(x, y):
        outputs = Both.apply(x, 3, y)
        return sum(np.sum(np.sin(outputs[k])) for k in used) * 1.0 + np.sum(x)

    g = tg.grad(f, argnums=(0, 1))
    close(tg.jit(g)(X, X + 1), g(X, X + 1))
    same = tg.grad(lambda x: f(x, x))
    close(tg.jit(same)(X), same(X))

    def second(x, y):
        return tg.grad(lambda x: np.sum(tg.grad(f)(x, x + y) * x))(x)

    close(tg.jit(second)(X, X + 1), second(X, X + 1))


class Doubling(tg.autograd.Function):
    """Changes its argument in place."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 20


class Identity(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


def test_functions_that_change_or_return_their_argument():
    def f(x):
        y = x * 1.0
        z = Doubling.apply(y)
        return np.sum(y * z)

    for g in (tg.grad(f), tg.grad(lambda x: np.sum(Identity.apply(x) * x))):
        close(tg.jit(g)(X), g(X))


def test_a_backward_that_must_not_be_differentiated():
    class Once(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @tg.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    close(tg.jit(tg.grad(lambda x: np.sum(Once.apply(x))))(X), np.full(3, 2.0))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        tg.jit(tg.hessian(lambda x: np.sum(Once.apply(x) ** 2)))(X)


def test_a_backward_with_the_wrong_number_of_gradients_says_so():
    class Wrong(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match=r"Wrong.backward.*incorrect number of gradients"):
        tg.jit(tg.grad(lambda x: np.sum(Wrong.apply(x))))(X)


# -- Tensors that require grad -----------------------------------------------------------------


def leaf(x=X):
    return tg.tensor(x, requires_grad=True)


def test_a_call_is_one_record():
    f = tg.jit(lambda x, y: np.sum(np.sin(x) * y) / 3)
    x, y = leaf(), leaf(X + 1)
    z = f(x, y)
    assert [r.op for r in z.tape.whole][-2:].count("output") <= 1
    records = len(z.tape.whole)
    w = f(x, y)
    assert len(w.tape.whole) - records <= 2
    assert z.grad_fn is not None
    z.backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos(X) * (X + 1) / 3)
    np.testing.assert_allclose(y.grad.numpy(), np.sin(X) / 3)
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_several_results_of_which_some_are_used():
    f = tg.jit(lambda x, k: {"a": x * 2, "b": (x.sum(), (x > 0).to(tg.int64)), "c": k})
    x = leaf()
    found = f(x, 4)
    assert found["c"] == 4
    assert not found["b"][1].requires_grad
    found["b"][0].backward(retain_graph=True)
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    (found["a"] * found["b"][0]).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1 + 2 * X.sum() + 2 * X.sum())


def test_second_and_third_order_through_the_tape():
    def f(x):
        return (np.sin(x) * x**2).sum()

    x, y = leaf(), leaf()
    total, plain = tg.jit(f)(x), f(y)
    for _ in range(3):
        (total,) = tg.autograd.grad(total, x, create_graph=True)
        (plain,) = tg.autograd.grad(plain, y, create_graph=True)
        np.testing.assert_allclose(total.detach().numpy(), plain.detach().numpy(), rtol=1e-12)
        total, plain = (total * total).sum(), (plain * plain).sum()


def test_mixed_arguments_and_no_grad():
    f = tg.jit(lambda t, a, s: (t * a).sum() * s)
    x = leaf()
    f(x, X, 2.0).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X)
    with tg.no_grad():
        assert not f(x, X, 2.0).requires_grad
    assert not f(x.detach(), X, 2.0).requires_grad


def test_tensors_are_watched_for_changes():
    x = leaf()
    y = x * 1
    z = tg.jit(lambda x: (x * x).sum())(y)
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_gradcheck_of_a_compiled_function():
    f = tg.jit(lambda x, y: np.tanh(x) @ y)
    given = leaf(), leaf(X * 0.3)
    assert tg.autograd.gradcheck(f, given)
    assert tg.autograd.gradgradcheck(f, given)


def test_a_branch_under_a_record():
    f = tg.jit(lambda x: (x * x).sum() if x.sum() > 0 else (3 * x).sum())
    for x in (leaf(), leaf(-X), leaf()):
        f(x).backward()
        wanted = 2 * x.detach().numpy() if x.sum() > 0 else np.full(3, 3.0)
        np.testing.assert_allclose(x.grad.numpy(), wanted)
