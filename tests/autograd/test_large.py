"""Adjoints of large operands that were broadcast: their shapes and values."""

import numpy as np
import pytest

N = 20_000
SHAPES = [
    ((N,), (1, N)),
    ((1, N), (N,)),
    ((N,), (1, 1, N)),
    ((N, 1), (1, N, 1)),
    ((160, 130), (1, 160, 130)),
    ((1, 160, 130), (160, 130)),
    ((160, 130), (130,)),
    ((160, 130), (160, 1)),
    ((160, 130), (1, 1)),
    ((160, 130), ()),
    ((1, N), (1,)),
]
OPERATIONS = {
    "add": lambda tg, x, y: x + y,
    "mul": lambda tg, x, y: x * y,
    "div": lambda tg, x, y: x / y,
    "pow": lambda tg, x, y: x**y,
    "atan2": lambda tg, x, y: tg.atan2(x, y),
    "where": lambda tg, x, y: tg.where(x > y, x, y),
    "twice": lambda tg, x, y: x * y + x / y,
}


def summed(g, shape):
    extra = g.ndim - len(shape)
    axes = [d for d in range(g.ndim) if d < extra or shape[d - extra] == 1]
    return g.sum(tuple(axes)).reshape(shape)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_adjoints_of_broadcast_operands(tg, first, second, name):
    """They are the sums of those of operands that were expanded beforehand."""
    rng = np.random.default_rng(0)
    pair = [rng.uniform(0.5, 1.5, shape) for shape in (first, second)]
    whole = np.broadcast_shapes(first, second)
    leaves = [tg.tensor(v, requires_grad=True) for v in pair]
    wide = [tg.tensor(np.broadcast_to(v, whole).copy(), requires_grad=True) for v in pair]
    for operands in (leaves, wide):
        OPERATIONS[name](tg, *operands).sin().sum().backward()
    for leaf, expanded in zip(leaves, wide):
        assert tuple(leaf.grad.shape) == tuple(leaf.shape)
        want = summed(expanded.grad.numpy(), tuple(leaf.shape))
        np.testing.assert_allclose(leaf.grad.numpy(), want, rtol=1e-10, atol=1e-10)
