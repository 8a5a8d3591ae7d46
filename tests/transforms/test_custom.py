"""Derivatives of the user's own, and what derivatives treat specially."""

import functools

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import current

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1])


@tg.custom_vjp
def scaled(x, y):
    """sin(x) y, whose derivatives are said to be twice and three times what they are."""
    return np.sin(x) * y


scaled.defvjp(
    lambda x, y: (scaled(x, y), (x, y)),
    lambda kept, g: (2.0 * np.cos(kept[0]) * kept[1] * g, 3.0 * np.sin(kept[0]) * g),
)


@tg.custom_jvp
def fivefold(x):
    """exp(x), whose derivative is said to be five times what it is."""
    return np.exp(x)


fivefold.defjvp(
    lambda primals, tangents: (fivefold(*primals), 5.0 * fivefold(*primals) * tangents[0])
)


def along(x):
    return scaled(x, 2.0 * x)


def slope(x):  # 2 cos(x) 2x + 3 sin(x) 2
    return 4 * x * np.cos(x) + 6 * np.sin(x)


def curvature(x):
    return 10 * np.cos(x) - 4 * x * np.sin(x)


def third(x):
    return -14 * np.sin(x) - 4 * x * np.cos(x)


def forward(f):
    return lambda x: tg.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("a", [tg.grad, forward, tg.jacfwd, tg.jacrev])
@pytest.mark.parametrize("b", [tg.grad, forward, tg.jacfwd, tg.jacrev])
def test_custom_rules_in_every_mix(a, b):
    assert float(a(along)(0.4)) == pytest.approx(slope(0.4))
    assert float(a(b(along))(0.4)) == pytest.approx(curvature(0.4))
    assert float(a(b(tg.grad(along)))(0.4)) == pytest.approx(third(0.4))
    assert float(a(fivefold)(0.4)) == pytest.approx(5 * np.exp(0.4))
    assert float(a(b(fivefold))(0.4)) == pytest.approx(25 * np.exp(0.4))
    assert float(a(b(tg.grad(fivefold)))(0.4)) == pytest.approx(125 * np.exp(0.4))


@pytest.mark.parametrize("mode", [tg.jacfwd, tg.jacrev])
def test_custom_rules_of_arrays_and_under_maps(mode):
    np.testing.assert_allclose(mode(along)(X), np.diag(slope(X)))
    np.testing.assert_allclose(mode(fivefold)(X), np.diag(5 * np.exp(X)))
    np.testing.assert_allclose(tg.vmap(mode(along))(X), slope(X))
    np.testing.assert_allclose(tg.vmap(mode(mode(along)))(X), curvature(X))
    np.testing.assert_allclose(mode(tg.vmap(along))(X), np.diag(slope(X)))
    np.testing.assert_allclose(tg.vmap(mode(mode(fivefold)))(X), 25 * np.exp(X))
    np.testing.assert_allclose(tg.vmap(scaled, (0, None))(X, 2.0), 2 * np.sin(X))
    h = mode(tg.grad(lambda x: np.sum(along(x))))(X)
    np.testing.assert_allclose(h, np.diag(curvature(X)), atol=1e-14)


def test_arguments_that_are_not_differentiated():
    @functools.partial(tg.custom_vjp, nondiff_argnums=(0,))
    def times(k, x):
        return k * np.sin(x)

    times.defvjp(lambda k, x: (times(k, x), x), lambda k, x, g: (10.0 * k * np.cos(x) * g,))
    assert tg.grad(lambda x: times(3.0, x))(0.4) == pytest.approx(30 * np.cos(0.4))

    @functools.partial(tg.custom_jvp, nondiff_argnums=(1,))
    def applied(x, f):
        return f(x)

    applied.defjvp(lambda f, p, t: (applied(p[0], f), 7.0 * t[0] * f(p[0])))
    for mode in (tg.grad, forward, lambda f: lambda x: tg.vmap(tg.grad(f))(np.array([x]))[0]):
        assert mode(lambda x: applied(x, np.sin))(0.4) == pytest.approx(7 * np.sin(0.4))


@pytest.mark.parametrize("kind", [tg.custom_vjp, tg.custom_jvp])
def test_arguments_by_name_and_defaults(kind):
    f = kind(lambda x, n=2, k=1.0: k * x**n)
    if kind is tg.custom_vjp:
        forward = lambda x, n, k: (k * x**n, (x, n, k))
        f.defvjp(forward, lambda kept, g: (g * kept[2] * kept[1] * kept[0], None, None))
    else:
        f.defjvps(lambda t, y, x, n, k: k * n * x * t, None, None)
    for wrap in (lambda f: f, tg.jit):
        assert wrap(tg.grad(lambda x: f(x, k=3.0)))(5.0) == 30.0
        assert wrap(tg.grad(lambda x: f(n=2, x=x)))(5.0) == 10.0
    assert f(2.0, k=3.0) == 12.0
    with pytest.raises(TypeError, match="keyword alone"):
        kind(lambda x, *, n: x**n)(2.0, n=3)


def test_tangents_by_each_argument_apart():
    f = tg.custom_jvp(lambda x, y: {"p": x * y, "s": x + y})
    f.defjvps(
        lambda t, r, x, y: {"p": t * y, "s": 7 * t}, lambda t, r, x, y: {"p": t * x, "s": 5 * t}
    )
    g = lambda x, y: tg.tree_reduce(lambda a, b: a + b, f(x, y))
    assert tg.grad(g, argnums=(0, 1))(2.0, 3.0) == (10.0, 7.0)
    assert tg.jvp(g, (2.0, 3.0), (1.0, 10.0)) == (11.0, 80.0)
    assert tg.hessian(lambda v: g(v[0], v[1]))(np.array([2.0, 3.0]))[0, 1] == 1.0
    f.defjvps(None, None)
    assert tg.grad(g)(2.0, 3.0) == 0.0
    f.defjvps(None)
    with pytest.raises(TypeError, match="1 functions for 2 arguments"):
        tg.grad(g)(2.0, 3.0)
    along = tg.custom_jvp(lambda h, x: h(x), nondiff_argnums=(0,))
    along.defjvps(lambda h, t, y, x: 2 * tg.jvp(h, (x,), (t,))[1])
    assert tg.grad(lambda x: along(np.sin, x))(0.0) == 2.0


def test_rules_over_pytrees():
    @tg.custom_vjp
    def norm(p):
        return {"n": np.sum(p["a"] ** 2) + p["b"]}

    norm.defvjp(lambda p: (norm(p), p), lambda p, g: ({"a": p["a"] * g["n"], "b": 0.0},))
    found = tg.grad(lambda p: norm(p)["n"])({"a": X, "b": 1.0})
    np.testing.assert_allclose(found["a"], X)
    assert found["b"] == 0.0


def test_rules_may_return_plain_arrays_and_numbers():
    c = tg.custom_vjp(lambda x, y: x * y)
    c.defvjp(lambda x, y: (x * y, None), lambda _, g: (2.0, np.float64(3.0)))
    assert tg.grad(lambda x, y: c(x, y), (0, 1))(1.0, 1.0) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("returned", "problem", "match"),
    [
        ((1.0,), ValueError, "the rule of product returned 1 gradients for 2 arguments"),
        ((np.ones(3), 1.0), ValueError, r"gradient of shape \(3,\) for an argument of shape \(\)"),
        (("no", 1.0), TypeError, "the rule of product returned a gradient of type str"),
    ],
)
def test_rules_that_return_something_else(returned, problem, match):
    @tg.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, None), lambda _, g: returned)
    with pytest.raises(problem, match=match):
        tg.grad(lambda x: product(x, 2.0))(1.0)


def test_functions_without_a_rule():
    for make, name in ((tg.custom_vjp, "defvjp"), (tg.custom_jvp, "defjvp")):
        f = make(lambda x: x * 2)
        assert f(3.0) == 6.0
        with pytest.raises(RuntimeError, match=rf"is not defined: call `\.{name}"):
            tg.grad(f)(3.0)
        with pytest.raises(TypeError, match=f"`custom_{name[3:]}` takes a function, got int"):
            make(3)


def test_stop_gradient():
    f = lambda x: x * x * tg.stop_gradient(np.sin(x))
    assert tg.grad(f)(0.4) == pytest.approx(0.8 * np.sin(0.4))
    assert tg.jvp(f, (0.4,), (1.0,))[1] == pytest.approx(0.8 * np.sin(0.4))
    np.testing.assert_allclose(tg.vmap(tg.hessian(f))(X), 2 * np.sin(X))
    frozen = tg.grad(lambda x: x * float(tg.stop_gradient(x)))
    assert frozen(3.0) == 3.0
    assert tg.stop_gradient({"a": [1.0, X]})["a"][1] is X


# -- checkpoint ------------------------------------------------------------------------------------


def chain(x):
    for _ in range(5):
        x = np.sin(x) * np.exp(-x)
    return np.sum(x)


def test_checkpoint_has_the_same_derivatives():
    f = tg.checkpoint(chain)
    np.testing.assert_allclose(tg.grad(f)(X), tg.grad(chain)(X), rtol=1e-14)
    np.testing.assert_allclose(tg.hessian(f)(X), tg.hessian(chain)(X), rtol=1e-12)
    np.testing.assert_allclose(tg.jvp(f, (X,), (X,)), tg.jvp(chain, (X,), (X,)), rtol=1e-12)
    many = np.stack([X, X + 1])
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(many), tg.vmap(tg.grad(chain))(many))
    twice = tg.checkpoint(lambda x: f(x) * f(2 * x))
    plain = lambda x: chain(x) * chain(2 * x)
    np.testing.assert_allclose(tg.grad(twice)(X), tg.grad(plain)(X), rtol=1e-13)


@pytest.mark.parametrize("wrap", [tg.checkpoint, lambda f: f])
def test_checkpoint_of_a_closure_and_around_transforms(wrap):
    f = lambda w: tg.grad(lambda x: wrap(lambda y: np.sin(y * w) * w)(x**2))(w)
    # d/dx w sin(w x^2) at x = w: 2 w^3 cos(w^3)
    w = 0.6
    assert f(w) == pytest.approx(2 * w**3 * np.cos(w**3))
    assert tg.grad(f)(w) == pytest.approx(6 * w**2 * np.cos(w**3) - 6 * w**5 * np.sin(w**3))
    inner = lambda x: wrap(lambda y: tg.grad(lambda z: np.sin(z * y) * x)(y))(x)
    assert tg.grad(inner)(w) == pytest.approx(2 * w * np.cos(w**2) - 2 * w**3 * np.sin(w**2))
    mapped = lambda x: np.sum(wrap(lambda y: tg.vmap(lambda z: np.sin(z * y[0]) * x[1])(y))(x))
    np.testing.assert_allclose(
        tg.grad(mapped)(X), tg.grad(lambda x: np.sum(np.sin(x * x[0]) * x[1]))(X), rtol=1e-12
    )


def held_values(f):
    """How many arrays the records keep after a call."""
    start = current.tape.next
    x = tg.tensor(X, requires_grad=True)
    y = f(x)
    first = current.tape.index(start)
    kept = [
        value
        for entry in current.tape.keep[first:]
        for value in (entry if isinstance(entry, tuple) else ())
        if isinstance(value, np.ndarray)
    ]
    y.backward()
    return len(kept)


def test_checkpoint_keeps_less():
    assert held_values(chain) >= 15
    assert held_values(tg.checkpoint(chain)) == 0


def test_checkpoint_of_something_that_is_not_the_same_twice():
    calls = []

    def f(x):
        calls.append(1)
        return np.sin(x) if len(calls) == 1 else np.sin(np.sin(x))

    with pytest.raises(RuntimeError, match="`checkpoint`: the function did other operations"):
        tg.grad(tg.checkpoint(f))(0.5)


# -- check_grads -----------------------------------------------------------------------------------


def test_check_grads_passes_what_is_right():
    tg.check_grads(lambda x: np.sin(x) * x, (X,), order=3)
    tg.check_grads(lambda p: {"o": np.sin(p["a"]) * p["b"]}, ({"a": X, "b": 2.0},))
    tg.check_grads(lambda x: (x**2).sum(), (tg.tensor(X),), modes=("rev",))


def test_check_grads_of_complex_numbers():
    z = X * (1.0 + 0.5j)
    tg.check_grads(lambda z: np.abs(np.sin(z)) ** 2, (z,))
    tg.check_grads(lambda z: np.fft.fft(z * np.conj(z) + 1j * z), (z,))
    tg.check_grads(lambda z: np.angle(z) + z.imag, (1.1 + 1.2j,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_check_grads_sees_imaginary_parts(mode):
    def wrong(z):
        return np.real(z) + 1j * tg.stop_gradient(np.imag(z))

    with pytest.raises(AssertionError, match=f"in mode '{mode}'"):
        tg.check_grads(wrong, (X * (1.0 + 0.5j),), order=1, modes=(mode,))


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_check_grads_catches_an_error_of_a_thousandth(mode):
    wrong = tg.custom_vjp(np.sin)
    wrong.defvjp(lambda x: (np.sin(x), x), lambda x, g: (1.001 * np.cos(x) * g,))
    with pytest.raises(AssertionError, match=f"in mode '{mode}' the derivative of"):
        tg.check_grads(lambda x: wrong(x) * 2, (X,), order=1, modes=(mode,))
    first = tg.custom_vjp(np.sin)  # right at the first order alone
    first.defvjp(
        lambda x: (np.sin(x), tg.stop_gradient(np.cos(x))), lambda c, g: (tg.stop_gradient(c) * g,)
    )
    tg.check_grads(lambda x: first(x) * 2, (X,), order=1, modes=(mode,))
    with pytest.raises(AssertionError, match="the derivative of d"):
        tg.check_grads(lambda x: first(x) * 2, (X,), order=2, modes=(mode,))
    with pytest.raises(ValueError, match="`check_grads`: modes are 'fwd' and 'rev'"):
        tg.check_grads(np.sin, (X,), modes=("forward",))
