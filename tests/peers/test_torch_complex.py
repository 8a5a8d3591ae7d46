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
ONE = (
    "abs acos acosh angle asin asinh atan atanh conj conj_physical cos cosh exp exp2 expm1 log "
    "log10 log1p log2 neg reciprocal rsqrt sgn sigmoid sin sinh sqrt square tan tanh real imag "
    "view_as_real positive mean sum prod var std ravel"
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
