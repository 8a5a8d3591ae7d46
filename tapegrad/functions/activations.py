"""Activations that are methods of the Tensor, too; the others are in `nn`."""

from __future__ import annotations

from tapegrad.dispatch.op_functions import binary
from tapegrad.functions.arguments import as_input
from tapegrad.functions.method_decorators import method
from tapegrad.functions.shapes import reshape
from tapegrad.ops import activations as a
from tapegrad.tensor import Tensor

_prelu, _hardshrink = binary(a.prelu), binary(a.hardshrink)


@method
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` with one slope, or one for each channel (dimension 1), that can be learnt.

    >>> import tapegrad as tg
    >>> tg.prelu(tg.tensor([-1.0, 2.0]), tg.tensor([0.25]))
    tensor([-0.2500,  2.0000])
    """
    x, w = as_input(input, "prelu"), as_input(weight, "prelu")
    if w._a.dtype != x._a.dtype:
        raise RuntimeError(
            f"`prelu`: the input is of {x.dtype} and the weight of {w.dtype}: convert one of them"
        )
    channels = x._a.shape[1] if x._a.ndim > 1 else 1
    if w._a.ndim > 1 or w._a.size not in (1, channels):
        raise RuntimeError(
            f"`prelu`: the weight is one number, or one for each of {channels} channels, got the "
            f"shape {w._a.shape}"
        )
    if w._a.size != 1:
        w = reshape(w, (-1, *[1] * (x._a.ndim - 2)))
    elif w._a.ndim > x._a.ndim:
        w = reshape(w, ())
    return _prelu(x, w)


@method
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where the magnitude is at most `lambd`, else x.

    >>> import tapegrad as tg
    >>> tg.hardshrink(tg.tensor([-0.5, 2.0]))
    tensor([0., 2.])
    """
    return _hardshrink(input, lambd)
