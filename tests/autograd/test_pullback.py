"""Rules read integers as numbers of the result's type: their own would wrap around."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about how rules are called")

X = np.array([2.0, -0.7])
BYTES, INTEGERS = np.array([16, 3], np.uint8), np.array([50_000, 3], np.int32)
TRUTHS = np.array([True, False])


def quotient(k):
    return lambda x: tg.addcdiv(tg.as_tensor(x), tg.tensor(k), tg.as_tensor(x))


FUNCTIONS = {
    "atan2 of bytes": (lambda x: np.arctan2(BYTES, x), lambda x: np.arctan2(1.0 * BYTES, x)),
    "atan2 of int32": (lambda x: np.arctan2(INTEGERS, x), lambda x: np.arctan2(1.0 * INTEGERS, x)),
    "a power of bytes": (lambda x: BYTES**x, lambda x: (1.0 * BYTES) ** x),
    "addcdiv of bytes": (quotient(BYTES), quotient(1.0 * BYTES)),
    "addcdiv of truths": (quotient(TRUTHS), quotient(1.0 * TRUTHS)),
    "a choice": (lambda x: np.where(TRUTHS, x**2, BYTES), lambda x: np.where(TRUTHS, x**2, 0.0)),
}
WAYS = {
    "grad": tg.grad,
    "vmap": lambda f: lambda x: tg.vmap(tg.grad(f))(np.stack([x, x]))[1],
    "jvp": lambda f: lambda x: [tg.jvp(f, (x,), (v,))[1] for v in np.eye(2)],
    "jit": lambda f: tg.jit(tg.grad(f)),
    "hessian": tg.hessian,
    "jvp of grad": lambda f: lambda x: tg.jvp(tg.grad(f), (x,), (np.ones(2),))[1],
    "grad of grad": lambda f: tg.grad(lambda x: np.sum(tg.grad(f)(x) * [1.0, 2.0])),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_count_as_numbers(name, way):
    found, wanted = (WAYS[way](lambda x, f=f: np.sum(f(x)))(X) for f in FUNCTIONS[name])
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_in_single_precision():
    x = tg.tensor(X, dtype=tg.float32, requires_grad=True)
    tg.atan2(tg.tensor(BYTES), x).sum().backward()
    assert x.grad.dtype == tg.float32
    numbers = BYTES.astype(float)
    np.testing.assert_allclose(x.grad.numpy(), -numbers / (X**2 + numbers**2), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("z", [2.0, 1j])
def test_division_by_the_number_zero(z):
    x = tg.tensor([z], requires_grad=True)
    (found,) = tg.autograd.grad(x / 0.0, x, tg.ones(1, dtype=x.dtype))
    assert not np.isfinite(found.numpy()).any()
