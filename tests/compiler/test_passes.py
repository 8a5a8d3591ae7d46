"""What is done to a graph before it is lowered."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
from tapegrad.compiler.graph import check
from tapegrad.compiler.passes import optimised
from tapegrad.compiler.trace import Trace
from tapegrad.ops import elementwise as e
from tapegrad.ops import reduce as r
from tapegrad.tape import current


def graph(f: Any, *arrays: np.ndarray) -> Any:
    """The trace of a function, optimised."""
    trace = Trace()
    current.tape.levels.append(trace)
    try:
        found = f(*[trace.input(a) for a in arrays])
    finally:
        current.tape.levels.remove(trace)
    result = optimised(trace.graph((trace.position(found),)))
    check(result)
    return result


def names(found: Any) -> list[str]:
    """The operations of a graph, in order."""
    return [node.name for node in found.nodes if node.op is not None]


def test_constants_of_one_number_are_folded_at_any_size() -> None:
    x = np.ones((300, 400))
    ones = np.ones((300, 400))
    assert names(graph(lambda x: x * (e.neg(ones) * -1.0), x)) == []
    slope = graph(tg.grad(lambda x: tg.sin(x).sum()), x)
    assert names(slope) == ["cos"]


def test_two_zeros_are_not_one_number() -> None:
    signed = np.array([0.0, -0.0, 0.0])
    f = tg.jit(lambda x: x / signed)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(f(np.ones(3)), 1.0 / signed)


def test_a_value_is_computed_where_it_is_read() -> None:
    def f(x: Any, y: Any) -> Any:
        waiting = e.exp(x) + y
        top = r.amax(e.square(y), dim=(0,), keepdim=True)
        return waiting * top

    assert names(graph(f, np.ones((3, 4)), np.ones((3, 4)))) == [
        "square", "amax", "exp", "add", "mul",
    ]  # fmt: skip


def test_compound_operations_are_expanded() -> None:
    found = graph(lambda x: tg.softmax(x, 1), np.ones((3, 4)))
    assert names(found) == ["amax", "sub", "exp", "sum", "div"]
    assert names(graph(lambda x: tg.mean(x), np.ones((3, 4)))) == ["sum", "div"]
