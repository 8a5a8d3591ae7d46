"""All passes together, and what is compiled after them."""

import numpy as np
import pytest

import tapegrad as tg
from tests.compiler.graphs import SPECIAL

pytestmark = pytest.mark.tapegrad_only("about this project")


def folded(x):
    """What a compiler with fast mathematics would get wrong."""
    return (
        x + 0.0, x - 0.0, 0.0 - x, x * 0.0, x * 1.0, x / 1.0, np.negative(-x), x - x, x / x,
        0.0 * x + 1.0, (x + 1.0) - 1.0, x * 2.0 / 2.0, x * x - x * x, x * 3.0 + 0.1, np.abs(x),
        np.sqrt(x * x), x == x, x != x, x < x, np.maximum(x, 0.0), np.minimum(x, x),
        np.where(x == 0, x, 0.0), np.floor(x), np.sign(x), np.exp(np.log(x)), 1.0 / (1.0 / x),
        x**2.0, x**0.5, x**1.0, x**0.0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_compiled_code_keeps_signs_of_zeros_nan_and_infinities(kind):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(kind)
    eager = [y.numpy() for y in folded(tg.tensor(x))]
    for found, wanted in zip(tg.jit(folded)(x), eager, strict=True):
        assert found.dtype == wanted.dtype
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted)
            continue
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(kind).eps)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def test_no_product_and_sum_is_contracted():
    """x * y rounds before z is taken off: fused, the error of the product would be left."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000))
    found = tg.jit(lambda x, y, z: x * y - z)(x, y, x * y)
    np.testing.assert_array_equal(found, np.zeros(1000))
    single = tg.jit(lambda x, y: x * y - y * x)
    np.testing.assert_array_equal(single(x, y), np.zeros(1000))


@pytest.mark.parametrize("f", [np.sqrt, np.log], ids=["sqrt", "log"])
def test_a_masked_nan_never_poisons_a_compiled_gradient(f):
    g = tg.jit(tg.grad(lambda x: np.sum(np.where(x > 0, f(x), 0.0))))
    np.testing.assert_array_equal(g(np.array([0.0, -1.0, -np.inf])), np.zeros(3))
