"""Pooling: what documents promise, and sweeps through it; `tests/peers` compares values."""

import numpy as np
import pytest

import tapegrad as tg

F = tg.nn.functional


def test_the_gradient_goes_to_the_first_of_equal_elements():
    x = tg.tensor([[1.0, 1.0, 0.0, 2.0]], requires_grad=True)
    F.max_pool1d(x, 2).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize("odd", [0.0, float("nan"), -float("inf")])
def test_windows_of_two_by_two_say_what_longer_ones_do(odd):
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (2, 3, 6, 7)).astype("f8")
    x[rng.random(x.shape) < 0.4] = odd
    for how in ({"stride": 2}, {"stride": 1}, {"stride": 2, "padding": 1}):
        y, at = F.max_pool2d(tg.tensor(x), 2, return_indices=True, **how)
        pad = how.get("padding", 0)
        for v, i, j in np.ndindex(2, *y.shape[2:]):
            rows, columns = [
                range(max(k * how["stride"] - pad, 0), min(k * how["stride"] - pad + 2, n))
                for k, n in ((i, 6), (j, 7))
            ]
            places = [7 * r + c for r in rows for c in columns]
            flat = x[v, 0].ravel()[places]
            nans = np.flatnonzero(np.isnan(flat))
            best = places[nans[-1] if nans.size else int(np.argmax(flat))]
            assert at[v, 0, i, j].item() == best


@pytest.mark.parametrize("stride", [1, 2])
def test_means_of_two_by_two(stride):
    x = tg.tensor(np.random.default_rng(0).random((2, 3, 6, 7)), requires_grad=True)
    y = F.avg_pool2d(x, 2, stride)
    parts = [
        x[..., i : i + 5 : stride, j : j + (7 - 2) // stride * stride + 1 : stride]
        for i in (0, 1) for j in (0, 1)
    ]  # fmt: skip
    z = sum(parts[1:], parts[0]) / 4
    np.testing.assert_allclose(y.tolist(), z.tolist(), rtol=1e-12)
    grads = [tg.autograd.grad((t**2).sum(), x)[0].tolist() for t in (y, z)]
    np.testing.assert_allclose(*grads, rtol=1e-12)


def test_indices_count_within_an_image():
    x = tg.arange(32.0).reshape(2, 1, 4, 4)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert at.dtype is tg.int64
    assert at[1].tolist() == [[[5, 7], [13, 15]]]
    np.testing.assert_array_equal(F.max_unpool2d(y, at, 2).numpy().max(axis=(1, 2, 3)), [15, 31])


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d", "lp_pool2d"])
def test_second_order_vmap_and_jit(name):
    how = (2.0, 2) if name == "lp_pool2d" else (3, 2, 1)

    def f(x):
        return (getattr(F, name)(x, *how) ** 3).sum()

    x = tg.tensor(np.random.default_rng(0).random((2, 3, 6, 6)) + 1, requires_grad=True)
    assert tg.autograd.gradcheck(f, (x,))
    assert tg.autograd.gradgradcheck(f, (x,))
    expected = [f(part).item() for part in x]
    np.testing.assert_allclose(tg.vmap(f)(x).tolist(), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.jit(f)(x).item(), sum(expected), rtol=1e-12)
    (g,) = tg.autograd.grad(f(x), x)
    np.testing.assert_allclose(tg.jit(tg.grad(f))(x).tolist(), g.tolist(), rtol=1e-12)


def test_infinity_stays_in_its_windows():
    x = tg.tensor([[1.0, float("inf"), 3.0, 5.0]])
    assert F.avg_pool1d(x, 2).tolist() == [[float("inf"), 4.0]]


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_any_layout(dtype):
    base = tg.tensor(np.random.default_rng(0).random((8, 8, 3, 2)), dtype=dtype)
    turned = base.permute(3, 2, 1, 0)[..., ::2]
    for pool in (F.max_pool2d, F.avg_pool2d):
        y = pool(turned, 2)
        assert y.dtype is dtype
        assert y.tolist() == pool(turned.clone().contiguous(), 2).tolist()


def test_threads_divide_the_images():
    x = tg.tensor(np.random.default_rng(0).random((16, 8, 32, 32)))
    before = tg.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            tg.set_num_threads(threads)
            x.requires_grad_()
            y = F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1)
            found.append([y.detach().numpy(), tg.autograd.grad(y.sum(), x)[0].numpy()])
    finally:
        tg.set_num_threads(before)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_integers_are_refused():
    with pytest.raises(RuntimeError, match=r"`max_pool1d` takes floating-point numbers"):
        F.max_pool1d(tg.ones(1, 4, dtype=tg.int64), 2)


def test_what_undoes_maxima_under_transforms():
    x = np.random.default_rng(0).standard_normal((2, 1, 1, 4, 4))

    def there_and_back(a):
        return F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2)

    expected = [there_and_back(tg.tensor(v)).numpy() for v in x]
    np.testing.assert_array_equal(tg.vmap(there_and_back)(x), expected)
    np.testing.assert_array_equal(tg.jit(there_and_back)(x[0]), expected[0])
