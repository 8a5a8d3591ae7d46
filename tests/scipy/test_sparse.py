"""Sparse matrices times Tensors, sparse matrices of Tensors, and sparse systems."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has sparse Tensors of its own")

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
S = scipy.sparse.random_array((4, 5), density=0.5, rng=1)
B = scipy.sparse.csr_array(np.diag([3.0, 4.0, 5.0]) + np.diag([1.0, 2.0], 1))
PRODUCTS = {
    "A @ x": (lambda A, x: A @ x, (5,)),
    "A @ X": (lambda A, x: A @ x, (5, 3)),
    "x @ A": (lambda A, x: x @ A, (4,)),
    "X @ A": (lambda A, x: x @ A, (2, 4)),
    "A @ column": (lambda A, x: A @ x, (5, 1)),
    "A @ nothing": (lambda A, x: A @ x, (5, 0)),
}


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_scipys_matrices(name, form, kind, rng):
    product, shape = PRODUCTS[name]
    A, x = kind(S).asformat(form), rng.standard_normal(shape)
    t = tg.tensor(x, requires_grad=True)
    found = product(A, t)
    np.testing.assert_allclose(found.detach().numpy(), product(A, x), rtol=1e-14, atol=1e-15)
    assert gradcheck(lambda t: product(A, t), (t,))
    assert gradgradcheck(lambda t: product(A, t) ** 2, (t,))
    assert isinstance(product(A, t.detach()), tg.Tensor)


def test_products_under_transforms(rng):
    x = rng.standard_normal((6, 5))
    f = lambda t: tg.sum((S @ t) ** 2)
    dense = S.toarray()
    np.testing.assert_allclose(tg.grad(f)(x[0]), 2 * dense.T @ (dense @ x[0]), rtol=1e-12)
    np.testing.assert_allclose(tg.hessian(f)(x[0]), 2 * dense.T @ dense, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x[0]), tg.grad(f)(x[0]), rtol=1e-13)
    np.testing.assert_allclose(tg.vmap(lambda t: S @ t)(x), x @ dense.T, rtol=1e-13, atol=1e-15)
    many = tg.vmap(lambda t: S @ t.reshape(5, 1))(x)
    np.testing.assert_allclose(many[..., 0], x @ dense.T, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        tg.jvp(lambda t: S @ t, (x[0],), (x[1],))[1], dense @ x[1], rtol=1e-13
    )


OPERATORS = {
    "A * x": lambda A, x: A * x,
    "x * A": lambda A, x: x * A,
    "A / x": lambda A, x: A / x,
    "A + x": lambda A, x: A + x,
    "x - A": lambda A, x: x - A,
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_with_scipys_matrices(name, form, rng):
    """Products and quotients are sparse, with elements that are a Tensor; of numbers, too."""
    operator, A = OPERATORS[name], S.asformat(form)
    of_a_matrix = lambda x: getattr(found := operator(A, x), "toarray", lambda: found)()
    shapes = [(4, 5), (5,), (4, 1), ()] if name[2] in "*/" else [(4, 5), (5,)]
    for shape in shapes:
        x = 1.0 + rng.random(shape)
        dense = operator(S.toarray(), x)
        t = tg.tensor(x, requires_grad=True)
        np.testing.assert_allclose(of_a_matrix(t).detach().numpy(), dense, rtol=1e-14)
        np.testing.assert_allclose(tg.jit(of_a_matrix)(x), dense, rtol=1e-14)
        np.testing.assert_allclose(tg.vmap(of_a_matrix)(x[None])[0], dense, rtol=1e-14)
        assert gradcheck(of_a_matrix, (t,))
        assert isinstance(operator(A, t), tg.Tensor) is (name[2] in "+-")


@pytest.mark.parametrize("form", FORMATS)
def test_operators_with_scipys_older_matrices(form, rng):
    A = scipy.sparse.csr_matrix(S).asformat(form)
    x, y = (tg.tensor(rng.standard_normal(n), requires_grad=True) for n in (5, 4))
    np.testing.assert_allclose((A * x).detach().numpy(), A * x.detach().numpy())
    np.testing.assert_allclose((y * A).detach().numpy(), y.detach().numpy() * A)
    assert gradcheck(lambda x, y: (y[0] * A * x + A * x / y[1]) * y, (x, y))


def test_dtypes():
    x = tg.ones(5, dtype=tg.float32)
    assert (S @ x).dtype == tg.float64
    assert (S.astype(np.float32) @ x).dtype == tg.float32
    assert (S @ tg.ones(5, dtype=tg.int64)).dtype == tg.float64
    assert (S * 1j @ x.double()).dtype == tg.complex128


@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_matrices_of_tensors(kind, rng):
    def matrix(d, home=tg.scipy.sparse):
        return getattr(home, kind)((d, held.indices, held.indptr), shape=(3, 3))

    held = B.asformat(kind[:3])
    d, x = held.data, rng.standard_normal((3, 2))
    both = tuple(tg.tensor(a, requires_grad=True) for a in (d, x))
    for f in (
        lambda A, x: A @ x,
        lambda A, x: A.T @ x[:, 0],
        lambda A, x: x.T @ A,
        lambda A, x: A.dot(x),
    ):
        np.testing.assert_allclose(
            f(matrix(both[0]), both[1]).detach().numpy(), f(matrix(d, scipy.sparse), x), rtol=1e-14
        )
        assert gradcheck(lambda d, x, f=f: f(matrix(d), x), both)
        assert gradgradcheck(lambda d, x, f=f: f(matrix(d), x), both)
    A = matrix(both[0])
    assert A.toarray().tolist() == B.toarray().tolist()
    assert (A.shape, A.ndim, A.nnz, A.dtype) == ((3, 3), 2, 5, tg.float64)
    assert np.asarray([1.0, 0.0, 0.0]) @ A @ tg.ones(3) == held[[0]].sum()
    assert "5 elements" in repr(A)


@pytest.mark.parametrize("kind", ["csr_array", "csc_array"])
def test_elements_of_one_place_add_up(kind, rng):
    places, shape = ([2, 0, 2, 1, 0, 2], [0, 3, 0, 1, 3, 2]), (3, 4)

    def matrix(d, home=tg.scipy.sparse, shape=shape):
        return getattr(home, kind)((d, places), shape=shape)

    d, x = rng.standard_normal(6), rng.standard_normal(4)
    expected = matrix(d, scipy.sparse)
    t = tg.tensor(d, requires_grad=True)
    found = matrix(t)
    assert (found.shape, found.nnz) == (shape, 4)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_allclose(found.toarray().detach().numpy(), expected.toarray())
    assert matrix(t, shape=None).shape == shape
    assert gradcheck(lambda d: matrix(d) @ x, (t,))
    slope = tg.grad(lambda d: np.sum((matrix(d) @ x) ** 2))
    np.testing.assert_allclose(tg.jit(slope)(d), slope(d))
    np.testing.assert_allclose(tg.vmap(slope)(np.stack([d, 2 * d]))[1], slope(2 * d))
    with pytest.raises(ValueError, match="exceeds matrix dimension"):
        matrix(t, shape=(2, 4))
    with pytest.raises(ValueError, match="same length"):
        matrix(t[1:])


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_a_matrix_whose_elements_move_after_the_product():
    A, x = B.copy(), tg.ones(3, requires_grad=True)
    y = A @ x
    A[2, 0] = 100.0
    y.sum().backward()
    assert x.grad.tolist() == B.sum(0).tolist()
    assert (A @ x).tolist() == A.sum(1).tolist()


def test_of_arrays_they_are_scipys():
    A = tg.scipy.sparse.csr_array((B.data, B.indices, B.indptr))
    assert type(A) is scipy.sparse.csr_array
    assert type(tg.scipy.sparse.linalg.spsolve(A.tocsc(), np.ones(3))) is np.ndarray
    assert tg.scipy.sparse.eye_array is scipy.sparse.eye_array


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 1)])
def test_spsolve(form, shape, rng):
    A, b = B.asformat(form), rng.standard_normal(shape)
    t = tg.tensor(b, requires_grad=True)
    found = tg.scipy.sparse.linalg.spsolve(A, t)
    expected = scipy.sparse.linalg.spsolve(A.tocsc(), b)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-13)
    assert gradcheck(lambda b: tg.scipy.sparse.linalg.spsolve(A, b), (t,))


def test_spsolve_in_the_elements_of_the_matrix(rng):
    def solved(d, b):
        A = tg.scipy.sparse.csr_array((d, B.indices, B.indptr), shape=(3, 3))
        return tg.scipy.sparse.linalg.spsolve(A, b)

    both = tuple(
        tg.tensor(a, requires_grad=True) for a in (B.data + 0.5, rng.standard_normal((3, 2)))
    )
    assert gradcheck(solved, both, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(solved, both)
    z = tuple(tg.tensor(t.detach().numpy() * (1 + 0.5j), requires_grad=True) for t in both)
    assert gradcheck(solved, z)


def test_what_cannot_be_is_refused():
    x = tg.ones(4, requires_grad=True)
    with pytest.raises(ValueError, match=r"shape \(4, 5\) and a Tensor of shape \(4,\)"):
        S @ x
    with pytest.raises(TypeError, match="two sparse matrices"):
        tg.matmul(S, S)
    with pytest.raises(ValueError, match="do not fit together"):
        tg.scipy.sparse.linalg.spsolve(S, x)
    with pytest.raises(RuntimeError, match=r"shape \(2, 2\) is singular"):
        tg.scipy.sparse.linalg.spsolve(scipy.sparse.csc_array([[1.0, 1.0], [1.0, 1.0]]), x[:2])
    with pytest.raises(TypeError, match="takes a sparse matrix"):
        tg.scipy.sparse.linalg.spsolve(np.eye(4), x)
    with pytest.raises(TypeError, match=r"takes \(data, indices, indptr\)"):
        tg.scipy.sparse.csr_array(tg.ones(2, 2, 2))
    with pytest.raises(ValueError, match=r"indices of shape \(3,\)"):
        tg.scipy.sparse.csr_array((x, [0, 1, 2], [0, 4]))
    with pytest.raises(AttributeError, match=r"tapegrad\.scipy"):
        tg.scipy.nothing  # noqa: B018


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_systems_by_factors(trans, rng, monkeypatch):
    A = scipy.sparse.csc_array(B)
    factors = tg.scipy.sparse.linalg.splu(A)
    monkeypatch.setattr(scipy.sparse.linalg, "splu", None)  # they serve all systems
    for b in (rng.standard_normal(3), rng.standard_normal((3, 2))):
        wanted = np.linalg.solve(B.toarray() if trans == "N" else B.toarray().T, b)
        for found in (
            factors.solve(b, trans),
            factors.solve(tg.tensor(b), trans).numpy(),
            tg.jit(lambda b: factors.solve(b, trans))(b),
        ):
            np.testing.assert_allclose(found, wanted)
        leaf = tg.tensor(b, requires_grad=True)
        assert gradcheck(lambda b: factors.solve(b, trans), (leaf,))
        assert gradgradcheck(lambda b: factors.solve(b, trans) ** 2, (leaf,))
    with pytest.raises(ValueError, match="trans is"):
        factors.solve(leaf, "X")


def test_factors_of_tensors():
    A, b = scipy.sparse.csc_array(B), tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    elements = tg.tensor(A.data, requires_grad=True)

    def solved(elements, b):
        matrix = tg.scipy.sparse.csc_array((elements, A.indices, A.indptr), A.shape)
        return tg.scipy.sparse.linalg.factorized(matrix)(b)

    np.testing.assert_allclose(
        solved(elements, b).detach().numpy(), np.linalg.solve(B.toarray(), [1.0, 2.0, 3.0])
    )
    assert gradcheck(solved, (elements, b))
