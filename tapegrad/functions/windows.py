"""Views of the storage itself, whatever the Tensor shows of it."""

from __future__ import annotations

from typing import Any

from tapegrad.functions.arguments import as_input
from tapegrad.ops.shape import as_strided as op
from tapegrad.ops.shape import strided_map
from tapegrad.record import run
from tapegrad.specimen import lying
from tapegrad.storage import root
from tapegrad.tensor import Tensor
from tapegrad.views import Sight, view_of


def as_strided(input: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the storage with any sizes and strides.

    >>> import tapegrad as tg
    >>> tg.as_strided(tg.arange(4), (2, 2), (1, 1))
    tensor([[0, 1],
            [1, 2]])
    """
    x = as_input(input, "as_strided")
    a = lying(x._a)
    if a.base is None:  # the Tensor is all of its storage
        return _within(x, size, stride, storage_offset)
    owner, start = root(a), x.storage_offset()
    if a is not x._a:
        params = _window(x, size, stride, storage_offset, start, owner.size)
        if (strided_map(**params) < 0).any():
            raise RuntimeError(
                "`as_strided` inside a transform shows no memory but that of its operand: call it "
                "on the Tensor that the operand is a view of"
            )
        return run(op, (x,), params)
    if owner.flags.forc:
        return _within(x, size, stride, storage_offset, start, owner.size)
    return run(op, (x,), _window(x, size, stride, storage_offset, start, owner.size))


@view_of
def _within(
    x: Tensor, size: Any, stride: Any, offset: Any, start: int = 0, count: int | None = None
) -> Sight:
    """A view of a storage of which all is told that matters: where the Tensor begins, how large."""
    params = _window(x, size, stride, offset, start, x._a.size if count is None else count)
    return Sight(op, x, params, op.forward(x._a, **params), tuple(params.values()))


def _window(
    x: Tensor, size: Any, stride: Any, offset: int | None, start: int, count: int
) -> dict[str, Any]:
    size, stride = tuple([int(n) for n in size]), tuple([int(n) for n in stride])
    offset = start if offset is None else offset
    if len(size) != len(stride) or offset < 0 or min((*size, *stride), default=0) < 0:
        raise RuntimeError(f"`as_strided`: size {size} and stride {stride} do not fit together")
    last = offset + sum([(n - 1) * k for n, k in zip(size, stride)])
    if all(size) and last >= count:
        raise RuntimeError(
            f"`as_strided`: size {size}, stride {stride} and offset {offset} reach beyond the "
            f"storage of {count} elements"
        )
    layout = (x._a.shape, x.stride(), start)
    return {"size": size, "stride": stride, "offset": offset, "layout": layout}
