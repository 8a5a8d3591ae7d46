"""Tensors from outside: they are constants of a trace for as long as nobody changes them."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg


def captured(jitted: Any) -> list[int]:
    """How many Tensors each variant watches."""
    return [len(v.captured) for found in jitted._variants.values() for v in found]


def test_a_changed_tensor_is_seen() -> None:
    w = tg.ones(3)
    view = w[:2]
    one = tg.jit(lambda x: (x * w).sum())
    two = tg.jit(lambda x: (x * view).sum())
    three = tg.jit(lambda x: (x * w[1:]).sum())
    assert [one(np.ones(3)), two(np.ones(2)), three(np.ones(2))] == [3.0, 2.0, 2.0]
    w.add_(1.0)
    assert [one(np.ones(3)), two(np.ones(2)), three(np.ones(2))] == [6.0, 4.0, 4.0]
    assert captured(one)[-1:] == captured(two)[-1:] == captured(three)[-1:] == [1]


def test_what_only_the_trace_knows_is_not_watched() -> None:
    x = np.linspace(1.0, 2.0, 4)
    for f in (
        tg.grad(lambda x: (x * x).sum()),
        lambda x: (x * tg.ones(4)).sum(),
        lambda x: tg.jvp(lambda y: y**3, (x,), (np.ones(4),))[1],
    ):
        jitted = tg.jit(f)
        np.testing.assert_allclose(jitted(x), f(x))
        assert captured(jitted) == [0]
