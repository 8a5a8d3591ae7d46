"""Gradients that consist of the caller's weights: neither sees what happens to the other."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.functions import inplace_methods

pytestmark = pytest.mark.tapegrad_only("PyTorch's gradient is the caller's Tensor")

N = 40_000
SHAPE = 200, 200


def leaf(dtype=tg.float64):
    return tg.ones(N, dtype=dtype, requires_grad=True)


def weights(dtype=tg.float64):
    return tg.tensor(np.linspace(1.0, 2.0, N).reshape(SHAPE), dtype=dtype)


def pulled(x, w, *views):
    y = x.reshape(SHAPE)
    for view in views:
        y = view(y)
    y.backward(w)
    return x.grad


def address(t):
    return t._a.__array_interface__["data"][0]


CHANGES = {
    "zero_": lambda t: t.zero_(),
    "fill_": lambda t: t.fill_(7.0),
    "add_": lambda t: t.add_(1.0),
    "mul_": lambda t: t.mul_(t),
    "sqrt_": lambda t: t.sqrt_(),
    "clamp_": lambda t: t.clamp_(max=1.5),
    "copy_": lambda t: t.copy_(tg.zeros(t.shape, dtype=t.dtype)),
    "masked_fill_": lambda t: t.masked_fill_(t > 1.5, 0.0),
    "operator": lambda t: t.__imul__(3.0),
    "element": lambda t: t.__setitem__(0, 5.0),
    "slice": lambda t: t.__setitem__(slice(3, 9), 5.0),
    "mask": lambda t: t.__setitem__(t > 1.5, 0.0),
    "places": lambda t: t.__setitem__(tg.tensor([1, 2]), 5.0),
    "part": lambda t: t[3].add_(1.0),
    "view": lambda t: t.view(-1).zero_(),
    "reshape": lambda t: t.reshape(-1).zero_(),
    "transposed": lambda t: t.T.add_(1.0),
    "parts": lambda t: t.split(50)[0].zero_(),
    "unbound": lambda t: t.unbind()[0].zero_(),
    "detach": lambda t: t.detach().zero_(),
    "data": lambda t: t.data.zero_(),
    "numpy": lambda t: t.numpy().fill(0.0),
    "forced": lambda t: t.numpy(force=True).fill(0.0),
    "asarray": lambda t: np.asarray(t).fill(0.0),
    "dlpack": lambda t: np.from_dlpack(t.detach()).fill(0.0),
    "copy": lambda t: copy.copy(t).zero_(),
    "out": lambda t: np.multiply(t, 0.0, out=t),
    "copyto": lambda t: np.copyto(t, tg.zeros(t.shape, dtype=t.dtype)),
    "sort": lambda t: t.copy_(-t),
    "index_fill_": lambda t: t.index_fill_(0, tg.tensor([0]), 3.0),
    "scatter": lambda t: t.view(-1).scatter_(0, tg.tensor([5]), 9.0),
    "random": lambda t: t.normal_(),
    "leaf": lambda t: changed_leaf(t),
    "clip": lambda t: clipped(t),
}


def changed_leaf(t):
    t.requires_grad_()
    with tg.no_grad():
        t.zero_()


def clipped(t):
    p = tg.zeros(t.shape, dtype=t.dtype, requires_grad=True)
    p.grad = t
    tg.nn.utils.clip_grad_norm_([p], 1e-3)


@pytest.mark.parametrize("dtype", [tg.float64, tg.float32])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("how", ["weights", "gradient", "both"])
def test_a_change_of_one_is_not_seen_in_the_other(change, how, dtype):
    x, w = leaf(dtype), weights(dtype)
    before = w.clone().numpy()
    g = pulled(x, w)
    if how == "gradient":
        CHANGES[change](g)
    else:
        CHANGES[change](w)
    assert not np.array_equal(np.ravel(before), np.ravel((g if how == "gradient" else w).tolist()))
    if how == "gradient":
        np.testing.assert_array_equal(w.numpy(), before)
    else:
        np.testing.assert_array_equal(x.grad.numpy(), before.ravel())
    if how == "both":
        CHANGES[change](g)
        assert not np.shares_memory(g.detach().numpy(), w.detach().numpy())


def test_sweeps_that_follow_add_to_the_gradient_alone():
    x, w = leaf(), weights()
    before = w.clone()
    for k in range(1, 4):
        pulled(x, w)
        assert tg.equal(w, before)
        assert tg.equal(x.grad, k * before.ravel())


def test_rows_of_a_jacobian_by_weights_that_are_used_again():
    x, v, rows = leaf(), tg.zeros(SHAPE), []
    y = x.reshape(SHAPE)
    for k in range(3):
        v[0, k] = 1.0
        rows += tg.autograd.grad(y, x, v, retain_graph=True)
        v[0, k] = 0.0
    assert [row[:3].tolist() for row in rows] == np.eye(3).tolist()


def test_weights_that_others_know_are_copied_at_once():
    array = np.ones(SHAPE)
    for w in (tg.from_numpy(array), tg.ones(SHAPE), tg.ones(2, *SHAPE)[0]):
        known = w.numpy()
        g = pulled(leaf(), w)
        assert address(g) != address(w)
        known.fill(5.0)
        assert tg.equal(g, tg.ones(N))
    x, w = leaf(), tg.ones(SHAPE)
    y = (x.reshape(SHAPE) * w).sum()  # which has saved w
    g = pulled(x, w)
    assert address(g) != address(w)
    y.backward()


def test_several_gradients_share_weights_until_they_are_used():
    a, b, w = leaf(), leaf(), weights().reshape(-1).clone()
    before = w.clone()
    (a + b).backward(w)
    a.grad.zero_()
    assert tg.equal(b.grad, before)
    assert tg.equal(w, before)
    b.grad.mul_(2.0)
    assert tg.equal(w, before)
    c, d, w = (
        tg.ones(100, 200, requires_grad=True),
        tg.ones(100, 200, requires_grad=True),
        weights(),
    )
    before = w.clone()
    tg.cat([c, d]).backward(w)
    w.zero_()
    assert tg.equal(tg.cat([c.grad, d.grad]), before)


def test_hooks_get_memory_of_their_own():
    x, w = leaf(), weights()
    before = w.clone()
    x.register_hook(lambda g: g.zero_())
    pulled(x, w)
    assert tg.equal(w, before)
    assert not x.grad.any()
    x, w = leaf(), weights()
    before = w.clone()
    x.register_post_accumulate_grad_hook(lambda t: (t.grad.zero_(), None)[1])
    pulled(x, w)
    assert tg.equal(w, before)


def test_they_are_used_as_any_other():
    x, w = leaf(), weights()
    g = pulled(x, w)
    again = pickle.loads(pickle.dumps(g))
    assert tg.equal(again, w.ravel())
    g = pulled(leaf(), w)
    assert g.is_leaf
    assert not g.requires_grad
    assert tg.equal(tg.func.vmap(lambda t: t * 2)(g), 2 * w.ravel())
    g = pulled(leaf(), w)
    assert tg.jit(lambda t: t.sum())(g).item() == pytest.approx(w.sum().item())
    g = pulled(leaf(), w)
    assert tg.grad(lambda t: (t * t).sum())(w).shape == w.shape
    assert repr(g).startswith("tensor([1.")
    optimizer = tg.optim.SGD([x := leaf()], 0.1)
    pulled(x, w)
    optimizer.step()
    assert tg.allclose(x, 1 - 0.1 * w.ravel())
    y = tg.ones(SHAPE, requires_grad=True)
    y.data = w
    pulled(leaf(), w)
    w.data = tg.zeros(SHAPE)
    assert tg.equal(y.detach(), weights())


@pytest.mark.parametrize(
    "name", [n for n in dir(inplace_methods) if n.endswith("_") and n[0] != "_"]
)
def test_each_method_in_place_takes_a_copy_first(name):
    method = getattr(tg.Tensor, name, None)
    if method is None:
        return
    x, w = leaf(), weights()
    before = w.clone()
    g = pulled(x, w)
    for args in ((), (0.5,), (tg.full((N,), 0.5),), (0, tg.tensor([0]), 0.5), (0.5, 0.6)):
        try:
            method(g, *args)
        except (TypeError, RuntimeError, ValueError, IndexError, AttributeError):
            continue
        break
    assert tg.equal(w, before)
