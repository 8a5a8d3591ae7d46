"""Common subexpressions, constants and identities: what becomes one record, and what does not."""

import numpy as np
import pytest

from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.dead import without_dead
from tapegrad.compiler.passes.simple import simplified
from tests.compiler.graphs import SPECIAL, graph, names, passed, run, same_bits
from tests.compiler.passes.randoms import on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]])


# -- common subexpressions, constants ----------------------------------------------------------


def test_what_is_computed_twice_is_computed_once():
    before = graph(
        X, ("sin", (0,)), ("sin", (0,)), ("mul", (1, 2)), ("permute", (0,), {"dims": (1, 0)}),
        ("permute", (0,), {"dims": (1, 0)}), ("add", (4, 5)), outputs=(3, 6),
    )  # fmt: skip
    after = passed(simplified, before, X)
    assert names(after) == ["input", "sin", "mul", "permute", "add"]


def test_other_parameters_are_another_computation():
    before = graph(
        X, ("sum", (0,), {"dim": (0,), "keepdim": False}),
        ("sum", (0,), {"dim": (1,), "keepdim": False}), outputs=(1, 2),
    )  # fmt: skip
    assert names(passed(simplified, before, X)) == ["input", "sum", "sum"]


def test_constants_that_differ_in_a_bit_or_in_dtype_stay_apart():
    rows = [("=", v) for v in (0.0, -0.0, np.float32(0.0), np.int64(0), np.array([0.0]), 0.0)]
    before = graph(*rows, outputs=range(6))
    assert names(passed(simplified, before)) == ["constant"] * 5


def test_what_is_known_is_computed_while_compiling():
    before = graph(X, ("=", 2.0), ("exp", (1,)), ("mul", (2, 2)), ("mul", (0, 3)))
    after = simplified(before)
    same_bits(run(after, X), run(before, X))
    assert names(without_dead(after)) == ["input", "constant", "mul"]


def test_a_large_constant_result_is_not_kept():
    before = graph(("=", np.arange(1 << 15) * 1.0), ("sin", (0,)))
    assert names(passed(simplified, before))[-1] == "sin"


def test_a_large_result_that_is_one_number_stands_in_memory_once():
    before = graph(("=", 2.0), ("expand", (0,), {"shape": (1 << 15,)}), ("sin", (1,)))
    last = passed(simplified, before).nodes[-1]
    assert last.name == "constant"
    assert last.value.strides == (0,)


# -- identities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        [("=", 1.0), ("mul", (0, 1))],
        [("=", 1.0), ("mul", (1, 0))],
        [("=", 1.0), ("div", (0, 1))],
        [("=", np.ones(10)), ("mul", (0, 1))],
        [("neg", (0,)), ("neg", (1,))],
        [("clone", (0,))],
        [("reshape", (0,), {"shape": (10,)})],
        [("permute", (0,), {"dims": (0,)})],
    ],
    ids=lambda rows: rows[-1][0],
)
def test_identities_that_hold_for_every_number(rows):
    before = graph(SPECIAL, *rows)
    after = passed(simplified, before, SPECIAL)
    assert after.outputs == (0,)


@pytest.mark.parametrize(
    "rows",
    [
        [("=", 0.0), ("add", (0, 1))],  # -0.0 + 0.0 is 0.0
        [("=", -0.0), ("add", (0, 1))],
        [("=", 0.0), ("sub", (0, 1))],
        [("=", 0.0), ("sub", (1, 0))],  # 0 - 0 is 0, not -0
        [("=", 0.0), ("mul", (0, 1))],  # inf * 0 and nan * 0 are nan, -1 * 0 is -0
        [("sub", (0, 0))],  # inf - inf is nan
        [("div", (0, 0))],
        [("=", 1.0), ("div", (1, 0))],
        [("=", -1.0), ("mul", (0, 1))],
        [("maximum", (0, 0))],
        [("neg", (0,)), ("add", (0, 1))],
        [("=", 2.0), ("mul", (0, 1)), ("div", (2, 1))],  # overflows
        [("=", 1.0), ("add", (0, 1)), ("sub", (2, 1))],  # rounds
        [("exp", (0,)), ("log", (1,))],
        [("sqrt", (0,)), ("square", (1,))],
        [("reciprocal", (0,)), ("reciprocal", (1,))],
        [("eq", (0, 0))],  # nan is not nan
        [("ne", (0, 0))],
    ],
)
def test_what_does_not_hold_for_every_number_is_computed(rows):
    before = graph(SPECIAL, *rows)
    passed(optimised, before, SPECIAL)


def test_a_one_of_another_shape_or_dtype_is_not_left_out():
    wide = graph(np.array([2.0]), ("=", np.ones((3, 1))), ("mul", (0, 1)))
    assert run(passed(simplified, wide, np.array([2.0])), np.array([2.0]))[0].shape == (3, 1)
    exact = graph(np.array([2], np.int64), ("=", 1.0), ("mul", (0, 1)))
    assert run(simplified(exact), np.array([2]))[0].dtype == np.float64


test_random_programs = on_random_programs(simplified)
