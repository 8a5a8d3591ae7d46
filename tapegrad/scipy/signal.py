"""Convolution of `scipy.signal`, for Tensors.

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
from tapegrad.scipy.convolution import convolve as _windows
from tapegrad.scipy.either import for_tensors as _for_tensors
from tapegrad.scipy.either import theirs as _theirs
from tapegrad.tensor import Tensor, tensor_of

__all__ = ["convolve", "correlate", "fftconvolve"]

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
