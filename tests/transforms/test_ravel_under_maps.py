"""Raveling a pytree inside of a map."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")


def test_ravel_pytree_under_vmap():
    def both(x):
        flat, unravel = tg.ravel_pytree({"a": x, "b": 2.0 * x[:1]})
        return flat, unravel(flat)["b"]

    x = np.arange(6.0).reshape(3, 2)
    flat, b = tg.vmap(both)(x)
    np.testing.assert_array_equal(flat, np.concatenate([x, 2.0 * x[:, :1]], 1))
    np.testing.assert_array_equal(b, 2.0 * x[:, :1])
