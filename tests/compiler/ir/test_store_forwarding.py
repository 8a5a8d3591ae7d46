"""Values that are stored in arrays are forwarded to where they are read."""

import numpy as np
import pytest

import tapegrad as tg

pytestmark = pytest.mark.tapegrad_only("about programs")

X = np.array([0.3, 0.5, 0.2, -0.7])


def checked(f, x=X, operations=None):
    """A function and its gradient, compiled, beside the function as it is; and the program."""
    compiled, gradient = tg.jit(f), tg.jit(tg.grad(f))
    np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(gradient(x), tg.grad(f)(x), rtol=1e-9, atol=1e-12)
    texts = [lowered.as_text() for lowered in (compiled.lower(x), gradient.lower(x))]
    for text in texts if operations is not None else ():
        assert text.count("assign") <= operations
    return [lowered.notes for lowered in (compiled.lower(x), gradient.lower(x))]


def autoregression(x):
    y = np.zeros_like(x, shape=300)
    y[0] = x[0]
    for k in range(1, 300):
        y[k] = x[1] * y[k - 1] + 0.1 * np.sin(y[k - 1])
    return np.sum(y**2)


def rows(x):
    ys = np.zeros_like(x, shape=(201, 3))
    ys[0] = x[:3]
    for k in range(200):
        y = ys[k]
        ys[k + 1] = y + 0.01 * np.stack([y[1] - y[0], y[0] * y[2], x[3] * y[1]])
    return np.sum(ys[-1] ** 2) + np.mean(ys[:, 0])


def backwards(x):
    y = np.zeros_like(x, shape=250)
    y[-1] = x[0]
    for k in range(248, -1, -1):
        y[k] = x[1] * y[k + 1] + np.cos(x[2])
    return np.sum(y * np.arange(250.0))


def counted(x):
    y = np.zeros_like(x, shape=200)
    y[0] = x[0]
    for k in range(1, 200):
        y[k] = y[k - 1]
        y[k] *= x[1]
        y[k] += x[2]
    return np.sum(y)


@pytest.mark.parametrize("f", [autoregression, rows, backwards, counted])
def test_histories_that_are_written_in_place_are_loops(f):
    for notes in checked(f, operations=0):
        assert any("re-rolled" in note and "not" not in note for note in notes), notes


def triangular(x):
    a = np.outer(x, x) + 5.0 * np.eye(4)
    for k in range(4):
        for i in range(k + 1, 4):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, 4):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return np.sum(np.log(np.diag(a))) + np.sum(a[3])


def shortest(x):
    d = np.full_like(x, 9.0, shape=(5, 5))
    d[0, 0] = 0.0
    for i in range(1, 5):
        for j in range(1, 5):
            before = np.minimum(np.minimum(d[i - 1, j], d[i, j - 1]), d[i - 1, j - 1])
            d[i, j] = (x[i - 1] - np.cos(j)) ** 2 + before
    return d[4, 4]


def sweeps(x):
    """Which reads all of the array between its writes."""
    a, y = np.diag(x) + 3.0 * np.eye(4) + 0.1, np.zeros_like(x)
    for _ in range(4):
        for i in range(4):
            y[i] = (1.0 - a[i] @ y + a[i, i] * y[i]) / a[i, i]
    return np.sum(y**3)


def copies(x):
    y = np.zeros_like(x, shape=12)
    for k in range(12):
        y[k] = x[k % 4] * (k + 1)
    z = y.copy()
    for k in range(0, 12, 2):
        z[k] = y[k] * y[k + 1]
    y[3] = z[2]
    y[3:5] = z[3]
    y[4] += x[0]
    return np.sum(y * z) + y[3] * z[-12]


def parts_of_entries(x):
    y = np.zeros_like(x, shape=(10, 2, 3))
    for k in range(10):
        y[k] = x[:3] * k
        y[k, 1] = x[3] * y[k, 0]
        y[k, 0, 2] = np.sum(y[k, 1, :2])
    return np.sum(y**2) + y[4, 1, 2] * y[-1, -1, -1]


def half_written(x):
    y = np.arange(20.0) * x[0]
    for k in range(3, 15):
        y[k] = x[1] * y[k - 1] + y[k + 4]
    return np.sum(y**2)


def of_another_type(x):
    y = np.zeros(12, np.float32) * np.float32(1) + (x[0] * 0.0).astype(np.float32)
    for k in range(12):
        y[k] = x[k % 4] / (k + 1)
    return np.sum(y.astype(float) ** 2)


def stopped(x):
    y = np.zeros_like(x, shape=10)
    for k in range(10):
        y[k] = tg.stop_gradient(x[0]) * x[1] + k
    return np.sum(tg.stop_gradient(y) * y) + y[3]


@pytest.mark.parametrize(
    "f",
    [
        triangular, shortest, sweeps, copies, parts_of_entries, half_written, of_another_type,
        stopped,
    ],
)  # fmt: skip
def test_values_are_those_of_the_function(f):
    if f is of_another_type:
        np.testing.assert_allclose(tg.jit(f)(X), f(X), rtol=1e-6)
        np.testing.assert_allclose(tg.jit(tg.grad(f))(X), tg.grad(f)(X), rtol=1e-5)
        return
    checked(f)


def drawn(seed):
    """A program that writes and reads parts of two arrays in any order."""
    rng = np.random.default_rng(seed)
    shape = ((9,), (9, 3), (4, 5))[rng.integers(3)]
    steps = []
    for _ in range(rng.integers(10, 60)):
        kind = rng.choice(["write"] * 8 + ["row", "slice", "whole", "copy", "scale"])
        key = tuple(int(rng.integers(-n, n)) for n in shape)
        other = tuple(int(rng.integers(-n, n)) for n in shape)
        steps.append((kind, key, other, int(rng.integers(2)), float(rng.uniform(0.5, 1.0))))

    def f(x):
        arrays = [np.ones_like(x, shape=shape) * x[0], np.zeros_like(x, shape=shape)]
        total = 0.0
        for kind, key, other, which, by in steps:
            a, b = arrays[which], arrays[1 - which]
            if kind == "write":
                a[key] = by * np.sin(b[other] + a[other]) + x[1]
            elif kind == "row":
                a[key[0]] = by * b[other[0]] + x[2]
            elif kind == "slice":
                a[1:3] = by * x[3]
            elif kind == "whole":
                total = total + by * np.sum(np.cos(a))
            elif kind == "copy":
                arrays[which] = a.copy()
                arrays[which][key] += b[other]
            else:
                a *= by
        return total + np.sum(arrays[0] * arrays[1]) + np.sum(arrays[1])

    return f


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    checked(drawn(seed))
