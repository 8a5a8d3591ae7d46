"""Filters and convolutions of matrices: values of SciPy's, derivatives, transforms."""

import numpy as np
import pytest
import scipy.signal

import tapegrad as tg
from tests.scipy.test_names import alike_in_transforms, same

pytestmark = pytest.mark.tapegrad_only("PyTorch has other names")

rng = np.random.default_rng(1)
X, M = rng.standard_normal(11), rng.standard_normal((4, 7))
B, A = np.array([0.5, -0.3, 0.2]), np.array([1.5, 0.4, 0.1])
SOS = np.array([[0.5, 0.2, 0.1, 1.0, 0.3, 0.1], [1.0, 0.0, 0.4, 1.0, -0.2, 0.3]])
# Each with SciPy's arguments, and what it is given.
FILTERS = {
    "lfilter": (lambda lib, b, a, x: lib.lfilter(b, a, x), B, A, X),
    "lfilter of rows": (lambda lib, b, a, x: lib.lfilter(b, a, x), B[:2], A, M),
    "lfilter of columns": (lambda lib, b, a, x: lib.lfilter(b, a, x, axis=0), X[:6], A, M),
    "lfilter without a past": (lambda lib, b, x: lib.lfilter(b, [1.0], x), B, X),
    "sosfilt": (lambda lib, s, x: lib.sosfilt(np.hstack([s, SOS[:, 3:]]), x), SOS[:, :3], M),
    "lfilter in a state": (lambda lib, b, a, x, z: lib.lfilter(b, a, x, zi=z), B, A, X, A[1:]),
    "lfilter of columns in states": (
        lambda lib, b, a, x, z: lib.lfilter(b, a, x, axis=0, zi=z), B, A[:2], M, M[:2] + 1
    ),
    "lfilter of less than a state": (
        lambda lib, b, a, x, z: lib.lfilter(b, a, x, zi=z), X[:5], A, X[:2], X[4:8]
    ),
    "lfilter_zi": (lambda lib, b, a: lib.lfilter_zi(b, a), B, A[:2]),
    "sosfilt in states": (
        lambda lib, s, x, z: lib.sosfilt(np.hstack([s, SOS[:, 3:]]), x, zi=z),
        SOS[:, :3], X, SOS[:, 3:5],
    ),
    "sosfilt_zi": (lambda lib, s: lib.sosfilt_zi(np.hstack([s, SOS[:, 3:]])), SOS[:, :3]),
    "filtfilt": (lambda lib, b, a, x: lib.filtfilt(b, a, x), B, A, X),
    "filtfilt of columns": (
        lambda lib, b, x: lib.filtfilt(b, 1.0, x, 0, "even", 2), B, M
    ),
    "filtfilt at rest": (lambda lib, b, a, x: lib.filtfilt(b, a, x, padtype=None), B, A, X),
    "filtfilt with constant ends": (
        lambda lib, x: lib.filtfilt(B, A, x, padtype="constant", padlen=5), M
    ),
    "sosfiltfilt": (lambda lib, x: lib.sosfiltfilt(SOS[:1], x), X),
    "sosfiltfilt of several": (lambda lib, x: lib.sosfiltfilt(SOS, x, padlen=6), M),
    "hilbert": (lambda lib, x: abs(lib.hilbert(x)), X),
    "hilbert of columns": (lambda lib, x: lib.hilbert(x, 6, axis=0).imag, M),
    "detrend": (lambda lib, x: lib.detrend(x), X),
    "detrend of columns": (lambda lib, x: lib.detrend(x, axis=0, type="constant"), M),
    "detrend in parts": (lambda lib, x: lib.detrend(x, bp=[4, 6]), X),
    "savgol_filter": (lambda lib, x: lib.savgol_filter(x, 5, 2), X),
    "savgol_filter of columns": (lambda lib, x: lib.savgol_filter(x, 3, 1, axis=0), M),
    "savgol_filter of slopes": (lambda lib, x: lib.savgol_filter(x, 7, 3, 1, 0.2), M),
    "savgol_filter of an even window": (lambda lib, x: lib.savgol_filter(x, 6, 2), X),
    "savgol_filter of one window": (lambda lib, x: lib.savgol_filter(x, 10, 2), X[:10]),
    "oaconvolve": (lambda lib, x, y: lib.oaconvolve(x, y, "same"), X, B),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name):
    call, *arrays = FILTERS[name]
    same("signal", call, *arrays)
    alike_in_transforms("signal", call, *arrays)


def test_hessians_of_long_signals():
    """Of many rows the sweep takes all at once."""
    x = rng.standard_normal(30)

    def f(x):
        return np.sum(tg.scipy.signal.lfilter(B, A, x) ** 3)

    def steps(k):
        e = 1e-5 * np.eye(30)[k]
        return (tg.grad(f)(x + e) - tg.grad(f)(x - e)) / 2e-5

    wanted = np.stack([steps(k) for k in range(30)])
    np.testing.assert_allclose(tg.hessian(f)(x), wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tg.jit(tg.hessian(f))(x), wanted, rtol=1e-6, atol=1e-8)


def test_single_precision_stays():
    t = tg.tensor(X, dtype=tg.float32, requires_grad=True)
    b, a, s = (v.astype(np.float32) for v in (B, A, SOS))
    lib = tg.scipy.signal
    for found in (lib.filtfilt(b, a, t), lib.sosfiltfilt(s, t, padlen=3), lib.lfilter(b, a, t)):
        assert found.dtype == tg.float32


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_matrices(name, mode, boundary):
    def call(lib, x, y):
        return getattr(lib, name)(x, y, mode, boundary, 2.0)

    for shape in ((2, 3), (3, 2), (1, 4)):
        y = rng.standard_normal(shape)
        same("signal", call, M, y, orders=0)
        same("signal", call, M * (1 + 1j), y - 1j, orders=0)
    if boundary == "fill":
        same("signal", call, M[:2, :3], M, orders=0)
    same("signal", call, M[:3, :4], y[:, :2])
    alike_in_transforms("signal", call, M, y)


def test_what_is_not_there_is_refused():
    t = tg.tensor(X, requires_grad=True)
    for call, error, words in [
        (lambda: tg.scipy.signal.lfilter(B, A, t, zi=[0.0]), ValueError, "3 coeff.*has 2 num"),
        (lambda: tg.scipy.signal.filtfilt(B, A, t, method="gust"), TypeError, "'pad', got 'gust'"),
        (lambda: tg.scipy.signal.filtfilt(B, A, t, padtype="no"), ValueError, "None, got 'no'"),
        (lambda: tg.scipy.signal.sosfiltfilt(SOS, t), ValueError, "more than 15 .* got 11: give"),
        (lambda: tg.scipy.signal.detrend(t, type="square"), ValueError, "got 'square'"),
        (lambda: tg.scipy.signal.detrend(t, bp=20), ValueError, "within 11 elements, got 20"),
        (lambda: tg.scipy.signal.savgol_filter(t, 3, 1, mode="wrap"), TypeError, "got 'wrap'"),
        (lambda: tg.scipy.signal.savgol_filter(t, 13, 1), ValueError, "13 does not fit 11"),
        (lambda: tg.scipy.signal.convolve2d(t, t), ValueError, "takes matrices"),
        (lambda: tg.scipy.signal.convolve2d(M, t[None], boundary="x"), ValueError, "got .* 'x'"),
        (lambda: scipy.signal.lfilter(B, A, t), RuntimeError, r"`tapegrad.scipy.signal.lfilter`"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            call()
