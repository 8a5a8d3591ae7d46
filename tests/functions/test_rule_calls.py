"""What rules call on Tensors gives what the general path gives, in a recorded sweep."""

import warnings

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.dispatch.dispatch import run
from tapegrad.ops import linalg, reduce, shape

A = np.arange(12.0).reshape(3, 4)
CALLS = [
    (shape.permute, (A,), {"dims": (1, 0)}),
    (shape.expand, (A[:, None],), {"shape": (2, 3, 5, 4)}),
    (shape.unsqueeze, (A,), {"dims": (1,)}),
    (shape.reshape, (A,), {"shape": (6, 2)}),
    (shape.reshape, (A.T,), {"shape": (6, 2)}),  # a copy
    (shape.getitem, (A,), {"index": (slice(1, 3), 2)}),
    (shape.sum_to, (A,), {"shape": (4,)}),
    (shape.sum_to, (A,), {"shape": (3, 1)}),
    (shape.sum_to, (A,), {"shape": ()}),
    (shape.sum_to, (A,), {"shape": (1,)}),
    (shape.sum_to, (A,), {"shape": (3, 4)}),
    (reduce.sum, (A,), {"dim": (0,), "keepdim": True}),
    (linalg.product, (A, A.T), {}),
    (linalg.product, (A[0], A.T), {}),
    (linalg.product, (np.stack([A, A]), A.T), {}),
]
IDS = [f"{op.name}-{k}" for k, (op, _, _) in enumerate(CALLS)]


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize(("op", "arrays", "params"), CALLS, ids=IDS)
def test_the_fast_path_does_what_the_general_path_does(op, arrays, params, dtype):
    """Values, dtypes, what is a view, and gradients."""
    found = []
    for call in (lambda *x: op(*x, **params), lambda *x: run(op, x, params)):
        leaves = [tg.tensor(x.astype(dtype), requires_grad=True) for x in arrays]
        given = [x * 1 for x in leaves]
        y = call(*given)
        seed = tg.tensor(np.arange(1.0, 1 + y.numel()).reshape(y.shape).astype(dtype))
        grads = tg.autograd.grad(y, leaves, seed)
        found.append((y, np.shares_memory(y.detach(), given[0].detach()), grads))
    (y, shared, grads), (y2, shared2, grads2) = found
    assert y.dtype == y2.dtype
    assert shared == shared2
    np.testing.assert_array_equal(y.detach(), y2.detach())
    for g, g2 in zip(grads, grads2, strict=True):
        np.testing.assert_array_equal(g, g2)


def test_a_zero_adjoint_stays_zero_against_infinity_in_a_recorded_product():
    """As in a sweep that is not recorded, and without a warning."""
    w = tg.tensor([[np.inf, 1.0], [2.0, 3.0]], requires_grad=True)
    x = tg.tensor([[1.0, 2.0]], requires_grad=True)
    with np.errstate(all="ignore"):
        y = x @ w
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (g,) = tg.autograd.grad(y, x, tg.tensor([[0.0, 1.0]]), create_graph=True)
        (h,) = tg.autograd.grad(g.sum(), w)
    assert g.tolist() == [[1.0, 3.0]]
    assert h.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_a_recorded_product_has_the_adjoints_of_matmul():
    """Which have kernels: the tape shows `matmul`."""
    w = tg.ones(3, 2, requires_grad=True)
    x = tg.ones(4, 3, requires_grad=True)
    (g,) = tg.autograd.grad((x @ w).sum(), x, create_graph=True)
    assert "matmul" in [record.op for record in g.tape]


def test_a_view_that_a_rule_makes_is_a_view_to_those_who_change_it():
    """A change in place is seen by the base, and recorded."""
    x = tg.tensor(A, requires_grad=True)
    y = x * 1
    shape.permute(y, dims=(1, 0)).mul_(2.0)
    (g,) = tg.autograd.grad(y.sum(), x)
    assert y.tolist() == (2 * A).tolist()
    assert g.tolist() == np.full((3, 4), 2.0).tolist()
