"""What the optimizers share that update all parameters of a group by a rule, in one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tapegrad.optim.fused_update import Form, FusedUpdate, Work
from tapegrad.optim.optimizer import Given, Group, Optimizer, Params

# What an update is called with by a parameter, its gradient and its state.
WorkOf = Callable[[np.ndarray, np.ndarray, dict[str, Any]], Work]


class FusedOptimizer(Optimizer):
    """An optimizer whose update is written once, as a rule over operations."""

    _fused: ClassVar[FusedUpdate]
    _not_negative: tuple[str, ...] = "lr", "eps", "weight_decay"

    def __init__(self, params: Params, defaults: Group, differentiable: bool) -> None:
        if differentiable:  # no derivative goes through a step
            raise NotImplementedError(
                f"{self._name}: steps are not recorded: leave out `differentiable`, and write the "
                "update with operations on Tensors where its derivative is wanted"
            )
        super().__init__(params, defaults)

    def _check_options(self, options: Group) -> None:
        super()._check_options(options)
        if "betas" not in options:
            return
        betas = options["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 2:
            raise ValueError(f"{self._name}: `betas` is a pair of numbers, got {betas!r}")
        pair = {f"betas[{k}]": beta for k, beta in enumerate(betas)}
        for key in pair:
            self._check_number(pair, key, 0, 1)
        options["betas"] = tuple(pair.values())

    def _plan(self, group: Group) -> tuple[Form, WorkOf]:
        """How the parameters of a group are updated: by which form, and with what."""
        raise NotImplementedError

    def _update(self, group: Group, given: list[Given]) -> None:
        form, work_of = self._plan(group)
        self._fused(form, [work_of(*one) for one in given])


def begin(state: dict[str, Any], param: np.ndarray, *keys: str) -> None:
    """The state of a parameter before its first step: zeros under these keys."""
    state["step"] = 0
    for key in keys:
        state[key] = np.zeros_like(param, order="C")
