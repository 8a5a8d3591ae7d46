"""The pass over slices of joins, and over joins of joins."""

import numpy as np
import pytest

from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.fold_concat import folded
from tests.compiler.graphs import graph, names, passed

pytestmark = pytest.mark.tapegrad_only("compiled functions are not PyTorch's")

A, B = np.arange(4.0), np.arange(10.0, 15.0)
M = np.arange(12.0).reshape(3, 4)


def after(before, *inputs):
    return without_dead(passed(folded, before, *inputs))


def sliced(*index):
    return ("getitem", [2], {"index": index})


@pytest.mark.parametrize(
    ("index", "left"),
    [
        ((slice(0, 4),), []),
        ((slice(1, 3),), ["getitem"]),
        ((slice(4, 9),), []),
        ((slice(6, 9),), ["getitem"]),
        ((-1,), ["getitem"]),
        ((slice(3, 5),), ["cat", "getitem"]),
        ((slice(None, None, 2),), ["cat", "getitem"]),
        ((slice(None, None, -1),), ["cat", "getitem"]),
        ((slice(2, 2),), ["cat", "getitem"]),
    ],
)
def test_a_slice_of_a_join_reads_the_piece_that_it_lies_in(index, left):
    before = graph(A, B, ("cat", [0, 1], {"dim": 0}), sliced(*index))
    assert names(after(before, A, B))[2:] == left


def test_an_index_of_a_stack_is_what_was_stacked():
    before = graph(
        A, A + 1.0, ("stack", [0, 1], {"dim": 1}), sliced(slice(None), 1), sliced(slice(1, 3), 0),
        outputs=(3, 4),
    )  # fmt: skip
    assert names(after(before, A, A + 1.0))[2:] == ["getitem"]


@pytest.mark.parametrize(
    ("index", "left"),
    [
        ((slice(2, 5), slice(1, 5)), []),
        ((slice(3, 5), slice(2, 4)), ["getitem"]),
        ((slice(0, 2), slice(None)), ["constant"]),
        ((slice(2, 5), slice(1, 6)), ["pad", "getitem"]),
        ((3, slice(1, 5)), ["getitem"]),
    ],
)
@pytest.mark.parametrize("value", [0.0, 2.5, -0.0])
def test_a_slice_of_a_padding(index, left, value):
    before = graph(
        M, ("pad", [0], {"widths": ((2, 1), (1, 2)), "value": value}),
        ("getitem", [1], {"index": index}),
    )  # fmt: skip
    assert names(after(before, M))[1:] == left


def test_a_slice_of_a_slice_s_adjoint():
    before = graph(
        A, ("embed", [0], {"shape": (9,), "index": (slice(3, 7), ...)}),
        ("getitem", [1], {"index": (slice(3, 7),)}),
        ("getitem", [1], {"index": (slice(0, 2),)}), outputs=(2, 3),
    )  # fmt: skip
    assert names(after(before, A))[1:] == ["constant"]


def test_other_windows_of_a_piece():
    before = graph(
        M, M + 1.0, ("cat", [0, 1], {"dim": 0}), ("permute", [2], {"dims": (1, 0)}),
        ("getitem", [3], {"index": (slice(None), slice(3))}),
    )  # fmt: skip
    assert names(after(before, M, M + 1.0))[2:] == ["cat", "permute", "getitem"]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("reshape", {"shape": (6, 4)}),
        ("reshape", {"shape": (24,)}),
        ("reshape", {"shape": (2, 12)}),
        ("reshape", {"shape": (3, 2, 4)}),
        ("permute", {"dims": (1, 0)}),
        ("expand", {"shape": (2, 6, 4)}),
        ("flip", {"dims": (0,)}),
        ("diagonal", {"offset": 0, "dim1": 0, "dim2": 1}),
        ("diagonal", {"offset": -3, "dim1": 0, "dim2": 1}),
        ("unfold", {"dim": 0, "size": 2, "step": 1}),
        ("unfold", {"dim": 1, "size": 3, "step": 1}),
    ],
)
def test_windows_of_joins_show_what_they_did(name, params):
    before = graph(M, M + 20.0, ("cat", [0, 1], {"dim": 0}), (name, [2], params))
    after(before, M, M + 20.0)
    before = graph(M, ("pad", [0], {"widths": ((3, 0), (0, 0)), "value": 1.0}), (name, [1], params))
    after(before, M)
    before = graph(
        M, ("reshape", [0], {"shape": (1, 3, 4)}), ("cat", [1], {"dim": 0}),
        ("reshape", [2], {"shape": (4, 3)}),
    )  # fmt: skip
    after(before, M)


def test_what_is_computed_and_joined_anyway_is_not_stored_apart():
    before = graph(
        A, B, ("sin", [0]), ("cat", [2, 1], {"dim": 0}),
        ("getitem", [3], {"index": (slice(1, 3),)}), outputs=(3, 4),
    )  # fmt: skip
    assert names(after(before, A, B))[2:] == ["sin", "cat", "getitem"]


def test_a_piece_that_lies_somewhere_is_read_there():
    before = graph(
        A, B, ("cat", [0, 1], {"dim": 0}), ("getitem", [2], {"index": (slice(1, 3),)}),
        outputs=(2, 3),
    )  # fmt: skip
    found = after(before, A, B)
    assert found.nodes[found.outputs[1]].args == (0,)


def test_a_join_within_a_join_is_part_of_it():
    before = graph(
        A, B, ("cat", [0, 1], {"dim": 0}), ("cat", [1, 2, 0], {"dim": 0}),
        ("cat", [3, 0], {"dim": 0}),
    )  # fmt: skip
    [join] = [node for node in after(before, A, B).nodes if node.op]
    assert join.args == (1, 0, 1, 0, 0)


@pytest.mark.parametrize("others", [{"outputs": (2, 3)}, {}])
def test_joins_that_are_wanted_or_lie_otherwise_stay(others):
    dim = 0 if others else 1
    before = graph(
        M, M + 1.0, ("cat", [0, 1], {"dim": dim}),
        ("cat", [2, 2], {"dim": 0}), **others,
    )  # fmt: skip
    assert names(after(before, M, M + 1.0))[2:] == ["cat", "cat"]


@pytest.mark.parametrize(("value", "left"), [(1.0, 1), (2.0, 2)])
def test_a_padding_within_a_padding(value, left):
    before = graph(
        M, ("pad", [0], {"widths": ((2, 1), (0, 2)), "value": 1.0}),
        ("pad", [1], {"widths": ((0, 1), (3, 0)), "value": value}),
    )  # fmt: skip
    assert names(after(before, M))[1:] == ["pad"] * left


def test_a_graph_without_joins_stays_itself():
    before = graph(A, ("sin", [0]))
    assert folded(before) is before
