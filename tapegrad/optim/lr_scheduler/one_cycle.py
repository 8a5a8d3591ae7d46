"""`OneCycleLR`: a rate that rises once, and falls to next to nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import cos, pi
from typing import Any

from tapegrad.optim.lr_scheduler.base import LRScheduler, checked
from tapegrad.optim.optimizer import Group, Optimizer

__all__ = ["OneCycleLR"]


class OneCycleLR(LRScheduler):
    """The rate rises from `max_lr / div_factor` to `max_lr`, and falls; momentum does the contrary.

    Its steps are those of the optimizer, not epochs.

    Parameters
    ----------
    optimizer : whose rates are changed.
    max_lr : the greatest rate, one for all groups or one for each.
    total_steps : how many steps there will be, or
    epochs, steps_per_epoch : whose product that is.
    pct_start : the share of steps in which the rate rises.
    anneal_strategy : "cos" or "linear", how it goes from one rate to the next.
    cycle_momentum : whether `momentum`, or the first of `betas`, changes too.
    base_momentum, max_momentum : between which it does, for all groups or for each.
    div_factor : the greatest rate by the first one.
    final_div_factor : the first rate by the last one.
    three_phase : whether the rate falls back to the first one as slowly as it rose.
    last_epoch : the last step that was done, where training goes on; else -1.

    >>> import tapegrad as tg
    >>> optimizer = tg.optim.SGD([tg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = tg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> rates = scheduler.get_last_lr()
    >>> for _ in range(9):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> [round(lr, 3) for lr in rates[:4]], round(rates[-1], 6)
    ([0.02, 0.26, 0.5, 0.475], 2e-06)
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float],
        total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer, "OneCycleLR")
        steps: Any = total_steps
        if steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "`OneCycleLR`: give `total_steps`, or both `epochs` and `steps_per_epoch`"
                )
            steps = epochs * steps_per_epoch
        if not isinstance(steps, int) or steps < 1:
            raise ValueError(f"`OneCycleLR`: the steps are a positive integer, got {steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"`OneCycleLR`: `pct_start` must be from 0 to 1, got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"`OneCycleLR`: `anneal_strategy` is 'cos' or 'linear', got {anneal_strategy!r}"
            )
        self.total_steps, self.anneal_strategy = steps, anneal_strategy
        # Where phases end, and from which to which of a group's rates they go.
        rise = pct_start * steps
        self.phases: list[list[Any]] = [[rise - 1, "initial_lr", "max_lr"]]
        if three_phase:
            self.phases += [[2 * rise - 2, "max_lr", "initial_lr"]]
        self.phases += [[steps - 1, self.phases[-1][2], "min_lr"]]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum and optimizer.defaults.keys().isdisjoint(("momentum", "betas")):
            raise ValueError(
                f"`OneCycleLR`: `{type(optimizer).__name__}` has no momentum: give "
                "`cycle_momentum=False`"
            )
        if last_epoch == -1:
            greatest = self._for_each(max_lr, "max_lr")
            for group, lr in zip(optimizer.param_groups, greatest):
                first = lr / div_factor
                group.update(max_lr=lr, initial_lr=first, min_lr=first / final_div_factor)
            if cycle_momentum:
                bounds = (
                    self._for_each(base_momentum, "base_momentum"),
                    self._for_each(max_momentum, "max_momentum"),
                )
                for group, least, most in zip(optimizer.param_groups, *bounds):
                    group.update(base_momentum=least, max_momentum=most)
        super().__init__(optimizer, last_epoch)

    def _for_each(self, value: float | Sequence[float], name: str) -> list[float]:
        groups = self.optimizer.param_groups
        values = list(value) if isinstance(value, Sequence) else [value] * len(groups)
        if len(values) != len(groups):
            raise ValueError(
                f"`OneCycleLR`: `{name}` has {len(values)} numbers for {len(groups)} parameter "
                "groups"
            )
        return values

    def get_lr(self) -> list[float]:
        """The rates of the step; it sets the momentum, too."""
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"`OneCycleLR` was made for {self.total_steps} steps, this is {self.last_epoch}"
            )
        # The phase of this step, or the last one.
        k = bisect_left([end for end, *_ in self.phases[:-1]], self.last_epoch)
        end, before, after = self.phases[k]
        start = self.phases[k - 1][0] if k else 0.0
        share = (self.last_epoch - start) / (end - start) if end > start else 1.0
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            # It is least where the rate is greatest.
            first, last = (
                "base_momentum" if rate == "max_lr" else "max_momentum" for rate in (before, after)
            )
            for group in groups:
                _set_momentum(group, self._between(group[first], group[last], share))
        return [self._between(group[before], group[after], share) for group in groups]

    def _between(self, first: float, last: float, share: float) -> float:
        if self.anneal_strategy == "cos":
            return last + (first - last) / 2 * (1 + cos(pi * share))
        return first + (last - first) * share


def _set_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
