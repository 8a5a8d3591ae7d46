"""Functions of `nn.functional` as calls that PyTorch understands too, and calls that it refuses."""

# ruff: noqa: E501
from __future__ import annotations

from tests.peers.torch_cases import case

# -- convolutions ----------------------------------------------------------------------------------

case(lambda t, x, w, b: t.nn.functional.conv1d(x, w, b), (2, 3, 6), (4, 3, 3), (4,), integers=False)
case(lambda t, x, w: t.nn.functional.conv1d(x, w, None, 2, 1), (3, 6), (4, 3, 3), integers=False)
case(
    lambda t, x, w: t.nn.functional.conv1d(x, w, padding="same", dilation=3),
    (1, 1, 7),
    (2, 1, 4),
    integers=False,
)
case(
    lambda t, x, w, b: t.nn.functional.conv2d(x, w, b, (1, 2), (1, 0), (2, 1), 2),
    (2, 4, 6, 5), (4, 2, 3, 2), (4,), integers=False,
)  # fmt: skip
case(
    lambda t, x, w: t.nn.functional.conv2d(x, w, stride=3, padding="valid"),
    (1, 2, 7, 8),
    (1, 2, 2, 3),
    integers=False,
)
case(
    lambda t, x, w: t.nn.functional.conv2d(x, w, padding="same"),
    (2, 4, 5),
    (2, 2, 2, 4),
    integers=False,
)
case(
    lambda t, x, w: t.nn.functional.conv2d(x, w, groups=4),
    (1, 4, 3, 3),
    (8, 1, 2, 2),
    integers=False,
)
case(
    lambda t, x, w, b: t.nn.functional.conv3d(x, w, b, 1, (0, 1, 0)),
    (1, 2, 3, 3, 3),
    (2, 2, 2, 2, 2),
    (2,),
    integers=False,
)
case(lambda t, x, w: t.nn.functional.conv2d(x[:0], w), (1, 2, 3, 3), (2, 2, 2, 2), integers=False)
case(
    lambda t, x, w, b: t.nn.functional.conv_transpose1d(x, w, b, 2, 1, 1),
    (2, 3, 4),
    (3, 2, 3),
    (2,),
    integers=False,
)
case(
    lambda t, x, w, b: t.nn.functional.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 2, (1, 2)),
    (1, 4, 3, 3), (4, 1, 3, 2), (2,), integers=False,
)  # fmt: skip
case(
    lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, output_padding=1, dilation=2),
    (4, 3, 3),
    (4, 1, 3, 2),
    integers=False,
)
case(
    lambda t, x, w: t.nn.functional.conv_transpose3d(x, w, stride=2),
    (1, 1, 2, 2, 2),
    (1, 2, 2, 1, 2),
    integers=False,
)
case(
    lambda t, x: t.nn.functional.unfold(x, (2, 3), (2, 1), 1, (1, 2)), (2, 3, 4, 5), integers=False
)
case(
    lambda t, x: t.nn.functional.fold(t.nn.functional.unfold(x, 2), (4, 5), 2),
    (2, 4, 5),
    integers=False,
)
case(lambda t, x: t.nn.functional.fold(x, 5, (2, 3), 2, 1, (1, 2)), (1, 12, 10), integers=False)

I, W = (2, 4, 5, 6), (6, 4, 3, 3)
REFUSED = {
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
}  # fmt: skip
