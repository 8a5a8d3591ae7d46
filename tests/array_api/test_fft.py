"""Fourier transforms under the standard's names."""

import pytest

import tapegrad as tg
from tapegrad import array_api as xp

pytestmark = pytest.mark.tapegrad_only("PyTorch has no namespace of the standard")


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_there_and_back(norm):
    x = xp.arange(6.0)
    for there, back in (("fft", "ifft"), ("rfft", "irfft"), ("fftn", "ifftn"), ("ihfft", "hfft")):
        whole = getattr(xp.fft, there)(x, norm=norm)
        again = xp.real(getattr(xp.fft, back)(whole, norm=norm))
        assert bool(xp.all(xp.abs(again - x) < 1e-12))
    tg.check_grads(lambda x: xp.fft.irfftn(xp.fft.rfftn(x, norm=norm) ** 2), (x,), order=2)


def test_frequencies():
    assert xp.fft.fftfreq(4, d=0.5, dtype=xp.float32).dtype == xp.float32
    assert xp.fft.rfftfreq(4).tolist() == [0.0, 0.25, 0.5]
    assert xp.fft.ifftshift(xp.fft.fftshift(xp.arange(5))).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="no device"):
        xp.fft.fftfreq(4, device="cuda")
