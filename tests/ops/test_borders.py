"""Borders of elements that come again: in one pass over many elements, as by index of few."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.functions import tiling

pytestmark = pytest.mark.tapegrad_only("a threshold of the library")


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    "edges",
    [(2, 1, 0, 2), (-1, 2, 1, -1), (0, -2, 0, 0), (1, 0, 2, 2), (0, 0, 1, 0), (2, -3, 0, 1)],
)
def test_borders_of_many_elements_are_those_of_few(mode, edges, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 5, 5)).astype(np.float32)

    def pad(x):
        return tg.nn.functional.pad(x, edges, mode)

    found = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(tiling, "MANY", many)
        t = tg.tensor(x, requires_grad=True)
        y = pad(t)
        y.backward(tg.tensor(np.cos(np.arange(y.numel())).reshape(y.shape).astype(np.float32)))
        found.append((y.detach().numpy(), t.grad.numpy(), tg.jit(pad)(x)))
    for few, many in zip(*found, strict=True):
        assert few.dtype == many.dtype == np.float32
        np.testing.assert_allclose(few, many, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_numpys_borders_of_many_elements(mode, monkeypatch):
    monkeypatch.setattr(tiling, "MANY", 1)
    x = np.arange(12.0).reshape(3, 4)
    for widths in (1, ((7, 5), (0, 3)), ((0, 0), (9, 1))):
        t = tg.tensor(x, requires_grad=True)
        y = np.pad(t, widths, mode=mode)
        np.testing.assert_array_equal(y.detach(), np.pad(x, widths, mode=mode))
        np.sum(y * np.pad(x, widths, mode=mode)).backward()
        counts = np.bincount(np.pad(np.arange(12).reshape(3, 4), widths, mode=mode).ravel())
        np.testing.assert_allclose(t.grad, x * counts.reshape(3, 4))
