"""Numbers from one to another: whole steps with the last one, powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.base.devices import check_device
from tapegrad.functions.arguments import TypeLike, plain_number
from tapegrad.functions.creation import _finish, _kind
from tapegrad.tensor import Tensor


def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: TypeLike | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """`steps` powers of a base, whose exponents are evenly spaced, both ends included.

    >>> import tapegrad as tg
    >>> tg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_device(device)
    if steps < 0:
        raise RuntimeError(f"`logspace`: the number of steps must not be negative, got {steps}")
    kind = _kind(dtype)
    ends = [float(plain_number(x, "logspace")) for x in (start, end, base)]
    exponents = np.linspace(ends[0], ends[1], steps)
    with np.errstate(all="ignore"):
        found = np.power(ends[2], exponents)
    return _finish((np.trunc(found) if kind.kind in "iu" else found).astype(kind), requires_grad)


def range(
    start: float = 0, end: float | None = None, step: float = 1, *,
    dtype: TypeLike | None = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` to `end` in steps, the end included; `arange` is what to use.

    >>> import tapegrad as tg
    >>> tg.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    check_device(device)
    if end is None:
        raise TypeError("`range` needs the argument `end`")
    start, end, step = (plain_number(x, "range") for x in (start, end, step))
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"`range` cannot step from {start} to {end} by {step}")
    count = int((end - start) / step) + 1
    found = start + np.arange(count) * step
    return _finish(found.astype(_kind(dtype)), requires_grad)
