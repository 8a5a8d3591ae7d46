"""Permutations before gathers: which move, which do not, and that values stay what they are."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.combine_pads import with_sums_of_parts
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.early_permutes import with_early_permutes
from tapegrad.ops.index import HOLE
from tests.compiler.graphs import graph, names, passed
from tests.compiler.passes.randoms import on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")

TABLE = np.arange(8 * 4 * 3.0).reshape(8, 4, 3) - 40.0
ROWS = np.array([3, 0, -1, 2, 2, 1, 0, -4, 3])
SLICE = slice(None)
TO_FRONT = {"dims": (1, 2, 0)}  # what was first is last
GATHER = ("index", (2, 1), {"plan": (SLICE, HOLE)})


def test_a_table_is_permuted_before_its_rows_are_gathered():
    before = graph(TABLE, ROWS, ("sin", (0,)), GATHER, ("permute", (3,), TO_FRONT))
    after = without_dead(passed(with_early_permutes, before, TABLE, ROWS))
    assert names(after) == ["input", "input", "permute", "sin", "index"]
    assert after.nodes[-1].params == {"plan": (HOLE, SLICE, SLICE)}


def test_elementwise_records_and_their_smaller_operands_are_permuted_too():
    weights, scale = np.arange(9.0)[:, None], np.array([2.0, 3.0, 5.0])
    before = graph(
        TABLE, ROWS, ("sin", (0,)), GATHER, weights, scale, ("mul", (3, 4)), ("add", (6, 3)),
        ("mul", (5, 7)), ("=", 0.5), ("sub", (8, 9)), ("permute", (10,), TO_FRONT),
    )  # fmt: skip
    after = without_dead(passed(with_early_permutes, before, TABLE, ROWS, weights, scale))
    computed = [name for name in names(after) if name not in ("getitem", "permute")]
    assert computed[-6:] == ["sin", "index", "mul", "add", "mul", "sub"]
    assert after.nodes[-1].shape == (9, 3, 8)


def test_one_table_is_permuted_once_for_all_its_gathers():
    before = graph(
        TABLE, ROWS, ("sin", (0,)), GATHER, GATHER, ("add", (3, 4)), ("permute", (5,), TO_FRONT),
    )  # fmt: skip
    after = without_dead(passed(with_early_permutes, before, TABLE, ROWS))
    assert names(after).count("sin") == 1


def test_the_parts_of_a_sum_are_permuted_to_their_places():
    part = np.arange(2 * 4 * 3.0).reshape(2, 4, 3)
    places = ((slice(3, 5),), (slice(6, 8), ..., slice(None)))
    where = [("embed", (2,), {"index": index, "shape": TABLE.shape}) for index in places]
    before = graph(
        TABLE, ROWS, part, ("sin", (0,)), *where, ("add", (3, 4)), ("add", (6, 5)),
        ("index", (7, 1), {"plan": (SLICE, HOLE)}), ("permute", (8,), TO_FRONT),
    )  # fmt: skip
    joined = without_dead(with_sums_of_parts(before))
    assert "added" in names(joined)
    after = without_dead(passed(with_early_permutes, joined, TABLE, ROWS, part))
    assert names(after)[-2:] == ["added", "index"]


@pytest.mark.parametrize(
    ("picked", "records"),
    [
        # The row itself would be apart, or what is adjacent short.
        (ROWS, [("sin", (0,)), GATHER, ("permute", (3,), {"dims": (0, 2, 1)})]),
        (ROWS, [("sin", (0,)), GATHER, ("permute", (3,), {"dims": (1, 0, 2)})]),
        # The table is no value of a loop, or as large as what is gathered.
        (ROWS, [("getitem", (0,), {"index": (...,)}), GATHER, ("permute", (3,), TO_FRONT)]),
        (ROWS[:5], [("sin", (0,)), GATHER, ("permute", (3,), TO_FRONT)]),
        # What is gathered is read otherwise, too; or part of it is no gather.
        (ROWS, [("sin", (0,)), GATHER, ("exp", (3,)), ("permute", (3,), TO_FRONT)]),
        (ROWS, [("sin", (0,)), GATHER, ("cumsum", (3,), {"dim": 1}), ("permute", (4,), TO_FRONT)]),
    ],
)
def test_a_permutation_stays_where_it_does_not_pay(picked, records):
    before = graph(TABLE, picked, *records, outputs=(-1, 4) if records[2][0] == "exp" else (-1,))
    assert passed(with_early_permutes, before, TABLE, picked) is before


@pytest.mark.parametrize("columns", [1, 2])
def test_a_jacobian_of_gathered_rows_is_written_once(columns):
    vertices, rows = np.linspace(-1.0, 1.0, 60).reshape(20, 3), np.arange(500) % 20
    weights = np.linspace(0.0, 1.0, 500)[:, None]

    def f(x):
        moved = np.sin(vertices @ x.reshape(3, 3)) * 2.0
        return moved[rows] if columns == 1 else weights * moved[rows] - moved[rows[::-1]]

    x = np.linspace(0.1, 0.9, 9)
    compiled = tg.jit(tg.jacfwd(f))
    np.testing.assert_allclose(compiled(x), tg.jacfwd(f)(x), rtol=1e-12, atol=1e-13)
    traffic = compiled.lower(x).as_text("loops")
    assert traffic.count("writes 108 kB") == 1  # 500 x 3 x 9 doubles


test_values_stay_what_they_are = on_random_programs(with_early_permutes)
