"""Random programs in float32: as near to what float64 gives as PyTorch is."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch: `make peers` installs it")

import tapegrad as tg  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.tapegrad_only("runs both libraries itself")]

PICKED = [3, 1, 0, 2]


def _changed(a, b):
    c = a.clone()
    c.mul_(1.1)
    c.add_(b)
    return c


def _assigned(a, b):
    c = a.clone()
    c[1] = b[0] * 0.5
    return c


STEPS = (
    lambda xp, a, b: a + b,
    lambda xp, a, b: a * b * 0.5,
    lambda xp, a, b: (a @ b) / 4,
    lambda xp, a, b: a.t().contiguous() + b,
    lambda xp, a, b: xp.tanh(a) - 0.3,
    lambda xp, a, b: a * b.sum(0) * 0.1,
    lambda xp, a, b: a + b.mean(1, keepdim=True),
    lambda xp, a, b: xp.cat([a[:2], b[2:]], 0),
    lambda xp, a, b: _changed(a, b),
    lambda xp, a, b: a.softmax(1) + b.sigmoid(),
    lambda xp, a, b: a[xp.tensor(PICKED)] * 2 - 1,
    lambda xp, a, b: _assigned(a, b),
    lambda xp, a, b: xp.where(a.detach() > 0, a, b * 0.1),
    lambda xp, a, b: a.clamp(-1, 1) + b.reshape(2, 8).reshape(4, 4) / 2,
    lambda xp, a, b: a / (b * b + 1.0),
    lambda xp, a, b: a.expand(2, 4, 4).sum(0) - b.abs(),
)


def gradients(xp, seed, dtype):
    """The value of a random program, and its gradients in three matrices."""
    choice = random.Random(seed)
    arrays = np.random.default_rng(seed).uniform(-1, 1, (3, 4, 4)).astype("f4").astype(dtype)
    leaves = [xp.tensor(x, requires_grad=True) for x in arrays]
    values = [x * 1.0 for x in leaves]
    for _ in range(12):
        step, a, b = choice.choice(STEPS), choice.choice(values), choice.choice(values)
        values.append(step(xp, a, b))
    result = sum((x * x).mean() for x in values[-4:])
    result.backward()
    found = [x.grad if x.grad is None else x.grad.numpy() for x in leaves]
    return [result.detach().numpy(), *found]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    exact, theirs = (gradients(torch, seed, dtype) for dtype in ("f8", "f4"))
    for mine, other, expected in zip(gradients(tg, seed, "f4"), theirs, exact):
        assert (mine is None) == (other is None)
        if mine is None:
            continue
        assert mine.dtype == np.float32
        error, allowed = (np.max(np.abs(x - expected)) for x in (mine, other))
        assert error <= max(4 * allowed, 2e-5 * max(1.0, np.max(np.abs(expected))))
