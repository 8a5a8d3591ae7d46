"""How a loss makes one number of the losses of all elements."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.functions.reductions import mean, sum
from tapegrad.tensor import Tensor


def chosen(reduction: str, name: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction, which two older arguments may say, too.

    >>> from tapegrad.nn.reduction import chosen
    >>> chosen("sum", "mse_loss", None, None)
    'sum'
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            reduction = "none"
        else:
            reduction = "sum" if size_average is False else "mean"
        warnings.warn(
            f"`{name}`: size_average and reduce are deprecated: pass reduction={reduction!r}",
            stacklevel=3,
        )
    elif reduction not in ("mean", "sum", "none"):
        raise ValueError(f"`{name}`: reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    return reduction


def numbered(reduction: Any, name: str) -> str:
    """The reduction that PyTorch's functions at top level give a number.

    >>> from tapegrad.nn.reduction import numbered
    >>> numbered(2, "kl_div")
    'sum'
    """
    if reduction not in (0, 1, 2):
        problem = RuntimeError if isinstance(reduction, int) else TypeError
        raise problem(
            f"`{name}`: reduction is 0, 1 or 2 for 'none', 'mean' or 'sum', got {reduction!r}; "
            f"`nn.functional.{name}` takes the words"
        )
    return ("none", "mean", "sum")[int(reduction)]


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """All losses, their sum or their mean."""
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def warn_of_sizes(name: str, input: Any, target: Any) -> None:
    """Say that input and target differ in shape, which is rarely meant."""
    shapes = getattr(input, "shape", None), getattr(target, "shape", None)
    if None not in shapes and shapes[0] != shapes[1]:
        warnings.warn(
            f"`{name}`: the target has the shape {tuple(target.shape)} and the input "
            f"{tuple(input.shape)}: they are broadcast, which is likely to be a mistake",
            stacklevel=3,
        )
