"""Pooling by windows that are drawn; `tests/peers` gives both libraries the same numbers."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tests/peers compares the libraries")
F = tg.nn.functional


def test_the_default_generator_draws():
    x = tg.tensor(np.random.default_rng(0).random((2, 3, 9, 8)))
    tg.manual_seed(3)
    first, places = F.fractional_max_pool2d(x, 2, output_ratio=0.6, return_indices=True)
    tg.manual_seed(3)
    again = F.fractional_max_pool2d(x, 2, output_ratio=0.6)
    assert first.shape == (2, 3, 5, 4)
    assert first.tolist() == again.tolist()
    assert F.fractional_max_pool2d(x, 2, output_ratio=0.6).tolist() != again.tolist()
    taken = np.take_along_axis(x.numpy().reshape(2, 3, -1), places.numpy().reshape(2, 3, -1), 2)
    assert taken.reshape(first.shape).tolist() == first.tolist()


def test_gradients_and_transforms():
    x = tg.tensor(np.random.default_rng(1).random((2, 1, 5, 6)), requires_grad=True)
    samples = tg.tensor([[[0.2, 0.7]]]).double()

    def f(x):
        return F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=samples)

    assert tg.autograd.gradcheck(f, (x[0],))
    whole = tg.stack([f(part) for part in x])
    np.testing.assert_array_equal(tg.func.vmap(f)(x.detach()).numpy(), whole.detach().numpy())
    np.testing.assert_array_equal(tg.jit(f)(x[1].detach()).numpy(), whole[1].detach().numpy())


def test_refusals_say_what_fits():
    x = tg.ones(1, 1, 4, 4)
    with pytest.raises(ValueError, match=r"either output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match=r"\(4, 4\) windows of \(2, 2\) do not fit"):
        F.fractional_max_pool2d(x, 2, 4)
    with pytest.raises(RuntimeError, match=r"of shape \(1, 1, 2\), got"):
        F.fractional_max_pool2d(x, 2, 2, _random_samples=tg.ones(1, 2))
