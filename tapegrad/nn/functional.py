"""Functions of neural networks under PyTorch's names.

>>> import tapegrad.nn.functional as F, tapegrad as tg
>>> F.relu(tg.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

from typing import Any

from tapegrad.base.abstract_array import everything
from tapegrad.base.dtypes import int64
from tapegrad.base.missing_names import missing
from tapegrad.dispatch.dispatch import run
from tapegrad.dispatch.fast_path import binary
from tapegrad.functions.arguments import ordered, same_and_large
from tapegrad.functions.arithmetic import softplus, sub
from tapegrad.functions.creation import arange
from tapegrad.functions.elementwise import sigmoid, square
from tapegrad.functions.elementwise import tanh as tanh
from tapegrad.functions.indexing import gather
from tapegrad.functions.products import matmul
from tapegrad.functions.reductions import mean, sum
from tapegrad.functions.tiling import pad
from tapegrad.nn.activations import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    silu,
    softmax,
    softmin,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
    threshold_,
)
from tapegrad.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)
from tapegrad.nn.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from tapegrad.ops import elementwise as e
from tapegrad.ops import reduce as r
from tapegrad.tensor import Tensor

__all__ = [
    "alpha_dropout", "binary_cross_entropy_with_logits", "celu", "celu_", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cross_entropy",
    "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "feature_alpha_dropout",
    "fold", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "leaky_relu", "leaky_relu_", "linear", "log_softmax", "logsigmoid", "mish",
    "mse_loss", "nll_loss", "one_hot", "pad", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_",
    "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign",
    "tanh", "tanhshrink", "threshold", "threshold_", "unfold",
]  # fmt: skip


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The mean of the squared differences; `reduction` may be "sum" or "none" too.

    >>> import tapegrad as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([1.0, 1.0]))
    tensor(2.)
    """
    _check_reduction(reduction, "mse_loss")
    if type(input) is not Tensor or type(target) is not Tensor or input._a.dtype.kind != "f":
        squares = square(ordered(sub(input, target), "mse_loss"))
    elif reduction != "none" and same_and_large(input, target):
        return run(r.mse_loss, (input, target), {"mean": reduction == "mean"})
    else:
        squares = _squared_difference(input, target)
    return _reduced(squares, reduction, "mse_loss")


_squared_difference = binary(e.squared_difference)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.ones(2), tg.ones(3, 2))
    tensor([2., 2., 2.])
    """
    out: Tensor = matmul(input, weight.mT)
    return out if bias is None else out + bias


def _check_reduction(reduction: str, name: str) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"`{name}`: reduction is 'mean', 'sum' or 'none', got {reduction!r}")


def _reduced(losses: Tensor, reduction: str, name: str) -> Tensor:
    _check_reduction(reduction, name)
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of targets from 0 to 1 and the sigmoid of the input, computed without it.

    >>> import tapegrad as tg
    >>> F = tg.nn.functional
    >>> F.binary_cross_entropy_with_logits(tg.tensor([0.0, 1000.0]), tg.tensor([1.0, 1.0]))
    tensor(0.3466)
    """
    if input.shape != target.shape:
        raise ValueError(
            f"`binary_cross_entropy_with_logits`: the target has the shape {target.shape}, the "
            f"input {input.shape}: they must agree"
        )
    # -t log s(x) - (1 - t) log s(-x), where -log s(x) = log(1 + exp(-x))
    below = softplus(-input)
    if pos_weight is not None:
        below = below * (1 + (pos_weight - 1) * target)
    losses = (1 - target) * input + below
    return _reduced(
        losses if weight is None else losses * weight, reduction,
        "binary_cross_entropy_with_logits",
    )  # fmt: skip


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class, a vector that is one there and zero elsewhere, along a new last dimension.

    Without `num_classes` there are as many as the greatest class says.

    >>> import tapegrad as tg
    >>> tg.nn.functional.one_hot(tg.tensor([2, 0]), 3)
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor.dtype is not int64:
        raise RuntimeError(f"`one_hot` takes classes of type int64, got {tensor.dtype}")
    classes = everything(tensor._a)
    if num_classes < 0 and classes.size:
        num_classes = int(classes.max()) + 1
    if num_classes < 1 or (classes.size and not 0 <= classes.min() <= classes.max() < num_classes):
        raise RuntimeError(
            f"`one_hot`: the classes must be numbers from 0 to {max(num_classes, 1) - 1}, as "
            f"num_classes={num_classes} says"
        )
    return (tensor.unsqueeze(-1) == arange(num_classes)).long()


def nll_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Minus the log-probabilities, along dimension 1 or the only one, of the classes in `target`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.nll_loss(tg.tensor([[-1.0, -2.0]]), tg.tensor([1]))
    tensor(2.)
    """
    if target._a.dtype.kind not in "iu" or target.ndim != max(input.ndim - 1, 0):
        raise RuntimeError(
            f"`nll_loss` takes classes as integers of the shape of the input without its dimension "
            f"of classes, got {target.dtype} of shape {target.shape} for {input.shape}"
        )
    dim = min(1, input.ndim - 1)
    losses = -gather(input, dim, target.unsqueeze(dim)).squeeze(dim)
    return _reduced(losses, reduction, "nll_loss")


def cross_entropy(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The cross entropy of the softmax of the input and classes, or probabilities of classes.

    >>> import tapegrad as tg
    >>> tg.nn.functional.cross_entropy(tg.zeros(1, 4), tg.tensor([2]))
    tensor(1.3863)
    """
    dim = min(1, input.ndim - 1)
    logs = log_softmax(input, dim)
    if target.shape != input.shape:
        return nll_loss(logs, target, reduction=reduction)
    losses = -sum(target * logs, dim)
    return _reduced(losses, reduction, "cross_entropy")


def __getattr__(name: str) -> Any:
    raise missing("module 'tapegrad.nn.functional'", name, __all__)
