"""A Jacobian is the same row by row and over all rows at once."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.transforms import jacobians

pytestmark = pytest.mark.tapegrad_only("transforms are not PyTorch's")

X = np.array([0.5, -1.0, 2.0, 0.25])
A = np.arange(12.0).reshape(3, 4) / 7.0


def valley(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


CASES = {
    "slices": tg.jacrev(lambda x: x[1:] * x[:-1] + x[2]),
    "product": tg.jacrev(lambda x: np.sin(A @ x)),
    "stack": tg.jacrev(lambda x: np.stack([x[0] * x, np.exp(x)])),
    "valley": tg.jacrev(tg.grad(valley)),
    "logistic": tg.jacrev(tg.grad(lambda x: np.sum(np.log1p(np.exp(A @ x))))),
}


@pytest.mark.parametrize("name", CASES)
def test_both_ways_agree(name, monkeypatch):
    found = []
    for cost in (np.inf, 0.0):  # of a record of the sweep over all rows
        monkeypatch.setattr(jacobians, "BATCHED_RECORD", cost)
        found.append(CASES[name](X))
    np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-13)


def test_what_python_does_is_done_for_all_rows_at_once(monkeypatch):
    calls = []
    pull = jacobians.pull
    monkeypatch.setattr(jacobians, "pull", lambda *a, **k: (calls.append(1), pull(*a, **k))[1])
    tg.hessian(valley)(np.linspace(-1.0, 1.0, 30))
    assert len(calls) == 1
    calls.clear()
    tg.jacrev(lambda x: np.sin(np.sin(x) * 2.0))(X)
    assert len(calls) == len(X)
