"""Joins, paddings and assignments in compiled programs: each element where it belongs.

What is asserted are results, not where they are put together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.compiler.ir.copy_plans import LARGE, PLANS
from tapegrad.compiler.ir.graph import Graph
from tapegrad.compiler.passes import optimised
from tests.compiler.graphs import SPECIAL, executed, graph, run, same_bits
from tests.compiler.test_random_programs import profile
from tests.conformance.samples import SAMPLES

pytestmark = pytest.mark.tapegrad_only("about compiled programs")

A = np.arange(6.0).reshape(2, 3) - 2.5
B = -np.arange(6.0).reshape(2, 3)
WIDE = np.arange(2.0 * LARGE).reshape(2, LARGE)


def right(before: Graph, *inputs: np.ndarray) -> None:
    """A compiled graph gives the bits that its operations give, with and without passes."""
    wanted = run(before, *inputs)
    same_bits(executed(before, *inputs), wanted)
    same_bits(executed(optimised(before), *inputs), wanted)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in sorted({op.name for op in PLANS}.intersection(SAMPLES))
        for kind in ("float64", "float32", "int64", "bool")
        if (name, kind) != ("only_view", "bool")  # an adjoint, of which some are added up
    ],
)
def test_every_row(name: str, kind: str) -> None:
    for sample in SAMPLES[name]:
        operands = [np.asarray(x) for x in sample.operands]
        operands = [np.asarray(x * 4, kind) if x.dtype.kind == "f" else x for x in operands]
        row = (name, range(len(operands)), sample.params)
        right(graph(*operands, row), *operands)


@pytest.mark.parametrize(
    "row",
    [
        ("cat", (0, 0), {"dim": 0}),
        ("stack", (0, 0, 0), {"dim": 1}),
        ("embed", (0,), {"index": (slice(3, 13),), "shape": (20,)}),
        ("pad", (0,), {"widths": ((2, 1),), "value": -0.0}),
        ("pad", (0,), {"widths": ((0, 3),), "value": float("nan")}),
        ("pad", (0,), {"widths": ((1, 0),), "value": float("-inf")}),
        ("diagonal_embed", (0,), {"shape": (10, 10), "offset": 0, "dim1": 0, "dim2": 1}),
        ("assign", (0, 1), {"index": (slice(None, None, 2),)}),
    ],
    ids=lambda row: row[0],
)
def test_special_values_keep_their_bits(row: Any) -> None:
    part = SPECIAL[::-2].copy()
    right(graph(SPECIAL, part, row, ("neg", (2,)), outputs=(2, 3)), SPECIAL, part)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ["cat", "stack"])
def test_joins_along_every_dimension(name: str, dim: int) -> None:
    a, b = np.arange(24.0).reshape(2, 3, 4), -np.arange(24.0).reshape(2, 3, 4)
    before = graph(a, b, ("exp", (1,)), ("neg", (0,)), (name, (0, 3, 1, 0), {"dim": dim}))
    right(before, a, b)


def test_parts_of_different_lengths_and_of_none() -> None:
    short, none = A[:, :1].copy(), A[:, :0].copy()
    join = {"dim": 1}
    right(graph(A, short, none, ("cat", (1, 2, 0, 1), join)), A, short, none)
    right(graph(none, ("cat", (0, 0), join)), none)
    right(graph(A, none, ("cat", (1, 0), join), ("neg", (2,))), A, none)


def test_a_part_may_be_computed_moved_broadcast_or_joined_itself() -> None:
    before = graph(
        A, B, ("mul", (0, 1)), ("permute", (2,), {"dims": (1, 0)}),
        ("reshape", (3,), {"shape": (2, 3)}), ("getitem", (0,), {"index": (slice(0, 1), ...)}),
        ("expand", (5,), {"shape": (2, 3)}), ("=", np.full((2, 3), 7.0)),
        ("cat", (4, 6, 7), {"dim": 0}), ("flip", (8,), {"dims": (0,)}),
        ("cat", (8, 9), {"dim": 1}), ("sum", (10,), {"dim": (0,), "keepdim": False}),
        outputs=(8, 10, 2),
    )  # fmt: skip
    right(before, A, B)


def test_a_join_of_joins_that_are_asked_for_too() -> None:
    before = graph(
        A, B, ("cat", (0, 1), {"dim": 0}), ("cat", (2, 2), {"dim": 1}),
        ("stack", (3, 3), {"dim": 0}), ("getitem", (4,), {"index": (0, slice(1, 3))}),
        outputs=(2, 3, 4, 5, 0),
    )  # fmt: skip
    right(before, A, B)


def test_numbers_are_stacked() -> None:
    x, y = np.array(1.5), np.array(-0.0)
    right(graph(x, y, ("exp", (0,)), ("stack", (0, 1, 2, 1), {"dim": 0}), ("neg", (3,))), x, y)


@pytest.mark.parametrize(
    "widths",
    [
        ((0, 3), (0, 0)),
        ((2, 0), (0, 0)),
        ((0, 0), (4, 1)),
        ((1, 2), (3, 0)),
        ((0, 0), (0, 0)),
        ((1, 1), (1, 1)),
    ],
)
@pytest.mark.parametrize("x", [A, WIDE, WIDE.T.copy()], ids=["small", "wide", "tall"])
def test_large_paddings_are_written_once_around(x: np.ndarray, widths: Any) -> None:
    right(graph(x, ("pad", (0,), {"widths": widths, "value": 2.5}), ("neg", (1,))), x)


@pytest.mark.parametrize(
    "index",
    [
        (slice(0, 2),), (slice(1, None),), (slice(None, None, 2),), (..., slice(5, 7)),
        (0, slice(None)), (..., 3), (1, 2), (slice(None), slice(None, None, 3)), (),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("shape", [(4, 9), (6, LARGE), (LARGE, 10)], ids=str)
def test_what_lies_around_a_slice_is_zero(index: Any, shape: Any) -> None:
    part = np.asarray(np.ones(shape)[index] * 3.0)
    right(graph(part, ("embed", (0,), {"index": index, "shape": shape}), ("neg", (1,))), part)


@pytest.mark.parametrize("index", [(slice(0, 1),), (..., slice(1, 3)), (1, 2), (..., 0), ()])
def test_what_is_assigned_lies_in_the_base(index: Any) -> None:
    value = np.full(A[index].shape, -0.0)
    before = graph(
        A, value, ("mul", (0, 0)), ("assign", (2, 1), {"index": index}),
        ("assign", (0, 1), {"index": index}), outputs=(2, 3, 4),
    )  # fmt: skip
    right(before, A, value)


def test_the_base_of_an_assignment_keeps_its_value() -> None:
    f = tg.jit(lambda x: (_assigned(x), x * 2.0))
    x = A.copy()
    y, z = f(x)
    np.testing.assert_array_equal(x, A)
    np.testing.assert_array_equal(z, A * 2.0)
    np.testing.assert_array_equal(y, _assigned(tg.tensor(A)).numpy())


def _assigned(x: Any) -> Any:
    y = x * 1.0
    y[0] = x[1] + 1.0
    y[:, 1] *= 2.0
    return y


# -- with their gradients ----------------------------------------------------------------------

JOINED = {
    "concatenate": lambda x: np.concatenate([x, np.sin(x), x[:1]], axis=0),
    "stack": lambda x: np.stack([x[0], np.exp(x[1]), x[0] * x[1]], axis=1),
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=0.5),
    "roll": lambda x: np.roll(x, 1, 1) * x,
    "hstack of rows": lambda x: np.hstack([x[k] * k for k in range(2)]),
    "block": lambda x: np.concatenate([np.concatenate([x, -x], 1), np.concatenate([x * x, x], 1)]),
    "assigned": lambda x: _assigned(x),
    "diagonal": lambda x: np.diag(x[0]) + np.diag(x[1, :2], 1),
    "slices": lambda x: x[:, 1:] - x[:, :-1],
    "tril": lambda x: np.tril(x) @ np.triu(x).T,
}


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", JOINED)
def test_values_and_gradients(name: str, kind: str) -> None:
    g = JOINED[name]
    f = tg.value_and_grad(lambda x: np.sum(np.tanh(g(x)) * np.arange(1.0, g(x).shape[-1] + 1)))
    x = (A * 0.3).astype(kind)
    tolerance = 1e-13 if kind == "float64" else 1e-5
    for made in (f, lambda x: tg.jvp(f, (x,), (np.cos(x),))[1]):
        for found, wanted in zip(tg.jit(made)(x), made(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["concatenate", "stack", "pad", "slices"])
def test_a_masked_nan_does_not_poison_what_is_joined(name: str) -> None:
    g = JOINED[name]
    f = tg.grad(lambda x: np.sum(g(np.where(x > 0, np.log(x), 0.0))))
    x = np.array([[0.0, -1.0, 2.0], [-0.0, 1.0, -3.0]])
    found = tg.jit(f)(x)
    np.testing.assert_array_equal(found, f(x))
    assert np.isfinite(found).all()


# -- random joins ------------------------------------------------------------------------------

part = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3))


@profile(25)
@given(st.lists(part, min_size=1, max_size=6), st.integers(0, 1), st.integers(1, 3))
def test_random_joins_of_slices(parts: Any, dim: int, times: int) -> None:
    """Parts are slices of what was there before, in changing order, joined again and again."""
    x = SPECIAL.reshape(2, 5)
    rows: list[Any] = [x]
    shapes, last = [(2, 5)], 0
    for _ in range(times):
        pieces = []
        for kind, start, stop in parts:
            n = shapes[last][dim]
            index = (slice(None),) * dim + (slice(min(start, n), max(n - stop, 0)),)
            rows.append(("getitem", (last,), {"index": (*index, ...)}))
            if kind:
                rows.append(("neg" if kind == 1 else "clone", (len(rows) - 1,)))
            pieces.append(len(rows) - 1)
        rows.append(("cat", tuple(pieces), {"dim": dim}))
        last = len(rows) - 1
        made = graph(*rows)
        shapes = [node.shape for node in made.nodes]
        if made.nodes[-1].size > 400:
            break
    right(graph(*rows), x)
