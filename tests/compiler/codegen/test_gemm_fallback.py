"""Products in which a zero met what is not finite are computed again, so that the zero counts."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch's zeros do not count")

SHAPES = [
    ((40, 30), (30, 20)), ((3, 4), (4, 5)), ((1, 30), (30, 20)), ((6, 7), (7, 8)),
    ((5, 12, 9), (5, 9, 11)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((5, 3, 4), (4, 7)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shapes", SHAPES)
def test_a_zero_adjoint_meets_infinity(shapes, dtype):
    rng = np.random.default_rng(1)
    a, b = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    b[..., 1, 1:] = np.inf
    wanted = np.zeros((*a.shape[:-1], b.shape[-1]), dtype)
    wanted[..., 0, 0] = 1.0
    gradient = tg.grad(lambda a, b: np.sum(np.where(wanted != 0, a @ b, 0.0)), argnums=(0, 1))
    compiled = tg.jit(gradient)
    for found, expected in zip(compiled(a, b), gradient(a, b), strict=True):
        assert np.all(np.isfinite(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == np.float32 else 1e-12)
    assert "@again.exact" in compiled.lower(a, b).as_text("llvm")


def test_what_is_no_number_stays_so():
    a, b = np.ones((12, 11)), np.ones((11, 10))
    b[3, 4] = np.nan
    gradient = tg.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))
    for found, expected in zip(tg.jit(gradient)(a, b), gradient(a, b), strict=True):
        np.testing.assert_array_equal(found, expected)
