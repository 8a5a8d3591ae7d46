"""Factorizations of small matrices: the sweep hands on what their rules would."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tests.kernels.sweep.test_compiled_sweep import both

pytestmark = pytest.mark.tapegrad_only("compares paths through the library")

L = tg.linalg
TALL, WIDE, SQUARE = (5, 3), (3, 5), (4, 4)


def eye(n, x):
    """The unit matrix, of the type of another one."""
    return tg.eye(n, dtype=x.dtype)


def positive(x):
    return x @ x.mT + eye(x.shape[-1], x)


FUNCTIONS = {
    "inv": (SQUARE, lambda x: [L.inv(x + 3 * eye(4, x))]),
    "cholesky": (SQUARE, lambda x: [L.cholesky(positive(x))]),
    "cholesky of the other side": (SQUARE, lambda x: [L.cholesky(positive(x), upper=True)]),
    "eigh": (SQUARE, lambda x: list(L.eigh(positive(x)))),
    "eigvalsh": (SQUARE, lambda x: [L.eigvalsh(positive(x), "U")]),
    "qr": (SQUARE, lambda x: list(L.qr(x))),
    "qr of a tall matrix": (TALL, lambda x: list(L.qr(x))),
    "qr of a wide matrix": (WIDE, lambda x: list(L.qr(x))),
    "svd": (SQUARE, lambda x: list(L.svd(x))),
    "svd of a tall matrix": (TALL, lambda x: list(L.svd(x, False))),
    "svd of a wide matrix": (WIDE, lambda x: list(L.svd(x, False))),
    "svdvals": (WIDE, lambda x: [L.svdvals(x)]),
    "lu": (SQUARE, lambda x: list(L.lu(x))[1:]),
    "lu of a wide matrix": (WIDE, lambda x: list(L.lu(x))[1:]),
    "solve": (TALL, lambda x: [L.solve(x[..., :3, :] + 2 * eye(3, x), x[..., 3:, :].mT)]),
    "solve with one right side": (
        TALL,
        lambda x: [L.solve(x[..., :3, :] + 2 * eye(3, x), x.flatten()[:3, None])],
    ),
    "solve of a constant matrix": (SQUARE, lambda x: [L.solve(3 * eye(4, x) + 1, x)]),
    "solve of a constant right side": (SQUARE, lambda x: [L.solve(x + 3 * eye(4, x), eye(4, x))]),
    "solve_triangular of a constant matrix": (
        SQUARE,
        lambda x: [L.solve_triangular(3 * eye(4, x) + 1, x, upper=True)],
    ),
    "solve_triangular of a constant right side": (
        SQUARE,
        lambda x: [L.solve_triangular(x + 3 * eye(4, x), eye(4, x), upper=True)],
    ),
    "cholesky_solve": (SQUARE, lambda x: [tg.cholesky_solve(x, x + 3 * eye(4, x))]),
    "slogdet": (SQUARE, lambda x: [L.slogdet(x)[1]]),
    "det": (SQUARE, lambda x: [L.det(x)]),
} | {
    f"solve_triangular, upper={upper}, unitriangular={unit}": (
        TALL,
        lambda x, upper=upper, unit=unit: [
            L.solve_triangular(
                x[..., :3, :] + 2 * eye(3, x), x[..., 3:, :].mT, upper=upper, unitriangular=unit
            )
        ],
    )
    for upper in (False, True)
    for unit in (False, True)
}


@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 1)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors(name, batch):
    shape, function = FUNCTIONS[name]
    x0 = np.random.default_rng(7).standard_normal((*batch, *shape))

    def build():
        x = tg.tensor(x0, requires_grad=True)
        rng = np.random.default_rng(1)
        found = sum((y * rng.standard_normal(y.shape)).sum() for y in function(x))
        return found + (x * x).sum(), [x]

    both(build)


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "wide" not in n and "one" not in n])
def test_small_matrices_need_no_python(name, monkeypatch):
    shape, function = FUNCTIONS[name]
    x = np.random.default_rng(2).standard_normal(shape)
    g = tg.grad(lambda x: sum(y.sum() for y in function(x)))
    first = g(x)  # loads kernels
    monkeypatch.setattr(Sweep, "_step", None)
    np.testing.assert_array_equal(g(x), first)


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "wide" not in n and "one" not in n])
def test_float32_is_computed_in_double_precision(name, batch, monkeypatch):
    shape, function = FUNCTIONS[name]
    x = np.random.default_rng(2).standard_normal((*batch, *shape)).astype(np.float32)
    g = tg.grad(lambda x: sum(y.sum() for y in function(x)))
    expected = g(x.astype(float))
    if not batch:
        g(x)  # loads kernels
        monkeypatch.setattr(Sweep, "_step", None)
    found = g(x)
    assert found.dtype == np.float32
    # Gradients of factors of near matrices see the rounding of the factors enlarged.
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_determinants_of_singular_matrices_are_left_to_the_rule():
    def build():
        x = tg.tensor(np.outer([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]), requires_grad=True)
        return (L.det(x) * 2 + L.det(x[:2, :2] * np.array([1e-200, 1e-200]))).sum(), [x]

    both(build)


@pytest.mark.parametrize("n", [31, 33, 70])
def test_around_the_largest_that_are_swept_in_compiled_code(n):
    x0 = np.random.default_rng(n).standard_normal((n, n)) + 2 * np.sqrt(n) * np.eye(n)

    def build():
        x = tg.tensor(x0, requires_grad=True)
        q, r = L.qr(x)
        return L.inv(x).sum() + (q + r).sum() + L.svdvals(x)[0], [x]

    both(build)


def test_what_is_not_finite_is_left_to_the_rule():
    def build():
        x = tg.tensor(np.diag([1.0, 2.0, 2.0]), requires_grad=True)
        vectors = L.eigh(x).eigenvectors
        zero = L.solve_triangular(x * np.array([1.0, 0.0, 1.0]), x, upper=True)
        return vectors[1, 1] + vectors[0, 0] + zero[2].sum() + (x * x).sum(), [x]

    with np.errstate(all="ignore"):
        both(build)


def test_vectors_of_equal_values_that_are_not_used_do_no_harm():
    def build():
        x = tg.tensor(np.diag([1.0, 2.0, 2.0]), requires_grad=True)
        return (L.eigvalsh(x) ** 2).sum() + (L.svdvals(x) ** 3).sum(), [x]

    both(build)
