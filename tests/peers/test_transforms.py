"""Every transform against JAX and HIPS autograd: in all nestings, and on functions of some size."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="compares with JAX: `make peers` installs it")
autograd = pytest.importorskip("autograd", reason="compares with HIPS: `make peers` installs it")

import jax.numpy as jnp  # noqa: E402

import tapegrad as tg  # noqa: E402
from tests.peers.nesting_cases import CASES  # noqa: E402
from tests.peers.problems import PROBLEMS  # noqa: E402

pytestmark = [
    pytest.mark.peer,
    pytest.mark.usefixtures("double_precision_of_jax"),
    pytest.mark.tapegrad_only("runs all libraries itself"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
problems = pytest.mark.parametrize("name", PROBLEMS)


def leaves(x):
    """The arrays of a result, in order."""
    if isinstance(x, dict):
        return [leaf for key in sorted(x) for leaf in leaves(x[key])]
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    assert not isinstance(x, tg.Tensor), "arrays were given"
    return [np.asarray(x)]


def same(found, expected, rtol=1e-9):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        scale = float(np.abs(b).max(initial=0)) + 1e-2
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("name", CASES)
def test_nestings(name):
    same(CASES[name](tg, np), CASES[name](jax, jnp))


@problems
def test_value_and_gradient(name):
    make, x = PROBLEMS[name]
    value, gradient = tg.value_and_grad(make(np, tg))(x)
    same((value, gradient), jax.jit(jax.value_and_grad(make(jnp, jax)))(x))
    if name not in NOT_IN_AUTOGRAD:
        same(gradient, autograd.grad(make(autograd.numpy, autograd))(x))


# What HIPS autograd cannot do, and why.
NOT_IN_AUTOGRAD = {"implicit": "it has no custom_vjp"}


@problems
def test_products_with_jacobian_and_hessian(name):
    make, x = PROBLEMS[name]
    ours, theirs = make(np, tg), make(jnp, jax)
    v = np.cos(np.arange(x.size, dtype=float)).reshape(x.shape)
    g = tg.grad(ours)(x)
    # forward mode does not go through a custom_vjp of JAX
    hv = jax.jit(lambda x: jax.vjp(jax.grad(theirs), x)[1](v)[0])(x)
    same(tg.jvp(tg.grad(ours), (x,), (v,)), (g, hv), 1e-8)
    same(tg.jvp(ours, (x,), (v,))[1], np.sum(g * v), 1e-8)
    same(tg.linearize(ours, x)[1](v), np.sum(g * v), 1e-8)
    same(tg.vjp(ours, x)[1](2.0)[0], 2 * g, 1e-9)
    same(tg.hvp(ours)(x, v), hv, 1e-8)
    same(tg.vhp(ours)(x, v), hv, 1e-8)
    same(tg.grad(lambda x: np.sum(tg.grad(ours)(x) * v))(x), hv, 1e-8)
    same(tg.grad(tg.checkpoint(ours))(x), g)


@problems
def test_hessian(name):
    make, x = PROBLEMS[name]
    found = tg.hessian(make(np, tg))(x)
    theirs = make(jnp, jax)
    same(found, jax.jit(jax.jacrev(jax.grad(theirs)))(x), 1e-8)
    same(tg.jacfwd(tg.grad(make(np, tg)))(x), found, 1e-8)


@problems
def test_maps(name):
    make, x = PROBLEMS[name]
    ours, theirs = make(np, tg), make(jnp, jax)
    points = np.stack([x, x * 1.01, x * 0.98])
    found = tg.vmap(tg.value_and_grad(ours))(points)
    same(found, jax.jit(jax.vmap(jax.value_and_grad(theirs)))(points))
    same(found[1], np.stack([tg.grad(ours)(p) for p in points]))
