"""Short-time transforms of `scipy.signal`: spectra of parts of a signal, and the signal of them.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, -1.0, 1.0, -1.0], requires_grad=True)
>>> tg.scipy.signal.spectrogram(x, nperseg=2, window="boxcar")[2].sum().backward(); x.grad
tensor([ 2., -2.,  2., -2.])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import fourier
from tapegrad.functions.indexing import index_add
from tapegrad.functions.shapes import movedim, reshape
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.spectra import partition, powers, real_line, spectra_of, total
from tapegrad.tensor import Tensor, wrap

_own = for_tensors("scipy.signal")
Found = tuple[np.ndarray, np.ndarray, Tensor]
_BORDERS: dict[Any, Any] = {
    "zeros": ("constant", {}), "even": ("reflect", {}), "constant": ("edge", {}),
    "odd": ("reflect", {"reflect_type": "odd"}),
}  # fmt: skip


@_own
def stft(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = 256,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = False,
    return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
    axis: int = -1, scaling: str = "spectrum",
) -> Found:  # fmt: skip
    """Frequencies, times, and the spectra of overlapping parts of a real signal.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 1.0, -1.0, -1.0])
    >>> tg.scipy.signal.stft(x, window="boxcar", nperseg=2, boundary=None)[2]
    tensor([[ 1.+0.j,  0.+0.j, -1.+0.j],
            [ 0.+0.j,  1.+0.j,  0.+0.j]])
    """
    t, d = real_line(x, axis, "stft")
    if (
        not return_onesided
        or scaling not in ("spectrum", "psd")
        or boundary not in (None, *_BORDERS)
    ):
        raise TypeError(
            "`scipy.signal.stft` of Tensors gives one-sided spectra, scaled for 'spectrum' or "
            f"'psd'; got return_onesided={return_onesided}, {scaling!r}, boundary={boundary!r}"
        )
    weights, step, points = partition("stft", t._a.shape[-1], window, nperseg, noverlap, nfft)
    count = len(weights)
    if boundary is not None:
        mode, options = _BORDERS[boundary]
        t = _widened(t, count // 2, count // 2, mode, **options)
    if padded:
        t = _widened(t, 0, -(t._a.shape[-1] - count) % step % count, "constant")
    kind = "density" if scaling == "psd" else scaling
    spectra = spectra_of(t, weights, step, points, detrend) / total(weights, fs, kind) ** 0.5
    times = np.arange(spectra._a.shape[-2]) * step + (count / 2 if boundary is None else 0)
    return np.fft.rfftfreq(points, 1 / fs), times / fs, movedim(spectra, -1, d)


def _widened(t: Tensor, before: int, after: int, mode: str, **options: Any) -> Tensor:
    widths = [(0, 0)] * (t._a.ndim - 1) + [(before, after)]
    found: Tensor = pad_(t, widths, mode, **options) if before or after else t
    return found


@_own
def spectrogram(
    x: Any, fs: float = 1.0, window: Any = ("tukey", 0.25), nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, mode: str = "psd",
) -> Found:  # fmt: skip
    """Frequencies, times, and the periodograms of overlapping parts of a real signal.

    With `mode` "complex" the spectra themselves, with "magnitude" their absolute values.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, -1.0, 1.0, 1.0])
    >>> tg.scipy.signal.spectrogram(x, window="boxcar", nperseg=2, noverlap=0, detrend=False)[2]
    tensor([[0., 2.],
            [2., 0.]])
    """
    t, d = real_line(x, axis, "spectrogram")
    known = scaling in ("density", "spectrum") and mode in ("psd", "complex", "magnitude")
    if not return_onesided or not known:
        raise TypeError(
            "`scipy.signal.spectrogram` of Tensors gives one-sided spectra, with the scaling "
            "'density' or 'spectrum' and the mode 'psd', 'complex' or 'magnitude'; got "
            f"return_onesided={return_onesided}, {scaling!r}, {mode!r}"
        )
    size = t._a.shape[-1]
    weights, step, points = partition("spectrogram", size, window, nperseg, noverlap, nfft, 8)
    found = spectra_of(t, weights, step, points, detrend)
    if mode == "psd":
        found = powers(found, weights, fs, scaling, points % 2)
    else:
        found = found / total(weights, fs, scaling) ** 0.5
        found = found if mode == "complex" else found.abs()
    times = (np.arange(found._a.shape[-2]) * step + len(weights) / 2) / fs
    return np.fft.rfftfreq(points, 1 / fs), times, movedim(found, -1, d)


@_own
def istft(
    Zxx: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
    boundary: bool = True, time_axis: int = -1, freq_axis: int = -2, scaling: str = "spectrum",
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Times, and the real signal whose `stft` is nearest to these spectra.

    >>> import tapegrad as tg
    >>> spectra = tg.scipy.signal.stft(tg.tensor([1.0, 2.0, 3.0, 4.0]), nperseg=2)[2]
    >>> tg.scipy.signal.istft(spectra, nperseg=2)
    (array([0., 1., 2., 3.]), tensor([1., 2., 3., 4.]))
    """
    z = tensor(Zxx)
    if not input_onesided or scaling not in ("spectrum", "psd") or z._a.ndim < 2:
        raise TypeError(
            "`scipy.signal.istft` of Tensors takes one-sided spectra (frequency, time), with the "
            f"scaling 'spectrum' or 'psd'; got input_onesided={input_onesided}, {scaling!r}, and "
            f"the shape {z._a.shape}"
        )
    last = sorted(axis % z._a.ndim for axis in (time_axis, freq_axis))
    z = movedim(z, (time_axis, freq_axis), (-2, -1))
    frames, bins = z._a.shape[-2:]
    count = 2 * (bins - 1) if nperseg is None else int(nperseg)
    odd = count == 2 * bins - 1
    points = (count if odd else 2 * (bins - 1)) if nfft is None else nfft
    if isinstance(window, (str, tuple)):
        window = theirs("scipy.signal", "get_window")(window, count)
    weights = np.asarray(window)
    step = count - (count // 2 if noverlap is None else noverlap)
    if step < 1 or points < count or weights.shape != (count,):
        raise ValueError(
            f"`scipy.signal.istft`: parts of {count} elements, one every {step}, with a window of "
            f"shape {weights.shape}, transformed as {points}, do not suit {bins} frequencies"
        )
    scale = total(weights, fs, "density" if scaling == "psd" else scaling) ** 0.5
    parts = fourier.irfft(z, points, -1)[..., :count]
    parts = parts * wrap((weights * scale).astype(parts._a.dtype))
    places = np.arange(frames)[:, None] * step + np.arange(count)
    size = count + (frames - 1) * step
    lead = parts._a.shape[:-2]
    whole = wrap(np.zeros((*lead, size), parts._a.dtype))
    whole = index_add(whole, -1, wrap(places.reshape(-1)), reshape(parts, (*lead, -1)))
    squares = np.bincount(places.reshape(-1), np.tile(weights**2, frames), size)
    kept = slice(count // 2, -(count // 2)) if boundary else slice(None)
    found = (whole / wrap(np.where(squares > 1e-10, squares, 1.0).astype(whole._a.dtype)))[
        ..., kept
    ]
    found = movedim(found, -1, min(last[0], found._a.ndim - 1) if lead else 0)
    return np.arange(found._a.shape[0]) / fs, found
