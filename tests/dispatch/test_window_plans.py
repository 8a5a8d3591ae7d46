"""What is computed of windows again and again is computed in compiled code as in Python."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import window_plans
from tapegrad.dispatch.call_plans import TIMES

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]
F = tg.nn.functional
CALLS = {
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 9)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 6, 7)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, 1, dilation=2), (1, 1, 4, 5, 4)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), (1, 2, 5, 5)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 9)),
    "avg_pool2d": (
        lambda x: F.avg_pool2d(x, (3, 2), 2, (1, 0), count_include_pad=False), (3, 6, 7)
    ),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, 1), (1, 2, 3, 4, 3)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 1, 7, 9)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=1.7), (2, 1, 5)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 2, 4, 5)),
    "bicubic": (lambda x: F.interpolate(x, size=(3, 9), mode="bicubic"), (1, 2, 4, 5)),
    "antialias": (
        lambda x: F.interpolate(x, size=(3, 2), mode="bilinear", antialias=True), (1, 2, 7, 5)
    ),
}  # fmt: skip


def leaf(shape, dtype=tg.float64):
    return tg.tensor(np.random.default_rng(0).standard_normal(shape), dtype=dtype).requires_grad_()


def repeated(call, x):
    """The result on the general path, after so many calls that there is a plan for the next."""
    first = call(x)
    for _ in range(TIMES):
        call(x)
    return first


def planned(monkeypatch):
    """Have calls fail that compiled code does not do alone."""
    monkeypatch.setattr(window_plans, "run", None)
    monkeypatch.setattr(window_plans, "run_constant", None)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("name", CALLS)
def test_equals_the_general_path(name, dtype, monkeypatch):
    call, shape = CALLS[name]
    x = leaf(shape, dtype)
    first = repeated(call, x)
    seed = tg.randn_like(first)
    (expected,) = tg.autograd.grad(first, x, seed)
    planned(monkeypatch)
    again = call(x)
    assert type(again.grad_fn) is type(first.grad_fn)
    assert again.dtype is dtype
    np.testing.assert_array_equal(again.detach().numpy(), first.detach().numpy())
    np.testing.assert_array_equal(tg.autograd.grad(again, x, seed)[0].numpy(), expected.numpy())
    assert call(x.detach()).grad_fn is None


def test_places_are_constants(monkeypatch):
    def call(x):
        return F.max_pool2d(x, 2, return_indices=True)[1]

    x = leaf((2, 3, 6, 7))
    first = repeated(call, x)
    planned(monkeypatch)
    again = call(x)
    assert again.dtype is tg.int64
    assert not again.requires_grad
    np.testing.assert_array_equal(again.numpy(), first.numpy())


@pytest.mark.parametrize("name", ["avg_pool2d", "bilinear"])
def test_second_derivatives(name, monkeypatch):
    call, shape = CALLS[name]

    def curvature(x):
        (g,) = tg.autograd.grad((call(x) ** 3).sum(), x, create_graph=True)
        return tg.autograd.grad((g**2).sum(), x)[0]

    x = leaf(shape)
    expected = repeated(curvature, x)
    monkeypatch.setattr(window_plans, "run", None)
    np.testing.assert_allclose(curvature(x).numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "bilinear"])
def test_layouts_dtypes_and_sizes_that_have_no_plan(name):
    call, shape = CALLS[name]
    x = leaf(shape).detach()
    repeated(call, x)
    turned = x.transpose(-1, -2).contiguous().transpose(-1, -2)
    large = tg.ones(*shape[:-2], 80, 90, dtype=tg.float64)
    for other in (turned, large, x.double() * 2, x.float()):
        expected = call(other).numpy()
        for _ in range(2 * TIMES):
            np.testing.assert_array_equal(call(other).numpy(), expected)
    np.testing.assert_array_equal(call(turned).numpy(), call(x).numpy())


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "nearest"])
def test_numbers_that_are_not_finite_stay_in_their_windows(name, number, monkeypatch):
    call, shape = CALLS[name]
    x = leaf(shape).detach()
    x[(0,) * x.ndim] = number
    expected = repeated(call, x).numpy()
    assert (~np.isfinite(expected)).sum() <= 2
    planned(monkeypatch)
    np.testing.assert_array_equal(call(x).numpy(), expected)
