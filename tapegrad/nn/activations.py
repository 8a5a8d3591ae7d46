"""Activations: what stands between the linear layers of a network."""

from __future__ import annotations

import warnings
from typing import Any

from tapegrad.dispatch.inplace import run_inplace
from tapegrad.dispatch.op_functions import binary, ternary, unary
from tapegrad.functions import arithmetic, axis, compositions, elementwise, random
from tapegrad.functions.activations import _prelu
from tapegrad.functions.arguments import as_input, floating, one_dim
from tapegrad.functions.indexing import scatter
from tapegrad.functions.inplace_methods import masked_fill_
from tapegrad.functions.joining import chunk
from tapegrad.functions.reductions import argmax
from tapegrad.ops import activations as a
from tapegrad.ops import elementwise as e
from tapegrad.ops.core import Op
from tapegrad.tensor import Tensor

_elu, _softshrink = binary(a.elu), binary(a.softshrink)
_selu, _silu, _mish = unary(a.selu), unary(a.silu), unary(a.mish)
_hardsigmoid, _hardswish = unary(a.hardsigmoid), unary(a.hardswish)
_gelu, _gelu_tanh, _log_sigmoid = unary(a.gelu), unary(a.gelu_tanh), unary(a.log_sigmoid)
ternary(a.hardtanh)


def _applied(op: Op, input: Any, inplace: bool, *settings: float) -> Tensor:
    """A row on the input, or in its place."""
    if inplace:
        return run_inplace(op, (input, *settings), {}, input)
    return op.entry_point(input, *settings)  # type: ignore[no-any-return]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); with `inplace` written into the input.

    >>> import tapegrad as tg
    >>> tg.nn.functional.relu(tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return run_inplace(e.relu, (input,), {}, input) if inplace else elementwise.relu(input)


def relu_(input: Tensor) -> Tensor:
    """`relu` in place."""
    return relu(input, inplace=True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The input between 0 and 6; the derivative at both is 0.

    >>> import tapegrad as tg
    >>> tg.nn.functional.relu6(tg.tensor([-1.0, 2.0, 7.0]))
    tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """The input between two numbers; the derivative at both is 0, unlike that of `clamp`.

    >>> import tapegrad as tg
    >>> tg.nn.functional.hardtanh(tg.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"`hardtanh`: min_val is above max_val: {min_val} > {max_val}")
    x = as_input(input, "hardtanh")
    if x._a.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return _applied(a.hardtanh, x, inplace, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, inplace=True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, else x times a slope, which is the derivative at 0, too.

    >>> import tapegrad as tg
    >>> tg.nn.functional.leaky_relu(tg.tensor([-1.0, 2.0]))
    tensor([-0.0100,  2.0000])
    """
    return _applied(a.prelu, input, inplace, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` in place."""
    return leaky_relu(input, negative_slope, inplace=True)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    """`leaky_relu` whose slopes are drawn from an interval in training; else it is their mean.

    >>> import tapegrad as tg
    >>> tg.nn.functional.rrelu(tg.tensor([-1.0, 2.0]), 0.25, 0.75)
    tensor([-0.5000,  2.0000])
    """
    if lower > upper:
        raise RuntimeError(f"`rrelu`: lower is above upper: {lower} > {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = random.rand_like(floating(as_input(input, "rrelu"), "rrelu"))
    slopes = slopes * (upper - lower) + lower
    return run_inplace(a.prelu, (input, slopes), {}, input) if inplace else _prelu(input, slopes)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha * (exp(x) - 1)``.

    >>> import tapegrad as tg
    >>> tg.nn.functional.elu(tg.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _applied(a.elu, input, inplace, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` in place."""
    return elu(input, alpha, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, else ``alpha * (exp(x / alpha) - 1)``: smooth at 0.

    >>> import tapegrad as tg
    >>> tg.nn.functional.celu(tg.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("`celu`: alpha must not be 0")
    if alpha == 1:
        return elu(input, 1.0, inplace)
    found = elementwise.mul(_elu(arithmetic.div(input, alpha), 1.0), alpha)
    return input.copy_(found) if inplace else found


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` in place."""
    return celu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the two slopes that keep mean 0 and variance 1 from layer to layer.

    >>> import tapegrad as tg
    >>> tg.nn.functional.selu(tg.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return _applied(a.selu, input, inplace)


def selu_(input: Tensor) -> Tensor:
    """`selu` in place."""
    return selu(input, inplace=True)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the probability that a normal number is below it; or fitted, if "tanh" is asked for.

    >>> import tapegrad as tg
    >>> tg.nn.functional.gelu(tg.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "none":
        return _gelu(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise RuntimeError(f"`gelu`: approximate is 'none' or 'tanh', got {approximate!r}")


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    >>> import tapegrad as tg
    >>> tg.nn.functional.silu(tg.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _applied(a.silu, input, inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)).

    >>> import tapegrad as tg
    >>> tg.nn.functional.mish(tg.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _applied(a.mish, input, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """A line from 0 at -3 to 1 at 3.

    >>> import tapegrad as tg
    >>> tg.nn.functional.hardsigmoid(tg.tensor([-4.0, 1.5]))
    tensor([0.0000, 0.7500])
    """
    return _applied(a.hardsigmoid, input, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x).

    >>> import tapegrad as tg
    >>> tg.nn.functional.hardswish(tg.tensor([1.5, 4.0]))
    tensor([1.1250, 4.0000])
    """
    return _applied(a.hardswish, input, inplace)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, and 0 where that is further than it is away.

    >>> import tapegrad as tg
    >>> tg.nn.functional.softshrink(tg.tensor([-0.5, 2.0]))
    tensor([0.0000, 1.5000])
    """
    if lambd < 0:
        raise RuntimeError(f"`softshrink`: lambd must not be negative, got {lambd}")
    return _softshrink(input, lambd)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> import tapegrad as tg
    >>> tg.nn.functional.tanhshrink(tg.tensor([0.0, 2.0]))
    tensor([0.0000, 1.0360])
    """
    return arithmetic.sub(input, elementwise.tanh(input))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + abs(x)).

    >>> import tapegrad as tg
    >>> tg.nn.functional.softsign(tg.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return arithmetic.div(input, arithmetic.add(elementwise.abs(input), 1))


def logsigmoid(input: Tensor) -> Tensor:
    """The logarithm of `sigmoid`, computed directly.

    >>> import tapegrad as tg
    >>> tg.nn.functional.logsigmoid(tg.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return _log_sigmoid(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Elements that are not above a threshold become a value.

    >>> import tapegrad as tg
    >>> tg.nn.functional.threshold(tg.tensor([0.5, 2.0]), 1.0, 9.0)
    tensor([9., 2.])
    """
    if inplace:
        return masked_fill_(input, elementwise.le(input, threshold), value)
    return compositions.threshold(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place."""
    return masked_fill_(input, elementwise.le(input, threshold), value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dimension, times the sigmoid of the second.

    >>> import tapegrad as tg
    >>> tg.nn.functional.glu(tg.tensor([2.0, 4.0, 0.0, 0.0]))
    tensor([1., 2.])
    """
    x = floating(as_input(input, "glu"), "glu")
    if not x._a.ndim or x._a.shape[one_dim(dim, x._a.ndim, "glu")] % 2:
        raise RuntimeError(
            f"`glu` halves a dimension of even length, got dimension {dim} of {x._a.shape}"
        )
    left, right = chunk(x, 2, dim)
    return elementwise.mul(left, elementwise.sigmoid(right))


# -- along a dimension -----------------------------------------------------------------------------


def _chosen(name: str, input: Tensor, dim: int | None) -> int:
    """The dimension, or the one that PyTorch takes where none is given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"`{name}` without `dim` goes along a dimension that depends on how many there are: "
        "pass dim=X",
        stacklevel=3,
    )
    return 0 if input._a.ndim in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Exponentials along one dimension, scaled to the sum 1.

    >>> import tapegrad as tg
    >>> tg.nn.functional.softmax(tg.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return axis.softmax(input, _chosen("softmax", input, dim), dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """The logarithm of `softmax`, computed directly.

    >>> import tapegrad as tg
    >>> tg.nn.functional.log_softmax(tg.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return axis.log_softmax(input, _chosen("log_softmax", input, dim), dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """`softmax` of the negative: the smallest element weighs most.

    >>> import tapegrad as tg
    >>> tg.nn.functional.softmin(tg.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return axis.softmax(elementwise.neg(input), _chosen("softmin", input, dim), dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random choice of classes, relaxed by the temperature `tau` so that it has gradients.

    With `hard` the choice is a vector of zeros and a one, whose gradient is the relaxed one's.

    >>> import tapegrad as tg
    >>> tg.nn.functional.gumbel_softmax(tg.tensor([0.0, 1000.0]), hard=True)
    tensor([0., 1.])
    """
    x = floating(as_input(logits, "gumbel_softmax"), "gumbel_softmax")
    chances = random.rand_like(x)  # below 1, and 0 makes -inf of the noise: a class not chosen
    noise = elementwise.neg(elementwise.log(elementwise.neg(elementwise.log(chances))))
    soft = axis.softmax((x + noise) / tau, dim)
    if not hard:
        return soft
    zeros = soft.detach() * 0
    choice = scatter(zeros, dim, argmax(soft.detach(), dim, True), value=1.0)
    return choice - soft.detach() + soft
