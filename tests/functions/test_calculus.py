"""Integrals and slopes of what is sampled: what calculus knows, and transforms."""

import numpy as np
import pytest

import tapegrad

AT = np.array([0.0, 0.5, 1.5, 1.75, 3.0])


@pytest.mark.parametrize("edge_order", [1, 2])
def test_the_slope_of_a_line_and_of_a_parabola(edge_order):
    at = tapegrad.tensor(AT)
    (found,) = tapegrad.gradient(3 * at + 1, spacing=(at,), edge_order=edge_order)
    np.testing.assert_allclose(found.numpy(), np.full(5, 3.0), rtol=1e-12)
    (found,) = tapegrad.gradient(at * at, spacing=(at,), edge_order=edge_order)
    inner = slice(None) if edge_order == 2 else slice(1, -1)
    np.testing.assert_allclose(found.numpy()[inner], 2 * AT[inner], atol=1e-12)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_numpys_gradient_is_the_same(edge_order):
    x = np.stack([AT**3, np.cos(AT)])
    (found,) = tapegrad.gradient(tapegrad.tensor(x), spacing=[tapegrad.tensor(AT)], dim=1,
                                 edge_order=edge_order)  # fmt: skip
    expected = np.gradient(x, AT, axis=1, edge_order=edge_order)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    of_tensor = np.gradient(tapegrad.tensor(x), AT, axis=1, edge_order=edge_order)
    np.testing.assert_allclose(of_tensor.numpy(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="edge_order is 1 or 2"):
        np.gradient(tapegrad.tensor(x), edge_order=3)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: tapegrad.trapezoid(y, tapegrad.tensor(AT)) ** 2,
        lambda y: (tapegrad.cumulative_trapezoid(y, dx=0.5) ** 2).sum(),
        lambda y: (tapegrad.gradient(y, edge_order=2)[0] ** 2).sum(),
        lambda y: (tapegrad.frexp(y).mantissa ** 2).sum(),
        lambda y: tapegrad.cdist(y[None], y.reshape(5, 1).expand(5, 5) * 2).sum(),
        lambda y: (tapegrad.renorm(y.reshape(1, 5), 2, 0, 0.5) ** 3).sum(),
        lambda y: (tapegrad.ldexp(y, tapegrad.tensor(3)) ** 2).sum() + tapegrad.nanmean(y),
        lambda y: (tapegrad.float_power(y, 3) * tapegrad.isclose(y, y)).sum(),
    ],
    ids="trapezoid cumulative gradient frexp cdist renorm ldexp float_power".split(),
)
def test_transforms_agree(f):
    y = np.array([0.3, -1.2, 2.5, 0.9, -0.4])
    expected = tapegrad.grad(f)(y)
    t = tapegrad.tensor(y, requires_grad=True)
    f(t).backward()
    np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(tapegrad.jit(tapegrad.grad(f))(y), expected, rtol=1e-12)
    mapped = tapegrad.vmap(tapegrad.grad(f))(np.stack([y, y[::-1]]))
    np.testing.assert_allclose(mapped[0], expected, rtol=1e-12)
    way = np.cos(y)
    np.testing.assert_allclose(tapegrad.jvp(f, (y,), (way,))[1], expected @ way, rtol=1e-12)


def test_ldexp_keeps_single_precision_of_complex_numbers():
    z = tapegrad.tensor([1 + 2j, -0.5j], dtype=tapegrad.complex64)
    found = tapegrad.ldexp(z, tapegrad.tensor([3, -1]))
    assert found.dtype == tapegrad.complex64
    np.testing.assert_array_equal(found.numpy(), [8 + 16j, -0.25j])


def test_ldexp_says_which_shapes_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"`ldexp`: the shapes .* do not broadcast"):
        tapegrad.ldexp(tapegrad.ones(2, 3), tapegrad.zeros(0, dtype=tapegrad.int64))
