"""Dropout: elements or whole channels set to zero by chance, while a network learns."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tapegrad.base.dtypes import get_default_dtype
from tapegrad.functions import random
from tapegrad.functions.arguments import as_input
from tapegrad.functions.arithmetic import where
from tapegrad.functions.elementwise import lt, mul
from tapegrad.ops.activations import SELU_ALPHA, SELU_SCALE
from tapegrad.tensor import Tensor

LOWEST = -SELU_SCALE * SELU_ALPHA  # of `selu`, by which `alpha_dropout` replaces elements


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element set to zero with the probability p, the others divided by 1 - p.

    The numbers are those of the default generator (`manual_seed`).

    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout(tg.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    x = _checked("dropout", input, p)
    return _dropped(x, p, x._a.shape, inplace) if training and p else x


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of signals set to zero with the probability p: see `dropout`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout1d(tg.ones(1, 2, 3), p=1.0).sum()
    tensor(0.)
    """
    return _of_channels("dropout1d", 1, input, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of images set to zero with the probability p: see `dropout`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout2d(tg.ones(1, 2, 3, 3), p=1.0).sum()
    tensor(0.)
    """
    return _of_channels("dropout2d", 2, input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of volumes set to zero with the probability p: see `dropout`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.dropout3d(tg.ones(1, 2, 3, 3, 3), p=1.0).sum()
    tensor(0.)
    """
    return _of_channels("dropout3d", 3, input, p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`dropout` to the lowest value of `selu`, scaled and moved so that mean and variance stay.

    >>> import tapegrad as tg
    >>> tg.nn.functional.alpha_dropout(tg.ones(3))
    tensor([1., 1., 1.])
    """
    x = _checked("alpha_dropout", input, p)
    return _alpha_dropped(x, p, x._a.shape, inplace) if training and p else x


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool = False) -> Tensor:
    """Whole channels set to zero, whatever the number of dimensions."""
    x = _checked("feature_dropout", input, p)
    return _dropped(x, p, _channels("feature_dropout", x), inplace) if training and p else x


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels.

    >>> import tapegrad as tg
    >>> tg.nn.functional.feature_alpha_dropout(tg.ones(1, 2, 2)).sum()
    tensor(4.)
    """
    x = _checked("feature_alpha_dropout", input, p)
    if not training or not p:
        return x
    return _alpha_dropped(x, p, _channels("feature_alpha_dropout", x), inplace)


def _checked(name: str, input: Any, p: float) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"`{name}`: p is a probability from 0 to 1, got {p}")
    return as_input(input, name)


def _channels(name: str, x: Tensor) -> tuple[int, ...]:
    """A shape with one number for each channel of each example."""
    if x._a.ndim < 2:
        raise RuntimeError(f"`{name}` takes two dimensions at least, got the shape {x._a.shape}")
    return (*x._a.shape[:2], *[1] * (x._a.ndim - 2))


def _kept(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """Which numbers of a shape, that broadcasts with x, are kept."""
    like = x.detach()
    if shape != x._a.shape:  # the first element of each channel
        like = like[tuple([slice(0, 1) if n == 1 else slice(None) for n in shape])]
    kind = None if like.is_floating_point() else get_default_dtype()
    return lt(random.rand_like(like, dtype=kind), 1.0 - p)


def _dropped(x: Tensor, p: float, shape: tuple[int, ...], inplace: bool) -> Tensor:
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    factors = mul(_kept(x, p, shape), scale).to(x.dtype)
    return x.mul_(factors) if inplace else mul(x, factors)


def _of_channels(
    name: str, dims: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    x = _checked(name, input, p)
    if x._a.ndim not in (dims + 1, dims + 2):
        warnings.warn(
            f"`{name}` takes {dims + 1} or {dims + 2} dimensions, got {x._a.ndim}", stacklevel=3
        )
    if not training or not p:
        return x
    if dims != 2 and x._a.ndim == dims + 1:  # one example; PyTorch takes it for a batch of images
        shape = (x._a.shape[0], *[1] * dims)
        return _dropped(x, p, shape, inplace)
    return _dropped(x, p, _channels(name, x), inplace)


def _alpha_dropped(x: Tensor, p: float, shape: tuple[int, ...], inplace: bool) -> Tensor:
    if p == 1:
        return x.mul_(0) if inplace else mul(x, 0)
    scale = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * LOWEST * LOWEST))
    kept = _kept(x, p, shape)
    moved = mul(where(kept, x, LOWEST), scale) - p * LOWEST * scale
    return x.copy_(moved) if inplace else moved
