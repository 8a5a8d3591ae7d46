"""`Adamax`: steps along the mean gradient, scaled by its greatest size so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import abs, maximum
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf, begin
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["Adamax"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    size: Any
    decay: Any
    new: Any
    beta2: Any
    eps: Any


def _rule(
    form: Descent, numbers: _Numbers, p: Any, g: Any, mean: Any, greatest: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, of the mean gradient, and of its greatest size."""
    p, g = form.decayed(numbers, p, g)
    mean += (g - mean) * numbers.new
    greatest *= numbers.beta2
    greatest = maximum(greatest, abs(g) + numbers.eps)
    p -= mean / greatest * numbers.size
    return p, mean, greatest


class Adamax(FusedOptimizer):
    """Steps along the mean gradient, in each element over the greatest size it has had of late.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    betas : how much stays at each step: of the mean gradient, of its greatest size.
    eps : what is added to the size of a gradient.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adamax([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -2.0])
    >>> optimizer.step()
    >>> w
    tensor([ 3.5000, -1.5000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)

    def __init__(
        self, params: Params, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        (beta1, beta2), decay = group["betas"], group["weight_decay"]
        form = Descent.of(group)

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                begin(state, param, "exp_avg", "exp_inf")
            step = state["step"] = state["step"] + 1
            # The mean begins with zero, and is too small by that factor.
            size = float(group["lr"]) / (1 - beta1**step)
            numbers = _Numbers(size, decay, 1 - beta1, beta2, group["eps"])
            return numbers, [param, gradient, state["exp_avg"], state["exp_inf"]]

        return form, work_of
