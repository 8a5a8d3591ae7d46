"""The standard's extension of Fourier transforms: NumPy's own functions, which take Tensors.

>>> from tapegrad import array_api as xp
>>> xp.fft.irfft(xp.fft.rfft(xp.ones(4)))
tensor([1., 1., 1., 1.])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.array_api.promotion import on_tensors
from tapegrad.base.devices import check_device
from tapegrad.functions import fourier
from tapegrad.tensor import Tensor

fft, ifft, fftn, ifftn = map(on_tensors, (np.fft.fft, np.fft.ifft, np.fft.fftn, np.fft.ifftn))
rfft, irfft, rfftn, irfftn = map(
    on_tensors, (np.fft.rfft, np.fft.irfft, np.fft.rfftn, np.fft.irfftn)
)
hfft, ihfft = on_tensors(np.fft.hfft), on_tensors(np.fft.ihfft)
fftshift, ifftshift = on_tensors(np.fft.fftshift), on_tensors(np.fft.ifftshift)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies that `fft` computes, in cycles for each unit of `d`.

    >>> from tapegrad import array_api as xp
    >>> xp.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    check_device(device)
    return fourier.fftfreq(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies that `rfft` computes, in cycles for each unit of `d`.

    >>> from tapegrad import array_api as xp
    >>> xp.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    check_device(device)
    return fourier.rfftfreq(n, d, dtype=dtype)


__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip
