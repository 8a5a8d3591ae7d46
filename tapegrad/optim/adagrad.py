"""`Adagrad`: steps along the gradient, scaled by the sum of its squares so far."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.ops.elementwise import sqrt
from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["Adagrad"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    lr: Any
    decay: Any
    eps: Any


def _rule(form: Descent, numbers: _Numbers, p: Any, g: Any, total: Any) -> tuple[Any, ...]:
    """New elements of the parameter, and of the sum of squares."""
    p, g = form.decayed(numbers, p, g)
    total += g * g
    root = sqrt(total)
    root += numbers.eps
    p -= g / root * numbers.lr
    return p, total


class Adagrad(FusedOptimizer):
    """Steps along the gradient, in each element over the root of the sum of its squares so far.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    lr_decay : by how much of itself the rate's divisor grows each step.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    initial_accumulator_value : what the sums begin with.
    eps : what is added to the root.
    maximize : whether to ascend.
    foreach, fused : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.Adagrad([w], lr=0.5)
    >>> w.grad = tg.tensor([1.0, -2.0])
    >>> optimizer.step()
    >>> w
    tensor([ 3.5000, -1.5000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"

    def __init__(
        self, params: Params, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps,
            "initial_accumulator_value": initial_accumulator_value, "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        lr, slowing, decay = float(group["lr"]), group["lr_decay"], group["weight_decay"]
        form = Descent.of(group)

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                first = complex(1, 1) if param.dtype.kind == "c" else 1
                first *= group["initial_accumulator_value"]
                state["step"], state["sum"] = 0, np.full_like(param, first, order="C")
            state["step"] += 1
            numbers = _Numbers(lr / (1 + (state["step"] - 1) * slowing), decay, group["eps"])
            return numbers, [param, gradient, state["sum"]]

        return form, work_of
