"""Spectra of `scipy.signal`: power spectral densities, frequency responses, resampling.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, -1.0, 1.0, -1.0], requires_grad=True)
>>> tg.scipy.signal.periodogram(x)[1][-1].backward(); x.grad
tensor([ 2., -2.,  2., -2.])
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.functions import fourier
from tapegrad.functions.complex_parts import conj
from tapegrad.functions.joining import cat
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import mean
from tapegrad.functions.shapes import movedim, narrow
from tapegrad.functions.strided_views import unfold
from tapegrad.numpy_face.common import tensor
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.filters import along_the_end, detrend
from tapegrad.tensor import Tensor, wrap

_own = for_tensors("scipy.signal")


def real_line(x: Any, axis: int, name: str) -> tuple[Tensor, int]:
    """A real signal with the axis that is transformed at the end, and which that was."""
    t, d = along_the_end(x, axis, name)
    if t._a.dtype.kind == "c":
        raise TypeError(f"`scipy.signal.{name}` of Tensors takes real signals, got {t.dtype}")
    return t, d


@_own
def welch(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Frequencies, and the mean of the periodograms of overlapping parts of a real signal.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    >>> tg.scipy.signal.welch(x, nperseg=4, window="boxcar", detrend=False)
    (array([0.  , 0.25, 0.5 ]), tensor([0., 0., 4.]))
    """
    t, d = real_line(x, axis, "welch")
    weights, step, points = partition("welch", t._a.shape[-1], window, nperseg, noverlap, nfft)
    _check_means("welch", return_onesided, scaling, average)
    spectra = spectra_of(t, weights, step, points, detrend)
    found = mean(powers(spectra, weights, fs, scaling, points % 2), -2)
    return np.fft.rfftfreq(points, 1 / fs), movedim(found, -1, d)


def _check_means(name: str, return_onesided: bool, scaling: str, average: str) -> None:
    if not return_onesided or average != "mean" or scaling not in ("density", "spectrum"):
        raise TypeError(
            f"`scipy.signal.{name}` of Tensors gives the mean of one-sided spectra, with the "
            f"scaling 'density' or 'spectrum'; got return_onesided={return_onesided}, {average!r}, "
            f"{scaling!r}"
        )


@_own
def csd(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
    return_onesided: bool = True, scaling: str = "density", axis: int = -1, average: str = "mean",
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Frequencies, and the mean of the cross spectra of parts of two real signals.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    >>> tg.scipy.signal.csd(x, 2 * x, nperseg=4, window="boxcar", detrend=False)[1]
    tensor([0.+0.j, 0.+0.j, 8.+0.j])
    """
    t, d = real_line(x, axis, "csd")
    other, _ = real_line(y, axis, "csd")
    size = t._a.shape[-1]
    if other._a.shape[-1] != size:
        raise TypeError(
            f"`scipy.signal.csd` of Tensors takes signals of one length, got {size} and "
            f"{other._a.shape[-1]}: pad the shorter one with zeros"
        )
    weights, step, points = partition("csd", size, window, nperseg, noverlap, nfft)
    _check_means("csd", return_onesided, scaling, average)
    first, second = (spectra_of(s, weights, step, points, detrend) for s in (t, other))
    sides = one_sided(first, weights, fs, scaling, points % 2)
    return np.fft.rfftfreq(points, 1 / fs), movedim(mean(conj(first) * second * sides, -2), -1, d)


@_own
def coherence(
    x: Any, y: Any, fs: float = 1.0, window: Any = "hann", nperseg: int | None = None,
    noverlap: int | None = None, nfft: int | None = None, detrend: Any = "constant",
    axis: int = -1,
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Frequencies, and how far two real signals depend on each other there, between 0 and 1.

    >>> import tapegrad as tg
    >>> x = tg.tensor([1.0, 2.0, 4.0, 3.0, 1.0, 5.0])
    >>> tg.scipy.signal.coherence(x, 2 * x, nperseg=2, detrend=False)[1].round(decimals=9)
    tensor([1., 1.])
    """
    how = fs, window, nperseg, noverlap, nfft, detrend
    frequencies, cross = csd(x, y, *how, axis=axis)
    own = [welch(signal, *how, axis=axis)[1] for signal in (x, y)]
    return frequencies, (cross.real * cross.real + cross.imag * cross.imag) / own[0] / own[1]


def partition(
    name: str, size: int, window: Any, nperseg: int | None, noverlap: int | None,
    nfft: int | None, overlap: int = 2,
) -> tuple[np.ndarray, int, int]:  # fmt: skip
    """The window of a signal's parts, how far these are apart, and as what they are transformed.

    Unless told, they overlap by one part in `overlap` of their length.
    """
    if isinstance(window, (str, tuple)):
        count = min(256 if nperseg is None else int(nperseg), size)
        if nperseg is not None and nperseg > size:
            warnings.warn(
                f"`scipy.signal.{name}`: nperseg={nperseg} is more than the signal has: {size} is "
                "used",
                stacklevel=4,
            )
        weights = theirs("scipy.signal", "get_window")(window, count)
    else:
        weights = np.asarray(window)
        count = len(weights)
        if nperseg not in (None, count):
            raise ValueError(
                f"`scipy.signal.{name}`: a window of {count} elements is for parts of as many, got "
                f"nperseg={nperseg}"
            )
    step = count - (count // overlap if noverlap is None else noverlap)
    points = count if nfft is None else nfft
    if not 0 < count <= size or step < 1 or points < count:
        raise ValueError(
            f"`scipy.signal.{name}`: parts of {count} elements, one every {step}, "
            f"transformed as {points}, do not suit a signal of {size}"
        )
    return weights, step, points


def spectra_of(t: Tensor, weights: np.ndarray, step: int, points: int, detrend: Any) -> Tensor:
    """The transforms of the parts of a signal."""
    parts = unfold(t, -1, len(weights), step)
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = _detrended(parts, detrend)
    return fourier.rfft(parts * wrap(weights.astype(t._a.dtype)), points, -1)


def powers(spectrum: Tensor, weights: np.ndarray, fs: float, scaling: str, odd: int = 0) -> Tensor:
    """The power of both sides, one of which is given, for a density or a spectrum."""
    power = spectrum.real * spectrum.real + spectrum.imag * spectrum.imag
    return power * one_sided(spectrum, weights, fs, scaling, odd)


def one_sided(spectrum: Tensor, weights: np.ndarray, fs: float, scaling: str, odd: int) -> Tensor:
    """What products of one side of two spectra stand for, for a density or a spectrum."""
    sides = np.full(spectrum._a.shape[-1], 2.0)
    sides[0] = 1.0
    if not odd:
        sides[-1] = 1.0
    return wrap((sides / total(weights, fs, scaling)).astype(spectrum.real._a.dtype))


def total(weights: np.ndarray, fs: float, scaling: str) -> float:
    """What the square of a spectrum is divided by."""
    return float(fs * np.sum(weights**2) if scaling == "density" else np.sum(weights) ** 2)


def _detrended(parts: Tensor, kind: Any) -> Tensor:
    found: Tensor = detrend(parts, -1, kind)
    return found


@_own
def periodogram(
    x: Any, fs: float = 1.0, window: Any = "boxcar", nfft: int | None = None,
    detrend: Any = "constant", return_onesided: bool = True, scaling: str = "density",
    axis: int = -1,
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Frequencies, and the power of a real signal at these.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.periodogram(tg.tensor([1.0, -1.0, 1.0, -1.0]))
    (array([0.  , 0.25, 0.5 ]), tensor([0., 0., 4.]))
    """
    t, d = real_line(x, axis, "periodogram")
    if nfft is not None and nfft < t._a.shape[-1]:
        t, nfft = narrow(t, -1, 0, nfft), None
    found: tuple[np.ndarray, Tensor] = welch(
        movedim(t, -1, d), fs, "boxcar" if window is None else window, t._a.shape[-1], 0, nfft,
        detrend, return_onesided, scaling, d,
    )  # fmt: skip
    return found


@_own
def freqz(
    b: Any, a: Any = 1, worN: Any = 512, whole: bool = False, plot: Any = None,
    fs: float = 2 * np.pi, include_nyquist: bool = False,
) -> tuple[np.ndarray, Tensor]:  # fmt: skip
    """Frequencies, and the response of a digital filter at these.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.freqz(tg.tensor([0.5, 0.5]), worN=2)[1].abs()
    tensor([1.0000, 0.7071])
    """
    if plot is not None:
        raise TypeError("`scipy.signal.freqz` of Tensors plots nothing: use what is returned")
    if worN is None or np.ndim(worN) == 0:
        count = 512 if worN is None else int(worN)
        last = (2 if whole else 1) * np.pi
        w = np.linspace(0, last, count, endpoint=include_nyquist and not whole)
    else:
        w = 2 * np.pi * np.asarray(worN, float) / fs
    kind = np.result_type(np.complex64, *[c._a.dtype for c in (b, a) if isinstance(c, Tensor)])
    return w * (fs / (2 * np.pi)), _polynomial(b, w, kind) / _polynomial(a, w, kind)


def _polynomial(c: Any, w: np.ndarray, kind: np.dtype) -> Tensor:
    """The polynomial with these coefficients at exp(-i w)."""
    t = tensor(c).reshape(-1)
    powers = np.exp(-1j * np.multiply.outer(w, np.arange(t._a.size)))
    return matmul(wrap(powers.astype(kind)), t.to(kind))


@_own
def resample(
    x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time"
) -> Any:
    """A periodic real signal at `num` times, by its Fourier series; with `t` these times, too.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.resample(tg.tensor([1.0, 0.0, -1.0, 0.0]), 2)
    tensor([ 1., -1.])
    """
    if window is not None or domain != "time":
        raise TypeError("`scipy.signal.resample` of Tensors takes no window, and signals in time")
    line, d = real_line(x, axis, "resample")
    size = line._a.shape[-1]
    shared = min(num, size)
    spectrum = narrow(fourier.rfft(line, None, -1), -1, 0, shared // 2 + 1)
    if shared % 2 == 0 and num != size:  # the last one stands for two, or is one of two
        edge = narrow(spectrum, -1, shared // 2, 1) * (2.0 if num < size else 0.5)
        spectrum = cat([narrow(spectrum, -1, 0, shared // 2), edge], -1)
    found = movedim(fourier.irfft(spectrum, num, -1) * (num / size), -1, d)
    if t is None:
        return found
    return found, t[0] + np.arange(num) * ((t[1] - t[0]) * size / num)
