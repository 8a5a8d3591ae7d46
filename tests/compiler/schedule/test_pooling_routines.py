"""Compiled pooling is the eager one to the last bit, and so are its gradients."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.kernels.large import volume_windows

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")
F = tg.nn.functional

POOLS = {
    "max": lambda x: F.max_pool2d(x, 2),
    "max with places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max of spread windows": lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2),
    "mean": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "mean along a line": lambda x: F.avg_pool1d(x[0], 2, 3),
    "mean of volumes": lambda x: F.avg_pool3d(x, 2),
    "means to a size": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    "largest to a size": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", POOLS)
def test_values_and_derivatives(name: str, dtype: str, rng: Any) -> None:
    def values(x: Any) -> tuple[Any, ...]:
        found = POOLS[name](tg.as_tensor(x))
        return found if isinstance(found, tuple) else (found,)

    x, v = rng.normal(size=(2, 2, 3, 9, 8)).astype(dtype)
    x[0, 0, 0, 0], x[1, 0, 3, 3] = -np.inf, np.nan
    jitted = tg.jit(values)
    for found, wanted in zip(jitted(x), values(x), strict=True):
        np.testing.assert_array_equal(found, wanted.numpy())
        assert found.dtype == wanted.numpy().dtype
    slope = tg.grad(lambda x: (values(x)[0] ** 3).sum())
    curved = lambda x: tg.jvp(slope, (x,), (v,))[1]
    tolerance = 1e-12 if dtype == "f8" else 1e-5
    for f in (slope, curved):
        compiled = tg.jit(f)
        np.testing.assert_allclose(compiled(v), f(v), rtol=tolerance, atol=tolerance)
        assert not compiled.lower(v).callbacks
    assert not jitted.lower(x).callbacks


def test_maps_and_loops(rng: Any) -> None:
    xs = rng.normal(size=(3, 2, 6))
    mapped = tg.jit(tg.vmap(lambda x: F.max_pool1d(x, 2)))
    np.testing.assert_array_equal(mapped(xs), F.max_pool1d(tg.tensor(xs), 2).numpy())

    def step(total: Any, x: Any) -> Any:
        return total + F.avg_pool1d(x, 3).sum(), F.max_pool1d(x, 2)

    looped = tg.jit(lambda xs: tg.scan(step, tg.tensor(0.0), xs))
    total, found = looped(xs)
    assert total == pytest.approx(xs.sum() / 3)
    np.testing.assert_array_equal(found, mapped(xs))
    assert not looped.lower(xs).callbacks
    assert mapped(np.empty((0, 2, 6))).shape == (0, 2, 3)


def test_a_program_keeps_its_tables(rng: Any) -> None:
    x = rng.normal(size=(2, 7, 7))
    jitted = tg.jit(lambda x: F.avg_pool2d(x, 3, 2) + F.max_pool2d(x, 3, 2))
    wanted = jitted(x)
    volume_windows.form.cache_clear()
    gc.collect()
    np.full(1 << 10, -1)  # where tables stood
    np.testing.assert_array_equal(jitted(x), wanted)
