"""Scans, compiled: along every dimension, both ways, long ones and several threads too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((300000,), 0), ((2000, 150), 0), ((2000, 150), 1), ((20, 100, 150), 1), ((1, 7), 0)],
    ids=str,
)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_a_scan_and_its_gradient(name: str, shape: Any, dim: int, threads: int) -> None:
    x = np.random.default_rng(5).uniform(0.999, 1.001, shape)
    weight = np.random.default_rng(6).normal(size=shape)

    def f(x: Any) -> Any:
        y = getattr(tg, name)(x, dim)
        return (y * weight).sum(), y

    both = tg.value_and_grad(f, has_aux=True)
    (_, wanted), expected = both(x)
    before = tg.get_num_threads()
    tg.set_num_threads(threads)
    try:
        (_, y), slope = tg.jit(both)(x)
    finally:
        tg.set_num_threads(before)
    np.testing.assert_allclose(y, wanted, rtol=1e-9)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
