"""Tensors without elements."""

import pytest


def test_what_has_no_elements_can_be_changed(tg):
    """NumPy gives an empty array strides of zero, by which no elements share their memory."""
    x = tg.zeros(2, 0)
    x += 1.0
    x[:] = 5.0
    assert x.shape == (2, 0)


MEANS = {
    "of everything": lambda tg, x: x.mean(),
    "of columns": lambda tg, x: x.mean(0),
    "of rows": lambda tg, x: x.mean(1, keepdim=True),
    "mse_loss": lambda tg, x: tg.nn.functional.mse_loss(x, tg.zeros_like(x)),
    "mse_loss, target": lambda tg, x: tg.nn.functional.mse_loss(tg.zeros_like(x), x),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
@pytest.mark.parametrize("mean", MEANS)
def test_a_mean_has_a_gradient_without_elements(tg, mean, shape, create_graph):
    x = tg.ones(shape, requires_grad=True)
    y = MEANS[mean](tg, x)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert g.shape == shape


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("mean", MEANS)
def test_a_mean_without_elements_is_no_anomaly(tg, mean):
    x = tg.ones(0, 3, requires_grad=True)
    with tg.autograd.detect_anomaly(check_nan=False):
        MEANS[mean](tg, x).sum().backward()
    assert x.grad.shape == (0, 3)
