"""Filters of `scipy.signal`: each is linear in the signal, and `lfilter` has rules for both sides.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 0.0, 0.0], requires_grad=True)
>>> tg.scipy.signal.lfilter([1.0], [1.0, -0.5], x).sum().backward(); x.grad
tensor([1.7500, 1.5000, 1.0000])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.functions import fourier
from tapegrad.functions.arguments import one_dim
from tapegrad.functions.joining import cat, stack
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import mean
from tapegrad.functions.shapes import broadcast_to, flip, movedim, narrow
from tapegrad.functions.strided_views import unfold
from tapegrad.nn.functional import pad
from tapegrad.numpy_face.common import floating, tensor
from tapegrad.scipy.either import for_tensors, theirs
from tapegrad.scipy.matrix_equations import scipy_call
from tapegrad.tensor import Tensor, wrap
from tapegrad.transforms.primitives import defjvp, defvjp, primitive

_own = for_tensors("scipy.signal")


@primitive
def _lfilter(b: Any, a: Any, x: Any) -> Any:
    """Along the last axis."""
    return scipy_call(theirs("scipy.signal", "lfilter"), b, a, x)


def _weights(g: Any, x: Any, size: int) -> Any:
    """What a coefficient has in the result, for each delay: the products of g with x before."""
    n = np.shape(x)[-1]
    return np.stack([np.sum(g[..., min(k, n) :] * x[..., : max(n - k, 0)]) for k in range(size)])


_ONE = np.ones(1)
defvjp(
    _lfilter,
    lambda y, b, a, x: lambda g: _weights(g, _lfilter(_ONE, a, x), np.size(b)),
    lambda y, b, a, x: lambda g: -_weights(g, _lfilter(_ONE, a, y), np.size(a)),
    lambda y, b, a, x: lambda g: np.flip(_lfilter(b, a, np.flip(g, -1)), -1),
)
defjvp(
    _lfilter,
    lambda db, y, b, a, x: _lfilter(db, a, x),
    lambda da, y, b, a, x: -_lfilter(da, a, y),
    lambda dx, y, b, a, x: _lfilter(b, a, dx),
)


def along_the_end(x: Any, axis: int, name: str) -> tuple[Tensor, int]:
    """The signal with the axis that is filtered at the end, and which that was."""
    t = floating(tensor(x))
    d = one_dim(axis, t._a.ndim, f"scipy.signal.{name}")
    return movedim(t, d, -1), d


@_own
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """A digital filter with the numerator `b` and the denominator `a`.

    It begins at rest, or in the state `zi`, and then returns the last state, too.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.lfilter([0.5, 0.5], [1.0], tg.tensor([1.0, 3.0]))
    tensor([0.5000, 2.0000])
    >>> tg.scipy.signal.lfilter([0.5, 0.5], [1.0], tg.tensor([1.0, 3.0]), zi=[2.0])
    (tensor([2.5000, 2.0000]), tensor([1.5000]))
    """
    t, d = along_the_end(x, axis, "lfilter")
    num, den = (floating(tensor(c)).reshape(-1) for c in (b, a))
    found = tensor(_lfilter(num, den, t))
    if zi is None:
        return movedim(found, -1, d)
    order, n = max(num._a.size, den._a.size) - 1, t._a.shape[-1]
    state = floating(movedim(tensor(zi), d, -1))
    lead = t._a.shape[:-1]
    if state._a.ndim != t._a.ndim or state._a.shape[-1] != order:
        raise ValueError(
            f"`scipy.signal.lfilter`: a filter of {order + 1} coefficients has {order} numbers in "
            f"its state along the axis that is filtered, got `zi` of shape {np.shape(zi)}"
        )
    state = broadcast_to(state, (*lead, order))
    # The state is a signal of its own, of which the denominator makes what comes of it.
    num, den = (pad(c / den[0], (0, order + 1 - c._a.size)) for c in (num, den))
    found = found + tensor(_lfilter(_ONE.astype(den._a.dtype), den, pad(state, (0, n))))[..., :n]
    for k in range(max(n - order, 0), n):  # what is before has left it
        arriving = t[..., k, None] * num[1:] - found[..., k, None] * den[1:]
        state = pad(state[..., 1:], (0, 1)) + arriving
    return movedim(found, -1, d), movedim(state, -1, d)


@_own
def lfilter_zi(b: Any, a: Any) -> Tensor:
    """The state of a filter that a signal of ones has been through for long.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.lfilter_zi(tg.tensor([0.5, 0.5]), [1.0])
    tensor([0.5000])
    """
    num, den = (floating(tensor(c)).reshape(-1) for c in (b, a))
    size = max(num._a.size, den._a.size)
    num, den = (pad(c / den[0], (0, size - c._a.size)) for c in (num, den))
    # Each number of the state is the next one, and what arrives; the output is 1 / a of b's sum.
    total = num.sum() / den.sum()
    return flip(flip(num[1:] - den[1:] * total, (0,)).cumsum(0), (0,))


@_own
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Filters of second order, one after the other; each row of `sos` has six coefficients.

    They begin at rest, or in the states `zi`, and then the last states are returned, too.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.sosfilt([[2.0, 0.0, 0.0, 1.0, 0.0, 0.0]], tg.tensor([1.0, 3.0]))
    tensor([2., 6.])
    """
    rows, found = tensor(sos), tensor(x)
    states, last = None if zi is None else tensor(zi), []
    for k in range(rows._a.shape[0]):
        found = lfilter(
            rows[k, :3], rows[k, 3:], found, axis, None if states is None else states[k]
        )
        if states is not None:
            found, state = found
            last.append(state)
    return found if states is None else (found, stack(last))


@_own
def sosfilt_zi(sos: Any) -> Tensor:
    """The states of filters that a signal of ones has been through for long.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.sosfilt_zi(tg.tensor([[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    rows, states = tensor(sos), []
    scale: Any = 1.0
    for k in range(rows._a.shape[0]):
        num, den = rows[k, :3], rows[k, 3:]
        states.append(scale * lfilter_zi(num, den))
        scale = scale * (num.sum() / den.sum())
    return stack(states)


@_own
def hilbert(x: Any, N: int | None = None, axis: int = -1) -> Tensor:
    """The analytic signal, whose imaginary part is the Hilbert transform.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.hilbert(tg.tensor([1.0, 0.0, -1.0, 0.0])).imag
    tensor([ 0.,  1.,  0., -1.])
    """
    t, d = along_the_end(x, axis, "hilbert")
    size = t._a.shape[-1] if N is None else N
    weights = np.zeros(size)
    weights[0], weights[1 : (size + 1) // 2] = 1, 2
    if size % 2 == 0:
        weights[size // 2] = 1
    return movedim(fourier.ifft(fourier.fft(t, size) * weights), -1, d)


@_own
def detrend(
    data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False
) -> Tensor:
    """A signal without its mean, or without straight lines between the breaks at `bp`.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.detrend(tg.tensor([1.0, 2.0, 6.0]), type="constant")
    tensor([-2., -1.,  3.])
    """
    t, d = along_the_end(data, axis, "detrend")
    n = t._a.shape[-1]
    if type in ("constant", "c"):
        return movedim(t - mean(t, -1, keepdim=True), -1, d)
    if type not in ("linear", "l"):
        raise ValueError(f"`scipy.signal.detrend`: type is 'linear' or 'constant', got {type!r}")
    breaks = np.unique([0, *np.ravel(bp), n])
    if breaks[0] < 0 or breaks[-1] > n:
        raise ValueError(f"`scipy.signal.detrend`: breaks lie within {n} elements, got {bp}")
    parts = []
    for first, last in zip(breaks[:-1].tolist(), breaks[1:].tolist(), strict=True):
        part = narrow(t, -1, first, last - first)
        lines = np.stack([np.ones(last - first), np.arange(last - first)], 1)
        base = wrap(np.linalg.qr(lines)[0].astype(t._a.dtype))
        parts.append(part - matmul(matmul(part, base), base.T))
    return movedim(cat(parts, -1), -1, d)


@_own
def savgol_filter(
    x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0,
    axis: int = -1, mode: str = "interp", cval: float = 0.0,
) -> Tensor:  # fmt: skip
    """Values, or derivatives, of polynomials that are fitted to a window around each element.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.savgol_filter(tg.tensor([1.0, 2.0, 3.0, 4.0]), 3, 1).round()
    tensor([1., 2., 3., 4.])
    """
    if mode != "interp":
        raise TypeError(
            f"`scipy.signal.savgol_filter` of a Tensor has the mode 'interp', got {mode!r}: use "
            "`np.pad`, and cut the ends off"
        )
    t, d = along_the_end(x, axis, "savgol_filter")
    n, half = t._a.shape[-1], window_length // 2
    if window_length > n:
        raise ValueError(
            f"`scipy.signal.savgol_filter`: a window of {window_length} does not fit {n} elements"
        )
    # The filter of so few elements that one has a window around it: what it takes of each of them.
    size = min(window_length | 1, n)
    shares = theirs("scipy.signal", "savgol_filter")(
        np.eye(size), window_length, polyorder, deriv, delta, axis=0
    )
    columns = wrap(shares.T.astype(t._a.dtype))
    parts = [
        matmul(narrow(t, -1, 0, size), columns[:, :half]),
        matmul(unfold(t, -1, size, 1), columns[:, half : size - half]).squeeze(-1),
        matmul(narrow(t, -1, n - size, size), columns[:, size - half :]),
    ]
    return movedim(cat(parts if size % 2 else parts[::2], -1), -1, d)
