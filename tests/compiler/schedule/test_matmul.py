"""Products of matrices, compiled: every layout and size, batches, zeros against infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SHAPES = {
    "small": ((3, 4), (4, 5)),
    "large": ((40, 50), (50, 60)),
    "vector": ((300,), (300, 40)),
    "column": ((40, 300), (300,)),
    "one matrix for many": ((6, 20, 30), (30, 40)),
    "many for one": ((20, 30), (6, 30, 40)),
    "many": ((6, 20, 30), (6, 30, 40)),
    "small many": ((50, 3, 3), (50, 3, 3)),
    "crossed": ((2, 1, 20, 30), (3, 30, 40)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("turned", [False, True], ids=["", "transposed"])
def test_a_product_of_every_shape(shapes: Any, turned: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = [rng.normal(size=shape) for shape in shapes]
    if turned:
        a, b = [x.swapaxes(-1, -2).copy() if x.ndim > 1 else x for x in (a, b)]

    def f(a: Any, b: Any) -> Any:
        if turned:
            a, b = [x.swapaxes(-1, -2) if x.ndim > 1 else x for x in (a, b)]
        y = a @ b
        return (y * y).sum() / 2, y

    both = tg.value_and_grad(f, (0, 1), has_aux=True)
    ((_, y), gradients), ((_, wanted), expected) = tg.jit(both)(a, b), both(a, b)
    np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-12)
    for got, g in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(got, g, rtol=1e-11, atol=1e-10)
    assert tg.jit(both).lower(a, b).callbacks == ()


@pytest.mark.parametrize("n", [3, 12, 40])
def test_an_adjoint_that_is_zero_stays_zero_against_infinity(n: int) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(n, n)), rng.normal(size=(n, n))
    b[0, 0] = np.inf

    def f(a: Any, b: Any) -> Any:
        return (a @ b)[:, 1:].sum()

    got, expected = [g(a, b) for g in (tg.jit(tg.grad(f, (0, 1))), tg.grad(f, (0, 1)))]
    assert all(np.isfinite(g).all() for g in expected)
    for x, y in zip(got, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_a_matrix_that_serves_a_batch_is_one_product() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(4, 5, 20, 30)), rng.normal(size=(30, 10))
    slope = tg.grad(lambda w, x: tg.tanh(x @ w).sum())
    jitted = tg.jit(slope)
    np.testing.assert_allclose(jitted(w, x), slope(w, x), rtol=1e-11, atol=1e-11)
    tape = str(jitted.lower(w, x))
    assert "sum_to" not in tape
    assert tape.count(" product ") == 1
