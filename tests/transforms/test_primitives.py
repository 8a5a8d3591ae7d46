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


@primitive
def product(x, y):
    return x * y


defvjp(product, lambda ans, x, y: lambda g: g * y, lambda ans, x, y: lambda g: g * x)


@pytest.mark.parametrize("size", [3, 40])
def test_rows_of_a_matrix_at_once_go_through_the_rules(size):
    """Where a whole batch of adjoints is swept, and nothing but these is followed."""
    x, y = np.arange(1.0, size + 1), np.linspace(1.0, 2.0, size)

    def f(x, y):
        return np.sum(product(x, y) ** 3)

    gradient = tg.grad(f)
    exact = np.diag(6 * x * y**3), np.diag(9 * x**2 * y**2)
    for found in (
        (tg.hessian(f)(x, y), tg.hessian(f, (0, 1))(x, y)[0][1]),
        tg.jacrev(gradient, (0, 1))(x, y),
        tg.jacobian(gradient, (0, 1))(x, y),
        tg.jit(tg.jacrev(gradient, (0, 1)))(x, y),
    ):
        np.testing.assert_allclose(found, exact, rtol=1e-12)
    np.testing.assert_allclose(tg.jacrev(product)(x, y), np.diag(y), rtol=1e-12)


def test_batches_of_weights_go_through_the_rules():
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (found,) = tg.autograd.grad(product(x, 2.0), x, tg.eye(3), is_grads_batched=True)
    assert found.tolist() == (2 * np.eye(3)).tolist()
