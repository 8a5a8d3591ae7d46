"""`RMSprop`: steps along the gradient, scaled by a moving average of its square."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["RMSprop"]


class _Form(NamedTuple):
    """What decides which operations an update consists of."""

    descent: Descent
    centered: bool
    moving: bool


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    lr: Any
    decay: Any
    alpha: Any
    new: Any
    eps: Any
    momentum: Any


def _rule(
    form: _Form, numbers: _Numbers, p: Any, g: Any, square: Any, *more: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, and of its state: averages, and the last step."""
    p, g = form.descent.decayed(numbers, p, g)
    square *= numbers.alpha
    square += g * g * numbers.new
    state = [square]
    if form.centered:
        mean = more[0]
        mean += (g - mean) * numbers.new
        state.append(mean)
        root = sqrt(square - mean * mean)
    else:
        root = sqrt(square)
    root += numbers.eps
    step = g / root
    if form.moving:
        last = more[-1]
        last *= numbers.momentum
        last += step
        state.append(last)
        step = last
    p -= step * numbers.lr
    return p, *state


class RMSprop(FusedOptimizer):
    """Steps along the gradient, in each element over the root of its mean square.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    alpha : how much of the averages stays at each step.
    eps : what is added to the root.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    momentum : how much of the last step is added to the next one.
    centered : whether to divide by the standard deviation of the gradient instead.
    maximize : whether to ascend.
    capturable, foreach : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.RMSprop([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -1.0])
    >>> optimizer.step()
    >>> w  # the average begins at 0, and is 0.01 now
    tensor([-1.0000,  3.0000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = "lr", "alpha", "eps", "weight_decay", "momentum"

    def __init__(
        self, params: Params, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
            "momentum": momentum, "centered": centered, "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[_Form, WorkOf]:
        decay, alpha, momentum = group["weight_decay"], group["alpha"], group["momentum"]
        form = _Form(Descent.of(group), bool(group["centered"]), momentum > 0)
        numbers = _Numbers(float(group["lr"]), decay, alpha, 1 - alpha, group["eps"], momentum)
        kept = ["square_avg"]
        kept += ["grad_avg"] if form.centered else []
        kept += ["momentum_buffer"] if form.moving else []

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            state["step"] = state.get("step", 0) + 1
            for key in kept:
                if key not in state:
                    state[key] = np.zeros_like(param, order="C")
            return numbers, [param, gradient, *[state[key] for key in kept]]

        return form, work_of
