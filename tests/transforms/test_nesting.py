"""Transforms in transforms: nobody takes another's perturbation for its own.

The many more nestings of `tests/peers/nesting_cases.py` are compared with JAX.
"""

import itertools

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([0.3, 0.7, -1.1])
MATRIX = np.arange(12.0).reshape(3, 4) / 10 - 0.4


def reverse(f):
    return tg.grad(f)


def forward(f):
    return lambda x: tg.jvp(f, (x,), (1.0,))[1]


def linear(f):
    return lambda x: tg.linearize(f, x)[1](1.0)


def pulled(f):
    return lambda x: tg.vjp(f, x)[1](1.0)[0]


MODES = (reverse, forward, linear, pulled)
two = pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, MODES)))
three = pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(MODES, MODES, MODES)))


@two
def test_siskind_and_pearlmutter(outer, inner):
    """d/dx (x * d/dy (x + y)) is 1; who confuses the two perturbations answers 2."""
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0


@two
def test_inner_derivative_of_a_product_with_the_outer_variable(outer, inner):
    # d/dx (x * d/dy (x y^2) at 2) = d/dx (4 x^2)
    assert outer(lambda x: x * inner(lambda y: x * y * y)(2.0))(3.0) == pytest.approx(24.0)


@two
def test_inner_derivative_at_the_outer_variable(outer, inner):
    # d/dx (x * (d/dy x sin y at y = x)) = d/dx (x^2 cos x)
    found = outer(lambda x: x * inner(lambda y: x * np.sin(y))(x))(0.7)
    assert found == pytest.approx(2 * 0.7 * np.cos(0.7) - 0.49 * np.sin(0.7))


@two
def test_an_inner_function_that_ignores_its_variable(outer, inner):
    assert outer(lambda x: x + inner(lambda y: x * 1.0)(2.0))(3.0) == 1.0
    assert outer(lambda x: x * 2 + 0 * inner(lambda y: 3.0 * y)(x))(3.0) == 2.0


@three
def test_third_derivatives_in_every_mix(a, b, c):
    found = a(b(c(lambda x: np.sin(x) * x)))(0.6)
    assert found == pytest.approx(-3 * np.sin(0.6) - 0.6 * np.cos(0.6), rel=1e-12)


@three
def test_three_variables_in_three_levels(a, b, c):
    # f = d/dx [ x * d/dy ( y * d/dz (x y z^2) at z = 1 ) at y = x ] with d/dz = 2 x y
    found = a(lambda x: x * b(lambda y: y * c(lambda z: x * y * z * z)(1.0))(x))(0.5)
    assert found == pytest.approx(12 * 0.5**2)  # d/dx (x * 4 x y) at y = x: d/dx 4 x^3


def test_a_closure_over_an_outer_dual():
    def outer(w):
        return w * tg.jvp(lambda x: w * x * x, (3.0,), (w,))[1]

    # w * (2 w x w) = 6 w^3 at x = 3
    assert tg.jvp(outer, (2.0,), (1.0,)) == (48.0, 72.0)
    assert tg.grad(outer)(2.0) == 72.0
    assert tg.grad(tg.grad(outer))(2.0) == 72.0


@pytest.mark.parametrize("mode", MODES)
def test_a_gradient_of_a_map_that_closes_over_the_variable(mode):
    def f(w):
        return np.sum(tg.vmap(lambda x: np.sin(w * x) * w)(X))

    expected = np.sum(np.sin(0.4 * X) + 0.4 * X * np.cos(0.4 * X))
    assert mode(f)(0.4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_a_map_whose_examples_differentiate_a_closure(mode):
    def f(w):
        return np.sum(tg.vmap(tg.grad(lambda x: np.sin(w * x)))(X))

    expected = np.sum(np.cos(0.4 * X) - 0.4 * X * np.sin(0.4 * X))
    assert mode(f)(0.4) == pytest.approx(expected, rel=1e-12)


def quartic(x):
    return np.sum(x**2) ** 2


def quartic_hessian(x):
    return 8 * np.outer(x, x) + 4 * np.sum(x**2) * np.eye(len(x))


@pytest.mark.parametrize("outer", [tg.jacfwd, tg.jacrev, tg.jacobian])
@pytest.mark.parametrize("inner", [tg.jacfwd, tg.jacrev, tg.jacobian, tg.grad])
def test_hessians_in_every_mix(outer, inner):
    np.testing.assert_allclose(outer(inner(quartic))(X), quartic_hessian(X), rtol=1e-12)


@pytest.mark.parametrize("outer", [tg.jacfwd, tg.jacrev])
@pytest.mark.parametrize("inner", [tg.jacfwd, tg.jacrev])
def test_whole_matrices_under_a_map(outer, inner):
    found = tg.vmap(outer(inner(quartic)), in_axes=1, out_axes=-1)(MATRIX)
    for k, x in enumerate(MATRIX.T):
        np.testing.assert_allclose(found[..., k], quartic_hessian(x), rtol=1e-11, atol=1e-13)


def test_hessian_of_a_map_and_map_of_a_hessian():
    many = tg.vmap(tg.hessian(quartic))(MATRIX)
    whole = tg.hessian(lambda m: np.sum(tg.vmap(quartic)(m)))(MATRIX)
    for i, x in enumerate(MATRIX):
        np.testing.assert_allclose(many[i], quartic_hessian(x), rtol=1e-11)
        np.testing.assert_allclose(whole[i, :, i], quartic_hessian(x), rtol=1e-11)
        for j in range(3):
            if i != j:
                assert not whole[i, :, j].any()


@pytest.mark.parametrize("mode", [tg.jacfwd, tg.jacrev])
def test_jacobians_of_jacobians_of_operations_without_a_jvp_of_their_own(mode):
    """`prod` is differentiated forward by transposing its rule, at several levels here."""
    x = np.array([2.0, 3.0, 5.0])
    found = mode(tg.jacfwd(np.prod))(x)
    np.testing.assert_allclose(found, [[0, 5, 3], [5, 0, 2], [3, 2, 0]], atol=1e-12)


def test_maps_of_maps_along_different_axes():
    a, b = MATRIX, MATRIX.T.copy() + 1
    found = tg.vmap(lambda row: tg.vmap(lambda col: row @ col, in_axes=1)(b))(a)
    np.testing.assert_allclose(found, a @ b)
    found = tg.vmap(tg.vmap(lambda x, y: x - y, (0, None)), (None, 0), out_axes=1)(X, X + 1)
    np.testing.assert_allclose(found, X[:, None] - (X + 1))
    deep = tg.vmap(tg.vmap(tg.vmap(lambda x: x * 2, 2, 2), 1, 1), 0)(np.ones((2, 3, 4, 5, 2)))
    assert deep.shape == (2, 3, 4, 5, 2)


def elliptic(y):
    return np.sin(y) * np.exp(y[0] * y) * y[1]


@pytest.mark.parametrize("around", ["map", "forward", "reverse"])
@pytest.mark.parametrize("kind", ["vjp", "linearize"])
def test_linear_functions_made_outside_of_a_map_inside_of_another_transform(around, kind):
    """Weights are lifted further inside than what was recorded."""

    def matrix(x):
        if kind == "vjp":
            return tg.vmap(tg.vjp(elliptic, x)[1])(np.eye(3))[0]
        return tg.vmap(tg.linearize(elliptic, x)[1])(np.eye(3)).T

    points = np.stack([X, X + 1])
    if around == "map":
        expected = np.stack([tg.jacfwd(elliptic)(x) for x in points])
        np.testing.assert_allclose(tg.vmap(matrix)(points), expected, rtol=1e-12)
        return
    expected = tg.jacfwd(tg.jacfwd(elliptic))(X)
    if around == "forward":
        found = tg.jvp(matrix, (X,), (X + 2,))[1]
        np.testing.assert_allclose(found, expected @ (X + 2), rtol=1e-11)
    else:
        weight = np.arange(9.0).reshape(3, 3)
        found = tg.grad(lambda x: np.sum(matrix(x) * weight))(X)
        np.testing.assert_allclose(found, np.einsum("ij,ijk->k", weight, expected), rtol=1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_with_a_trip_count_that_depends_on_data(mode):
    def newton_root(a):
        x = a
        while abs(x * x - a) > 1e-14:
            x = 0.5 * (x + a / x)
        return x

    assert mode(newton_root)(2.0) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-12)
    assert mode(mode(newton_root))(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-6)


def descent(a):
    """Six steps of gradient descent on the loss (w a - 1)^2, and the loss then."""
    loss = lambda w: np.sum((w * a - 1.0) ** 2)
    w = 0.1 * a
    for _ in range(6):
        w = w - 0.1 * tg.grad(loss)(w)
    return loss(w)


def test_gradient_descent_inside_of_what_is_differentiated():
    g = tg.grad(descent)(X)
    step = 1e-5
    for k in range(3):
        e = step * np.eye(3)[k]
        assert g[k] == pytest.approx((descent(X + e) - descent(X - e)) / (2 * step), rel=1e-7)
    h = tg.hessian(descent)(X)
    np.testing.assert_allclose(h, tg.jacfwd(tg.grad(descent))(X), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(h, tg.jacfwd(tg.jacfwd(descent))(X), rtol=1e-11, atol=1e-12)
    e = step * np.eye(3)[0]
    slope = (tg.grad(descent)(X + e) - tg.grad(descent)(X - e)) / (2 * step)
    np.testing.assert_allclose(h[0], slope, rtol=1e-6, atol=1e-8)
    many = tg.vmap(tg.grad(descent))(np.stack([X, X / 2]))
    np.testing.assert_allclose(many, [g, tg.grad(descent)(X / 2)], rtol=1e-12)


def test_the_tape_is_left_as_it_was():
    from tapegrad.tape.tape import current

    tape = current.tape
    for f in (descent, quartic):
        tg.grad(f)(X), tg.hessian(f)(X)
        assert tape.depth == 0
        assert tape.levels == []
    with pytest.raises(ZeroDivisionError):
        tg.grad(lambda x: tg.vmap(lambda y: y / 0 if False else 1 // 0)(x))(X)
    assert tape.depth == 0
    assert tape.levels == []
    assert tg.is_grad_enabled()


def test_products_with_the_hessian_nest_and_follow_their_arguments():
    x, v = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 3.0])
    f = lambda x: np.sum(x**4) + x[0] * x[1] * x[2]
    whole = tg.hessian(f)(x)
    np.testing.assert_allclose(tg.hvp(f)(x, v), whole @ v)
    third = tg.grad(lambda x: np.sum(tg.hvp(f)(x, v)))(x)
    np.testing.assert_allclose(third, np.sum(tg.jacobian(tg.hessian(f))(x) @ v, axis=0))
    np.testing.assert_allclose(tg.grad(lambda v: np.sum(tg.hvp(f)(x, v)))(v), whole.sum(axis=0))
    np.testing.assert_allclose(tg.vmap(lambda v: tg.hvp(f)(x, v))(np.eye(3)), whole)
    np.testing.assert_allclose(tg.vmap(lambda x: tg.hvp(f)(x, v))(x[None])[0], whole @ v)
    np.testing.assert_allclose(tg.jit(tg.hvp(f))(x, v), whole @ v)
    np.testing.assert_allclose(tg.hvp(lambda x: tg.hvp(f)(x, v) @ v)(x, v), 24 * v**3 + 0.0)
    along = tg.tensor(v, requires_grad=True)
    tg.hvp(f)(x, along).sum().backward()
    np.testing.assert_allclose(along.grad.numpy(), whole.sum(axis=0))
    tree = tg.hvp(lambda p: p["a"] ** 3 * p["b"])({"a": 2.0, "b": 1.0}, {"a": 1.0, "b": 0.0})
    assert tree == {"a": 12.0, "b": 12.0}
    assert type(tg.hvp(lambda x: x**3)(2.0, 1.0)) is float
