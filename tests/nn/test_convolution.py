"""Convolutions and patches of `nn.functional`: values, derivatives, samples, refusals."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script", "ignore:Using padding=.same. with even kernel"
)

CALLS = {
    "conv1d": (lambda F, x, w, b: F.conv1d(x, w, b), (2, 3, 6), (4, 3, 3), (4,)),
    "conv1d, a stride": (lambda F, x, w, b: F.conv1d(x, w, b, 2, 1), (2, 3, 6), (4, 3, 3), (4,)),
    "conv1d, one example": (lambda F, x, w, b: F.conv1d(x, w, b), (3, 6), (4, 3, 3), (4,)),
    "conv2d": (lambda F, x, w, b: F.conv2d(x, w, b), (2, 2, 4, 5), (3, 2, 3, 2), (3,)),
    "conv2d, groups": (
        lambda F, x, w, b: F.conv2d(x, w, b, (1, 2), (1, 0), (2, 1), 2),
        (1, 4, 6, 5), (4, 2, 3, 2), (4,),
    ),
    "conv2d, same": (
        lambda F, x, w, b: F.conv2d(x, w, b, padding="same", dilation=(1, 2)),
        (1, 2, 4, 5), (2, 2, 2, 3), (2,),
    ),
    "conv3d": (lambda F, x, w, b: F.conv3d(x, w, b), (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,)),
    "conv_transpose1d": (
        lambda F, x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), (2, 3, 4), (3, 2, 3), (2,)
    ),
    "conv_transpose2d": (
        lambda F, x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 2, (1, 2)),
        (1, 4, 3, 3), (4, 1, 3, 2), (2,),
    ),
    "conv_transpose3d": (
        lambda F, x, w, b: F.conv_transpose3d(x, w, b), (1, 1, 2, 2, 2), (1, 2, 2, 1, 2), (2,)
    ),
    "unfold and fold": (
        lambda F, x, w, b: F.fold(F.unfold(x, (2, 1), 1, 1, 2) ** 2, (4, 5), (2, 1), 1, 1, 2),
        (2, 2, 4, 5), (1,), (1,),
    ),
}  # fmt: skip
every = pytest.mark.parametrize("name", CALLS)


def operands(rng, shapes):
    return [rng.standard_normal(shape) for shape in shapes]


@every
def test_gradients_of_both_orders(tg, leaf, rng, name):
    call, *shapes = CALLS[name]
    leaves = [leaf(x.tolist()) for x in operands(rng, shapes)]

    def function(*xs):
        return call(tg.nn.functional, *xs)

    assert tg.autograd.gradcheck(function, leaves, check_forward_ad=True)
    assert tg.autograd.gradgradcheck(function, leaves)


@every
def test_under_transforms(tg, rng, name):
    call, *shapes = CALLS[name]
    xs = [tg.tensor(x.tolist()) for x in operands(rng, shapes)]

    def function(*xs):
        return call(tg.nn.functional, *xs)

    expected = function(*xs).tolist()
    for which in ((0, None, None), (None, 0, None), (0, 0, 0)):
        batches = [tg.stack([x, 2 * x]) if d == 0 else x for x, d in zip(xs, which, strict=True)]
        found = tg.func.vmap(function, in_dims=which)(*batches)
        again = [2 * x if d == 0 else x for x, d in zip(xs, which, strict=True)]
        np.testing.assert_allclose(found[0].tolist(), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            found[1].tolist(), function(*again).tolist(), rtol=1e-12, atol=1e-12
        )

    def slopes(*xs):
        return tg.func.grad(lambda *xs: (function(*xs) ** 2).sum(), (0, 1, 2))(*xs)

    batches = [tg.stack([x, 2 * x]) for x in xs]
    found = tg.func.vmap(slopes)(*batches)
    for k in (0, 1):
        for mine, alone in zip(found, slopes(*[b[k] for b in batches]), strict=True):
            np.testing.assert_allclose(mine[k].tolist(), alone.tolist(), rtol=1e-11, atol=1e-11)


@pytest.mark.tapegrad_only("tg.jit")
@every
def test_compiled(tg, rng, name):
    call, *shapes = CALLS[name]
    xs = [tg.tensor(x.tolist()) for x in operands(rng, shapes)]

    def loss(*xs):
        return (call(tg.nn.functional, *xs) ** 2).sum()

    found = tg.jit(tg.func.grad(loss, (0, 1, 2)))(*xs)
    for mine, plain in zip(found, tg.func.grad(loss, (0, 1, 2))(*xs), strict=True):
        np.testing.assert_allclose(mine.tolist(), plain.tolist(), rtol=1e-11, atol=1e-11)


def test_against_sums_written_out(tg, rng):
    x, w = rng.standard_normal((2, 4, 7, 6)), rng.standard_normal((6, 2, 3, 2))
    found = tg.nn.functional.conv2d(
        tg.tensor(x.tolist()), tg.tensor(w.tolist()), None, (2, 1), (1, 2), (1, 3), 2
    ).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    assert found.shape == (2, 6, 4, 7)
    for n, o, i, j in np.ndindex(*found.shape):
        channels = slice(2 * (o // 3), 2 * (o // 3) + 2)
        patch = padded[n, channels, 2 * i : 2 * i + 3, j : j + 4 : 3]
        assert found[n, o, i, j] == pytest.approx((patch * w[o]).sum(), rel=1e-12)


def test_a_function_of_ones_own_whose_gradients_are_convolutions(tg, rng):
    """The custom convolution that people learn `autograd.Function` from."""
    F = tg.nn.functional

    class MyConv2D(tg.autograd.Function):
        @staticmethod
        def forward(ctx, X, weight):
            ctx.save_for_backward(X, weight)
            return F.conv2d(X, weight)

        @staticmethod
        def backward(ctx, grad_out):
            X, weight = ctx.saved_tensors
            grad_weight = F.conv2d(X.transpose(0, 1), grad_out.transpose(0, 1)).transpose(0, 1)
            return F.conv_transpose2d(grad_out, weight), grad_weight

    weight = tg.tensor(rng.random((5, 3, 3, 3)).tolist(), requires_grad=True, dtype=tg.float64)
    X = tg.tensor(rng.random((10, 3, 7, 7)).tolist(), requires_grad=True, dtype=tg.float64)
    assert tg.autograd.gradcheck(MyConv2D.apply, (X, weight))
    y = MyConv2D.apply(X, weight)
    label = tg.tensor(rng.standard_normal(tuple(y.shape)).tolist(), dtype=tg.float64)
    loss = F.mse_loss(y, label)
    assert weight.grad is None
    loss.backward()
    own = weight.grad.clone(), X.grad.clone()
    weight.grad = X.grad = None
    F.mse_loss(F.conv2d(X, weight), label).backward()
    for mine, built_in in zip(own, (weight.grad, X.grad), strict=True):
        np.testing.assert_allclose(mine.tolist(), built_in.tolist(), rtol=1e-12, atol=1e-14)


@pytest.mark.tapegrad_only("PyTorch multiplies zeros by infinities")
def test_a_zero_adjoint_contributes_zero(tg):
    F = tg.nn.functional
    x = tg.tensor([[[1.0, float("inf"), 2.0, 3.0]]], requires_grad=True)
    w = tg.tensor([[[1.0, float("nan")]]], requires_grad=True)
    y = F.conv1d(x, w)
    y.backward(tg.tensor([[[0.0, 0.0, 1.0]]]))
    assert w.grad.tolist() == [[[2.0, 3.0]]]
    np.testing.assert_array_equal(x.grad.numpy(), [[[0.0, 0.0, 1.0, np.nan]]])


@pytest.mark.tapegrad_only("PyTorch multiplies zeros by infinities")
def test_a_zero_adjoint_contributes_zero_in_complex_numbers(tg):
    x = tg.tensor([[[1.0 + 1j, float("inf"), 2.0, 3.0]]], requires_grad=True)
    w = tg.tensor([[[1.0, 2.0 - 1j]]], requires_grad=True)
    y = tg.nn.functional.conv1d(x, w)
    y.backward(tg.tensor([[[0.0, 0.0, 1j]]]))
    np.testing.assert_array_equal(w.grad.numpy(), [[[2j, 3j]]])


def test_no_images(tg):
    x = tg.zeros(0, 2, 4, 4, requires_grad=True)
    w = tg.ones(3, 2, 3, 3, requires_grad=True)
    y = tg.nn.functional.conv2d(x, w)
    assert y.shape == (0, 3, 2, 2)
    y.sum().backward()
    assert not w.grad.any()
    assert x.grad.shape == (0, 2, 4, 4)


REFUSED = {
    "unknown padding": lambda F, x, w: F.conv2d(x, w, padding="x"),
    "stride": lambda F, x, w: F.conv2d(x, w, padding="same", stride=2),
    "padding is at least 0": lambda F, x, w: F.conv2d(x, w, padding=-1),
    "2 for the dimensions": lambda F, x, w: F.conv2d(x, w, stride=(1, 1, 1)),
    "take 8 channels": lambda F, x, w: F.conv2d(x, w, groups=2),
    "do not fall into 4 groups": lambda F, x, w: F.conv2d(x, w, groups=4),
    "do not fit": lambda F, x, w: F.conv2d(x, w, dilation=5),
    "got the shape": lambda F, x, w: F.conv2d(x[0, 0], w),
    "filters have 4 dimensions": lambda F, x, w: F.conv2d(x, w[0]),
    "convert": lambda F, x, w: F.conv2d(x, w.float()),
    "one number for each of 6 channels": lambda F, x, w: F.conv2d(x, w, x[0, 0, 0, :3]),
    "take 6 channels": lambda F, x, w: F.conv_transpose2d(x, w),
    "output_padding": lambda F, x, w: F.conv_transpose2d(x, w[:4], output_padding=1),
    "leaves nothing": lambda F, x, w: F.conv_transpose2d(x[:, :, :1], w[:4], padding=3),
    "patches of": lambda F, x, w: F.unfold(x, 9),
    "no multiple": lambda F, x, w: F.fold(x[0], (5, 6), 3),
    "and not": lambda F, x, w: F.fold(w[0, 0].reshape(9, 1), (5, 6), 3),
}


@pytest.mark.tapegrad_only("our words; `tests/peers` compares the types")
@pytest.mark.parametrize("words", REFUSED)
def test_refusals(tg, words):
    with pytest.raises(RuntimeError, match=words.replace("unknown ", "")):
        REFUSED[words](tg.nn.functional, tg.ones(2, 4, 5, 6), tg.ones(6, 4, 3, 3))
    with pytest.raises(TypeError, match="stride is an int"):
        tg.nn.functional.conv1d(tg.ones(1, 1, 3), tg.ones(1, 1, 1), stride=1.5)
