"""Functions of matrices against SciPy: values, derivatives of both orders, transforms."""

import numpy as np
import pytest

import tapegrad as tg
from tests.scipy.test_names import G, P, Z, alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

TRIGONOMETRIC = ["cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"]


@pytest.mark.parametrize("name", TRIGONOMETRIC)
def test_trigonometric_functions(name):
    call = lambda lib, a: getattr(lib, name)(a / 3)
    same("linalg", call, G)
    same("linalg", call, Z)
    alike_in_transforms("linalg", call, G)


def test_powers_of_matrices():
    same("linalg", lambda lib, a: lib.fractional_matrix_power(a, 0.7), P)
    same("linalg", lambda lib, a: lib.fractional_matrix_power(a, -2), P)

    def total(t):
        return np.sum(tg.scipy.linalg.fractional_matrix_power(tg.tensor(P), t))

    step = (total(0.7 + 1e-6) - total(0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tg.grad(total)(0.7), step, rtol=1e-7)


def test_signs_of_matrices():
    signs = lambda lib, a: lib.signm(a)
    mixed = np.diag([2.0, -3.0, 1.0]) + (G - 3 * np.eye(3)) / 4
    same("linalg", signs, mixed)
    alike_in_transforms("linalg", signs, mixed)


@pytest.mark.parametrize("both", [True, False])
def test_the_derivative_of_an_exponential(both):
    call = lambda lib, a, e: lib.expm_frechet(a / 3, e, compute_expm=both)
    same("linalg", call, G, P)
    alike_in_transforms("linalg", call, G, P)
