"""`ASGD`: descent by gradients, beside which the mean of the parameters is kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["ASGD"]


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    eta: Any
    keep: Any
    decay: Any
    old: Any
    new: Any


def _rule(form: Descent, numbers: _Numbers, p: Any, g: Any, mean: Any) -> tuple[Any, ...]:
    """New elements of the parameter, and of its mean."""
    p, g = form.decayed(numbers, p, g)
    p *= numbers.keep
    p -= g * numbers.eta
    mean *= numbers.old
    mean += p * numbers.new
    return p, mean


class ASGD(FusedOptimizer):
    """Steps along the gradient that become shorter; the mean of the parameters is in the state.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate of the first step.
    lambd : how fast it falls, and what the parameters lose in each step.
    alpha : the power of the step's number by which it falls.
    t0 : the step after which the mean, ``state[p]["ax"]``, is formed; before, it is the parameter.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    maximize : whether to ascend.
    foreach, capturable : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.ASGD([w], lr=0.5, lambd=0.0, t0=0)
    >>> for _ in range(2):
    ...     w.grad = tg.tensor([1.0, -2.0])
    ...     optimizer.step()
    >>> w, optimizer.state[w]["ax"]
    (tensor([3., 0.], requires_grad=True), array([3., 0.]))
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = "lr", "lambd", "alpha", "t0", "weight_decay"

    def __init__(
        self, params: Params, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _plan(self, group: Group) -> tuple[Descent, WorkOf]:
        lr, lambd, decay = float(group["lr"]), group["lambd"], group["weight_decay"]

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not state:
                state.update(step=0, eta=lr, mu=1.0, ax=np.zeros_like(param, order="C"))
            eta, share = state["eta"], state["mu"]
            step = state["step"] = state["step"] + 1
            # As in PyTorch, a learning rate that has changed holds from the next step on.
            state["eta"] = lr / (1 + lambd * lr * step) ** group["alpha"]
            state["mu"] = 1 / max(1, step - group["t0"])
            numbers = _Numbers(eta, 1 - lambd * eta, decay, 1 - share, share)
            return numbers, [param, gradient, state["ax"]]

        return Descent.of(group), work_of
