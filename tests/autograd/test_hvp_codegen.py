"""The two passes of a Hessian's product as one function, beside the general way."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd import hvp_codegen
from tapegrad.tape.tape import Tape, current


@pytest.fixture(autouse=True)
def fresh_tape(monkeypatch):
    """What other tests lost or changed in place keeps the quick way closed until a tape is full."""
    monkeypatch.setattr(current, "tape", Tape())


pytestmark = pytest.mark.tapegrad_only("about its own passes")

W = np.random.default_rng(0).uniform(0.5, 1.5, (4, 6))


def handed_on_twice(x):
    """A sum hands one array on to both operands, of which one is added to in place."""
    a, b = x * 2.0, x * x
    seen = a[:1] ** 3
    return np.sum((a + b)[1:] ** 2) + np.sum(seen)


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
    "products": lambda x: np.sum(np.tanh(x @ W.T) ** 2),
    "of itself": lambda x: np.sum((x @ x.T) ** 2 @ x),
    "summed up": lambda x: np.sum(np.cumsum(x**2, axis=1)[:, ::2] * x[:, 3:]),
    "added once more": lambda x: np.sum(x[1:] ** 2) + np.sum((x[:2] * x[1:3]) ** 2) + np.sum(x**3),
    "handed on twice": handed_on_twice,
    "constant slope": lambda x: np.sum(x[1:, 0]) * 2.0 + np.sum(x[:, 0] * 3.0) + x[0, 0] ** 2,
}


def general(f):
    """The gradient of the derivative along a vector, by dual values."""
    return lambda x, v: tg.grad(lambda x: tg.jvp(f, (x,), (v,))[1])(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_products(name):
    rng = np.random.default_rng(1)
    hvp_codegen._composed.clear()
    for _ in range(3):
        x, v = rng.uniform(0.5, 1.5, (2, 4, 6))
        expected = general(FUNCTIONS[name])(x, v)
        np.testing.assert_allclose(tg.hvp(FUNCTIONS[name])(x, v), expected, rtol=1e-12, atol=1e-12)
    assert len(hvp_codegen._composed) == 1
    assert callable(*hvp_codegen._composed.values())


def test_whole_hessians():
    function = lambda x: np.sum(x[1:] ** 3 * x[:-1])
    x = np.arange(1.0, 6.0)
    expected = [general(function)(x, v) for v in np.eye(5)]
    np.testing.assert_allclose(tg.hessian(function)(x), expected, rtol=1e-13)


def test_what_nobody_reads_is_not_computed():
    """Of a sum of squares, no value that moves is needed; of the leaf, no adjoint."""
    hvp_codegen._composed.clear()
    tg.hvp(lambda x: np.sum(x**2))(np.ones(3), np.ones(3))
    (product,) = hvp_codegen._composed.values()
    assert len(set(product.__code__.co_varnames) - {"tape", "low", "keep", "v"}) == 1


def test_a_long_structure_is_written_down_when_it_comes_again():
    def f(x):
        for _ in range(100):
            x = x * 0.5 + np.sin(x)
        return np.sum(x)

    hvp_codegen._composed.clear()
    x, v = np.array([0.5, 1.0]), np.array([1.0, -2.0])
    product, expected = tg.hvp(f), general(f)(x, v)
    for _ in range(3):
        np.testing.assert_allclose(product(x, v), expected, rtol=1e-11)
    assert callable(*hvp_codegen._composed.values())


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


def test_beside_hooks_of_others():
    outer = tg.tensor([2.0, 3.0], requires_grad=True)
    kept = outer * 2.0
    kept.register_hook(lambda g: g)
    hvp_codegen._composed.clear()
    assert tg.hvp(lambda x: np.sum(x**3))(np.ones(2), np.ones(2)).tolist() == [6.0, 6.0]
    assert callable(*hvp_codegen._composed.values())


def test_what_is_not_finite_goes_the_general_way():
    function = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0 * x))
    found = tg.hvp(function)(np.array([0.0, 4.0]), np.ones(2))
    assert found.tolist() == [0.0, -0.25 * 4.0**-1.5]


def test_few_structures_are_remembered(monkeypatch):
    hvp_codegen._composed.clear()
    monkeypatch.setattr(hvp_codegen, "_records", 0)
    monkeypatch.setattr(hvp_codegen, "MOST", 6)  # records, of which each of these has two
    for n in range(2, 9):
        assert tg.hvp(lambda x: np.sum(x**2))(np.ones(n), np.ones(n)).tolist() == [2.0] * n
    assert len(hvp_codegen._composed) <= 3
