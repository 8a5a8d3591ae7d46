"""Convolution and filters of `scipy.signal`, for Tensors.

>>> import numpy as np, tapegrad as tg
>>> t = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> tg.scipy.signal.convolve(t, np.array([1.0, 0.0, -1.0]), mode="same")
tensor([ 2.,  2., -2.], grad_fn=<SliceBackward0>)
"""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from tapegrad.functions import fourier as _fourier
from tapegrad.functions.arguments import all_dims as _all_dims
from tapegrad.functions.complex_parts import conj as _conj
from tapegrad.functions.elementwise import mul as _mul
from tapegrad.functions.shapes import flip as _flip
from tapegrad.functions.shapes import narrow as _narrow
from tapegrad.numpy_face.common import floating as _floating
from tapegrad.numpy_face.padding import pad_ as _pad
from tapegrad.scipy.convolution import convolve as _windows
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.scipy.filters import (
    detrend,
    hilbert,
    lfilter,
    lfilter_zi,
    savgol_filter,
    sosfilt,
    sosfilt_zi,
)
from tapegrad.scipy.resampling import decimate, medfilt, resample_poly, upfirdn
from tapegrad.scipy.short_time import istft, spectrogram, stft
from tapegrad.scipy.spectra import coherence, csd, freqz, periodogram, resample, welch
from tapegrad.scipy.zero_phase import filtfilt, sosfiltfilt
from tapegrad.tensor import Tensor, tensor_of

__all__ = [
    "coherence", "convolve", "convolve2d", "correlate", "correlate2d", "csd", "decimate", "detrend",
    "fftconvolve", "filtfilt", "freqz", "hilbert", "istft", "lfilter", "lfilter_zi", "medfilt",
    "oaconvolve", "periodogram", "resample", "resample_poly", "savgol_filter", "sosfilt",
    "sosfilt_zi", "sosfiltfilt", "spectrogram", "stft", "upfirdn", "welch",
]  # fmt: skip

_MODES, _METHODS = ("full", "same", "valid"), ("auto", "direct", "fft")
_DIRECT = 1 << 16  # products up to which sums are formed directly


@_for_tensors("scipy.signal")
def convolve(in1: _Any, in2: _Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The convolution of two Tensors of as many dimensions, along all of them.

    `mode` says what is kept: all of it, the middle in the size of `in1`, or what needs no zeros.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.convolve(tg.tensor([1.0, 2.0, 3.0]), tg.tensor([1.0, 1.0]), mode="valid")
    tensor([3., 5.])
    """
    a, b = _pair(in1, in2, mode, method, "convolve")
    return _kept(_convolved(a, b, method), a, b, mode, range(a._a.ndim), "convolve")


@_for_tensors("scipy.signal")
def correlate(in1: _Any, in2: _Any, mode: str = "full", method: str = "auto") -> Tensor:
    """The correlation of two Tensors: the convolution with the conjugate of `in2` read backwards.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.correlate(tg.tensor([1.0, 2.0, 3.0]), tg.tensor([0.0, 1.0]), mode="valid")
    tensor([2., 3.])
    """
    a, b = _pair(in1, in2, mode, method, "correlate")
    b = _flip(_conj(b), tuple(range(b._a.ndim)))
    return _kept(_convolved(a, b, method), a, b, mode, range(a._a.ndim), "correlate")


@_for_tensors("scipy.signal")
def fftconvolve(
    in1: _Any, in2: _Any, mode: str = "full", axes: int | _Sequence[int] | None = None
) -> Tensor:
    """The convolution by Fourier transforms, along `axes`; other dimensions are broadcast.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.fftconvolve(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0]))
    tensor([1., 3., 2.])
    """
    a, b = _pair(in1, in2, mode, "fft", "fftconvolve")
    dims = range(a._a.ndim) if axes is None else _all_dims(axes, a._a.ndim, "axes")
    return _kept(_by_fourier(a, b, dims), a, b, mode, dims, "fftconvolve")


@_for_tensors("scipy.signal")
def oaconvolve(
    in1: _Any, in2: _Any, mode: str = "full", axes: int | _Sequence[int] | None = None
) -> Tensor:
    """`fftconvolve`: how SciPy takes the sum apart does not change it.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.oaconvolve(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0]))
    tensor([1., 3., 2.])
    """
    found: Tensor = fftconvolve(in1, in2, mode, axes)
    return found


@_for_tensors("scipy.signal")
def convolve2d(
    in1: _Any, in2: _Any, mode: str = "full", boundary: str = "fill", fillvalue: _Any = 0
) -> Tensor:
    """The convolution of two matrices; beyond the first lie `fillvalue`, or its own elements.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.convolve2d(tg.ones(1, 2), tg.ones(1, 2), boundary="wrap")
    tensor([[2., 2., 2.]])
    """
    return _in_the_plane(in1, in2, mode, boundary, fillvalue, "convolve2d")


@_for_tensors("scipy.signal")
def correlate2d(
    in1: _Any, in2: _Any, mode: str = "full", boundary: str = "fill", fillvalue: _Any = 0
) -> Tensor:
    """The correlation of two matrices; see `convolve2d`.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.correlate2d(tg.tensor([[1.0, 2.0]]), tg.tensor([[0.0, 1.0]]))
    tensor([[1., 2., 0.]])
    """
    b = tensor_of(in2, "scipy.signal.correlate2d")
    b = _flip(_conj(b), tuple(range(b._a.ndim)))
    return _in_the_plane(in1, b, mode, boundary, fillvalue, "correlate2d")


_BEYOND = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _in_the_plane(
    in1: _Any, in2: _Any, mode: str, boundary: str, fillvalue: _Any, name: str
) -> Tensor:
    a, b = _pair(in1, in2, mode, "auto", name)
    if a._a.ndim != 2 or boundary not in _BEYOND:
        raise ValueError(
            f"`scipy.signal.{name}` takes matrices, and a boundary 'fill', 'wrap' or 'symm'; got "
            f"the shapes {a._a.shape} and {b._a.shape}, {boundary!r}"
        )
    whole = a
    if mode != "valid" and (boundary != "fill" or fillvalue):
        widths = [(n - 1, n - 1) for n in b._a.shape]
        how: _Any = {"constant_values": fillvalue} if boundary == "fill" else {}
        whole = _pad(a, widths, _BEYOND[boundary], **how)
    found = _convolved(whole, b, "auto")
    if whole is not a:  # what reaches beyond the border that was added
        for d, n in enumerate(b._a.shape):
            found = _narrow(found, d, n - 1, a._a.shape[d] + n - 1)
    if mode == "same" and name == "correlate2d":  # of two middles the second one, unlike elsewhere
        for d, (m, n) in enumerate(zip(a._a.shape, b._a.shape, strict=True)):
            found = _narrow(found, d, n // 2, m)
        return found
    return _kept(found, a, b, mode, (0, 1), name)


def _pair(in1: _Any, in2: _Any, mode: str, method: str, name: str) -> tuple[Tensor, Tensor]:
    if mode not in _MODES or method not in _METHODS:
        raise ValueError(f"`scipy.signal.{name}`: no mode {mode!r} with the method {method!r}")
    a, b = (tensor_of(x, f"scipy.signal.{name}") for x in (in1, in2))
    if a._a.ndim != b._a.ndim:
        raise ValueError(
            f"`scipy.signal.{name}` takes as many dimensions of both, got the shapes {a._a.shape} "
            f"and {b._a.shape}"
        )
    return a, b


def _convolved(a: Tensor, b: Tensor, method: str) -> Tensor:
    if not a._a.ndim:
        return _mul(a, b)
    small = min(a._a.size, b._a.size) * max(a._a.size, b._a.size) <= _DIRECT
    exact = a._a.dtype.kind in "biu" and b._a.dtype.kind in "biu"
    if method == "fft" or (method == "auto" and not small and not exact):
        return _by_fourier(a, b, range(a._a.ndim))
    if a._a.ndim == 1:
        line: _Any = _np.convolve(a, b)  # NumPy asks the Tensors
        return line  # type: ignore[no-any-return]
    found: Tensor = _windows(a, b)
    return found


def _by_fourier(a: Tensor, b: Tensor, dims: _Sequence[int]) -> Tensor:
    if not dims:
        return _mul(a, b)
    axes = tuple(dims)
    shape = [a._a.shape[d] + b._a.shape[d] - 1 for d in axes]
    lengths = [_theirs("scipy.fft", "next_fast_len")(n, True) for n in shape]
    x, y = (_floating(t) for t in (a, b))
    if "c" in (x._a.dtype.kind, y._a.dtype.kind):
        found = _fourier.ifftn(_mul(*(_fourier.fftn(t, lengths, axes) for t in (x, y))), None, axes)
    else:
        spectrum = _mul(*(_fourier.rfftn(t, lengths, axes) for t in (x, y)))
        found = _fourier.irfftn(spectrum, lengths, axes)
    for d, n in zip(axes, shape, strict=True):
        found = _narrow(found, d, 0, n)
    return found


def _kept(
    whole: Tensor, a: Tensor, b: Tensor, mode: str, dims: _Sequence[int], name: str
) -> Tensor:
    """The middle of a convolution that a mode keeps."""
    if mode == "full":
        return whole
    pairs = [(a._a.shape[d], b._a.shape[d]) for d in dims]
    if mode == "valid" and any(m < n for m, n in pairs) and any(m > n for m, n in pairs):
        raise ValueError(
            f"`scipy.signal.{name}` with mode='valid': one must be at least as long as the other "
            f"along every dimension, got the shapes {a._a.shape} and {b._a.shape}"
        )
    for d, (m, n) in zip(dims, pairs, strict=True):
        size = m if mode == "same" else abs(m - n) + 1
        whole = _narrow(whole, d, (whole._a.shape[d] - size) // 2, size)
    return whole


def __getattr__(name: str) -> _Any:
    return _theirs("scipy.signal", name)
