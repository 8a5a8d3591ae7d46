"""Random programs of loops and branches within each other, under a transform of one or two kinds.

They are compiled whole, and transformed when they are compiled; Python's loops tell what is right.
`PROGRAMS` in the environment asks for more of them.
"""

import os

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tapegrad's own branches and loops")

MORE = int(os.environ.get("PROGRAMS", "0"))
X = np.array([0.5, 1.5, -0.8])
V = np.array([1.0, -0.4, 0.7])


@tg.custom_vjp
def bent(x):
    return np.sin(x)


bent.defvjp(lambda x: (np.sin(x), x), lambda x, g: (g * np.cos(x) * 1.2,))

# Functions of a point x and a vector c that give a vector.
LEAVES = [
    lambda x, c: np.sin(c) * x,
    lambda x, c: c * 0.5 + x * x[0] * 0.3,
    lambda x, c: np.tanh(c * np.sum(x)) + c[::-1] * 0.2,
    lambda x, c: bent(c * x) * 0.8,
]


def counted(a, b, n):
    return lambda x, c: tg.fori_loop(0, n, lambda i, d: a(x, d) * (0.5 + 0.1 * i), b(x, c))


def scanned(a, b, n):
    def step(x, s, row):
        return a(x * row[0], s) * 0.7, (np.sum(b(x, s)), s)

    def f(x, c):
        rows = np.outer(np.arange(1.0, 4.0), x) * 0.2
        last, (y, z) = tg.scan(lambda s, row: step(x, s, row), c, rows, reverse=n > 1)
        return last + np.sum(y) * 0.1 + np.sum(z, 0) * 0.2

    return f


def until(a, b, n):
    def f(x, c):
        grows = lambda s: s[0] * (1.0 + 0.1 * np.sum(x) ** 2) < n
        trips, d = tg.while_loop(grows, lambda s: (s[0] + 1, a(x, s[1]) * 0.8), (0, c))
        return d + trips * b(x, c) * 0.1

    return f


def branched(a, b, n):
    return lambda x, c: tg.cond(
        np.sum(c) > 0.1 * n, lambda d: a(x, d), lambda d: b(x, c) * d * 0.5, c * 1.1
    )


def differentiated(a, b, n):
    return lambda x, c: tg.grad(lambda d: np.sum(a(x, d) ** 2))(c) * 0.3 + b(x, c)


def pushed(a, b, n):
    return lambda x, c: tg.jvp(lambda d: a(x, d), (c,), (b(x, c),))[1] * 0.5


def mapped(a, b, n):
    return lambda x, c: np.sum(tg.vmap(lambda e: a(x, c * e))(x), 0) * 0.3 + b(x, c)


INNER = [counted, scanned, until, branched, differentiated, pushed, mapped]


def program(rng):
    """A function of a point that returns a number."""

    def expression(depth):
        if not depth:
            return LEAVES[rng.integers(len(LEAVES))]
        a, b = expression(depth - 1), expression(rng.integers(depth))
        return INNER[rng.integers(len(INNER))](a, b, int(rng.integers(4)))

    f = expression(2)
    return lambda x: np.sum(f(x, x * 0.7) * V)


POINTS = np.stack([X, -X, X * 0.5])
TRANSFORMS = {
    "grad": tg.grad,
    "jacfwd": tg.jacfwd,
    "hessian": tg.hessian,
    "hvp": lambda f: lambda x: tg.hvp(f)(x, V),
    "jvp_of_grad": lambda f: lambda x: tg.jvp(tg.grad(f), (x,), (V,))[1],
    "vmap_of_grad": lambda f: lambda x: tg.vmap(tg.grad(f))(POINTS * x),
    "vmap_of_jvp": lambda f: lambda x: tg.vmap(lambda y: tg.jvp(f, (y,), (V,))[1])(POINTS * x),
    "grad_of_vmap": lambda f: tg.grad(lambda x: np.sum(tg.vmap(f)(POINTS * x) ** 2)),
}


@pytest.mark.parametrize("seed", range(MORE or 3))
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_loops_within_each_other(transform, seed):
    f = program(np.random.default_rng([seed, *transform.encode()]))
    make = TRANSFORMS[transform]
    want = make(f)(X)
    whole = tg.jit(make(f))
    np.testing.assert_allclose(whole(X), want, rtol=1e-8, atol=1e-9)
    assert whole.cache_info() == (1, 1, 0)
    part = tg.jit(f)
    np.testing.assert_allclose(make(part)(X), want, rtol=1e-8, atol=1e-9)
    assert part.cache_info().eager == 0
