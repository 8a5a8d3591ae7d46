"""Random programs of joins, paddings and slices, compiled as if all of them were large."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.schedule.fusion import virtual_concat

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")


class Random:
    """A program: steps that are drawn anew, but alike, each time it runs."""

    def __init__(self, seed):
        self.seed = seed
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 4))
        shape = tuple(rng.integers(*((9, 14) if rank == 1 else (3, 6)), rank).tolist())
        self.arguments = [rng.normal(size=shape) for _ in range(2)]

    def values(self, *arguments):
        """What it sums up on its way, and the last array."""
        rng = np.random.default_rng(self.seed + 1)
        values, total = list(arguments), 0.0
        for _ in range(rng.integers(3, 13)):
            x = values[-1 - rng.integers(min(5, len(values)))]
            if 0 < np.prod(x.shape) < 3000:
                values.append(self.step(rng, x, values[rng.integers(len(values))]))
                if rng.random() < 0.3:
                    total = total + 0.01 * np.sum(values[-1] ** 2)
        return total + np.sum(np.sin(values[-1])), values[-1]

    def step(self, rng, x, y):
        """One operation on arrays of any shapes."""
        d = int(rng.integers(x.ndim))
        kind = rng.choice(
            ["join", "stack", "pad", "slice", "slice", "roll", "one", "two", "turn", "flat"]
        )
        if kind == "join":
            fits = y.ndim == x.ndim and all(
                m == n for k, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if k != d
            )
            return np.concatenate([x, y if fits else x * 2.0, x][: rng.integers(2, 4)], d)
        if kind == "stack" and x.ndim < 3:
            return np.stack([x, x * 3.0], d)
        if kind == "pad":
            widths = [tuple(rng.integers(0, 3, 2).tolist()) for _ in x.shape]
            return np.pad(x, widths, constant_values=float(rng.choice([0.0, 1.5])))
        if kind == "slice":
            low = [int(rng.integers(0, min(3, n))) for n in x.shape]
            ends = [int(rng.integers(k + 1, n + 1)) for k, n in zip(low, x.shape, strict=True)]
            step = int(rng.choice([1, 1, 1, 2]))
            return x[tuple([slice(a, b, step) for a, b in zip(low, ends, strict=True)])]
        if kind == "roll":
            return np.roll(x, int(rng.integers(-2, 3)), d)
        if kind == "two" and x.ndim == y.ndim:
            both = tuple([slice(min(n)) for n in zip(x.shape, y.shape, strict=True)])
            return x[both] - 0.5 * y[both] if rng.random() < 0.5 else x[both] * y[both]
        if kind == "flat":
            return x.reshape(-1) if x.ndim > 1 else x.reshape(1, -1)
        if kind == "turn":
            return np.swapaxes(x, 0, -1)
        return rng.choice([np.sin, np.abs, np.square, np.exp])(0.3 * x)


@pytest.mark.parametrize("seed", range(24))
def test_as_without_compiling(monkeypatch, seed):
    monkeypatch.setattr(virtual_concat, "LEAST", 4)
    program = Random(seed)

    def loss(*arguments):
        return program.values(*arguments)[0]

    gradient = tg.value_and_grad(loss, argnums=(0, 1))
    found = (tg.jit(program.values)(*program.arguments), tg.jit(gradient)(*program.arguments))
    wanted = (program.values(*program.arguments), gradient(*program.arguments))
    for a, b in zip(flat(found), flat(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def flat(values):
    return [y for x in values for y in (flat(x) if isinstance(x, tuple) else [x])]
