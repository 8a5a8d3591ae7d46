"""Functions of neural networks under PyTorch's names.

>>> import tapegrad.nn.functional as F, tapegrad as tg
>>> F.relu(tg.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from typing import Any

from tapegrad.functions.arithmetic import relu, sigmoid, softplus, square, sub
from tapegrad.functions.arithmetic import tanh as tanh
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import log_softmax, mean, softmax, sum
from tapegrad.functions.tiling import pad
from tapegrad.tensor import Tensor

__all__ = [
    "linear", "log_softmax", "mse_loss", "pad", "relu", "sigmoid", "softmax", "softplus", "tanh",
]  # fmt: skip


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The mean of the squared differences; `reduction` may be "sum" or "none" too.

    >>> import tapegrad as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """
    squares = square(sub(input, target))
    if reduction == "none":
        return squares
    if reduction not in ("mean", "sum"):
        raise ValueError(f"`mse_loss`: reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    return mean(squares) if reduction == "mean" else sum(squares)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.ones(2), tg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    out: Tensor = matmul(input, weight.mT)
    return out if bias is None else out + bias
