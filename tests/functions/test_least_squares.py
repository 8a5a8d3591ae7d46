"""Least squares and condition numbers: what PyTorch cannot be asked."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tests/peers compares these functions with PyTorch")


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, float("inf"), -float("inf")])
def test_the_gradient_of_a_condition_number(rng, p):
    """It is that of the product of two norms, also beside a singular matrix in the batch."""
    a = tg.from_numpy(rng.standard_normal((3, 3)) + 3 * np.eye(3)).requires_grad_()
    (expected,) = tg.autograd.grad(
        tg.linalg.matrix_norm(a, p) * tg.linalg.matrix_norm(tg.linalg.inv(a), p), a
    )
    for y in (tg.linalg.cond(a, p), tg.linalg.cond(tg.stack([a, tg.ones(3, 3)]), p)[0]):
        (found,) = tg.autograd.grad(y, a)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_the_solution_of_a_deficient_system_is_the_pseudo_inverse(rng, driver):
    """Value and gradient, at constant rank."""
    thin = tg.from_numpy(rng.standard_normal((5, 2))).requires_grad_()
    right = tg.from_numpy(rng.standard_normal((5, 2)))
    a = tg.cat([thin, thin @ tg.ones(2, 2)], -1)
    both = [tg.linalg.lstsq(a, right, driver=driver).solution, tg.linalg.pinv(a) @ right]
    weight = tg.from_numpy(rng.standard_normal((4, 2)))
    slopes = [tg.autograd.grad(y, thin, weight, retain_graph=True)[0] for y in both]
    for found, expected in (both, slopes):
        np.testing.assert_allclose(
            found.detach().numpy(), expected.detach().numpy(), rtol=1e-8, atol=1e-10
        )


def test_gels_refuses_a_deficient_system():
    a = tg.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(tg.linalg.LinAlgError, match="has not full rank"):
        tg.linalg.lstsq(a, tg.ones(3, 1), driver="gels")
