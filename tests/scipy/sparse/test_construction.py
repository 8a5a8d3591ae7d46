"""Constructors of sparse matrices, given Tensors, beside SciPy's."""

import numpy as np
import pytest
import scipy.sparse

import tapegrad as tg
from tapegrad.autograd import gradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has sparse Tensors of its own")

rng = np.random.default_rng(0)
A = scipy.sparse.random_array((3, 3), density=0.5, rng=1).tocsr()
V, W = rng.standard_normal(3), rng.standard_normal((2, 3))
PLACES = np.array([2, 0, 2]), np.array([0, 1, 0])


def same(call, *arrays):
    """Hold a function of SciPy's, or of Tensors, and elements to SciPy's, also under transforms."""
    given = [tg.tensor(a, requires_grad=True) for a in arrays]
    found, wanted = call(tg.scipy.sparse, *given), call(scipy.sparse, *arrays)
    assert isinstance(found, tg.scipy.sparse.SparseTensor)
    assert found.shape == wanted.shape
    assert (found.kind == "matrix") is scipy.sparse.isspmatrix(wanted)
    if wanted.format in ("csr", "csc"):
        assert found.format == wanted.format
    of = lambda *arrays: call(tg.scipy.sparse, *arrays).toarray()
    np.testing.assert_allclose(of(*given).detach().numpy(), wanted.toarray(), atol=1e-14)
    np.testing.assert_allclose(tg.jit(of)(*arrays), wanted.toarray(), atol=1e-14)
    many = tg.vmap(of)(*(np.stack([a, a]) for a in arrays))
    np.testing.assert_allclose(many[1], wanted.toarray(), atol=1e-14)
    assert gradcheck(of, given)


def csr(home, data):
    return home.csr_array((data, A.indices, A.indptr), shape=A.shape)


CALLS = {
    "csr_array": (csr, A.data),
    "csr_array of 1": (lambda s, d: s.csr_array((d, [2, 0, 3], [0, 3]), shape=(5,)), V),
    "csr_matrix": (lambda s, d: s.csr_matrix((d, A.indices, A.indptr)), A.data),
    "csc_matrix": (lambda s, d: s.csc_matrix((d, A.indices, A.indptr), dtype=np.float64), A.data),
    "csc_matrix of places": (lambda s, d: s.csc_matrix((d, PLACES), shape=(4, 3)), V),
    "coo_array": (lambda s, d: s.coo_array((d, PLACES), shape=(4, 3)), V),
    "coo_matrix": (lambda s, d: s.coo_matrix((d, PLACES)), V),
    "coo_array of 1": (lambda s, d: s.coo_array((d, (PLACES[0],)), shape=(5,)), V),
    "of a matrix": (lambda s, d: s.csc_matrix(csr(s, d)), A.data),
    "of an older one": (lambda s, d: s.csr_array(s.csc_matrix(csr(s, d))), A.data),
    "coo of a matrix": (lambda s, d: s.coo_matrix(csr(s, d)), A.data),
    "of an array": (lambda s, x: s.csr_array(x), W),
    "of a vector": (lambda s, x: s.csr_matrix(x), V),
    "csc of an array": (lambda s, x: s.csc_array(x, shape=(2, 3)), W),
    "dia_array": (lambda s, x: s.dia_array((x, [0, -1]), shape=(4, 3)), W),
    "dia_matrix": (lambda s, x: s.dia_matrix((x, [1, -2]), shape=(3, 4)), W),
    "diags": (lambda s, v: s.diags(v), V),
    "diags at": (lambda s, v: s.diags(v, 1), V),
    "diags of some": (lambda s, v, w: s.diags([v, w[0, :2], [5.0]], [0, 1, -2]), V, W),
    "diags of numbers": (lambda s, v: s.diags([v[0], -2.0, v[1]], [-1, 0, 1], (4, 4), "csr"), V),
    "diags_array": (lambda s, v: s.diags_array([v, v[1:]], offsets=[0, 1]), V),
    "diags_array of one": (lambda s, v: s.diags_array([v[0]], offsets=[1], shape=(3, 3)), V),
    "diags_array of a type": (
        lambda s, v: s.diags_array([v], offsets=[0], dtype=np.float64, format="csc"), V,
    ),
    "spdiags": (lambda s, x: s.spdiags(x, [0, 1], 3, 3), W),
    "spdiags with a shape": (lambda s, x: s.spdiags(x, [0, -1], (4, 4), format="csc"), W),
    "block_diag": (lambda s, d, x: s.block_diag([csr(s, d), x, A, [[0.0, 4.0]]]), A.data, W),
    "block_diag of arrays": (lambda s, x, y: s.block_diag([x, y], format="csr"), W, W.T),
    "block_array": (
        lambda s, d, x: s.block_array([[csr(s, d), None], [x, A[:2]]], format="csr"), A.data, W,
    ),
    "bmat": (lambda s, d: s.bmat([[None, csr(s, d)], [A, None]], format="csc"), A.data),
    "bmat of matrices": (
        lambda s, d: s.bmat([[s.csr_matrix(csr(s, d)), None], [None, [[1.0]]]]), A.data,
    ),
    "hstack": (lambda s, d: s.hstack([csr(s, d), A, 2 * csr(s, d)]), A.data),
    "vstack": (lambda s, d: s.vstack([csr(s, d), A[1:], csr(s, d)[:1]], format="csr"), A.data),
    "kron": (lambda s, d, x: s.kron(csr(s, d), x), A.data, W),
    "kron of two": (lambda s, d, e: s.kron(csr(s, d), csr(s, e)), A.data, A.data[::-1].copy()),
    "kron with SciPy's": (lambda s, d: s.kron(s.eye_array(2), csr(s, d), format="csc"), A.data),
    "kron of sparse ones": (lambda s, v: s.kron(s.diags_array(v), s.diags_array(v)), V),
    "kronsum": (lambda s, d, v: s.kronsum(csr(s, d), s.diags_array(v)), A.data, V),
    "kronsum with SciPy's": (lambda s, d: s.kronsum(A, csr(s, d), "csr"), A.data),
    "tril": (lambda s, d: s.tril(csr(s, d)), A.data),
    "triu": (lambda s, d: s.triu(csr(s, d), k=1, format="csr"), A.data),
    "identity": (lambda s, d: s.eye_array(3) + csr(s, d) @ s.eye_array(3), A.data),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_constructors(name):
    same(*CALLS[name])


def test_of_arrays_they_are_scipys():
    ours = tg.scipy.sparse
    for name in ("csr_array", "csc_array", "coo_array", "csr_matrix", "coo_matrix", "dia_array"):
        assert type(getattr(ours, name)(A)) is getattr(scipy.sparse, name)
    assert ours.csr_matrix((2, 3)).shape == (2, 3)
    for made in (
        ours.diags(V), ours.diags_array([V], offsets=[0]), ours.block_diag([A, A]),
        ours.bmat([[A]]), ours.block_array([[A]]), ours.hstack([A, A]), ours.vstack([A, A]),
        ours.kron(A, A), ours.kronsum(A, A), ours.tril(A), ours.triu(A),
        ours.spdiags(W, [0, 1], 3, 3),
    ):  # fmt: skip
        assert scipy.sparse.issparse(made)
    assert ours.diags_array([1], offsets=[0], dtype=None).dtype == int
    with pytest.warns(FutureWarning, match="cast to float64"):  # as SciPy does
        assert ours.diags([1], [0]).dtype == float
    assert ours.isspmatrix(ours.csr_matrix(A))
    assert ours.isspmatrix(ours.csr_matrix(tg.tensor(W)))
    assert not ours.isspmatrix(ours.csr_array(tg.tensor(W)))
    assert ours.issparse(A)
    assert ours.issparse(csr(ours, tg.tensor(A.data)))
    assert not ours.issparse(tg.tensor(V))


def test_types_of_elements():
    ours, single = tg.scipy.sparse, tg.tensor(V, dtype=tg.float32)
    assert ours.diags_array(single).dtype == tg.float32
    assert ours.diags([single], [0], dtype=np.float64).dtype == tg.float64
    assert ours.hstack([ours.diags_array(single), A]).dtype == tg.float64
    assert ours.coo_array((single, PLACES), dtype=np.complex128).dtype == tg.complex128
    assert ours.csr_array(ours.diags_array(single), dtype=np.float64).dtype == tg.float64


def test_constants_that_are_zero_are_not_stored():
    ours = tg.scipy.sparse
    t = tg.tensor(V)
    assert ours.block_diag([t[None], np.diag([1.0, 2.0])]).nnz == 5
    assert ours.block_diag([0 * t[None]]).nnz == 3


def test_what_cannot_be_is_refused():
    ours, t = tg.scipy.sparse, tg.tensor(V)
    a = ours.diags_array(t)
    for call, error, words in [
        (lambda: ours.csr_array(tg.ones(2, 2, 2)), TypeError, r"takes \(data, indices, indptr\)"),
        (lambda: ours.coo_array((t, [0, 1, 2], [0, 3])), TypeError, "`scipy.sparse.coo_array` of"),
        (lambda: ours.csr_array(a, shape=(2, 2)), ValueError, r"has the shape \(3, 3\), not \(2,"),
        (lambda: ours.kronsum(a, ours.csr_array(tg.ones(2, 3))), ValueError, r"got shapes \(3, 3"),
        (lambda: ours.hstack([a, tg.ones(2, 2)]), ValueError, "incompatible"),
        (lambda: ours.diags([t, t], [0]), ValueError, "Different number of diagonals"),
    ]:
        with pytest.raises(error, match=words):
            call()
