"""`Adadelta`: steps along the gradient, in the size of the steps before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf, begin
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["Adadelta"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    lr: Any
    decay: Any
    rho: Any
    new: Any
    eps: Any


def _rule(
    form: Descent, numbers: _Numbers, p: Any, g: Any, square: Any, steps: Any
) -> tuple[Any, ...]:
    """New elements of the parameter, and of the averages of squares: of gradients, of steps."""
    p, g = form.decayed(numbers, p, g)
    square *= numbers.rho
    square += g * g * numbers.new
    step = sqrt(steps + numbers.eps)
    step /= sqrt(square + numbers.eps)
    step *= g
    steps *= numbers.rho
    steps += step * step * numbers.new
    p -= step * numbers.lr
    return p, square, steps


class Adadelta(FusedOptimizer):
    """Steps along the gradient, in each element scaled to the size of the steps before.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : what the step is multiplied by at the end.
    rho : how much of the averages stays at each step.
    eps : what is added to the averages.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adadelta([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -2.0])
    >>> optimizer.step()
    >>> w
    tensor([ 3.9984, -1.9984], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)

    def __init__(
        self, params: Params, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        self._check_number(options, "rho", 0, np.nextafter(1, 2))

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        decay, rho = group["weight_decay"], group["rho"]
        form = Descent.of(group)
        numbers = _Numbers(float(group["lr"]), decay, rho, 1 - rho, group["eps"])

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                begin(state, param, "square_avg", "acc_delta")
            state["step"] += 1
            return numbers, [param, gradient, state["square_avg"], state["acc_delta"]]

        return form, work_of
