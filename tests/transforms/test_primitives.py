"""Primitives and what they are not differentiated in."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms.primitives import defvjp, primitive

pytestmark = pytest.mark.tapegrad_only("PyTorch has no primitives")

twice = primitive(lambda x: 2 * x)
defvjp(twice, lambda y, x: lambda g: 2 * g)


def test_complex_arguments_have_no_derivative():
    z = np.array([1 + 2j, 3.0])
    np.testing.assert_array_equal(twice(z), 2 * z)
    np.testing.assert_array_equal(twice(tg.tensor(z)), 2 * z)
    with pytest.raises(NotImplementedError, match=r"real numbers only, got complex .* argument 0"):
        twice(tg.tensor(z, requires_grad=True))
    with pytest.raises(NotImplementedError, match="real numbers only"):
        tg.grad(lambda z: np.sum(abs(twice(z))))(z)
