"""Elementary functions that stand by themselves, compiled once for all programs."""

import ctypes

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.llvm import elementary

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")


@pytest.mark.parametrize(
    ("name", "kind", "x"),
    [("exp.f64", ctypes.c_double, 0.5), ("sin_any.f64", ctypes.c_double, 1e22),
     ("tanh.f32", ctypes.c_float, 0.25)],
)  # fmt: skip
def test_one_is_a_function_of_numbers(name, kind, x):
    function = ctypes.CFUNCTYPE(kind, kind)(
        elementary.address(elementary.outlined_name("vmath." + name))
    )
    plain = getattr(np, name.split(".")[0].removesuffix("_any"))
    dtype = np.float64 if kind is ctypes.c_double else np.float32
    np.testing.assert_array_max_ulp(dtype(function(x)), plain(dtype(x)), 2)


def test_one_of_two_operands():
    kind = ctypes.c_double
    function = ctypes.CFUNCTYPE(kind, kind, kind)(elementary.address("outlined.atan2.f64"))
    assert function(1.0, -1.0) == np.arctan2(1.0, -1.0)


def long_program(x):
    y = x[0]
    for k in range(40):
        y = np.sin(y) * x[1] + np.exp(-y) * (k / 7.0)
    return y


def test_long_straight_code_calls_them():
    x = np.array([0.5, 0.25])
    f = tg.jit(tg.value_and_grad(long_program))
    text = f.lower(x).as_text("llvm")
    assert "declare double @outlined.exp.f64(double)" in text
    assert "@vmath." not in text
    value, gradient = f(x)
    expected, slope = tg.value_and_grad(long_program)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10)


def test_short_code_has_them_inlined():
    text = tg.jit(lambda x: np.exp(x) + 1.0).lower(np.ones(3)).as_text("llvm")
    assert "@outlined." not in text
    assert "define internal <4 x double> @vmath.exp.f64.x4" in text
