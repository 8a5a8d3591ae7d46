"""Norms, inverses and systems of sparse matrices of Tensors beside SciPy's."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has sparse Tensors of its own")

rng = np.random.default_rng(0)
A = (scipy.sparse.random_array((4, 4), density=0.4, rng=1) + 3 * scipy.sparse.eye_array(4)).tocsr()
WIDE = scipy.sparse.random_array((4, 6), density=0.5, rng=3).tocsr() * -2.0
V, W = rng.standard_normal(4), rng.standard_normal((4, 2))


def of(home, data, like=A, form="csr_array"):
    return getattr(home, form)((data, like.indices, like.indptr), shape=like.shape)


def same(call, like=A, form="csr_array", more=()):
    """Hold a function of a matrix to SciPy's, also under transforms."""
    dense = lambda x: x.toarray() if hasattr(x, "toarray") else x

    def ours(data, *more):
        return dense(call(tg.scipy.sparse, of(tg.scipy.sparse, data, like, form), *more))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.sparse.SparseEfficiencyWarning)
        wanted = dense(call(scipy.sparse, of(scipy.sparse, like.data, like, form), *more))
    given = [tg.tensor(x, requires_grad=True) for x in (like.data, *more)]
    np.testing.assert_allclose(ours(*given).detach().numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(tg.jit(ours)(like.data, *more), wanted, atol=1e-12)
    many = tg.vmap(ours)(*(np.stack([x, x]) for x in (like.data, *more)))
    np.testing.assert_allclose(many[1], wanted, atol=1e-12)
    assert gradcheck(ours, given)
    assert gradgradcheck(ours, given)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (1,), (0, 1)])
@pytest.mark.parametrize("ord", [None, "fro", 1, -1, np.inf, -np.inf, 2, 3])
def test_norms(ord, axis):
    whole = axis is None or axis == (0, 1)
    if (ord == "fro" and not whole) or (whole and ord in (2, 3)):
        return
    if not whole and ord in (-1, -np.inf):
        return  # of zeros
    same(lambda s, a: s.linalg.norm(a, ord, axis), WIDE)


def test_norms_of_nothing():
    """Those of rows without elements have no slope, and no NaN."""
    data = tg.tensor([3.0, 4.0], requires_grad=True)
    a = tg.scipy.sparse.csr_array((data, [0, 1], [0, 2, 2]))
    tg.scipy.sparse.linalg.norm(a, axis=1).sum().backward()
    np.testing.assert_allclose(data.grad, [0.6, 0.8])
    singular = tg.scipy.sparse.linalg.norm(of(tg.scipy.sparse, tg.tensor(A.data)), 2)
    assert float(singular) == pytest.approx(np.linalg.norm(A.toarray(), 2))
    assert scipy.sparse.linalg.norm(A) == tg.scipy.sparse.linalg.norm(A)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix"])
def test_functions_of_a_matrix(form):
    same(lambda s, a: s.linalg.inv(a), form=form)
    same(lambda s, a: s.linalg.expm(a / 4), form=form)
    same(lambda s, a: s.linalg.matrix_power(a, 3), form=form)
    kind = of(tg.scipy.sparse, tg.tensor(A.data), form=form).kind
    assert (
        tg.scipy.sparse.linalg.inv(of(tg.scipy.sparse, tg.tensor(A.data), form=form)).kind == kind
    )


def test_systems_of_what_was_computed():
    """Matrices that sums, products and blocks have made."""
    same(lambda s, a, b: s.linalg.spsolve(a @ a.T + s.eye_array(4), b), more=(V,))
    same(lambda s, a, b: s.linalg.spsolve((2 * a + a.T).tocsc(), b), more=(W,))
    same(lambda s, a: s.linalg.spsolve(a, A[:, [0, 2]]))
    same(lambda s, a: s.linalg.spsolve(a, A[:, [2]]))
    same(lambda s, a, b: s.linalg.splu(s.tril(a, format="csc")).solve(b), more=(V,))
    blocks = lambda s, a: s.block_array([[a, None], [s.eye_array(4), a.T]], format="csc")
    same(lambda s, a, b: s.linalg.spsolve(blocks(s, a), np.concatenate([b, b])), more=(V,))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("b", [V, W], ids=["vector", "columns"])
def test_triangular_systems(b, unit, lower):
    half = lambda s, a: s.tril(a, format="csr") if lower else s.triu(a, format="csr")

    def solved(s, a, b):
        a = half(s, a)
        if unit and not isinstance(a, tg.scipy.sparse.SparseTensor):
            a.setdiag(1.0)
        return s.linalg.spsolve_triangular(a, b, lower, unit_diagonal=unit)

    same(solved, more=(b,))
    found = tg.scipy.sparse.linalg.spsolve_triangular(
        half(scipy.sparse, A), tg.tensor(b), lower, unit_diagonal=unit
    )
    assert found.shape == b.shape
    assert tg.scipy.sparse.linalg.spsolve_triangular(
        half(scipy.sparse, A), tg.tensor(V[:, None]), lower
    ).shape == (4, 1)
