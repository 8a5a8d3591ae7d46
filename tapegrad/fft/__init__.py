"""Discrete Fourier transforms under the names of `torch.fft`; all can be differentiated.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (tg.fft.rfft(x).abs() ** 2).sum().backward()
>>> x.grad
tensor([ 9., 12., 15.])
"""

from typing import Any

# fmt: off
# isort: off
from tapegrad.base.missing_names import missing
from tapegrad.base.public_names import dir_of
from tapegrad.functions.fourier import (
    fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift, ihfft,
    ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn,
)
# isort: on
# fmt: on

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2",
    "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2",
    "rfftfreq", "rfftn",
]  # fmt: skip
__dir__ = dir_of(globals())


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.fft'", name, __all__)
