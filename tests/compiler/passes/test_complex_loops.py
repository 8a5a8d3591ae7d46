"""Loops and branches over complex numbers are loops and branches over their parts."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

RNG = np.random.default_rng(5)


def numbers(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def rerolled(z):
    for k in range(12):
        z = np.exp(0.1 * z) * (1 + 0.1 * k)
    return z


def scanned(z, rows):
    def step(carry, row):
        made = 0.5 * carry * row + np.abs(row)
        return made, (made * 1j, np.abs(made))

    last, (outputs, sizes) = tg.scan(step, z, rows)
    return last.sum() + (outputs * outputs).sum() + sizes.sum()


def bounded(z):
    return tg.while_loop(lambda w: np.abs(w).sum() < 20.0, lambda w: w * (1.1 + 0.1j), z)


def branched(z):
    return tg.cond(np.abs(z).sum() > 1.0, lambda z: np.sin(z) * 1j, lambda z: z * 2.0, z)


def counted(z, w):
    return tg.fori_loop(0, 5, lambda k, c: (c[0] * w + k, c[1] + np.abs(c[0])), (z, np.zeros(3)))[0]


def nested(z):
    def outer(carry, row):
        inner = tg.fori_loop(0, 3, lambda k, c: np.tanh(c * row), carry)
        return inner, inner * carry

    last, all_of_them = tg.scan(outer, z, np.stack([z, 2 * z]))
    return last + all_of_them.sum(0)


PROGRAMS = {
    "rerolled": (rerolled, (3,)), "scanned": (scanned, (3,), (4, 3)), "bounded": (bounded, (3,)),
    "branched": (branched, (3,)), "counted": (counted, (3,), (3,)), "nested": (nested, (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_without_python(name):
    f, *shapes = PROGRAMS[name]
    args = [numbers(*shape) for shape in shapes]
    np.testing.assert_allclose(tg.jit(f)(*args), f(*args), rtol=1e-12)

    def total(*args):
        return np.sum(np.abs(f(*args)) ** 2)

    assert not tg.jit(f).lower(*args).callbacks
    for k in range(len(args)):
        slope = tg.grad(total, argnums=k)
        np.testing.assert_allclose(tg.jit(slope)(*args), slope(*args), rtol=1e-12)
        assert not tg.jit(slope).lower(*args).callbacks


def test_what_does_not_compute_with_complex_numbers_stays():
    z = numbers(4)
    f = tg.jit(lambda z: tg.fori_loop(0, 3, lambda k, c: c[::-1], z))
    np.testing.assert_array_equal(f(z), z[::-1])
    assert any(node.dtype.kind == "c" for node in f.lower(z).graph.nodes)
