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
