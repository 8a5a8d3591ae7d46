"""Products of matrices of which most is zero: which blocks are multiplied."""

import numpy as np
import pytest

from tapegrad.compiler.passes.block_products import with_block_products
from tapegrad.ops.index import HOLE
from tests.compiler.graphs import graph, names, passed
from tests.compiler.passes.randoms import close

pytestmark = pytest.mark.tapegrad_only("about this project")

RNG = np.random.default_rng(0)
B = RNG.standard_normal((60, 600))


def scattered(pattern):
    """A product with a matrix whose other elements are zero, and the elements themselves."""
    (places,) = np.nonzero(pattern.reshape(-1))
    values = RNG.standard_normal(len(places))
    params = {"plan": (HOLE,), "shape": (pattern.size,)}
    made = graph(
        values, B, ("=", places), ("unindex", (0, 2), params),
        ("reshape", (3,), {"shape": pattern.shape}), ("product", (4, 1)),
    )  # fmt: skip
    return made, values


def test_blocks_are_multiplied_apart():
    pattern = np.kron(np.eye(3), np.ones((16, 20))) != 0
    pattern[:16] = False  # rows of zeros
    made, values = scattered(pattern)
    after = passed(with_block_products, made, values, B, alike=close)
    products = [node for node in after.nodes if node.name == "product"]
    assert [node.shape for node in products] == [(16, 600), (16, 600)]
    assert [after.nodes[node.args[0]].shape for node in products] == [(16, 20), (16, 20)]
    assert names(after)[-1] == "cat"


def test_rows_of_a_block_need_not_be_full():
    pattern = np.kron(np.eye(2), np.tri(30)) != 0
    made, values = scattered(pattern)
    after = passed(with_block_products, made, values, B, alike=close)
    assert names(after).count("product") > 1


@pytest.mark.parametrize("pattern", [np.ones((48, 60), bool), np.eye(60) + np.eye(60)[::-1] != 0])
def test_a_matrix_that_has_no_blocks_is_multiplied_whole(pattern):
    made, _ = scattered(pattern)
    assert with_block_products(made) is made


def test_products_with_zeros_stay_strong():
    pattern = np.kron(np.eye(3), np.ones((16, 20))) != 0
    made, values = scattered(pattern)
    passed(with_block_products, made, values, np.where(B > 2, np.inf, B), alike=close)
