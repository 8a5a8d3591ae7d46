"""Linear algebra, compiled: LAPACK's results, and the errors that the operations raise eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
FAILING = {
    "inv": (lambda x: tg.linalg.inv(x), SINGULAR, "singular"),
    "solve": (lambda x: tg.linalg.solve(x, x), SINGULAR, "singular"),
    "cholesky": (lambda x: tg.linalg.cholesky(x), -np.eye(3), "not positive definite"),
    "gradient": (tg.grad(lambda x: tg.linalg.inv(x).sum()), np.zeros((3, 3)), "singular"),
    "batch": (lambda x: tg.linalg.inv(x), np.stack([np.eye(2), SINGULAR]), r"\(1,\)"),
}


@pytest.mark.parametrize(("f", "x", "what"), FAILING.values(), ids=FAILING)
def test_what_has_no_result_raises_what_it_raises_eagerly(f: Any, x: Any, what: str) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=what) as eager:
        f(x)
    jitted = tg.jit(f)
    fine = np.broadcast_to(2.0 * np.eye(x.shape[-1]), x.shape).copy()
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
