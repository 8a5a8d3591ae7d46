"""Bases of subspaces, which are compared by their projections: SciPy's may be turned."""

import numpy as np
import pytest
import scipy.linalg

import tapegrad as tg
from tests.scipy.test_names import Z, alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(0)
A, B, C = (rng.standard_normal(shape) for shape in ((4, 2), (4, 3), (5, 2)))


def projection(basis):
    return basis @ basis.conj().T


@pytest.mark.parametrize("M", [A.T, B.T, Z[:2]], ids=["2 of 4", "3 of 4", "complex"])
def test_null_spaces(M):
    same("linalg", lambda lib, a: projection(lib.null_space(a)), M)
    basis = tg.scipy.linalg.null_space(tg.tensor(M)).numpy()
    np.testing.assert_allclose(basis.conj().T @ basis, np.eye(basis.shape[1]), atol=1e-14)


@pytest.mark.parametrize("M", [A, B, Z[:, :2]], ids=["2 of 4", "3 of 4", "complex"])
def test_ranges(M):
    same("linalg", lambda lib, a: projection(lib.orth(a)), M)


def test_the_rank_is_that_of_the_matrix():
    """A matrix of rank two is moved along matrices of rank two."""

    def of(lib, left):
        a = left @ C.T
        return projection(lib.orth(a)), projection(lib.null_space(a))

    same("linalg", of, A)
    assert tg.scipy.linalg.null_space(tg.tensor(A @ C.T)).shape == (5, 3)
    assert tg.scipy.linalg.orth(tg.zeros(3, 2)).shape == (3, 0)
    assert tg.scipy.linalg.null_space(tg.tensor(np.diag([1.0, 1e-4])), rcond=1e-3).shape == (2, 1)


def test_bases_under_jit():
    def total(a):
        return np.sum(np.sin(projection(tg.scipy.linalg.null_space(a.T))))

    slope = tg.jit(tg.grad(total))
    for a in (A, 2 * A + 0.1):
        np.testing.assert_allclose(slope(a), tg.grad(total)(a), rtol=1e-9)
    with pytest.raises(RuntimeError, match=r"`scipy\.linalg\.null_space`: the shape of the basis"):
        tg.vmap(tg.scipy.linalg.null_space)(np.stack([A.T, A.T]))


@pytest.mark.parametrize("second", [rng.standard_normal((4, 2)), A + 0.1 * B[:, :2], B[:, :1]])
def test_angles_between_subspaces(second):
    same("linalg", lambda lib, a, b: lib.subspace_angles(a, b), A, second)
    same("linalg", lambda lib, a, b: lib.subspace_angles(b, a), A, second)


def test_the_nearest_turn():
    other = rng.standard_normal((5, 2))
    call = lambda lib, a, b: lib.orthogonal_procrustes(a, b)
    same("linalg", call, C, other)
    alike_in_transforms("linalg", call, C, other)
    # With equal singular values, where the derivatives of singular vectors are infinite.
    loss = lambda a: np.sum(tg.scipy.linalg.orthogonal_procrustes(a, np.eye(2))[0][0])
    rotation, along = np.eye(2), np.array([[0.3, 0.2], [-0.5, 0.1]])
    nearest = lambda a: scipy.linalg.orthogonal_procrustes(a, np.eye(2))[0][0].sum()
    step = (nearest(rotation + 1e-6 * along) - nearest(rotation - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(np.sum(tg.grad(loss)(rotation) * along), step, rtol=1e-8)
