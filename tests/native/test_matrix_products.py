"""Products of matrices by the native path do what the functions in Python do."""

import itertools

import pytest

from tapegrad.ops.families import table
from tests.native.test_install import PLACES, assert_alike, placed, values

pytestmark = [
    pytest.mark.tapegrad_only("about two ways to the same results"),
    pytest.mark.usefixtures("native", "fresh_tape"),
]


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((1, 1), (1, 1)),
        ((32, 64), (64, 64)), ((1, 40), (40, 7)), ((40, 1), (1, 9)), ((64, 33), (33,)),
        ((33,), (33, 64)), ((100,), (100,)), ((5, 0), (0, 3)), ((0, 2), (2, 3)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (2, 4, 5)), ((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 3, 4), (1, 4, 5)),
        ((0, 3, 4), (4, 5)), ((1, 2, 1, 2, 1, 2, 3, 4), (4, 3)), ((2,) * 9, (2, 2)),
    ],
)  # fmt: skip
def test_matrix_products(shapes, dtype):
    op = table["matmul"]
    for hows in itertools.product(PLACES, PLACES):
        a, b = (
            placed(values(op, s, k, dtype), how) for k, (s, how) in enumerate(zip(shapes, hows))
        )
        assert_alike(op, (a, b))


def test_matrix_products_of_any_layout(dtype):
    op = table["matmul"]
    a = placed(values(op, (4, 6), 0, dtype), "leaf")
    b = placed(values(op, (6, 4), 1, dtype), "result")
    for x, y in (
        (a, a.t()),
        (a.t(), a),
        (a.t(), b.t()),
        (a[:, ::2], b[:3]),
        (b, a),
        (a[1], b),
        (a, b[:, 2]),
        (a[:, 0], a),
    ):
        assert_alike(op, (x, y))
        (op.entry_point(x, y) * 2.0).sum().backward()


def test_products_of_batches_of_any_layout(dtype):
    op = table["matmul"]
    a = placed(values(op, (2, 3, 4, 4), 0, dtype), "leaf")
    b = placed(values(op, (4, 4), 1, dtype), "result")
    turned = a.transpose(0, 1)
    for x, y in (
        (a, a.mT), (a.mT, b), (b, a.mT), (turned, b.T), (turned, turned), (b, turned),
        (a[:, ::2], b), (a[..., ::2], b[::2]), (a[:1].expand(5, 3, 4, 4), b), (turned, b[0]),
        (b[:, 1], turned), (a.permute(3, 0, 1, 2), a.permute(3, 0, 2, 1)),
    ):  # fmt: skip
        assert_alike(op, (x, y))
        (op.entry_point(x, y) * 2.0).sum().backward()


@pytest.mark.parametrize("right", [(7, 1), (7, 3)])
def test_a_batch_of_single_rows_of_any_step(dtype, right):
    op = table["matmul"]
    b = placed(values(op, right, 1, dtype), "leaf")
    for strides in ((7, 1, 1), (7, 0, 1), (7, 7, 1), (7, 50, 1)):  # all lie in order
        a = placed(values(op, (4, 7), 0, dtype), "leaf").as_strided((4, 1, 7), strides)
        assert_alike(op, (a, b))
