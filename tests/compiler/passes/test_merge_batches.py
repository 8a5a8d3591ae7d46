"""Sums over batches of products: which become one product, and what that computes."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.compiler.passes.dead_code import without_dead
from tapegrad.compiler.passes.merge_batches import with_whole_batches
from tests.compiler.graphs import graph, names, passed
from tests.compiler.passes.randoms import close, on_random_programs

pytestmark = pytest.mark.tapegrad_only("about this project")

ONE = ["input", "input", "reshape", "permute", "reshape"]


def numbers(*shape, dtype=np.float64):
    """Small whole numbers: sums of their products are exact in any order."""
    return (np.arange(math.prod(shape)) % 7 - 3).reshape(shape).astype(dtype)


def turned(rank):
    return {"dims": (*range(rank - 2), rank - 1, rank - 2)}


def summed(a, g, name="product", dims=None, shape=None, outputs=(-1,)):
    """The sum over their batch of a.mT @ g."""
    dims = turned(a.ndim) if dims is None else {"dims": dims}
    shape = shape or (a.shape[dims["dims"][-2]], g.shape[-1])
    return graph(
        a, g, ("permute", (0,), dims), (name, (2, 1)), ("sum_to", (3,), {"shape": shape}),
        outputs=outputs,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["matmul", "product"])
@pytest.mark.parametrize("batch", [(5,), (1,), (2, 3), (0,)])
def test_a_sum_of_products_is_one_product(batch, name, dtype):
    a, g = numbers(*batch, 4, 2, dtype=dtype), numbers(*batch, 4, 3, dtype=dtype)
    after = without_dead(passed(with_whole_batches, summed(a, g, name), a, g))
    assert names(after) == [*ONE, name]
    assert after.nodes[3].shape == (2, 4 * math.prod(batch))


def test_an_adjoint_of_zero_stays_zero_and_nan_goes_where_it_went():
    a, g = numbers(3, 2, 2), numbers(3, 2, 2)
    a[0, 0, 0], a[1, 1, 1], a[2, 0, 1] = np.inf, np.nan, -np.inf
    g[0, 0], g[1, 1, 0], g[2, 0] = 0.0, 0.0, -0.0
    for name in ("matmul", "product"):
        passed(with_whole_batches, summed(a, g, name), a, g)


A, G = numbers(5, 4, 2), numbers(5, 4, 3)


@pytest.mark.parametrize(
    ("before", "inputs"),
    [
        (summed(A, G, shape=(1, 3)), (A, G)),
        (summed(A, G, shape=(2, 1)), (A, G)),
        (summed(A, G, shape=(3,)), (A, G)),
        (summed(A, G, outputs=(-1, 3)), (A, G)),
        (summed(A[0], G), (A[0], G)),
        (summed(A[:1], G), (A[:1], G)),
        (summed(A, G[0]), (A, G[0])),
        (summed(A, G[:1]), (A, G[:1])),
        (summed(numbers(4, 5, 2), G, dims=(1, 2, 0)), (numbers(4, 5, 2), G)),
        (summed(numbers(5, 2, 4), G, dims=(0, 1, 2)), (numbers(5, 2, 4), G)),
    ],
    ids=[
        "of rows too", "of columns too", "a vector", "asked for", "one left", "left repeated",
        "one right", "right repeated", "turned otherwise", "not turned",
    ],
)  # fmt: skip
def test_other_sums_of_products_stay(before, inputs):
    after = passed(with_whole_batches, before, *inputs)
    assert names(after) == names(before)


def test_a_left_side_that_is_no_transpose_stays():
    a = numbers(5, 2, 4)
    before = graph(a, G, ("matmul", (0, 1)), ("sum_to", (2,), {"shape": (2, 3)}))
    assert names(passed(with_whole_batches, before, a, G)) == names(before)


def test_sums_of_what_is_no_product_stay():
    before = graph(A, ("sin", (0,)), ("sum_to", (1,), {"shape": (4, 2)}))
    assert names(passed(with_whole_batches, before, A)) == names(before)
    rest = graph(A, ("sin", (0,)))
    assert with_whole_batches(rest) is rest


def test_two_sums_of_one_graph():
    before = graph(
        A, G, ("permute", (0,), turned(3)), ("product", (2, 1)),
        ("sum_to", (3,), {"shape": (2, 3)}), ("permute", (1,), turned(3)), ("product", (5, 0)),
        ("sum_to", (6,), {"shape": (3, 2)}), ("permute", (7,), {"dims": (1, 0)}), ("add", (4, 8)),
    )  # fmt: skip
    after = without_dead(passed(with_whole_batches, before, A, G))
    assert names(after).count("product") == 2
    assert "sum_to" not in names(after)


@pytest.mark.parametrize("batch", [(6,), (2, 3)])
def test_the_gradient_of_what_a_whole_batch_is_multiplied_by(batch):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(*batch, 4, 5)), rng.normal(size=(5, 3))
    f = tg.value_and_grad(lambda x, w: np.sum(np.tanh(x @ w)), argnums=(0, 1))
    jitted = tg.jit(f)
    tape = jitted.lower(x, w).graph
    assert [n.shape for n in tape.nodes if n.name == "product"].count((5, 3)) == 1
    assert "sum_to" not in names(tape)
    for found, wanted in zip(jitted(x, w)[1], f(x, w)[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


test_random_programs = on_random_programs(with_whole_batches, alike=close)
