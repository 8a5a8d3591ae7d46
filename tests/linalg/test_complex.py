"""Vectors of complex matrices: what does not depend on their phases has all derivatives."""

import numpy as np
import pytest

import tapegrad as tg

STEP = 1e-5
RNG = np.random.default_rng(4)


def number(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def hermitian(x):
    return x + x.mH


def spread(x):
    values, vectors = tg.linalg.eigh(hermitian(x))
    return (vectors * tg.sin(values)[..., None, :]) @ vectors.mH


def sizes(x):
    return abs(tg.linalg.eigh(hermitian(x), "U").eigenvectors)


def turned(x):
    u, s, vh = tg.linalg.svd(x, full_matrices=False)
    return (u * tg.exp(-s)[..., None, :]) @ vh


def singular_sizes(x):
    u, s, vh = tg.linalg.svd(x, full_matrices=False)
    return abs(u).sum(-2) * s + abs(vh).sum(-1)


def outside(x):
    """The projector on what the columns do not reach."""
    u = tg.linalg.svd(x).U[..., x.shape[-1] :]
    return u @ u.mH


CASES = {
    "spread": (spread, number(3, 3)),
    "spread of a batch": (spread, number(2, 3, 3)),
    "sizes": (sizes, number(3, 3)),
    "turned": (turned, number(3, 3)),
    "turned, tall": (turned, number(4, 2)),
    "turned, wide": (turned, number(2, 2, 3)),
    "singular_sizes": (singular_sizes, number(3, 2)),
    "eig": (lambda x: abs(tg.linalg.eig(x)[1]), number(3, 3)),
    "eig of real ones": (lambda x: abs(tg.linalg.eig(x.real)[1]), number(3, 3)),
    "outside": (outside, number(4, 2)),
}


def pairing(a, b):
    return float(np.vdot(a, b).real)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_differences(name):
    f, x0 = CASES[name]
    rng = np.random.default_rng(1)
    way, along = (rng.normal(size=x0.shape) + 1j * rng.normal(size=x0.shape) for _ in range(2))
    with tg.no_grad():
        ends = [f(tg.tensor(x0 + by * way)).numpy() for by in (STEP, -STEP)]
    slope = (ends[0] - ends[1]) / (2 * STEP)
    weight = rng.normal(size=slope.shape) + 1j * rng.normal(size=slope.shape)
    weight = tg.tensor(weight if slope.dtype.kind == "c" else weight.real)

    def gradient(at):
        x = tg.tensor(at, requires_grad=True)
        return x, tg.autograd.grad(f(x), x, weight, create_graph=True)[0]

    x, g = gradient(x0)
    np.testing.assert_allclose(
        pairing(g.detach().numpy(), way), pairing(weight.numpy(), slope), 1e-6, 1e-8
    )
    (second,) = tg.autograd.grad(g, x, tg.tensor(along))
    ends = [pairing(gradient(x0 + by * way)[1].detach().numpy(), along) for by in (STEP, -STEP)]
    np.testing.assert_allclose(
        pairing(second.numpy(), way), (ends[0] - ends[1]) / (2 * STEP), 1e-5, 1e-7
    )
    _, forward = tg.func.jvp(f, (tg.tensor(x0),), (tg.tensor(way),))
    np.testing.assert_allclose(forward.numpy(), slope, 1e-6, 1e-8)
    batch = tg.func.vmap(f)(tg.tensor(np.stack([x0, x0 + way])))
    np.testing.assert_allclose(batch[0].numpy(), f(tg.tensor(x0)).numpy(), 1e-10, 1e-10)
