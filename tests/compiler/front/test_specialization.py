"""What a compiled function returns: the memory of its results."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("no counterpart in PyTorch")

X = np.array([1.0, 2.0, 3.0])


def _pairs():
    kept = np.array([4.0, 5.0, 6.0])
    return {
        "one computation": lambda x: (x * 2, x * 2),
        "one object": lambda x: (lambda y: (y, y))(x * 2),
        "an argument": lambda x: (x, x),
        "constants": lambda x: (tg.zeros_like(x), tg.zeros_like(x)),
        "from outside": lambda x: (kept, kept),
        "gradients": tg.grad(lambda w, b: ((w + b) ** 2).sum(), argnums=(0, 1)),
        "a view": lambda x: (lambda y: (y, y[1:]))(x * 2),
    }


@pytest.mark.parametrize("case", list(_pairs()))
@pytest.mark.parametrize("kind", [np.array, tg.tensor])
def test_each_result_has_memory_of_its_own(case, kind):
    f = tg.jit(_pairs()[case])
    args = (kind(X), kind(X)) if case == "gradients" else (kind(X),)
    for _ in range(2):  # traced, and by the fast way
        first, second = f(*args)
        before = np.array(second)
        first += 1.0
        np.testing.assert_array_equal(np.asarray(second), before)
        assert not any(np.shares_memory(np.asarray(first), np.asarray(x)) for x in (*args, second))
    np.testing.assert_array_equal(np.asarray(args[0]), X)
    again = f(*args)
    np.testing.assert_array_equal(np.asarray(again[0]) + 1.0, np.asarray(first))


def test_gradients_of_equal_results_are_added_up():
    t = tg.tensor(X, requires_grad=True)
    a, b = tg.jit(lambda x: (x * 2, x * 2))(t)
    (a.sum() + 3 * b.sum()).backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.full(3, 8.0))


def test_the_default_dtype_is_part_of_the_signature():
    f = tg.jit(lambda x: x * tg.ones(3))
    x = X.astype(np.float32)
    try:
        for _ in range(2):
            tg.set_default_dtype(tg.float32)
            tg.set_default_dtype(tg.float64)
            assert [f(x).dtype for _ in range(2)] == ["float64"] * 2
            tg.set_default_dtype(tg.float32)
            assert [f(x).dtype for _ in range(2)] == ["float32"] * 2
    finally:
        tg.set_default_dtype(tg.float64)
    assert f.cache_info().traces == 2
    assert f._fast_call.__name__ == "<lambda>"  # there is a fast way in again
