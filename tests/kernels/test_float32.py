"""float32 in the compiled sweep: the same records as in float64, and adjoints rounded once."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.autograd.sweep import Sweep
from tapegrad.tape.record_format import F4_SHAPE
from tapegrad.tape.shape_table import shapes

pytestmark = pytest.mark.tapegrad_only("what the compiled sweep does by itself")

I = tg.tensor([2, 0, 2])

# Each of x (4, 6), which is used twice, so that adjoints are added to one that is there.
FUNCTIONS = {
    "arithmetic": lambda x: (x * 2.0 + x / 3.0 - x).exp(),
    "broadcast": lambda x: x * x.sum(0) + x.sum(1, keepdim=True) * x + x.mean(),
    "views": lambda x: x.t() + x.reshape(6, 4) + x[:, 1:5:3].unsqueeze(0).sum(),
    "expanded": lambda x: x[0].expand(4, 6) + x,
    "diagonal": lambda x: x.diagonal() + x[:, 2],
    "joined": lambda x: tg.cat([x, x[1:3]], 0) * tg.stack([x[0], x[2], *x.unbind()]),
    "product": lambda x: x @ x.t(),
    "product of columns": lambda x: x.t() @ x[:, 3],
    "product of vectors": lambda x: x[1] @ x[2],
    "product of a transpose": lambda x: x.t() @ x @ x.t(),
    "row by matrix": lambda x: x[0] @ x.t(),
    "outer": lambda x: x[:, :1] @ x[:1],
    "softmax": lambda x: x.softmax(1) * x.log_softmax(0),
    "rows": lambda x: x.amax(1) + x.prod(1) + x.norm(dim=1) + x.logsumexp(1),
    "spread": lambda x: x.var(0) * x.std(0) + x.amin(0),
    "running sums": lambda x: x.cumsum(1) * x.cumsum(0),
    "picked rows": lambda x: x[I] * x.index_select(0, I),
    "picked elements": lambda x: x.gather(1, tg.zeros(4, 2, dtype=tg.int64)) + x[:, :2],
    "chosen": lambda x: tg.where(x.detach() > 0.5, x * x, x).clamp(0.1, 0.9),
}


def leaf(dtype):
    x = np.random.default_rng(7).uniform(0.05, 0.95, (4, 6))
    return tg.tensor(x.astype("f4").astype(dtype), requires_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_float64(name, monkeypatch):
    function = FUNCTIONS[name]
    wide, narrow = leaf("f8"), leaf("f4")
    roots = [function(x).sum() for x in (wide, narrow)]
    assert roots[1].dtype == tg.float32
    monkeypatch.setattr(Sweep, "_step", None)  # nothing is handed back to Python
    for root in roots:
        root.backward()
    assert narrow.grad.dtype == tg.float32
    np.testing.assert_allclose(narrow.grad.numpy(), wide.grad.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dim", [None, 0, 1, -1, (0, 1), ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_and_means_are_numpys(dim, keepdim):
    x = leaf("f4")
    array = x.detach().numpy()
    axis = None if dim == () else dim
    for found, expected in (
        (x.sum(dim, keepdim=keepdim), array.sum(axis, keepdims=keepdim)),
        (x.mean(dim, keepdim=keepdim), array.mean(axis, keepdims=keepdim)),
    ):
        assert found.dtype == tg.float32
        np.testing.assert_array_equal(found.detach().numpy(), expected)
        assert found._s == F4_SHAPE - shapes.number(found.shape)


def test_gradients_are_added_where_they_lie():
    x = leaf("f4")
    (x * x).sum().backward()
    held, version = x.grad, x.grad._version
    once = held.numpy().copy()
    (x * x).sum().backward()
    assert x.grad is held
    assert held._version == version + 1
    np.testing.assert_array_equal(held.numpy(), 2 * once)


def test_what_float32_does_not_hold():
    x = leaf("f4")
    assert (x * 1e-50).sum().item() == 0.0
    with np.errstate(over="ignore"):
        assert (x * 1e300).isinf().all()
        assert (x * float("inf")).isinf().all()
    assert (x * 2**24 + x * 0.1).dtype == tg.float32


def test_types_that_meet_are_promoted():
    x = leaf("f4")
    y = tg.tensor(np.full((4, 6), 2.0), requires_grad=True)
    z = x * y + y * x
    assert z.dtype == tg.float64
    z.sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (tg.float32, tg.float64)
    np.testing.assert_array_equal(x.grad.numpy(), np.full((4, 6), 4.0))
    assert (x * tg.tensor(2.0)).dtype == tg.float32  # one number has no say, as in PyTorch
    assert (tg.tensor(2.0) * x).dtype == tg.float32


@pytest.mark.parametrize("values", [[0.0, 1.0], [np.inf, 1.0], [np.nan, 0.0]])
def test_a_zero_adjoint_stays_zero(values):
    """Against an infinity or NaN among the factors of a product, too."""
    a = tg.tensor(np.array([[1.0, 2.0], values], "f4"), requires_grad=True)
    b = tg.tensor(np.array([[1.0, values[0]], [3.0, values[1]]], "f4"), requires_grad=True)
    with np.errstate(invalid="ignore"):
        (a @ b)[0, 0].backward()
    np.testing.assert_array_equal(a.grad.numpy(), np.array([[1, 3], [0, 0]], "f4"))
    np.testing.assert_array_equal(b.grad.numpy(), np.array([[1, 0], [2, 0]], "f4"))
