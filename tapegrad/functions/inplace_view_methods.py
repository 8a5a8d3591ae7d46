"""Operations that reshape their operand in place: ``x.t_()``, ``x.unsqueeze_(0)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

from tapegrad.dispatch.inplace_views import apply_view
from tapegrad.functions import shapes, strided_views
from tapegrad.functions.arguments import as_input
from tapegrad.functions.method_decorators import method
from tapegrad.tensor import Tensor


@method
def t_(self: Tensor) -> Tensor:
    """`t` in place: no element is touched, and other Tensors keep their shapes.

    >>> import tapegrad as tg
    >>> x = tg.zeros(2, 3)
    >>> row = x[0]
    >>> x.t_().shape, row.shape
    (tapegrad.Size([3, 2]), tapegrad.Size([3]))
    """
    return apply_view(self, shapes.turned(as_input(self, "t_"), "t_"), "t_")


@method
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """`transpose` in place.

    >>> import tapegrad as tg
    >>> x = tg.zeros(2, 3, 4)
    >>> x.transpose_(0, -1).shape
    tapegrad.Size([4, 3, 2])
    """
    return apply_view(self, shapes.swapped(self, dim0, dim1, "transpose_"), "transpose_")


swapdims_ = method(transpose_, "swapdims_")


@method
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """`swapaxes` in place.

    >>> import tapegrad as tg
    >>> x = tg.zeros(2, 3)
    >>> x.swapaxes_(axis0=0, axis1=1).shape
    tapegrad.Size([3, 2])
    """
    return apply_view(self, shapes.swapped(self, axis0, axis1, "swapaxes_"), "swapaxes_")


@method
def squeeze_(self: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """`squeeze` in place: all dimensions of size 1, or those among `dim`, an int or a tuple.

    >>> import tapegrad as tg
    >>> x = tg.zeros(1, 2, 1)
    >>> x.squeeze_(0).shape
    tapegrad.Size([2, 1])
    """
    request = shapes.squeezed(as_input(self, "squeeze_"), dim, "squeeze_")
    return apply_view(self, request, "squeeze_")


@method
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """`unsqueeze` in place: what was computed before is differentiated as before.

    >>> import tapegrad as tg
    >>> a = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> x = a * a
    >>> _ = x.unsqueeze_(0)
    >>> (x * tg.tensor([[10.0], [1.0]])).sum().backward()
    >>> x.shape, a.grad
    (tapegrad.Size([1, 2]), tensor([22., 44.]))
    """
    request = shapes.unsqueezed(as_input(self, "unsqueeze_"), dim, "unsqueeze_")
    return apply_view(self, request, "unsqueeze_")


@method
def as_strided_(
    self: Tensor,
    size: Sequence[SupportsIndex],
    stride: Sequence[SupportsIndex],
    storage_offset: int | None = None,
) -> Tensor:
    """`as_strided` in place: any sizes and strides over the storage.

    Views that were made before can be changed in place, with a gradient, only if the Tensor still
    shows what they show.

    >>> import tapegrad as tg
    >>> x = tg.arange(4)
    >>> x.as_strided_((2, 2), (1, 1))
    tensor([[0, 1],
            [1, 2]])
    """
    x = as_input(self, "as_strided_")
    return apply_view(
        self, strided_views.window(x, size, stride, storage_offset, "as_strided_"), "as_strided_"
    )
