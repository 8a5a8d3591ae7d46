"""Shapes and parameters that rows of images are tested on: convolutions, patches and windows."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tapegrad.ops.convolution import Geometry
from tapegrad.ops.interpolation import Interpolation
from tapegrad.ops.windows import Windows

CONVOLUTIONS = [  # images, filters, geometry
    ((2, 3, 5), (4, 3, 2), Geometry((1,), (0,), (1,))),
    ((1, 2, 7), (2, 1, 3), Geometry((2,), (2,), (1,), 2)),
    ((2, 2, 4, 5), (3, 2, 3, 2), Geometry((1, 2), (1, 0), (1, 2))),
    ((1, 4, 4, 4), (2, 2, 3, 3), Geometry((3, 3), (1, 1), (1, 1), 2)),
    ((1, 1, 3, 3, 3), (2, 1, 2, 2, 2), Geometry((1, 1, 1), (0, 1, 0), (2, 1, 1))),
    ((0, 2, 4), (3, 2, 2), Geometry((1,), (0,), (1,))),
]
WINDOWS = [
    Windows((5,), (3,)),
    Windows((4, 5), (2, 3), (2, 2), (2, 2), (0, 1), (2, 1)),
    Windows((2, 3, 3), (1, 2, 2), (2, 2, 3), (1, 1, 1), (0, 0, 1), (1, 1, 1)),
]
INTERPOLATIONS = [
    Interpolation((5,), (3,), "nearest", None, False, False),
    Interpolation((3, 4), (5, 6), "bilinear", None, True, False),
    Interpolation((4, 3), (7, 2), "bicubic", (1.8, 0.7), False, False),
    Interpolation((5, 6), (2, 4), "bilinear", None, False, True),
    Interpolation((2, 2, 3), (3, 4, 2), "trilinear", None, False, False),
]
Row = tuple[str, tuple[Any, ...], dict[str, Any]]


def image_rows() -> Iterator[Row]:
    """Yield name, shapes and parameters."""
    for image, filters, at in CONVOLUTIONS:
        many = tuple(
            (n + 2 * p - d * (k - 1) - 1) // step + 1
            for n, k, step, p, d in zip(image[2:], filters[2:], *at[:3], strict=True)
        )
        outputs = (image[0], filters[0], *many)
        for exact in (False, True):
            how = {"geometry": at, "exact": exact}
            yield "convolution", (image, filters), {"size": many, **how}
            yield "convolution_input", (outputs, filters), {"size": image[2:], **how}
            yield "convolution_weight", (outputs, image), {"size": filters[2:], **how}
        if at.groups == 1:
            columns = (image[0], image[1] * prod(filters[2:]), prod(many))
            how = {"kernel": filters[2:], "places": many, "geometry": at}
            yield "im2col", (image,), how
            yield "col2im", (columns,), {"size": image[2:], **how}
    for windows in WINDOWS:
        for outer in ((), (2,), (0,)):
            yield "window_argmax", ((*outer, *windows.size),), {"windows": windows}
            yield "window_sum", ((*outer, *windows.size),), {"windows": windows}
            yield "window_spread", ((*outer, *windows.counts),), {"windows": windows}
    for how in INTERPOLATIONS:
        for outer in ((), (2,), (0,)):
            yield "resample", ((*outer, *how.size),), {"windows": how}
            yield "unresample", ((*outer, *how.counts),), {"windows": how}
