"""Factorizations whose results are arbitrary in part, and those that cannot be differentiated."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("tests/peers compares these functions with PyTorch")


def leaf(rng, *shape):
    return tg.from_numpy(rng.standard_normal(shape)).requires_grad_()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 5, 2)])
def test_a_projector_on_the_completed_part_has_a_gradient(rng, shape):
    """It is one minus the projector on the others, whichever vectors complete the basis."""
    a = leaf(rng, *shape)
    k, tall = min(shape[-2:]), shape[-2] > shape[-1]

    def projector(full):
        u, _, vh = tg.linalg.svd(a, full_matrices=full)
        basis = u if tall else vh.mT
        part = basis[..., k:] if full else basis
        return part @ part.mT

    weight = tg.from_numpy(rng.standard_normal(projector(True).shape))
    (found,) = tg.autograd.grad(projector(True), a, weight)
    (expected,) = tg.autograd.grad(projector(False), a, -weight)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9, atol=1e-11)


def test_one_added_vector_can_be_differentiated(rng):
    """It is determined but for its sign: a normal on a plane, as the cross product."""
    a = leaf(rng, 3, 2)
    normal = tg.linalg.cross(a[:, 0], a[:, 1])
    weight = tg.arange(3.0)
    found, expected = (
        tg.autograd.grad((y**2 * weight).sum(), a)[0].numpy()
        for y in (tg.linalg.svd(a).U[:, 2], normal / tg.linalg.norm(normal))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_what_has_values_only_says_so():
    a = tg.eye(2).requires_grad_()
    for function in (tg.geqrf, tg.linalg.ldl_factor):
        with pytest.raises(NotImplementedError, match=r"detach\(\)"):
            function(a)
    factors = tg.linalg.ldl_factor(a.detach())
    with pytest.raises(NotImplementedError, match=r"`linalg\.ldl_solve` has no derivative"):
        tg.linalg.ldl_solve(a, factors.pivots, tg.ones(2, 1))


@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_solve_in_complex_numbers(rng, hermitian):
    a, b = (rng.standard_normal((2, 3, 3, 2)) @ [1, 1j] for _ in range(2))
    a = a + (a.mT.conj() if hermitian else a.mT)
    LD, pivots = tg.linalg.ldl_factor(tg.from_numpy(a), hermitian=hermitian)

    def solve(LD, pivots, b):
        return tg.linalg.ldl_solve(LD, pivots, b, hermitian=hermitian)

    right = tg.tensor(b, requires_grad=True)
    found = solve(LD, pivots, right)
    np.testing.assert_allclose(a @ found.detach().numpy(), b, rtol=1e-9, atol=1e-9)
    (gradient,) = tg.autograd.grad(found, right, tg.from_numpy(b))
    expected = np.linalg.solve(a.mT.conj(), b)
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-9, atol=1e-9)
    mapped = tg.vmap(solve)(LD, pivots, right.detach())
    np.testing.assert_allclose(mapped.numpy(), found.detach().numpy(), rtol=1e-12)


def test_eigenvalues_of_real_matrices_are_complex():
    found = tg.linalg.eig(tg.eye(2).float())
    assert found.eigenvalues.dtype == found.eigenvectors.dtype == tg.complex64


def test_eigenvectors_of_another_phase_are_as_good():
    a = tg.tensor([[1.0, 2.0], [-3.0, 1.5]], requires_grad=True)
    with pytest.raises(RuntimeError, match="depends on the phases of complex vectors"):
        tg.linalg.eig(a).eigenvectors[0].real.sum().backward()


def test_eigenvalues_put_together_are_the_matrix(rng):
    a = leaf(rng, 2, 4, 4)
    values, vectors = tg.linalg.eig(a)
    same = (vectors * values.unsqueeze(-2)) @ tg.linalg.inv(vectors)
    weight = tg.from_numpy(rng.standard_normal((2, 4, 4)))
    (found,) = tg.autograd.grad(same.real, a, weight)
    np.testing.assert_allclose(found.numpy(), weight.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", [
    lambda a, b: tg.linalg.lu_solve(*tg.linalg.lu_factor(a), b),
    lambda a, b: tg.linalg.lstsq(a, b).solution,
    lambda a, b: tg.linalg.solve_ex(a, b).result,
    lambda a, b: tg.linalg.inv_ex(a).inverse @ b,
    lambda a, b: tg.linalg.lu(a).U @ b,
    lambda a, b: tg.linalg.ldl_solve(*tg.linalg.ldl_factor((a + a.mT).detach()), b),
    lambda a, b: tg.linalg.cholesky_ex(a @ a.mT + tg.eye(3)).L @ b,
    lambda a, b: tg.linalg.svd(a[:, :2]).U[:, 2:] ** 2 * b[0, 0],
    lambda a, b: tg.linalg.cond(a, 1) * b,
    lambda a, b: tg.linalg.lstsq(a[:, :2], b, driver="gelsd").residuals,
    lambda a, b: tg.ormqr(a, b[:, 0], b),
    lambda a, b: abs(tg.linalg.eigvals(a.detach())).sum() * b,
    lambda a, b: abs(tg.linalg.eigvals(a)),
    lambda a, b: abs(tg.linalg.eig(a).eigenvectors) @ b,
])  # fmt: skip
def test_under_transforms(rng, function):
    """`vmap` is a loop, `jit` changes nothing, `jvp` is the product with the gradient."""
    a, b = rng.standard_normal((4, 3, 3)) + 3 * np.eye(3), rng.standard_normal((4, 3, 2))
    ta, tb = tg.from_numpy(a), tg.from_numpy(b)
    each = np.stack([function(x, y).numpy() for x, y in zip(ta, tb, strict=True)])
    np.testing.assert_allclose(tg.vmap(function)(ta, tb).numpy(), each, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        tg.vmap(function, (None, 0))(ta[0], tb)[0].numpy(), each[0], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(tg.jit(function)(ta[0], tb[0]).numpy(), each[0], rtol=1e-10)
    x, y = ta[0].clone().requires_grad_(), tb[0].clone().requires_grad_()
    out = function(x, y)
    weight = tg.from_numpy(rng.standard_normal(out.shape))
    slopes = tg.autograd.grad(out, (x, y), weight, allow_unused=True, materialize_grads=True)
    _, tangent = tg.func.jvp(function, (ta[0], tb[0]), (ta[1], tb[1]))
    expected = (slopes[0] * ta[1]).sum() + (slopes[1] * tb[1]).sum()
    np.testing.assert_allclose(float((tangent * weight).sum()), float(expected), rtol=1e-8)
    doubled = tg.jit(tg.grad(lambda x, y: (function(x, y) * weight).sum(), (0, 1)))(ta[0], tb[0])
    for found, slope in zip(doubled, slopes, strict=True):
        np.testing.assert_allclose(found.numpy(), slope.detach().numpy(), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(40, 40), (90, 30), (3, 20, 20)])
def test_qr_of_matrices_that_no_kernel_differentiates(rng, shape, dtype):
    """One is factored in its own type, batches in double precision, as NumPy does all."""
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
    x = x.astype(dtype)
    unit = np.finfo(dtype).eps
    for found, expected in zip(tg.linalg.qr(tg.tensor(x)), np.linalg.qr(x), strict=True):
        assert found.numpy().dtype == x.dtype
        np.testing.assert_allclose(found.numpy(), expected, atol=1000 * unit)
    q, r = (part.numpy() for part in tg.linalg.qr(tg.tensor(x)))
    np.testing.assert_allclose(q @ r, x, atol=100 * unit)
    assert not np.tril(r, -1).any()
