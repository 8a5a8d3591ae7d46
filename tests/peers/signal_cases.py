"""Windows of signal processing and short-time Fourier transforms, which PyTorch understands too."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

from tests.peers.torch_cases import case

# fmt: off
for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
    case(lambda t, n=name: [getattr(t, f"{n}_window")(k, periodic, dtype=t.float64) for k in (0, 1, 2, 5, 8) for periodic in (True, False)])
case(lambda t: [t.hamming_window(5, True, 0.6, 0.3), t.kaiser_window(5, False, 3.0), t.hann_window(4), t.hann_window(3, dtype=t.float32)])
S = (2, 24)
for options in (
    "8", "8, 3", "8, 3, 6", "8, window=w", "8, 2, center=False, window=w", "8, normalized=True", "8, onesided=False",
    "8, pad_mode='constant'", "7, 2, 5, pad_mode='replicate'",
):
    exec(f"case(lambda t, x, w: t.view_as_real(t.stft(x, {options}, return_complex=True)), S, (8,), integers=False)")
    exec(f"case(lambda t, x, w: x[0].stft({options}, return_complex=True).abs(), S, (8,), integers=False)")
case(lambda t, x: t.stft(x, 8, return_complex=False), S, integers=False)
case(lambda t, x: t.view_as_real(t.stft(t.complex(x, x + 1), 8)), S, integers=False)
for options in ("8", "8, 2", "8, 2, 7", "8, 2, window=t.hann_window(8, dtype=x.dtype)", "8, center=False", "8, normalized=True", "8, length=15", "8, length=40"):
    exec(f"case(lambda t, x: t.istft(t.complex(x[:, :5], x[:, 5:]), {options}), (2, 10, 6), integers=False)")
case(lambda t, x: [t.istft(t.complex(x, x * 2), 8, onesided=False), t.view_as_real(t.istft(t.complex(x, x * 2)[0], 8, return_complex=True))], (2, 8, 6), integers=False)
case(lambda t, x: [t.istft(t.complex(x, x * 2), 8), t.view_as_real(t.istft(t.complex(x, x * 2), 8, window=t.complex(x[0, :, 0] + 2, x[0, :, 1]), return_complex=True))], (2, 8, 6), integers=False)

L = (2, 24)
REFUSED: dict[str, Any] = {
    "a window of less than nothing": (lambda t: t.hann_window(-1), []),
    "a window of integers": (lambda t: t.hann_window(3, dtype=t.int64), []),
    "stft that does not say complex": (lambda t, x: t.stft(x, 8), [L]),
    "stft of a number": (lambda t, x: t.stft(x[0, 0], 8, return_complex=True), [L]),
    "stft of integers": (lambda t, x: t.stft(x.long(), 8, return_complex=True), [L]),
    "stft of long windows": (lambda t, x: t.stft(x, 30, center=False, return_complex=True), [L]),
    "stft without a step": (lambda t, x: t.stft(x, 8, 0, return_complex=True), [L]),
    "stft of a window that is short": (lambda t, x: t.stft(x, 8, window=x[0, :5], return_complex=True), [L]),
    "stft of a window that is long": (lambda t, x: t.stft(x, 8, win_length=9, return_complex=True), [L]),
    "istft of real numbers": (lambda t, x: t.istft(x, 8), [(5, 4)]),
    "istft of other frequencies": (lambda t, x: t.istft(t.complex(x, x), 9, onesided=False), [(5, 4)]),
    "istft of one side to complex numbers": (lambda t, x: t.istft(t.complex(x, x), 8, onesided=True, return_complex=True), [(5, 4)]),
    "istft of windows that leave a hole": (lambda t, x: t.istft(t.complex(x, x), 8, 8, 2), [(5, 4)]),
}
