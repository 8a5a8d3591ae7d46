"""Derivatives in complex arguments, by every transform, alone and compiled, against differences."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("transforms are tapegrad's own")

rng = np.random.default_rng(0)
Z, ALONG = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))


@tg.custom_vjp
def by_vjp(z):
    return z * z


by_vjp.defvjp(lambda z: (z * z, z), lambda z, g: (g * np.conj(2 * z),))


@tg.custom_jvp
def by_jvp(z):
    return z * z


by_jvp.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))


class Square(tg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (2 * x).conj()

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2 * x * t


def written_in_place(z):
    w = np.zeros_like(z) + z * z
    w[0] = w[1] * 1j
    w[2] += z[0]
    return w


PROGRAMS = {
    "custom_vjp": by_vjp,
    "custom_jvp": by_jvp,
    "Function": lambda z: Square.apply(tg.as_tensor(z)),
    "scan": lambda z: tg.scan(lambda c, x: (c * x + 1j, c * 2), z[0], z)[1],
    "fori_loop": lambda z: tg.fori_loop(0, 4, lambda i, c: c * z * 0.5 + 1j, z),
    "cond": lambda z: tg.cond(np.real(z[0]) > 0, lambda z: z * z, lambda z: z * 1j, z),
    "checkpoint": lambda z: tg.checkpoint(lambda z: z * z * 1j)(z),
    "vmap": tg.vmap(lambda a: a * a * 1j),
    "jit": tg.jit(lambda z: z * np.exp(z)),
    "in place": written_in_place,
    "solve": lambda z: np.linalg.solve(np.outer(z, np.conj(z)) + 3 * np.eye(3), z),
    "fft": lambda z: np.fft.fft(z * z),
}


def loss(f):
    return lambda z: np.sum(np.abs(f(z)) ** 2 * np.arange(1, 4))


def differences(f, step=1e-6):
    """dL/dx + i dL/dy."""
    found = np.zeros_like(Z)
    for k in range(3):
        for unit in (1, 1j):
            moved = np.zeros_like(Z)
            moved[k] = unit * step
            found[k] += unit * float(f(Z + moved) - f(Z - moved)) / (2 * step)
    return found


def swept_back(f):
    z = tg.tensor(Z, requires_grad=True)
    f(z).backward()
    return z.grad.numpy()


def many(f):
    return tg.vmap(tg.grad(f))(np.stack([Z, Z * 0.5]))[0]


GRADIENTS = {
    "grad": lambda f: tg.grad(f)(Z),
    "jit of grad": lambda f: tg.jit(tg.grad(f))(Z),
    "grad of jit": lambda f: tg.grad(tg.jit(f))(Z),
    "backward": swept_back,
    "backward of jit": lambda f: swept_back(tg.jit(f)),
    "vmap of grad": many,
    "jit of vmap of grad": lambda f: tg.jit(lambda: many(f))(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_and_tangents(name):
    f = loss(PROGRAMS[name])
    expected = differences(f)
    for way, gradient in GRADIENTS.items():
        np.testing.assert_allclose(gradient(f), expected, rtol=1e-6, atol=1e-8, err_msg=way)
    slope = np.sum(np.conj(expected) * ALONG).real
    for jvp in (tg.jvp, tg.jit(tg.jvp, static_argnums=0)):
        assert float(jvp(f, (Z,), (ALONG,))[1]) == pytest.approx(slope)


def test_complex_results_of_jitted_functions_have_a_history():
    z = tg.tensor(Z, requires_grad=True)
    y = tg.jit(lambda z: z * z * 1j)(z)
    assert y.requires_grad
    y.abs().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * Z)  # |z²| is x² + y²


def test_gradients_in_real_arguments_are_the_real_part():
    @tg.custom_vjp
    def turned(x):
        return x * (1 + 1j)

    turned.defvjp(lambda x: (x * (1 + 1j), None), lambda _, g: (g * (1 - 1j),))
    gradient = tg.grad(lambda x: np.sum(np.abs(turned(x)) ** 2))
    for each in (gradient, tg.jit(gradient)):
        np.testing.assert_allclose(each(np.array([1.0, 2.0])), [4.0, 8.0])
