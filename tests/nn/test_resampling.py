"""Other sizes: what users rely on; `tests/peers` compares all modes with PyTorch."""

import numpy as np
import pytest

import tapegrad as tg

F = tg.nn.functional


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area"])
def test_gradients_vmap_and_jit(mode):
    def f(x):
        return (F.interpolate(x, size=(5, 3), mode=mode) ** 2).sum()

    x = tg.tensor(np.random.default_rng(0).random((2, 1, 3, 4)), requires_grad=True)
    assert tg.autograd.gradcheck(f, (x,))
    assert tg.autograd.gradgradcheck(f, (x,))
    expected = [f(part[None]).item() for part in x]
    np.testing.assert_allclose(tg.vmap(lambda a: f(a[None]))(x).tolist(), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.jit(f)(x).item(), sum(expected), rtol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias_reads_everything_between(mode):
    def smaller(x):
        return F.interpolate(x, size=(2, 3), mode=mode, antialias=True)

    x = tg.tensor(np.random.default_rng(0).random((1, 1, 9, 10)), requires_grad=True)
    assert tg.autograd.gradcheck(smaller, (x,))
    np.testing.assert_allclose(smaller(tg.ones(1, 1, 9, 10)).numpy(), 1.0, rtol=1e-6)
    smaller(x).sum().backward()
    assert (x.grad != 0).all()
    with pytest.raises(ValueError, match=r"antialias is for bilinear and bicubic modes, not area"):
        F.interpolate(x, 3, mode="area", antialias=True)


def test_float32_stays():
    x = tg.ones(1, 1, 2, 2, dtype=tg.float32)
    assert F.interpolate(x, scale_factor=1.5, mode="bilinear").dtype is tg.float32


def test_shuffles_undo_each_other():
    x = tg.tensor(np.arange(48.0).reshape(2, 3, 2, 4))
    assert F.pixel_shuffle(F.pixel_unshuffle(x, 2), 2).tolist() == x.tolist()
    y = F.channel_shuffle(tg.tensor(np.arange(12.0).reshape(1, 6, 2)), 2)
    assert F.channel_shuffle(y, 3).flatten().tolist() == list(range(12))
