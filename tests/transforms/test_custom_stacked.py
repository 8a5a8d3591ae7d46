"""Rules of the user's own that take derivatives themselves, and what they may not do."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([1.0, 2.0, 3.0])


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_rule_that_is_jvp_itself():
    c = tg.custom_jvp(np.sin)
    c.defjvp(lambda primals, tangents: tg.jvp(np.sin, primals, tangents))
    same(tg.jacrev(c)(X), np.diag(np.cos(X)))
    same(tg.vjp(c, X)[1](X)[0], np.cos(X) * X)
    same(tg.jacrev(lambda x: c(c(x)))(X), np.diag(np.cos(np.sin(X)) * np.cos(X)))
    w = tg.tensor(X, requires_grad=True)
    c(w).sum().backward()
    same(w.grad, np.cos(X))


@pytest.fixture
def cube():
    found = tg.custom_vjp(lambda x: x**3)
    found.defvjp(lambda x: (x**3, x), lambda x, g: tg.vjp(lambda z: z**3, x)[1](g))
    return found


def test_a_rule_that_calls_vjp(cube):
    slope = 3 * X**2
    same(tg.jacfwd(cube)(X), np.diag(slope))
    same(tg.linearize(cube, X)[1](X), slope * X)
    same(tg.vmap(lambda g: tg.vjp(cube, X)[1](g)[0])(np.eye(3)), np.diag(slope))
    pullback = tg.vjp(cube, X)[1]
    same(tg.vmap(lambda s: s * pullback(X)[0])(X), np.outer(X, slope * X))


def test_a_rule_that_calls_vjp_when_a_map_around_the_sweep_is_opened_later(cube):
    pullback = tg.vjp(cube, X)[1]
    same(tg.vmap(lambda s: s * pullback(X)[0])(X), np.outer(X, 3 * X**3))
    w = tg.tensor(X, requires_grad=True)
    y = cube(w)

    def swept(s):
        (g,) = tg.autograd.grad(y, w, tg.tensor(X), create_graph=True)
        return s * (g * g)

    same(tg.vmap(swept)(X).detach(), np.outer(X, (3 * X**3) ** 2))


def test_a_rule_that_a_sweep_inside_of_a_map_calls_once(cube):
    def swept(s):
        w = tg.tensor(X, requires_grad=True)
        cube(w).sum().backward()
        return s * w.grad

    same(tg.vmap(swept)(X), np.outer(X, 3 * X**2))


def test_a_function_of_the_users_that_calls_vjp_inside_of_a_map():
    class Cube(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return tg.vjp(lambda z: z**3, x.detach())[1](g)[0]

    def swept(s):
        w = tg.tensor(X, requires_grad=True)
        return s * tg.autograd.grad(Cube.apply(w).sum(), w)[0]

    same(tg.vmap(swept)(X), np.outer(X, 3 * X**2))


def by_vjp(s, x):
    f = tg.custom_vjp(lambda q: q * s)
    f.defvjp(lambda q: (q * s, None), lambda _, g: (g * s,))
    return f(x)


def by_jvp(s, x):
    f = tg.custom_jvp(lambda q: q * s)
    f.defjvp(lambda p, t: (p[0] * s, t[0] * s))
    return f(x)


def by_the_rule_alone(s, x):
    f = tg.custom_vjp(lambda q: q * 1.0)
    f.defvjp(lambda q: (q * 1.0, None), lambda _, g: (g * s,))
    return f(x)


@pytest.mark.parametrize("f", [by_vjp, by_jvp, by_the_rule_alone])
@pytest.mark.parametrize("outer", [tg.grad, lambda h: lambda x: tg.jvp(h, (x,), (1.0,)), tg.jacfwd])
def test_what_was_not_given_as_an_argument(f, outer):
    with pytest.raises(RuntimeError, match="as an argument"):
        outer(lambda s: tg.grad(lambda x: f(s, x))(2.0))(3.0)


@pytest.mark.parametrize("f", [by_vjp, by_jvp, by_the_rule_alone])
def test_constants_from_outside_need_not_be_arguments(f):
    assert tg.grad(lambda x: f(3.0, x))(2.0) == 3.0
    inner = lambda s: tg.grad(lambda x: f(tg.stop_gradient(s), x))(2.0) * s
    assert tg.grad(inner)(3.0) == 3.0


RULES = {
    "clipped": lambda x, g: (tg.clamp(2 * x * g, -1.0, 1.0),),
    "clipped far out": lambda x, g: (tg.clamp(2 * x * g, -100.0, 100.0),),
    "rescaled": lambda x, g: (2 * x * g / np.maximum(1.0, np.sqrt(np.sum(g * g))),),
    "detached": lambda x, g: (2 * x * tg.stop_gradient(g),),
    "rounded": lambda x, g: (np.round(2 * x * g),),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_that_are_not_linear_have_no_tangents(name):
    f = tg.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (x**2, x), RULES[name])
    tg.grad(lambda x: f(x).sum())(X)
    summed = lambda x: tg.jvp(f, (x,), (x,))[1].sum()
    for forward in (tg.jacfwd(f), tg.jit(tg.jacfwd(f)), tg.vmap(summed), tg.grad(summed)):
        with pytest.raises(RuntimeError, match="is not linear in the gradient that it is given"):
            forward(X)
    many = lambda x: np.concatenate([f(x)] * 20)
    same(tg.jacobian(many)(X), tg.jacrev(many)(X))


def solved_by_iteration(a, b):
    """x = a x + b, and its adjoint in the same way: neither does anything with zeros."""

    def iterated(a, b):
        going_on = lambda c: np.max(np.abs(c[1] - c[0])) > 1e-12
        return tg.while_loop(going_on, lambda c: (c[1], a @ c[1] + b), (0 * b, b))[1]

    def backward(kept, g):
        a, x = kept
        adjoint = iterated(a.T, g)
        return np.outer(adjoint, x), adjoint

    solve = tg.custom_vjp(iterated)
    solve.defvjp(lambda a, b: (lambda x: (x, (a, x)))(solve(a, b)), backward)
    return solve(a, b)


def mapped(f):
    return lambda *x: tg.jit(tg.vmap(f))(*[v[None] for v in x])[0]


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit, mapped], ids=["eager", "jit", "map"])
@pytest.mark.parametrize("of", [lambda f: f, lambda f: tg.grad(f, argnums=1)])
def test_a_rule_that_iterates_is_linear_where_the_gradient_is_not_zero(wrap, of):
    a, b = np.array([[0.2, 0.1], [-0.3, 0.4]]), np.array([1.0, -2.0])
    f = lambda a, b: np.sum(solved_by_iteration(a, b) ** 3)
    exact = lambda a, b: np.sum(np.linalg.solve(np.eye(2) - a, b) ** 3)
    tangents = (np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([0.3, 0.7]))
    forward = lambda f: wrap(lambda a, b: tg.jvp(of(f), (a, b), tangents)[1])
    np.testing.assert_allclose(forward(f)(a, b), forward(exact)(a, b), rtol=1e-7)
