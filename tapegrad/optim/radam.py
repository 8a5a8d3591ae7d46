"""`RAdam`: Adam that scales no step before its scale is known well enough."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf, begin
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["RAdam"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    plain: Any
    scaled: Any
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
    root += numbers.eps
    p -= mean * (numbers.scaled / root + numbers.plain)
    return p, mean, square


class RAdam(FusedOptimizer):
    """`Adam` whose steps are scaled only once the mean square is known well enough.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    betas : how much of both averages stays at each step: of the gradient, of its square.
    eps : what is added to the root.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    decoupled_weight_decay : whether to shrink the parameters instead of adding to gradients.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.RAdam([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -2.0])
    >>> optimizer.step()
    >>> w
    tensor([ 3.5000, -1.0000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)

    def __init__(
        self, params: Params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        beta1, beta2 = group["betas"]
        lr, eps, decay = float(group["lr"]), group["eps"], group["weight_decay"]
        form = Descent.of(group)
        longest = 2 / (1 - beta2) - 1  # how many gradients the mean square is of, at the end

        def sizes(step: int) -> tuple[float, float, float]:
            """What multiplies all elements, what is divided by the root, what is added to that."""
            size, left = lr / (1 - beta1**step), 1 - beta2**step
            length = longest - 2 * step * beta2**step / left
            if length <= 5:
                return size, 0.0, 1.0  # nothing is divided by zero
            share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            return 0.0, size * (left * share) ** 0.5, eps

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                begin(state, param, "exp_avg", "exp_avg_sq")
            step = state["step"] = state["step"] + 1
            shared = decay, 1 - lr * decay, beta2, 1 - beta1, 1 - beta2
            numbers = _Numbers(*sizes(step), *shared)
            return numbers, [param, gradient, state["exp_avg"], state["exp_avg_sq"]]

        return form, work_of
