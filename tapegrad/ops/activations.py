"""Activations of neural networks: elementwise operations that no other mathematics asks for.

Conventions at kinks are PyTorch's; each row says its own (`singular`).  What depends on a number
has it as its last operands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.ops.core import ANALYTIC, NotDifferentiable, elementwise
from tapegrad.ops.elementwise import (
    REAL,
    Lazy,
    erf,
    exp,
    ge,
    gt,
    le,
    lt,
    sigmoid,
    softplus,
    tanh,
    where,
)
from tapegrad.ops.elementwise import abs as abs_

SETTING = NotDifferentiable("it is a number that shapes the function: see `prelu` for one to learn")
ROOT_HALF = math.sqrt(0.5)
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# The fit of the error function by a tanh: tanh(GELU * (x + CUBIC * x**3)).
GELU, CUBIC = math.sqrt(2.0 / math.pi), 0.044715
# The slopes that keep mean 0 and variance 1 (Klambauer et al., 2017).
SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
PAST_THREE = -4.0, 4.0
_erf, _expit = Lazy("erf"), sigmoid.forward


def _prelu(x: Any, weight: Any) -> Any:
    return np.asarray(np.where(x > 0, x, x * weight))


def _selu(x: Any) -> Any:
    low = (SELU_SCALE * SELU_ALPHA) * np.expm1(np.minimum(x, 0))
    return np.asarray(np.where(x > 0, SELU_SCALE * x, low))


def _softshrink(x: Any, lambd: Any) -> Any:
    shrunk = np.where(x < 0, x + lambd, x - lambd)
    return np.asarray(np.where(np.abs(x) <= lambd, np.zeros((), x.dtype), shrunk))


def _hardsigmoid(x: Any) -> Any:
    y = np.add(x, 3.0, out=...)
    np.minimum(np.maximum(y, 0.0, out=y), 6.0, out=y)
    return np.divide(y, 6.0, out=y)


def _hardswish(x: Any) -> Any:
    y = _hardsigmoid(x)
    return np.multiply(x, y, out=y)


def _silu(x: Any) -> Any:
    y = _expit(x, out=...)
    return np.multiply(x, y, out=y)


def _mish(x: Any) -> Any:
    y = np.logaddexp(x, np.zeros((), x.dtype), out=...)
    return np.multiply(x, np.tanh(y, out=y), out=y)


def _log_sigmoid(x: Any) -> Any:
    y = np.negative(x, out=...)
    return np.negative(np.logaddexp(y, np.zeros((), x.dtype), out=y), out=y)


def _gelu(x: Any) -> Any:
    y = np.multiply(x, ROOT_HALF, out=...)
    y = _erf(y, out=y)
    y += 1.0
    y *= 0.5
    return np.multiply(x, y, out=y)


def _gelu_tanh(x: Any) -> Any:
    y = np.multiply(x, x, out=...)
    y *= GELU * CUBIC
    y += GELU
    y *= x
    np.tanh(y, out=y)
    y += 1.0
    y *= 0.5
    return np.multiply(x, y, out=y)


def _silu_slope(x: Any) -> Any:
    s = sigmoid(x)
    return s * (1 + x * (1 - s))


def _mish_slope(x: Any) -> Any:
    t = tanh(softplus(x))
    return t + x * (1 - t * t) * sigmoid(x)


def _gelu_tanh_slope(x: Any) -> Any:
    square = x * x
    t = tanh(x * (GELU + GELU * CUBIC * square))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (GELU + 3 * GELU * CUBIC * square)


# fmt: off
prelu = elementwise(
    "prelu", _prelu, x=lambda x, weight: where(gt(x, 0), 1, weight),
    weight=lambda x: where(gt(x, 0), 0, x), grad_name="PreluKernel",
    scalar="select({0} > zero, {0}, {0} * {1})", to_float=True, ordered=True, loop="f8 f4",
    singular="The derivative at 0 is the weight.",
)
elu = elementwise(
    "elu",
    lambda x, alpha: np.asarray(np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))),
    x=lambda x, alpha, y: where(le(x, 0), y + alpha, 1), alpha=SETTING,
    scalar="select({0} > zero, {0}, {1} * vmath.expm1({0}))", to_float=True, ordered=True,
    loop="f8 f4", singular="The derivative at 0 is alpha.",
)
selu = elementwise(
    "selu", _selu, grad_name="Elu", to_float=True, ordered=True, loop="f8 f4",
    x=lambda x, y: where(le(x, 0), y + SELU_SCALE * SELU_ALPHA, SELU_SCALE),
    scalar=f"select({{0}} > zero, T({SELU_SCALE}) * {{0}}, "
           f"T({SELU_SCALE * SELU_ALPHA}) * vmath.expm1({{0}}))",
    singular="The derivative at 0 is that of the left.",
)
# Unlike that of `clamp` its gradient does not pass at the bounds.
hardtanh = elementwise(
    "hardtanh",
    lambda x, low, high: np.asarray(np.minimum(np.maximum(x, low), high)),
    x=lambda x, low, high: where(le(x, low), 0, where(ge(x, high), 0, 1)),
    exact=("x",),
    low=SETTING, high=SETTING, scalar="vmath.clamp({0}, {1}, {2})", ordered=True, loop="f8 f4",
    singular="The derivative at the bounds is 0.",
)
hardshrink = elementwise(
    "hardshrink",
    lambda x, lambd: np.asarray(np.where(np.abs(x) <= lambd, np.zeros((), x.dtype), x)),
    x=lambda x, lambd: where(le(abs_(x), lambd), 0, 1), lambd=SETTING,
    exact=("x",),
    domain=(REAL, (0.3, 0.6)), scalar="select(abs({0}) <= {1}, zero, {0})", to_float=True,
    ordered=True, loop="f8 f4", singular="The derivative at the ends is 0.",
)
softshrink = elementwise(
    "softshrink", _softshrink, x=lambda x, lambd: where(le(abs_(x), lambd), 0, 1), lambd=SETTING,
    exact=("x",),
    domain=(REAL, (0.3, 0.6)), to_float=True, ordered=True, loop="f8 f4",
    scalar="select(abs({0}) <= {1}, zero, select({0} < zero, {0} + {1}, {0} - {1}))",
    singular="The derivative at the ends is 0.",
)
hardsigmoid = elementwise(
    "hardsigmoid", _hardsigmoid, domain=PAST_THREE,
    x=lambda x: where(gt(x, -3), where(lt(x, 3), 1 / 6, 0), 0), exact=("x",),
    scalar="vmath.clamp({0} + T(3.0), zero, T(6.0)) / T(6.0)", to_float=True, ordered=True,
    loop="f8 f4", singular="The derivative at the ends is 0.",
)
hardswish = elementwise(
    "hardswish", _hardswish, domain=PAST_THREE,
    x=lambda x: where(le(x, -3), 0, where(lt(x, 3), x / 3 + 0.5, 1)), exact=("x",),
    scalar="{0} * (vmath.clamp({0} + T(3.0), zero, T(6.0)) / T(6.0))", to_float=True,
    ordered=True, loop="f8 f4", singular="The derivative is 0 at -3 and 1 at 3.",
)
silu = elementwise("silu", _silu, x=_silu_slope, scalar="{0} * vmath.sigmoid({0})",
                   complex=ANALYTIC, to_float=True, loop="f8 f4")
mish = elementwise("mish", _mish, x=_mish_slope, to_float=True, ordered=True, loop="f8 f4",
                   scalar="{0} * vmath.tanh(vmath.softplus({0}))")
gelu = elementwise(
    "gelu", _gelu, to_float=True, ordered=True, loop="f8 f4", rare="never", vmath="many",
    x=lambda x: 0.5 + 0.5 * erf(ROOT_HALF * x) + x * (DENSITY * exp(-0.5 * (x * x))),
    scalar=f"{{0}} * (T(0.5) + T(0.5) * vmath.erf(T({ROOT_HALF}) * {{0}}))",
)
gelu_tanh = elementwise(
    "gelu_tanh", _gelu_tanh, x=_gelu_tanh_slope, grad_name="Gelu", to_float=True, ordered=True,
    scalar="{0} * (T(0.5) + T(0.5) * vmath.tanh("
           f"{{0}} * (T({GELU}) + T({GELU * CUBIC}) * ({{0}} * {{0}}))))",
    loop="f8 f4",
)
log_sigmoid = elementwise(
    "log_sigmoid", _log_sigmoid, x=lambda x: sigmoid(-x), scalar="-vmath.softplus(-{0})",
    to_float=True, ordered=True, loop="f8 f4",
)
# fmt: on
