"""`Adafactor`: steps scaled by mean squares, of a matrix those of its rows and columns alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.optim.optimizer import Given, Group, Optimizer, Params
from tapegrad.tensor import Tensor

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Steps over the root of the mean square, which the state keeps for rows and columns.

    Of a matrix of m times n elements the state has m + n numbers.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the greatest relative size of a step.
    beta2_decay : the power of the step's number by which a new square counts less.
    eps : the least root of a mean square (None for that of the dtype), and the least size of a
        parameter that steps are relative to.
    d : the greatest root mean square of a step before it is scaled.
    weight_decay : what parameters shrink by in each step, times `lr`.
    foreach : PyTorch's way to compute the same; ignored.
    maximize : whether to ascend.

    >>> import tapegrad as tg
    >>> w = tg.tensor([[4.0, -2.0]], requires_grad=True)
    >>> optimizer = tg.optim.Adafactor([w], lr=0.1)
    >>> w.grad = tg.tensor([[1.0, -1.0]])
    >>> optimizer.step()
    >>> w
    tensor([[ 3.6838, -1.6838]], requires_grad=True)
    """

    _not_negative = "lr", "weight_decay"

    def __init__(
        self, params: Params, lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "maximize": maximize,
        })  # fmt: skip

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        self._check_number(options, "d", 1)
        if not options["beta2_decay"] <= 0:
            raise ValueError(
                f"`Adafactor`: `beta2_decay` is at most 0, got {options['beta2_decay']}"
            )

    def _listed(self, params: Any) -> list[Tensor]:
        listed = super()._listed(params)
        if any(p._a.dtype.kind == "c" for p in listed):
            raise ValueError("`Adafactor`: complex parameters are not supported, as in PyTorch")
        return listed

    def _update(self, group: Group, given: list[Given]) -> None:
        for param, gradient, state in given:
            _step(group, param, -gradient if group["maximize"] else gradient, state)

    def _state_shape(self, p: Tensor, key: str) -> tuple[int, ...]:
        return _shapes(p._a.shape)[key]


def _shapes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The mean squares that are kept of a parameter."""
    if len(shape) < 2:
        return {"variance": shape}
    return {"row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}


def _rms(x: np.ndarray) -> float:
    return math.sqrt(np.mean(np.square(x))) if x.size else 0.0


def _step(group: Group, param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> None:
    lr, (least, smallest) = float(group["lr"]), group["eps"]
    least = float(np.finfo(param.dtype).eps) if least is None else least
    kept = _shapes(param.shape)
    if not state:
        state["step"] = 0
        state.update({key: np.zeros(shape, param.dtype) for key, shape in kept.items()})
    step = state["step"] = state["step"] + 1
    size = max(smallest, _rms(param)) * min(lr, step**-0.5)
    param *= 1 - lr * group["weight_decay"]
    squares = np.square(gradient)
    for key, axis in zip(kept, (-1, -2), strict=False):
        new = squares if key == "variance" else np.mean(squares, axis, keepdims=True)
        state[key] += (new - state[key]) * step ** group["beta2_decay"]
    if "variance" in kept:
        mean = state["variance"]
    else:
        rows = state["row_var"]
        mean = rows * state["col_var"] / np.maximum(np.mean(rows, -2, keepdims=True), least)
    update = gradient / np.sqrt(np.maximum(mean, least * least))
    param -= update * (size / max(1.0, _rms(update) / group["d"]))
