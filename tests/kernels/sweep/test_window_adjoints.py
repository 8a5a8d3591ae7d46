"""Adjoints of sums over windows of small volumes are computed within the compiled sweep."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tests.kernels.sweep.test_compiled_sweep import both, leaf

pytestmark = pytest.mark.tapegrad_only("is about the compiled sweep")
F = tg.nn.functional
SUMS = {
    "mean": lambda x: F.avg_pool2d(x, 2),
    "windows that overlap": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "windows that cover": lambda x: F.adaptive_avg_pool2d(x, (2, 4)),
    "elements that no window reads": lambda x: F.avg_pool2d(x, 1, 3),
    "larger": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "smaller": lambda x: F.interpolate(x, size=(2, 3), mode="bicubic"),
    "nearest": lambda x: F.interpolate(x, size=(2, 9)),
}


@pytest.mark.parametrize("how", SUMS)
def test_equals_the_rule(how):
    def build():
        x = leaf(2, 3, 5, 6)
        return tg.sin(SUMS[how](x)).sum(), (x,)

    both(build)


@pytest.mark.parametrize("how", ["mean", "larger"])
def test_of_a_gradient(how):
    def build():
        x = leaf(1, 2, 4, 6)
        (g,) = tg.autograd.grad((SUMS[how](x) ** 3).sum(), x, create_graph=True)
        return tg.sin(g).sum(), (x,)

    both(build)


def test_an_operand_that_is_read_twice_or_has_no_gradient():
    def build():
        x, z = leaf(1, 2, 4, 4), leaf(1, 2, 2, 2)
        y = F.avg_pool2d(x, 2) * F.avg_pool2d(x * x, 2) + F.avg_pool2d(x.detach(), 2) * z
        return y.sum(), (x, z)

    both(build)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("how", SUMS)
def test_small_volumes_need_no_python(how, dtype, monkeypatch):
    def step():
        x = tg.ones(1, 2, 4, 6, dtype=dtype).requires_grad_()
        tg.sin(SUMS[how](x)).sum().backward()
        return x.grad

    before = step()
    monkeypatch.setattr(Sweep, "_step", None)
    np.testing.assert_array_equal(step().numpy(), before.numpy())


def test_large_volumes_are_left_to_the_rule():
    x = tg.ones(4, 4, 40, 40, dtype=tg.float64).requires_grad_()
    F.avg_pool2d(x, 2).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(x.shape, 0.25))
