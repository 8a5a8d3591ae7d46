"""Adjoints of products of matrices by BLAS, beside the rule."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import gemm_adjoints

pytestmark = pytest.mark.tapegrad_only("compares paths through the library")

SHAPES = [
    ((4, 4), (4, 4)), ((3, 5), (5, 2)), ((5,), (5, 2)), ((3, 5), (5,)), ((5,), (5,)),
    ((1, 1), (1, 1)), ((4, 1), (1, 4)), ((200, 90), (90, 100)),
]  # fmt: skip


def draw(rng, shape, kind):
    """Numbers, complex ones if the type is."""
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind in "FD" else x).astype(kind)


def gradients(a, b):
    """Those of a weighted product."""
    x, y = (tg.tensor(z, requires_grad=True) for z in (a, b))
    z = x @ y
    w = draw(np.random.default_rng(3), z.shape, z._a.dtype.char)
    return tg.autograd.grad(z, (x, y), tg.tensor(w))


@pytest.mark.parametrize("kinds", ["DD", "FF", "dd"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_rule_gives_the_same(a, b, kinds, monkeypatch):
    rng = np.random.default_rng(1)
    x, y = (draw(rng, shape, kind) for shape, kind in zip((a, b), kinds, strict=True))
    found = gradients(x, y)
    monkeypatch.setattr(gemm_adjoints, "step", lambda *_: False)
    near = 1e-4 if "F" in kinds else 1e-12
    for mine, other in zip(found, gradients(x, y), strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=near, atol=near)


def test_zero_against_infinity_is_the_rules():
    a = np.array([[np.inf, 1.0], [0.0, 1.0j]])
    x = tg.tensor(a, requires_grad=True)
    y = tg.tensor(np.eye(2) + 0j, requires_grad=True)
    _, g = tg.autograd.grad(x @ y, (x, y), tg.tensor(np.array([[0.0, 0.0], [1.0, 1.0]]) + 0j))
    np.testing.assert_array_equal(g.numpy(), [[0.0, 0.0], [-1.0j, -1.0j]])
