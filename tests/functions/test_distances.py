"""Distances by a product of matrices are those of the differences, and so are their gradients."""

import numpy as np
import pytest

import tapegrad

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(40, 3)), RNG.normal(size=(2, 5, 3))


def both(mode):
    a, b = (tapegrad.tensor(x, requires_grad=True) for x in (A, B))
    found = tapegrad.cdist(a, b, compute_mode=mode)
    (found**3).sum().backward()
    return found.detach().numpy(), a.grad.numpy(), b.grad.numpy()


def test_two_ways_to_euclidean_distances():
    ways = ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    for product, difference in zip(*map(both, ways), strict=True):
        np.testing.assert_allclose(product, difference, rtol=1e-10)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_a_point_at_itself_has_no_slope(mode):
    x = tapegrad.tensor([[1.0, 2.0], [4.0, 6.0]], requires_grad=True)
    tapegrad.cdist(x, x.detach(), compute_mode=mode).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[-0.6, -0.8], [0.6, 0.8]], rtol=1e-12)
