"""Views of the storage itself, whatever the Tensor shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from tapegrad.base.abstract_array import lying
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.layout_history import shown_of
from tapegrad.dispatch.views import ViewRequest, view_of
from tapegrad.functions.arguments import as_input, one_dim
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import shaped
from tapegrad.ops.shape import unfold as windows
from tapegrad.ops.strided import as_strided as op
from tapegrad.ops.strided import strided_map
from tapegrad.tape.versions import root
from tapegrad.tensor import Tensor, View


@method
def as_strided(
    input: Tensor,
    size: Sequence[SupportsIndex],
    stride: Sequence[SupportsIndex],
    storage_offset: int | None = None,
) -> Tensor:
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
    beyond = type(x._home) is View and not _inside(a, start, size, stride, storage_offset)
    if a is not x._a or not owner.flags.forc or beyond:
        params = _window(x, size, stride, storage_offset, start, owner.size)
        if a is not x._a:
            _check_own(params, "as_strided")
        x, params = shown_of(x, params)
        return run(op, (x,), params)
    return _within(x, size, stride, storage_offset, start, owner.size)


def _inside(a: np.ndarray, start: int, size: Any, stride: Any, offset: int | None) -> bool:
    """Whether it is easily seen that an array shows all of a window into its storage."""
    first = 0 if offset is None else offset - start
    last = first + sum([(n - 1) * k for n, k in zip(size, stride, strict=False)])
    return a.flags.c_contiguous and first >= 0 and last < a.size


def window(x: Tensor, size: Any, stride: Any, offset: int | None, name: str) -> ViewRequest:
    """The view of the storage that a Tensor itself shall become."""
    a = lying(x._a)
    owner = root(a)
    params = _window(x, size, stride, offset, x.storage_offset(), owner.size, name)
    if a is not x._a:
        _check_own(params, name)
    r = op.forward(a, **params)
    if root(r) is not owner:
        raise RuntimeError(f"`{name}`: the storage of this Tensor has gaps: use `clone()` first")
    return ViewRequest(op, x, params, r)


def _check_own(params: dict[str, Any], name: str) -> None:
    """Refuse a window that reaches beyond its operand, in a transform that lends but this."""
    if (strided_map(**params) < 0).any():
        raise RuntimeError(
            f"`{name}` inside a transform shows no memory but that of its operand: call it "
            "on the Tensor that the operand is a view of"
        )


@view_of
def _within(
    x: Tensor, size: Any, stride: Any, offset: Any, start: int = 0, count: int | None = None
) -> ViewRequest:
    """A view of a storage of which all is told that matters: where the Tensor begins, how large."""
    params = _window(x, size, stride, offset, start, x._a.size if count is None else count)
    return ViewRequest(op, x, params, op.forward(x._a, **params), tuple(params.values()))


def _window(
    x: Tensor, size: Any, stride: Any, offset: int | None, start: int, count: int,
    name: str = "as_strided",
) -> dict[str, Any]:  # fmt: skip
    size, stride = tuple([int(n) for n in size]), tuple([int(n) for n in stride])
    offset = start if offset is None else offset
    if offset > 0 and not all(size):  # no elements: it does not matter where they are
        offset = start
    if len(size) != len(stride) or offset < 0 or min((*size, *stride), default=0) < 0:
        raise RuntimeError(f"`{name}`: size {size} and stride {stride} do not fit together")
    last = offset + sum([(n - 1) * k for n, k in zip(size, stride)])
    if all(size) and last >= count:
        raise RuntimeError(
            f"`{name}`: size {size}, stride {stride} and offset {offset} reach beyond the "
            f"storage of {count} elements"
        )
    layout = (x._a.shape, x.stride(), start)
    return {"size": size, "stride": stride, "offset": offset, "layout": layout}


@method
@view_of
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor | ViewRequest:
    """All windows of a size along a dimension, as a new last dimension; a view.

    >>> import tapegrad as tg
    >>> tg.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    x = as_input(input, "unfold")
    d = one_dim(dimension, x._a.ndim, "unfold")
    n = x._a.shape[d] if x._a.ndim else 1
    if not 0 < size <= n or step < 1:
        raise RuntimeError(
            f"`unfold`: size {size} and step {step} do not fit dimension {dimension} of size {n}"
        )
    if not x._a.ndim:
        return shaped(x, (1,))
    params = {"dim": d, "size": size, "step": step}
    return ViewRequest(windows, x, params, windows.forward(x._a, **params), (d, size, step))
