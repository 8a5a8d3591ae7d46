"""Convolutions that come again are computed and recorded in compiled code as in Python."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch import convolution_plans
from tapegrad.dispatch.call_plans import TIMES
from tapegrad.nn import convolution

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]
F = tg.nn.functional
CALLS = {
    "conv1d": (lambda x, w: F.conv1d(x, w, stride=2, padding=(1,)), (2, 3, 9), (4, 3, 3)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (1, 3, 5, 5), (2, 3, 3, 3)),
    "groups": (lambda x, w: F.conv2d(x, w, groups=2), (1, 4, 5, 5), (2, 2, 3, 3)),
    "same": (lambda x, w: F.conv2d(x, w, padding="same"), (1, 3, 5, 5), (2, 3, 3, 3)),
    "conv3d": (lambda x, w: F.conv3d(x, w), (1, 1, 3, 4, 3), (2, 1, 2, 2, 2)),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1),
        (1, 3, 4, 4), (3, 2, 3, 3),
    ),
}  # fmt: skip


def leaves(shapes, dtype):
    rng = np.random.default_rng(0)
    return [tg.tensor(rng.standard_normal(s), dtype=dtype).requires_grad_() for s in shapes]


def planned(monkeypatch):
    """Have calls fail that compiled code does not do alone."""
    monkeypatch.setattr(convolution, "run", None)


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize("name", CALLS)
def test_equals_the_general_path(name, dtype, monkeypatch):
    call, *shapes = CALLS[name]
    x, w = leaves(shapes, dtype)
    first = call(x, w)
    seed = tg.randn_like(first)
    expected = tg.autograd.grad(first, (x, w), seed)
    for _ in range(TIMES):
        call(x, w)
    planned(monkeypatch)
    again = call(x, w)
    assert type(again.grad_fn) is type(first.grad_fn)
    np.testing.assert_array_equal(again.detach().numpy(), first.detach().numpy())
    for a, b in zip(tg.autograd.grad(again, (x, w), seed), expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    (only,) = tg.autograd.grad(call(x.detach(), w), w, seed)
    np.testing.assert_array_equal(only.numpy(), expected[1].numpy())


def test_second_derivatives(monkeypatch):
    def curvature(x, w):
        (g,) = tg.autograd.grad((F.conv1d(x, w) ** 3).sum(), x, create_graph=True)
        return tg.autograd.grad((g**2).sum(), (x, w))

    x, w = leaves(CALLS["conv1d"][1:], tg.float64)
    expected = curvature(x, w)
    for _ in range(TIMES):
        curvature(x, w)
    planned(monkeypatch)
    for a, b in zip(curvature(x, w), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


def test_what_is_refused_stays_refused():
    x, w = leaves(CALLS["conv1d"][1:], tg.float64)
    for _ in range(2 * TIMES):
        F.conv1d(x, w, stride=1)
    for wrong in (True, 1.0):
        with pytest.raises(TypeError, match="stride is an int"):
            F.conv1d(x, w, stride=wrong)
        with pytest.raises(TypeError, match="stride is an int"):
            F.conv1d(x, w, stride=(wrong,))
    with pytest.raises(RuntimeError, match="one of them"):
        F.conv1d(x, w.float(), stride=1)


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_numbers_that_are_not_finite(number):
    """A transposed convolution multiplies nothing by the zeros around the outputs."""
    x, w = leaves(CALLS["conv_transpose2d"][1:], tg.float64)
    call = CALLS["conv_transpose2d"][0]
    with tg.no_grad():
        w[0, 0, 0, 0] = number
    expected = call(x, w).detach().numpy()
    for _ in range(2 * TIMES):
        np.testing.assert_array_equal(call(x, w).detach().numpy(), expected)


def test_layouts_and_sizes_that_have_no_plan():
    x, w = leaves(((1, 4, 40, 40), (16, 4, 3, 3)), tg.float32)
    for a, b in ((x, w), (x[:, :, :6].permute(0, 1, 3, 2), w), (x[0], w)):
        expected = F.conv2d(a, b).detach().numpy()
        for _ in range(2 * TIMES):
            np.testing.assert_array_equal(F.conv2d(a, b).detach().numpy(), expected)


def test_what_threads_would_divide_is_left_to_them():
    x, w = leaves(((4, 16, 16, 15), (16, 16, 3, 3)), tg.float64)
    before, made = tg.get_num_threads(), len(convolution_plans.plans)
    tg.set_num_threads(2)
    try:
        for _ in range(2 * TIMES):
            F.conv2d(x, w)
        assert len(convolution_plans.plans) == made
    finally:
        tg.set_num_threads(before)
