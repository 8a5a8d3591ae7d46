"""L-BFGS. Runs on PyTorch itself with --library=torch."""

import pytest


def rosenbrock(tg, leaf, **options):
    """One step down the valley: the leaf, the loss before, and how often it was computed."""
    w = leaf([-1.5, 2.0])
    optimizer = tg.optim.LBFGS([w], **options)
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        calls.append(loss.item())
        return loss

    return w, optimizer.step(closure), calls


def test_one_step_finds_the_minimum(tg, leaf):
    options = {"max_iter": 100, "line_search_fn": "strong_wolfe"}
    w, first, calls = rosenbrock(tg, leaf, **options)
    assert first.item() == calls[0] == 12.5
    assert w.tolist() == pytest.approx([1.0, 1.0], abs=1e-5)


def test_evaluations_are_limited(tg, leaf):
    for options in ({}, {"line_search_fn": "strong_wolfe"}):
        _, _, calls = rosenbrock(tg, leaf, lr=1e-3, max_iter=50, max_eval=7, **options)
        assert len(calls) == 7
    _, _, calls = rosenbrock(tg, leaf, lr=1e-3, max_iter=4)
    assert len(calls) == 4  # the last iteration moves and does not look


def test_nothing_moves_at_a_minimum(tg, leaf):
    w = leaf([0.0])
    optimizer = tg.optim.LBFGS([w])

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
    assert w.tolist() == [0.0]


def test_one_group_and_a_closure(tg, leaf):
    optimizer = tg.optim.LBFGS([leaf([1.0])])
    with pytest.raises(ValueError, match="param"):
        tg.optim.LBFGS([{"params": [leaf([1.0])]}, {"params": [leaf([1.0])]}])
    with pytest.raises(TypeError, match=r"closure|callable"):
        optimizer.step(None)
