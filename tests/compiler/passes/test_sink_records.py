"""Values that wait for their only reader: what is put off, what is not, and in which order."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.sink_records import late
from tapegrad.compiler.schedule.fusion import Schedule
from tests.compiler.graphs import SPECIAL, graph, names, passed
from tests.compiler.passes.randoms import on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -0.25]])
ALL = {"dim": (0, 1), "keepdim": True}


def test_a_value_is_computed_just_before_it_is_read():
    before = graph(X, ("sin", (0,)), ("sum", (0,), ALL), ("exp", (2,)), ("mul", (1, 3)))
    assert names(passed(late, before, X)) == ["input", "sum", "exp", "sin", "mul"]


def test_a_chain_waits_as_a_whole():
    before = graph(
        X, ("sin", (0,)), ("exp", (1,)), ("cos", (0,)), ("sum", (0,), ALL), ("sub", (2, 3)),
        ("neg", (4,)), ("mul", (5, 6)),
    )  # fmt: skip
    after = passed(late, before, X)
    assert names(after) == ["input", "sum", "neg", "sin", "exp", "cos", "sub", "mul"]


def test_those_who_wait_for_one_reader_keep_their_order():
    before = graph(
        X, ("sin", (0,)), ("cos", (0,)), ("sum", (0,), ALL), ("mul", (2, 1)), ("add", (4, 3))
    )
    assert names(passed(late, before, X)) == ["input", "sum", "sin", "cos", "mul", "add"]


def test_a_value_that_its_reader_reads_twice_waits():
    before = graph(X, ("sin", (0,)), ("sum", (0,), ALL), ("mul", (1, 1)), ("add", (3, 2)))
    assert names(passed(late, before, X)) == ["input", "sum", "sin", "mul", "add"]


@pytest.mark.parametrize(
    ("reader", "outputs", "guards"),
    [
        (("permute", (1,), {"dims": (1, 0)}), (-1, 2), ()),  # moves elements
        (("amax", (1,), ALL), (-1, 2), ()),
        (("mul", (1, 2)), (-1, 1), ()),  # is a result itself
        (("add", (1, 4)), (-1, 2), ()),  # over a larger domain
    ],
    ids=["moves", "reduces", "result", "broadcast"],
)
def test_what_stays_where_it_is(reader, outputs, guards):
    wide = np.ones((2, 2, 3))
    before = graph(
        X, ("sin", (0,)), ("sum", (0,), ALL), ("neg", (2,)), wide, reader, outputs=outputs,
        guards=guards,
    )  # fmt: skip
    after = passed(late, before, X, wide)
    assert names(after) == names(before)


def test_what_two_read_stays():
    before = graph(
        X, ("sin", (0,)), ("sum", (0,), ALL), ("mul", (1, 2)), ("add", (1, 2)), outputs=(3, 4)
    )
    assert late(before) is before


def test_what_a_guard_reads_stays():
    x = np.array([True])
    before = graph(
        x, ("logical_not", (0,)), ("logical_and", (0, 0)), ("logical_or", (1, 2)),
        guards=((1, False),),
    )  # fmt: skip
    assert names(passed(late, before, x)) == names(before)
    other = graph(x, ("logical_not", (0,)), ("logical_and", (0, 0)), ("logical_or", (1, 2)))
    assert names(passed(late, other, x))[1:] == ["logical_not", "logical_and", "logical_or"]


def test_numbers_inputs_and_constants_stay():
    number = np.array(2.0)
    before = graph(number, ("sin", (0,)), ("exp", (0,)), ("mul", (1, 2)))
    assert late(before) is before
    fixed = graph(X, ("=", np.ones((2, 3))), ("sum", (0,), ALL), ("add", (1, 0)), outputs=(2, 3))
    assert late(fixed) is fixed


def test_a_join_and_a_product_are_not_put_off():
    before = graph(
        X, X.T.copy(), ("cat", (0, 0), {"dim": 0}), ("matmul", (0, 1)), ("neg", (0,)),
        ("exp", (2,)), ("exp", (3,)), outputs=(4, 5, 6),
    )  # fmt: skip
    assert late(before) is before
    inputs = np.ones((2, 2)), np.ones((2, 2))
    others = graph(*inputs, ("matmul", (0, 1)), ("neg", (0,)), ("exp", (2,)), outputs=(3, 4))
    assert late(others) is others


def test_special_values_keep_their_bits():
    before = graph(
        SPECIAL, ("neg", (0,)), ("sum", (0,), {"dim": (0,), "keepdim": True}), ("abs", (0,)),
        ("mul", (1, 3)), ("add", (2, 2)), ("sub", (4, 0)), outputs=(5, 6),
    )  # fmt: skip
    after = passed(late, before, SPECIAL)
    assert names(after) != names(before)


def test_long_chains_and_wide_ones_take_no_recursion():
    rows = [X, *[("sin", (k,)) for k in range(5_000)], ("sum", (0,), ALL), ("mul", (5_000, 5_001))]
    after = late(graph(*rows))
    assert names(after)[:2] == ["input", "sum"]
    assert len(after.nodes) == len(rows)


def test_the_value_joins_the_loop_of_its_reader():
    def f(x):
        y = np.sin(x)
        z = np.exp(x * np.sum(x))
        return y * z + z

    x = np.linspace(0.0, 1.0, 100)
    nests = [nest for nest in Schedule(tg.jit(f).lower(x).graph).nests if nest.domain]
    assert [sorted(term.name for term in nest.terms) for nest in nests] == [
        [], ["add", "exp", "mul", "mul", "sin"],
    ]  # fmt: skip
    assert [len(nest.stores) for nest in nests] == [1, 1]
    np.testing.assert_allclose(tg.jit(f)(x), f(x), rtol=1e-14)


test_random_programs = on_random_programs(late)
