"""Products of small matrices, compiled: every shape and layout, strong ones, how often written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen.small_matmul import SIDE

# How a matrix may lie: the array that it is a window of, and the window.
LAYOUTS: dict[str, tuple[Callable[[int, int], tuple[int, ...]], Callable[[Any], Any]]] = {
    "rows": (lambda m, n: (m, n), lambda x: x),
    "columns": (lambda m, n: (n, m), lambda x: x.mT),
    "steps": (lambda m, n: (3 * m, 2 * n), lambda x: x[..., ::3, ::2]),
    "from the end": (lambda m, n: (m, n), lambda x: tg.flip(x, (-1, -2))),
    "repeated": (lambda m, n: (m, 1), lambda x: x.expand((*x.shape[:-1], 4))),
}
TOLERANCE = {np.float64: 1e-13, np.float32: 1e-5}


def compare(f: Any, args: Any, dtype: Any = np.float64) -> Any:
    """Value and gradient, compiled and not; returns the jitted function."""
    args = [np.asarray(a, dtype) for a in args]
    both = tg.value_and_grad(f, tuple(range(len(args))), has_aux=True)
    jitted = tg.jit(both)
    ((_, y), got), ((_, wanted), expected) = jitted(*args), both(*args)
    for a, b in zip((y, *got), (wanted, *expected), strict=True):
        assert np.ndim(a) == 0 or a.dtype == b.dtype == dtype
        scale = np.abs(b).max(initial=1.0)
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=TOLERANCE[dtype])
    return jitted


def squared(a: Any, b: Any) -> Any:
    y = a @ b
    return (y * y).sum() / 2, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [*itertools.product((1, 3, 8), (1, 4, 7), (1, 5, 8))])
def test_every_shape(shape: Any, dtype: Any) -> None:
    m, k, n = shape
    rng = np.random.default_rng(1)
    compare(squared, [rng.normal(size=(m, k)), rng.normal(size=(k, n))], dtype)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("m", [1, 3])
def test_every_layout(m: int, left: str, right: str) -> None:
    rng = np.random.default_rng(2)
    (base_a, laid_a), (base_b, laid_b) = LAYOUTS[left], LAYOUTS[right]

    def f(a: Any, b: Any) -> Any:
        return squared(laid_a(a), laid_b(b))

    for n in (4, 1) if right != "repeated" else (4,):
        args = [rng.normal(size=base_a(m, 4)), rng.normal(size=base_b(4, n))]
        compare(f, args)
        compare(f, [np.stack([x, 2 * x, -x]) for x in args])


@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 1, 3, 2), (4, 2, 3)), ((6, 3, 3), (3, 3)), ((3, 3), (6, 3, 3)), ((2, 3, 4), (4,)),
        ((4,), (2, 4, 3)), ((3,), (3,)), ((2, 1, 4), (2, 4, 1)), ((0, 3, 3), (3, 3)),
        ((100, 3), (3, 2)), ((3, 2), (2, 100)),
    ],
    ids=str,
)  # fmt: skip
def test_batches_and_vectors(shapes: Any) -> None:
    rng = np.random.default_rng(3)
    compare(squared, [rng.normal(size=shape) for shape in shapes])


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(
    "shape", [(2, 2, 2), (1, 3, 4), (4, 3, 1), (5, 1, 6), (4, 4, 4), (8, 8, 8)]
)
def test_a_zero_against_infinity_is_zero_in_a_strong_product(shape: Any, batch: Any) -> None:
    m, k, n = shape
    rng = np.random.default_rng(4)
    for bad in (np.inf, np.nan):
        a, b = rng.normal(size=(*batch, m, k)), rng.normal(size=(*batch, k, n))
        a[..., 0, 0] = b[..., -1, -1] = bad

        def f(a: Any, b: Any) -> Any:
            return (tg.where((a @ b).isfinite(), a @ b, 0.0) ** 2).sum()

        slope = tg.grad(f, (0, 1))
        for got, expected in zip(tg.jit(slope)(a, b), slope(a, b), strict=True):
            assert np.isfinite(expected).any()
            np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-13)


def test_what_is_used_often_is_written_once_and_called() -> None:
    def f(a: Any) -> Any:
        y = a
        for _ in range(30):
            y = a @ y
        return y.sum()

    text = tg.jit(f).lower(np.eye(4)).as_text("llvm")
    assert text.count("call void @small") == 30
    assert text.count("define internal void @small") == 1
    assert "noinline" in text[text.index("attributes #2") :].splitlines()[0]
    assert text.index(" #2 {") > text.index("@small")


@pytest.mark.parametrize("n", [SIDE, SIDE + 1])
def test_what_is_small(n: int) -> None:
    text = tg.jit(lambda a: a @ a).lower(np.eye(n)).as_text("llvm")
    assert ("call void @small" in text) == (n == SIDE)
