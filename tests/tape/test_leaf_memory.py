"""Leaves that are made anew in each step are let go of, though the tape knew them."""

import weakref

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.debts import DEBT_FLOOR
from tapegrad.tape.tape import current

X = np.linspace(0.1, 1.0, 10_000)


class Doubled(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def changed(x):
    y = x.clone()
    y[:5] *= 2.0
    return y


STEPS = {
    "product": lambda x: (x * x).sum(),
    "few results": lambda x: x.sum() + x.max(),
    "view": lambda x: x.reshape(100, 100).t().sum(),
    "element": lambda x: x[3],
    "products of views": lambda x: (x.reshape(100, 100).t() @ x[:100]).sum(),
    "change in place": lambda x: changed(x).sum(),
    "join": lambda x: tg.cat([x, x[:5], x, x]).sum(),
    "Function": lambda x: Doubled.apply(x).sum(),
    "single precision": lambda x: x.float().sum(),
}


@pytest.mark.tapegrad_only("PyTorch has no tape")
@pytest.mark.parametrize("ends", ["backward", "grad", "nothing"])
@pytest.mark.parametrize("step", STEPS)
def test_leaves_of_past_steps_are_freed(step, ends):
    arrays = []
    for _ in range(300):
        x = tg.tensor(X, requires_grad=True)
        arrays.append(weakref.ref(x._a))
        y = STEPS[step](x)
        if ends == "backward":
            y.backward()
        elif ends == "grad":
            tg.autograd.grad(y, x)
    del x, y
    alive = sum(a() is not None for a in arrays)
    assert 2 * X.nbytes * alive <= max(DEBT_FLOOR, current.tape.debt_limit) + 4 * X.nbytes


@pytest.mark.tapegrad_only("PyTorch has no tape")
def test_a_leaf_as_large_as_the_limit_stays_while_it_is_read():
    x = tg.tensor(np.ones(DEBT_FLOOR // 8), requires_grad=True)
    parts = [x[k] * 2.0 for k in range(5)]
    sum(parts).backward()
    assert np.array_equal(x.grad.numpy()[:6], [2.0] * 5 + [0.0])


@pytest.mark.tapegrad_only("PyTorch has no tape")
@pytest.mark.parametrize(
    "step",
    [lambda x: x[:5], lambda x: x.reshape(2, -1), lambda x: x.real, lambda x: x[5:9] * 2.0],
    ids=["index", "reshape", "real", "product"],
)
@pytest.mark.parametrize("count", [1, 16])
def test_large_leaves_that_are_looked_at_again_and_again_are_owed_once(step, count, monkeypatch):
    reclaimed, reclaim = [], type(current.tape).reclaim
    monkeypatch.setattr(
        type(current.tape), "reclaim", lambda tape: (reclaimed.append(tape), reclaim(tape))
    )
    leaves = [
        tg.zeros(2 * DEBT_FLOOR // 16 // count, dtype=tg.complex128, requires_grad=True)
        for _ in range(count)
    ]
    for _ in range(20):
        for x in leaves:
            step(x)
    assert len(reclaimed) < 8


@pytest.mark.tapegrad_only("PyTorch has no tape")
def test_leaves_over_the_same_memory_owe_nothing(monkeypatch):
    reclaimed, tape = [], type(current.tape)
    reclaim = tape.reclaim
    monkeypatch.setattr(tape, "reclaim", lambda self: (reclaimed.append(self), reclaim(self)))
    base = tg.zeros(DEBT_FLOOR // 8)
    for _ in range(50):
        base[10:].requires_grad_()[:3]
    assert len(reclaimed) < 5


@pytest.mark.tapegrad_only("PyTorch has no tape")
def test_their_gradients_are_owed():
    array, gradients = np.ones(DEBT_FLOOR // 64), []
    for _ in range(100):
        x = tg.from_numpy(array).requires_grad_()
        (x * x).sum().backward()
        gradients.append(weakref.ref(x.grad._a))
    del x
    alive = sum(g() is not None for g in gradients)
    assert alive * array.nbytes <= max(DEBT_FLOOR, current.tape.debt_limit) + 4 * array.nbytes


@pytest.mark.tapegrad_only("PyTorch has no tape")
def test_large_results_beside_many_records_in_use_reclaim_seldom(monkeypatch):
    reclaimed, tape = [], type(current.tape)
    reclaim = tape.reclaim
    h, large = tg.zeros(3, requires_grad=True), tg.zeros(DEBT_FLOOR // 16)
    for _ in range(20_000):
        h = tg.sin(h)
    monkeypatch.setattr(tape, "reclaim", lambda self: (reclaimed.append(self), reclaim(self)))
    for _ in range(60):
        h = tg.sin(h)
        h.sum() * large
    assert len(reclaimed) < 20
