"""`np.pad`: constants, elements that come again, ramps, and statistics of what lies at an edge."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.functions import arithmetic as ar
from tapegrad.functions import elementwise as ew
from tapegrad.functions.arguments import holds_tensor
from tapegrad.functions.indexing import getitem
from tapegrad.functions.joining import cat, unbind
from tapegrad.functions.rounding import round as round_
from tapegrad.functions.shapes import broadcast_to, clone, flip, narrow, reshape, to
from tapegrad.functions.tiling import Line, bordered
from tapegrad.numpy_face.common import floating, handles, tensor
from tapegrad.numpy_face.reductions import max_, mean_, min_
from tapegrad.numpy_face.statistics import median_
from tapegrad.ops.borders import border_of
from tapegrad.tensor import Tensor, wrap

REPEATING = ("edge", "reflect", "symmetric", "wrap")
_EXTREMES: dict[str, Any] = {"maximum": max_, "minimum": min_}
STATISTICS = {"mean": mean_, "median": median_} | _EXTREMES
MODES = ("constant", "linear_ramp", *REPEATING, *STATISTICS)


@handles(np.pad)
def pad_(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tensor:
    """`np.pad`, one axis after the other."""
    x = tensor(array)
    if not isinstance(mode, str) or mode not in MODES:
        raise TypeError(f"`np.pad` of a Tensor has the modes {sorted(MODES)}, got {mode!r}")
    ndim = x._a.ndim
    widths, ends, lengths = _pairs(pad_width, ndim), [[0, 0]] * ndim, [[None, None]] * ndim
    if mode in ("constant", "linear_ramp"):
        name = "constant_values" if mode == "constant" else "end_values"
        ends = _constants(kwargs.pop(name, 0), ndim, name)
    elif mode in STATISTICS:
        lengths = _pairs(kwargs.pop("stat_length", None), ndim)
    odd = False
    if mode in ("reflect", "symmetric"):
        kind = kwargs.pop("reflect_type", "even")
        if kind not in ("even", "odd"):
            raise ValueError(f"`np.pad`: reflect_type is 'even' or 'odd', got {kind!r}")
        odd = kind == "odd"
    if kwargs:
        raise TypeError(f"`np.pad` of a Tensor does not take {sorted(kwargs)} in mode {mode!r}")
    lines: dict[int, Line] = {}
    for d, width in enumerate(widths):
        if not any(width):
            continue
        if odd:
            x = _odd(x, d, width, mode)
            continue
        if mode in REPEATING:
            lines[d] = _line(mode, x._a.shape[d], *width)
            continue
        blocks = []
        for last, count in enumerate(width):
            if mode == "constant":
                block = tensor(ends[d][last])
            elif mode == "linear_ramp":
                block = _ramp(x, d, count, ends[d][last], last=bool(last))
            else:
                block = _statistic(x, d, mode, lengths[d][last], last=bool(last))
            shape = (*x._a.shape[:d], count, *x._a.shape[d + 1 :])
            blocks.append(broadcast_to(to(block, dtype=x._a.dtype), shape))
        x = cat([blocks[0], x, blocks[1]], d)
    if lines:
        return bordered(x, lines)
    return x if np.any(widths) else clone(x)


@lru_cache(1 << 10)
def _line(mode: Any, n: int, before: int, after: int) -> Line:
    places = np.pad(np.arange(n), (before, after), mode=mode)
    return wrap(places), border_of(places, before, n, 0, n)


def _odd(x: Tensor, d: int, width: list[int], mode: str) -> Tensor:
    """Continued so that the edges are centers of symmetry; each period rises by as much."""
    n, (before, after) = x._a.shape[d], width
    if not n:
        raise ValueError(f"`np.pad`: mode {mode!r} needs elements along axis {d}, there are none")
    half = n - 1 if mode == "reflect" else n  # of a period
    if not half:
        return getitem(x, (*[slice(None)] * d, np.zeros(1 + before + after, int)))
    periods, place = np.divmod(np.arange(-before, n + after), 2 * half)
    mirrored = place >= n
    place = np.where(mirrored, 2 * half - place - (mode == "symmetric"), place)
    shape = [1] * x._a.ndim
    shape[d] = -1
    kind = x._a.dtype
    sign, ends = (
        wrap(v.reshape(shape).astype(kind)) for v in (np.where(mirrored, -1, 1), 2 * mirrored)
    )
    first, last = narrow(x, d, 0, 1), narrow(x, d, n - 1, 1)
    found = ew.mul(sign, getitem(x, (*[slice(None)] * d, place)))
    rise = ew.mul(wrap((2 * periods).reshape(shape).astype(kind)), ar.sub(last, first))
    return ar.add(ar.add(found, ew.mul(ends, last)), rise)


def _ramp(x: Tensor, d: int, count: int, end: Any, *, last: bool) -> Tensor:
    """From the end to the element at the edge, which is not repeated."""
    edge = floating(narrow(x, d, x._a.shape[d] - 1 if last else 0, 1))
    shape = [1] * x._a.ndim
    shape[d] = count
    steps = reshape(wrap(np.arange(count, dtype=edge._a.dtype) / max(count, 1)), shape)
    found = ar.add(end, ew.mul(ar.sub(edge, end), flip(steps, (d,)) if last else steps))
    return found if x._a.dtype.kind in "fc" else ew.floor(found)


def _statistic(x: Tensor, d: int, mode: str, length: Any, *, last: bool) -> Tensor:
    """Of so many elements at an edge, or of all."""
    n = x._a.shape[d]
    length = n if length is None else min(int(length), n)
    if length < 1:
        raise ValueError(f"`np.pad`: mode {mode!r} needs elements at the edge, got {length} of {n}")
    part = narrow(x, d, n - length if last else 0, length)
    found: Tensor = STATISTICS[mode](part, d, keepdims=True)
    return round_(found) if found._a.dtype != x._a.dtype else found


def _constants(given: Any, ndim: int, name: str) -> list[list[Any]]:
    """What the edges are filled with: numbers, or Tensors that then get a gradient."""
    is_dict = isinstance(given, dict)
    if not holds_tensor(list(given.values()) if is_dict else given):
        return _pairs(given, ndim)
    if is_dict:
        raise TypeError(
            f"`np.pad`: a dictionary of `{name}` has numbers, got a Tensor in it: give a "
            "pair for each axis"
        )
    whole = broadcast_to(tensor(given), (ndim, 2))
    return [list(unbind(pair)) for pair in unbind(whole)]


def _pairs(given: Any, ndim: int) -> list[list[Any]]:
    """NumPy's short forms: one number, one pair, or a pair for each axis (or a dictionary)."""
    if isinstance(given, dict):
        pairs: list[list[Any]] = [[0, 0] for _ in range(ndim)]
        for axis, pair in given.items():
            pairs[axis] = np.broadcast_to(pair, (2,)).tolist()
        return pairs
    found: list[list[Any]] = np.broadcast_to(np.asarray(given), (ndim, 2)).tolist()
    return found
