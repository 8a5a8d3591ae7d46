"""`SGD`: descent along the gradient, with momentum."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.optim.descent import Descent
from tapegrad.optim.fused_optimizer import FusedOptimizer, WorkOf
from tapegrad.optim.fused_update import FusedUpdate, Work
from tapegrad.optim.optimizer import Group, Params

__all__ = ["SGD"]


class _Form(NamedTuple):
    """What decides which operations an update consists of."""

    descent: Descent
    nesterov: bool


class _Numbers(NamedTuple):
    """The numbers of an update; a symbol of each stands in the loop."""

    lr: Any
    decay: Any
    momentum: Any
    new: Any  # how much of the gradient joins the velocity


def _rule(form: _Form, numbers: _Numbers, p: Any, g: Any, *velocity: Any) -> tuple[Any, ...]:
    """New elements of the parameter, and of the velocity where there is one."""
    p, g = form.descent.decayed(numbers, p, g)
    if velocity:
        (v,) = velocity
        v *= numbers.momentum
        v += g * numbers.new
        velocity, g = (v,), g + v * numbers.momentum if form.nesterov else v
    p -= g * numbers.lr
    return p, *velocity


class SGD(FusedOptimizer):
    """Steps against the gradient, of length `lr`, with momentum.

    Parameters
    ----------
    params : the leaves to optimize, or parameter groups.
    lr : the learning rate.
    momentum : how much of the velocity stays at each step.
    dampening : by how much a gradient counts less in the velocity.
    weight_decay : `weight_decay * p` is added to the gradient of `p`.
    nesterov : whether to look ahead along the velocity.
    maximize : whether to ascend.
    foreach, fused : PyTorch's ways to compute the same; ignored.

    >>> import tapegrad as tg
    >>> w = tg.tensor([4.0, -2.0], requires_grad=True)
    >>> optimizer = tg.optim.SGD([w], lr=0.1, momentum=0.5)
    >>> for _ in range(40):
    ...     optimizer.zero_grad()
    ...     ((w - 1) ** 2).sum().backward()
    ...     optimizer.step()
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    _fused = FusedUpdate(_rule, _Numbers)
    _not_negative = "lr", "momentum", "weight_decay"

    def __init__(
        self, params: Params, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening,
            "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
        }, differentiable)  # fmt: skip

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        self._check_number(options, "dampening", -np.inf)
        if options["nesterov"] and (not options["momentum"] or options["dampening"]):
            raise ValueError("`SGD`: `nesterov` needs a `momentum` and no `dampening`")

    def _plan(self, group: Group) -> tuple[_Form, WorkOf]:
        lr, decay, momentum = float(group["lr"]), group["weight_decay"], group["momentum"]
        form = _Form(Descent.of(group), bool(group["nesterov"]))
        numbers = _Numbers(lr, decay, momentum, 1 - group["dampening"])

        def work_of(param: np.ndarray, gradient: np.ndarray, state: dict[str, Any]) -> Work:
            if not momentum:
                return numbers, [param, gradient]
            first = "momentum_buffer" not in state
            if first:
                state["momentum_buffer"] = np.zeros_like(param, order="C")
            # The velocity begins as the gradient.
            now = numbers._replace(new=1) if first else numbers
            return now, [param, gradient, state["momentum_buffer"]]

        return form, work_of
