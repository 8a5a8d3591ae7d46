"""`Adam`: steps scaled by moving averages of the gradient and of its square."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import maximum, sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf, begin
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["Adam"]


class _Form(NamedTuple):
    """What decides which operations an update consists of."""

    descent: Descent
    amsgrad: bool


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    size: Any
    root: Any
    eps: Any
    decay: Any
    shrink: Any
    beta2: Any
    new1: Any
    new2: Any


def _rule(
    form: _Form, numbers: _Numbers, p: Any, g: Any, mean: Any, square: Any, *greatest: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, of both averages, and of the greatest second one."""
    p, g = form.descent.decayed(numbers, p, g)
    mean += (g - mean) * numbers.new1
    square *= numbers.beta2
    square += g * g * numbers.new2
    averages = mean, square, *[maximum(one, square) for one in greatest]
    root = sqrt(averages[-1])
    root /= numbers.root
    root += numbers.eps
    step = mean / root
    step *= numbers.size
    p -= step
    return p, *averages


class Adam(FusedOptimizer):
    """Steps along the mean gradient, in each element over the root of its mean square.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    betas : how much of both averages stays at each step: of the gradient, of its square.
    eps : what is added to the root.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    amsgrad : whether to divide by the greatest average so far, in place of the last.
    maximize : whether to ascend.
    decoupled_weight_decay : whether to shrink the parameters instead of adding to gradients.
    foreach, capturable, fused : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adam([w], lr=0.1)
    >>> for _ in range(300):
    ...     optimizer.zero_grad()
    ...     ((w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)

    def __init__(
        self, params: Params, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[_Form, WorkOf]:
        beta1, beta2 = group["betas"]
        lr, eps, decay = float(group["lr"]), group["eps"], group["weight_decay"]
        form = _Form(Descent.of(group), bool(group["amsgrad"]))

        known: dict[int, _Numbers] = {}

        def numbers_of(step: int) -> _Numbers:
            # Averages that begin with zero are too small by these factors.
            size, root = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
            return _Numbers(size, root, eps, decay, 1 - lr * decay, beta2, 1 - beta1, 1 - beta2)

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                begin(state, param, "exp_avg", "exp_avg_sq")
            if form.amsgrad and "max_exp_avg_sq" not in state:
                state["max_exp_avg_sq"] = np.zeros_like(param, order="C")
            step = state["step"] = state["step"] + 1
            greatest = [state["max_exp_avg_sq"]] if form.amsgrad else []
            averages = state["exp_avg"], state["exp_avg_sq"], *greatest
            if step not in known:
                known[step] = numbers_of(step)
            return known[step], [param, gradient, *averages]

        return form, work_of
