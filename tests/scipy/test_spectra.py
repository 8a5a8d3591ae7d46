"""Spectra: values of SciPy's, derivatives, transforms."""

import numpy as np
import pytest
import scipy.signal

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(1)
X, M = rng.standard_normal(11), rng.standard_normal((2, 12))
B, A = np.array([0.5, -0.3, 0.2]), np.array([1.5, 0.4])
# Each with SciPy's arguments, and what it is given.
SPECTRA = {
    "welch": (lambda lib, x: lib.welch(x, 2.0, nperseg=4)[1], X),
    "welch of columns": (lambda lib, x: lib.welch(x.T, nperseg=5, axis=0)[1], M),
    "welch of other parts": (
        lambda lib, x: lib.welch(x, 1.0, np.hanning(6), None, 2, 9, "linear")[1], X
    ),
    "welch of a spectrum": (
        lambda lib, x: lib.welch(x, nperseg=4, detrend=False, scaling="spectrum")[1], X
    ),
    "csd": (lambda lib, x, y: lib.csd(x, y[0, :11], 2.0, nperseg=4)[1].imag, X, M),
    "csd of columns": (
        lambda lib, x: abs(lib.csd(x.T, x.T ** 2, nperseg=5, axis=0, scaling="spectrum")[1]), M
    ),
    "coherence": (lambda lib, x: lib.coherence(x[0], x[1], nperseg=5, noverlap=2)[1], M),
    "coherence of columns": (lambda lib, x: lib.coherence(x.T, x.T**2, nperseg=5, axis=0)[1], M),
    "periodogram": (lambda lib, x: lib.periodogram(x)[1], X),
    "periodogram of less": (lambda lib, x: lib.periodogram(x, 3.0, "hann", 8)[1], M),
    "periodogram of more": (lambda lib, x: lib.periodogram(x, nfft=13, scaling="spectrum")[1], X),
    "freqz": (lambda lib, b, a: abs(lib.freqz(b, a, 5)[1]), B, A),
    "freqz at some": (lambda lib, b: lib.freqz(b, worN=[0.1, 0.4], fs=2.0)[1].imag, B),
    "stft": (lambda lib, x: abs(lib.stft(x, nperseg=4)[2]), X),
    "stft of columns": (lambda lib, x: lib.stft(x.T, 2.0, nperseg=5, axis=0)[2].imag, M),
    "stft of other parts": (
        lambda lib, x: lib.stft(x, 1.0, np.hanning(6), None, 2, 9, "linear", True, "odd")[2].real, X
    ),
    "stft of a density": (
        lambda lib, x: lib.stft(x, 1, "hann", 4, None, None, False, True, "even", False, -1, "psd")[
            2
        ].real, X
    ),
    "istft": (lambda lib, x: lib.istft(x.reshape(3, 4) * (1 + 0.5j), nperseg=4)[1], M[0]),
    "istft of an odd size": (
        lambda lib, x: lib.istft(x.reshape(3, 4) * 1j, 2.0, "boxcar", 5, 2, boundary=False)[1],
        M[0],
    ),
    "istft of a batch": (
        lambda lib, x: lib.istft(
            x.reshape(2, 3, 4) * 1j, time_axis=1, freq_axis=2, scaling="psd"
        )[1], M,
    ),
    "spectrogram": (lambda lib, x: lib.spectrogram(x, 2.0, nperseg=5)[2], X),
    "spectrogram of spectra": (
        lambda lib, x: lib.spectrogram(x, 2, "hann", 4, scaling="spectrum", mode="complex")[2].imag,
        M,
    ),
    "spectrogram of sizes": (lambda lib, x: lib.spectrogram(x, nperseg=4, mode="magnitude")[2], X),
    "upfirdn": (lambda lib, h, x: lib.upfirdn(h, x, 3, 2), B, X),
    "upfirdn of columns": (lambda lib, h, x: lib.upfirdn(h, x.T, 4, 1, axis=0), B, M),
    "resample_poly up": (lambda lib, x: lib.resample_poly(x, 3, 2), X),
    "resample_poly down": (lambda lib, x: lib.resample_poly(x, 2, 6, 1, "hann"), M),
    "resample_poly by a filter": (
        lambda lib, x, h: lib.resample_poly(x, 5, 3, window=h, padtype="mean"), X, B
    ),
    "resample_poly from a level": (
        lambda lib, x: lib.resample_poly(x, 1, 3, 1, padtype="constant", cval=1.5), M
    ),
    "resample_poly from the median": (
        lambda lib, x: lib.resample_poly(x, 2, 3, 1, padtype="median"), M
    ),
    "resample_poly from the maximum": (
        lambda lib, x: lib.resample_poly(x, 2, 3, padtype="maximum"), X
    ),
    "decimate": (lambda lib, x: lib.decimate(x, 2, 2), np.tile(X, 3)),
    "decimate forwards": (lambda lib, x: lib.decimate(x, 3, 4, zero_phase=False), M),
    "decimate by a window": (lambda lib, x: lib.decimate(x.T, 3, 10, "fir", 0), M),
    "decimate by a window, forwards": (
        lambda lib, x: lib.decimate(x, 2, ftype="fir", zero_phase=False), X
    ),
    "medfilt": (lambda lib, x: lib.medfilt(x, 5), X),
    "medfilt of a matrix": (lambda lib, x: lib.medfilt(x.reshape(4, 6)), M),
    "medfilt by two sizes": (lambda lib, x: lib.medfilt(x, (1, 5)), M),
    "resample to fewer": (lambda lib, x: lib.resample(x, 8, axis=1), M),
    "resample to an odd number": (lambda lib, x: lib.resample(x, 7), X),
    "resample to more": (lambda lib, x: lib.resample(x.T, 15), M),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra(name):
    call, *arrays = SPECTRA[name]
    same("signal", call, *arrays)
    alike_in_transforms("signal", call, *arrays)


def test_frequencies_and_times_are_scipys():
    t = tg.tensor(M)
    for call in (
        lambda lib, x: lib.welch(x, 3.0, nperseg=5),
        lambda lib, x: lib.periodogram(x, 3.0, nfft=16),
        lambda lib, x: lib.coherence(x, x + 1, 3.0, nperseg=5, nfft=9),
        lambda lib, x: lib.freqz(x[0], worN=5),
        lambda lib, x: lib.freqz(x[0], worN=5, whole=True, fs=10.0),
        lambda lib, x: lib.freqz(x[0], worN=5, include_nyquist=True),
        lambda lib, x: lib.freqz(x[0], worN=[0.1, 0.2], fs=10.0),
    ):
        np.testing.assert_allclose(
            call(tg.scipy.signal, t)[0], call(scipy.signal, M)[0], rtol=1e-14
        )
    for call in (
        lambda lib, x: lib.stft(x, 3.0, nperseg=5),
        lambda lib, x: lib.stft(x, 3.0, nperseg=4, boundary=None, nfft=6),
        lambda lib, x: lib.spectrogram(x, 3.0, nperseg=5),
        lambda lib, x: (*lib.istft(x[None] * (1 + 1j), 3.0, freq_axis=1), None),
    ):
        theirs = call(scipy.signal, M)
        for k, found in enumerate(call(tg.scipy.signal, t)[:2]):
            np.testing.assert_allclose(found, theirs[k], rtol=1e-14, atol=1e-14)
    times = np.arange(12) * 0.5
    np.testing.assert_allclose(
        tg.scipy.signal.resample(t, 5, times, axis=1)[1],
        scipy.signal.resample(M, 5, times, axis=1)[1],
        rtol=1e-14,
    )


def test_single_precision_stays():
    t, lib = tg.tensor(X, dtype=tg.float32), tg.scipy.signal
    for found in (lib.welch(t, nperseg=4)[1], lib.periodogram(t)[1], lib.resample(t, 5)):
        assert found.dtype == tg.float32
    assert lib.freqz(t)[1].dtype == tg.complex64
    z = lib.stft(t, nperseg=4)[2]
    assert z.dtype == tg.complex64
    for found in (lib.istft(z)[1], lib.decimate(t.tile(3), 2), lib.resample_poly(t, 2, 3)):
        assert found.dtype == tg.float32


def test_what_is_not_there_is_refused():
    t, lib = tg.tensor(X, requires_grad=True), tg.scipy.signal
    for call, error, words in [
        (lambda: lib.welch(t, nperseg=4, noverlap=4), ValueError, "parts of 4 elements.* of 11"),
        (lambda: lib.welch(t, window=np.ones(4), nperseg=5), ValueError, "of 4 .* nperseg=5"),
        (lambda: lib.welch(t, average="median"), TypeError, "the mean of .*'median'"),
        (lambda: lib.csd(t, t[1:], nperseg=4), TypeError, "of one length, got 11 and 10"),
        (lambda: lib.csd(t, t, return_onesided=False), TypeError, "`scipy.signal.csd`.*False"),
        (lambda: lib.periodogram(t * 1j), TypeError, "real signals, got .*complex128"),
        (lambda: lib.freqz(t, plot=print), TypeError, "plots nothing"),
        (lambda: lib.resample(t, 5, window="hann"), TypeError, "no window"),
        (lambda: lib.stft(t, return_onesided=False), TypeError, "one-sided spectra.*False"),
        (lambda: lib.spectrogram(t, mode="angle"), TypeError, "the mode .*'angle'"),
        (lambda: lib.istft(t), TypeError, r"\(frequency, time\).* the shape \(11,\)"),
        (lambda: lib.istft(M * (1 + t[0]), nperseg=7), ValueError, "parts of 7 .* 2 frequencies"),
        (lambda: lib.upfirdn(B, t, mode="wrap"), TypeError, "extends by zeros, got 'wrap'"),
        (lambda: lib.resample_poly(t, 0, 1), ValueError, "at least 1, got 0, 1"),
        (lambda: lib.resample_poly(t, 2, 1, padtype="line"), TypeError, "padtype .*'line'"),
        (lambda: lib.decimate(t, 2, ftype="best"), TypeError, "'iir' or 'fir', got 'best'"),
        (lambda: lib.medfilt(t, 4), ValueError, r"are odd, got \[4\]"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_parts_longer_than_the_signal_are_all_of_it():
    with pytest.warns(UserWarning, match="nperseg=50 is more than the signal has: 11"):
        found = tg.scipy.signal.welch(tg.tensor(X), nperseg=50)[1]
    np.testing.assert_allclose(found, scipy.signal.welch(X, nperseg=11)[1], rtol=1e-12)
