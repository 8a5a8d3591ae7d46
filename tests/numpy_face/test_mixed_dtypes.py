"""Products of a Tensor and an array of another dtype: they meet as in `*`; two Tensors do not."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

MATRIX = np.array([[1, 0, 2], [0, 3, 1]])
ROW = MATRIX[0]
VECTOR = np.array([0.5, -1.5, 2.0])
SQUARE = np.array([[2, 1, 0], [0, 3, 1], [1, 0, 2]])

# Of the array and the Tensor.
PRODUCTS = {
    "array @ t": lambda a, t: a @ t,
    "t @ array": lambda a, t: t @ a.T,
    "matmul": np.matmul,
    "matmul of a list": lambda a, t: np.matmul(a.tolist(), t),
    "dot": np.dot,
    "dot of a list": lambda a, t: np.dot(a[0].tolist(), t),
    "t.dot": lambda a, t: t.dot(a[0]),
    "inner": np.inner,
    "vdot": lambda a, t: np.vdot(a[0], t),
    "outer": np.outer,
    "kron": np.kron,
    "tensordot": lambda a, t: np.tensordot(a, t, 1),
    "einsum": lambda a, t: np.einsum("ij,j->i", a, t),
    "einsum of a list": lambda a, t: np.einsum("ij,j", a.tolist(), t),
    "einsum by numbers": lambda a, t: np.einsum(a, [0, 1], t, [1], [0]),
    "convolve": lambda a, t: np.convolve(a[0], t),
    "correlate": lambda a, t: np.correlate(t, a[0], "full"),
    "matvec": np.matvec,
    "vecmat": lambda a, t: np.vecmat(t, a.T),
    "vecdot": np.vecdot,
    "cross": np.cross,
    "multi_dot": lambda a, t: np.linalg.multi_dot([t, a.T, a]),
    "linalg.matmul": np.linalg.matmul,
    "linalg.tensordot": lambda a, t: np.linalg.tensordot(a, t, axes=1),
    "tg.matmul": lambda a, t: (tg.matmul if type(t) is tg.Tensor else np.matmul)(a, t),
    "solve": lambda a, t: np.linalg.solve(np.asarray(SQUARE, a.dtype), t),
    "lstsq": lambda a, t: np.linalg.lstsq(np.asarray(SQUARE, a.dtype), t)[0],
    "tensorsolve": lambda a, t: np.linalg.tensorsolve(np.asarray(SQUARE, a.dtype), t),
}


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.bool, np.float32, np.float64])
@pytest.mark.parametrize("own", [np.float32, np.float64])
@pytest.mark.parametrize("name", PRODUCTS)
def test_arrays_are_promoted(name, own, kind):
    product, array, vector = PRODUCTS[name], MATRIX.astype(kind), VECTOR.astype(own)
    if "solve" in name or name == "lstsq":
        array = array if kind is not np.bool else MATRIX
    x = tg.tensor(vector, requires_grad=True)
    y = product(array, x)
    common = tg.tensor(vector) * array[0]
    expected = product(array.astype(float), vector.astype(float))
    listed = name.endswith("list") and kind is np.float32  # a list is of Python's floats
    assert y.dtype is (tg.float64 if listed else common.dtype)
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-5)
    y.sum().backward()
    exact = tg.grad(lambda t: product(array.astype(float), t).sum())(vector.astype(float))
    assert x.grad.dtype is x.dtype
    np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-5, atol=1e-6)


def test_a_tensor_of_integers_beside_an_array_of_floats():
    t = tg.tensor([1, 2, 3])
    for found in (SQUARE / 2 @ t, np.dot(SQUARE / 2, t), np.einsum("ij,j", SQUARE / 2, t)):
        assert found.dtype is tg.float64
        assert found.tolist() == [2.0, 4.5, 3.5]


def loss(w, features):
    return np.sum((features @ w - np.array([1.0, 2.0])) ** 2)


def test_features_of_integers_under_every_transform():
    expected = tg.grad(loss)(VECTOR, MATRIX.astype(float))
    many = np.stack([MATRIX, 2 * MATRIX])
    for found in (
        tg.grad(loss)(VECTOR, MATRIX),
        tg.jit(tg.grad(loss))(VECTOR, MATRIX),
        tg.jacfwd(loss)(VECTOR, MATRIX),
        tg.jacrev(loss)(VECTOR, MATRIX),
        tg.vmap(tg.grad(loss), (None, 0))(VECTOR, many)[0],
        tg.grad(lambda w: np.sum(tg.vmap(loss, (None, 0))(w, MATRIX[None])))(VECTOR),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(tg.hessian(loss)(VECTOR, MATRIX), 2 * MATRIX.T @ MATRIX, rtol=1e-13)
    rows = tg.vmap(lambda row: row @ VECTOR)(MATRIX)
    np.testing.assert_allclose(rows, MATRIX @ VECTOR, rtol=1e-13)


def two_kinds(w):
    """Single precision, and what double precision has made of it."""
    wide = np.eye(3) + w
    return np.sum(wide @ w + np.einsum("i,ij->j", w, wide) + np.linalg.solve(wide, w))


def test_arrays_that_a_function_has_made_are_promoted():
    exact = tg.grad(two_kinds)(VECTOR)
    single = VECTOR.astype(np.float32)
    for transform in (tg.grad, tg.jacfwd, tg.jacrev, lambda f: tg.jit(tg.grad(f))):
        np.testing.assert_allclose(transform(two_kinds)(single), exact, rtol=1e-5)


def test_two_tensors_keep_their_dtypes():
    x, y = tg.ones(3), tg.ones(3).float()
    for product in (tg.matmul, np.dot, np.inner, np.vdot, np.convolve, np.matmul):
        with pytest.raises(RuntimeError, match=r"one dtype, got .*float64.*float32"):
            product(x, y)
    with pytest.raises(RuntimeError, match=r"`einsum`: expected operands of one dtype"):
        np.einsum("i,i", x, y)
