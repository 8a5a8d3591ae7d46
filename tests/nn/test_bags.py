"""Sums, means and maxima of bags of rows of a table."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn.functional import embedding_bag

TABLE = np.array([[1.0, -2.0], [3.0, 4.0], [5.0, -6.0]])
NUMBERS = [0, 2, 2, 1, 0]


@pytest.mark.parametrize(("mode", "reduced"), [("sum", np.sum), ("mean", np.mean), ("max", np.max)])
def test_a_bag_ends_where_the_next_one_begins(mode, reduced):
    numbers, table = tg.tensor(NUMBERS), tg.tensor(TABLE)
    found = embedding_bag(numbers, table, tg.tensor([0, 3]), mode=mode)
    rows = TABLE[NUMBERS]
    np.testing.assert_allclose(found.numpy(), [reduced(rows[:3], 0), reduced(rows[3:], 0)])
    ended = embedding_bag(numbers, table, tg.tensor([0, 3, 4]), mode=mode, include_last_offset=True)
    np.testing.assert_allclose(ended.numpy(), [reduced(rows[:3], 0), rows[3]])


def test_gradients_are_divided_by_how_often_a_row_occurs():
    table = tg.tensor(TABLE, requires_grad=True)
    found = embedding_bag(
        tg.tensor(NUMBERS), table, tg.tensor([0]), mode="sum", scale_grad_by_freq=True
    )
    found.sum().backward()
    np.testing.assert_array_equal(table.grad.numpy(), np.ones((3, 2)))


def test_a_bag_without_numbers_gives_zeros():
    found = embedding_bag(
        tg.tensor([2, 2]), tg.tensor(TABLE), tg.tensor([0, 0]), mode="mean", padding_idx=2
    )
    np.testing.assert_array_equal(found.numpy(), np.zeros((2, 2)))


def test_weights_multiply_rows_and_have_gradients():
    weights = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = embedding_bag(
        tg.tensor([0, 1, 2]), tg.tensor(TABLE), tg.tensor([0]),
        mode="sum", per_sample_weights=weights,
    )  # fmt: skip
    np.testing.assert_array_equal(found.detach().numpy(), [[1.0 + 6 + 15, -2.0 + 8 - 18]])
    found.sum().backward()
    np.testing.assert_array_equal(weights.grad.numpy(), TABLE.sum(1))


def test_maxima_under_transforms():
    numbers, edges = tg.tensor([1, 2, 0, 1]), tg.tensor([0, 0, 2])
    tables = np.random.default_rng(0).standard_normal((2, 4, 3))

    def maxima(table):
        return embedding_bag(numbers, table, edges, mode="max")

    expected = [maxima(tg.tensor(t)).numpy() for t in tables]
    np.testing.assert_array_equal(tg.vmap(maxima)(tables), expected)
    slope = tg.grad(lambda t: maxima(t).sum())(tables[0])
    np.testing.assert_array_equal(tg.jit(tg.grad(lambda t: maxima(t).sum()))(tables[0]), slope)
    assert slope.sum() == 6.0  # of two bags that have rows
    leaf = tg.tensor(tables[0], requires_grad=True)
    embedding_bag(numbers[:0], leaf, edges[:1], mode="max").sum().backward()
    assert not leaf.grad.numpy().any()
