"""Running sums and products of many elements: in any layout, and in single precision."""

import numpy as np
import pytest

import tapegrad as tg

N = 1 << 17
LAYOUTS = {
    "row": lambda x: (x, 0),
    "strided": lambda x: (np.repeat(x, 2)[::2], 0),
    "column": lambda x: (np.stack([x, x], 1), 0),
    "before a side of one": lambda x: (x[:, None], 0),
    "rows before a side of one": lambda x: (np.stack([x, x])[:, :, None], 1),
    "rows": lambda x: (np.stack([x, x]), 1),
}


def exactly(name, x, axis):
    x = x.astype(np.float64)
    if name == "logcumsumexp":
        return np.logaddexp.accumulate(x, axis=axis)
    return getattr(np, name)(x, axis=axis)


CASES = {
    "cumsum": np.full(N, 0.1),
    "cumprod": np.full(N, 1 + 1e-6),
    "logcumsumexp": np.random.default_rng(0).standard_normal(N),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_values_are_exact(name, layout, dtype):
    x, dim = LAYOUTS[layout](CASES[name].astype(dtype))
    expected = exactly(name, x, dim)
    found = getattr(tg, name)(tg.tensor(x), dim)
    assert found.numpy().dtype == dtype
    near = 3e-7 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found.numpy(), expected, rtol=near, atol=near)


@pytest.mark.tapegrad_only("about programs")
@pytest.mark.parametrize("name", CASES)
def test_programs_add_up_in_double_precision(name):
    x = CASES[name].astype(np.float32)
    found = tg.jit(lambda x: getattr(tg, name)(x, 0))(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exactly(name, x, 0), rtol=3e-7, atol=3e-7)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("layout", ["row", "before a side of one", "column"])
def test_gradients_in_single_precision(name, layout):
    gradients = []
    for dtype in (tg.float32, tg.float64):
        given, dim = LAYOUTS[layout](CASES[name].astype(np.float32))
        x = tg.tensor(given, dtype=dtype, requires_grad=True)
        weights = tg.linspace(0.5, 1.0, x.numel(), dtype=dtype).reshape(x.shape)
        getattr(tg, name)(x, dim).backward(weights)
        gradients.append(x.grad.numpy())
    single, double = gradients
    scale = np.abs(double).max()
    np.testing.assert_allclose(single / scale, double / scale, atol=3e-6)
