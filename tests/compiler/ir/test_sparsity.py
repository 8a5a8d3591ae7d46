"""Sparsity patterns: which directions each element depends on, and which records have none."""

import numpy as np
import pytest

from tapegrad.compiler.ir import sparsity
from tapegrad.compiler.ir.sparsity import dense, patterns_of
from tapegrad.ops.index import HOLE
from tests.compiler.graphs import graph

pytestmark = pytest.mark.tapegrad_only("about this project")

N = 12
UNITS = ("=", np.eye(N))
X = np.arange(1.0, N + 1)
ALL = slice(None)


def pattern(*records):
    """Where the rows of the last record may differ from zero; None if that is not known."""
    made = graph(*records)
    found = patterns_of(made).of.get(len(made.nodes) - 1)
    return None if found is None else dense(found, N)


def near(*offsets):
    """Which elements of an array depend on which, if each does on those at some distances."""
    return np.any([np.eye(N, k=-k, dtype=bool) for k in offsets], 0)


def test_of_a_constant_and_elementwise_records():
    assert (pattern(UNITS) == np.eye(N, dtype=bool)).all()
    assert (pattern(X, UNITS, ("strong", (1, 0)), ("neg", (2,))) == near(0)).all()


@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (("getitem", (1,), {"index": (ALL, slice(2, 7))}), near(0)[:, 2:7]),
        (("getitem", (1,), {"index": (ALL, slice(None, None, -1))}), near(0)[:, ::-1]),
        (("embed", (1,), {"index": (ALL, slice(1, 13)), "shape": (N, 14)}), np.eye(N, 14, 1) > 0),
        (("reshape", (1,), {"shape": (N, 3, 4)}), near(0).reshape(N, 3, 4)),
        (("cat", (1, 1), {"dim": 1}), np.hstack([near(0), near(0)])),
        (("permute", (1,), {"dims": (0, 1)}), near(0)),
    ],
)  # fmt: skip
def test_of_moved_elements(record, wanted):
    assert (pattern(X, UNITS, record) == wanted).all()


def test_of_gathered_and_scattered_elements():
    places = np.array([3, 0, 3])
    plan = {"plan": (ALL, HOLE)}
    assert (pattern(X, UNITS, ("=", places), ("index", (1, 2), plan)) == near(0)[:, places]).all()
    back = ("unindex", (3, 2), {**plan, "shape": (N, 5)})
    wanted = np.zeros((N, 5), bool)
    wanted[[3, 0], [3, 0]] = True
    assert (pattern(X, UNITS, ("=", places), ("index", (1, 2), plan), back) == wanted).all()


def test_a_sum_depends_on_what_its_terms_do():
    moved = ("getitem", (1,), {"index": (ALL, slice(1, None))})
    still = ("getitem", (1,), {"index": (ALL, slice(None, -1))})
    found = pattern(X, UNITS, moved, still, ("sub", (2, 3)))
    assert (found == near(0, 1)[:, :-1]).all()
    pairs = ("reshape", (1,), {"shape": (N, 6, 2)})
    found = pattern(X, UNITS, pairs, ("sum", (2,), {"dim": (2,), "keepdim": False}))
    assert (found == np.eye(N, dtype=bool).reshape(N, 6, 2).any(2)).all()


def test_a_product_depends_on_what_is_multiplied():
    blocks = ("reshape", (1,), {"shape": (N, 4, 3)})
    weights = np.array([[1.0, 2.0], [3.0, 0.5], [0.0, 4.0]])
    found = pattern(weights, UNITS, blocks, ("product", (2, 0)))
    assert (found == near(0).reshape(N, 4, 3).any(2)[..., None]).all()
    # Zeros of a constant are known.
    found = pattern(X, UNITS, blocks, ("=", weights), ("product", (2, 3)))
    assert (found[..., 0] == near(0).reshape(N, 4, 3)[..., :2].any(2)).all()


def test_a_product_with_zero_depends_on_nothing():
    assert not pattern(X, UNITS, ("=", 0.0), ("strong", (1, 2))).any()
    # Not if the other factor may be infinite.
    found = pattern(X, UNITS, ("=", 0.0), ("strong", (1, 0)), ("strong", (3, 2)))
    assert (found == near(0)).all()


SHIFTED = ("getitem", (1,), {"index": (slice(None, None, -1),)})


@pytest.mark.parametrize(
    "record",
    [
        ("mul", (1, 0)),  # zero times infinity is NaN
        ("strong", (1, 1)),
        ("add", (1, 0)),
        ("matmul", (1, 0)),
        # Rows are mixed, or not treated alike.
        SHIFTED,
        ("permute", (1,), {"dims": (1, 0)}),
        ("sum", (1,), {"dim": (0,), "keepdim": False}),
        ("cumsum", (1,), {"dim": 0}),
        ("triu", (1,), {"diagonal": -2}),
        ("product", (1, 1)),
        ("cat", (1, 1), {"dim": 0}),
    ],
    ids=lambda record: record[0],
)  # fmt: skip
def test_what_has_none(record):
    assert pattern(X, UNITS, record) is None


def test_what_differs_from_row_to_row_has_none():
    rows = ("=", np.arange(N))
    assert pattern(X, UNITS, rows, ("index", (1, 2), {"plan": (HOLE, ALL)})) is None
    other = ("=", np.arange(float(N))[:, None])
    assert pattern(X, UNITS, other, ("exact", (1, 2))) is None
    part = ("=", np.zeros((4, N)))
    assert pattern(X, UNITS, part, ("assign", (1, 2), {"index": (slice(2, 6),)})) is None


def test_of_constants_that_are_not_sparse_or_not_finite_there_is_none():
    assert pattern(("=", np.ones((N, N)))) is None
    assert pattern(("=", np.diag([np.inf] * N))) is None


TANGENTS = (X, UNITS, ("strong", (1, 0)))


def test_a_product_with_a_sparse_constant_is_sparse():
    banded = np.eye(N, k=1) + np.eye(N)
    found = pattern(*TANGENTS, ("=", banded), ("product", (2, 3)))
    assert (found == (banded != 0)).all()
    assert pattern(*TANGENTS, ("=", np.ones((N, N))), ("product", (2, 3))) is None


def test_large_products_are_not_run_to_find_zeros(monkeypatch):
    monkeypatch.setattr(sparsity, "WORK", N * N)
    few, many = np.eye(N, k=1), np.ones((N, 1))
    assert pattern(*TANGENTS, ("=", few), ("product", (2, 3))) is not None
    blocks = ("reshape", (2,), {"shape": (N, 6, 2)}), ("=", many[:2]), ("product", (3, 4))
    assert pattern(*TANGENTS, *blocks) is not None
    monkeypatch.setattr(sparsity, "WORK", N)
    assert pattern(*TANGENTS, *blocks) is None
