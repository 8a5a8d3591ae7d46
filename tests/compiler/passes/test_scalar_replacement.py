"""Values of a few elements as numbers of their own: what becomes of operations on them."""

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.compiler.passes import scalar_replacement_cost
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.scalar_replacement import scalarized
from tapegrad.ops.index import HOLE
from tests.compiler.graphs import graph, names, passed, run
from tests.compiler.passes.randoms import close, on_random_loops, on_random_programs
from tests.compiler.programs import computed, total
from tests.compiler.test_random_programs import near, points, profile, programs

pytestmark = pytest.mark.tapegrad_only("about this project")

X = np.array([[1.5, -0.0], [np.nan, -2.0]])
LINE = np.array([3.0, -1.0, 0.5])
TINY = ((), (1,), (2,), (3,), (2, 2), (1, 3), (2, 3), (2, 1, 3))


@contextmanager
def whatever_it_costs():
    """What can be taken apart is, whether it pays or not."""
    limits = {
        "MANY": 1,
        "FOREIGN": 1e9,
        "MOSTLY_MOVES": 0.0,
        "MOST_ELEMENTS": 12,
        "SCALAR_MOST": 12,
        "FACTORS": 64,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(scalar_replacement_cost, name, value)
        yield


@pytest.fixture
def always():
    with whatever_it_costs():
        yield


def apart(before, *inputs):
    """The graph taken apart, which must compute the same bits; and that it was."""
    after = without_dead(passed(scalarized, before, *inputs))
    rest = [n for n in after.nodes if n.shape and n.name not in ("input", "stack", "reshape")]
    assert not rest, after
    return after


# -- what becomes of operations ----------------------------------------------------------------


def test_elementwise_operations_of_shapes_that_are_broadcast(always):
    row, column, one = np.array([2.0, -0.0]), np.array([[1.0], [np.inf]]), np.array(0.5)
    before = graph(
        X, row, column, one, ("add", (0, 1)), ("mul", (4, 2)), ("sub", (5, 3)), ("gt", (6, 0)),
        ("where", (7, 6, 3)), outputs=(6, 7, 8),
    )  # fmt: skip
    assert Counter(names(apart(before, X, row, column, one)))["add"] == 4


@pytest.mark.parametrize(
    "row",
    [
        ("getitem", {"index": (slice(None), 0)}),
        ("getitem", {"index": (1, slice(None, None, 1))}),
        ("getitem", {"index": (0, 1)}),
        ("permute", {"dims": (1, 0)}),
        ("reshape", {"shape": (4,)}),
        ("expand", {"shape": (2, 2, 2)}),
        ("flip", {"dims": (0,)}),
        ("unsqueeze", {"dims": (1,)}),
        ("diagonal", {"offset": 0, "dim1": 0, "dim2": 1}),
        ("unfold", {"dim": 1, "size": 1, "step": 1}),
        ("pad", {"widths": ((1, 0), (0, 1)), "value": -2.5}),
        ("to", {"dtype": np.dtype(np.float32)}),
        ("neg", {}),
    ],
    ids=lambda row: f"{row[0]}-{'-'.join(map(str, row[1].values()))}",
)
def test_operations_on_one_value(always, row):
    name, params = row
    apart(graph(X, (name, (0,), params), ("add", (1, 1))), X)


@pytest.mark.parametrize(
    "row",
    [("cat", {"dim": 1}), ("stack", {"dim": 1}), ("matmul", {}), ("product", {}), ("maximum", {})],
    ids=lambda row: row[0],
)
def test_operations_on_two_values(always, row):
    name, params = row
    other = np.array([[2.0, 0.0], [4.0, 0.25]])
    finite = np.array([[1.5, -0.0], [3.0, -2.0]])
    apart(graph(finite, other, (name, (0, 1), params), ("mul", (2, 2))), finite, other)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("dim", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions(always, name, dim, keepdim):
    x = np.array([[1.0, 0.25, -3.0], [4.0, 2.0, 0.5]])  # exact in any order
    apart(graph(x, (name, (0,), {"dim": dim, "keepdim": keepdim}), ("neg", (1,))), x)


def test_sums_over_what_was_broadcast(always):
    x = np.arange(6.0).reshape(2, 1, 3)
    apart(graph(x, ("sum_to", (0,), {"shape": (1, 1)}), ("neg", (1,))), x)
    apart(graph(x, ("sum_to", (0,), {"shape": (3,)}), ("neg", (1,))), x)


def test_index_arrays_that_are_known(always):
    where = np.array([2, 0, -1])
    plan = {"plan": (HOLE,)}
    apart(graph(LINE, ("=", where), ("index", (0, 1), plan), ("neg", (2,))), LINE)
    back = {"plan": (HOLE,), "shape": (4,)}
    apart(graph(LINE, ("=", where), ("unindex", (0, 1), back), ("abs", (2,))), LINE)
    along = {"dim": 0}
    apart(graph(LINE, ("=", where % 3), ("gather", (0, 1), along), ("neg", (2,))), LINE)
    back = {"dim": 0, "shape": (4,)}
    apart(graph(LINE, ("=", np.array([1, 3, 1])), ("ungather", (0, 1), back), ("abs", (2,))), LINE)
    apart(graph(LINE, ("=", where % 3), ("index_select", (0, 1), {"dim": 0}), ("neg", (2,))), LINE)


def test_index_arrays_that_are_given_are_read_as_arrays(always):
    where = np.array([2, 0, 1])
    before = graph(LINE, where, ("index", (0, 1), {"plan": (HOLE,)}), ("neg", (2,)), ("neg", (3,)))
    assert "index" in names(passed(scalarized, before, LINE, where))


def test_a_padding_is_nothing_to_be_added(always):
    """Where nothing is, there is nothing to add, and no zero whose sign would matter."""
    a = np.array([-0.0, 2.0])
    embed = ("embed", (0,), {"index": (slice(0, 2),), "shape": (3,)})
    before = graph(a, LINE, embed, ("add", (2, 1)), ("strong", (2, 1)), outputs=(3, 4))
    after = without_dead(scalarized(before))
    assert Counter(names(after))["add"] == 2  # of three
    assert Counter(names(after))["strong"] == 2
    for found, wanted in zip(run(after, a, LINE), run(before, a, LINE), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_whole_numbers_that_are_known_are_no_index_arrays(always):
    x = np.array([5, 6])
    join = ("cat", (0, 1), {"dim": 0})
    apart(graph(x, ("=", np.array([1, 0])), join, ("mul", (2, 2))), x)
    write = ("assign", (0, 1), {"index": (slice(0, 1),)})
    apart(graph(x, ("=", np.array([1])), write, ("mul", (2, 2))), x)


def test_an_adjoint_times_nothing_is_computed(always):
    """Only the zero adjoint is nothing whatever it is multiplied with."""
    a, big = np.array([1.0, 2.0]), np.array([np.inf, np.inf, 1.0])
    embed = ("embed", (0,), {"index": (slice(1, 3),), "shape": (3,)})
    apart(graph(a, big, embed, ("strong", (1, 2)), ("strong", (2, 1)), outputs=(3, 4)), a, big)
    apart(graph(a, big, embed, ("exact", (1, 2)), ("mul", (2, 1)), outputs=(3, 4)), a, big)


def test_a_padding_that_is_asked_for_is_zero(always):
    a = np.array([1.0, 2.0])
    embed = ("embed", (0,), {"index": (slice(1, 3),), "shape": (4,)})
    apart(graph(a, embed, ("neg", (0,)), outputs=(1, 2)), a)


def test_what_only_a_whole_array_serves_gets_one(always):
    x = np.arange(4.0).reshape(2, 2) + np.eye(2)
    before = graph(x, ("add", (0, 0)), ("inv", (1,)), ("mul", (2, 0)))
    after = without_dead(passed(scalarized, before, x))
    assert Counter(names(after))["stack"] == 2  # before `inv`, and the result


def test_guards_and_results_that_are_inputs(always):
    before = graph(
        LINE, ("mul", (0, 0)), ("getitem", (1,), {"index": (0,)}), ("gt", (2, 2)),
        outputs=(0, 1, 2, 1), guards=((3, False),),
    )  # fmt: skip
    passed(scalarized, before, LINE)


# -- random programs ---------------------------------------------------------------------------

shapes = st.lists(st.sampled_from(TINY), min_size=1, max_size=3)


def forced(graph):
    with whatever_it_costs():
        return scalarized(graph)


test_random_programs = on_random_programs(scalarized, shapes=shapes, alike=close)
test_random_programs_whatever_it_costs = on_random_programs(forced, shapes=shapes, alike=close)
test_random_loops = on_random_loops(forced, alike=close)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@profile(12)
@given(programs, shapes, st.integers(0, 1000))
def test_values_and_gradients_of_random_programs(kind, steps, shapes, seed):
    derivative = tg.value_and_grad(
        lambda *arrays: total(computed(steps, arrays)), argnums=tuple(range(len(shapes)))
    )
    compiled = tg.jit(derivative)
    for arrays in points(shapes, kind, seed):
        with whatever_it_costs():
            value, gradients = compiled(*arrays)
        wanted, others = derivative(*arrays)
        near(value, wanted, kind, 10)
        for g, other in zip(gradients, others, strict=True):
            near(g, other, kind, 100)
