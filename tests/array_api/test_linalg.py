"""The extensions: linear algebra and Fourier transforms."""

import inspect

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import array_api as xp

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")

A = np.random.default_rng(0).standard_normal((3, 3)) + 4 * np.eye(3)
FUNCTIONS = [
    lambda a: xp.linalg.cholesky(a @ a.mT, upper=True),
    lambda a: xp.linalg.cross(a, a[0]),
    lambda a: xp.linalg.det(a),
    lambda a: xp.linalg.diagonal(a, offset=1),
    lambda a: xp.linalg.eigvalsh(a @ a.mT),
    lambda a: xp.linalg.eigh(a @ a.mT).eigenvalues,
    lambda a: xp.linalg.inv(a),
    lambda a: xp.linalg.matrix_norm(a, ord=2),
    lambda a: xp.linalg.matrix_power(a, -2),
    lambda a: xp.linalg.outer(a[0], a[1]),
    lambda a: xp.linalg.pinv(a),
    lambda a: xp.linalg.qr(a).R,
    lambda a: xp.linalg.slogdet(a).logabsdet,
    lambda a: xp.linalg.solve(a, a[0]),
    lambda a: xp.linalg.svd(a, full_matrices=False).S,
    lambda a: xp.linalg.svdvals(a),
    lambda a: xp.linalg.trace(a, offset=-1),
    lambda a: xp.linalg.vector_norm(a, axis=0, ord=3),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: inspect.getsource(f).strip())
def test_functions_are_differentiated(function):
    tg.check_grads(function, (xp.asarray(A),), order=2)


def test_types_are_promoted():
    a, b = xp.asarray(A, dtype=xp.float32), xp.asarray(A)
    for function in (xp.linalg.solve, xp.linalg.matmul, xp.linalg.cross, xp.linalg.vecdot):
        assert function(a, b).dtype == xp.float64
    assert int(xp.linalg.matrix_rank(b)) == 3
