"""Loops over elementary functions that all programs call."""

import ctypes
import re

import numpy as np
import pytest

from tapegrad.compiler.codegen import math_runtime
from tapegrad.compiler.llvm import elementary
from tapegrad.kernels import build
from tapegrad.kernels.codegen.rule_codegen import chain

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e308, -1e308, 1e-310]
SPECIAL += [672.0, 709.5, 709.9, -708.5, -745.0, -746.0, 1e22, np.pi, np.pi / 2, 2.0**60, -1e-17]


def on_block(name, *arrays):
    pointers = [ctypes.c_void_p] * (1 + len(arrays))
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)(
        math_runtime.address(math_runtime.symbol(name))
    )
    out = np.full(len(arrays[0]) + 1, 7.0)
    function(len(arrays[0]), out.ctypes.data, *[a.ctypes.data for a in arrays])
    assert out[-1] == 7.0
    return out[:-1]


def one_by_one(name, *arrays):
    form = chain(name, "none")[-1][0]
    found = re.match(r"vmath\.(\w+)", form)
    doubles = [ctypes.c_double] * len(arrays)
    function = ctypes.CFUNCTYPE(ctypes.c_double, *doubles)(
        elementary.address(elementary.outlined_name(f"vmath.{found[1]}.f64"))
    )
    return np.array([function(*given) for given in zip(*arrays, strict=True)])


def same(got, want):
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
    ends = ~np.isfinite(want)
    np.testing.assert_array_equal(got[ends], want[ends])
    np.testing.assert_allclose(got, want, rtol=2.0**-50, atol=5e-324)


@pytest.mark.parametrize("name", sorted(math_runtime.NAMES))
def test_a_block_is_what_its_elements_are(name):
    rng = np.random.default_rng(3)
    for n in (0, 1, 13, 203):
        arrays = [rng.uniform(0.05, 0.95, n) for _ in range(math_runtime.arity(name))]
        same(on_block(name, *arrays), one_by_one(name, *arrays))


@pytest.mark.parametrize("name", sorted(math_runtime.NAMES))
def test_a_block_serves_every_argument(name):
    grid = np.meshgrid(*[SPECIAL] * math_runtime.arity(name))
    arrays = [np.concatenate([np.full(40, 0.5), a.ravel()]) for a in grid]
    same(on_block(name, *arrays), one_by_one(name, *arrays))


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sin", "cos", "tan", "pow"])
def test_a_rare_argument_does_not_change_the_others(name):
    rng = np.random.default_rng(4)
    arrays = [rng.uniform(0.1, 3.0, 100) for _ in range(math_runtime.arity(name))]
    want = on_block(name, *arrays)
    for rare in (np.nan, np.inf, 1e300):
        arrays[0][57] = rare
        got = on_block(name, *arrays)
        np.testing.assert_array_max_ulp(np.delete(got, 57), np.delete(want, 57), 3)
        same(got[57:58], one_by_one(name, *[a[57:58] for a in arrays]))


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "erf", "pow"])
def test_tables_are_looked_up_without_registers_too(name, monkeypatch):
    rng = np.random.default_rng(5)
    arrays = [rng.uniform(0.1, 3.0, 100) for _ in range(math_runtime.arity(name))]
    want = on_block(name, *arrays)
    plain = math_runtime.text(name)
    monkeypatch.setattr(build.simd_tables, "in_registers", lambda: False)
    monkeypatch.setenv("TAPEGRAD_CACHE", "0")
    pointers = [ctypes.c_void_p] * (1 + len(arrays))
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, *pointers)(build.assemble(plain))
    got = np.empty(100)
    function(100, got.ctypes.data, *[a.ctypes.data for a in arrays])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["exp", "log", "log1p", "pow"])
def test_without_registers_nothing_is_looked_up(name, monkeypatch):
    monkeypatch.setattr(build.simd_tables, "in_registers", lambda: False)
    assert "table_" not in math_runtime.text(name)
