"""`checkpoint` around transforms and inside of them."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

X = np.array([1.0, 2.0, 3.0])


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("inner", [tg.jacrev, tg.jacfwd, tg.jacobian])
def test_around_whole_matrices(inner):
    f = tg.checkpoint(lambda q: inner(lambda z: z**3)(q))
    same(f(X), np.diag(3 * X**2))
    third = np.zeros((3, 3, 3))
    np.einsum("iii->i", third)[:] = 6 * X
    same(tg.jacrev(f)(X), third)
    same(tg.jacfwd(f)(X), third)


def test_around_maps():
    same(tg.checkpoint(lambda q: tg.vmap(tg.grad(lambda s: s**3))(q))(X), 3 * X**2)
    f = tg.checkpoint(lambda q: tg.vmap(tg.hessian(lambda s: s**3))(q))
    same(tg.jacfwd(f)(X), 6 * np.eye(3))
    same(tg.jacrev(f)(X), 6 * np.eye(3))


def test_swept_after_the_transform_has_ended():
    for f in (
        tg.checkpoint(np.sin),
        lambda x: tg.checkpoint(lambda: np.sin(x))(),
        lambda x: tg.checkpoint(lambda y: tg.vmap(tg.grad(lambda s: -np.cos(s)))(y))(x),
        lambda x: tg.checkpoint(lambda: tg.vmap(tg.grad(lambda s: -np.cos(s)))(x))(),
    ):
        pullback = tg.vjp(f, X)[1]
        same(pullback(X)[0], np.cos(X) * X)
        same(pullback(X)[0], np.cos(X) * X)
        same(tg.linearize(f, X)[1](X), np.cos(X) * X)
        same(tg.vmap(pullback)(np.eye(3))[0], np.diag(np.cos(X)))


def test_inside_of_maps_and_of_forward_mode():
    f = lambda s: np.sin(s * s)
    over = (
        lambda h: lambda q: tg.vmap(h)(q).sum(),
        lambda h: lambda q: tg.jvp(h, (q,), (q,))[1].sum(),
        lambda h: lambda q: tg.jacfwd(h)(q).sum(),
    )
    for within in over:
        for outer in (tg.grad, tg.hessian):
            same(outer(within(tg.checkpoint(f)))(X), outer(within(f))(X))


def test_what_was_changed_in_place_cannot_be_computed_again():
    x = tg.tensor(X, requires_grad=True)
    w = tg.tensor(X)
    y = tg.checkpoint(lambda a: np.sin(a * w))(x * 1.0).sum()
    y.backward(retain_graph=True)
    same(x.grad, np.cos(X * X) * X)
    y = tg.checkpoint(np.sin)(v := x * w)
    v.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"read has been modified by an inplace operation"):
        y.sum().backward()


def test_what_the_function_changes_itself():
    def f(x):
        y = np.exp(x)
        y.mul_(2.0)
        return y

    x = tg.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="that was saved has been modified by an inplace"):
        tg.checkpoint(f)(x).sum().backward()
