"""Loops over elements: which forms they attempt, and that they add, sum and write in place."""

import ctypes
import re

import numpy as np
import pytest

from tapegrad.kernels import simd_tables
from tapegrad.kernels.codegen import kernel_table, rule_codegen
from tapegrad.kernels.codegen.loop_text import text
from tapegrad.kernels.codegen.rule_codegen import BLOCK
from tapegrad.ops.core import table

pytestmark = pytest.mark.tapegrad_only("about kernels of this library")

CALL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)
FORMS = (
    2 if simd_tables.in_registers() else 1
)  # of log and erfc: with numbers looked up, and without


@pytest.mark.parametrize(
    ("name", "counts"),
    [("add", []), ("erfc", ["4"] * FORMS), ("tanh", ["2"]), ("log", ["2"] * FORMS)],
)
def test_loops_over_polynomials_are_interleaved(name, counts):
    written = text(rule_codegen.forward_source(table[name], "f8", 0), "loop")
    assert re.findall(r'interleave.count", i32 (\d)', written) == counts


def test_short_forms_of_float32_compute_in_float32():
    written = text(rule_codegen.forward_source(table["sigmoid"], "f4", 0), "loop")
    assert "double" not in written
    assert "@vmath.single.sigmoid.f32" in written


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("n", [0, 1, 7, BLOCK, 2 * BLOCK + 13])
@pytest.mark.parametrize("name", ["mul", "pow"])  # one form; several
def test_an_adjoint_is_written_added_or_summed(name, n, dtype):
    rng = np.random.default_rng(n)
    a, b, g, before = rng.uniform(0.5, 2.0, (4, n + 1)).astype(dtype)
    y = a**b
    slope = {"mul": b, "pow": y * b / a}[name] * g

    def called(scalars, accumulate):
        out = before.copy()
        at = [x.ctypes.data for x in (g, out, a, b, a, y)]
        CALL(kernel_table.adjoint(table[name], 0, dtype, scalars))(n, accumulate, *at)
        assert np.array_equal(out[n:], before[n:]) or (scalars and n == 0)
        return out

    close = {"rtol": 1e-12 if dtype == "f8" else 1e-5}
    np.testing.assert_allclose(called(0, 0)[:n], slope[:n], **close)
    np.testing.assert_allclose(called(0, 1)[:n], (before + slope)[:n], **close)
    first = slope * 0 + {"mul": b, "pow": b * a[0] ** (b - 1)}[name] * g
    y[:] = a[0] ** b
    np.testing.assert_allclose(called(1, 0)[0], first[:n].sum(), **close)
    np.testing.assert_allclose(called(1, 1)[0], before[0] + first[:n].sum(), **close)


@pytest.mark.parametrize("n", [1, 7, 2 * BLOCK + 13])
@pytest.mark.parametrize("name", ["add", "sub", "pow", "atan2"])
def test_a_result_may_be_written_over_both_operands(name, n):
    x = np.random.default_rng(n).uniform(0.5, 2.0, n)
    want = table[name](x, x)
    kernel = kernel_table.forward(table[name], "f8", 16)
    assert kernel is not None
    at = x.ctypes.data
    kernel.call(n, 0, at, at, 0, 0, 0, 0)
    np.testing.assert_allclose(x, want, rtol=1e-15)
