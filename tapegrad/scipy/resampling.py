"""Signals at other rates, of `scipy.signal`, and its median filter.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 3.0, 2.0], requires_grad=True)
>>> tg.scipy.signal.medfilt(x).sum().backward(); x.grad
tensor([1., 0., 2.])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.functions.order_statistics import median
from tapegrad.functions.shapes import movedim, narrow, reshape
from tapegrad.functions.strided_views import unfold
from tapegrad.nn.functional import pad
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.filters import along_the_end, lfilter, sosfilt
from tapegrad.scipy.zero_phase import sosfiltfilt
from tapegrad.tensor import Tensor, wrap

_own = for_tensors("scipy.signal")


@_own
def upfirdn(
    h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1, mode: str = "constant",
    cval: float = 0,
) -> Tensor:  # fmt: skip
    """A signal with zeros between its elements, filtered by `h`, of which each `down`-th is kept.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.upfirdn([1.0, 1.0], tg.tensor([1.0, 2.0]), up=3)
    tensor([1., 1., 0., 2., 2.])
    """
    t, d = along_the_end(x, axis, "upfirdn")
    if mode != "constant" or cval:
        raise TypeError(f"`scipy.signal.upfirdn` of Tensors extends by zeros, got {mode!r}, {cval}")
    return movedim(_upfirdn(floating(tensor(h)), t, up, down), -1, d)


def _upfirdn(h: Tensor, t: Tensor, up: int, down: int) -> Tensor:
    """The same along the end."""
    lead, n = t._a.shape[:-1], t._a.shape[-1]
    spaced = reshape(pad(t[..., None], (0, up - 1)), (*lead, n * up))
    spaced = pad(spaced, (0, h._a.shape[-1] - up))
    found: Tensor = lfilter(h, np.ones(1, h._a.dtype), spaced)[..., ::down]
    return found


def _level(t: Tensor, padtype: str, cval: float | None) -> Any:
    """What lies beyond the ends of a signal."""
    known: dict[str, Any] = {
        "mean": np.mean, "median": np.median, "maximum": np.max, "minimum": np.min,
    }  # fmt: skip
    if padtype == "constant":
        return cval or 0
    if padtype not in known:
        raise TypeError(
            "`scipy.signal.resample_poly` of Tensors: padtype is 'constant', "
            f"{', '.join(map(repr, known))}, got {padtype!r}"
        )
    return known[padtype](t, axis=-1, keepdims=True)


@_own
def resample_poly(
    x: Any, up: int, down: int, axis: int = 0, window: Any = ("kaiser", 5.0),
    padtype: str = "constant", cval: float | None = None,
) -> Tensor:  # fmt: skip
    """A signal at `up / down` times its rate, filtered by the window of a sinc, or by `window`.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.resample_poly(tg.tensor([1.0, 2.0, 3.0]), 1, 2, window=[1.0])
    tensor([1., 3.])
    """
    t, d = along_the_end(x, axis, "resample_poly")
    up, down = int(up), int(down)
    if up < 1 or down < 1:
        raise ValueError(
            f"`scipy.signal.resample_poly`: up and down are at least 1, got {up}, {down}"
        )
    up, down = up // math.gcd(up, down), down // math.gcd(up, down)
    level = _level(t, padtype, cval)
    if up == down:
        return movedim(t.clone(), -1, d)
    if isinstance(window, (str, tuple)):
        half = 10 * max(up, down)
        firwin = theirs("scipy.signal", "firwin")
        h = wrap(firwin(2 * half + 1, 1 / max(up, down), window=window).astype(t._a.dtype))
    else:
        h = floating(tensor(window))
        half = (h._a.size - 1) // 2
    size = -(-t._a.shape[-1] * up // down)
    t = pad(t - level, (0, 1 + (half + up) // up))  # so that there is enough behind the filter
    found = narrow(_upfirdn(h * up, t, up, 1)[..., half::down], -1, 0, size)
    return movedim(found + level, -1, d)


@_own
def decimate(
    x: Any, q: int, n: int | None = None, ftype: Any = "iir", axis: int = -1,
    zero_phase: bool = True,
) -> Tensor:  # fmt: skip
    """Each `q`-th element of a signal, after a filter that takes away what is too fast for them.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.decimate(tg.ones(40), 4)[4:6].round(decimals=1)
    tensor([1., 1.])
    """
    if ftype not in ("iir", "fir"):
        raise TypeError(
            f"`scipy.signal.decimate` of Tensors: ftype is 'iir' or 'fir', got {ftype!r}"
        )
    t, d = along_the_end(x, axis, "decimate")
    kind = t._a.dtype
    if ftype == "fir":
        taps = 20 * q if n is None else n
        b = theirs("scipy.signal", "firwin")(taps + 1, 1 / q, window="hamming").astype(kind)
        if zero_phase:
            return movedim(resample_poly(t, 1, q, -1, b), -1, d)
        return movedim(narrow(_upfirdn(wrap(b), t, 1, q), -1, 0, -(-t._a.shape[-1] // q)), -1, d)
    cheby1 = theirs("scipy.signal", "cheby1")
    sos = cheby1(8 if n is None else n, 0.05, 0.8 / q, output="sos").astype(kind)
    found = (sosfiltfilt if zero_phase else sosfilt)(sos, t)
    return movedim(found[..., ::q], -1, d)


@_own
def medfilt(volume: Any, kernel_size: Any = None) -> Tensor:
    """The median of each element and those around it, beyond the border of which lie zeros.

    `kernel_size` is odd, for all dimensions or for each; 3 if it is not given.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.medfilt(tg.tensor([1.0, 5.0, 2.0, 4.0]))
    tensor([1., 2., 4., 2.])
    """
    t = tensor(volume)
    sizes = np.broadcast_to(3 if kernel_size is None else kernel_size, (t._a.ndim,)).tolist()
    if any(n % 2 == 0 for n in sizes):
        raise ValueError(f"`scipy.signal.medfilt`: the sizes of the window are odd, got {sizes}")
    found: Tensor = pad_(t, [(n // 2, n // 2) for n in sizes], "constant")
    for k, n in enumerate(sizes):
        found = unfold(found, k, n, 1)
    return median(reshape(found, (*t._a.shape, -1)), -1)[0]
