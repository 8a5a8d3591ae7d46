"""Views of the storage itself, whatever the Tensor shows of it."""

from __future__ import annotations

from typing import Any

from tapegrad.functions.arguments import as_input
from tapegrad.ops.shape import as_strided as op
from tapegrad.ops.shape import strided, strided_map
from tapegrad.specimen import lying
from tapegrad.storage import root
from tapegrad.tensor import Tensor
from tapegrad.views import see


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage with any sizes and strides.

    >>> import tapegrad as tg
    >>> tg.as_strided(tg.arange(4), (2, 2), (1, 1))
    tensor([[0, 1],
            [1, 2]])
    """
    x = as_input(input, "as_strided")
    a = lying(x._a)
    owner = root(a)
    start = 0 if owner is a else x.storage_offset()
    given = tuple(size), tuple(stride), storage_offset, start, owner.size
    key: Any = a.shape, a.strides, a.itemsize, given
    found = _windows.get(key)
    if found is None:
        params = _window(a.shape, x.stride(), *given)
        steps = tuple([n * a.itemsize for n in params["stride"]])
        found = params, steps, params["offset"] * a.itemsize
        if all(isinstance(n, int) for n in (*given[0], *given[1])):
            if len(_windows) > 4096:
                _windows.clear()
            _windows[key] = found
        else:
            key = None
    params, steps, offset = found
    if a is not x._a and (strided_map(**params) < 0).any():
        raise RuntimeError(
            "`as_strided` inside a transform shows no memory but that of its operand: call it on "
            "the Tensor that the operand is a view of"
        )
    if owner.flags.c_contiguous:
        r = strided(owner, params["size"], steps, offset)
    else:
        r = op.forward(a, **params)
    return see(op, x, params, r, key)


# The parameters of `as_strided`, the strides of the view and where it begins, in bytes.
_windows: dict[Any, tuple[dict[str, Any], tuple[int, ...], int]] = {}


def _window(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    size: tuple[Any, ...],
    stride: tuple[Any, ...],
    offset: int | None,
    start: int,
    count: int,
) -> dict[str, Any]:
    size, stride = tuple([int(n) for n in size]), tuple([int(n) for n in stride])
    offset = start if offset is None else offset
    if len(size) != len(stride) or offset < 0 or min((*size, *stride), default=0) < 0:
        raise RuntimeError(f"`as_strided`: size {size} and stride {stride} do not fit together")
    last = offset + sum([(n - 1) * k for n, k in zip(size, stride)]) if all(size) else 0
    if last >= max(count, 1):
        raise RuntimeError(
            f"`as_strided`: size {size}, stride {stride} and offset {offset} reach beyond the "
            f"storage of {count} elements"
        )
    layout = (shape, strides, start)
    return {"size": size, "stride": stride, "offset": offset, "layout": layout}
