"""Compiled sorts and selections find what eager ones do: ties, NaN, zeros and infinities too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.codegen.sorting import COUNTED

pytestmark = pytest.mark.tapegrad_only("how programs are compiled")

# Keys that are counted for in blocks, with a rest or not, and keys that are dealt out.
SHAPES = [(1,), (8,), (21,), (1500,), (3, 7, 2)]
CASES = [*[("f8", n) for n in SHAPES], *[(t, (2, 250)) for t in ("f8", "f4", "i8", "i4", "?")]]
SPECIAL = [np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1.0, 1.0]


def elements(shape: Any, dtype: str, rng: Any) -> np.ndarray:
    if dtype == "?":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype[0] == "i":
        info = np.iinfo(dtype)
        chosen = rng.choice([info.min, info.max, -1, 0, 1, 256, -70000], shape)
        return np.where(rng.random(shape) < 0.5, chosen, rng.integers(info.min, info.max, shape))
    special = rng.choice(SPECIAL, shape)
    return np.where(rng.random(shape) < 0.3, special, rng.normal(size=shape).round(1)).astype(dtype)


def all_of(x: Any) -> list[Any]:
    """The results of every function along every dimension."""
    found = []
    for dim, n in enumerate(x.shape):
        for flag in (False, True):
            found += [tg.argsort(x, dim, descending=flag), *tg.topk(x, n // 2, dim, largest=flag)]
        for k in {1, (n + 1) // 2, n}:
            found += tg.kthvalue(x, k, dim)
        for f in (tg.sort, tg.median, tg.nanmedian, tg.mode, tg.cummax, tg.cummin):
            found += f(x, dim)
    return [*found, tg.median(x), tg.nanmedian(x)]


@pytest.mark.parametrize(("dtype", "shape"), CASES, ids=str)
def test_places_are_those_found_eagerly(dtype: str, shape: Any, rng: Any) -> None:
    jitted = tg.jit(all_of)
    for _ in range(3):
        x = elements(shape, dtype, rng)
        for found, wanted in zip(jitted(x), all_of(tg.tensor(x)), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy())
            assert np.asarray(found).dtype == wanted.numpy().dtype
    assert not jitted.lower(x).callbacks


@pytest.mark.parametrize("n", [5, COUNTED + 9])
def test_elements_that_are_all_alike(n: int) -> None:
    jitted = tg.jit(all_of)
    for value in (np.nan, -0.0, 3.0):
        x = np.full(n, value)
        for found, wanted in zip(jitted(x), all_of(tg.tensor(x)), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy())


def trimmed(x: Any) -> Any:
    """A loss of order statistics."""
    middle = np.sort(x)[2:-2]
    spread = np.median(np.abs(x - np.median(x)))
    largest = tg.topk(tg.as_tensor(x), 3).values
    return np.mean(middle**2) * spread + np.quantile(x, 0.3) ** 3 + (largest**2).sum()


@pytest.mark.parametrize("n", [9, 40, COUNTED + 60])
def test_derivatives(n: int, rng: Any) -> None:
    x, v = rng.normal(size=(2, n))
    curved = lambda x: tg.jvp(tg.grad(trimmed), (x,), (v,))[1]
    for f in (tg.grad(trimmed), lambda x: tg.jvp(trimmed, (x,), (v,))[1], curved):
        jitted = tg.jit(f)
        np.testing.assert_allclose(jitted(x), f(x), rtol=1e-12, atol=1e-12)
        assert not jitted.lower(x).callbacks


def test_maps_and_loops(rng: Any) -> None:
    xs = rng.normal(size=(4, 6, COUNTED + 3)).round(1)

    def each(x: Any) -> Any:
        return tg.sort(x, 0).indices + tg.median(x, 1, keepdim=True).indices

    def through(x: Any) -> Any:
        def step(total: Any, row: Any) -> Any:
            found = tg.sort(row + total, descending=True).values
            return total + tg.median(found), found

        return tg.scan(step, tg.tensor(0.0), x)

    mapped, looped = tg.jit(tg.vmap(each)), tg.jit(through)
    np.testing.assert_array_equal(mapped(xs), tg.vmap(each)(tg.tensor(xs)).numpy())
    for found, wanted in zip(looped(xs[0]), through(tg.tensor(xs[0])), strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-13)
    assert not mapped.lower(xs).callbacks
    assert not looped.lower(xs[0]).callbacks


def test_nothing_to_sort() -> None:
    def f(x: Any) -> Any:
        return tg.sort(x, 0).values, tg.argsort(x, 1), tg.cummax(x, 0).indices, tg.topk(x, 0).values

    for shape in [(0, 3), (3, 0)]:
        x = np.empty(shape)
        for found, wanted in zip(tg.jit(f)(x), f(tg.tensor(x)), strict=True):
            assert found.shape == tuple(wanted.shape)
