"""Stacks of transforms with `checkpoint` and rules of the user's own, against those without."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg
from tests.transforms.stacks import PLAIN, SPECIAL, X, drawn, stacked

pytestmark = pytest.mark.tapegrad_only("transforms of its own")

# What random searches have found wrong.
FOUND = [
    ("sin", ["grad of a grad", "custom_jvp by jvp", "custom_vjp by vjp", "jvp"]),
    ("sin", ["jacrev", "checkpoint", "scan", "vjp under a map"]),
    ("product", ["mapped linearize", "checkpoint of a closure", "scan", "vjp"]),
    ("product", ["custom_vjp by grad", "mapped vjp", "custom_jvp by a matrix", "jit"]),
    ("product", ["value", "custom_vjp by a kept matrix", "hessian", "jacrev"]),
    ("cumulated", ["map of a grad", "custom_vjp by vjp", "jacfwd"]),
    ("cumulated", ["vjp under a map", "custom_jvp by a matrix", "custom_jvp by a matrix"]),
]
MORE = {
    "grad of a grad": lambda T, xp, f: (
        lambda q: T.grad(lambda z: xp.sum(T.grad(lambda u: xp.sum(f(u) ** 2))(z) * q * q))(q)
    ),
    "scan": lambda T, xp, f: lambda q: T.scan(lambda c, s: (xp.tanh(f(c) * s), None), q, q)[0],
    "fori_loop": lambda T, xp, f: lambda q: T.fori_loop(0, 2, lambda i, c: xp.tanh(f(c)) + q, q),
    "cond": lambda T, xp, f: lambda q: T.cond(q[0] > 0.2, f, lambda z: z * 2, q),
    "jit": lambda T, xp, f: T.jit(f),
    "hvp": lambda T, xp, f: lambda q: T.hvp(lambda z: xp.sum(f(z) ** 2))(q, q * q),
    "vhp": lambda T, xp, f: lambda q: T.vhp(lambda z: xp.sum(f(z) ** 2))(q, q * q),
    "jacobian": lambda T, xp, f: lambda q: T.jacobian(lambda z: xp.tile(f(z), 9))(q)[:3] @ q,
}


def same_as_without(base, names):
    expected = stacked(tg, np, base, names, special=False, more=MORE)(X)
    with ThreadPoolExecutor(1) as other:  # with a tape of its own: other tests count records
        found = other.submit(stacked(tg, np, base, names, more=MORE), X).result()
    scale = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize(("base", "names"), FOUND)
def test_stacks_that_were_wrong(base, names):
    same_as_without(base, names)


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("outer", [*PLAIN, *MORE])
def test_each_alone(special, outer):
    same_as_without("sin", [special, outer])
    same_as_without("sin", [outer, special])


@pytest.mark.parametrize("seed", range(60))
def test_random_stacks(seed):
    rng = random.Random(seed)
    same_as_without(*drawn(rng, 4, [*PLAIN, *MORE]))
