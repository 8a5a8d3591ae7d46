"""Linear algebra, compiled: LAPACK's results, and the errors that the operations raise eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
COLUMN = np.array([[1.0, 0.0], [2.0, 0.0]])
PHASES = np.array([[1.0, 1.0j], [1.0j, -1.0]])  # a singular matrix
FAILING = {
    "inv": (lambda x: tg.linalg.inv(x), SINGULAR, "singular"),
    "solve": (lambda x: tg.linalg.solve(x, x), SINGULAR, "singular"),
    "cholesky": (lambda x: tg.linalg.cholesky(x), -np.eye(3), "not positive definite"),
    "gradient": (tg.grad(lambda x: tg.linalg.inv(x).sum()), np.zeros((3, 3)), "singular"),
    "batch": (lambda x: tg.linalg.inv(x), np.stack([np.eye(2), SINGULAR]), r"\(1,\)"),
    "complex inv": (lambda x: tg.linalg.inv(x), PHASES, "singular"),
    "complex solve": (lambda x: tg.linalg.solve(x, x), PHASES, "singular"),
    "complex cholesky": (lambda x: tg.linalg.cholesky(x), PHASES, "not positive definite"),
    "complex batch": (lambda x: tg.linalg.inv(x), np.stack([np.eye(2), PHASES]), r"\(1,\)"),
    "lu_factor": (lambda x: tg.linalg.lu_factor(x).LU, SINGULAR, "element 2"),
    "ldl_factor": (lambda x: tg.linalg.ldl_factor(x).LD, np.zeros((2, 2)), "block 1"),
    "lstsq": (lambda x: tg.linalg.lstsq(x, x, driver="gels")[0], COLUMN, "full rank"),
    "pinv": (lambda x: tg.linalg.pinv(x), np.full((2, 2), np.nan), "`linalg.pinv`"),
    "complex pinv": (lambda x: tg.linalg.pinv(x), np.full((2, 2), np.nan * 1j), "`linalg.pinv`"),
}


@pytest.mark.parametrize(("f", "x", "what"), FAILING.values(), ids=FAILING)
def test_what_has_no_result_raises_what_it_raises_eagerly(f: Any, x: Any, what: str) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=what) as eager:
        f(x)
    jitted = tg.jit(f)
    fine = np.broadcast_to(2.0 * np.eye(x.shape[-1], dtype=x.dtype), x.shape).copy()
    np.testing.assert_allclose(jitted(fine), f(fine), rtol=1e-12)
    for _ in range(2):
        with pytest.raises(type(eager.value), match=what) as compiled:
            jitted(x)
        assert str(compiled.value) == str(eager.value)
    np.testing.assert_allclose(jitted(fine), f(fine), rtol=1e-12)
    assert jitted.lower(fine).callbacks == ()


@pytest.mark.parametrize("x", [SINGULAR, np.zeros((2, 2)), np.zeros((3, 3))], ids=str)
def test_a_singular_matrix_has_a_determinant_and_its_gradient(x: Any) -> None:
    for f in (tg.linalg.det, tg.grad(tg.linalg.det)):
        jitted = tg.jit(f)
        jitted(np.eye(len(x)))
        np.testing.assert_allclose(jitted(x), f(x), atol=1e-12)


@pytest.mark.parametrize("n", [1, 4, 30])
def test_second_derivatives(n: int) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(n, n))
    x = a @ a.T + n * np.eye(n)

    def f(x: Any) -> Any:
        z = tg.linalg.solve(x, np.ones((n, 1)))
        return (z * z).sum() + tg.linalg.slogdet(x)[1] + tg.linalg.cholesky(x).sum()

    slope = tg.grad(lambda x: (tg.grad(f)(x) * a).sum())
    jitted = tg.jit(slope)
    np.testing.assert_allclose(jitted(x), slope(x), rtol=1e-9, atol=1e-10)
    assert jitted.lower(x).callbacks == ()


FACTORIZATIONS = {
    "eigh": lambda x: np.linalg.eigh(x + np.swapaxes(x, -1, -2)),
    "eigh of the upper triangle": lambda x: np.linalg.eigh(x, "U"),
    "svd": lambda x: np.linalg.svd(x, full_matrices=False),
    "qr": np.linalg.qr,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factorizations_are_numpys_without_python(name: str, dtype: Any, rng: Any) -> None:
    shapes = [(1, 1), (4, 4), (2, 9, 9), (2, 3, 5, 5)]
    if not name.startswith("eigh"):
        shapes += [(5, 3), (3, 5), (2, 70, 4), (1, 6)]
    f = FACTORIZATIONS[name]
    for shape in shapes:
        x = rng.normal(size=shape).astype(dtype)
        jitted = tg.jit(f)
        for found, wanted in zip(jitted(x), f(x), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, atol=1e-11 if dtype == np.float64 else 2e-5)
        assert jitted.lower(x).callbacks == ()


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_gradients_of_factorizations(name: str, rng: Any) -> None:
    x, weights = rng.normal(size=(3, 4, 4)), rng.normal(size=(4, 4))
    f = FACTORIZATIONS[name]
    slope = tg.grad(lambda x: sum(np.sum(weights[0] * part**2) for part in f(x)))
    np.testing.assert_allclose(tg.jit(slope)(x), slope(x), rtol=1e-9)
    assert tg.jit(slope).lower(x).callbacks == ()
    curvature = tg.hessian(lambda x: np.sum(f(x)[-1] ** 2 * weights))
    np.testing.assert_allclose(tg.jit(curvature)(x[0]), curvature(x[0]), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factorizations_of_what_is_no_number(name: str) -> None:
    f, x = FACTORIZATIONS[name], np.full((3, 3), np.nan)
    try:
        wanted = f(x)
    except np.linalg.LinAlgError as error:
        with pytest.raises(type(error)):
            tg.jit(f)(x)
    else:
        for found, value in zip(tg.jit(f)(x), wanted, strict=True):
            np.testing.assert_array_equal(found, value)


def symmetric(x: Any) -> Any:
    return x + x.mH


def sizes(*parts: Any) -> list[Any]:
    """Absolute values: signs and phases of vectors are arbitrary."""
    return [abs(x) for x in parts]


SQUARE = [(1, 1), (2, 1, 3, 3), (12, 12)]
ANY = [*SQUARE, (5, 3), (2, 3, 5)]
# Functions of matrices, real and complex ones, and the shapes of these.
MATRICES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "solve": (lambda x: [tg.linalg.solve(x, x[..., :1] + 1)], SQUARE),
    "inv": (lambda x: [tg.linalg.inv(x), tg.linalg.matrix_power(x, -3)], SQUARE),
    "det": (lambda x: [tg.linalg.det(x), *tg.linalg.slogdet(x)], SQUARE),
    "cholesky": (lambda x: [tg.linalg.cholesky(x @ x.mH)], SQUARE),
    "solve_triangular": (lambda x: [tg.linalg.solve_triangular(x, x + 1, upper=True)], SQUARE),
    "eigh": (lambda x: sizes(*tg.linalg.eigh(symmetric(x))), SQUARE),
    "eig": (lambda x: sizes(*tg.linalg.eig(x)), SQUARE),
    "svd": (lambda x: sizes(*tg.linalg.svd(x, full_matrices=False)), ANY),
    "full svd": (lambda x: [tg.linalg.svd(x)[1], *projectors(tg.linalg.svd(x))], ANY),
    "qr": (lambda x: list(tg.linalg.qr(x)), ANY),
    "lu": (lambda x: list(tg.linalg.lu(x)), ANY),
    "lu_solve": (lambda x: [tg.linalg.lu_solve(*tg.linalg.lu_factor(x), x + 1)], SQUARE),
    "pinv": (lambda x: [tg.linalg.pinv(x)], ANY),
    "pinv of a triangle": (lambda x: [tg.linalg.pinv(x, hermitian=True)], SQUARE),
    "lstsq": (lambda x: [tg.linalg.lstsq(x, x[..., :1] + 1)[0]], ANY),
    "lstsq by gels": (lambda x: [tg.linalg.lstsq(x, x + 1, driver="gels")[0]], ANY),
    "lstsq by gelsd": (lambda x: list(tg.linalg.lstsq(x, x + 1, driver="gelsd")[::3]), ANY),
    "lstsq by gelss": (lambda x: list(tg.linalg.lstsq(x, x + 1, driver="gelss")[::3]), ANY),
    "matrix_exp": (lambda x: [tg.linalg.matrix_exp(x), tg.linalg.matrix_exp(0.01 * x)], SQUARE),
    "inv_ex": (lambda x: [tg.linalg.inv_ex(x)[0]], SQUARE),
    "solve_ex": (lambda x: [tg.linalg.solve_ex(x, x + 1)[0]], SQUARE),
    "cholesky_ex": (lambda x: [tg.linalg.cholesky_ex(x @ x.mH)[0]], SQUARE),
}


def projectors(found: Any) -> list[Any]:
    """The projectors on the columns beyond the singular values, which are no choice of LAPACK."""
    u, s, vh = found
    k = s.shape[-1]
    return [u[..., k:] @ u[..., k:].mH, vh[..., k:, :].mH @ vh[..., k:, :]]


def numbers(rng: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype in "FD" else 0)
    return tg.tensor((x + 2 * np.eye(*shape[-2:])).astype(dtype))


def total(f: Any) -> Any:
    def summed(x: Any) -> Any:
        return sum((abs(part) ** 2 * (0.5 + np.arange(part.numel()).reshape(part.shape) % 3)).sum()
                   for part in f(x) if part.numel())  # fmt: skip

    return summed


@pytest.mark.parametrize("dtype", ["d", "D", "f", "F"])
@pytest.mark.parametrize("name", MATRICES)
def test_functions_of_matrices_and_their_gradients(name: str, dtype: str, rng: Any) -> None:
    f, shapes = MATRICES[name]
    slope = tg.grad(total(f))
    exact = 1e-9 if dtype in "dD" else 1e-2
    for shape in shapes if dtype in "dD" else shapes[1:2]:
        x = numbers(rng, shape, dtype)
        jitted, sloped = tg.jit(f), tg.jit(slope)
        for found, wanted in zip([*jitted(x), sloped(x)], [*f(x), slope(x)], strict=True):
            assert found.dtype == wanted.dtype
            scale = max(1.0, float(abs(wanted).numpy().max(initial=0)))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=exact * scale)
        assert jitted.lower(x).callbacks == sloped.lower(x).callbacks == ()


@pytest.mark.parametrize("name", ["lu", "pinv", "lstsq", "matrix_exp", "eig", "solve", "det"])
def test_transforms_of_functions_of_matrices(name: str, rng: Any) -> None:
    f = total(MATRICES[name][0])
    x, v = (numbers(rng, (3, 3, 3), "d") for _ in range(2))
    mapped = tg.vmap(tg.grad(f))
    np.testing.assert_allclose(tg.jit(mapped)(x), mapped(x), rtol=1e-8)

    def pushed(x: Any, v: Any) -> Any:
        return tg.jvp(tg.grad(f), (x,), (v,))

    for found, wanted in zip(tg.jit(pushed)(x[0], v[0]), pushed(x[0], v[0]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    if name != "det":  # `cofactor_slope` is a call of Python
        assert tg.jit(pushed).lower(x[0], v[0]).callbacks == ()


def test_codes_of_what_has_no_result() -> None:
    def f(x: Any) -> list[Any]:
        inverse, failed = tg.linalg.inv_ex(x)
        root, order = tg.linalg.cholesky_ex(x)
        ldl = tg.linalg.ldl_factor_ex(x)
        return [inverse, failed, root[..., 0, 0], order, tg.linalg.lu_factor_ex(x).info, *ldl]

    for x in (np.stack([np.eye(2), SINGULAR, np.zeros((2, 2))]), np.stack([PHASES, PHASES * 0])):
        t = tg.tensor(x)
        for found, wanted in zip(tg.jit(f)(t), f(t), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, atol=1e-15)
        assert tg.jit(f).lower(t).callbacks == ()


def test_rows_are_swapped_back(rng: Any) -> None:
    x = rng.normal(size=(2, 5, 3))

    def f(x: Any) -> Any:
        p, lower, upper = tg.linalg.lu(x)
        return p @ lower @ upper

    np.testing.assert_allclose(tg.jit(f)(tg.tensor(x)), x, rtol=1e-12)


def test_pivots_that_are_none_are_refused_as_eagerly() -> None:
    both, pivots = tg.eye(2), tg.tensor(np.array([7, 2], np.int32))
    with pytest.raises(IndexError):
        tg.lu_unpack(both, pivots)
    with pytest.raises(IndexError):
        tg.jit(tg.lu_unpack)(both, pivots)


def test_what_depends_on_phases_is_refused(rng: Any) -> None:
    x = numbers(rng, (3, 3), "D")
    for f in (lambda x: tg.linalg.eig(x)[1], lambda x: tg.linalg.eigh(symmetric(x))[1]):
        slope = tg.jit(tg.grad(lambda x, f=f: f(x).real.sum()))
        with pytest.raises(RuntimeError, match="phases"):
            slope(x)


def test_an_exponential_beside_a_large_adjoint(rng: Any) -> None:
    a, g = rng.normal(size=(2, 3, 3))
    exponential = tg.jit(lambda a, g: tg.jvp(tg.linalg.matrix_exp, (a,), (g,))[1])
    small = exponential(a, g)
    for size in (1e-20, 1e10, 1e40):
        np.testing.assert_allclose(exponential(a, g * size), small * size, rtol=1e-12)


def test_an_exponential_whose_power_is_zero() -> None:
    x = np.array([[1.0, -1.0], [1.0, -1.0]]) * 1e3
    np.testing.assert_allclose(tg.jit(tg.linalg.matrix_exp)(x), np.eye(2) + x, rtol=1e-8)


def test_an_exponential_of_what_is_no_number(capfd: Any) -> None:
    for x in (np.full((3, 3), np.nan), np.full((3, 3), np.inf)):
        found = tg.jit(tg.linalg.matrix_exp)(x)
        np.testing.assert_array_equal(found, tg.linalg.matrix_exp(tg.tensor(x)))
    assert "DGEBAL" not in capfd.readouterr().err
