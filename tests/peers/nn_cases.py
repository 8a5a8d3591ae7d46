"""Layers and activations of `nn.functional` as calls that PyTorch understands, too."""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from typing import Any

from tests.peers.torch_cases import case

# -- convolutions ----------------------------------------------------------------------------------

case(lambda t, x, w, b: t.nn.functional.conv1d(x, w, b), (2, 3, 6), (4, 3, 3), (4,), integers=False)
case(lambda t, x, w: t.nn.functional.conv1d(x, w, None, 2, 1), (3, 6), (4, 3, 3), integers=False)
case(lambda t, x, w: t.nn.functional.conv1d(x, w, padding="same", dilation=3), (1, 1, 7), (2, 1, 4), integers=False)
case(lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, (1, 2), (1, 0), (2, 1), 2), (2, 4, 6, 5), (4, 2, 3, 2), (4,), integers=False)
case(lambda t, x, w: t.nn.functional.conv2d(x, w, stride=3, padding="valid"), (1, 2, 7, 8), (1, 2, 2, 3), integers=False)
case(lambda t, x, w: t.nn.functional.conv2d(x, w, padding="same"), (2, 4, 5), (2, 2, 2, 4), integers=False)
case(lambda t, x, w: t.nn.functional.conv2d(x, w, groups=4), (1, 4, 3, 3), (8, 1, 2, 2), integers=False)
case(lambda t, x, w, b: t.nn.functional.conv3d(x, w, b, 1, (0, 1, 0)), (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (2,), integers=False)
case(lambda t, x, w: t.nn.functional.conv2d(x[:0], w), (1, 2, 3, 3), (2, 2, 2, 2), integers=False)
case(lambda t, x, w, b: t.nn.functional.conv_transpose1d(x, w, b, 2, 1, 1), (2, 3, 4), (3, 2, 3), (2,), integers=False)
case(lambda t, x, w, b: t.nn.functional.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 2, (1, 2)), (1, 4, 3, 3), (4, 1, 3, 2), (2,), integers=False)
case(lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, output_padding=1, dilation=2), (4, 3, 3), (4, 1, 3, 2), integers=False)
case(lambda t, x, w: t.nn.functional.conv_transpose3d(x, w, stride=2), (1, 1, 2, 2, 2), (1, 2, 2, 1, 2), integers=False)
case(lambda t, x: t.nn.functional.unfold(x, (2, 3), (2, 1), 1, (1, 2)), (2, 3, 4, 5), integers=False)
case(lambda t, x: t.nn.functional.fold(t.nn.functional.unfold(x, 2), (4, 5), 2), (2, 4, 5), integers=False)
case(lambda t, x: t.nn.functional.fold(x, 5, (2, 3), 2, 1, (1, 2)), (1, 12, 10), integers=False)

# -- activations -----------------------------------------------------------------------------------

A = (4, 6)
KINKED = "relu6 hardtanh hardshrink softshrink hardswish leaky_relu rrelu celu elu selu"
for name in f"{KINKED} silu mish gelu tanhshrink softsign logsigmoid".split():
    exec(f"case(lambda t, a: t.nn.functional.{name}(3.1 * a), A, integers=False)")
# PyTorch has the slope, a sixth, in single precision.
case(lambda t, a: t.nn.functional.hardsigmoid(3.1 * a.float()), A, integers=False, smooth=False)
case(lambda t, a: t.nn.functional.gelu(a, approximate="tanh"), A, integers=False)
case(lambda t, a: t.nn.functional.hardtanh(a, -0.5, 0.7), A)
case(lambda t, a: (t.nn.functional.celu(a, 0.75), t.nn.functional.elu(a, 1.5)), A, integers=False)
case(lambda t, a: (t.nn.functional.leaky_relu(a, -0.5), t.nn.functional.hardshrink(a, 1.0), t.nn.functional.softshrink(a, 0.3)), A, integers=False)
case(lambda t, a: t.nn.functional.rrelu(a, 0.3, 0.4), A, integers=False)
for name in "relu_ hardtanh_ leaky_relu_ rrelu_ elu_ selu_".split():
    exec(f"case(lambda t, a: t.nn.functional.{name}(a * 1), A, smooth=False, integers=False)")
case(lambda t, a: (t.nn.functional.celu_((a * 1).detach()), t.nn.functional.threshold_(a * 1, 0.2, 3.0)), A, smooth=False, integers=False)
case(lambda t, a: t.nn.functional.threshold(a * 1, 0.2, 3.0, True), A, smooth=False)
for shape in ((1,), (6,), ()):
    case(lambda t, a, w: t.nn.functional.prelu(a, w), A, shape, integers=False)
case(lambda t, a, w: t.nn.functional.prelu(a, w), (2, 3, 4), (3,), integers=False)
case(lambda t, a, w: t.nn.functional.prelu(a[0, 0], w), A, (1,), integers=False)
for dim in (0, 1, -1):
    case(lambda t, a, d=dim: t.nn.functional.glu(a, d), A, integers=False)
    case(lambda t, a, d=dim: (t.nn.functional.softmin(a, d), t.nn.functional.softmax(a, d, dtype=t.float64)), A, integers=False)
case(lambda t, a: (t.nn.functional.dropout(a, training=False), t.nn.functional.dropout(a, 1.0)), A, integers=False)
case(lambda t, a: (t.nn.functional.alpha_dropout(a), t.nn.functional.feature_alpha_dropout(a), t.nn.functional.alpha_dropout(a, 1.0, True)), A, integers=False)
case(lambda t, a: (t.nn.functional.dropout1d(a, 1.0), t.nn.functional.dropout2d(a[None], 0.5, False), t.nn.functional.dropout3d(a, 1.0)), A, integers=False)
case(lambda t, a: t.nn.functional.gumbel_softmax(a, hard=True).sum(1), A, smooth=False, integers=False)


# -- PyTorch's own at top level, and methods -------------------------------------------------------

case(lambda t, a: (t.dropout(a, 0.5, False), t.dropout(a, 1.0, True), t.alpha_dropout(a, 1.0, True), t.feature_alpha_dropout(a, 0.5, False), t.feature_dropout(a, 1.0, True)), A, integers=False)
case(lambda t, a: (t.dropout_(a * 1, 0.0, True), t.alpha_dropout_(a * 1, 0.5, False), t.feature_dropout_(a * 1, 0.5, False), t.feature_alpha_dropout_(a * 1, 0.5, False)), A, integers=False)
case(lambda t, a, w: (a.prelu(w), a.hardshrink(0.7), a.hardshrink(), t.prelu(a, w)), A, (6,), integers=False)
case(lambda t, a: (t.rrelu(a, 0.3, 0.4), t.rrelu_(a * 1), t.celu_(a * 1, 2.0), t.selu_(a * 1)), A, smooth=False, integers=False)
case(lambda t, a: t.adaptive_max_pool1d(a, 4), A, integers=False)
case(lambda t, a, w, b: t.batch_norm(a, w, b, None, None, True, 0.1, 0.01, False), (3, 4, 5), (4,), (4,), integers=False)
case(lambda t, a, w, b: t.instance_norm(a, w, b, None, None, True, 0.1, 0.01, False), (3, 4, 5), (4,), (4,), integers=False)
case(lambda t, w: (t.embedding(w, t.tensor([2, 0, 2])), t.embedding(w, t.tensor([[2, 0]]), 2)), (3, 4), integers=False)
case(lambda t, a: t.constant_pad_nd(a, (1, -2, 0, 1), 0.5), A)
case(lambda t, a, b: (t.rsub(a, b), t.rsub(a, b, alpha=2), t.rsub(a, 3), t.rsub(a, 2, 3)), A, (6,))
for _how in (0, 1, 2):
    case(lambda t, a, b, h=_how: (t.binary_cross_entropy_with_logits(a, t.sigmoid(b.detach()), b.detach(), a.detach(), reduction=h), t.kl_div(a, b, h), t.kl_div(a, b, h, log_target=True)), A, A, integers=False)
    case(lambda t, a, b, h=_how: (t.cosine_embedding_loss(a, b, t.tensor([1, -1, 1, -1]), 0.1, h), t.hinge_embedding_loss(a, t.sign(b).detach(), 0.5, h)), A, A, integers=False)
    case(lambda t, a, b, h=_how: (t.margin_ranking_loss(a, b, t.sign(a).detach(), 0.5, h), t.triplet_margin_loss(a, b, a * b, 0.7, reduction=h)), A, A, integers=False)
    case(lambda t, a, b, h=_how: t.poisson_nll_loss(a, b.abs().detach(), True, True, 1e-8, h), A, A, integers=False)
case(lambda t, a: (t.nn.functional.max_pool1d_with_indices(a, 2, ceil_mode=True), t.max_pool1d_with_indices(a, 3, 1, 1), t.nn.functional.adaptive_max_pool1d_with_indices(a, 4)), A, integers=False)
case(lambda t, a: (t.nn.functional.max_pool2d_with_indices(a, 2, 1, (1, 0)), t.nn.functional.adaptive_max_pool2d_with_indices(a, (2, 3))), (2, 4, 5), integers=False)
case(lambda t, a: (t.nn.functional.max_pool3d_with_indices(a, 2), t.nn.functional.adaptive_max_pool3d_with_indices(a, 2)), (2, 4, 5, 3), integers=False)
case(lambda t, a: (t.nn.functional.upsample(a, scale_factor=1.5), t.nn.functional.upsample_nearest(a, (3, 5)), t.nn.functional.upsample_bilinear(a, scale_factor=2)), (1, 2, 3, 4), integers=False)
for _mode in ("bilinear", "bicubic"):
    case(lambda t, a, m=_mode: (t.nn.functional.interpolate(a, (3, 4), mode=m, antialias=True), t.nn.functional.interpolate(a, (9, 2), mode=m, antialias=True, align_corners=True), t.nn.functional.interpolate(a, (1, 1), mode=m, antialias=True, align_corners=True)), (1, 2, 7, 11), integers=False)
    case(lambda t, a, m=_mode: (t.nn.functional.interpolate(a, scale_factor=0.4, mode=m, antialias=True), t.nn.functional.interpolate(a, scale_factor=(1.3, 0.7), mode=m, antialias=True, recompute_scale_factor=True)), (1, 2, 7, 11), integers=False)
DRAWN = lambda t, a, d: t.tensor([[[0.3, 0.8, 0.55][:d], [0.9, 0.1, 0.4][:d]]] * 2, dtype=a.dtype)
case(lambda t, a: (t.nn.functional.fractional_max_pool2d(a, 2, (3, 4), _random_samples=DRAWN(t, a, 2)), t.nn.functional.fractional_max_pool2d_with_indices(a, (2, 3), output_ratio=(0.5, 0.6), _random_samples=DRAWN(t, a, 2)), t.nn.functional.fractional_max_pool2d(a[0], 2, 1, return_indices=True)), (2, 2, 6, 7), integers=False)
case(lambda t, a: (t.nn.functional.fractional_max_pool3d(a, 2, (2, 3, 4), _random_samples=DRAWN(t, a, 3)), t.nn.functional.fractional_max_pool3d_with_indices(a, (1, 2, 3), 2, _random_samples=DRAWN(t, a, 3))), (2, 2, 5, 6, 7), integers=False)

I, W = (2, 4, 5, 6), (6, 4, 3, 3)
REFUSED: dict[str, Any] = {
    "fractional_max_pool2d to no size": (lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2), (I,)),
    "fractional_max_pool2d with three ratios": (lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5, 0.5)), (I,)),
    "fractional_max_pool2d to a large size": (lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, 5), (I,)),
    "fractional_max_pool2d of a matrix": (lambda t, x: t.nn.functional.fractional_max_pool2d(x[0, 0], 2, 2), (I,)),
    "fractional_max_pool2d of integers": (lambda t, x: t.nn.functional.fractional_max_pool2d(x.long(), 2, 2), (I,)),
    "fractional_max_pool2d with few samples": (lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, 2, _random_samples=x.detach()[:1, :, 0, :2]), (I,)),
    "fractional_max_pool2d with samples of another type": (lambda t, x: t.nn.functional.fractional_max_pool2d(x, 2, 2, _random_samples=x.detach()[:, :, 0, :2].float()), (I,)),
    "interpolate to the nearest with antialias": (lambda t, x: t.nn.functional.interpolate(x, 3, antialias=True), (I,)),
    "interpolate signals with antialias": (lambda t, x: t.nn.functional.interpolate(x[0], 3, mode="linear", antialias=True), (I,)),
    "dropout at top level above 1": (lambda t, x: t.dropout(x, 1.5, True), (I,)),
    "dropout at top level of no p": (lambda t, x: t.dropout(x), (I,)),
    "feature_dropout of a vector": (lambda t, x: t.feature_dropout(x[0, 0, 0], 0.5, True), (I,)),
    "rsub of booleans": (lambda t, x: t.rsub(x > 0, x > 0), (I,)),
    "rsub of integers by a fraction": (lambda t, x: t.rsub(x.long(), x.long(), alpha=0.5), (I,)),
    "rsub that does not broadcast": (lambda t, x: t.rsub(x, t.ones(5)), (I,)),
    "a method prelu with few slopes": (lambda t, x: x.prelu(t.ones(3)), (I,)),
    "heaviside in place of another shape": (lambda t, x: x.detach().heaviside_(t.ones(5)), (I,)),
    "kl_div at top level by a word": (lambda t, x: t.kl_div(x, x, "mean"), (I,)),
    "embedding at top level beyond the table": (lambda t, x: t.embedding(x[0, 0], t.tensor([9])), (I,)),
    "conv2d with an unknown padding": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding="x"), (I, W)),
    "conv2d of the same size with a stride": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding="same", stride=2), (I, W)),
    "conv2d with a negative padding": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding=-1), (I, W)),
    "conv2d with no stride": (lambda t, x, w: t.nn.functional.conv2d(x, w, stride=0), (I, W)),
    "conv2d with three strides": (lambda t, x, w: t.nn.functional.conv2d(x, w, stride=(1, 2, 3)), (I, W)),
    "conv2d with a stride of floats": (lambda t, x, w: t.nn.functional.conv2d(x, w, stride=1.5), (I, W)),
    "conv2d with no dilation": (lambda t, x, w: t.nn.functional.conv2d(x, w, dilation=0), (I, W)),
    "conv2d of other channels": (lambda t, x, w: t.nn.functional.conv2d(x, w, groups=2), (I, W)),
    "conv2d in no group": (lambda t, x, w: t.nn.functional.conv2d(x, w, groups=0), (I, W)),
    "conv2d in groups that do not fit": (lambda t, x, w: t.nn.functional.conv2d(x, w[:5, :2], groups=2), (I, W)),
    "conv2d with large filters": (lambda t, x, w: t.nn.functional.conv2d(x, w, dilation=9), (I, W)),
    "conv2d of a matrix": (lambda t, x, w: t.nn.functional.conv2d(x[0, 0], w), (I, W)),
    "conv2d with filters of three dimensions": (lambda t, x, w: t.nn.functional.conv2d(x, w[0]), (I, W)),
    "conv2d of two types": (lambda t, x, w: t.nn.functional.conv2d(x, w.float()), (I, W)),
    "conv2d with a short bias": (lambda t, x, w: t.nn.functional.conv2d(x, w, x[0, 0, 0, :3]), (I, W)),
    "conv2d of a number": (lambda t, x, w: t.nn.functional.conv2d(1.0, w), (I, W)),
    "conv2d of nothing": (lambda t, x, w: t.nn.functional.conv2d(x[:, :, :0], w, padding=3), (I, W)),
    "conv_transpose2d of other channels": (lambda t, x, w: t.nn.functional.conv_transpose2d(x, w), (I, W)),
    "conv_transpose2d with a large output_padding": (lambda t, x, w: t.nn.functional.conv_transpose2d(x, w[:4], output_padding=1), (I, W)),
    "conv_transpose2d with a text": (lambda t, x, w: t.nn.functional.conv_transpose2d(x, w[:4], padding="same"), (I, W)),
    "conv_transpose2d with nothing left": (lambda t, x, w: t.nn.functional.conv_transpose2d(x[:, :, :1], w[:4], padding=3), (I, W)),
    "unfold of a matrix": (lambda t, x: t.nn.functional.unfold(x[0, 0], 3), (I,)),
    "unfold with large patches": (lambda t, x: t.nn.functional.unfold(x, 9), (I,)),
    "unfold with no patches": (lambda t, x: t.nn.functional.unfold(x, 0), (I,)),
    "unfold of three sizes": (lambda t, x: t.nn.functional.unfold(x, (2, 2, 2)), (I,)),
    "unfold of no channels": (lambda t, x: t.nn.functional.unfold(x[:, :0], 3), (I,)),
    "fold of patches that do not fit": (lambda t, x: t.nn.functional.fold(x[0, 0], (5, 6), 3), (I,)),
    "fold of too few patches": (lambda t, x: t.nn.functional.fold(x.reshape(1, 9, -1)[:, :, :3], (5, 6), 3), ((9, 8),)),
    "fold of a vector": (lambda t, x: t.nn.functional.fold(x[0], (5, 6), 3), ((9, 8),)),
    "celu without scale": (lambda t, x: t.nn.functional.celu(x, 0.0), (A,)),
    "softshrink the wrong way": (lambda t, x: t.nn.functional.softshrink(x, -1.0), (A,)),
    "hardtanh the wrong way": (lambda t, x: t.nn.functional.hardtanh(x, 2.0, 1.0), (A,)),
    "gelu by an unknown fit": (lambda t, x: t.nn.functional.gelu(x, approximate="x"), (A,)),
    "glu of an odd length": (lambda t, x: t.nn.functional.glu(x[:, :3]), (A,)),
    "glu of a number": (lambda t, x: t.nn.functional.glu(x[0, 0]), (A,)),
    "prelu of other channels": (lambda t, x: t.nn.functional.prelu(x, t.ones(4)), (A,)),
    "prelu by a matrix": (lambda t, x: t.nn.functional.prelu(x, x), (A,)),
    "prelu of two types": (lambda t, x: t.nn.functional.prelu(x, t.ones(6).float()), (A,)),
    "rrelu the wrong way": (lambda t, x: t.nn.functional.rrelu(x, 0.5, 0.3), (A,)),
    "dropout of more than all": (lambda t, x: t.nn.functional.dropout(x, 1.5), (A,)),
    "dropout of channels that are not there": (lambda t, x: t.nn.functional.feature_alpha_dropout(x[0], 0.5, True), (A,)),
}

# -- pooling ---------------------------------------------------------------------------------------

SIGNALS = {1: (2, 3, 7), 2: (2, 3, 6, 7), 3: (1, 2, 4, 5, 4)}
POOLING = """
max_pool{d}d(x, 2); max_pool{d}d(x, 3, 2); max_pool{d}d(x, 3, 1, 1); max_pool{d}d(x, (2,) * d, (3,) * d, 0)
avg_pool{d}d(x, 2); avg_pool{d}d(x, 3, 2); avg_pool{d}d(x, 3, 1, 1); avg_pool{d}d(x, (2,) * d, (3,) * d, 0)
max_pool{d}d(x, 2, ceil_mode=True, return_indices=True); max_pool{d}d(x, 3, 1, 1, ceil_mode=True, return_indices=True)
max_pool{d}d(x, 2, 2, 1, 2, True); avg_pool{d}d(x, 3, 2, 1, True, False); avg_pool{d}d(x, 3, 2, 1, True)
avg_pool{d}d(x[0], 2, ceil_mode=True); lp_pool{d}d(x.abs() + 1, 3.0, 2, 1)
max_unpool{d}d(*t.nn.functional.max_pool{d}d(x, 2, 2, return_indices=True), 2, output_size=x.shape)
adaptive_avg_pool{d}d(x, 1); adaptive_avg_pool{d}d(x, 3); adaptive_avg_pool{d}d(x, 4)
adaptive_max_pool{d}d(x, 1, return_indices=True); adaptive_max_pool{d}d(x, 3, True); adaptive_max_pool{d}d(x, 4)
"""
for d in SIGNALS:
    for text in POOLING.strip().replace("\n", "; ").split("; "):
        exec(f"case(lambda t, x, d=d: t.nn.functional.{text.format(d=d)}, SIGNALS[d], integers=False)")
case(lambda t, x: t.nn.functional.avg_pool2d(x, (2, 3), divisor_override=5), (2, 6, 7), integers=False)
case(lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (None, 3)), (2, 6, 7), integers=False)
case(lambda t, x: t.nn.functional.max_pool2d((x * 2).round(), 3, 1), (2, 6, 7), integers=False, smooth=False)
case(lambda t, x: t.nn.functional.max_pool1d(t.where(x > 0.5, float("nan"), x), 3, 1, return_indices=True), (2, 3, 9), integers=False, smooth=False)
case(lambda t, x: t.nn.functional.max_pool1d(x[:0], 2), (2, 3, 4), integers=False)

V = (2, 4, 5, 6)
REFUSED |= {
    "max_pool2d with large windows": (lambda t, x: t.nn.functional.max_pool2d(x, 9), (V,)),
    "max_pool2d with a large padding": (lambda t, x: t.nn.functional.max_pool2d(x, 2, padding=2), (V,)),
    "max_pool2d with no windows": (lambda t, x: t.nn.functional.max_pool2d(x, 0), (V,)),
    "max_pool2d with three sizes": (lambda t, x: t.nn.functional.max_pool2d(x, (1, 2, 3)), (V,)),
    "max_pool2d of a vector": (lambda t, x: t.nn.functional.max_pool2d(x[0, 0, 0], 2), (V,)),
    "max_pool2d of floats": (lambda t, x: t.nn.functional.max_pool2d(x, 2.5), (V,)),
    "max_pool2d with no channels": (lambda t, x: t.nn.functional.max_pool2d(x[:, :0], 2), (V,)),
    "avg_pool2d by zero": (lambda t, x: t.nn.functional.avg_pool2d(x, 2, divisor_override=0), (V,)),
    "avg_pool2d with a large padding": (lambda t, x: t.nn.functional.avg_pool2d(x, 2, padding=2), (V,)),
    "adaptive_avg_pool2d to less than nothing": (lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, -1), (V,)),
    "max_unpool2d of other shapes": (lambda t, x: t.nn.functional.max_unpool2d(x, t.zeros(2, 4, 5, 5).long(), 2), (V,)),
    "max_unpool2d to places beyond": (lambda t, x: t.nn.functional.max_unpool2d(x, t.full(x.shape, 1000), 2), (V,)),
    "max_unpool2d to another size": (lambda t, x: t.nn.functional.max_unpool2d(x, t.zeros(x.shape).long(), 2, output_size=(40, 40)), (V,)),
}

# -- other sizes -----------------------------------------------------------------------------------

R = {1: (2, 3, 5), 2: (2, 3, 5, 4), 3: (1, 2, 3, 4, 3)}
for d, mode in ((1, "linear"), (2, "bilinear"), (3, "trilinear"), (2, "bicubic")):
    for size in ("size=7", "size=3", "scale_factor=2.5", "scale_factor=(0.7,) * d", "size=1", "scale_factor=1.3, recompute_scale_factor=True"):
        for corners in (True, False):
            exec(f"case(lambda t, x, d=d: t.nn.functional.interpolate(x, {size}, mode={mode!r}, align_corners={corners}), R[{d}], integers=False)")
for d in (1, 2, 3):
    for mode in ("nearest", "nearest-exact", "area"):
        for size in ("size=7", "size=2", "scale_factor=2", "scale_factor=1.7", "size=(4,) * d"):
            exec(f"case(lambda t, x, d=d: t.nn.functional.interpolate(x, {size}, mode={mode!r}), R[{d}], integers=False)")
for mode in ("reflect", "replicate", "circular"):
    case(lambda t, x, m=mode: [t.nn.functional.pad(x, p, mode=m) for p in ((2, 1, 0, 2), (-1, 2, 1, -1), (0, -2, 0, 0), (0, 0, 0, 0))], (1, 2, 3, 4), integers=False)
    case(lambda t, x, m=mode: [t.nn.functional.pad(x, (1, 2, 0, 1, 1, 0), mode=m), t.nn.functional.pad(x[0, 0], (2, 1, 1, 2), m), t.nn.functional.pad(x[0, 0, 0], (1, 1), m)], (1, 2, 2, 3, 3), integers=False)
    case(lambda t, x, m=mode: t.nn.functional.pad(x[:0], (1, 1, 1, 0), mode=m), (1, 2, 3, 4), integers=False)
case(lambda t, x: t.nn.functional.pixel_shuffle(x, 2), (2, 8, 3, 2), integers=False)
case(lambda t, x: t.nn.functional.pixel_unshuffle(x, 3), (4, 6, 3), integers=False)
case(lambda t, x: t.nn.functional.channel_shuffle(x, 3), (2, 6, 3, 2), integers=False)
for corners in (True, False):
    case(lambda t, x, c=corners: t.nn.functional.affine_grid(x, (2, 1, 3, 4), align_corners=c), (2, 2, 3), integers=False)
    case(lambda t, x, c=corners: t.nn.functional.affine_grid(x, (1, 1, 3, 1, 2), align_corners=c), (1, 3, 4), integers=False)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            options = f"mode={mode!r}, padding_mode={padding!r}, align_corners={corners}"
            exec(f"case(lambda t, x, g: t.nn.functional.grid_sample(x, g * 0.7, {options}), (2, 3, 4, 5), (2, 3, 6, 2), integers=False, smooth=False)")
            if mode != "bicubic":
                exec(f"case(lambda t, x, g: t.nn.functional.grid_sample(x, g * 0.7, {options}), (2, 2, 3, 1, 4), (2, 1, 2, 3, 3), integers=False, smooth=False)")

F = (2, 4, 5, 6)
REFUSED |= {
    "pad by reflect of two dimensions less": (lambda t, x: t.nn.functional.pad(x, (1, 1), 'reflect'), (F,)),
    "pad by reflect with a value": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), 'reflect', 1.0), (F,)),
    "pad by reflect by an odd number": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1), 'reflect'), (F,)),
    "pad by reflect that takes too much": (lambda t, x: t.nn.functional.pad(x, (-5, -5, 0, 0), 'reflect'), (F,)),
    "pad by replicate of two dimensions less": (lambda t, x: t.nn.functional.pad(x, (1, 1), 'replicate'), (F,)),
    "pad by replicate with a value": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), 'replicate', 1.0), (F,)),
    "pad by replicate by an odd number": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1), 'replicate'), (F,)),
    "pad by replicate that takes too much": (lambda t, x: t.nn.functional.pad(x, (-5, -5, 0, 0), 'replicate'), (F,)),
    "pad by circular of two dimensions less": (lambda t, x: t.nn.functional.pad(x, (1, 1), 'circular'), (F,)),
    "pad by circular with a value": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1), 'circular', 1.0), (F,)),
    "pad by circular by an odd number": (lambda t, x: t.nn.functional.pad(x, (1, 1, 1), 'circular'), (F,)),
    "pad by circular that takes too much": (lambda t, x: t.nn.functional.pad(x, (-5, -5, 0, 0), 'circular'), (F,)),
    "pad by too wide a reflection": (lambda t, x: t.nn.functional.pad(x, (6, 0, 0, 0), "reflect"), (F,)),
    "pad by more than a circle": (lambda t, x: t.nn.functional.pad(x, (7, 0, 0, 0), "circular"), (F,)),
    "pad by replicas of nothing": (lambda t, x: t.nn.functional.pad(x[:, :, :0], (1, 0, 1, 0), "replicate"), (F,)),
    "grid_sample of another batch": (lambda t, x: t.nn.functional.grid_sample(x, x[:1, :, :, :2]), (F,)),
    "grid_sample by triples": (lambda t, x: t.nn.functional.grid_sample(x, x[..., :3]), (F,)),
    "grid_sample of a matrix": (lambda t, x: t.nn.functional.grid_sample(x[0, 0], x[..., :2]), (F,)),
    "grid_sample by an unknown mode": (lambda t, x: t.nn.functional.grid_sample(x, x[..., :2], "x"), (F,)),
    "grid_sample with an unknown padding": (lambda t, x: t.nn.functional.grid_sample(x, x[..., :2], padding_mode="x"), (F,)),
    "grid_sample of volumes by cubics": (lambda t, x: t.nn.functional.grid_sample(x[None], x[None, ..., :3], "bicubic"), (F,)),
    "interpolate to nothing": (lambda t, x: t.nn.functional.interpolate(x), (F,)),
    "interpolate twice": (lambda t, x: t.nn.functional.interpolate(x, 3, 2.0), (F,)),
    "interpolate by an unknown mode": (lambda t, x: t.nn.functional.interpolate(x, 3, mode="x"), (F,)),
    "interpolate in one dimension": (lambda t, x: t.nn.functional.interpolate(x, 3, mode="linear"), (F,)),
    "interpolate the nearest with corners": (lambda t, x: t.nn.functional.interpolate(x, 3, align_corners=True), (F,)),
    "interpolate to three sizes": (lambda t, x: t.nn.functional.interpolate(x, (3, 3, 3)), (F,)),
    "interpolate to size zero": (lambda t, x: t.nn.functional.interpolate(x, 0), (F,)),
    "interpolate a matrix": (lambda t, x: t.nn.functional.interpolate(x[0, 0], 3), (F,)),
    "pixel_shuffle of channels that do not fit": (lambda t, x: t.nn.functional.pixel_shuffle(x, 3), (F,)),
    "pixel_unshuffle of sizes that do not fit": (lambda t, x: t.nn.functional.pixel_unshuffle(x, 4), (F,)),
    "channel_shuffle in groups that do not fit": (lambda t, x: t.nn.functional.channel_shuffle(x, 3), (F,)),
    "affine_grid of other shapes": (lambda t, x: t.nn.functional.affine_grid(x[0], (4, 1, 3, 3)), (F,)),
}
