"""Adjoints of large operands that were broadcast: their shapes and values."""

import tracemalloc

import numpy as np
import pytest

N = 40_000
SHAPES = [
    ((N,), (1, N)),
    ((1, N), (N,)),
    ((N,), (1, 1, N)),
    ((N, 1), (1, N, 1)),
    ((260, 150), (1, 260, 150)),
    ((1, 260, 150), (260, 150)),
    ((260, 150), (150,)),
    ((260, 150), (260, 1)),
    ((260, 150), (1, 1)),
    ((260, 150), ()),
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


PRODUCTS = [((150, 140), (140,)), ((140,), (140, 150)), ((150, 140), (140, 3)), ((N,), (N,))]


STRONG = pytest.mark.tapegrad_only("PyTorch's zero times infinity is NaN")


@pytest.mark.parametrize(
    "special", [None, *[pytest.param(x, marks=STRONG) for x in (np.inf, np.nan)]]
)
@pytest.mark.parametrize(("first", "second"), PRODUCTS)
def test_adjoints_of_products_of_matrices_and_vectors(tg, rng, first, second, special):
    """They are what einsum gives; an adjoint of exactly zero hides what is not finite."""
    a, b = rng.standard_normal(first), rng.standard_normal(second)
    if special is not None:
        a[0] = b[0] = special
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
    z = x @ y
    w = rng.standard_normal(z.shape)
    if special is not None and w.ndim:
        w[0] = 0.0
    found = tg.autograd.grad(z, (x, y), tg.tensor(w))
    rows, columns = a.reshape(-1, a.shape[-1]), b.reshape(len(b), -1)
    weight = w.reshape(len(rows), columns.shape[1])
    zero = weight[:, None, :] == 0
    with np.errstate(invalid="ignore"):
        terms_a = np.where(zero, 0.0, weight[:, None, :] * columns[None, :, :]).sum(2)
        terms_b = np.where(zero, 0.0, rows[:, :, None] * weight[:, None, :]).sum(0)
    np.testing.assert_allclose(found[0].numpy(), terms_a.reshape(first), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1].numpy(), terms_b.reshape(second), rtol=1e-9, atol=1e-12)


@pytest.mark.tapegrad_only("about the memory of the compiled sweep")
@pytest.mark.parametrize("n", [20_000, 40_000])
def test_adjoints_that_python_hands_on_are_freed(tg, n):
    x = tg.ones(n).requires_grad_()

    def rolled():
        y = x
        for _ in range(100):
            y = tg.roll(y, 1) * 1.0
        return y.sum()

    rolled().backward()
    y = rolled()
    tracemalloc.start()
    y.backward()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * 8 * n  # it was 200 arrays and more
    assert (x.grad == 2.0).all()
