"""`NAdam`: Adam that looks ahead along the mean gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["NAdam"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    along: Any
    ahead: Any
    root: Any
    eps: Any
    decay: Any
    shrink: Any
    beta2: Any
    new1: Any
    new2: Any


def _rule(
    form: Descent, numbers: _Numbers, p: Any, g: Any, mean: Any, square: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, and of both averages."""
    p, g = form.decayed(numbers, p, g)
    mean += (g - mean) * numbers.new1
    square *= numbers.beta2
    square += g * g * numbers.new2
    root = sqrt(square)
    root /= numbers.root
    root += numbers.eps
    p -= g / root * numbers.along
    p -= mean / root * numbers.ahead
    return p, mean, square


class NAdam(FusedOptimizer):
    """`Adam` with Nesterov's momentum: a step goes along the mean gradient of the next step, too.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    betas : how much of both averages stays at each step: of the gradient, of its square.
    eps : what is added to the root.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    momentum_decay : how quickly the momentum grows to the first of `betas`.
    decoupled_weight_decay : whether to shrink the parameters instead of adding to gradients.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.NAdam([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -2.0])
    >>> optimizer.step()
    >>> w
    tensor([ 3.4718, -1.4718], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = "lr", "eps", "weight_decay", "momentum_decay"

    def __init__(
        self, params: Params, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        beta1, beta2 = group["betas"]
        lr, eps, decay = float(group["lr"]), group["eps"], group["weight_decay"]
        form = Descent.of(group)

        def momentum(step: int) -> float:
            found: float = beta1 * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
            return found

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                state["step"], state["mu_product"] = 0, 1.0
                state["exp_avg"] = np.zeros_like(param, order="C")
                state["exp_avg_sq"] = np.zeros_like(param, order="C")
            step = state["step"] = state["step"] + 1
            now, after = momentum(step), momentum(step + 1)
            product = state["mu_product"] = state["mu_product"] * now
            numbers = _Numbers(
                lr * (1 - now) / (1 - product), lr * after / (1 - product * after),
                (1 - beta2**step) ** 0.5, eps, decay, 1 - lr * decay, beta2, 1 - beta1, 1 - beta2,
            )  # fmt: skip
            return numbers, [param, gradient, state["exp_avg"], state["exp_avg_sq"]]

        return form, work_of
