"""Sparse matrices of Tensors beside SciPy's: operators, parts, sums, and under transforms."""

import operator

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has sparse Tensors of its own")

CLASSES = ["csr_array", "csc_array", "coo_array", "csr_matrix", "csc_matrix"]
rng = np.random.default_rng(0)
A = scipy.sparse.random_array((4, 4), density=0.5, rng=1).tocsr()
B = scipy.sparse.random_array((4, 4), density=0.4, rng=2).tocsr()
WIDE = scipy.sparse.random_array((4, 6), density=0.5, rng=3).tocsr()
V, W = rng.standard_normal(4), rng.standard_normal((4, 4))


def made(home, name, data, like):
    """A matrix of SciPy's, or of Tensors, with elements where those of another one stand."""
    form = "csc" if name.startswith("csc") else "csr"
    held = like.asformat(form)
    if name.startswith("coo"):
        return getattr(home, name)((data, held.tocoo().coords), shape=like.shape)
    return getattr(home, name)((data, held.indices, held.indptr), shape=like.shape)


def elements(like, name="csr"):
    return like.asformat("csc" if name.startswith("csc") else "csr").data


def dense(x):
    """An array of what SciPy gives, or a Tensor of what Tensors give."""
    x = x.toarray() if hasattr(x, "toarray") else x
    return np.asarray(x) if isinstance(x, np.matrix) else x


def alike(call, *matrices, name="csr_array", orders=2):
    """Hold what a function of matrices gives to SciPy's, also compiled and for each of many."""
    data = [elements(m, name) for m in matrices]

    def of(home, *data):
        return call(*(made(home, name, d, m) for d, m in zip(data, matrices, strict=True)))

    given = [tg.tensor(d, requires_grad=True) for d in data]
    found, wanted = of(tg.scipy.sparse, *given), of(scipy.sparse, *data)
    assert found.shape == wanted.shape
    if scipy.sparse.issparse(wanted):
        assert isinstance(found, tg.scipy.sparse.SparseTensor)
        if wanted.ndim == 2:
            older = scipy.sparse.isspmatrix(wanted)
            assert (found.kind == "matrix") is older
    else:
        assert isinstance(found, tg.Tensor)
    np.testing.assert_allclose(dense(found).detach().numpy(), dense(wanted), atol=1e-12)
    of_tensors = lambda *data: dense(of(tg.scipy.sparse, *data))
    for inside in (tg.jit(of_tensors), lambda *d: tg.vmap(of_tensors)(*(x[None] for x in d))[0]):
        np.testing.assert_allclose(inside(*data), dense(wanted), atol=1e-12)
    if orders:
        assert gradcheck(of_tensors, given)
    if orders > 1:
        assert gradgradcheck(of_tensors, given)
    slope = tg.grad(lambda *data: np.sum(np.sin(of_tensors(*data))))
    np.testing.assert_allclose(tg.jit(slope)(*data), slope(*data), atol=1e-12)


OF_ONE = {
    "-a": lambda a: -a,
    "2 * a / 3": lambda a: 2 * a / 3,
    "a * float64": lambda a: np.float64(2.0) * a * np.float64(0.5),
    "abs": lambda a: abs(-a),
    "power": lambda a: a.power(3),
    "a**2": lambda a: a**2,
    "multiply by vector": lambda a: a.multiply(V),
    "multiply by column": lambda a: a.multiply(V[:, None]),
    "multiply by array": lambda a: a.multiply(W),
    "divide by array": lambda a: a / W,
    "a + array": lambda a: a + W,
    "array - a": lambda a: W - a,
    "a - 0": lambda a: 0 + a - 0,
    "a @ v": lambda a: a @ V,
    "v @ a": lambda a: V @ a,
    "W @ a": lambda a: W @ a,
    "a.dot(2)": lambda a: a.dot(2.0),
    "a + b": lambda a: a + B,
    "b - a": lambda a: B - a,
    "a @ b": lambda a: a @ B,
    "b @ a": lambda a: B @ a,
    "a.multiply(b)": lambda a: a.multiply(B),
    "a[1]": lambda a: a[1],
    "a[-1]": lambda a: a[-1],
    "a[0, 1]": lambda a: a[0, 1] + a[2, 1],
    "a[1:3]": lambda a: a[1:3],
    "a[::-1, 1:]": lambda a: a[::-1, 1:],
    "a[:, 2]": lambda a: a[:, 2],
    "a[[2, 0, 2]]": lambda a: a[[2, 0, 2]],
    "a[mask]": lambda a: a[np.array([True, False, True, True])],
    "a[rows, columns]": lambda a: a[[0, 1, 3], [2, 1, 0]],
    "a[np.ix_]": lambda a: a[np.ix_([3, 1], [0, 2, 1])],
    "a[...]": lambda a: a[...],
    "diagonal": lambda a: a.diagonal(),
    "diagonal(1)": lambda a: a.diagonal(1),
    "diagonal(-2)": lambda a: a.diagonal(k=-2),
    "trace": lambda a: a.trace() + a.trace(offset=1),
    "sum": lambda a: a.sum(),
    "sum(0)": lambda a: a.sum(0),
    "sum(-1)": lambda a: a.sum(axis=-1),
    "mean": lambda a: a.mean(),
    "mean(0)": lambda a: a.mean(axis=0),
    "mean(1)": lambda a: a.mean(1),
    "max": lambda a: a.max() - (-a).min(),
    "T": lambda a: a.T,
    "transpose": lambda a: a.transpose().tocsr(),
    "conj": lambda a: a.conj(),
    "toarray": lambda a: a.toarray(),
    "todense": lambda a: a.todense(),
    "tocsr": lambda a: a.tocsr(),
    "tocsc": lambda a: a.tocsc(),
    "copy": lambda a: a.copy(),
    "reshape": lambda a: a.reshape((2, 8)),
    "np.sum": lambda a: np.sum(a),
    "np.mean": lambda a: np.mean(a, axis=1),
    "np.transpose": lambda a: np.transpose(a) * len(np.shape(a)),
    "sin": lambda a: np.sin(a),
    "sqrt": lambda a: np.sqrt(a),
    "expm1": lambda a: a.expm1(),
    "real": lambda a: a.real,
    "maximum(0)": lambda a: (a - B).maximum(0).minimum(0.5),
}  # fmt: skip


OTHERWISE = {  # a test of their own, or nothing of SciPy's to compare with
    "csr_matrix": ("a**2", "a[rows, columns]"), "csc_matrix": ("a**2", "a[rows, columns]"),
    "coo_array": [case for case in OF_ONE if case not in ("sum(0)", "T", "a @ v", "tocsr")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name in CLASSES for case in OF_ONE if case not in OTHERWISE.get(name, ())],
)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_operators_and_parts(name, case):
    alike(OF_ONE[case], A, name=name, orders=2 if name == "csr_array" else 1)


OF_TWO = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a @ b": lambda a, b: a @ b,
    "a.dot(b)": lambda a, b: a.dot(b.T),
    "a.multiply(b)": lambda a, b: a.multiply(b),
    "rows": lambda a, b: a.multiply(b[[0], :]),
    "columns": lambda a, b: a[:, [1]].multiply(b),
    "maximum": lambda a, b: (a - b).maximum(b - a).minimum(a.T),
    "a + a.T": lambda a, b: a + a.T @ b,
}


@pytest.mark.parametrize("name", [name for name in CLASSES if name != "coo_array"])
@pytest.mark.parametrize("case", OF_TWO)
def test_two_matrices(case, name):
    alike(OF_TWO[case], A, B, name=name, orders=2 if name == "csr_array" else 1)


def test_products_of_matrices_that_are_not_square():
    alike(lambda a, b: a @ b, A, WIDE)
    alike(lambda a, b: b.T @ a @ b, A, WIDE, orders=1)
    alike(lambda a, b: a @ b, A, scipy.sparse.csr_array((4, 3)), orders=0)


def test_vectors():
    """A row of an array is an array of one dimension."""
    alike(lambda a, b: a[1] + b[:, 2], A, B)
    alike(lambda a, b: a[0].multiply(b[1]), A, B)
    alike(lambda a, b: a[0] @ b, A, WIDE)
    alike(lambda a, b: a @ b[:, 1], A, WIDE)
    alike(lambda a: a[1] @ V, A)
    alike(lambda a: V @ a[1], A)
    alike(lambda a: a[1] @ W, A)
    alike(lambda a: W @ a[1], A)
    alike(lambda a: a[2].sum(), A)
    alike(lambda a: a[1][[3, 0]], A)
    alike(lambda a: a[1][2], A)
    alike(lambda a: 2 * a[1].T, A)
    alike(lambda a: a[1].multiply(V), A)
    row = made(tg.scipy.sparse, "csr_array", tg.tensor(A.data), A)[1]
    assert (row.shape, row.ndim) == ((4,), 1)
    assert float(row @ row) == pytest.approx((A[[1]] @ A[[1]].T).sum())
    np.testing.assert_array_equal(row.coords[0], A[1].coords[0])


def test_older_matrices():
    """`*` is the product of matrices, `**` its power, and what is left of a matrix is a matrix."""
    like = {"name": "csr_matrix", "orders": 1}
    alike(lambda a: a * V, A, **like)
    alike(lambda a: V * a, A, **like)
    alike(lambda a, b: a * b, A, B, **like)
    alike(lambda a: a * B, A, **like)
    for power in range(1, 5):
        alike(lambda a: a**power, A, **like)  # noqa: B023
    alike(lambda a: a.getrow(1), A, **like)
    alike(lambda a: a.getcol(2).T, A, **like)
    alike(lambda a: a.getH(), A, **like)
    alike(lambda a: a[[0, 1], [1, 2]], A, **like)
    older = made(tg.scipy.sparse, "csr_matrix", tg.tensor(A.data), A)
    assert (older**0).toarray().tolist() == np.eye(4).tolist()
    newer = tg.scipy.sparse.csr_array(older)
    np.testing.assert_allclose((newer * B).toarray(), (A * B).toarray())
    np.testing.assert_allclose((scipy.sparse.csr_matrix(A) * newer).toarray(), (A @ A).toarray())


def test_operators_with_tensors_on_both_sides():
    a, t = tg.tensor(A.data, requires_grad=True), tg.tensor(V, requires_grad=True)
    of = lambda d: made(tg.scipy.sparse, "csr_array", d, A)
    for f in (
        lambda a, t: of(a) * t,
        lambda a, t: t * of(a),
        lambda a, t: t[0] * of(a) / t[1],
        lambda a, t: of(a) / t[:, None],
        lambda a, t: of(a).power(t[0] * 0 + 2),
    ):
        wanted = f(a, t).toarray()
        dense_form = lambda a, t, f=f: f(a, t).toarray()
        assert gradcheck(dense_form, (a, t))
        np.testing.assert_allclose(tg.jit(dense_form)(A.data, V), wanted.detach().numpy())
    for f in (lambda a, t: t + of(a), lambda a, t: of(a) - t, lambda a, t: t - of(a)):
        assert isinstance(f(a, t), tg.Tensor)
        assert gradcheck(f, (a, t))
    np.testing.assert_allclose((t - of(a)).detach().numpy(), V - A.toarray())


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.matmul])
def test_beside_scipys_matrices(op):
    of = lambda d: made(tg.scipy.sparse, "csr_array", d, A)
    d = tg.tensor(A.data, requires_grad=True)
    for other in (B, B.tocsc(), B.tocoo()):
        np.testing.assert_allclose(
            op(of(d), other).toarray().detach().numpy(), op(A, other).toarray(), atol=1e-14
        )
        np.testing.assert_allclose(
            op(other, of(d)).toarray().detach().numpy(), op(other, A).toarray(), atol=1e-14
        )
    assert gradcheck(lambda d: op(of(d), B).toarray(), (d,))


def test_elements_that_stand_twice_in_a_place():
    """They count as their sum wherever that makes a difference."""
    indices, indptr = np.array([1, 1, 0, 2, 0]), np.array([0, 2, 5, 5])
    d = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    of = lambda home, d: home.csr_array((d, indices.copy(), indptr.copy()), shape=(3, 3))
    for f in (
        lambda a: a.power(2), lambda a: a[1], lambda a: a[0, 1], abs, np.sin, lambda a: a.T @ a,
        lambda a: a + a.T, lambda a: a.multiply(a), lambda a: a.diagonal(), lambda a: a.sum(0),
        lambda a: a.tocsc(), lambda a: a.max(),
    ):  # fmt: skip
        found, wanted = dense(f(of(tg.scipy.sparse, tg.tensor(d)))), of(scipy.sparse, d.copy())
        wanted.sum_duplicates()
        np.testing.assert_allclose(found.numpy(), dense(f(wanted)))
    small = of(tg.scipy.sparse, tg.tensor(d))
    small.sum_duplicates()
    np.testing.assert_array_equal(small.data, [3.0, 8.0, 4.0])
    of_bytes = tg.scipy.sparse.csr_array(
        (tg.tensor(d[:3]), np.array([1, 0, 2], np.uint8), np.array([0, 2, 3], np.uint8))
    )
    np.testing.assert_array_equal(of_bytes[0].data, [2.0, 1.0])


def test_complex_elements():
    z = (A.data * (1 + 2j), B.data * (2 - 1j))
    given = [tg.tensor(x, requires_grad=True) for x in z]
    of = lambda x, y: [made(tg.scipy.sparse, "csr_array", d, m) for d, m in ((x, A), (y, B))]
    f = lambda x, y: (lambda a, b: (a @ b + a.conj().T - b.multiply(a).real).toarray())(*of(x, y))
    assert gradcheck(f, given)
    a, b = A * (1 + 2j), B * (2 - 1j)
    wanted = (a @ b + a.conj().T - b.multiply(a).real).toarray()
    np.testing.assert_allclose(f(*given).detach().numpy(), wanted)
    assert (made(tg.scipy.sparse, "csr_array", given[0], A).imag.dtype) == tg.float64


def test_products_by_numpys_function():
    a = made(tg.scipy.sparse, "csr_array", tg.tensor(A.data), A)
    np.testing.assert_allclose(np.dot(a, V), A @ V)
    np.testing.assert_allclose(np.dot(V, a), V @ A)
    np.testing.assert_allclose(np.dot(a, a).toarray(), (A @ A).toarray())


def test_types_of_elements():
    ints = made(tg.scipy.sparse, "csr_array", tg.tensor(np.arange(A.nnz, dtype=np.int32)), A)
    assert ints.toarray().dtype == tg.int32
    assert ints.sum(0).dtype == ints.sum().dtype == tg.int64
    assert ints.mean(1).dtype == tg.float64
    assert (ints + ints.astype(np.float32)).dtype == tg.float32
    assert ints.astype(np.float32).sum(dtype=np.float64).dtype == tg.float64
    assert ints.sum(dtype=np.float32).dtype == tg.float32


WRITES = {
    "element": lambda a, v: operator.setitem(a, (0, 1), v[0]),
    "added to": lambda a, v: operator.setitem(a, (2, 1), a[2, 1] + v[0]),
    "row": lambda a, v: operator.setitem(a, (1, slice(None)), v),
    "block": lambda a, v: operator.setitem(a, (slice(0, 2), [1, 2]), v[:2]),
    "sparse": lambda a, v: operator.setitem(a, (slice(0, 2), slice(0, 2)), a[2:, 2:]),
    "diagonal": lambda a, v: a.setdiag(v),
    "another": lambda a, v: a.setdiag(v[:3], k=1),
    "constant": lambda a, v: a.setdiag(2.0, k=-1),
}


@pytest.mark.parametrize("name", ["csr_array", "csc_matrix"])
@pytest.mark.parametrize("case", WRITES)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_writing(case, name):
    def written(home, data, v):
        a = made(home, name, data, A)
        before = a.T
        WRITES[case](a, v)
        return (a + a @ a.T).toarray() + (0 if home is scipy.sparse else 0 * before.toarray())

    held = elements(A, name)
    wanted = written(scipy.sparse, held.copy(), V)
    given = [tg.tensor(x, requires_grad=True) for x in (held, V)]
    ours = lambda *x: written(tg.scipy.sparse, *x)
    np.testing.assert_allclose(ours(*given).detach().numpy(), wanted, atol=1e-14)
    np.testing.assert_allclose(tg.jit(ours)(held, V), wanted, atol=1e-14)
    np.testing.assert_allclose(tg.vmap(ours)(held[None], V[None])[0], wanted, atol=1e-14)
    assert gradcheck(ours, given)


def test_matrices_are_pytrees():
    a = made(tg.scipy.sparse, "csr_array", tg.tensor(A.data), A)
    f = lambda a: (a @ a @ V).sum()
    wanted = tg.grad(lambda d: f(made(tg.scipy.sparse, "csr_array", d, A)))(A.data)
    for slope in (tg.grad(f)(a), tg.jit(tg.grad(f))(a)):
        assert isinstance(slope, tg.scipy.sparse.SparseTensor)
        np.testing.assert_allclose(slope.data.numpy(), wanted)
    square = tg.jit(lambda a: a @ a)
    np.testing.assert_allclose(square(a).toarray(), (A @ A).toarray())
    np.testing.assert_allclose(square(a.T).toarray(), (A.T @ A.T).toarray())
    other = made(tg.scipy.sparse, "csr_array", tg.tensor(B.data), B)
    np.testing.assert_allclose(square(other).toarray(), (B @ B).toarray())
    many = tg.vmap(lambda s: s * a)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(tg.vmap(lambda a: a.sum(0))(many)[1], 2 * A.sum(0))
    assert tg.tree_flatten(a)[1] == tg.tree_flatten(tg.tree_map(lambda x: 2 * x, a))[1]
    assert tg.tree_flatten(a)[1] != tg.tree_flatten(other)[1]
    assert "array of shape (4, 4)" in repr(tg.tree_flatten(a)[1].extra)


def test_what_it_is():
    a = made(tg.scipy.sparse, "csc_array", tg.tensor(WIDE.tocsc().data), WIDE)
    assert (a.format, a.nnz, a.size, a.shape, a.T.format) == (
        "csc",
        WIDE.nnz,
        WIDE.nnz,
        (4, 6),
        "csr",
    )
    np.testing.assert_array_equal(a.row, WIDE.tocsc().tocoo().row)
    np.testing.assert_array_equal(a.col, WIDE.tocsc().tocoo().col)
    assert a.tocoo().data is a.data
    assert [a.asformat(f).format for f in ("csr", "csc", "coo", "lil")] == ["csr", *["csc"] * 3]
    copy = a.tolil()
    copy[0, 0] = 7.0
    assert (copy[0, 0], a[0, 0]) == (7.0, WIDE[0, 0])
    assert a in {a: 1}
    assert a.asformat(None) is a
    assert [row.toarray().tolist() for row in a] == WIDE.toarray().tolist()
    np.testing.assert_array_equal(a.getnnz(0), np.diff(WIDE.tocsc().indptr))
    np.testing.assert_array_equal(a.getnnz(axis=-1), np.diff(WIDE.indptr))
    assert a.getnnz() == a.nnz
    index = tg.tensor([2, 0])
    np.testing.assert_array_equal(a[index].toarray(), WIDE[[2, 0]].toarray())


def test_what_cannot_be_is_refused():
    a = made(tg.scipy.sparse, "csr_array", tg.tensor(A.data), A)
    wide = made(tg.scipy.sparse, "csr_array", tg.tensor(WIDE.data), WIDE)
    t = tg.tensor(V)
    for call, error, words in [
        (lambda: a + wide, ValueError, r"`add`: sparse matrices of shapes \(4, 4\) and \(4, 6\)"),
        (lambda: wide @ a, ValueError, r"shapes \(4, 6\) and \(4, 4\) cannot be multiplied"),
        (lambda: wide @ t, ValueError, r"shape \(4, 6\) and a Tensor of shape \(4,\)"),
        (lambda: wide.multiply(t), ValueError, r"`multiply`: .*\(4, 6\).*\(4,\) are not broadcast"),
        (lambda: a.multiply(tg.ones(2, 4, 4)), ValueError, r"\(2, 4, 4\) are not broadcast"),
        (lambda: a + 1, NotImplementedError, "take `toarray"),
        (lambda: a - t[0], NotImplementedError, "make one with all elements"),
        (lambda: a / a, TypeError, r"`div`: sparse matrices of shapes \(4, 4\)"),
        (lambda: 1 / a, TypeError, "unsupported operand"),
        (lambda: t / a, TypeError, r"`div` takes no sparse matrix \(of shape \(4, 4\)\)"),
        (lambda: np.exp(a), TypeError, "exp"),
        (lambda: np.add.reduce(a), TypeError, "returned NotImplemented"),
        (lambda: a**0, NotImplementedError, "`power` of a sparse matrix takes a number"),
        (lambda: a.power(t), NotImplementedError, "takes a number"),
        (lambda: a.sum(2), ValueError, r"`sum`: no axis 2 of a sparse matrix of shape \(4, 4\)"),
        (lambda: a.max(0), NotImplementedError, r"take `toarray\(\).max\(axis\)`"),
        (lambda: a[5], IndexError, "out of bounds|out of range"),
        (lambda: a.eliminate_zeros(), TypeError, "`eliminate_zeros`: where the 8 elements"),
        (lambda: a.maximum(1.0), ValueError, r"`maximum` .* \(4, 4\) .* zeros stay zeros"),
        (lambda: a.minimum(wide), ValueError, "takes a sparse one of that shape"),
        (lambda: operator.setitem(a, (9, 9), 1.0), IndexError, "out of"),
        (lambda: len(a), TypeError, "ambiguous"),
        (lambda: a != 0, TypeError, r"of shape \(4, 4\) is not compared"),
        (lambda: a > a.T, TypeError, "compare its `data`"),
        (lambda: np.cumsum(a), TypeError, "cumsum"),
        (lambda: a.asformat("dia"), ValueError, "got 'dia'"),
        (
            lambda: tg.scipy.sparse.csr_matrix(wide) ** 2, ValueError,
            r"`matrix_power` takes a square matrix .* the shape \(4, 6\)",
        ),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
