"""Filters and interpolation of `scipy.ndimage`, for Tensors.

>>> import tapegrad as tg
>>> tg.scipy.ndimage.laplace(tg.tensor([0.0, 1.0, 0.0]))
tensor([ 1., -2.,  1.])
"""

from typing import Any as _Any

from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.image_filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from tapegrad.scipy.rank_filters import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from tapegrad.scipy.spline_interpolation import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    zoom,
)

__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "laplace",
    "map_coordinates", "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter",
    "minimum_filter1d", "percentile_filter", "prewitt", "rank_filter", "rotate", "shift", "sobel",
    "uniform_filter", "uniform_filter1d", "zoom",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.ndimage", name)
