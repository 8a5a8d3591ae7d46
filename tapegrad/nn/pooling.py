"""Pooling: the largest element, the mean or the norm of windows, and what undoes it.

The input is (batch, channels, *size), or one example without the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tapegrad.base.abstract_array import AbstractArray
from tapegrad.dispatch.index_plans import gathered
from tapegrad.dispatch.window_plans import run_windows
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import sign
from tapegrad.functions.indexing import scatter
from tapegrad.functions.shapes import reshape
from tapegrad.nn.activations import relu
from tapegrad.nn.convolution import by_dimension
from tapegrad.ops import windows as rows
from tapegrad.ops.windows import Windows
from tapegrad.tensor import Tensor, wrap

Sizes = tuple[int, ...]
Whole = int | Sequence[int]
Pooled = Tensor | tuple[Tensor, Tensor]


# -- windows ---------------------------------------------------------------------------------------


def _volumes(name: str, input: Any, dims: int) -> Tensor:
    """The input, of which all dimensions but the first have elements."""
    x = as_input(input, name)
    shape = x._a.shape
    if len(shape) not in (dims + 1, dims + 2) or not prod(shape[-dims - 1 :]):
        raise RuntimeError(
            f"`{name}` takes a batch of {dims + 2} dimensions or an example of {dims + 1}, with "
            f"elements, got the shape {shape}"
        )
    if x._a.dtype.kind != "f":
        raise RuntimeError(f"`{name}` takes floating-point numbers, got {x.dtype}")
    return x


def _hashable(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


def _sliding(
    name: str, size: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Windows:
    """Windows of one size that slide over a volume."""
    given = [_hashable(g) for g in (kernel, stride, padding, dilation)]
    return _checked(name, size, *given, bool(ceil_mode))


@lru_cache(512)
def _checked(
    name: str, size: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Windows:
    dims = len(size)
    kernel = by_dimension(name, "kernel_size", kernel, dims)
    stride = kernel if stride in (None, ()) else by_dimension(name, "stride", stride, dims)
    padding = by_dimension(name, "padding", padding, dims, 0)
    dilation = by_dimension(name, "dilation", dilation, dims)
    spans = tuple([d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)])
    if any(p > span // 2 for p, span in zip(padding, spans, strict=True)):
        raise RuntimeError(
            f"`{name}`: the padding is at most half of what a window covers, {spans}, got {padding}"
        )
    counts = tuple([
        _how_many(n + 2 * p - span, s, n + p, ceil_mode)
        for n, p, span, s in zip(size, padding, spans, stride, strict=True)
    ])  # fmt: skip
    if min(counts) < 1:
        raise RuntimeError(
            f"`{name}`: windows of {spans} do not fit into {size} with a padding of {padding}"
        )
    return Windows(size, counts, kernel, stride, padding, dilation)


def _how_many(room: int, step: int, last: int, ceil_mode: bool) -> int:
    """How many windows there are along a dimension; none begins in the padding behind it."""
    count = (room + (step - 1 if ceil_mode else 0)) // step + 1
    return count - 1 if ceil_mode and (count - 1) * step >= last else count


def _covering(name: str, size: Sizes, output_size: Any) -> Windows:
    """Windows that divide a volume into so many along each dimension, and may overlap."""
    dims = len(size)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * dims
    if len(given) != dims:
        raise ValueError(f"`{name}`: output_size is one int, or {dims}, got {output_size!r}")
    known = tuple([n if m is None else m for n, m in zip(size, given, strict=True)])
    return Windows(size, by_dimension(name, "output_size", known, dims, 0))


@lru_cache(512)
def _elements(windows: Windows, padded: bool) -> Any:
    """How many elements windows have, if all as many one number; zeros around count if `padded`."""
    total: Any = np.ones((), np.int64)
    if padded:
        size, counts, kernel, stride, padding, _ = windows
        for n, count, k, s, p in zip(size, counts, kernel, stride, padding, strict=True):
            start = np.arange(count) * s - p
            total = total[..., None] * (np.minimum(start + k, n + p) - start)
    else:
        for bounds in windows.bounds():
            total = total[..., None] * np.array([b - a for a, b in bounds], np.int64)
    same = total.size and (total == total.flat[0]).all()
    return int(total.flat[0]) if same else total


# -- the largest elements --------------------------------------------------------------------------


def _largest(x: Tensor, windows: Windows, return_indices: bool) -> Pooled:
    shape, dims = x._a.shape, len(windows.size)
    outer = shape[:-dims]
    places = run_windows(rows.window_argmax, x, windows)
    flat = reshape(x, (*outer, prod(shape[-dims:])))
    at = reshape(places, (*outer, prod(windows.counts)))
    y = reshape(gathered(flat, len(outer), at), (*outer, *windows.counts))
    return (y, places) if return_indices else y


def _max_pool(
    dims: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Pooled:  # fmt: skip
    name = f"max_pool{dims}d"
    x = _volumes(name, input, dims)
    windows = _sliding(name, x._a.shape[-dims:], kernel, stride, padding, dilation, ceil_mode)
    return _largest(x, windows, return_indices)


def max_pool1d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pooled:  # fmt: skip
    """The largest element of each window of signals; of equal ones the first has the gradient.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    given = kernel_size, stride, padding, dilation, ceil_mode, return_indices
    return _max_pool(1, input, *given)


def max_pool2d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pooled:  # fmt: skip
    """The largest element of each window of images; of equal ones the first has the gradient.

    `stride` is `kernel_size` unless it is given.  With `ceil_mode` a window may reach beyond the
    image; with `return_indices` the second result says where in its image each element stands.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool2d(tg.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    given = kernel_size, stride, padding, dilation, ceil_mode, return_indices
    return _max_pool(2, input, *given)


def max_pool3d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    dilation: Whole = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Pooled:  # fmt: skip
    """The largest element of each window of volumes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    given = kernel_size, stride, padding, dilation, ceil_mode, return_indices
    return _max_pool(3, input, *given)


def _adaptive_max_pool(dims: int, input: Any, output_size: Any, return_indices: bool) -> Pooled:
    name = f"adaptive_max_pool{dims}d"
    x = _volumes(name, input, dims)
    return _largest(x, _covering(name, x._a.shape[-dims:], output_size), return_indices)


def adaptive_max_pool1d(input: Tensor, output_size: Whole, return_indices: bool = False) -> Pooled:
    """The largest element of each of so many windows that cover signals.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0, 5.0]]), 2)
    tensor([[3., 5.]])
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Whole, return_indices: bool = False) -> Pooled:
    """The largest element of each of so many windows that cover images.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool2d(tg.arange(9.0).reshape(1, 3, 3), (1, 3))
    tensor([[[6., 7., 8.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: Whole, return_indices: bool = False) -> Pooled:
    """The largest element of each of so many windows that cover volumes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_max_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)


# -- what undoes it --------------------------------------------------------------------------------


def _max_unpool(
    dims: int, input: Any, indices: Any, kernel: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    name = f"max_unpool{dims}d"
    x, places = _volumes(name, input, dims), as_input(indices, name)
    if places._a.dtype != np.int64:
        raise RuntimeError(f"`{name}`: indices are of int64, got {places.dtype}")
    if places._a.shape != x._a.shape:
        raise RuntimeError(
            f"`{name}`: there is an index for each element, got the shapes {x._a.shape} and "
            f"{places._a.shape}"
        )
    kernel = by_dimension(name, "kernel_size", kernel, dims, 1)
    steps = kernel if stride is None else by_dimension(name, "stride", stride, dims, 1)
    around = by_dimension(name, "padding", padding, dims, 0)
    outer, shape = x._a.shape[:-dims], x._a.shape[-dims:]
    size = tuple([
        (n - 1) * s + k - 2 * p for n, s, k, p in zip(shape, steps, kernel, around, strict=True)
    ])  # fmt: skip
    if output_size is not None:
        least, size = size, tuple([int(n) for n in output_size][-dims:])
        fit = all(abs(n - m) < s for n, m, s in zip(size, least, steps, strict=True))
        if len(output_size) not in (dims, dims + 1, dims + 2) or not fit:
            raise ValueError(
                f"`{name}`: output_size differs from {least} by less than the stride {steps}, got "
                f"{tuple(output_size)}"
            )
    whole = prod(size)
    known = places._a.size and not isinstance(places._a, AbstractArray)
    if known and not (places._a.min() >= 0 and places._a.max() < whole):
        raise RuntimeError(f"`{name}`: indices are below {whole}, the elements of {size}")
    flat, at = [reshape(t, (*outer, prod(shape))) for t in (x, places)]
    nothing = wrap(np.zeros((*outer, whole), x._a.dtype))
    return reshape(scatter(nothing, -1, at, flat), (*outer, *size))


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Whole, stride: Whole | None = None,
    padding: Whole = 0, output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put what `max_pool1d` has found back where it stood, among zeros.

    >>> import tapegrad as tg
    >>> x = tg.tensor([[1.0, 3.0, 2.0, 0.0]])
    >>> y, at = tg.nn.functional.max_pool1d(x, 2, return_indices=True)
    >>> tg.nn.functional.max_unpool1d(y, at, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Whole, stride: Whole | None = None,
    padding: Whole = 0, output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put what `max_pool2d` has found back where it stood, among zeros.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_unpool2d(tg.ones(1, 1, 1), tg.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [1., 0.]]])
    """
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Whole, stride: Whole | None = None,
    padding: Whole = 0, output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Put what `max_pool3d` has found back where it stood, among zeros.

    >>> import tapegrad as tg
    >>> tg.nn.functional.max_unpool3d(tg.ones(1, 1, 1, 1), tg.tensor([[[[1]]]]), (1, 1, 2))
    tensor([[[[0., 1.]]]])
    """
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


# -- means and norms -------------------------------------------------------------------------------


def _mean(x: Tensor, windows: Windows, elements: Any) -> Tensor:
    total = run_windows(rows.window_sum, x, windows)
    if isinstance(elements, int):
        return total if elements == 1 else total / elements
    return total / wrap(elements.astype(x._a.dtype))


def _avg_pool(
    dims: int, input: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor: int | None = None,
) -> Tensor:  # fmt: skip
    name = f"avg_pool{dims}d"
    x = _volumes(name, input, dims)
    windows = _sliding(name, x._a.shape[-dims:], kernel, stride, padding, 1, ceil_mode)
    if divisor == 0:
        raise RuntimeError(f"`{name}`: divisor_override is not zero")
    elements = _elements(windows, bool(count_include_pad)) if divisor is None else int(divisor)
    return _mean(x, windows, elements)


def avg_pool1d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window of signals.

    >>> import tapegrad as tg
    >>> tg.nn.functional.avg_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of images; zeros of the padding count unless told otherwise.

    >>> import tapegrad as tg
    >>> tg.nn.functional.avg_pool2d(tg.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    more = stride, padding, ceil_mode, count_include_pad, divisor_override
    return _avg_pool(2, input, kernel_size, *more)


def avg_pool3d(
    input: Tensor, kernel_size: Whole, stride: Whole | None = None, padding: Whole = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of volumes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.avg_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    more = stride, padding, ceil_mode, count_include_pad, divisor_override
    return _avg_pool(3, input, kernel_size, *more)


def _adaptive_avg_pool(dims: int, input: Any, output_size: Any) -> Tensor:
    name = f"adaptive_avg_pool{dims}d"
    x = _volumes(name, input, dims)
    windows = _covering(name, x._a.shape[-dims:], output_size)
    return _mean(x, windows, _elements(windows, False))


def adaptive_avg_pool1d(input: Tensor, output_size: Whole) -> Tensor:
    """The mean of each of so many windows that cover signals.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_avg_pool1d(tg.tensor([[1.0, 3.0, 2.0, 0.0]]), 1)
    tensor([[1.5000]])
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of so many windows that cover images; None leaves a dimension as it is.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_avg_pool2d(tg.arange(9.0).reshape(1, 3, 3), (1, None))
    tensor([[[3., 4., 5.]]])
    """
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean of each of so many windows that cover volumes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.adaptive_avg_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return _adaptive_avg_pool(3, input, output_size)


def _lp_pool(
    pool: Callable[..., Tensor], dims: int, input: Any, norm_type: float, kernel: Any, stride: Any,
    ceil_mode: bool,
) -> Tensor:  # fmt: skip
    size = prod(by_dimension(f"lp_pool{dims}d", "kernel_size", kernel, dims, 1))
    mean = pool(input**norm_type, kernel, stride, 0, ceil_mode)
    return (sign(mean) * relu(mean.abs()) * size) ** (1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Whole, stride: Whole | None = None,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The root of the sum of the powers of each window of signals.

    >>> import tapegrad as tg
    >>> tg.nn.functional.lp_pool1d(tg.tensor([[3.0, 4.0, 0.0, 1.0]]), 2, 2)
    tensor([[5., 1.]])
    """
    return _lp_pool(avg_pool1d, 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Whole, stride: Whole | None = None,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The root of the sum of the powers of each window of images.

    >>> import tapegrad as tg
    >>> tg.nn.functional.lp_pool2d(tg.tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool(avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Whole, stride: Whole | None = None,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The root of the sum of the powers of each window of volumes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.lp_pool3d(tg.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """
    return _lp_pool(avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)
