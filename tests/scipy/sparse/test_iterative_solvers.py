"""Krylov methods: solutions and derivatives beside those of `np.linalg.solve`."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.tapegrad_only("PyTorch has no Krylov methods")

krylov = tg.scipy.sparse.linalg
METHODS = ["bicg", "bicgstab", "cg", "cgs", "gmres", "lgmres", "minres", "tfqmr"]
rng = np.random.default_rng(0)
G = rng.standard_normal((5, 5)) + 5 * np.eye(5)
P, V = G @ G.T, rng.standard_normal(5)


def weighed(solve):
    return lambda A, b: np.sum(np.sin(solve(A, b)))


@pytest.mark.parametrize("name", METHODS)
def test_derivatives_are_those_of_a_direct_solution(name):
    M = P if name in ("cg", "minres") else G
    symmetric = (lambda A: (A + A.T) / 2) if M is P else (lambda A: A)
    solve = lambda A, b: getattr(krylov, name)(symmetric(A), b, rtol=1e-13)[0]
    both = tuple(tg.tensor(x, requires_grad=True) for x in (M, V))
    assert gradcheck(solve, both, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(solve, both)
    wanted = tg.grad(weighed(lambda A, b: np.linalg.solve(symmetric(A), b)), (0, 1))(M, V)
    found = tg.grad(weighed(solve), (0, 1))
    in_batches = tg.vmap(found, (None, 0))(M, np.stack([V, V]))
    for one, two, three, expected in zip(
        found(M, V), tg.jit(found)(M, V), in_batches, wanted, strict=True
    ):
        np.testing.assert_allclose(one, expected, atol=1e-11)
        np.testing.assert_allclose(two, expected, atol=1e-11)
        np.testing.assert_allclose(three[1], expected, atol=1e-11)


@pytest.mark.parametrize("name", METHODS)
def test_functions_as_matrices(name):
    M = P if name in ("cg", "minres") else G
    solve = lambda A, b: getattr(krylov, name)(lambda x: (A + M) @ x / 2, b, rtol=1e-13)[0]
    both = tuple(tg.tensor(x, requires_grad=True) for x in (M, V))
    assert gradcheck(lambda d, b: solve(M * d, b), (tg.tensor(1.0, requires_grad=True), both[1]))
    if M is G:
        assert gradcheck(solve, both)
        assert gradgradcheck(solve, both)
    direct = lambda b: weighed(np.linalg.solve)(M, b)
    found = tg.hessian(lambda b: weighed(solve)(M, b))(V)
    np.testing.assert_allclose(found, tg.hessian(direct)(V), atol=1e-11)
    np.testing.assert_allclose(
        tg.jvp(lambda b: solve(M, b), (V,), (V,))[1], np.linalg.solve(M, V), atol=1e-11
    )


def test_sparse_matrices_and_operators():
    S = scipy.sparse.csr_array(np.where(abs(G) > 1, G, 0.0))
    dense = S.toarray()
    wanted = np.linalg.solve(dense.T, np.ones(5))
    x = np.linalg.solve(dense, V)
    b = tg.tensor(V, requires_grad=True)
    for A in (S, S.tocsc(), S.tocoo(), scipy.sparse.linalg.aslinearoperator(S), dense):
        found, info = krylov.gmres(A, b, rtol=1e-13)
        np.testing.assert_allclose(found.detach().numpy(), x, rtol=1e-11)
        np.testing.assert_allclose(tg.autograd.grad(found.sum(), b)[0].numpy(), wanted, rtol=1e-11)
        assert info == 0
    d = tg.tensor(S.data, requires_grad=True)
    for kind in (tg.scipy.sparse.csr_array, tg.scipy.sparse.csc_array):
        held = lambda d: kind((d, S.indices, S.indptr)).T  # noqa: B023
        assert gradcheck(lambda d: krylov.bicgstab(held(d), V, rtol=1e-13)[0], (d,))  # noqa: B023


def test_complex_systems():
    both = tuple(tg.tensor(x, requires_grad=True) for x in (G + 0.5j, V * (1 - 1j)))
    assert gradcheck(lambda A, b: krylov.gmres(A, b, rtol=1e-13)[0], both)


def test_a_preconditioner_a_start_and_float32():
    M = np.diag(1 / np.diag(G)) + np.triu(np.full((5, 5), 0.01), 1)
    b = tg.tensor(V, requires_grad=True)
    found, _ = krylov.bicgstab(G, b, V, M=M, rtol=1e-13, maxiter=50)
    np.testing.assert_allclose(found.detach().numpy(), np.linalg.solve(G, V), rtol=1e-10)
    found.sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), np.linalg.solve(G.T, np.ones(5)), rtol=1e-10)
    single = krylov.cg(P.astype(np.float32), tg.tensor(V, dtype=tg.float32))[0]
    assert single.dtype == tg.float32
    assert krylov.cg(P, tg.tensor(V[:, None]), rtol=1e-9)[0].shape == (5,)


def test_tiny_right_sides_of_the_adjoint_system():
    b = tg.tensor(V, requires_grad=True)
    (krylov.bicg(G, b, rtol=1e-12)[0].sum() * 1e-20).backward()
    np.testing.assert_allclose(b.grad.numpy(), 1e-20 * np.linalg.solve(G.T, np.ones(5)), rtol=1e-9)


def test_what_does_not_converge():
    b = tg.tensor(V, requires_grad=True)
    found, info = krylov.cg(P, b, maxiter=1)
    assert info == 1
    np.testing.assert_array_equal(
        found.detach().numpy(), scipy.sparse.linalg.cg(P, V, maxiter=1)[0]
    )
    with pytest.warns(UserWarning, match=r"linalg\.cg`: a system of a derivative.*`maxiter`"):
        found.sum().backward()
    assert np.isnan(b.grad.numpy()).all()


def test_of_arrays_they_are_scipys():
    x, info = krylov.cg(P, V)
    assert type(x) is np.ndarray
    assert info == 0


def test_what_cannot_be_is_refused():
    b = tg.tensor(V, requires_grad=True)
    with pytest.raises(ValueError, match=r"a matrix of shape \(5, 5\) and a right side of shape"):
        krylov.cg(P, b[1:])
    with pytest.raises(ValueError, match=r"shape \(5, 4\) and a right side"):
        krylov.gmres(G[:, :4], b)
    with pytest.raises(TypeError, match="of a function is not supported under `vmap` and `jit`"):
        tg.jit(lambda b: krylov.cg(lambda x: P @ x, b)[0])(V)
    with pytest.raises(RuntimeError, match=r"use `tapegrad\.scipy\.sparse\.linalg\.cg` instead"):
        scipy.sparse.linalg.cg(P, b)
