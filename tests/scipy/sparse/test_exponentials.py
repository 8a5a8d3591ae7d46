"""Exponentials of sparse matrices times vectors beside SciPy's."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has no exponentials of sparse matrices")

rng = np.random.default_rng(0)
A = (scipy.sparse.random_array((4, 4), density=0.5, rng=1) + scipy.sparse.eye_array(4)).tocsr()
V, W = rng.standard_normal(4), rng.standard_normal((4, 2))
expm_multiply = tg.scipy.sparse.linalg.expm_multiply


def of(data):
    return tg.scipy.sparse.csr_array((data, A.indices, A.indptr), shape=A.shape)


@pytest.mark.parametrize("b", [V, W], ids=["vector", "columns"])
@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 30.0])
def test_values(size, b):
    wanted = scipy.sparse.linalg.expm_multiply(size * A, b)
    ours = lambda data, b: expm_multiply(of(data), b)
    data = size * A.data
    np.testing.assert_allclose(ours(tg.tensor(data), b), wanted, rtol=1e-11)
    np.testing.assert_allclose(tg.jit(ours)(data, b), wanted, rtol=1e-11)
    many = tg.vmap(ours)(np.stack([A.data, data]), np.stack([b, b]))
    np.testing.assert_allclose(many[1], wanted, rtol=1e-11)


def test_derivatives():
    ours = lambda data, b: expm_multiply(of(data), b)
    both = tuple(tg.tensor(x, requires_grad=True) for x in (4 * A.data, V))
    assert gradcheck(ours, both)
    assert gradgradcheck(ours, both)
    slope = tg.grad(lambda data: np.sum(np.sin(ours(data, V))))
    np.testing.assert_allclose(tg.jit(slope)(A.data), slope(A.data), rtol=1e-12)
    assert gradcheck(lambda b: expm_multiply(A, b), (both[1],))
    dense = lambda x: expm_multiply(x, tg.tensor(V))
    assert gradcheck(dense, (tg.tensor(A.toarray(), requires_grad=True),))


def test_times():
    given = {"start": 0.5, "stop": 2.0, "num": 4}
    for more in ({}, {"endpoint": False}):
        wanted = scipy.sparse.linalg.expm_multiply(A, V, **given, **more)
        np.testing.assert_allclose(expm_multiply(A, tg.tensor(V), **given, **more), wanted)
    assert expm_multiply(A, tg.tensor(W), start=0, stop=1).shape == (50, 4, 2)


def test_types_and_refusals():
    single = expm_multiply(of(tg.tensor(A.data, dtype=tg.float32)), tg.tensor(V).float())
    assert single.dtype == tg.float32
    np.testing.assert_allclose(single, expm_multiply(A, tg.tensor(V)), rtol=1e-5)
    z = expm_multiply(A * 1j, tg.tensor(V))
    np.testing.assert_allclose(z, scipy.sparse.linalg.expm_multiply(A * 1j, V), rtol=1e-12)
    with pytest.raises(ValueError, match=r"matrix of shape \(4, 4\) and a Tensor of shape \(3,\)"):
        expm_multiply(A, tg.ones(3))
