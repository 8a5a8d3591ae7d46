"""Filters of `scipy.signal` that run forwards and backwards, so that nothing moves.

>>> import tapegrad as tg
>>> x = tg.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
>>> tg.scipy.signal.filtfilt([0.5, 0.5], [1.0], x, padlen=1)
tensor([0.0000, 0.2500, 0.5000, 0.2500, 0.0000])
"""

from __future__ import annotations

from typing import Any

from tapegrad.functions.shapes import flip, movedim, narrow
from tapegrad.numpy_face.common import tensor
from tapegrad.numpy_face.padding import pad_
from tapegrad.scipy.either import for_tensors
from tapegrad.scipy.filters import along_the_end, lfilter, lfilter_zi, sosfilt, sosfilt_zi
from tapegrad.tensor import Tensor

_own = for_tensors("scipy.signal")


@_own
def filtfilt(
    b: Any, a: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None,
    method: str = "pad", irlen: int | None = None,
) -> Tensor:  # fmt: skip
    """A filter forwards and then backwards, along a signal that is continued at its ends.

    >>> import tapegrad as tg
    >>> tg.scipy.signal.filtfilt([0.5, 0.5], [1.0], tg.tensor([1.0, 2.0, 3.0, 4.0]), padlen=1)
    tensor([1., 2., 3., 4.])
    """
    if method != "pad":
        raise TypeError(f"`scipy.signal.filtfilt` of Tensors has the method 'pad', got {method!r}")
    taps = max(tensor(b)._a.size, tensor(a)._a.size)
    state = lfilter_zi(b, a)

    def once(t: Any) -> Any:
        return lfilter(b, a, t, zi=state * t[..., :1])[0]

    return _both_ways("filtfilt", once, x, axis, padtype, 3 * taps if padlen is None else padlen)


@_own
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Tensor:
    """Filters of second order forwards and then backwards; see `filtfilt`.

    >>> import tapegrad as tg
    >>> rows = [[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]]
    >>> tg.scipy.signal.sosfiltfilt(rows, tg.tensor([1.0, 2.0, 3.0, 4.0]), padlen=1)
    tensor([1., 2., 3., 4.])
    """
    rows = tensor(sos)
    states = sosfilt_zi(sos)
    unused = (rows[:, [2, 5]].detach() == 0).sum(0).min()
    taps = 2 * rows._a.shape[0] + 1 - int(unused)

    def once(t: Any) -> Any:
        shape = (len(states), *[1] * (t._a.ndim - 1), 2)
        return sosfilt(sos, t, zi=states.reshape(shape) * t[..., :1])[0]

    return _both_ways("sosfiltfilt", once, x, axis, padtype, 3 * taps if padlen is None else padlen)


_CONTINUED: dict[str, Any] = {
    "odd": ("reflect", {"reflect_type": "odd"}),
    "even": ("reflect", {}),
    "constant": ("edge", {}),
}


def _both_ways(name: str, once: Any, x: Any, axis: int, padtype: str | None, length: int) -> Tensor:
    t, d = along_the_end(x, axis, name)
    if padtype is None:
        length = 0
    elif padtype not in _CONTINUED:
        raise ValueError(
            f"`scipy.signal.{name}`: padtype is 'odd', 'even', 'constant' or None, got {padtype!r}"
        )
    if not 0 <= length < t._a.shape[-1]:
        raise ValueError(
            f"`scipy.signal.{name}`: a signal of more than {length} elements is needed to continue "
            f"it so far, got {t._a.shape[-1]}: give `padlen`"
        )
    if length:
        mode, how = _CONTINUED[padtype or ""]
        t = pad_(t, [(0, 0)] * (t._a.ndim - 1) + [(length, length)], mode, **how)
    for _ in range(2):
        t = flip(once(t), (-1,))
    return movedim(narrow(t, -1, length, t._a.shape[-1] - 2 * length), -1, d)
