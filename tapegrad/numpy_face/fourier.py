"""NumPy's Fourier transforms on Tensors: the same functions under the names of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.functions import fourier
from tapegrad.numpy_face.common import handles, tensor
from tapegrad.tensor import Tensor


def _along_one(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def handler(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
        return transform(tensor(a), n, axis, norm)

    return handler


def _along_several(transform: Callable[..., Tensor], default: Any) -> Callable[..., Tensor]:
    def handler(a: Any, s: Any = None, axes: Any = default, norm: Any = None) -> Tensor:
        return transform(tensor(a), s, axes, norm)

    return handler


for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    handles(getattr(np.fft, name))(_along_one(getattr(fourier, name)))
for name in ("fft2", "ifft2", "rfft2", "irfft2"):
    handles(getattr(np.fft, name))(_along_several(getattr(fourier, name), fourier.LAST_TWO))
for name in ("fftn", "ifftn", "rfftn", "irfftn"):
    handles(getattr(np.fft, name))(_along_several(getattr(fourier, name), None))


handles(np.fft.fftshift)(lambda x, axes=None: fourier.fftshift(tensor(x), axes))
handles(np.fft.ifftshift)(lambda x, axes=None: fourier.ifftshift(tensor(x), axes))
