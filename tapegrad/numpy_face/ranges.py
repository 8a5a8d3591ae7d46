"""Numbers evenly spaced between Tensors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import everything
from tapegrad.base.dtypes import to_numpy
from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions.joining import cat, stack
from tapegrad.functions.shapes import broadcast_to, clone, movedim, narrow, reshape, to, unsqueeze
from tapegrad.numpy_face.common import floating, handles, tensor
from tapegrad.tensor import Tensor, wrap


def _typed(found: Tensor, dtype: Any) -> Tensor:
    if dtype is None:
        return found
    whole = to_numpy(dtype).kind in "iu"
    return to(ew.floor(found) if whole else found, dtype=dtype)


def _count(num: Any, name: str) -> int:
    n = operator.index(num)
    if n < 0:
        raise ValueError(f"`{name}`: the number of samples must not be negative, got {n}")
    return n


def _ends(*given: Any) -> list[Tensor]:
    parts = [floating(tensor(x)) for x in given]
    shape = np.broadcast_shapes(*(x._a.shape for x in parts))
    return [broadcast_to(x, shape) for x in parts]


def _spaced(start: Tensor, stop: Tensor, n: int, endpoint: bool) -> tuple[Tensor, Tensor]:
    """The numbers, along a new first dimension, and the step; the last one is `stop` itself."""
    parts = n - 1 if endpoint else n
    whole = stop - start
    step = whole / parts if parts > 0 else ew.mul(whole, np.nan)
    if parts <= 0:
        return clone(broadcast_to(start, (n, *start._a.shape))), step
    last = int(endpoint and n > 1)
    places = wrap(np.arange(n - last, dtype=start._a.dtype))
    found = start + reshape(places, (-1, *(1,) * start._a.ndim)) * step
    return (cat([found, unsqueeze(stop, 0)]) if last else found), step


@handles(np.linspace)
def linspace_(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """`np.linspace`."""
    first, last = _ends(start, stop)
    found, step = _spaced(first, last, _count(num, "np.linspace"), bool(endpoint))
    found = _typed(movedim(found, 0, axis), dtype)
    return (found, step) if retstep else found


@handles(np.logspace)
def _logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Tensor:  # fmt: skip
    first, last, foot = _ends(start, stop, base)
    found = _spaced(first, last, _count(num, "np.logspace"), bool(endpoint))[0]
    return _typed(movedim(ar.pow(foot, found), 0, axis), dtype)


@handles(np.geomspace)
def _geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Evenly spaced logarithms, of numbers of one sign; the ends are the Tensors themselves."""
    first, last = _ends(start, stop)
    n = _count(num, "np.geomspace")
    if not (everything(first._a).all() and everything(last._a).all()):
        raise ValueError("`np.geomspace`: no sequence of one factor begins or ends with zero")
    side = ar.sign(first.detach())
    found = side * ew.exp(_spaced(ew.log(first * side), ew.log(last * side), n, bool(endpoint))[0])
    ends = int(endpoint and n > 1)
    inner = narrow(found, 0, min(n, 1), max(n - 1 - ends, 0))
    parts = [stack([first]), inner, stack([last])][: 1 + 1 + ends] if n else [found]
    return _typed(movedim(cat(parts), 0, axis), dtype)
