"""Cumulative products at every order, sorting, and what these functions refuse."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.ops import scan

pytestmark = pytest.mark.tapegrad_only("written against NumPy, and beyond PyTorch's orders")


def product_by_hand(x):
    """The cumulative product as a chain of products."""
    out = [x[0]]
    for k in range(1, len(x)):
        out.append(out[-1] * x[k])
    return tg.stack(out)


ZEROS = [(), (1,), (0, 3), (1, 2, 4)]


@pytest.mark.parametrize("zeros", ZEROS, ids=str)
def test_cumprod_at_every_order(zeros, rng):
    a = rng.uniform(0.5, 1.5, 6)
    a[list(zeros)] = 0.0
    weights = [tg.from_numpy(rng.uniform(-1, 1, 6)) for _ in range(4)]
    found = []
    for function in (lambda x: tg.cumprod(x, 0), product_by_hand):
        x = tg.from_numpy(a.copy()).requires_grad_()
        value, orders = function(x), []
        for weight in weights:
            (value,) = tg.autograd.grad((value * weight).sum(), x, create_graph=True)
            orders.append(value.detach().numpy())
        found.append(orders)
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(1000,), (67, 3), (64, 2, 2), (5, 400)], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_side_by_side_give_what_steps_give(shape, reverse, rng):
    a, b = rng.uniform(-1.2, 1.2, shape), rng.uniform(-1, 1, shape)
    a[rng.uniform(size=shape) < 0.05] = 0.0
    found = scan._decay(a, b, dim=0, reverse=reverse)
    expected = b.copy()
    order = range(len(b) - 2, -1, -1) if reverse else range(1, len(b))
    for k in order:
        expected[k] += (a[k + 1] * expected[k + 1]) if reverse else (a[k] * expected[k - 1])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_logcumsumexp_over_a_wide_range(rng):
    a = rng.uniform(-700, 700, 200)
    x = tg.from_numpy(a).requires_grad_()
    y = tg.logcumsumexp(x, 0)
    np.testing.assert_allclose(y.detach().numpy(), np.logaddexp.accumulate(a), rtol=1e-15)
    w = rng.uniform(-1, 1, 200)
    (g,) = tg.autograd.grad((y * tg.from_numpy(w)).sum(), x)
    y = y.detach().numpy()
    expected = [np.sum(w[k:] * np.exp(a[k] - y[k:])) for k in range(200)]
    np.testing.assert_allclose(g.numpy(), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_the_largest(descending):
    a = np.array([2.0, np.nan, -1.0, 2.0, np.inf])
    values, indices = tg.sort(tg.from_numpy(a), descending=descending)
    expected = [1, 4, 0, 3, 2] if descending else [2, 0, 3, 4, 1]
    assert indices.tolist() == expected
    np.testing.assert_array_equal(values.numpy(), a[expected])


def test_sorting_hands_gradients_back():
    x = tg.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    (x.sort(descending=True).values * tg.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[1.0, 100.0, 10.0]]


REFUSED = {
    "trace": (lambda x: tg.trace(x[0]), "`trace` takes a matrix"),
    "diff": (lambda x: tg.diff(x.sum()), "`diff` takes at least one dimension"),
    "diff, how often": (lambda x: tg.diff(x, n=-1), "`diff`: n must not be negative"),
    "logcumsumexp": (lambda x: x.long().logcumsumexp(0), "`logcumsumexp` needs a floating-point"),
    "roll": (lambda x: x.roll((1, 2)), "`roll`: without `dims` one shift is needed"),
    "roll, lengths": (lambda x: x.roll((1, 2), 0), "`roll` needs a shift for each dimension"),
    "repeat": (lambda x: x.repeat(2), "`repeat` needs a number for each dimension"),
    "tile": (lambda x: x.tile(-2), "`tile`: the numbers of repeats must not be negative"),
    "interleave": (
        lambda x: x.repeat_interleave(tg.tensor([1, 2, 3]), 0),
        "`repeat_interleave` needs one number, or one for each of 2 elements",
    ),
    "interleave, signs": (
        lambda x: x.repeat_interleave(tg.tensor([1, -2]), 0),
        "`repeat_interleave`: the numbers of repeats must not be negative",
    ),
    "interleave, types": (
        lambda x: x.repeat_interleave(tg.tensor([1.0, 2.0]), 0),
        "`repeat_interleave`: an index must be of an integer type",
    ),
    "pad": (lambda x: tg.nn.functional.pad(x, (1,)), "`pad` takes a pair of numbers"),
    "pad, less": (lambda x: tg.nn.functional.pad(x, (-2, -2)), "takes away more than there is"),
    "pad, mode": (lambda x: tg.nn.functional.pad(x, (1, 1), "wrap"), "mode is 'constant' or one"),
    "rot90": (lambda x: tg.rot90(x[0]), "`rot90` turns two dimensions"),
    "rot90, twice": (lambda x: tg.rot90(x, 1, (1, -1)), "`rot90` needs two different dimensions"),
    "meshgrid": (lambda x: tg.meshgrid(x), "`meshgrid` takes vectors and numbers"),
    "meshgrid, none": (lambda x: tg.meshgrid(), "`meshgrid` needs at least one Tensor"),
    "meshgrid, order": (lambda x: tg.meshgrid(x[0], indexing="x"), "indexing is 'ij' or 'xy'"),
    "meshgrid, types": (lambda x: tg.meshgrid(x[0], x[0].long()), "must have one dtype"),
    "along": (lambda x: tg.take_along_dim(x, tg.tensor([0]), 0), "need as many dimensions"),
    "along, range": (lambda x: tg.take_along_dim(x, tg.tensor([[2]]), 0), "index out of range"),
    "along, shapes": (
        lambda x: tg.take_along_dim(x, tg.zeros(3, 1, dtype=tg.int64), 1),
        "do not broadcast except along dimension 1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_is_accepted(name):
    function, message = REFUSED[name]
    with pytest.raises(RuntimeError, match=message):
        function(tg.ones(2, 3))
