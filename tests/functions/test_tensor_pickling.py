"""`copy`, `pickle` and `format` of Tensors, outside and inside of transforms."""

import copy
import pickle

import numpy as np
import pytest

import tapegrad as tg

X = np.array([1.0, 2.0, 3.0])


def test_leaves_are_copied_as_leaves():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    shallow, deep, stored = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    for t in (shallow, deep, stored):
        assert t is not x
        assert t.is_leaf
        assert t.requires_grad
        assert t.tolist() == [1.0, 2.0]
    shallow.detach()[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert deep.tolist() == stored.tolist() == [1.0, 2.0]
    assert not copy.deepcopy(x.detach()).requires_grad
    with pytest.raises(RuntimeError):
        copy.deepcopy(x * 2)


@pytest.mark.tapegrad_only("PyTorch pickles what was computed, and forgets from what")
def test_what_was_computed_says_what_to_do():
    y = tg.tensor([1.0], requires_grad=True) * 2
    for work in (copy.deepcopy, copy.copy, pickle.dumps):
        with pytest.raises(RuntimeError, match=r"leaf.*: use `t\.detach\(\)`"):
            work(y)
    assert pickle.loads(pickle.dumps(y.detach())).tolist() == [2.0]


@pytest.mark.tapegrad_only("dtypes of NumPy")
def test_gradients_and_types_are_copied():
    for dtype in (tg.float64, tg.float32, tg.int64, tg.bool, tg.complex128):
        t = tg.ones(2, 3).to(dtype).T
        for again in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
            assert again.dtype == dtype
            assert again.tolist() == t.tolist()
            assert again.stride() == t.stride()
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    deep = copy.deepcopy(x)
    assert deep.grad.tolist() == [2.0, 4.0]
    assert deep.grad is not x.grad


def test_numbers_are_formatted_as_numbers():
    assert f"{tg.tensor(2.0):.2f}" == "2.00"
    assert f"{tg.tensor(2.0, requires_grad=True):.1f}" == "2.0"


def twice(make):
    return lambda x: ((make(x) * x) ** 2).sum()


@pytest.mark.tapegrad_only("transforms over arrays")
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x])[0]])
def test_transforms_follow_copies(make):
    f, slope = twice(make), 4 * X**3
    np.testing.assert_allclose(tg.grad(f)(X), slope)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(X), slope)
    np.testing.assert_allclose(tg.grad(tg.jit(f))(X), slope)
    np.testing.assert_allclose(tg.hessian(f)(X), np.diag(12 * X**2))
    np.testing.assert_allclose(tg.jvp(f, (X,), (np.ones(3),))[1], slope.sum())
    np.testing.assert_allclose(tg.vmap(f)(np.stack([X, 2 * X])), [98.0, 16 * 98.0])
    assert tg.jit(f)(X) == 98.0


@pytest.mark.tapegrad_only("transforms over arrays")
def test_shallow_copies_share_memory_and_deep_ones_do_not():
    def f(x):
        y = x * 1
        shallow, deep = copy.copy(y), copy.deepcopy(y)
        y += 1
        return shallow * 10 + deep

    for g in (f, tg.jit(f), lambda x: tg.jvp(f, (x,), (x,))[0]):
        found = np.asarray(g(tg.tensor(X) if g is f else X))
        np.testing.assert_array_equal(found, (X + 1) * 10 + X)


@pytest.mark.tapegrad_only("transforms over arrays")
def test_pickling_inside_a_transform_is_refused():
    f = lambda x: (pickle.loads(pickle.dumps(x)) ** 2).sum()
    for g in (tg.jit(f), tg.grad(f), tg.vmap(lambda x: f(x[None]))):
        with pytest.raises(RuntimeError, match="cannot be pickled inside a transform"):
            g(X)


@pytest.mark.tapegrad_only("transforms over arrays")
def test_a_text_is_a_guard():
    f = tg.jit(lambda x: x * 10 if f"{x:.1f}" == "2.0" else x * 100)
    assert [f(x) for x in (2.0, 3.0, 2.0)] == [20.0, 300.0, 20.0]
    assert f.cache_info().traces == 2
    filled = tg.jit(
        lambda x: (lambda y: x * 10 if f"{y.add_(x):.1f}" == "2.0" else -x)(tg.zeros(()))
    )
    assert [filled(x) for x in (2.0, 3.0)] == [20.0, -3.0]
    slope = tg.jit(tg.grad(lambda x: x * 10 if f"{x:.1f}" == "2.0" else x * 100))
    assert [slope(x) for x in (2.0, 3.0)] == [10.0, 100.0]
    assert tg.jvp(lambda x: x if f"{x:.1f}" == "2.0" else -x, (2.0,), (1.0,)) == (2.0, 1.0)
    with pytest.raises(RuntimeError):
        tg.vmap(lambda x: x if f"{x:.1f}" == "2.0" else -x)(X)
