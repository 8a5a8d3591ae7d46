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
        (lambda: tg.scipy.signal.lfilter(B, A, t, zi=[0.0, 0.0]), TypeError, "without `zi="),
        (lambda: tg.scipy.signal.sosfilt(SOS, t, zi=[0.0]), TypeError, "without `zi="),
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
