"""Losses of single elements, each in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.activations import SETTING
from tapegrad.ops.core import elementwise
from tapegrad.ops.elementwise import REAL, log, log1p, lt, maximum, sigmoid, sign, where
from tapegrad.ops.elementwise import abs as abs_

LEAST_LOG = -100.0  # what PyTorch takes for the logarithm of zero
LEAST_VARIANCE = 1e-12  # and for p * (1 - p), by which a derivative divides


def _smooth_l1(x: Any, beta: Any) -> Any:
    size = np.abs(x)
    return np.asarray(np.where(size < beta, x * x * (0.5 / beta), size - 0.5 * beta))


def _bce(p: Any, target: Any) -> Any:
    with np.errstate(divide="ignore"):
        chosen, others = np.log(p), np.log1p(-p)
    chosen, others = np.maximum(chosen, LEAST_LOG), np.maximum(others, LEAST_LOG)
    return np.asarray((target - 1) * others - target * chosen)


# fmt: off
smooth_l1 = elementwise(
    "smooth_l1", _smooth_l1, grad_name="SmoothL1Loss", domain=(REAL, (0.7, 1.3)),
    x=lambda x, beta: where(lt(abs_(x), beta), x / beta, sign(x)), beta=SETTING,
    scalar="select(abs({0}) < {1}, {0} * {0} * (T(0.5) / {1}), abs({0}) - T(0.5) * {1})",
    to_float=True, ordered=True, loop="f8 f4",
)
# The cross entropy of probabilities, and of what `sigmoid` makes probabilities of.
bce = elementwise(
    "bce", _bce, grad_name="BinaryCrossEntropy", domain=((0.05, 0.95), (0.0, 1.0)),
    p=lambda p, target: (p - target) / maximum(p * (1 - p), LEAST_VARIANCE),
    target=lambda p: maximum(log1p(-p), LEAST_LOG) - maximum(log(p), LEAST_LOG),
    to_float=True, ordered=True, loop="f8 f4",
    scalar="({1} - one) * vmath.clamp(vmath.log1p(-{0}), T(-100.0), zero)"
           " - {1} * vmath.clamp(vmath.log({0}), T(-100.0), zero)",
    singular="Logarithms are at least -100, p * (1 - p) at least 1e-12.",
)
bce_logits = elementwise(
    "bce_logits",
    lambda x, target: np.asarray((1 - target) * x + np.logaddexp(-x, np.zeros((), x.dtype))),
    grad_name="BinaryCrossEntropyWithLogits",
    x=lambda x, target: sigmoid(x) - target, target=lambda x: -x, to_float=True, ordered=True,
    domain=(REAL, (0.0, 1.0)), scalar="(one - {1}) * {0} + vmath.softplus(-{0})", loop="f8 f4",
)
# fmt: on
