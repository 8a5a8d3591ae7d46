"""Tensors that a traced function changes in place: its own, and those from outside."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([1.0, 2.0, 3.0])


def changing(change):
    t = tg.zeros(3)

    def f(x):
        change(t, x)
        return x + t

    return f, t


CHANGES = {
    "add_": lambda t, x: t.add_(1),
    "copy_": lambda t, x: t.copy_(x),
    "setitem": lambda t, x: t.__setitem__(0, x[0]),
    "a constant": lambda t, x: t.__setitem__(0, 5.0),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_changing_a_tensor_from_outside_is_refused(change):
    f, t = changing(CHANGES[change])
    with pytest.raises(RuntimeError, match="changes a Tensor in place that was made outside"):
        tg.jit(f)(X)
    assert type(t) is tg.Tensor
    assert (t + 1).shape == (3,)
    if change in ("copy_", "setitem"):  # the trace never wrote into it
        assert t.tolist() == [0.0, 0.0, 0.0]


def test_a_tensor_from_outside_survives_a_failure():
    t = tg.zeros(3)

    def f(x):
        t.copy_(x)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        tg.jit(f)(X)
    assert (t + 1).tolist() == [1.0, 1.0, 1.0]


def test_what_was_made_inside_may_be_changed_and_kept():
    kept = []
    outside = tg.tensor([1.0, 1.0, 1.0])

    def f(x):
        cache, own = tg.zeros(3), outside * 2
        cache += 1
        cache[0] = 5
        own += 1
        traced = tg.ones(3)
        traced[1] = x[1]
        other = outside.clone()
        other[2] = x[2]
        if not kept:
            kept.extend([cache, traced])
        return x * cache + own + traced + other, own, cache, other

    for _ in range(2):
        found = tg.jit(f)(X)
        np.testing.assert_array_equal(found[0], X * [5, 1, 1] + 3 + [1, 2, 1] + [1, 1, 3])
        np.testing.assert_array_equal(found[1], np.full(3, 3.0))
        np.testing.assert_array_equal(found[2], [5, 1, 1])
        np.testing.assert_array_equal(found[3], [1, 1, 3])
    assert outside.tolist() == [1.0, 1.0, 1.0]


def test_views_of_what_was_made_inside_may_be_changed_and_returned():
    def f(x):
        y = np.zeros_like(x)
        rows = y.reshape(3, 1)
        rows[0] += 2.0
        return y, rows, np.sum(x)

    found = tg.jit(f)(X)
    np.testing.assert_array_equal(found[0], [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(found[1], [[2.0], [0.0], [0.0]])


def test_a_function_that_calls_itself_may_change_its_own():
    outside = tg.zeros(3)

    def f(x):
        y = outside * 1

        def put(k):
            if k < 3:
                y[k] = x[k]
                put(k + 1)

        put(0)
        return y

    np.testing.assert_array_equal(tg.jit(f)(X), X)


def test_gradients_of_functions_that_change_what_is_outside_are_refused_too():
    f, _ = changing(CHANGES["add_"])
    with pytest.raises(RuntimeError, match="made outside"):
        tg.jit(tg.grad(lambda x: f(x).sum()))(X)


def test_what_was_kept_of_a_trace_cannot_be_returned_or_passed_on():
    kept = []
    tg.jit(lambda x: (kept.append(x * 2), x)[1])(X)
    for f, x in ((lambda x: kept[0], X), (lambda x: x, kept[0]), (lambda x: x + kept[0], X)):
        with pytest.raises(RuntimeError, match=r"is used after that has ended: return it"):
            tg.jit(f)(x)


@pytest.mark.parametrize("transform", [tg.jit, tg.vmap, lambda f: lambda x: tg.jvp(f, (x,), (x,))])
def test_transforms_do_not_follow_other_threads(transform):
    def f(x):
        with ThreadPoolExecutor(1) as other:
            return other.submit(lambda: x * 2).result()

    with pytest.raises(RuntimeError, match=r"`mul`: .* is used in another thread"):
        transform(f)(X)
