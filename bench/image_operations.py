"""Operations on images: 1×3×32×32 where the side is 0, 16×64×56×56 else; filters of 3×3."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.operations import Row


def images(rng: np.random.Generator, n: int) -> np.ndarray:
    """A batch of images."""
    return rng.standard_normal((16, 64, 56, 56) if n else (1, 3, 32, 32))


def narrow_images(rng: np.random.Generator, n: int) -> np.ndarray:
    """The same in float32, for which PyTorch has its fastest code."""
    return images(rng, n).astype(np.float32)


def narrow_filters(rng: np.random.Generator, n: int) -> np.ndarray:
    """Filters in float32."""
    return filters(rng, n).astype(np.float32)


def filters(rng: np.random.Generator, n: int) -> np.ndarray:
    """As many filters as the images have channels."""
    channels = 64 if n else 3
    return rng.standard_normal((channels, channels, 3, 3)) / 10


def lines(rng: np.random.Generator, n: int) -> np.ndarray:
    """A batch of signals."""
    return rng.standard_normal((16, 64, 56 * 56) if n else (1, 3, 32 * 32))


def taps(rng: np.random.Generator, n: int) -> np.ndarray:
    """As many filters as the signals have channels."""
    channels = 64 if n else 3
    return rng.standard_normal((channels, channels, 3)) / 10


def _larger(xp: Any, x: Any) -> Any:
    """Images of twice the height and width."""
    return xp.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")


FAMILIES: dict[str, list[Row]] = {
    "convolutions": [
        (".conv2d", lambda xp, x, w: xp.nn.functional.conv2d(x, w, padding=1),
         (images, filters), ()),
        (".conv2d, float32", lambda xp, x, w: xp.nn.functional.conv2d(x, w, padding=1),
         (narrow_images, narrow_filters), ()),
        (".conv2d, stride 2", lambda xp, x, w: xp.nn.functional.conv2d(x, w, stride=2),
         (images, filters), ()),
        (".conv_transpose2d", lambda xp, x, w: xp.nn.functional.conv_transpose2d(x, w),
         (images, filters), ()),
        (".conv1d", lambda xp, x, w: xp.nn.functional.conv1d(x, w), (lines, taps), ()),
    ],
    "pooling": [
        (".max_pool2d", lambda xp, x: xp.nn.functional.max_pool2d(x, 2), (images,), ()),
        (".avg_pool2d", lambda xp, x: xp.nn.functional.avg_pool2d(x, 2), (images,), ()),
        (".adaptive_avg_pool2d", lambda xp, x: xp.nn.functional.adaptive_avg_pool2d(x, 4),
         (images,), ()),
        (".interpolate, bilinear", _larger, (images,), ()),
    ],
}  # fmt: skip
