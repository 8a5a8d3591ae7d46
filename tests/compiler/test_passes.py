"""Each pass by itself: from a graph to a graph that computes the same, bit for bit."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes import optimised
from tapegrad.compiler.passes.dead import without_dead
from tapegrad.compiler.passes.padded import with_sums_of_parts
from tapegrad.compiler.passes.simple import simplified
from tests.compiler.graphs import graph, names, passed, run, same_bits

pytestmark = pytest.mark.tapegrad_only("about this project")

# Zeros of both signs, NaN, infinities, numbers at the ends of the range.
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.5, 5e-324, -5e-324, 1.7e308])
X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]])


# -- dead records ------------------------------------------------------------------------------


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


# -- sums of paddings --------------------------------------------------------------------------


def part(k, n):
    return ("embed", (k,), {"index": (slice(*n), ...), "shape": (4,)})


def test_paddings_that_are_added_up_become_one_record():
    a, b = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    before = graph(a, b, part(0, (0, 2)), part(1, (1, 3)), ("add", (2, 3)))
    after = without_dead(passed(with_sums_of_parts, before, a, b))
    assert names(after) == ["input", "input", "added"]


def test_what_is_no_padding_is_what_the_parts_are_added_to():
    a, x = np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    before = graph(
        a, x, part(0, (0, 2)), ("add", (2, 1)), part(0, (1, 3)), ("add", (3, 4)), ("add", (5, 1))
    )
    after = without_dead(passed(with_sums_of_parts, before, a, x))
    assert names(after).count("added") == 1
    assert "embed" not in names(after)


def test_a_padding_or_a_sum_that_is_asked_for_stays():
    a = np.array([1.0, 2.0])
    before = graph(
        a, part(0, (0, 2)), part(0, (1, 3)), ("add", (1, 2)), ("add", (3, 1)), outputs=(1, 3, 4)
    )
    passed(with_sums_of_parts, before, a)
    passed(optimised, before, a)


# -- all of them, and what is compiled ---------------------------------------------------------


def folded(x):
    """What a compiler with fast mathematics would get wrong."""
    return (
        x + 0.0, x - 0.0, 0.0 - x, x * 0.0, x * 1.0, x / 1.0, np.negative(-x), x - x, x / x,
        0.0 * x + 1.0, (x + 1.0) - 1.0, x * 2.0 / 2.0, x * x - x * x, x * 3.0 + 0.1, np.abs(x),
        np.sqrt(x * x), x == x, x != x, x < x, np.maximum(x, 0.0), np.minimum(x, x),
        np.where(x == 0, x, 0.0), np.floor(x), np.sign(x), np.exp(np.log(x)), 1.0 / (1.0 / x),
        x**2.0, x**0.5, x**1.0, x**0.0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_compiled_code_keeps_signs_of_zeros_nan_and_infinities(kind):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(kind)
    eager = [y.numpy() for y in folded(tg.tensor(x))]
    for found, wanted in zip(tg.jit(folded)(x), eager, strict=True):
        assert found.dtype == wanted.dtype
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted)
            continue
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(kind).eps)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


def test_no_product_and_sum_is_contracted():
    """x * y rounds before z is taken off: fused, the error of the product would be left."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1000))
    found = tg.jit(lambda x, y, z: x * y - z)(x, y, x * y)
    np.testing.assert_array_equal(found, np.zeros(1000))
    single = tg.jit(lambda x, y: x * y - y * x)
    np.testing.assert_array_equal(single(x, y), np.zeros(1000))


@pytest.mark.parametrize("f", [np.sqrt, np.log], ids=["sqrt", "log"])
def test_a_masked_nan_never_poisons_a_compiled_gradient(f):
    g = tg.jit(tg.grad(lambda x: np.sum(np.where(x > 0, f(x), 0.0))))
    np.testing.assert_array_equal(g(np.array([0.0, -1.0, -np.inf])), np.zeros(3))
