"""Complex numbers: values, gradients and conventions are PyTorch's."""

import numpy as np
import pytest
import torch

import tapegrad as tg

RNG = np.random.default_rng(3)
Z = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
W = RNG.normal(size=(2, 3)) + 1j * RNG.normal(size=(2, 3))
REAL = RNG.normal(size=(2, 3))
M = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)) + 2 * np.eye(3)
LOWER = np.tril(M, -1) + np.diag([3.0, 2.0, 4.0])
TALL = np.ascontiguousarray(Z.T) + np.eye(3, 2)
IMAGES = np.resize(Z, (3, 2, 5, 6)) * np.arange(1, 7)
FILTERS = np.resize(W, (3, 2, 3, 2)) + np.arange(3)[:, None, None, None]
BATCH = np.stack([M, M.T @ M, M.conj() + 1j])
ONE = (
    "abs acos acosh angle asin asinh atan atanh conj conj_physical cos cosh exp exp2 expm1 log "
    "log10 log1p log2 neg reciprocal rsqrt sgn sigmoid sin sinc sinh sqrt square tan tanh real "
    "imag view_as_real positive mean sum prod var std ravel"
).split()
CALLS = {
    **{name: (lambda L, z, name=name: getattr(L, name)(z), (Z,)) for name in ONE},
    "add": (lambda L, a, b: a + b, (Z, W)),
    "add alpha": (lambda L, a, b: L.add(a, b, alpha=2 - 1j), (Z, W)),
    "mul": (lambda L, a, b: a * b, (Z, W)),
    "mul a real one": (lambda L, a, b: a * b, (Z, REAL)),
    "a real one minus": (lambda L, a, b: a - b, (REAL, Z)),
    "mul a number": (lambda L, a: a * (2 - 3j), (REAL,)),
    "div": (lambda L, a, b: a / b, (Z, W)),
    "div by a real one": (lambda L, a, b: a / b, (Z, REAL)),
    "div of a real one": (lambda L, a, b: a / b, (REAL, Z)),
    "pow": (lambda L, a, b: a**b, (Z, W)),
    "pow 2": (lambda L, a: a**2, (Z,)),
    "pow 3": (lambda L, a: a**3, (Z,)),
    "pow -1.5": (lambda L, a: a**-1.5, (Z,)),
    "2 pow": (lambda L, a: 2**a, (Z,)),
    "real pow complex": (lambda L, a, b: a**b, (np.abs(REAL), Z)),
    "complex pow real": (lambda L, a, b: a**b, (Z, REAL)),
    "where": (lambda L, a, b: L.where(L.tensor(REAL > 0), a, b), (Z, W)),
    "addcmul": (lambda L, a, b, c: L.addcmul(a, b, c, value=2), (Z, W, Z + W)),
    "addcdiv": (lambda L, a, b, c: L.addcdiv(a, b, c), (Z, W, Z + W)),
    "lerp": (lambda L, a, b: L.lerp(a, b, 0.3), (Z, W)),
    "matmul": (lambda L, a, b: a @ b, (Z, M)),
    "matmul a vector": (lambda L, a, b: a @ b, (M, Z[0])),
    "dot": (lambda L, a, b: L.dot(a, b), (Z[0], W[0])),
    "outer": (lambda L, a, b: L.outer(a, b), (Z[0], W[1])),
    "einsum": (lambda L, a, b: L.einsum("ij,ij->i", a, b), (Z, W)),
    "cumsum": (lambda L, a: L.cumsum(a, 1), (Z,)),
    "cumprod": (lambda L, a: L.cumprod(a, 1), (Z,)),
    "prod along": (lambda L, a: L.prod(a, 1), (Z,)),
    "sum along": (lambda L, a: a.sum(0, keepdim=True), (Z,)),
    "norm": (lambda L, a: L.norm(a), (Z,)),
    "nuclear norm": (lambda L, a: L.norm(a, "nuc"), (Z,)),
    "logaddexp": (lambda L, a, b: L.logaddexp(a, b[0]), (Z, W)),
    "logsumexp": (lambda L, a: L.logsumexp(a, 1) + L.logsumexp(a, (0, 1)), (Z,)),
    "logsumexp of far ones": (lambda L, a: L.logsumexp(900 * a, 0, keepdim=True), (Z,)),
    "logcumsumexp": (lambda L, a: L.logcumsumexp(a, 1) + L.logcumsumexp(3 * a, 0), (Z,)),
    "conv1d": (
        lambda L, a, b, c: L.nn.functional.conv1d(a, b, c, stride=2, padding=1, dilation=2),
        (IMAGES[:, :, 0], FILTERS[..., 0], Z[1]),
    ),
    "conv2d in groups": (
        lambda L, a, b: L.nn.functional.conv2d(a, b[:2, :1], groups=2), (IMAGES, FILTERS),
    ),
    "conv2d of a real one": (lambda L, a, b: L.conv2d(a + 0j, b), (IMAGES.real, FILTERS)),
    "conv_transpose2d": (
        lambda L, a, b: L.conv_transpose2d(a, b.mT.transpose(0, 1), stride=(2, 1), padding=1),
        (IMAGES, FILTERS),
    ),
    "conv3d": (lambda L, a, b: L.conv3d(a[None], b[None]), (IMAGES, FILTERS)),
    "norm 1": (lambda L, a: L.norm(a, 1, 1), (Z,)),
    "index": (lambda L, a: a[:, [0, 0, 2]], (Z,)),
    "gather": (lambda L, a: L.gather(a, 1, L.tensor([[0, 2, 2], [1, 1, 0]])), (Z,)),
    "cat": (lambda L, a, b: L.cat([a, b], 1), (Z, W)),
    "cat a real one": (lambda L, a, b: L.cat([a, b], 1), (Z, REAL)),
    "adjoint": (lambda L, a: a.mH, (M,)),
    "H": (lambda L, a: a.H, (M,)),
    "polar": (lambda L, a, b: L.polar(a, b), (np.abs(REAL), REAL)),
    "complex": (lambda L, a, b: L.complex(a, b), (REAL, REAL + 1)),
    "view_as_complex": (lambda L, a: L.view_as_complex(a), (REAL.reshape(3, 2),)),
    "to real and back": (lambda L, a: a.real.to(L.complex128) * a, (Z,)),
    "in place": (lambda L, a: (a * 1).mul_(L.tensor(W[0], dtype=a.dtype)).add_(a), (Z,)),
    "a part in place": (lambda L, a, b: _part_changed(L, a, b), (Z, REAL)),
    "inv": (lambda L, a: L.linalg.inv(a), (M,)),
    "solve": (lambda L, a, b: L.linalg.solve(a, b), (M, M + 1j)),
    "det": (lambda L, a: L.linalg.det(a), (M,)),
    "matrix_exp": (lambda L, a: L.linalg.matrix_exp(a), (M / 3,)),
    "a part of a view in place": (lambda L, a, b: _view_changed(L, a, b), (Z, REAL)),
    "pairs in place": (lambda L, a: _pairs_changed(L, a), (REAL.reshape(3, 2),)),
    "a broadcast part": (lambda L, a: _broadcast(L, a), (Z[0],)),
    "lu": (lambda L, a: L.linalg.lu(a)[1] @ L.linalg.lu(a)[2] ** 2, (M,)),
    "lu of a tall one": (lambda L, a: L.linalg.lu(a)[1], (M[:, :2],)),
    "lu_solve": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b), (M, M + 1j)),
    "lu_solve adjoint": (lambda L, a, b: _lu_solve(L, a, b, left=False, adjoint=True), (M, Z)),
    "lu_solve right": (lambda L, a, b: _lu_solve(L, a, b, left=False), (M, Z)),
    "inv_ex": (lambda L, a: L.linalg.inv_ex(a)[0], (M,)),
    "solve_ex": (lambda L, a, b: L.linalg.solve_ex(a, b)[0], (M, M + 1j)),
    "addmm": (lambda L, a, b, c: L.addmm(a, b, c, beta=1j, alpha=2 - 1j), (Z, W, M)),
    "inner": (lambda L, a, b: L.inner(a, b), (Z, M)),
    "vdot": (lambda L, a, b: L.vdot(a, b), (Z[0], W[0])),
    "vecdot": (lambda L, a, b: L.linalg.vecdot(a, b), (Z, W)),
    "vander": (lambda L, a: L.linalg.vander(a), (Z,)),
    "cholesky": (lambda L, a: L.linalg.cholesky(_positive(L, a)), (M,)),
    "cholesky upper": (lambda L, a: L.linalg.cholesky(_positive(L, a), upper=True), (M,)),
    "cholesky_ex": (lambda L, a: L.linalg.cholesky_ex(_positive(L, a))[0], (M,)),
    "cholesky_inverse": (lambda L, a: L.cholesky_inverse(a.tril()), (LOWER,)),
    "cholesky_inverse upper": (lambda L, a: L.cholesky_inverse(a.tril().mH, upper=True), (LOWER,)),
    "cholesky_solve": (lambda L, a, b: L.cholesky_solve(b.mT, a.tril()), (LOWER, Z)),
    "cholesky_solve upper": (
        lambda L, a, b: L.cholesky_solve(b.mT, a.tril().mH, upper=True), (LOWER, Z),
    ),
    "eigh": (lambda L, a: _spread(L, L.linalg.eigh(_positive(L, a))), (M,)),
    "eigh of the upper triangle": (lambda L, a: L.linalg.eigh(_positive(L, a), "U")[0], (M,)),
    "eigenvectors": (lambda L, a: abs(L.linalg.eigh(_positive(L, a))[1]), (M,)),
    "eigvalsh": (lambda L, a: L.linalg.eigvalsh(_positive(L, a)), (M,)),
    "eigvalsh of a batch": (lambda L, a: L.linalg.eigvalsh(_positive(L, a)), (BATCH,)),
    "qr": (lambda L, a: _beside(L, L.linalg.qr(a)), (M,)),
    "qr of a tall one": (lambda L, a: _beside(L, L.linalg.qr(a)), (TALL,)),
    "qr of a wide one": (lambda L, a: L.linalg.qr(a).R, (Z,)),
    "Q of a wide one": (lambda L, a: L.linalg.qr(a).Q, (Z,)),
    "complete qr": (lambda L, a: L.linalg.qr(a, mode="complete").R, (Z,)),
    "svd": (lambda L, a: _together(L, L.linalg.svd(a)), (M,)),
    "svd of a tall one": (lambda L, a: _together(L, L.linalg.svd(a, full_matrices=False)), (TALL,)),
    "svd of a wide one": (lambda L, a: _together(L, L.linalg.svd(a, full_matrices=False)), (Z,)),
    "svd of a batch": (lambda L, a: _together(L, L.linalg.svd(a)), (BATCH,)),
    "left singular vectors": (lambda L, a: abs(L.linalg.svd(a)[0]), (M,)),
    "svd with V": (lambda L, a: (lambda u, s, v: u * 2 @ v.mH)(*L.svd(a)), (TALL,)),
    "svdvals": (lambda L, a: L.linalg.svdvals(a), (Z,)),
    "slogdet": (lambda L, a: sum(x * w for x, w in zip(L.slogdet(a), (1, 2j))), (M,)),
    "logdet": (lambda L, a: L.logdet(a), (M,)),
    "pinv": (lambda L, a: L.linalg.pinv(a), (Z,)),
    "pinv of a tall one": (lambda L, a: L.linalg.pinv(a), (TALL,)),
    "pinv of low rank": (lambda L, a, b: L.linalg.pinv(a @ b, rtol=1e-4), (TALL, Z)),
    "hermitian pinv": (
        lambda L, a: L.linalg.pinv(a.detach(), hermitian=True) * abs(a).sum(), (M,),
    ),
    "solve_triangular": (lambda L, a, b: L.linalg.solve_triangular(a, b, upper=True), (M, M + 1j)),
    "matrix_power": (lambda L, a: L.linalg.matrix_power(a, 3) + L.matrix_power(a, -2), (M,)),
    "lstsq": (lambda L, a, b: L.linalg.lstsq(a, b).solution, (TALL, TALL * 1j + 1)),
    "lstsq of a wide one": (lambda L, a, b: L.linalg.lstsq(a, b).solution, (Z, W)),
    "lstsq by gelsd": (lambda L, a, b: L.linalg.lstsq(a, b, driver="gelsd")[0], (TALL, TALL + 1)),
    "residuals": (lambda L, a, b: L.linalg.lstsq(a, b, driver="gels")[1], (TALL, TALL * 1j + 1)),
    "cond": (lambda L, a: L.linalg.cond(a) + L.linalg.cond(a, -2), (M,)),
    "householder_product": (lambda L, a, b: L.linalg.householder_product(a, b), (TALL, Z[0, :2])),
    "ormqr": (
        lambda L, a, b, c: L.ormqr(a, b, c) + L.ormqr(a, b, c, True, True)
        + L.ormqr(a, b, c.mT, False).mT + L.ormqr(a, b, c.mH, False, True).mT,
        (TALL, Z[0, :2], TALL + 2),
    ),
    "vector_norm": (lambda L, a: sum(L.linalg.vector_norm(a, p, 1) for p in (0.5, 1, 2, 3)), (Z,)),
    "vector_norm inf": (lambda L, a: L.linalg.vector_norm(a, float("inf")), (Z,)),
    "vector_norm of zeros": (lambda L, a: L.linalg.vector_norm(a), (Z * 0,)),
    "matrix_norm": (lambda L, a: _norms(L, a, ("fro", "nuc", 1, -1, 2, -2)), (M,)),
    "matrix_norm of a batch": (lambda L, a: _norms(L, a, ("fro", "nuc", 1, 2)), (BATCH,)),
    "linalg.norm": (lambda L, a: L.linalg.norm(a) + L.linalg.norm(a, 1), (Z,)),
    "eigvals": (lambda L, a: abs(L.linalg.eigvals(a)), (M,)),
    "eigvals of a real one": (lambda L, a: abs(L.linalg.eigvals(a)), (M.real,)),
    "eig": (lambda L, a: abs(L.linalg.eig(a)[1]), (M,)),
    "eig of a real one": (lambda L, a: abs(L.linalg.eig(a)[1]), (M.real,)),
    "abs of zero": (lambda L, a: L.abs(a), (np.array([0j, 1j]),)),
    "angle of zero": (lambda L, a: L.angle(a), (np.array([0j, 1j, -1 + 0j]),)),
    "sgn of zero": (lambda L, a: L.sgn(a), (np.array([0j, 1j]),)),
    "pow of zero": (lambda L, a: a ** (2 + 0j), (np.array([0j, 1j]),)),
    "prod of a zero": (lambda L, a: L.prod(a), (np.array([0j, 1j, 2.0]),)),
    "angle of real ones": (lambda L, a: L.angle(a), (np.array([-1.0, 0.0, 2.0]),)),
}  # fmt: skip


def _positive(L, a):
    return a @ a.mH + L.eye(3, dtype=a.dtype)


def _spread(L, found):
    """A function of eigenvectors for which their phases do not count."""
    values, vectors = found
    return vectors @ L.diag_embed(L.sin(values) + 0j) @ vectors.mH


def _together(L, found):
    u, s, vh = found
    return (u * L.cos(s)[..., None, :]) @ vh + abs(u).sum() * abs(vh[..., :1]).sum() ** 2


def _beside(L, found):
    return L.cat([found.Q, found.R], -2)


def _norms(L, a, orders):
    return sum(L.linalg.matrix_norm(a, order) * (2 + k) for k, order in enumerate(orders))


def _lu_solve(L, a, b, **options):
    return L.linalg.lu_solve(*L.linalg.lu_factor(a), b, **options)


def _part_changed(L, a, b):
    a = a * 1
    a.imag.mul_(b)
    a.real += b
    return a * a


def _view_changed(L, a, b):
    a = a * 1
    part = a.T[1:].real
    part.mul_(b[:, 1:].T)
    return a * part.sum() + a.imag


def _pairs_changed(L, a):
    a = a * 1
    z = L.view_as_complex(a)
    z[1:].mul_(2 + 1j)
    return a * a


def _broadcast(L, a):
    a = a * 1
    part = a.expand(2, 3).real
    a.mul_(2j)
    return part * part


def outcome(library, call, operands, dtype):
    narrow = {"complex64": {"c": np.complex64, "f": np.float32}}.get(dtype)
    given = [x if narrow is None else x.astype(narrow[x.dtype.kind]) for x in operands]
    leaves = [library.tensor(x, requires_grad=True) for x in given]
    y = call(library, *leaves)
    weight = np.cos(np.arange(y.numel())).reshape(y.shape) * (1 + 0.5j)
    weight = library.tensor(weight if y.is_complex() else weight.real, dtype=y.dtype)
    y.backward(weight)
    return [t.resolve_conj().numpy() if hasattr(t, "resolve_conj") else t.numpy()
            for t in (y.detach(), *[x.grad for x in leaves])]  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name, dtype):
    call, operands = CALLS[name]
    expected = outcome(torch, call, operands, dtype)
    found = outcome(tg, call, operands, dtype)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        tolerance = 1e-10 if dtype == "complex128" else 2e-4
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


LEANING = {
    "eigh": lambda L, a: L.linalg.eigh(a + a.mH)[1].real,
    "eigh squared": lambda L, a: L.linalg.eigh(a + a.mH)[1] ** 2,
    "left vectors": lambda L, a: L.linalg.svd(a)[0].imag,
    "right vectors": lambda L, a: L.linalg.svd(a)[2] ** 2,
    "eig": lambda L, a: L.linalg.eig(a)[1].real,
}


@pytest.mark.parametrize("name", LEANING)
def test_what_leans_to_the_phases_is_refused(name):
    for library in (torch, tg):
        x = library.tensor(M, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"phase|e\^\{i phi\}"):
            LEANING[name](library, x).sum().abs().backward()


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_ldl(hermitian, dtype):
    """PyTorch has no derivative of any part."""
    batch = BATCH - 3 * np.eye(3)  # blocks of two among those of D
    batch = (batch + batch.mT.conj() if hermitian else batch + batch.mT).astype(dtype)
    right = np.stack([M, M + 1j, M * 1j]).astype(dtype)
    found = []
    for L in (tg, torch):
        factors = L.linalg.ldl_factor_ex(L.tensor(batch), hermitian=hermitian)
        plain = L.linalg.ldl_factor(L.tensor(batch[0]), hermitian=hermitian)
        zero = L.linalg.ldl_factor_ex(L.tensor(batch * 0), hermitian=hermitian).info
        solved = L.linalg.ldl_solve(*factors[:2], L.tensor(right), hermitian=hermitian)
        found.append([x.numpy() for x in (*factors, *plain, zero, solved)])
    rtol = 1e-3 if dtype == "complex64" else 1e-11
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol / 10)
