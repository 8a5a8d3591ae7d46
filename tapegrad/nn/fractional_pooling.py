"""Pooling by windows whose distances are drawn, so that the size shrinks by any factor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tapegrad.functions.arguments import as_input
from tapegrad.functions.indexing import gather
from tapegrad.functions.random import rand
from tapegrad.functions.reductions import argmax
from tapegrad.functions.shapes import reshape, unsqueeze
from tapegrad.nn.convolution import by_dimension
from tapegrad.tensor import Tensor, wrap

Whole = int | Sequence[int]
Pair = tuple[Tensor, Tensor]


def _fractional(
    dims: int, input: Any, kernel: Any, output_size: Any, output_ratio: Any, samples: Any
) -> Pair:
    name = f"fractional_max_pool{dims}d"
    x = as_input(input, name)
    if x._a.ndim not in (dims + 1, dims + 2):
        problem = IndexError if x._a.ndim < dims + 1 else RuntimeError
        raise problem(
            f"`{name}` takes a batch of {dims + 2} dimensions or an example of {dims + 1}, got the "
            f"shape {x._a.shape}"
        )
    if x._a.dtype.kind != "f":
        raise NotImplementedError(f"`{name}` takes floating-point numbers, got {x.dtype}")
    size = x._a.shape[-dims:]
    many = _output(name, size, output_size, output_ratio)
    widths = by_dimension(name, "kernel_size", kernel, dims)
    if any(m < 1 or m + k - 1 > n for m, k, n in zip(many, widths, size, strict=True)):
        raise RuntimeError(f"`{name}`: {many} windows of {widths} do not fit into {size}")
    n, channels = x._a.shape[-dims - 2] if x._a.ndim == dims + 2 else 1, x._a.shape[-dims - 1]
    drawn = rand(n, channels, dims, dtype=x.dtype) if samples is None else samples
    if not channels:
        raise RuntimeError(f"`{name}`: an input of the shape {x._a.shape} has no channels")
    shape = drawn._a.shape
    if drawn._a.dtype != x._a.dtype or shape[1:] != (channels, dims) or shape[0] < n:
        raise RuntimeError(
            f"`{name}`: _random_samples are of {x.dtype} and of shape {(n, channels, dims)}, got "
            f"{drawn.dtype} of shape {shape}"
        )
    places = _places(drawn._a[:n], size, many, widths)
    flat = reshape(x, (n, channels, prod(size)))
    windows = gather(flat, 2, wrap(places.reshape(n, channels, prod(places.shape[2:]))))
    largest = argmax(reshape(windows.detach(), places.shape), -1)
    chosen = gather(wrap(places), 3, unsqueeze(largest, 3)).squeeze(3)
    shape = (*x._a.shape[:-dims], *many)
    return reshape(gather(flat, 2, chosen), shape), reshape(chosen, shape)


def _output(name: str, size: tuple[int, ...], output_size: Any, ratio: Any) -> tuple[int, ...]:
    if output_size is not None:
        return by_dimension(name, "output_size", output_size, len(size))
    if ratio is None:
        raise ValueError(f"`{name}` takes either output_size or output_ratio")
    ratios = (ratio,) * len(size) if isinstance(ratio, float) else tuple(ratio)
    if len(ratios) != len(size):
        raise ValueError(f"`{name}`: one ratio, or one for each dimension, got {ratio!r}")
    return tuple([int(n * r) for n, r in zip(size, ratios, strict=True)])


def _places(
    samples: np.ndarray, size: tuple[int, ...], many: tuple[int, ...], widths: tuple[int, ...]
) -> np.ndarray:
    """The elements of each window, by their places in the flattened volume."""
    n, channels, dims = samples.shape
    order = (1, 0) if dims == 2 else range(dims)  # of the numbers that PyTorch draws
    places = np.zeros((n, channels, 1, 1), np.int64)
    for k, whole, m, width in zip(order, size, many, widths, strict=True):
        starts = np.full((n, channels, m), whole - width)
        u = samples[:, :, k, None]
        if m > 1:
            step = samples.dtype.type(whole - width) / samples.dtype.type(m - 1)
            steps = np.arange(m - 1, dtype=samples.dtype)
            starts[:, :, :-1] = ((steps + u) * step).astype(int) - (u * step).astype(int)
        along = starts[:, :, None, :, None, None] + np.arange(width)
        inner = places[:, :, :, None, :, None] * whole + along
        rows, _, columns, _ = inner.shape[2:]
        places = inner.reshape(n, channels, rows * m, columns * width)
    return places


def fractional_max_pool2d(
    input: Tensor, kernel_size: Whole, output_size: Whole | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | Pair:  # fmt: skip
    """The largest element of each of so many windows of images, whose distances are drawn.

    `output_size` says how many there are along each dimension, or `output_ratio` which part of the
    size. The numbers are those of the default generator, or given: one for each dimension of each
    channel.

    >>> import tapegrad as tg
    >>> tg.nn.functional.fractional_max_pool2d(tg.arange(9.0).reshape(1, 3, 3), 2, output_size=2)
    tensor([[[4., 5.],
             [7., 8.]]])
    """
    found = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Whole, output_size: Whole | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Pair:  # fmt: skip
    """`fractional_max_pool2d`, and where the elements stand.

    >>> import tapegrad as tg
    >>> x = tg.arange(9.0).reshape(1, 3, 3)
    >>> tg.nn.functional.fractional_max_pool2d_with_indices(x, 2, 1)
    (tensor([[[8.]]]), tensor([[[8]]]))
    """
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor, kernel_size: Whole, output_size: Whole | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | Pair:  # fmt: skip
    """The largest element of each of so many windows of volumes, whose distances are drawn.

    `output_size` says how many there are along each dimension, or `output_ratio` which part of the
    size. The numbers are those of the default generator, or given: one for each dimension of each
    channel.

    >>> import tapegrad as tg
    >>> tg.nn.functional.fractional_max_pool3d(tg.arange(8.0).reshape(1, 2, 2, 2), 2, output_size=1)
    tensor([[[[7.]]]])
    """
    found = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Whole, output_size: Whole | None = None,
    output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Pair:  # fmt: skip
    """`fractional_max_pool3d`, and where the elements stand.

    >>> import tapegrad as tg
    >>> x = tg.arange(8.0).reshape(1, 2, 2, 2)
    >>> tg.nn.functional.fractional_max_pool3d_with_indices(x, 2, 1)
    (tensor([[[[7.]]]]), tensor([[[[7]]]]))
    """
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
