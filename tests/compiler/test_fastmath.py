"""`fastmath=True` lets arithmetic be reordered and contracted, and nothing else."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about compiled programs")


def loss(x):
    return np.sum(x * x * 3.0 + x * 2.0 - np.sin(x) / 7.0)


def test_flags_are_on_arithmetic_alone():
    x = np.linspace(-1.0, 1.0, 101)
    exact = tg.jit(loss).lower(x).as_text("llvm")
    fast = tg.jit(loss, fastmath=True).lower(x).as_text("llvm")
    assert "contract" not in exact
    functions = [text for text in fast.split("define internal ") if text.startswith("void @nest")]
    assert all("fmul reassoc nsz arcp contract double" in text for text in functions)
    elementary = [text for text in fast.split("define internal ") if "@vmath." in text[:40]]
    assert elementary
    assert all("contract" not in text for text in elementary)
    assert "nnan" not in fast
    assert "ninf" not in fast


def test_values_and_gradients_agree():
    x = np.linspace(-2.0, 2.0, 101)
    value, gradient = tg.jit(tg.value_and_grad(loss), fastmath=True)(x)
    expected, slope = tg.value_and_grad(loss)(x)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, slope, rtol=1e-12, atol=1e-14)


def test_nan_and_infinity_stay():
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    found = tg.jit(lambda x: x * 2.0 + 1.0, fastmath=True)(x)
    np.testing.assert_array_equal(found, x * 2.0 + 1.0)


def test_the_adjoint_of_tensors_is_fast_too():
    f = tg.jit(loss, fastmath=True)
    x = tg.tensor([0.5, 1.5], requires_grad=True)
    f(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), tg.grad(loss)(x.detach().numpy()), rtol=1e-12)
    assert all(adjoint.fastmath for adjoint in f._derived.values())
