"""Normalization: numbers moved and scaled to mean 0 and variance 1, over this dimension or that."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapegrad.autograd.grad_mode import no_grad
from tapegrad.dispatch.axis_plans import run_axis
from tapegrad.functions.arguments import as_input
from tapegrad.functions.elementwise import rsqrt, square
from tapegrad.functions.reductions import mean, var
from tapegrad.functions.shapes import reshape
from tapegrad.functions.tiling import pad
from tapegrad.ops import reduce as r
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor


def _standardized(x: Tensor, dim: tuple[int, ...], eps: float) -> Tensor:
    return run_axis(r.standardize, _adding, x, dim, other=float(eps))


def _adding(
    op: Op, x: Tensor, dim: tuple[int, ...], keepdim: bool, eps: float
) -> tuple[Tensor, dict[str, Any]]:
    return x, {"dim": dim, "eps": eps}


def _normalized_dims(name: str, x: Tensor, shape: Any) -> tuple[int, ...]:
    """The last dimensions, whose lengths are given."""
    if isinstance(shape, (int, np.integer)):
        raise TypeError(f"`{name}`: normalized_shape is a tuple of ints, got {shape}")
    shape, have = tuple(shape), x._a.shape
    if not shape or have[max(len(have) - len(shape), 0) :] != shape:
        raise RuntimeError(
            f"`{name}`: the input {have} does not end in the normalized_shape {shape}"
        )
    return tuple(range(len(have) - len(shape), len(have)))


def _check_like(name: str, which: str, part: Any, shape: Any, x: Tensor) -> None:
    if part is None:
        return
    if part._a.shape != tuple(shape):
        raise RuntimeError(
            f"`{name}`: the {which} has the shape {part._a.shape}, and not {tuple(shape)}"
        )
    if part._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`{name}`: the input is of {x.dtype} and the {which} of {part.dtype}: convert one"
        )


def _scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _per_channel(part: Tensor, y: Tensor) -> Tensor:
    """One number for each channel, beside (batch, channels, ...)."""
    return reshape(part, (-1, *[1] * (y._a.ndim - 2)))


def _channels_scaled(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    w, b = (None if part is None else _per_channel(part, y) for part in (weight, bias))
    return _scaled(y, w, b)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 over the last dimensions, then times a weight, plus a bias.

    >>> import tapegrad as tg
    >>> tg.nn.functional.layer_norm(tg.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    x = as_input(input, "layer_norm")
    dims = _normalized_dims("layer_norm", x, normalized_shape)
    for which, part in (("weight", weight), ("bias", bias)):
        _check_like("layer_norm", which, part, normalized_shape, x)
    return _scaled(_standardized(x, dims, eps), weight, bias)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The mean of squares 1 over the last dimensions, then times a weight.

    >>> import tapegrad as tg
    >>> tg.nn.functional.rms_norm(tg.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    x = as_input(input, "rms_norm")
    dims = _normalized_dims("rms_norm", x, normalized_shape)
    _check_like("rms_norm", "weight", weight, normalized_shape, x)
    least = float(np.finfo(x._a.dtype).eps) if eps is None else eps
    return _scaled(x * rsqrt(mean(square(x), dims, True) + least), weight, None)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each group of channels of each example.

    >>> import tapegrad as tg
    >>> tg.nn.functional.group_norm(tg.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = as_input(input, "group_norm")
    shape = x._a.shape
    if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
        raise RuntimeError(
            f"`group_norm` takes (batch, channels, ...) and a number of groups that divides the "
            f"channels, got {shape} and {num_groups}"
        )
    if shape[0] * (shape[1] // num_groups) * prod(shape[2:]) == 1:
        raise ValueError(f"`group_norm` takes more than one number in each group, got {shape}")
    for which, part in (("weight", weight), ("bias", bias)):
        _check_like("group_norm", which, part, (shape[1],), x)
    grouped = reshape(x, (shape[0], num_groups, shape[1] // num_groups, *shape[2:]))
    y = reshape(_standardized(grouped, tuple(range(2, len(shape) + 1)), eps), shape)
    return _channels_scaled(y, weight, bias)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel over the batch; or by running ones, after training.

    In training `running_mean` and `running_var` are moved towards those of the batch, in place, by
    the part `momentum`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.batch_norm(tg.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    name = "batch_norm"
    x = as_input(input, name)
    shape = x._a.shape
    if len(shape) < 2:
        raise IndexError(f"`{name}` takes (batch, channels, ...), got the shape {shape}")
    if training and shape[0] * prod(shape[2:]) == 1:
        raise ValueError(f"`{name}` takes more than one number per channel, got {shape}")
    if eps < 0 or (training and not eps):
        raise ValueError(f"`{name}`: eps must be positive, got {eps}")
    if (running_mean is None) != (running_var is None):
        raise ValueError(f"`{name}` takes running_mean and running_var, or neither")
    for which, part in (
        ("running_mean", running_mean), ("running_var", running_var),
        ("weight", weight), ("bias", bias),
    ):  # fmt: skip
        if part is not None and part._a.shape != (shape[1],):
            raise RuntimeError(
                f"`{name}`: {which} has one number for each of {shape[1]} channels, got the "
                f"shape {part._a.shape}"
            )
    dims = (0, *range(2, len(shape)))
    if training:
        if running_mean is not None and running_var is not None:
            _move(running_mean, mean(x.detach(), dims), momentum)
            _move(running_var, var(x.detach(), dims), momentum)
        y = _standardized(x, dims, eps)
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError(f"`{name}` needs running_mean and running_var after training")
        scale = rsqrt(running_var + eps)
        if weight is not None:
            scale, weight = scale * weight, None
        y = (x - _per_channel(running_mean, x)) * _per_channel(scale, x)
    return _channels_scaled(y, weight, bias)


def _move(running: Tensor, found: Tensor, momentum: float) -> None:
    with no_grad():
        running.copy_(running * (1 - momentum) + found * momentum)


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel of each example; see `batch_norm`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.instance_norm(tg.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    x = as_input(input, "instance_norm")
    shape = x._a.shape
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "`instance_norm` needs running_mean and running_var without use_input_stats"
            )
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    if prod(shape[2:]) == 1:
        raise ValueError(f"`instance_norm` takes more than one number per channel, got {shape}")
    dims = tuple(range(2, len(shape)))
    if running_mean is not None and running_var is not None:
        _move(running_mean, mean(x.detach(), (0, *dims)), momentum)
        _move(running_var, mean(var(x.detach(), dims), 0), momentum)
    y = _standardized(x, dims, eps)
    return _channels_scaled(y, weight, bias)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divided by a power of k plus the mean square of the channels nearby, times `alpha`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.local_response_norm(tg.ones(1, 1, 2), 1, alpha=1.0, beta=1.0)
    tensor([[[0.5000, 0.5000]]])
    """
    x = as_input(input, "local_response_norm")
    if x._a.ndim < 3:
        raise ValueError(
            f"`local_response_norm` takes three dimensions at least, got the shape {x._a.shape}"
        )
    if not x._a.size:
        return x
    around = [0, 0] * (x._a.ndim - 2) + [size // 2, (size - 1) // 2]
    near = mean(pad(square(x), around).unfold(1, size, 1), -1)
    return x / (near * alpha + k) ** beta
