"""Functions of neural networks under PyTorch's names.

>>> import tapegrad.nn.functional as F, tapegrad as tg
>>> F.relu(tg.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from typing import Any

from tapegrad.fast import binary
from tapegrad.functions.arguments import ordered, same_and_large
from tapegrad.functions.arithmetic import relu, sigmoid, softplus, square, sub
from tapegrad.functions.arithmetic import tanh as tanh
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import log_softmax, mean, softmax, sum
from tapegrad.functions.tiling import pad
from tapegrad.ops import elementwise as e
from tapegrad.ops import reduce as r
from tapegrad.record import run
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
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"`mse_loss`: reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    if type(input) is not Tensor or type(target) is not Tensor or input._a.dtype.kind != "f":
        squares = square(ordered(sub(input, target), "mse_loss"))
    elif reduction != "none" and same_and_large(input, target):
        return run(r.mse_loss, (input, target), {"mean": reduction == "mean"})
    else:
        squares = _squared_difference(input, target)
    if reduction == "none":
        return squares
    return mean(squares) if reduction == "mean" else sum(squares)


_squared_difference = binary(e.squared_difference)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.ones(2), tg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    out: Tensor = matmul(input, weight.mT)
    return out if bias is None else out + bias
