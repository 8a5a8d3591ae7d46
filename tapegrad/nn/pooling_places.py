"""Pooling that says where the largest elements stand, as `return_indices` asks for it, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.nn import pooling
from tapegrad.tensor import Tensor

Whole = int | Sequence[int]
Pair = tuple[Tensor, Tensor]


def _pair(found: Any) -> Pair:
    return found  # type: ignore[no-any-return]


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pair:  # fmt: skip
    """The largest element of each window of signals, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool1d_with_indices(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    given = kernel_size, stride, padding, dilation, ceil_mode
    return _pair(pooling.max_pool1d(input, *given, return_indices=True))


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pair:  # fmt: skip
    """The largest element of each window of images, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool2d_with_indices(tg.arange(4.0).reshape(1, 2, 2), 2)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    given = kernel_size, stride, padding, dilation, ceil_mode
    return _pair(pooling.max_pool2d(input, *given, return_indices=True))


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pair:  # fmt: skip
    """The largest element of each window of volumes, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool3d_with_indices(tg.arange(8.0).reshape(1, 2, 2, 2), 2)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    given = kernel_size, stride, padding, dilation, ceil_mode
    return _pair(pooling.max_pool3d(input, *given, return_indices=True))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Whole, return_indices: bool = False
) -> Pair:
    """The largest element of each of so many windows that cover signals, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool1d_with_indices(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 1)
    (tensor([[3.]]), tensor([[1]]))
    """
    return _pair(pooling.adaptive_max_pool1d(input, output_size, return_indices=True))


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Whole, return_indices: bool = False
) -> Pair:
    """The largest element of each of so many windows that cover images, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool2d_with_indices(tg.arange(4.0).reshape(1, 2, 2), 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return _pair(pooling.adaptive_max_pool2d(input, output_size, return_indices=True))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Whole, return_indices: bool = False
) -> Pair:
    """The largest element of each of so many windows that cover volumes, and where it stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool3d_with_indices(tg.arange(8.0).reshape(1, 2, 2, 2), 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _pair(pooling.adaptive_max_pool3d(input, output_size, return_indices=True))
