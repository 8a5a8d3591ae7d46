"""`initial` and `where` of reductions, and Tensors that edges are filled with."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("PyTorch does not answer NumPy's functions")

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]])
MASK = np.array([[True, False, True], [False, False, False]])
ROW = np.array([False, True, True])

CASES = {
    "sum": lambda t: np.sum(t, where=MASK),
    "sum of rows": lambda t: np.sum(t, 1, initial=2.0, where=ROW, keepdims=True),
    "sum beside": lambda t: np.sum(t, axis=0, initial=1.5),
    "mean": lambda t: np.mean(t, axis=1, where=ROW),
    "mean of all": lambda t: np.mean(t, where=MASK, keepdims=True),
    "prod": lambda t: np.prod(t, 0, initial=3.0, where=MASK),
    "prod beside": lambda t: np.prod(t, initial=-2.0),
    "max": lambda t: np.max(t, axis=1, initial=-3.0, where=MASK),
    "max beside": lambda t: np.max(t, 0, initial=0.6, keepdims=True),
    "max of nothing": lambda t: np.max(t[:0], axis=0, initial=0.25) + 0 * np.sum(t),
    "min": lambda t: np.min(t, initial=3.0, where=ROW),
    "add.reduce": lambda t: np.add.reduce(t, axis=1, where=MASK, initial=1.0),
    "minimum.reduce": lambda t: np.minimum.reduce(t, initial=9.0, where=MASK),
    "sum along nothing": lambda t: np.sum(t, axis=(), where=MASK),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f = CASES[name]
    np.testing.assert_allclose(f(tg.tensor(X)).numpy(), f(X), rtol=1e-14)
    tg.check_grads(f, (X,), order=2)
    np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-14)
    np.testing.assert_allclose(
        tg.vmap(f)(np.stack([X, X[:, ::-1]])), [f(X), f(X[:, ::-1])], rtol=1e-14
    )


def test_integers_and_truth_values():
    i = np.array([[3, -1, 2], [5, 0, 4]])
    for f in (
        lambda a: np.max(a, axis=0, initial=1, where=MASK), lambda a: np.sum(a, where=ROW),
        lambda a: np.min(a, axis=1, initial=1, where=ROW), lambda a: np.prod(a, initial=2),
        lambda a: np.max(a > 2, initial=False, where=MASK),
    ):  # fmt: skip
        found, expected = f(tg.tensor(i)).numpy(), f(i)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.asarray(expected).dtype


def test_what_does_not_count_has_no_derivative():
    x = np.array([np.nan, 1.0, 2.0])
    np.testing.assert_array_equal(
        tg.grad(lambda t: np.sum(np.log(t) * 2, where=ROW))(x), [0.0, 2.0, 1.0]
    )


@pytest.mark.parametrize(
    "values", [lambda c: c[0], lambda c: (c[0], c[1]), lambda c: ((c[0], 2.0), (c[1], c[0] * c[1]))]
)
def test_edges_are_filled_with_tensors(values):
    def g(x, c):
        return np.pad(x, ((1, 2), (0, 1)), constant_values=values(c)) * np.arange(20).reshape(5, 4)

    c = np.array([0.5, -1.5])
    expected = g(X, c)
    np.testing.assert_allclose(g(tg.tensor(X), tg.tensor(c)).numpy(), expected, rtol=1e-14)
    tg.check_grads(lambda c: g(tg.tensor(X), c), (c,), order=2)
    np.testing.assert_allclose(tg.jit(g)(X, c), expected, rtol=1e-14)
    np.testing.assert_allclose(tg.vmap(g)(X[None], c[None])[0], expected, rtol=1e-14)
    with pytest.raises(RuntimeError, match=r"`np.pad` makes an array .*`tapegrad.tensor\(array\)`"):
        tg.grad(lambda c: np.sum(g(X, c)))(c)
