"""Common subexpressions, constants and identities: what becomes one record, and what does not."""

import numpy as np
import pytest

from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.common_subexpressions import FOLDED, simplified
from tapegrad.compiler.passes.dead_code import without_dead
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


@pytest.mark.parametrize("size", [3, FOLDED])
def test_constants_of_several_numbers_are_computed_with_too(size):
    value = np.linspace(0.0, 1.0, size)
    before = graph(("=", value), ("exp", (0,)), ("neg", (1,)))
    [last] = without_dead(passed(simplified, before)).nodes
    same_bits([last.value], [-np.exp(value)])


@pytest.mark.parametrize("rows", [1, 500])
def test_constants_that_are_equal_stand_in_memory_once(rows):
    x = np.linspace(-1.0, 1.0, 3 * rows).reshape(rows, 3)
    other = x + 1
    other[-1, -1] = 7.0
    before = graph(
        x, ("=", x + 1), ("=", np.asfortranarray(x + 1)), ("=", other), ("mul", (0, 1)),
        ("mul", (0, 2)), ("mul", (0, 3)), outputs=(4, 5, 6),
    )  # fmt: skip
    after = passed(simplified, before, x)
    assert names(after) == ["input", "constant", "constant", "mul", "mul"]


def test_what_is_not_elementwise_is_computed_of_all_elements():
    rows = {"dim": (0, 1), "keepdim": False}
    before = graph(
        ("=", np.full((2, 3), 2.0)), ("=", np.full((3, 4), 0.5)), ("sum", (0,), rows),
        ("cat", (0, 0), {"dim": 0}), ("matmul", (0, 1)), outputs=(2, 3, 4),
    )  # fmt: skip
    after = without_dead(passed(simplified, before))
    assert names(after) == ["constant"] * 3


@pytest.mark.parametrize(
    ("value", "once"),
    [
        (np.full(5, 2.5), True), (np.full(5, -0.0), True), (np.full((2, 2), 7, np.int32), True),
        (np.full(3, True), True), (np.array([0.0, -0.0]), False), (np.array([1.0, 2.0]), False),
        (np.array([3.0]), True), (np.array([1j, 1j]), False), (np.full((3, 2), np.nan), True),
    ],
)  # fmt: skip
def test_equal_elements_of_a_constant_stand_in_memory_once(value, once):
    [node] = passed(simplified, graph(("=", value))).nodes
    assert node.uniform is once
    same_bits([node.value], [value])


LARGE = 2 * FOLDED


@pytest.mark.parametrize(
    "row",
    [
        ("reshape", {"shape": (2, FOLDED)}), ("permute", {"dims": (0,)}), ("flip", {"dims": (0,)}),
        ("unsqueeze", {"dims": (0,)}), ("getitem", {"index": (slice(0, -1),)}), ("clone", {}),
        ("expand", {"shape": (2, LARGE)}), ("contiguous", {}), ("alias", {}),
    ],
    ids=lambda row: row[0],
)  # fmt: skip
def test_one_number_that_is_moved_about_stays_one(row):
    name, params = row
    before = graph(("=", np.full(LARGE, -0.0)), (name, (0,), params), ("neg", (1,)))
    assert passed(simplified, before).nodes[-1].uniform


def test_one_number_of_which_dimensions_go():
    before = graph(("=", np.full((1, LARGE), 2.0)), ("squeeze", (0,), {"dims": (0,)}))
    assert passed(simplified, before).nodes[-1].uniform


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
        [("getitem", (0,), {"index": (..., slice(None, 10, 1))})],
        [("contiguous", (0,))],
        [("alias", (0,))],
        [("sum_to", (0,), {"shape": (10,)})],
        [("to", (0,), {"dtype": np.dtype(float)})],
        [("expand", (0,), {"shape": (10,)})],
        [("=", np.ones(10, bool)), ("=", 2.0), ("where", (1, 0, 2))],
        [("=", False), ("=", np.ones(10)), ("where", (1, 2, 0))],
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
        [("=", 1.0), ("strong", (0, 1))],
        [("=", 1.0), ("strong", (1, 0))],
        [("=", 1.0), ("exact", (0, 1))],
        [("=", 1.0), ("exact", (1, 0))],
        [("sum", (0,), {"dim": (), "keepdim": False})],
    ],
    ids=lambda rows: rows[-1][0],
)
def test_identities_that_hold_but_for_the_sign_of_a_zero(rows):
    """Beside a NaN these give zeros without a sign."""
    some = SPECIAL[[0, 3, 4, 5, 6, 7, 8, 9]]
    assert passed(simplified, graph(some, *rows), some).outputs == (0,)
    before = graph(SPECIAL, *rows)
    np.testing.assert_array_equal(run(simplified(before), SPECIAL), run(before, SPECIAL))


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
        [("getitem", (0,), {"index": (slice(None, None, -1),)})],
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
    whole = np.array([2], np.int64)
    for name in ("mul", "div"):
        passed(simplified, graph(whole, ("=", 1.0), (name, (0, 1))), whole)
        passed(simplified, graph(whole, ("=", np.ones((3, 1))), (name, (0, 1))), whole)
        passed(simplified, graph(X, ("=", np.ones((2, 2, 3))), (name, (0, 1))), X)
    chosen = graph(X, ("=", np.ones((2, 2, 3), bool)), ("=", 2.0), ("where", (1, 0, 2)))
    passed(simplified, chosen, X)


test_random_programs = on_random_programs(simplified)
