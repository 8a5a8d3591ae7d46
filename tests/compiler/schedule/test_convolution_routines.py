"""Compiled convolutions are the eager ones, by the loops of these or by patches."""

import numba
import numpy as np
import pytest

import tapegrad as tg
from tests.compiler.graphs import same_without_python

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

F = tg.nn.functional
TOLERANCE = {"float64": 1e-13, "float32": 2e-6}

# Shapes of images and filters, and where the windows lie; the last four are not for the loops.
FORMS = {
    "signal": (F.conv1d, (2, 3, 40), (4, 3, 5), {"padding": 2}),
    "long filter": (F.conv1d, (1, 1, 200), (1, 1, 31), {"padding": "same"}),
    "image": (F.conv2d, (3, 3, 9, 8), (6, 3, 3, 3), {"padding": 1}),
    "even filter": (F.conv2d, (2, 2, 7, 6), (3, 2, 2, 4), {"padding": "same"}),
    "strides": (F.conv2d, (2, 3, 11, 12), (5, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0)}),
    "dilated": (F.conv2d, (2, 2, 12, 12), (3, 2, 3, 3), {"dilation": 2}),
    "groups": (F.conv2d, (2, 4, 6, 6), (8, 2, 3, 3), {"groups": 2}),
    "points": (F.conv2d, (2, 5, 4, 4), (7, 5, 1, 1), {}),
    "volume": (F.conv3d, (2, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"padding": 1}),
    "transposed": (F.conv_transpose2d, (2, 4, 5, 5), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    "signal out": (F.conv_transpose1d, (2, 2, 9), (2, 3, 4), {"stride": 3, "output_padding": 1}),
    "volume out": (F.conv_transpose3d, (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), {"groups": 2}),
    "apart": (F.conv2d, (2, 3, 10, 10), (4, 3, 2, 2), {"stride": 3}),
    "apart out": (F.conv_transpose2d, (2, 4, 3, 4), (4, 3, 2, 2), {"stride": 4}),
    "sparse": (F.conv2d, (2, 4, 10, 10), (6, 2, 3, 3), {"dilation": 9, "padding": 9, "groups": 2}),
    "sparse volume": (F.conv3d, (1, 1, 3, 3, 3), (2, 1, 2, 2, 2), {"dilation": 2}),
}  # fmt: skip


def operands(images, filters, dtype="float64"):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(dtype) for shape in (images, filters)]


def agree(f, *args, dtype="float64"):
    same_without_python(f, *args, tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("f", "images", "filters", "how"), FORMS.values(), ids=FORMS)
def test_forms_and_their_derivatives(f, images, filters, how, dtype):
    x, w = operands(images, filters, dtype)
    agree(lambda x, w: f(x, w, **how), x, w, dtype=dtype)

    def loss(x, w):
        return (f(x, w, **how) ** 2).sum() / 9

    slopes = tg.grad(loss, argnums=(0, 1))
    agree(slopes, x, w, dtype=dtype)
    agree(tg.grad(lambda x, w: sum((g**2).sum() for g in slopes(x, w)) / 99), x, w, dtype=dtype)


@pytest.mark.parametrize("name", ["image", "strides", "transposed", "sparse"])
def test_other_transforms(name):
    f, images, filters, how = FORMS[name]
    x, w = operands(images, filters)
    many, others = np.stack([x, 2 * x, x + 1]), np.stack([w, w[::-1], w - 1])

    def of(x, w):
        return f(x, w, **how)

    agree(tg.vmap(of, in_axes=(0, None)), many, w)
    agree(tg.vmap(of, in_axes=(None, 0)), x, others)
    agree(tg.vmap(tg.grad(lambda x, w: (of(x, w) ** 3).mean(), argnums=1)), many, others)
    agree(lambda x, w: tg.jvp(of, (x, w), (w.sum() * x, w)), x, w)
    agree(tg.vmap(tg.jit(of), in_axes=(0, None)), many, w)


def test_in_loops():
    x, w = operands((2, 3, 8, 8), (3, 3, 3, 3))

    def rolled(w, x):
        def step(x, t):
            x = F.conv2d(x, t * w, padding=1)
            return x / 9, x.sum()

        x, sums = tg.scan(step, x, np.linspace(0.0, 1.0, 5))
        return (x**2).sum() + (sums**2).sum()

    agree(rolled, w, x)
    agree(tg.grad(rolled), w, x)


@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (2, 3, 8, 8)])
def test_batches_of_no_image(shape):
    x, w = operands(shape, (4, 3, 3, 3))
    agree(lambda x, w: F.conv2d(x, w, padding=1), x, w)
    agree(tg.grad(lambda x, w: F.conv2d(x, w).sum(), argnums=(0, 1)), x, w)
    agree(tg.grad(lambda x, w: F.conv_transpose2d(x, w[:3]).sum(), argnums=(0, 1)), x, w)


def test_windows_of_other_values():
    """What is no array in C order is copied."""
    x, w = operands((2, 8, 9, 3), (3, 3, 4, 3))
    agree(lambda x, w: F.conv2d(np.moveaxis(x, 3, 1)[:, :, ::-1], w[..., ::2]), x, w)


@pytest.mark.parametrize("name", ["image", "sparse"])
@pytest.mark.parametrize("wild", [np.inf, -np.inf, np.nan])
def test_a_zero_is_stronger_than_what_is_not_finite(name, wild):
    """As in all derivatives: what is cut off contributes nothing."""
    f, images, filters, how = FORMS[name]
    x, w = operands(images, filters)
    x[0, 0, 0, 0] = w[1, 1, 0, 0] = wild

    def clipped(x, w):
        y = f(x, w, **how)
        return np.sum(np.where(np.isfinite(y), y, 0.0))

    with np.errstate(all="ignore"):
        agree(lambda x, w: f(x, w, **how), x, w)
        agree(lambda x, w: F.conv_transpose2d(x[:, :2], w[:2]), x, w)
        agree(tg.grad(clipped, argnums=(0, 1)), x, w)


def test_complex_numbers():
    def numbers(shape, seed):
        re, im = np.random.default_rng(seed).standard_normal((2, *shape))
        return re + 1j * im

    x, w = numbers((2, 3, 8, 8), 0), numbers((4, 3, 3, 3), 1)
    agree(lambda x, w: F.conv2d(x, w, padding=1), x, w)

    def loss(x, w):
        return (F.conv2d(x, w, stride=2).abs() ** 2).sum()

    agree(tg.grad(loss, argnums=(0, 1)), x, w)
    agree(tg.grad(lambda w: loss(x.real + 0j, w)), w)


def test_threads():
    """Many threads share a convolution that pays for it; those that Python does not know do not."""
    x, w = operands((8, 8, 40, 40), (16, 8, 3, 3))
    f = tg.jit(lambda x, w: F.conv2d(x, w, padding=1))
    before, inner = tg.get_num_threads(), f.njit

    @numba.njit(parallel=True)
    def called(xs, w):
        out = np.empty((len(xs), 16, 40, 40))
        for k in numba.prange(len(xs)):
            out[k] = inner(xs[k : k + 1], w)[0]
        return out

    try:
        tg.set_num_threads(1)
        alone = f(x, w)
        tg.set_num_threads(3)
        np.testing.assert_array_equal(f(x, w), alone)
        np.testing.assert_array_equal(called(x, w), alone)
    finally:
        tg.set_num_threads(before)
