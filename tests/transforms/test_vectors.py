"""Which vectors products with derivatives take."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about the NumPy face")


def test_a_vector_of_integers_is_multiplied_by_the_hessian():
    """SciPy finds the dtype of an operator out by sending it int8 zeros."""
    product = tg.hvp(lambda x: np.sum(x**3))
    np.testing.assert_array_equal(product(np.array([1.0, 2.0]), np.array([1, 0], np.int8)), [6, 0])
