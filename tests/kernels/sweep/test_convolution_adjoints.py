"""Adjoints of convolutions of small images are computed within the compiled sweep."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tests.kernels.sweep.test_compiled_sweep import both, leaf

pytestmark = pytest.mark.tapegrad_only("is about the compiled sweep")
F = tg.nn.functional


def convolved(how, x, w):
    """A scalar that depends on one of the three forms of a convolution, or on its gradient."""
    if how == "transposed":
        return tg.sin(F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), padding=1)).sum()
    y = F.conv2d(x, w, tg.ones(4, dtype=x.dtype), padding=1, stride=2 if how == "stride 2" else 1)
    if how != "gradient":
        return tg.sin(y).sum()
    x_grad, w_grad = tg.autograd.grad((y * y).sum(), (x, w), create_graph=True)
    return tg.sin(x_grad).sum() + tg.sin(w_grad).sum()


@pytest.mark.parametrize("how", ["same", "stride 2", "transposed", "gradient"])
def test_equals_the_rule(how):
    def build():
        x, w = leaf(2, 3, 5, 6), leaf(4, 3, 3, 2)
        return convolved(how, x, w), (x, w)

    both(build)


def test_images_that_are_read_twice_and_filters_without_a_gradient():
    def build():
        x, w = leaf(1, 3, 5, 5), leaf(3, 3, 3, 3)
        y = F.conv2d(x, w.detach(), padding=1)
        return (F.conv2d(x * y, w, padding=1) * x).sum(), (x, w)

    both(build)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_small_images_need_no_python(dtype, monkeypatch):
    def step():
        x, w = (t.requires_grad_() for t in (tg.ones(1, 2, 4, 4, dtype=dtype), filters))
        convolved("same", x, w).backward()
        return x.grad, w.grad

    filters = tg.ones(4, 2, 3, 3, dtype=dtype)
    before = step()
    filters = tg.ones(4, 2, 3, 3, dtype=dtype)
    monkeypatch.setattr(Sweep, "_step", None)
    for a, b in zip(before, step(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_zero_adjoint_stays_zero(number):
    """Where an adjoint is zero, an infinite or undefined filter contributes nothing."""
    x, w = leaf(1, 1, 3, 3), tg.full((1, 1, 1, 1), number, dtype=tg.float64).requires_grad_()
    F.conv2d(x, w)[..., :2].sum().backward()
    expected = np.full((1, 1, 3, 3), number)
    expected[..., 2] = 0.0
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_filters_that_do_not_lie_in_order():
    def build():
        x, w = leaf(1, 3, 5, 5), leaf(2, 3, 3, 4)
        return tg.sin(F.conv2d(x, w.permute(3, 1, 2, 0), padding=1)).sum(), (x, w)

    both(build)
