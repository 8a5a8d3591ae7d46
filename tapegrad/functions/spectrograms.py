"""Short-time Fourier transforms: spectra of windows that slide along signals, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions.arguments import as_input
from tapegrad.functions.complex_parts import view_as_real
from tapegrad.functions.creation import ones
from tapegrad.functions.fourier import fft, ifft, irfft, rfft
from tapegrad.functions.indexing import index_add
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import reshape, transpose
from tapegrad.functions.strided_views import unfold
from tapegrad.functions.tiling import pad
from tapegrad.tensor import Tensor, wrap


@method
def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """The spectra (frequency, frame) of windows that slide along a signal, or along each of many.

    With `center` the signal is padded, so that frame t is centred at ``t * hop_length``.

    >>> import tapegrad as tg
    >>> x = tg.ones(8)
    >>> tg.stft(x, 4, window=tg.hann_window(4), return_complex=True).abs()[0]
    tensor([2., 2., 2., 2., 2., 2., 2., 2., 2.])
    """
    x = as_input(input, "stft")
    real = x._a.dtype.kind == "f"
    if not real and x._a.dtype.kind != "c":
        raise RuntimeError(f"`stft` takes floating-point or complex numbers, got {x.dtype}")
    if x._a.ndim not in (1, 2):
        raise RuntimeError(
            f"`stft` takes a signal, or a matrix of signals, got the shape {x._a.shape}"
        )
    hop, win = _lengths("stft", n_fft, hop_length, win_length)
    if return_complex is None:
        if real and (window is None or window._a.dtype.kind != "c"):
            raise RuntimeError("`stft` of real numbers needs return_complex: say True")
        return_complex = True
    if center:
        batched = reshape(x, (1, -1)) if x._a.ndim == 1 else x
        x = reshape(
            pad(batched, (n_fft // 2, n_fft // 2), mode=pad_mode),
            (*x._a.shape[:-1], x._a.shape[-1] + 2 * (n_fft // 2)),
        )
    if not 0 < n_fft <= x._a.shape[-1]:
        raise RuntimeError(
            f"`stft`: n_fft is between 1 and the length of the signal, got {n_fft} and the shape "
            f"{x._a.shape}"
        )
    frames: Any = unfold(x, -1, n_fft, hop)
    if window is not None or win != n_fft:
        frames = frames * _window("stft", window, win, n_fft, x)
    complexes = frames._a.dtype.kind == "c"
    if onesided and complexes:
        raise RuntimeError("`stft`: spectra of complex numbers have two sides: onesided=False")
    norm = "ortho" if normalized else "backward"
    two = complexes or onesided is False
    spectra = transpose((fft if two else rfft)(frames, norm=norm), -2, -1)
    return spectra if return_complex else view_as_real(spectra)


@method
def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose `stft` is nearest to these spectra (frequency, frame).

    >>> import tapegrad as tg
    >>> x, window = tg.arange(8.0), tg.hann_window(4)
    >>> tg.istft(tg.stft(x, 4, window=window, return_complex=True), 4, window=window, length=8)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    x = as_input(input, "istft")
    if x._a.dtype.kind != "c" or x._a.ndim not in (2, 3) or not x._a.size:
        raise RuntimeError(
            f"`istft` takes complex spectra (frequency, frame), got {x.dtype} of the shape "
            f"{x._a.shape}"
        )
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    bins, frames = x._a.shape[-2:]
    one = bins != n_fft if onesided is None else onesided
    if one and return_complex:
        raise RuntimeError("`istft`: a complex signal has spectra of two sides: onesided=False")
    if bins != (n_fft // 2 + 1 if one else n_fft):
        raise RuntimeError(
            f"`istft`: the number of frequencies does not fit n_fft={n_fft} and onesided={one}: "
            f"got {bins}"
        )
    weights = _window("istft", window, win, n_fft, x.real)
    norm = "ortho" if normalized else "backward"
    parts = transpose(x, -2, -1)
    if return_complex:
        parts = ifft(parts, norm=norm)
    else:  # of a real signal, whose negative frequencies say nothing more
        parts = irfft(parts[..., : n_fft // 2 + 1], n_fft, norm=norm)
    places = wrap((np.arange(frames)[:, None] * hop + np.arange(n_fft)).reshape(-1))
    whole = n_fft + hop * (frames - 1)
    begin = n_fft // 2 if center else 0
    end = whole - begin if center and length is None else whole
    end = end if length is None else begin + length
    added = _overlapped(parts * weights, places, whole)[..., begin:end]
    envelope = (weights * weights).expand(frames, n_fft)
    total = _overlapped(envelope, places, whole)[begin:end]
    if total._a.size and float(total.detach().abs().min().item()) < 1e-11:
        raise RuntimeError("`istft`: the squares of the windows add to zero somewhere")
    found = added / total
    missing = 0 if length is None else length - found._a.shape[-1]
    return pad(found, (0, missing)) if missing > 0 else found


def _lengths(name: str, n_fft: int, hop: int | None, win: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop is None else hop
    win = n_fft if win is None else win
    if hop <= 0 or not 0 < win <= n_fft:
        raise RuntimeError(
            f"`{name}`: hop_length is positive and win_length between 1 and n_fft={n_fft}, got "
            f"{hop} and {win}"
        )
    return hop, win


def _window(name: str, window: Any, win: int, n_fft: int, x: Tensor) -> Tensor:
    """The window, or ones, with zeros on both sides of it."""
    found = ones(win, dtype=x.dtype) if window is None else as_input(window, name)
    if found._a.shape != (win,):
        raise RuntimeError(
            f"`{name}`: the window is a vector of {win} elements, got the shape {found._a.shape}"
        )
    before = (n_fft - win) // 2
    return found if win == n_fft else pad(found, (before, n_fft - win - before))


def _overlapped(parts: Tensor, places: Tensor, size: int) -> Tensor:
    """Frames added where they lie in the signal."""
    shape = parts._a.shape[:-2]
    target = wrap(np.zeros((*shape, size), parts._a.dtype))
    return index_add(target, -1, places, reshape(parts, (*shape, -1)))
