"""Records that nothing asks for go; what is asked for, and the inputs, stay."""

import numpy as np
import pytest

from tapegrad.compiler.passes.dead_code import without_dead
from tests.compiler.graphs import graph, names, passed
from tests.compiler.passes.randoms import on_random_loops, on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]])


def test_what_nothing_is_computed_from_goes():
    before = graph(X, ("sin", (0,)), ("exp", (1,)), ("cos", (0,)), outputs=(3,))
    assert names(passed(without_dead, before, X)) == ["input", "cos"]


def test_inputs_and_what_guards_read_stay():
    before = graph(
        X, X[0], ("sum", (0,), {"dim": (0, 1), "keepdim": False}), ("gt", (2, 2)), ("neg", (0,)),
        outputs=(4,), guards=((3, False),),
    )  # fmt: skip
    after = passed(without_dead, before, X, X[0])
    assert names(after) == ["input", "input", "sum", "gt", "neg"]
    assert after.guards[0].position == 3


def test_a_long_chain_is_walked_without_recursion():
    rows = [X, *[("sin", (k,)) for k in range(20_000)]]
    assert len(without_dead(graph(*rows, outputs=(5,))).nodes) == 6


def test_inputs_that_nothing_reads_stay_in_their_order():
    before = graph(X, X[0], X[1], ("exp", (1,)), ("exp", (2,)), outputs=(3,))
    after = passed(without_dead, before, X, X[0], X[1])
    assert [after.nodes[k].params["k"] for k in after.inputs] == [0, 1, 2]
    assert names(after) == ["input", "input", "input", "exp"]


def test_constants_and_repeated_results():
    before = graph(X, ("=", 2.0), ("=", 3.0), ("mul", (0, 2)), outputs=(3, 0, 3, 2))
    after = passed(without_dead, before, X)
    assert names(after) == ["input", "constant", "mul"]
    assert after.outputs == (2, 0, 2, 1)


def test_a_graph_of_nothing():
    assert names(passed(without_dead, graph(("=", 1.0), outputs=()))) == []


test_random_programs = on_random_programs(without_dead)
test_random_loops = on_random_loops(without_dead)
