"""Arrays of which NumPy asks a Tensor: `np.array(rows, like=t)`, and others that take `like`."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("NumPy does not ask PyTorch")


def turned(x):
    turn = np.array([[np.cos(x[0]), -np.sin(x[0])], [np.sin(x[0]), 1.0]], like=x)
    v = np.zeros(3, like=x)
    v[0] = x[1]
    v[1:] += x[2]
    ones = np.ones((2,), like=x)
    ones *= x[1]
    pair = np.asarray([x, 2 * x], like=x)
    return np.sum(turn @ turn) + v @ v * np.sum(ones) + np.sum(np.sin(pair))


def test_in_every_transform():
    x = np.array([0.3, -1.2, 0.7])
    slope = tg.grad(turned)(x)
    steps = [(turned(x + h) - turned(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, steps, rtol=1e-6)
    np.testing.assert_allclose(tg.jit(tg.grad(turned))(x), slope, rtol=1e-12)
    np.testing.assert_allclose(tg.vmap(tg.grad(turned))(np.stack([x, x]))[1], slope, rtol=1e-12)
    np.testing.assert_allclose(tg.jvp(turned, (x,), (x,))[1], slope @ x, rtol=1e-12)
    second = tg.hessian(turned)(x)
    np.testing.assert_allclose(tg.jit(tg.hessian(turned))(x), second, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(second, second.T, atol=1e-12)


def test_shapes_and_dtypes():
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    for rows in ([[1, 2], [3, 4]], [], 3.0, [[[1.0], [2.0]]], (1, 2)):
        found = np.array(rows, like=t)
        assert isinstance(found, tg.Tensor)
        assert found.tolist() == np.array(rows).tolist()
    assert np.array([t, [3.0, 4.0]], like=t).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert np.array([[t], [t]], like=t).shape == (2, 1, 2)
    assert np.array([t[0], 2], dtype=np.float32, like=t).dtype == tg.float32
    assert np.array([1, 2], like=t).dtype == tg.int64
    assert np.array(t, ndmin=3, like=t).shape == (1, 1, 2)
    assert np.zeros((2, 3), np.int32, like=t).dtype == tg.int32
    assert np.empty(2, like=t).shape == (2,)


def test_an_array_is_a_copy_and_asarray_is_not():
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    copy = np.array(t, like=t)
    copy += 1
    assert t.tolist() == [1.0, 2.0]
    assert np.asarray(t, like=t) is t


def test_rows_of_unlike_lengths_are_refused():
    t = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="need the same shape"):
        np.array([[t[0]], [t[1], t[2]]], like=t)
