"""The two passes of a Hessian's product as one function, beside the passes record by record."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import composed, curvature

pytestmark = pytest.mark.tapegrad_only("about its own passes")

W = np.random.default_rng(0).uniform(0.5, 1.5, (4, 6))
FUNCTIONS = {
    "rosenbrock": lambda x: np.sum(100.0 * (x[0, 1:] - x[0, :-1] ** 2) ** 2 + (1 - x[1, :-1]) ** 2),
    "twice": lambda x: np.sum(x * x * np.sin(x)),
    "rows": lambda x: np.sum(np.sum(x * W, axis=1) ** 3),
    "kept": lambda x: np.sum(np.sum(x**2, axis=0, keepdims=True) * x),
    "broadcast": lambda x: np.sum((x - x[0]) ** 2 * np.exp(x[:, :1])),
    "turned": lambda x: np.sum(x.T[2:5] ** 3 * x[:, 2:5].T),
    "copied": lambda x: np.sum(x.copy() ** 4),
    "straight": lambda x: np.sum(3.0 * x),
    "shaped": lambda x: np.sum(np.tanh(x.reshape(-1)) * x.reshape(6, 4).reshape(-1)),
    "averaged": lambda x: np.sum((x - np.sum(x) / 24.0) ** 2),
    "whole": lambda x: np.sum(x) ** 3,
    "products": lambda x: np.sum(np.tanh(x @ W.T) ** 2),  # which go record by record
}


def by_records(monkeypatch, function, x, v):
    with monkeypatch.context() as patch:
        patch.setattr(curvature, "composed", lambda *args: None)
        return tg.hvp(function)(x, v)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products(monkeypatch, name):
    rng = np.random.default_rng(1)
    for _ in range(3):
        x, v = rng.uniform(0.5, 1.5, (2, 4, 6))
        expected = by_records(monkeypatch, FUNCTIONS[name], x, v)
        np.testing.assert_allclose(tg.hvp(FUNCTIONS[name])(x, v), expected, rtol=1e-13, atol=1e-13)


def test_most_are_composed():
    composed._composed.clear()
    for name, function in FUNCTIONS.items():
        tg.hvp(function)(W, W)
        newest = [*composed._composed.values()][-1]
        assert (newest is None) == (name == "products"), name


def test_whole_hessians(monkeypatch):
    function = lambda x: np.sum(x[1:] ** 3 * x[:-1])
    x = np.arange(1.0, 6.0)
    found = tg.hessian(function)(x)
    with monkeypatch.context() as patch:
        patch.setattr(curvature, "composed", lambda *args: None)
        np.testing.assert_allclose(found, tg.hessian(function)(x), rtol=1e-13)


def test_other_places_in_the_same_structure():
    """Where large views lie the records do not say."""
    x = np.linspace(0.5, 1.5, 6000)
    v = np.ones(6000)
    for first in (0, 10, 500):
        found = tg.hvp(lambda x, k=first: np.sum(x[k : k + 5000] ** 3))(x, v)
        expected = np.zeros(6000)
        expected[first : first + 5000] = 6 * x[first : first + 5000]
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_beside_other_records():
    """Outside of the function there may be records, leaves, and constants that it reads."""
    outer = tg.tensor([2.0, 3.0], requires_grad=True)
    kept = outer * 2.0
    x, v = np.array([0.5, 1.5]), np.array([1.0, -1.0])
    assert tg.hvp(lambda x: np.sum(x**3))(x, v).tolist() == [3.0, -9.0]
    kept.sum().backward()
    assert outer.grad.tolist() == [2.0, 2.0]


def test_what_is_not_finite_goes_the_general_way():
    function = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0 * x))
    found = tg.hvp(function)(np.array([0.0, 4.0]), np.ones(2))
    assert found.tolist() == [0.0, -0.25 * 4.0**-1.5]


def test_few_structures_are_remembered(monkeypatch):
    monkeypatch.setattr(composed, "_KNOWN", 3)
    for n in range(2, 9):
        assert tg.hvp(lambda x: np.sum(x**2))(np.ones(n), np.ones(n)).tolist() == [2.0] * n
    assert len(composed._composed) <= 3
